"""Run the programs of `tests/support/everywhere.py` on the available platforms; print a table.

Every platform's values are compared with those of this Python. `--python PATH` adds another
interpreter that has NumPy; other packages need not be installed. The browser is Pyodide
under node, downloaded from npm into `build/platforms`; without node or npm its row says so.
`docs/platforms.md` has the platforms that take more than a command.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests/support/everywhere.py"
WORK = ROOT / "build/platforms"
# The newest Pyodide with the binary interface of a NumPy that npm has.
PYODIDE, NUMPY = "pyodide@0.27.7", "@emscripten-forge/numpy@2.0.1-py312h4e66579-0"
NUMPY_ALONE = """
import runpy, sys
hidden = "ml_dtypes scipy llvmlite opt_einsum _multiprocessing namoo._runtime".split()
sys.modules.update(dict.fromkeys(hidden))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def compare(name: str, command: list[str], **settings: str) -> tuple[str, str]:
    """Run the programs by a command, and return a row of the table."""
    print(f"{name} …", file=sys.stderr, flush=True)
    env = {**os.environ, "NAMOO_CACHE": "off", "PYTHONWARNINGS": "ignore", **settings}
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    lines = run.stdout.strip().splitlines() or run.stderr.strip().splitlines() or ["no output"]
    sys.stderr.writelines(f"    {line}\n" for line in lines[:-1])
    return name, lines[-1] if run.returncode >= 0 else f"ended by signal {-run.returncode}"


def browser() -> tuple[str, str]:
    """The row of Pyodide."""
    name = f"browser ({PYODIDE} under node)"
    if not (shutil.which("node") and shutil.which("npm")):
        return name, "not run: needs node and npm"
    home, numpy = WORK / "node_modules/pyodide", WORK / "lib/python3.12/site-packages"
    if not home.exists():
        subprocess.run(["npm", "install", "--silent", "--prefix", WORK, PYODIDE], check=True)
    if not numpy.exists():
        subprocess.run(["npm", "pack", "--silent", NUMPY], cwd=WORK, check=True)
        for pattern in ("emscripten-forge-numpy-*.tgz", "package/pkg/numpy-*.tar.gz"):
            (archive,) = WORK.glob(pattern)
            with tarfile.open(archive) as files:
                files.extractall(WORK, filter="data")
    mounts = {"/numpy": numpy, "/namoo": ROOT / "src", "/tests": PROGRAMS.parent, "/scratch": WORK}
    command = ["node", str(ROOT / "tools/run_in_pyodide.mjs"), str(home), str(PROGRAMS)]
    command += [f"{mount}={folder}" for mount, folder in mounts.items()]
    return compare(name, [*command, "--", "/scratch/browser.npz", "/scratch/reference.npz"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", default=[], help="another interpreter")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    reference, found = str(WORK / "reference.npz"), str(WORK / "found.npz")
    subprocess.run([sys.executable, PROGRAMS, reference], check=True)
    programs = [str(PROGRAMS), found, reference]
    rows = [compare("this Python, compiled again", [sys.executable, *programs])]
    for processor in ("nehalem", "haswell"):
        name = f"x86-64 with the features of {processor}"
        rows.append(compare(name, [sys.executable, *programs], NAMOO_TARGET_CPU=processor))
    rows.append(compare("the interpreter", [sys.executable, *programs], NAMOO_ENGINE="interpreter"))
    rows.append(compare("without C++", [sys.executable, *programs], NAMOO_RUNTIME="python"))
    rows.append(compare("NumPy alone", [sys.executable, "-c", NUMPY_ALONE, *programs]))
    for path in options.python:
        rows.append(compare(path, [path, *programs], PYTHONPATH=str(ROOT / "src")))
    rows.append(browser())
    print("| platform | result |\n|---|---|")
    print(*(f"| {name} | {result} |" for name, result in rows), sep="\n")


if __name__ == "__main__":
    main()
