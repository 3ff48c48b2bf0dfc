// A lesson: its blocks of code become cells that run and can be edited.
import { button, element, sign } from "./dom.js";
import { editor } from "./editor.js";
import { Kernel } from "./kernel.js";
import { edited, save } from "./notebook.js";
import { Output } from "./output.js";
import { note } from "./progress.js";
import { words } from "./words.js";

const RUNS = ["code", "native", "raises", "exercise"];
const page = JSON.parse(document.getElementById("namoo-cells").textContent);
const kernel = new Kernel();
const status = element("span", { className: "cell-status" });
status.setAttribute("role", "status");
let busy = false;

class Cell {
  constructor(block, { kind, code, output }, number) {
    Object.assign(this, { kind, source: code.trimEnd(), expected: output, number, check: null, done: false });
    this.output = new Output();
    this.box = element("div", { className: `cell cell-${kind}` });
    this.box.dataset.cell = number;
    const tools = element("div", { className: "cell-tools" });
    block.replaceWith(this.box);
    this.box.append(tools);
    this.editor = editor(this.box, this.source, {
      label: `${words.code} ${number}`,
      keys: { "Shift-Enter": () => this.play(), "Mod-Enter": () => this.play() },
      changed: () => this.changed(),
    });
    this.box.append(this.output.box);
    const play = () => this.play();
    const primary = kind === "exercise" ? button(words.check, play, "cell-primary cell-check") : sign("▶", words.run, play, "cell-primary");
    this.resetButton = sign("↺", words.reset, () => this.reset(), "cell-reset");
    this.resetButton.hidden = true;
    tools.append(primary, this.resetButton);
    this.output.expect(output, words.expected);
    this.box.addEventListener("focusin", () => kernel.start(), { once: true });
  }

  changed() {
    this.done = false;
    this.resetButton.hidden = this.editor.code === this.source;
  }

  reset() {
    this.editor.code = this.source;
    this.output.clear();
    this.output.expect(this.expected, words.expected);
    this.changed();
  }

  // Run this cell, after those above that have not run.
  play() {
    return run(cells.filter((cell) => cell === this || (cell.number < this.number && !cell.done)));
  }

  // Returns whether the cells below may go on.
  async run() {
    this.box.dataset.state = "running";
    this.output.clear();
    const listener = {
      output: (stream, text) => this.output.text(stream, text),
      display: (mime, content) => this.output.display(mime, content),
    };
    let result = await kernel.run(this.editor.code, `<cell ${this.number}>`, listener);
    this.done = !result.error && !result.stopped;
    if (result.error) this.output.text("error", result.error);
    if (this.done && this.check !== null) result = await this.judge(listener);
    this.box.dataset.state = result.stopped ? "stopped" : result.error ? "error" : "ok";
    if (this.kind === "raises" && result.error) this.done = true;
    return this.done;
  }

  async judge(listener) {
    const result = await kernel.check(this.check, `<check>`, listener);
    for (const line of result.right ?? []) this.output.item(true, line);
    if (result.missing) this.output.item(false, result.missing);
    if (result.error && !result.missing) this.output.text("error", result.error);
    if (!result.stopped) this.output.verdict(!result.error, result.error ? words.failed : words.passed);
    if (!result.error && !result.stopped) note(page.lesson, "passed");
    return result;
  }
}

async function run(list) {
  if (busy) return;
  busy = true;
  document.body.dataset.cells = "running";
  status.textContent = words.starting;
  stopButton.disabled = false;
  const started = await kernel.start();
  if (started.error) {
    status.textContent = `${words.broken}: ${started.error}`;
  } else {
    status.textContent = words.running;
    for (const cell of list) {
      if (busy && !(await cell.run())) break;
    }
    if (busy) status.textContent = "";
    if (cells.every((cell) => cell.done)) note(page.lesson, "run");
  }
  busy = false;
  stopButton.disabled = true;
  document.body.dataset.cells = "done";
}

function stop() {
  busy = false;
  const kept = kernel.stop();
  if (!kept) for (const cell of cells) cell.done = false;
  status.textContent = kept ? words.stopped : words.restarted;
}

const stopButton = button(words.stop, stop, "cell-stop");
stopButton.disabled = true;
const cells = [];

function build() {
  const blocks = [...document.querySelectorAll("article .highlight-python")];
  if (blocks.length !== page.cells.length) throw new Error(`${blocks.length} blocks and ${page.cells.length} cells`);
  const checks = [];
  page.cells.forEach((cell, number) => {
    const block = blocks[number];
    if (RUNS.includes(cell.kind)) cells.push(new Cell(block, cell, cells.length + 1));
    const exercise = cells.at(-1);
    if (cell.kind === "check") {
      exercise.check = cell.code;
      checks.push(cell.code);
      const details = element("details", { className: "cell-checked" }, element("summary", { textContent: words.checked }));
      block.replaceWith(details);
      details.append(block);
    }
    if (cell.kind === "solution") {
      const use = () => {
        exercise.editor.code = cell.code.trimEnd();
        exercise.box.scrollIntoView({ block: "center" });
      };
      block.after(button(words.use, use, "cell-use"));
    }
    if (cell.kind === "shown") block.title = words.shown;
  });
  const open = async () => {
    const sources = cells.flatMap((cell) => (cell.check === null ? [cell.editor.code] : [cell.editor.code, cell.check]));
    save(`${page.lesson}.ipynb`, await edited(page.notebook, sources));
  };
  document.querySelector("article h1").after(
    element(
      "div",
      { className: "cell-bar" },
      button(words.runAll, () => run(cells), "cell-primary cell-run-all"),
      stopButton,
      button(words.resetAll, () => cells.forEach((cell) => cell.reset())),
      button(words.notebook, open, "cell-notebook"),
      status,
    ),
  );
}

function say(text) {
  document.querySelector("article h1").after(element("p", { className: "cell-note", textContent: text }));
}

if (page.needs) say(words.needs[page.needs]);
else if (location.protocol === "file:") say(words.needsServer);
else build();
