// A page to try things: one editor, and a link that carries its code.
import { button, download, element } from "./dom.js";
import { editor } from "./editor.js";
import { Kernel } from "./kernel.js";
import { notebook, save } from "./notebook.js";
import { Output } from "./output.js";
import { words } from "./words.js";

const place = document.getElementById("playground-place");
const examples = JSON.parse(document.getElementById("namoo-cells").textContent).cells.map((cell) => cell.code.trimEnd());
const kernel = new Kernel();
const output = new Output();
const status = element("span", { className: "cell-status" });
status.setAttribute("role", "status");

async function squeeze(text, stream) {
  const packed = new Blob([text]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

// The code in the part of an address after `#`, which no server sees.
async function encode(code) {
  const packed = await squeeze(new TextEncoder().encode(code), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function decode(text) {
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await squeeze(packed, new DecompressionStream("deflate-raw")));
}

async function run() {
  document.body.dataset.cells = "running";
  runButton.disabled = true;
  stopButton.disabled = false;
  output.clear();
  status.textContent = words.starting;
  const started = await kernel.start();
  if (!started.error) status.textContent = words.running;
  const result = await kernel.run(code.code, "<playground>", {
    output: (stream, text) => output.text(stream, text),
    display: (mime, content) => output.display(mime, content),
  });
  if (result.error) output.text("error", result.error);
  status.textContent = result.stopped ? words.stopped : "";
  runButton.disabled = false;
  stopButton.disabled = true;
  document.body.dataset.cells = "done";
}

async function share() {
  history.replaceState(null, "", `#code=${await encode(code.code)}`);
  try {
    await navigator.clipboard.writeText(location.href);
    status.textContent = words.shared;
  } catch {
    status.textContent = location.href; // no clipboard here: the address is there to be copied
  }
}

async function open() {
  const shared = location.hash.match(/^#code=([\w-]+)$/);
  if (shared) code.code = await decode(shared[1]);
}

const titles = examples.map((text) => text.match(/^# (.*)/)?.[1] ?? "…");
const choice = element(
  "select",
  { className: "cell-button", ariaLabel: words.example },
  element("option", { textContent: words.example, value: "" }),
  ...titles.map((title, number) => element("option", { textContent: title, value: number })),
);
choice.onchange = () => {
  if (choice.value !== "") code.code = examples[choice.value];
  choice.value = "";
};
const runButton = button(words.run, run, "cell-primary");
const stopButton = button(words.stop, () => kernel.stop(), "cell-stop");
stopButton.disabled = true;
const box = element("div", { className: "cell cell-playground" });
place.append(
  element(
    "div",
    { className: "cell-bar" },
    runButton,
    stopButton,
    choice,
    button(words.share, share, "cell-share"),
    button(words.download, () => download("namoo.py", "text/x-python", code.code)),
    button(words.notebook, () => save("namoo.ipynb", notebook([code.code]))),
    status,
  ),
  box,
);
const code = editor(box, examples[0], { label: words.code, keys: { "Shift-Enter": run, "Mod-Enter": run } });
box.append(output.box);
box.addEventListener("focusin", () => kernel.start(), { once: true });
window.addEventListener("hashchange", open);
open();
