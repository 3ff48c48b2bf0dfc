"""The XLA engine against eager evaluation: every primitive, control flow, callbacks."""

import numpy as np
import pytest

import namoo
from conformance.harness import load
from namoo.core.array import to_numpy
from namoo.core.avals import aval_of
from namoo.transforms.stage import close, stage

pytest.importorskip("jaxlib")

from namoo.engines.xla.engine import xla  # noqa: E402

SAMPLES, _ = load()

# Relative to the largest element.
TOLERANCE = {
    "float32": 3e-5, "complex64": 3e-5, "float64": 1e-10, "complex128": 1e-10,
    "float16": 6e-3, "bfloat16": 4e-2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def wide_types():
    with namoo.enable_x64(True):
        yield


def compiled(fun, *args):
    """A function's program for arguments, and its inputs."""
    jaxpr, consts = stage(fun, [aval_of(x) for x in args], "f", [f"x{i}" for i in range(len(args))])
    closed, consts = close(jaxpr, consts)
    return xla.compile(closed), [to_numpy(x) for x in (*consts, *args)]


def operands(sample, dtype):
    values = sample.operands()
    if dtype is None:
        return values
    with np.errstate(over="ignore"):
        return [x.astype(dtype) if getattr(x, "dtype", None) == np.float64 else x for x in values]


def groups(size=25):
    """Samples of all primitives, many in one program: compiling one by one would take long."""
    jobs = [(s, d) for s in SAMPLES for d in (None, *s.dtypes)]
    return [jobs[i : i + size] for i in range(0, len(jobs), size)]


@pytest.mark.parametrize("jobs", groups(), ids=lambda jobs: str(jobs[0][0]))
def test_every_primitive_has_the_value_of_eager_mode(jobs):
    args = [operands(*job) for job in jobs]
    ends = np.cumsum([len(a) for a in args]).tolist()

    def program(*flat):
        return [
            out
            for (sample, _), own, end in zip(jobs, args, ends, strict=True)
            for out in sample.run(*flat[end - len(own) : end])
        ]

    run, inputs = compiled(program, *[x for own in args for x in own])
    found = iter(run(inputs))
    for (sample, dtype), own in zip(jobs, args, strict=True):
        for wanted in map(to_numpy, sample.run(*own)):
            close_to(next(found), wanted, f"{sample} {dtype or ''}")


def close_to(found, wanted, where):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), where
    if wanted.dtype.names or wanted.dtype.kind not in "fcV":
        np.testing.assert_array_equal(found, wanted, where)
        return
    finite = wanted[np.isfinite(wanted)]
    scale = float(np.abs(finite).max()) if finite.size else 1.0
    tolerance = TOLERANCE.get(wanted.dtype.name, 0.3)
    np.testing.assert_allclose(
        found.astype(np.complex128), wanted.astype(np.complex128), rtol=tolerance,
        atol=tolerance * max(scale, 1e-30), err_msg=where,
    )  # fmt: skip
