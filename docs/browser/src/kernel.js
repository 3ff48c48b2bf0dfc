// Python as the page sees it: `run` a source, `stop` a run. The worker starts when it is first needed.
const isolated = self.crossOriginIsolated;
const STOP = 2; // the number of the signal that Ctrl-C sends

export class Kernel {
  #worker = null;
  #interrupts = null;
  #started = null;
  #runs = new Map();
  #number = 0;

  start() {
    if (this.#started) return this.#started;
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#interrupts = isolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => this.#end({ type: "failed", error: event.message || "worker.js" });
    this.#started = this.#ask({ type: "start", interrupts: this.#interrupts }, {});
    return this.#started;
  }

  // Run a source. `output(stream, text)` and `display(mime, content)` are called while it runs. The promise gives
  // `{ error, kind, message }`, without an error if all went well, or `{ stopped: true }`.
  async run(code, name, { output, display }) {
    const start = await this.start();
    if (start.error || start.stopped) return start;
    if (this.#interrupts) this.#interrupts[0] = 0;
    return this.#ask({ type: "run", code, name }, { output, display });
  }

  // Run the check of an exercise: what is `right`, and the first thing that is `missing`.
  async check(code, name, { output, display }) {
    return this.#ask({ type: "check", code, name }, { output, display });
  }

  // Returns whether the names of the session are still there.
  stop() {
    if (this.#interrupts && this.#runs.size) {
      this.#interrupts[0] = STOP;
      return true;
    }
    this.#worker?.terminate();
    this.#end({ type: "stopped" });
    return false;
  }

  #ask(message, listener) {
    const id = ++this.#number;
    const answer = new Promise((resolve) => this.#runs.set(id, { ...listener, resolve }));
    this.#worker.postMessage({ ...message, id });
    return answer;
  }

  #hear(data) {
    const run = this.#runs.get(data.id);
    if (!run) return;
    if (data.type === "output") return run.output(data.stream, data.text);
    if (data.type === "display") return run.display(data.mime, data.content);
    this.#runs.delete(data.id);
    if (data.type === "failed") return run.resolve({ error: data.error, kind: "Failed" });
    run.resolve(data.kind === "KeyboardInterrupt" ? { stopped: true } : data);
  }

  #end(result) {
    const runs = [...this.#runs.values()];
    this.#runs.clear();
    this.#started = null;
    for (const run of runs) run.resolve(result.type === "failed" ? { error: result.error, kind: "Failed" } : { stopped: true });
  }
}
