"""Compare an engine with eager evaluation on the samples of all primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

import namoo
import namoo.api.jit  # gives engines the function that stages programs
from conformance.harness import Sample, load
from namoo.core.array import to_numpy
from namoo.core.avals import aval_of
from namoo.transforms.stage import close, stage

SAMPLES, _ = load()

# Relative to the largest element: composite functions round where NumPy does not.
TOLERANCE = {
    "float32": 3e-5, "complex64": 3e-5, "float64": 1e-10, "complex128": 1e-10,
    "float16": 6e-3, "bfloat16": 4e-2,
}  # fmt: skip

Job = tuple[Sample, Any]
"""A sample, and the type that its floats are converted to; None for none."""


def compiled(engine, fun, *args):
    """Return a function's compiled program for arguments, and its inputs."""
    jaxpr, consts = stage(fun, [aval_of(x) for x in args], "f", [f"x{i}" for i in range(len(args))])
    closed, consts = close(jaxpr, consts)
    return engine.compile(closed), [to_numpy(x) for x in (*consts, *args)]


def require_same_bits(program, inputs) -> None:
    """Check that a program's results do not depend on the number of threads."""
    before, results = namoo.get_num_threads(), []
    try:
        for count in (1, 2, 3, 5):
            namoo.set_num_threads(count)
            results.append([np.asarray(y).tobytes() for y in program(inputs)])
    finally:
        namoo.set_num_threads(before)
    assert all(result == results[0] for result in results)


def groups(size: int) -> list[list[Job]]:
    """Return groups of samples that are compiled together, because compiling each alone is slow."""
    jobs = [(s, d) for s in SAMPLES for d in (None, *s.dtypes)]
    return [jobs[i : i + size] for i in range(0, len(jobs), size)]


def operands(sample: Sample, dtype: Any) -> list[Any]:
    values = sample.operands()
    if dtype is None:
        return values
    with np.errstate(over="ignore"):
        return [x.astype(dtype) if getattr(x, "dtype", None) == np.float64 else x for x in values]


def check(engine, jobs: list[Job]) -> None:
    """Compile samples together, and compare their results with those of eager mode."""
    args = [operands(*job) for job in jobs]
    ends = np.cumsum([len(a) for a in args]).tolist()

    def program(*flat):
        return [
            out
            for (sample, _), own, end in zip(jobs, args, ends, strict=True)
            for out in sample.run(*flat[end - len(own) : end])
        ]

    run, inputs = compiled(engine, program, *[x for own in args for x in own])
    found = iter(run(inputs))
    for (sample, dtype), own in zip(jobs, args, strict=True):
        for wanted in map(to_numpy, sample.run(*own)):
            close_to(next(found), wanted, f"{sample} {dtype or ''}")


def close_to(found: np.ndarray, wanted: np.ndarray, where: str) -> None:
    """Check for equal bits, or floats within the tolerance of their dtype."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), where
    if wanted.dtype.names or wanted.dtype.kind not in "fcV":
        assert found.tobytes() == wanted.tobytes(), where
        return
    tolerance = TOLERANCE.get(str(wanted.dtype), 0.3)
    if wanted.dtype.itemsize < 4:
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    finite = np.abs(np.where(np.isfinite(wanted), wanted, 0))
    scale = finite.max() if finite.size else 0
    np.testing.assert_allclose(found, wanted, tolerance, tolerance * scale, err_msg=where)
