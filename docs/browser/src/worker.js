// Python in a worker: the page stays responsive, and a run can be stopped.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
const SITE = "/lib/python3.12/site-packages";

// The files of the packages: pairs of a name and its bytes.
async function* packages() {
  const response = await fetch(`${here}packages.gz`);
  const unpacked = response.headers.get("Content-Encoding") === "gzip"; // the browser has done it
  const stream = unpacked ? response.body : response.body.pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).arrayBuffer();
  const end = 4 + new DataView(data).getUint32(0, true);
  let start = end;
  for (const [name, size] of JSON.parse(new TextDecoder().decode(data.slice(4, end)))) {
    yield [name, new Uint8Array(data, start, size)];
    start += size;
  }
}

async function start(interrupts) {
  const files = Array.fromAsync(packages());
  const python = await loadPyodide({ indexURL: `${here}pyodide/` });
  // NumPy was built for systems that can list the callers of a function, and accepts that there are none to list.
  python._module.mergeLibSymbols({ backtrace: () => 0 }, "callers");
  for (const [name, data] of await files) {
    const path = `${SITE}/${name}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, data);
  }
  if (interrupts) python.setInterruptBuffer(interrupts);
  return { python, shell: python.pyimport("shell") };
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
