"""Samples of primitives, and what every rule of a primitive must satisfy.

Each module `samples_<module>.py` beside this file has a list `SAMPLES` of rows for the primitives
of one module of the package:

    from conformance.harness import Sample
    from namoo.primitives import elementwise as ew

    SAMPLES = [
        Sample(ew.sin_p, [x]),
        Sample(ew.integer_pow_p, [x], {"y": 3}, dtypes=["bfloat16", "int32"]),
        Sample(ew.floor_p, [x], name="between integers"),
    ]

`tests/primitives/test_conformance.py` puts every row through every check: the value against
`abstract`, `jvp` against finite differences, `transpose` by an inner product, `batch` against a
Python loop, second derivatives, and the same under staging.  A primitive without a row fails the
suite.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.core.trace import named_axis
from namoo.transforms.batch import Axis, batch, batch_to
from namoo.transforms.stage import stage

BATCH = 3
"""The length of the mapped axis in the batch checks."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One way to call one primitive.

    Arguments are NumPy arrays: float64 (or complex128) where derivatives are to be checked,
    integers and booleans as the primitive wants them.  Choose points where the operation is smooth
    within about 1e-3; put awkward points (ties, zeros, infinities) in rows with `diff=()`.
    """

    primitive: Primitive
    args: Sequence[Any] = ()
    """The operands; empty where `make` is given."""
    params: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    """What is special about the row, for the test's name."""
    make: Callable[[np.random.Generator], Sequence[Any]] | None = None
    """Makes the operands, instead of `args`: called again for each example of a batch, always
    with the same shapes.  Needed where scaled or reordered operands would not be valid."""
    diff: Sequence[int] | None = None
    """The operands to differentiate by; None means all inexact ones, () none."""
    reverse: bool = True
    """Whether it can be transposed: False only for what JAX cannot differentiate backward."""
    second_order: bool = True
    """Whether the second derivative exists and can be checked."""
    batchable: bool | Sequence[int] = True
    """Whether there is a batch rule; or the operands that may be batched."""
    exact: bool = False
    """Whether batched and staged values must equal the others in every bit."""
    tol: float | None = None
    """Relative tolerance of derivatives (default 1e-5); values use its square (at least 1e-12)."""
    dtypes: Sequence[Any] = ("float32",)
    """Other types the value is checked in: the float64 (complex128) operands are converted."""
    dtype_tol: float = 64
    """How many units in the last place the value may be off in those types, of its largest
    element."""
    call: Callable[..., Any] | None = None
    """Calls the primitive, where that is not just `bind`: a function of the operands that returns
    what `bind` would."""
    axis: tuple[Any, int] | None = None
    """Name and size of an axis that all operands have in front, and that is mapped over: for
    collectives.  Results have it in front, too."""
    expected: Any = None
    """The value (a list for several results), where the row is about the value itself."""
    oracle: Callable[..., Any] | None = None
    """Computes the value from the operands (NumPy in, NumPy out; no params)."""

    def __str__(self) -> str:
        shapes = ",".join(
            f"{getattr(a, 'dtype', type(a).__name__)}{list(np.shape(a))}".replace(" ", "")
            for a in self.operands()
        )
        return f"{self.primitive.name}-{(self.name or shapes).replace(' ', '_')}"

    def operands(self, example: int = 0) -> list[Any]:
        """The operands; others of the same shapes for each `example`."""
        if self.make is not None:
            return [as_operand(x) for x in self.make(np.random.default_rng(example))]
        return [as_operand(_variant(x, example)) for x in self.args]

    def differentiable(self) -> list[int]:
        """The operands to differentiate by."""
        if self.diff is not None:
            return list(self.diff)
        return [i for i, x in enumerate(self.operands()) if is_inexact(x)]

    def batched_operands(self) -> list[int]:
        """The operands that may have a mapped axis."""
        if isinstance(self.batchable, bool):
            return list(range(len(self.operands()))) if self.batchable else []
        return list(self.batchable)

    def run(self, *args: Any) -> list[Any]:
        """Bind the primitive; its results are a list in any case."""
        if self.axis is None:
            return self._bind(*args)
        axis = Axis(self.axis[1], self.axis[0])
        outs, dims = batch(self._bind, axis, args, [0] * len(args))
        return [batch_to(axis, x, d) for x, d in zip(outs, dims, strict=True)]

    def _bind(self, *args: Any) -> list[Any]:
        bind = self.call or partial(self.primitive.bind, **self.params)
        out = bind(*args)
        return list(out) if self.primitive.multiple_results else [out]

    def out_avals(self, args: Sequence[Any]) -> list[ShapedArray]:
        """The types of the results, by the abstract rule."""
        avals = [aval_of(x) for x in args]
        if self.call is not None:
            return stage(self._bind, avals)[0].out_avals
        if self.axis is None:
            out = self.primitive.abstract(*avals, **self.params)
            return list(out) if self.primitive.multiple_results else [out]
        with named_axis(*self.axis):
            single = [a.update(shape=a.shape[1:]) for a in avals]
            out = self.primitive.abstract(*single, **self.params)
        outs = out if self.primitive.multiple_results else [out]
        return [a.update(shape=(self.axis[1], *a.shape)) for a in outs]

    @property
    def rtol(self) -> float:
        return 1e-5 if self.tol is None else self.tol

    @property
    def value_rtol(self) -> float:
        if self.exact:
            return 0.0
        return 1e-12 if self.tol is None else max(1e-12, self.tol**2)


def as_operand(x: Any) -> Any:
    """Random keys are structured arrays, which only an `EagerArray` may hold."""
    return EagerArray(x) if isinstance(x, np.ndarray) and x.dtype.names else x


def _variant(x: Any, example: int) -> Any:
    """Another operand that is valid where `x` is: floats are scaled a little, others reordered."""
    if example == 0 or not isinstance(x, np.ndarray):
        return x
    if is_inexact(x):
        with np.errstate(all="ignore"):
            return (x * (1 + example / 64)).astype(x.dtype)
    return np.roll(x.reshape(-1), example).reshape(x.shape)


def is_inexact(x: Any) -> bool:
    """Whether an operand has derivatives."""
    return aval_of(x).tangent().dtype == aval_of(x).dtype


def load() -> tuple[list[Sample], dict[str, Exception]]:
    """All rows, and what went wrong in modules that could not be imported."""
    samples: list[Sample] = []
    errors: dict[str, Exception] = {}
    for path in sorted(Path(__file__).parent.glob("samples_*.py")):
        try:
            module = importlib.import_module(f"conformance.{path.stem}")
            samples.extend(module.SAMPLES)
        except Exception as error:  # noqa: BLE001 - reported as a failing test of its own
            errors[path.stem] = error
    return samples, errors


def all_primitives() -> dict[str, Primitive]:
    """Every primitive of the package, by the path of the variable that holds it."""
    found: dict[int, tuple[str, Primitive]] = {}
    for room in ("namoo.primitives", "namoo.control", "namoo.transforms"):
        package = importlib.import_module(room)
        for info in pkgutil.walk_packages(package.__path__, room + "."):
            for name, value in vars(importlib.import_module(info.name)).items():
                # A module that defines a primitive comes first by its own name where it can.
                if isinstance(value, Primitive):
                    own = info.name == type(value).__module__
                    if id(value) not in found or own:
                        found[id(value)] = (f"{info.name}.{name}", value)
    return dict(found.values())


def subsets(items: Sequence[int], most: int = 3) -> Iterator[tuple[int, ...]]:
    """All subsets but the empty one; of many items only the single ones and all."""
    items = list(items)
    if len(items) > most:
        yield from ((i,) for i in items)
        yield tuple(items)
        return
    for size in range(1, len(items) + 1):
        yield from itertools.combinations(items, size)


def numbers(x: Any) -> np.ndarray:
    """A result as a NumPy array; a symbolic zero as zeros."""
    if is_zero(x):
        dtype = getattr(x.aval.dtype, "numpy", x.aval.dtype)
        return np.zeros(x.aval.shape, dtype)
    # One element of an array of random keys is a `np.void`.
    return np.asarray(x) if isinstance(x, (np.ndarray, np.void)) else to_numpy(x)


def random_like(rng: np.random.Generator, x: Any) -> np.ndarray:
    """A random direction of the shape and dtype of `x`."""
    aval = aval_of(x)
    out = rng.standard_normal(aval.shape)
    if aval.dtype.kind == "c":
        out = out + 1j * rng.standard_normal(aval.shape)
    return np.asarray(out).astype(aval.dtype)


def tangents_for(args: Sequence[Any], chosen: Sequence[int], seed: int) -> list[Any]:
    """Random tangents for the chosen operands, and `Zero` for the others."""
    rng = np.random.default_rng(seed)
    return [
        EagerArray(random_like(rng, x)) if i in chosen else Zero.of(x) for i, x in enumerate(args)
    ]


def central_difference(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], tangents: Sequence[Any], step: float
) -> list[np.ndarray]:
    """The derivative of `fun` along the tangents, of fourth order in `step`; 0 for integers."""

    pairs = list(zip(args, tangents, strict=True))

    def at(h):
        moved = [x if is_zero(t) else x + h * numbers(t) for x, t in pairs]
        return [np.asarray(numbers(y)) for y in fun(*moved)]

    far, near = (at(2 * step), at(-2 * step)), (at(step), at(-step))
    return [
        (8 * (p1 - m1) - (p2 - m2)) / (12 * step) if p1.dtype.kind in "fc" else np.zeros(p1.shape)
        for p1, m1, p2, m2 in zip(*near, *far, strict=True)
    ]


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> tuple[float, float]:
    """The pairing under which transposes are defined, Re Σ x·y, and the size of its terms."""
    total, size = 0.0, 0.0
    for x, y in zip(xs, ys, strict=True):
        x, y = numbers(x), numbers(y)
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            total += float(np.real(np.sum(x * y)))
            size += float(np.sum(np.abs(x * y)))
    return total, size


def assert_close(found: Any, wanted: Any, rtol: float, where: str = "", floor: float = 0.0) -> None:
    """Equal within `rtol` of the largest element, or `floor`; NaNs and infinities in the same
    places."""
    found, wanted = np.asarray(numbers(found)), np.asarray(wanted)
    assert found.shape == wanted.shape, f"{where}: shape {found.shape}, wanted {wanted.shape}"
    if found.dtype.kind not in "fcV" or found.dtype.names is not None or rtol == 0:
        np.testing.assert_array_equal(found, wanted, err_msg=where)
        return
    if found.dtype.kind == "V":
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1e-300, finite.max(initial=0.0))
    atol = max(rtol * scale, floor)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=where)
