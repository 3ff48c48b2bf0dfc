// Python in a worker: the page stays responsive, and a run can be stopped.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
const SITE = "/lib/python3.12/site-packages";

async function packages() {
  const response = await fetch(`${here}packages.json.gz`);
  const plain = response.headers.get("Content-Encoding") === "gzip"; // the browser has unpacked it
  const stream = plain ? response.body : response.body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

async function start(interrupts) {
  const [python, files] = await Promise.all([loadPyodide({ indexURL: `${here}pyodide/` }), packages()]);
  for (const [name, data] of files) {
    const path = `${SITE}/${name}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, bytes(data));
  }
  if (interrupts) python.setInterruptBuffer(interrupts);
  const shell = python.pyimport("shell");
  return { python, shell };
}

let started;

self.onmessage = async ({ data }) => {
  const say = (message) => self.postMessage({ id: data.id, ...message });
  try {
    if (data.type === "start") {
      started = start(data.interrupts);
      await started;
      return say({ type: "ready" });
    }
    const { python, shell } = await started;
    const written = (stream) => (buffer) => {
      say({ type: "output", stream, text: new TextDecoder().decode(buffer) });
      return buffer.length;
    };
    python.setStdout({ write: written("out") });
    python.setStderr({ write: written("error") });
    const display = (mime, content) => say({ type: "display", mime, content });
    const result = shell[data.type](data.code, data.name, display); // `run` or `check`
    say({ type: "done", ...result.toJs({ dict_converter: Object.fromEntries }) });
    result.destroy();
  } catch (error) {
    say({ type: "failed", error: String(error) });
  }
};
