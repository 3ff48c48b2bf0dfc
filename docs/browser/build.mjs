// Build what the pages load: node build.mjs FOLDER
//
// FOLDER gets the bundled scripts, Pyodide, and one archive with NumPy, namoo and the shell, whose modules Pyodide's own
// Python has compiled here, so that a reader's browser need not.
import { build } from "esbuild";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { execFileSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { loadPyodide } from "pyodide";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2]);
const modules = join(here, "node_modules");
const source = join(here, "..", "..", "src", "namoo");
rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "pyodide"), { recursive: true });

await build({
  entryPoints: ["lesson", "overview", "playground", "worker"].map((name) => join(here, "src", `${name}.js`)),
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  minify: true,
  target: "es2022",
  external: ["./pyodide/pyodide.mjs"],
  logLevel: "warning",
});

for (const name of ["pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"]) {
  cpSync(join(modules, "pyodide", name), join(out, "pyodide", name));
}
// The address of a source map, which is not there.
const loader = join(out, "pyodide", "pyodide.mjs");
writeFileSync(loader, readFileSync(loader, "utf8").replace(/\n\/\/# sourceMappingURL=.*\n?$/, "\n"));

const unpacked = mkdtempSync(join(tmpdir(), "namoo-browser-"));
const forge = join(modules, "@emscripten-forge", "numpy", "pkg");
for (const archive of readdirSync(forge)) execFileSync("tar", ["xzf", join(forge, archive), "-C", unpacked]);
const site = join(unpacked, "site");
cpSync(join(unpacked, "lib", "python3.12", "site-packages", "numpy"), join(site, "numpy"), { recursive: true });
cpSync(source, join(site, "namoo"), { recursive: true });
for (const name of readdirSync(join(here, "python"))) cpSync(join(here, "python", name), join(site, name), { recursive: true });

const python = await loadPyodide();
python.FS.mkdirTree("/site");
python.FS.mount(python.FS.filesystems.NODEFS, { root: site }, "/site");
writeFileSync(join(out, "packages.gz"), gzipSync(pack(python), { level: 9 }));
rmSync(unpacked, { recursive: true, force: true });
console.log(`${basename(out)}: Pyodide ${python.version}`);
process.exit(0); // Pyodide keeps node alive

// All files in one piece: the length of a list of names and sizes, the list, and the contents. Modules are compiled.
function pack(python) {
  const made = python.runPython(`
import importlib.util, json, marshal
from pathlib import Path

LEFT_OUT = {"tests", "__pycache__", "f2py", "include", "distutils", "testing", "_pyinstaller", "doc"}
names, contents = [], []
for path in sorted(Path("/site").rglob("*")):
    name = path.relative_to("/site")
    if not path.is_file() or LEFT_OUT & set(name.parts[1:-1]) or path.suffix in (".pyi", ".a", ".h", ".pxd", ".typed"):
        continue
    if path.suffix == ".so" and name.parts[0] == "namoo":  # the C++ part of this machine
        continue
    data = path.read_bytes()
    if path.suffix == ".py":
        code = compile(data, f"/lib/python3.12/site-packages/{name}", "exec", dont_inherit=True)
        data = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
        name = name.with_suffix(".pyc")
    names.append([str(name), len(data)])
    contents.append(data)
index = json.dumps(names).encode()
b"".join([len(index).to_bytes(4, "little"), index, *contents])
`);
  return made.toJs();
}
