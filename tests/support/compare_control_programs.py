"""Compare random programs of `random_control_programs`: eager, native, XLA, and JAX.

    python tests/support/compare_control_programs.py --programs 100000 --start 0 --out results.jsonl
    python tests/support/compare_control_programs.py --show 17

The first runs many programs, in their own processes, and continues an earlier run of the same
file; the second prints one program and what differs.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import gc
import itertools
import json
import re
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import conftest  # noqa: F401 - before JAX is loaded: XLA is told to compile soon rather than well
import numpy as np

import namoo
import namoo.lax
import namoo.numpy
from random_control_programs import CHECKS, Function, Program, Statement, write

OURS: dict[str, Any] = {"jax": namoo, "jnp": namoo.numpy, "lax": namoo.lax, "np": np}
COMPILED = ("native", "xla", "jax")
NOISES = 6
GROUP = 16
"""Programs that are compiled together: most of the time is compiling."""
PATIENCE = 300
"""Seconds after which a program that has not ended is stopped; JAX's compiler sometimes hangs."""


@dataclass
class Outcome:
    """The leaves of a result with their types, or an error."""

    values: list[np.ndarray]
    types: list[tuple[Any, ...]]
    error: str = ""

    def __str__(self) -> str:
        return self.error or ", ".join(
            f"{v.tolist()} {d}{'' if not weak else ' weak'}"
            for v, (_, d, weak) in zip(self.values, self.types, strict=True)
        )


def run(program: Program, check: str, way: str) -> Outcome:
    """Run a program in one way."""
    with settings(program.x64, way) as space:
        try:
            call, inputs, space = prepared(program, check, way, space)
            if way in COMPILED:
                call = space["jax"].jit(call)
            if way == "loop":
                rows = [space["program"](*args) for args in space["examples"]]
                outs = [namoo.numpy.stack(column) for column in zip(*rows, strict=True)]
            else:
                outs = space["jax"].tree.leaves(call(*inputs))
            return outcome(outs)
        except Exception as error:  # noqa: BLE001 - compared with the other ways' errors
            return Outcome([], [], f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}")


def run_together(cases: Sequence[tuple[Program, str]], way: str) -> list[Outcome]:
    """Run programs with the same `x64` in one way, as one compiled function."""
    with settings(cases[0][0].x64, way) as space:
        try:
            parts = [prepared(program, check, way, space)[:2] for program, check in cases]
            calls, inputs = zip(*parts, strict=True)
            together = space["jax"].jit(
                lambda inputs: [call(*args) for call, args in zip(calls, inputs, strict=True)]
            )
            return [outcome(space["jax"].tree.leaves(out)) for out in together(inputs)]
        except Exception:  # noqa: BLE001 - each of them alone shows whose error it is
            return [run(program, check, way) for program, check in cases]


@contextlib.contextmanager
def settings(x64: bool, way: str) -> Iterator[dict[str, Any]]:
    """Yield the names that a program sees, under the settings of a way."""
    space = dict(OURS)
    if way.startswith("jax"):
        import jax

        space |= {"jax": jax, "jnp": jax.numpy, "lax": jax.lax}
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        stack.enter_context(space["jax"].enable_x64(x64))
        stack.enter_context(using(way if way in ("native", "xla") else "interpreter"))
        if way == "jax, op by op":
            stack.enter_context(space["jax"].disable_jit())
        yield space


def prepared(
    program: Program, check: str, way: str, space: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the function to compare, its arguments, and the names that the program defines."""
    space = dict(space)
    if way == "noise":
        space["noise"] = noise
    exec(program.source(check, way == "noise"), space)
    return space["call"], space["inputs"], space


@contextlib.contextmanager
def using(engine: str) -> Iterator[None]:
    before = namoo.config.engine
    namoo.config.update("engine", engine)
    try:
        yield
    finally:
        namoo.config.update("engine", before)


def outcome(leaves: list[Any]) -> Outcome:
    arrays = [np.asarray(x) for x in leaves]
    types = [
        (x.shape, str(x.dtype), bool(getattr(leaf, "weak_type", False)))
        for x, leaf in zip(arrays, leaves, strict=True)
    ]
    return Outcome([comparable(x) for x in arrays], types)


def comparable(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "V" or x.dtype.name == "bfloat16":
        return x.astype(np.float32) if x.dtype.name == "bfloat16" else np.zeros(x.shape, bool)
    return x


def noise(x: Any) -> Any:
    """Perturb the last digits of a value, as another order of operations might.

    The sign of a NaN is random, too: it is unspecified.
    """
    if not hasattr(x, "dtype") or not namoo.numpy.issubdtype(x.dtype, namoo.numpy.inexact):
        return x
    if namoo.numpy.issubdtype(x.dtype, namoo.numpy.complexfloating):
        return namoo.lax.complex(noise(x.real), noise(x.imag))
    rng = np.random.default_rng()
    steps = rng.integers(-3, 4, x.shape) * float(namoo.numpy.finfo(x.dtype).eps)
    nan = namoo.numpy.asarray(np.where(rng.integers(0, 2, x.shape), np.nan, -np.nan), x.dtype)
    return namoo.numpy.where(x != x, nan, x * namoo.numpy.asarray(1 + steps, x.dtype))


def compare(found: Outcome, wanted: Outcome, noisy: Any, weak: bool = True) -> str:
    """Describe what differs; `noisy()` returns outcomes of the same program with noise."""
    if found.error or wanted.error:
        if found.error.split(":")[0] == wanted.error.split(":")[0]:
            return ""
        if wanted.error.startswith("NotImplementedError"):
            return ""
        return f"error: {found.error or 'none'} | {wanted.error or 'none'}"
    for i, (a, b) in enumerate(zip(found.types, wanted.types, strict=True)):
        if a[:2] != b[:2] or (weak and a[2] != b[2]):
            return f"type of result {i}: {a} | {b}"
    suspects = [i for i in range(len(found.values)) if far(found.values[i], wanted.values[i]).any()]
    if not suspects:
        return ""
    runs = noisy()
    for i in suspects:
        a, b = found.values[i], wanted.values[i]
        others = [o.values[i] for o in runs if not o.error]
        if (bad := far(a, b, [wanted.values[i], *others])).any():
            at = tuple(int(k) for k in np.argwhere(bad)[0])
            return f"value of result {i} at {at}, {found.types[i][1]}: {a[at]} | {b[at]}"
    return ""


EPS = {"float16": 1e-3, "float32": 1.2e-7, "float64": 2.3e-16}


def far(a: np.ndarray, b: np.ndarray, others: Any = (), scale: Any = None) -> np.ndarray:
    """Return where two arrays differ by more than rounding, or than the others differ."""
    if a.dtype.kind == "c":
        with np.errstate(all="ignore"):
            scale = np.abs(b)
        real, imag = (far(getattr(a, p), getattr(b, p), [getattr(o, p) for o in others], scale)
                      for p in ("real", "imag"))  # fmt: skip
        # If one part of a complex number is not finite, the other means little.
        return (real | imag) & (np.isfinite(a) | np.isfinite(b))
    if a.dtype.kind != "f":
        return (a != b) & ~unstable(b, others)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(o - wide_b) for o in others], axis=0) if others else 0.0
        scale = np.abs(wide_b) if scale is None else scale
        tiny = float(np.finfo(a.dtype).tiny)
        allowed = 32 * spread + 64 * EPS[a.dtype.name] * scale + 4 * tiny
        same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
        same |= np.abs(wide_a - wide_b) <= allowed
        classes = [np.where(np.isfinite(o), 0, np.where(np.isnan(o), 3, np.sign(o)))
                   for o in [b, *others]]  # fmt: skip
        return ~same & ~unstable(classes[0], classes[1:])


def unstable(x: np.ndarray, others: Any) -> np.ndarray:
    return np.any([o != x for o in others], axis=0) if others else np.zeros(x.shape, bool)


def checks_of(program: Program) -> list[str]:
    checks = ["value"]
    if program.reverse and re.search("'(b?float|complex)", "".join(program.arguments)):
        checks.append("gradient")
    if program.seed % 3 == 0 and any(a.startswith("jnp") for a in program.arguments):
        checks.append("batch")
    return checks


Difference = tuple[str, str, str, str]
"""A check, a way, the way it is compared with, and what differs."""


def differences(
    program: Program,
    ways: list[str],
    checks: list[str] | None = None,
    known: Mapping[tuple[int, str, str], Outcome] = {},  # noqa: B006 - it is only read
) -> tuple[list[Difference], Counter[str]]:
    """Return what differs between eager and the other ways, and the number of comparisons.

    Where JAX is one of the ways, or eager raises an error, all are compared with JAX.  `known` are
    outcomes by seed, check and way.
    """
    counts: Counter[str] = Counter()
    found: list[Difference] = []
    for check in checks_of(program) if checks is None else checks:
        outcomes = {
            way: known.get((program.seed, check, way)) or run(program, check, way)
            for way in ["eager", *ways]
        }
        if outcomes["eager"].error and "jax" not in ways:
            outcomes["jax"] = run(program, check, "jax")
        if check == "batch":
            outcomes["loop"] = run(program, check, "loop")
        noisy = functools.cache(
            lambda check=check: [run(program, check, "noise") for _ in range(NOISES)]
        )
        reference = "jax" if "jax" in outcomes else "eager"
        for way, result in outcomes.items():
            if way == reference:
                continue
            counts[f"{check}: {way} | {reference}"] += 1
            # JAX's gradients and mapped loops are weakly typed by accident.
            if text := compare(result, outcomes[reference], noisy, weak=check == "value"):
                found.append((check, way, reference, text))
        if outcomes[reference].error:
            counts[f"{check}: {reference} raises"] += 1
    if "jax" in ways:
        for refused in program.refused:
            counts["refused by eager: eager | jax"] += 1
            ours, theirs = (run(refused, "value", way) for way in ("eager", "jax"))
            if text := compare(ours, theirs, list):
                found.append((refused.script(), "eager", "jax", text))
    return found, counts


def shrink(program: Program, difference: Difference) -> Program:
    """Return a smaller program with a difference of the same kind."""
    check, *pair, text = difference
    ways = [way for way in pair if way not in ("eager", "loop")]

    def fails(candidate: Program) -> bool:
        found, _ = differences(candidate, ways, [check])
        return any(d[:3] == difference[:3] and d[3][:12] == text[:12] for d in found)

    program = copy.deepcopy(program)
    program.refused = []
    if check not in CHECKS:
        return program
    while smaller := next((c for c in candidates(program) if fails(c)), None):
        program = smaller
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Yield programs with fewer results, or with a statement replaced by constants."""
    results = program.main.result.strip("(),").split(", ")
    fewer = [[name] for name in results]
    fewer += [results[:i] + results[i + 1 :] for i in range(len(results))]
    for kept in fewer if len(results) > 1 else []:
        candidate = copy.deepcopy(program)
        candidate.main.result = f"({', '.join(kept)},)"
        yield pruned(candidate)
    for i, statement in enumerate(statements_of(program.main)):
        constants = ", ".join(statement.constants)
        if constants and statement.text != constants:
            candidate = copy.deepcopy(program)
            new = list(statements_of(candidate.main))[i]
            new.text, new.functions, new.target = constants, [], ", ".join(new.names)
            yield pruned(candidate)


def pruned(program: Program) -> Program:
    """Remove unused statements and arguments."""
    main = program.main
    main.prune(set())
    used = [i for i, p in enumerate(main.params) if p in main.used()]
    main.params, program.arguments, program.others = (
        [items[i] for i in used] for items in (main.params, program.arguments, program.others)
    )
    return program


def statements_of(function: Function) -> Iterator[Statement]:
    for statement in function.statements:
        yield statement
        for inner in statement.functions:
            yield from statements_of(inner)


def work(start: int, programs: int, alone: bool, jax_every: int, xla_every: int) -> None:
    """Compare programs, those of a group together; print a line before each group."""
    gc.set_threshold(50_000)
    every = {"native": 1, "xla": xla_every, "jax": jax_every}
    for group in groups(range(start, start + programs), 1 if alone else GROUP):
        print(json.dumps({"begins": group[0], "ends": group[-1]}), flush=True)
        written = [write(seed) for seed in group]
        ways = [way for way in COMPILED if group[0] // GROUP % every[way] == 0]
        known = {}
        for way, x64 in itertools.product(() if alone else ways, (False, True)):
            cases = [(p, check) for p in written if p.x64 == x64 for check in checks_of(p)]
            outcomes = run_together(cases, way) if cases else []
            known |= {(p.seed, c, way): out for (p, c), out in zip(cases, outcomes, strict=True)}
        for program in written:
            found, counts = differences(program, ways, known=known)
            if found and known and not differences(program, ways)[0]:
                found = [(*d[:3], f"in the group {group}: {d[3]}") for d in found]
            print(json.dumps({"seed": program.seed, "found": found, "counts": counts}), flush=True)


def groups(seeds: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yield groups of consecutive seeds, cut at multiples of a size."""
    for _, group in itertools.groupby(seeds, lambda seed: seed // size):
        yield list(group)


def run_many(start: int, programs: int, chunk: int, out: Path, options: list[str]) -> None:
    """Compare programs in their own processes, which may crash, and write their reports."""
    done = {row["seed"] for row in rows_of(out)}
    todo = [seed for seed in range(start, start + programs) if seed not in done]
    alone = -1
    while todo:
        count = next((i for i, s in enumerate(todo[:chunk]) if s != todo[0] + i), len(todo[:chunk]))
        command = [sys.executable, __file__, "--worker", "--start", str(todo[0]), *options]
        if todo[0] <= alone:
            command.append("--alone")
            count = min(count, alone - todo[0] + 1)
        command += ["--programs", str(count)]
        with out.open("a") as file, subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout
            current = ends = todo[0]
            watch = None
            for line in worker.stdout:
                if watch:
                    watch.cancel()
                watch = threading.Timer(PATIENCE, worker.kill)
                watch.start()
                row = json.loads(line)
                current, ends = row.get("begins", current), row.get("ends", ends)
                if "seed" in row:
                    current = row["seed"] + 1
                    file.write(json.dumps(row) + "\n")
                    file.flush()
            code = worker.wait()
            if watch:
                watch.cancel()
            if code and todo[0] <= alone:
                crash = ["", "process", "", f"ended with {code}"]
                file.write(json.dumps({"seed": current, "found": [crash], "counts": {}}) + "\n")
                current += 1
            elif code:
                # One program of the group crashed: run each alone.
                alone = max(ends, current)
            if code:
                count = current - todo[0]
        todo = todo[count:]


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def summary(out: Path) -> str:
    counts: Counter[str] = Counter()
    kinds: dict[str, list[int]] = {}
    rows = rows_of(out)
    for row in rows:
        counts.update(row["counts"])
        for check, way, reference, text in row["found"]:
            check = check if check in CHECKS else "refused"
            kinds.setdefault(f"{check}: {way} | {reference}: {text[:100]}", []).append(row["seed"])
    lines = [f"{len(rows)} programs, {sum(bool(r['found']) for r in rows)} with differences"]
    lines += [f"{n:9,}  {name}" for name, n in sorted(counts.items())]
    for name, seeds in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(seeds):5}  {name}  seeds {seeds[:4]}")
    return "\n".join(lines)


def show(seed: int, ways: list[str], smallest: bool) -> None:
    program = write(seed)
    found, _ = differences(program, ways)
    print(program.script() if not found else "")
    for difference in found:
        check = difference[0]
        small = shrink(program, difference) if smallest else program
        print(small.script(check) if check in CHECKS else check)
        print("#", *difference[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=960, help="programs in one process")
    parser.add_argument("--alone", action="store_true", help="compile each program alone")
    parser.add_argument("--jax-every", type=int, default=10, help="one group in this many")
    parser.add_argument("--xla-every", type=int, default=10, help="one group in this many")
    parser.add_argument("--out", type=Path, default=Path("control_programs.jsonl"))
    parser.add_argument("--show", type=int, nargs="+", help="seeds to shrink and print")
    parser.add_argument("--ways", default="native,xla,jax")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.show:
        for seed in args.show:
            show(seed, args.ways.split(","), True)
    elif args.worker:
        work(args.start, args.programs, args.alone, args.jax_every, args.xla_every)
    else:
        options = ["--jax-every", str(args.jax_every), "--xla-every", str(args.xla_every)]
        run_many(args.start, args.programs, args.chunk, args.out, options)
        print(summary(args.out))


if __name__ == "__main__":
    main()
