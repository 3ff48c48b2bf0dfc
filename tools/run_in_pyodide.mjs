// Runs a Python file in Pyodide under node, with folders of this machine mounted:
//   node run_in_pyodide.mjs FOLDER-OF-PYODIDE FILE.py MOUNT=FOLDER ... -- ARGUMENT ...
// All mounted folders are on Python's search path.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [home, file, ...rest] = process.argv.slice(2);
const split = rest.indexOf("--");
const { loadPyodide } = await import(pathToFileURL(path.join(home, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: home });
const mounts = rest.slice(0, split).map((text) => text.split("="));
for (const [name, root] of mounts) {
  python.FS.mkdirTree(name);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: path.resolve(root) }, name);
}
python.globals.set("_paths", python.toPy(mounts.map(([name]) => name)));
python.globals.set("_argv", python.toPy([file, ...rest.slice(split + 1)]));
python.runPython("import sys; sys.path[:0], sys.argv = _paths, _argv; sys.dont_write_bytecode = True");
let status = 0;
try {
  python.runPython(fs.readFileSync(file, "utf8"));
} catch (error) {
  status = Number(/SystemExit: (\d+)/.exec(error.message)?.[1] ?? 1);
  if (!/SystemExit/.test(error.message)) console.log(error.message);
}
process.exit(status);
