"""Measure the same work in namoo, JAX, PyTorch and NumPy, and print a table of the times.

    python bench/run.py                             # every row; half an hour on two cores
    python bench/run.py --only 'MLP|matmul' --k 3   # the rows whose names match
    python bench/run.py --json out.json             # save the figures, merged with earlier ones
    python bench/run.py --json out.json --only '^$' --markdown  # write the pages from saved figures

Each framework runs each row in its own process. The processes alternate, round after round, so
that other load on the machine affects all of them alike, and the best time of each counts. Compare
the ratios, not the times. The results must agree before anything is measured.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from row import FRESH, Row, difference
from rows import ROWS
from table import TELLING, conditions, markdown_table, plain_table

HERE = Path(__file__).parent
ROOT = HERE.parent
MARKERS = "<!-- bench -->", "<!-- /bench -->"
# torch-compiled is PyTorch, too: the table shows the better of the two.
FRAMEWORKS = ("namoo", "jax", "torch", "torch-compiled", "numpy")
QUIET = {
    "JAX_PLATFORMS": "cpu",
    # No pool of compiling processes next to the measured one.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # Installed packages have their bytecode. Without it, a process would compile all of namoo's
    # source before it starts.
    "PYTHONDONTWRITEBYTECODE": "",
}
TIME_LIMIT = 300.0  # seconds for one answer of one process
REST = 0.05  # seconds for the threads of the previous process to go to sleep
QUIET_CORES, PATIENCE = 0.25, 30.0  # cores that other programs may use; seconds to wait for that
FRESH_ROUNDS = 3  # at most, where each round starts new processes


def busy(seconds: float = 0.3) -> float:
    """Return how many cores other programs keep busy; call it while nothing is measured."""

    def ticks() -> tuple[int, int]:
        user, nice, system, idle, wait, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
        return user + nice + system, user + nice + system + idle + wait

    before = ticks()
    time.sleep(seconds)
    used, total = (b - a for a, b in zip(before, ticks(), strict=True))
    return used / max(total, 1) * (os.cpu_count() or 1)


def wait_for_quiet() -> float:
    """Wait until the machine is quiet, at most `PATIENCE` seconds; return how busy it is then.

    On a machine of two cores, one busy core makes a BLAS that waits for its second thread a hundred
    times slower, so figures from a busy machine mean nothing.
    """
    end = time.monotonic() + PATIENCE
    while (cores := busy()) > QUIET_CORES and time.monotonic() < end:
        pass
    return cores


class Failure(Exception):
    """A process died, hung or gave a wrong result; the message is the last line that it wrote."""


class Process:
    """A child process that answers one line at a time."""

    def __init__(self, *command: str, **environment: str):
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **QUIET, **environment},
        )

    def answer(self, question: str = "") -> str:
        """Send a line, if any, and return the line that the child answers with."""
        assert self.child.stdin is not None and self.child.stdout is not None
        if question:
            self.child.stdin.write(question + "\n")
            self.child.stdin.flush()
        timer = threading.Timer(TIME_LIMIT, self.child.kill)
        timer.start()
        line = self.child.stdout.readline()
        timer.cancel()
        if not line:
            self.child.wait()
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or ["no answer in time"])[-1]
            raise Failure(last)
        return line

    def close(self) -> None:
        self.child.communicate()  # closes its input and waits for it
        self.errors.close()


def agree(row: Row, files: dict[str, Path]) -> dict[str, str]:
    """Return a message for each framework whose result differs from the oracle's."""
    results = {}
    for framework, file in files.items():
        with np.load(file) as arrays:
            results[framework] = [arrays[name] for name in arrays.files]
    oracle = next(f for f in ("jax", "numpy", "torch", *FRAMEWORKS) if f in results)
    wrong = {}
    for framework, result in results.items():
        off = difference(result, results[oracle])
        if off > row.tolerance:
            wrong[framework] = f"differs from {oracle} by {off:.2g} of its norm"
    return wrong


def measure_calls(row: Row, frameworks: list[str], rounds: int, scratch: Path):
    """Start all processes, compare their results, then measure them alternately."""
    processes, files, failures = {}, {}, {}
    times: dict[str, list[float]] = {}
    try:
        for framework in frameworks:
            file = scratch / f"{framework}.npz"
            worker = Process(str(HERE / "worker.py"), framework, row.name, str(file))
            try:
                worker.answer()
                processes[framework], files[framework] = worker, file
            except Failure as failure:
                failures[framework] = str(failure)
                worker.close()
        if files:
            failures |= agree(row, files)
        for _ in range(rounds):
            for framework in [f for f in processes if f not in failures]:
                time.sleep(REST)
                try:
                    answer = float(processes[framework].answer("again"))
                    times.setdefault(framework, []).append(answer)
                except Failure as failure:
                    failures[framework] = str(failure)
    finally:
        for worker in processes.values():
            worker.close()
    return times, failures


def measure_fresh(row: Row, frameworks: list[str], rounds: int, scratch: Path):
    """Measure each figure in a new process; an unmeasured first round fills a warm cache."""
    times: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    for number in range(min(rounds, FRESH_ROUNDS) + (row.cache == "warm")):
        for framework in [f for f in frameworks if f not in failures]:
            environment = {}
            if row.cache is not None:
                cache = scratch / f"cache-{framework}"
                if row.cache == "cold":
                    shutil.rmtree(cache, ignore_errors=True)
                cache.mkdir(exist_ok=True)
                environment = {
                    "NAMOO_CACHE_DIR": str(cache),
                    "JAX_COMPILATION_CACHE_DIR": str(cache),
                    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
                }
            try:
                seconds = once(row, framework, environment)
            except Failure as failure:
                failures[framework] = str(failure)
            else:
                if number or row.cache != "warm":
                    times.setdefault(framework, []).append(seconds)
    return times, failures


def once(row: Row, framework: str, environment: dict[str, str]) -> float:
    """Return one figure of a row, measured in a new process."""
    if row.measure in FRESH:
        command = [str(HERE / "fresh.py"), row.measure, framework]
    else:
        command = [str(HERE / "worker.py"), framework, row.name]
    start = time.perf_counter()
    process = Process(*command, **environment)
    try:
        value = float(process.answer())
    finally:
        elapsed = time.perf_counter() - start
        process.close()
    return elapsed if row.measure == "step" else value


def measure(row: Row, frameworks: list[str], rounds: int) -> dict:
    """Return the best figure of each framework, all figures, and the failures."""
    wanted = [f for f in frameworks if row.runs_in(f)]
    cores = wait_for_quiet()
    with tempfile.TemporaryDirectory() as scratch:
        runner = measure_calls if row.measure == "call" else measure_fresh
        times, failures = runner(row, wanted, rounds, Path(scratch))
    # A framework that failed in any round has no figure: the rounds before it prove nothing.
    best = {name: min(found) for name, found in times.items() if name not in failures}
    compiled = best.pop("torch-compiled", None)
    if compiled is not None and compiled < best.get("torch", float("inf")):
        best["torch"] = compiled
    cores = max(cores, busy())
    return {"best": best, "figures": times, "failures": failures, "busy": round(cores, 2)}


def machine() -> dict:
    """Return the processor and the versions of the frameworks."""
    versions = {}
    for name in ("namoo", "jax", "torch", "numpy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def replace_between_markers(page: Path, text: str) -> None:
    """Replace the text between the markers of a page."""
    start, end = MARKERS
    content = page.read_text()
    if start not in content or end not in content:
        raise SystemExit(f"{page.name} has no {start} ... {end} for the table to go between")
    before, rest = content.split(start, 1)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{start}\n{text}\n{end}{after}")


def write_pages(figures: dict[str, dict], about: dict, root: Path = ROOT) -> None:
    """Write the whole table to docs/benchmarks.md and the most telling rows to the READMEs."""
    whole = f"{conditions(about)}\n\n{markdown_table(figures)}"
    replace_between_markers(root / "docs" / "benchmarks.md", whole)
    for name in ("README.md", "README.ko.md"):
        replace_between_markers(root / name, markdown_table(figures, TELLING))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure namoo beside JAX, PyTorch, NumPy.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows whose name matches")
    parser.add_argument("--k", type=int, default=5, help="rounds; the best of them counts")
    parser.add_argument("--frameworks", default="namoo,jax,torch,numpy")
    parser.add_argument("--engine", choices=["native", "xla"], help="namoo's; native by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here")
    parser.add_argument("--markdown", action="store_true", help="write the tables of the pages")
    options = parser.parse_args()
    if options.engine:
        os.environ["NAMOO_ENGINE"] = options.engine

    frameworks = options.frameworks.split(",")
    if "torch" in frameworks:
        frameworks.insert(frameworks.index("torch") + 1, "torch-compiled")
    if unknown := set(frameworks) - set(FRAMEWORKS):
        parser.error(f"unknown frameworks: {', '.join(sorted(unknown))}")
    about = machine()
    if about["torch"] is None:
        frameworks = [f for f in frameworks if not f.startswith("torch")]

    kept = {}
    if options.json and options.json.exists():
        kept = json.loads(options.json.read_text())["rows"]
    measured = {}
    chosen = [row for row in ROWS.values() if re.search(options.only, row.name)]
    for number, row in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {row.name}", file=sys.stderr, flush=True)
        kept[row.name] = measured[row.name] = measure(row, frameworks, options.k)
        if measured[row.name]["busy"] > QUIET_CORES:
            print("    the machine was busy: do not trust these figures", file=sys.stderr)
        for framework, why in measured[row.name]["failures"].items():
            print(f"    {framework}: {why}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps({"machine": about, "rows": kept}, indent=1))

    print(plain_table(measured))
    if options.markdown:
        write_pages(kept, about)


if __name__ == "__main__":
    main()
