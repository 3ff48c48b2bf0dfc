// What a cell prints and draws, and its error.
import { element } from "./dom.js";

export class Output {
  constructor() {
    this.box = element("div", { className: "cell-output", ariaLive: "polite" });
  }

  clear() {
    this.box.replaceChildren();
  }

  // What the page says that the cell prints, until it has run.
  expect(text, word) {
    if (text) this.box.replaceChildren(element("pre", { className: "cell-expected", textContent: text, title: word }));
  }

  text(stream, text) {
    const last = this.box.lastElementChild;
    if (last?.dataset.stream === stream) last.append(text);
    else {
      const block = element("pre", { className: `cell-text cell-${stream}` }, text);
      block.dataset.stream = stream;
      this.box.append(block);
    }
  }

  display(mime, content) {
    if (mime === "text/plain") this.text("result", content);
    else if (mime === "image/svg+xml") {
      // As an image: what is drawn cannot run scripts.
      const source = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(content)}`;
      this.box.append(element("img", { className: "cell-picture", src: source, alt: "" }));
    } else if (mime === "text/html") {
      const frame = element("iframe", { className: "cell-html", srcdoc: content, title: "output" });
      frame.setAttribute("sandbox", "");
      this.box.append(frame);
    }
  }

  // One thing that a check has found.
  item(ok, text) {
    this.box.append(element("div", { className: `cell-item ${ok ? "cell-right" : "cell-wrong"}`, textContent: text }));
  }

  verdict(ok, text) {
    this.box.append(element("div", { className: `cell-verdict ${ok ? "cell-right" : "cell-wrong"}`, textContent: text }));
  }
}
