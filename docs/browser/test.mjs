// Open the built site in Chromium, as a reader would: node test.mjs SITE [--only PART] [--pictures FOLDER]
//
// Each lesson runs from top to bottom, its exercise says what is missing, and its solution passes. The time from opening a
// lesson to its first result is printed.
import { createServer } from "node:http";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, normalize, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: "string" }, pictures: { type: "string" } } });
const site = resolve(positionals[0]);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".json": "application/json" };
const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

function serve(headers) {
  const server = createServer((request, response) => {
    const path = join(site, normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)));
    try {
      const file = statSync(path).isDirectory() ? join(path, "index.html") : path;
      const data = readFileSync(file);
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", ...headers }).end(data);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done({ server, url: `http://127.0.0.1:${server.address().port}` })));
}

const plain = await serve({});
const isolated = await serve(ISOLATED);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "namoo-chromium-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  acceptDownloads: true,
});
const origins = new Set([plain.url, isolated.url]);
const strangers = [];
browser.on("request", (request) => {
  const url = new URL(request.url());
  if (url.protocol.startsWith("http") && !origins.has(url.origin)) strangers.push(request.url());
});

async function open(url) {
  const page = await browser.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  await page.goto(url);
  return page;
}

const finished = (page) => page.waitForFunction(() => document.body.dataset.cells === "done", null, { timeout: 180_000 });

async function click(page, selector) {
  await page.evaluate(() => (document.body.dataset.cells = ""));
  await page.click(selector);
}

function ensure(fact, text) {
  if (!fact) throw new Error(text);
}

// What a cell prints agrees with the page, where `...` and spaces agree with anything.
function agrees(expected, found) {
  const plain = (text) => text.replaceAll(/\s+/g, " ").trim();
  const parts = plain(expected).split("...").map((part) => part.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(plain(found));
}

async function lesson(folder, name) {
  const started = performance.now();
  const page = await open(`${plain.url}/${folder}lessons/${name}.html`);
  const data = await page.evaluate(() => JSON.parse(document.getElementById("namoo-cells").textContent));
  if (data.needs) {
    ensure(await page.locator(".cell-note").count(), "a lesson that does not run here says why");
    await page.close();
    return "says what it needs";
  }
  await click(page, ".cell-run-all");
  await page.waitForSelector('.cell[data-state="ok"], .cell[data-state="error"]', { timeout: 60_000 });
  const first = (performance.now() - started) / 1000;
  times.push(first);
  await finished(page);
  const found = await page.$$eval(".cell", (boxes) => boxes.map((box) => ({ state: box.dataset.state, text: box.querySelector(".cell-output").textContent, printed: [...box.querySelectorAll(".cell-out")].map((block) => block.textContent).join("") })));
  const cells = data.cells.filter((cell) => ["code", "native", "raises", "exercise"].includes(cell.kind));
  cells.forEach((cell, number) => {
    const { state, text, printed } = found[number];
    const where = `cell ${number + 1} of ${name}`;
    if (["code", "native"].includes(cell.kind)) ensure(state === "ok", `${where}: ${state}\n${text}`);
    if (cell.kind === "code") ensure(agrees(cell.output, printed), `${where} prints\n${printed}\nand not\n${cell.output}`);
    if (cell.kind === "raises") ensure(state === "error" && text.includes(cell.output.split(/[:\s]/)[0]), `${where}: ${text}`);
    if (cell.kind === "exercise") ensure(state === "error" && text.length > 5, `${where} holds before it is solved`);
  });
  ensure(await page.locator(".cell-exercise .cell-verdict.cell-wrong").count(), "an exercise that is not solved is not passed");
  await page.evaluate(() => document.querySelectorAll("details").forEach((box) => (box.open = true)));
  const exercises = page.locator(".cell-exercise");
  for (let number = 0; number < (await exercises.count()); number++) {
    await page.locator(".cell-use").nth(number).click();
    await page.evaluate(() => (document.body.dataset.cells = ""));
    await exercises.nth(number).locator(".cell-check").click();
    await finished(page);
    const text = await exercises.nth(number).locator(".cell-output").textContent();
    ensure(await exercises.nth(number).locator(".cell-verdict.cell-right").count(), `the solution does not pass: ${text}`);
  }
  const progress = await page.evaluate(() => JSON.parse(localStorage.getItem("namoo-progress")));
  ensure(progress[name]?.passed && progress[name]?.run, "progress is kept");
  ensure(page.problems.length === 0, page.problems.join("\n"));
  await page.close();
  return `first result after ${first.toFixed(1)} s`;
}

async function type(page, selector, text) {
  await page.click(`${selector} .cm-content`);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

// The first cell of a page with a code of our own; returns what it shows.
async function first(page, text) {
  await type(page, '.cell[data-cell="1"]', text);
  await click(page, '.cell[data-cell="1"] .cell-primary');
  await finished(page);
  return page.locator('.cell[data-cell="1"] .cell-output').textContent();
}

const MISTAKES = [
  ["import namoo as jax\njax.jit(lambda x: 1 if x > 0 else 2)(1.0)", ["TracerBoolConversionError", "jnp.where"]],
  ["import namoo as jax\njax.grad(lambda x: x)(1)", ["TypeError", "float"]],
  ["import namoo.numpy as jnp\njnp.ones(2)[0] = 1", ["TypeError", ".at["]],
  ["import namoo.numpy as jnp\njnp.ones((2, 3)) @ jnp.ones((2, 3))", ["TypeError", "shape"]],
  ["print(undefined)", ["Traceback (most recent call last):", '<cell 1>", line 1', "NameError"]],
];

const tests = {
  "classic mistakes are explained": async () => {
    const page = await open(`${plain.url}/lessons/04_transformations.html`);
    for (const [code, parts] of MISTAKES) {
      const text = await first(page, code);
      for (const part of parts) ensure(text.includes(part), `${code}\nshows\n${text}\nwithout ${part}`);
      ensure(!text.includes("site-packages/shell"), "the shell shows in a traceback");
    }
    await page.close();
  },
  "an edit can be taken back": async () => {
    const page = await open(`${plain.url}/lessons/04_transformations.html`);
    ensure((await first(page, "1 + 1")).trim() === "2", "the last expression is shown");
    await page.click('.cell[data-cell="1"] .cell-reset');
    ensure((await page.locator('.cell[data-cell="1"] .cm-content').textContent()).includes("import namoo"), "reset");
    await page.close();
  },
  "a run is stopped and names are kept where the page is isolated": () => stopped(isolated.url, true),
  "a run is stopped elsewhere": () => stopped(plain.url, false),
  "a notebook has the reader's code": async () => {
    const page = await open(`${plain.url}/ko/lessons/04_transformations.html`);
    await type(page, '.cell[data-cell="1"]', "mine = 1");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(".cell-notebook")]);
    const made = JSON.parse(readFileSync(await download.path(), "utf8"));
    ensure(made.nbformat === 4 && made.cells.filter((cell) => cell.cell_type === "code")[0].source === "mine = 1", "the code");
    await page.close();
  },
  "the course is shown, exported and forgotten": async () => {
    const page = await open(`${plain.url}/lessons/index.html`);
    await page.evaluate(() => localStorage.setItem("namoo-progress", '{"01_tree_map": {"run": "x", "passed": "y"}}'));
    await page.reload();
    ensure((await page.locator(".course-mark").first().textContent()) === "✓", "a lesson that is done has a mark");
    ensure((await page.locator(".course").textContent()).includes("1 / "), "the count");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(".course-export")]);
    ensure(JSON.parse(readFileSync(await download.path(), "utf8"))["01_tree_map"].passed === "y", "the export");
    page.on("dialog", (dialog) => dialog.accept());
    await page.click(".course .cell-bar button:nth-of-type(3)");
    ensure((await page.evaluate(() => localStorage.getItem("namoo-progress"))) === "{}", "forgotten");
    await page.close();
  },
  "the playground runs, draws and shares": async () => {
    const page = await open(`${plain.url}/playground.html`);
    await page.selectOption("select", { index: 2 });
    await click(page, ".cell-bar .cell-primary");
    await finished(page);
    const shown = await page.locator(".cell-playground .cell-output").textContent();
    ensure(await page.locator(".cell-picture").count(), `a picture\n${shown}`);
    await type(page, ".cell-playground", 'print("나무", 6 * 7)');
    await page.click(".cell-share");
    await page.waitForFunction(() => location.hash.startsWith("#code="));
    const other = await open(page.url());
    await other.waitForFunction(() => document.querySelector(".cell-playground .cm-content").textContent.includes("나무"));
    await click(other, ".cell-bar .cell-primary");
    await finished(other);
    ensure((await other.locator(".cell-playground .cell-output").textContent()).includes("나무 42"), "the shared code runs");
    await page.close();
    await other.close();
  },
};

async function stopped(url, kept) {
  const page = await open(`${url}/lessons/04_transformations.html`);
  await first(page, "kept = 1");
  await type(page, '.cell[data-cell="1"]', "while True:\n    pass");
  await click(page, '.cell[data-cell="1"] .cell-primary');
  await page.waitForSelector('.cell[data-cell="1"][data-state="running"]');
  await page.waitForTimeout(500);
  await page.click(".cell-stop");
  await finished(page);
  const text = await first(page, "kept");
  ensure(kept ? text.trim() === "1" : text.includes("NameError"), `after a stop: ${text}`);
  await page.close();
}

const times = [];
const lessons = readdirSync(join(site, "lessons")).filter((name) => /^\d\d_.*\.html$/.test(name)).map((name) => name.replace(".html", ""));
for (const folder of ["", "ko/"]) {
  for (const name of lessons) tests[`${folder}lessons/${name}`] = () => lesson(folder, name);
}

let wrong = 0;
if (values.pictures) await pictures(values.pictures);
else {
  for (const [name, test] of Object.entries(tests)) {
    if (values.only && !name.includes(values.only)) continue;
    try {
      console.log(`ok    ${name}${((text) => (text ? `: ${text}` : ""))(await test())}`);
    } catch (error) {
      wrong++;
      console.log(`WRONG ${name}: ${error.message}`);
    }
  }
  for (const url of strangers) console.log(`WRONG a request left the machine: ${url}`);
  times.sort((a, b) => a - b);
  if (times.length) console.log(`first result: median ${times[times.length >> 1].toFixed(1)} s, longest ${times.at(-1).toFixed(1)} s`);
}
await browser.close();
process.exit(wrong || strangers.length ? 1 : 0);

// What a reader sees, to be looked at.
async function pictures(folder) {
  const page = await open(`${plain.url}/lessons/09_control_flow.html`);
  const shot = async (name, path, { width = 1280, height = 900, theme = "light", run = false, at = null } = {}) => {
    await page.setViewportSize({ width, height });
    await page.goto(`${plain.url}/${path}`);
    await page.evaluate((mode) => (document.documentElement.dataset.theme = mode), theme);
    if (run) {
      await click(page, run);
      await finished(page);
    }
    if (at) await page.locator(at).first().scrollIntoViewIfNeeded();
    await page.screenshot({ path: join(folder, `${name}.png`) });
  };
  await shot("desktop", "lessons/09_control_flow.html", { run: ".cell-run-all" });
  await shot("exercise", "lessons/09_control_flow.html", { run: ".cell-run-all", at: ".cell-verdict" });
  await shot("dark", "lessons/09_control_flow.html", { theme: "dark", run: ".cell-run-all", at: ".cell-raises .cell-output" });
  await shot("phone", "ko/lessons/09_control_flow.html", { width: 390, height: 844, run: ".cell-run-all" });
  await shot("phone-exercise", "ko/lessons/09_control_flow.html", { width: 390, height: 844, run: ".cell-run-all", at: ".cell-verdict" });
  await shot("korean", "ko/lessons/index.html");
  await shot("course", "lessons/index.html", { theme: "dark" });
  await shot("playground", "playground.html", { run: ".cell-bar .cell-primary" });
  await shot("sharding", "ko/lessons/12_sharding.html");
}
