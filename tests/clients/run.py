"""Run the tests of libraries written for JAX, with namoo standing in for it and with JAX itself.

    python tests/clients/run.py                     all libraries of clients.toml
    python tests/clients/run.py optax chex          some of them
    python tests/clients/run.py --whole optax       all tests of a library, not the chosen part
    python tests/clients/run.py --keep optax        keep JAX's outcomes, run namoo again
    python tests/clients/run.py --count optax       count the outcomes of the last run again
    python tests/clients/run.py --table             only write the table of docs/clients.md again

The tests come from the library's public repository, at the tag of the installed release: a folder
`<sources>/<library>` is used if there is one, else `git clone` makes it. The counts are written to
src/namoo/compat/clients.json, from which `namoo.compat.report()` and the table of docs/clients.md
are made. The exit status is 1 if a library passes less than `--at-least` of the tests.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "src" / "namoo" / "compat" / "clients.json"
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- table of libraries: begin -->", "<!-- table of libraries: end -->"


def source(library: str, entry: dict[str, Any], version: str, sources: Path) -> Path:
    """The folder with the library's repository, cloned if it is not there."""
    folder = sources / library.partition(".")[0]
    if not folder.exists():
        address = f"https://github.com/{entry['repository']}"
        branch = entry["tag"].format(version=version)
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", branch]
        subprocess.run([*command, address, str(folder)], check=True)
    return folder


def imported_version(entry: dict[str, Any], folder: Path) -> str:
    """The version that tests in the folder import, which may have the library beside its tests."""
    code = f"import {entry['import']} as library; print(getattr(library, '__version__', ''))"
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def run(entry: dict[str, Any], folder: Path, results: Path, options: Any, *, namoo: bool) -> None:
    """Run the tests once and write their outcomes to a file."""
    environment = {
        **os.environ,
        **entry.get("environment", {}),
        "NAMOO_AS_JAX": "1" if namoo else "0",
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "CLIENT_PART": "1" if options.whole else str(entry.get("part", 1)),
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "sample", "-p", "no:cacheprovider"]
    command += ["-n", str(options.workers), "--timeout", "300", "-W", "ignore", "--tb", "short"]
    # Without the options of the library: they ask for plugins that the tests do not need.
    command += ["-o", "addopts=", "-o", "xfail_strict=false", "--continue-on-collection-errors"]
    command += ["--junitxml", str(results.resolve())]
    if without := entry.get("deselect"):
        command += ["-k", f"not ({' or '.join(without)})"]
    with results.with_suffix(".log").open("w") as log:
        subprocess.run(
            [*command, *entry["tests"]],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=options.timeout,
            check=False,
        )


def passed(results: Path) -> set[str]:
    """The tests that passed, by name. A test with a failing part has not passed."""
    outcomes: dict[str, bool] = {}
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        outcomes[name] = outcomes.get(name, True) and len(case) == 0
    return {name for name, good in outcomes.items() if good}


def compare(library: str, entry: dict[str, Any], options: Any) -> dict[str, Any]:
    """The entry of the data file for a library whose tests were run both ways."""
    version = importlib.metadata.version(library.partition(".")[0])
    files = [options.results / f"{library}.{name}.xml" for name in ("namoo", "jax")]
    if not options.count:
        folder = source(library, entry, version, options.sources)
        version = imported_version(entry, folder) or version
        for results, namoo in zip(files, (True, False), strict=True):
            if namoo or not (options.keep and results.exists()):
                run(entry, folder, results, options, namoo=namoo)
    ours, theirs = map(passed, files)
    for name in sorted(theirs - ours):
        print(f"{library}: passes with JAX only: {name}")
    part = 1 if options.whole else entry.get("part", 1)
    tests = "all tests" if part == 1 else f"one in {part} tests"
    tests += f" of {entry['what']}" if "what" in entry else ""
    return dict(tested=version, tests=tests, jax=len(theirs), namoo=len(theirs & ours))


def write_table() -> None:
    """Write the table of docs/clients.md from the data file."""
    from namoo.compat.clients import percent, report

    rows = ["| library | version | tests run | pass with JAX | of these, with namoo | share |"]
    rows.append("|---|---|---|---|---|---|")
    for client in report(every=True):
        cells = (client.library, client.tested, client.tests, client.jax, client.namoo)
        rows.append(f"| {' | '.join(map(str, cells))} | {percent(client)} |")
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(rows)}\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--whole", action="store_true", help="run all tests, not the chosen part")
    parser.add_argument("--keep", action="store_true", help="keep the outcomes of JAX")
    parser.add_argument("--count", action="store_true", help="use the results that are there")
    parser.add_argument("--table", action="store_true", help="write the table and run nothing")
    parser.add_argument("--sources", type=Path, default=ROOT / "build" / "clients-sources")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "clients-results")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one run")
    parser.add_argument("--at-least", type=float, default=0.99, help="the share that is demanded")
    options = parser.parse_args()
    if options.table:
        write_table()
        return 0
    options.results.mkdir(parents=True, exist_ok=True)
    table = tomllib.loads((HERE / "clients.toml").read_text(encoding="utf-8"))
    status = 0
    for library in options.libraries or table:
        entry = compare(library, table[library], options)
        print(f"{library} {entry['tested']}: {entry['namoo']} of {entry['jax']}", flush=True)
        status |= entry["namoo"] < options.at_least * entry["jax"]
        data = json.loads(DATA.read_text(encoding="utf-8")) | {library: entry}
        DATA.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    write_table()
    return status


if __name__ == "__main__":
    sys.exit(main())
