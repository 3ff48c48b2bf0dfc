"""Tables of programs that run in namoo and in real JAX and must agree.

A row is `name: Case(program, *args)`.  A program is a function `program(lib, *arrays)`, where `lib`
has `jnp`, `lax`, `scipy` and `image` of one package, and the package itself as `lib.jax`.  JAX
runs a whole table as one compiled function; namoo runs each row eagerly and under `jit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.image
import jax.numpy
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.linalg
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import jax.scipy.sparse.linalg
import jax.scipy.spatial.transform
import numpy as np

import namoo
import namoo.image
import namoo.numpy
import namoo.scipy


def _library(package: Any) -> SimpleNamespace:
    return SimpleNamespace(
        jax=package, jnp=package.numpy, lax=package.lax, scipy=package.scipy, image=package.image
    )


OURS, THEIRS = _library(namoo), _library(jax)


class Case:
    """A program and its arguments.

    Args:
        program: the function of a library and arrays.
        args: NumPy arrays.
        diff: the arguments to differentiate by; none by default.
        second: compare second derivatives, too.
        rtol: the tolerance, relative to the largest element.
        weak: compare weak types.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        *args: Any,
        diff: Any = (),
        second: bool = False,
        rtol: float = 2e-5,
        weak: bool = True,
    ):
        self.program, self.args, self.rtol, self.weak = program, args, rtol, weak
        self.diff = tuple(range(len(args))) if diff is True else tuple(diff)
        self.second = second

    def run(self, lib: Any, args: Any) -> dict[str, Any]:
        """Return the value, and the derivatives in fixed directions."""
        out = {"value": self.program(lib, *args)}
        if not self.diff:
            return out
        jax = lib.jax

        def inexact(*chosen):
            full = list(args)
            for i, x in zip(self.diff, chosen, strict=True):
                full[i] = x
            leaves = jax.tree.leaves(self.program(lib, *full))
            return [x for x in leaves if np.dtype(x.dtype).kind in "fc"]

        chosen = [args[i] for i in self.diff]
        directions = [_direction(lib, x, 7) for x in chosen]
        out["jvp"] = jax.jvp(inexact, chosen, directions)[1]

        def pull(*chosen):
            values, pullback = jax.vjp(inexact, *chosen)
            return pullback([_direction(lib, v, 11) for v in values])

        if self.second:
            out["vjp"], out["second order"] = jax.jvp(pull, chosen, directions)
        else:
            out["vjp"] = pull(*chosen)
        return out


def _direction(lib: Any, x: Any, seed: int) -> Any:
    rng = np.random.RandomState(seed + x.size)
    out = rng.randn(*x.shape)
    if np.dtype(x.dtype).kind == "c":
        out = out + 1j * rng.randn(*x.shape)
    return lib.jnp.asarray(out, x.dtype)


class Table:
    """Cases by name; JAX's results are computed together, on first use."""

    def __init__(self, cases: Mapping[str, Case]):
        self.cases = dict(cases)
        self._wanted: dict[str, Any] | None = None

    def __iter__(self):
        return iter(self.cases)

    def wanted(self, name: str) -> Any:
        if self._wanted is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of the oracle itself
                self._wanted = _run_together(THEIRS, self.cases)
        return self._wanted[name]

    def check(self, name: str) -> None:
        """Run one row eagerly and compiled, and compare both with JAX."""
        case, wanted = self.cases[name], self.wanted(name)
        found = case.run(OURS, [OURS.jnp.asarray(x) for x in case.args])
        assert_same(found, wanted, f"{name}, eagerly", case)
        found = _run_together(OURS, {name: case})[name]
        assert_same(found, wanted, f"{name}, compiled", case)


def _run_together(lib: Any, cases: Mapping[str, Case]) -> dict[str, Any]:
    args = {name: [lib.jnp.asarray(x) for x in case.args] for name, case in cases.items()}
    run = lambda args: {name: case.run(lib, args[name]) for name, case in cases.items()}  # noqa: E731
    return lib.jax.jit(run)(args)


def assert_same(found: Any, wanted: Any, where: str, case: Case) -> None:
    """Check that two trees have the same structure, types and close values."""
    ours, our_tree = namoo.tree_util.tree_flatten(found)
    theirs, their_tree = jax.tree_util.tree_flatten(wanted)
    assert str(our_tree) == str(their_tree), where
    for a, b in zip(ours, theirs, strict=True):
        where_now = f"{where}: {a!r}, but JAX: {b!r}"
        assert np.shape(a) == np.shape(b), where_now
        assert str(a.dtype) == str(b.dtype), where_now
        if case.weak:
            assert a.weak_type == b.weak_type, where_now
        a, b = np.asarray(a), np.asarray(b)
        if b.dtype.kind not in "fcV":
            np.testing.assert_array_equal(a, b, where)
            continue
        wide = np.complex128 if b.dtype.kind == "c" else np.float64
        a, b = a.astype(wide), b.astype(wide)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
        np.testing.assert_allclose(a, b, case.rtol, case.rtol * float(scale), err_msg=where)


def outcome(program: Callable[[Any], Any], lib: Any) -> Any:
    """Return the result of a program, or its error."""
    try:
        return program(lib)
    except Exception as error:  # noqa: BLE001 - its type is what is compared
        return error


def fail_alike(program: Callable[[Any], Any]) -> None:
    """Check that both libraries raise the same type of error."""
    found, wanted = outcome(program, OURS), outcome(program, THEIRS)
    assert isinstance(wanted, Exception), f"JAX does not fail: {wanted!r}"
    assert type(found) is type(wanted), f"{found!r}, but JAX: {wanted!r}"


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Return random numbers, the same in every run."""
    rng = np.random.RandomState(seed + 17 * len(shape) + sum(shape))
    out = rng.randn(*shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.randn(*shape)
    return np.asarray(out).astype(dtype)


def check_derivatives(fun: Callable[..., Any], *args: Any, rtol: float = 1e-6) -> None:
    """A function of namoo by finite differences: the derivative along a line, in both modes and to
    second order."""
    with namoo.enable_x64(True):
        wide = [np.complex128 if np.iscomplexobj(x) else np.float64 for x in args]
        arrays = [namoo.numpy.asarray(x, t) for x, t in zip(args, wide, strict=True)]
        _check_derivatives(fun, arrays, rtol)


def _check_derivatives(fun: Callable[..., Any], args: list[Any], rtol: float) -> None:
    jnp = namoo.numpy
    rng = np.random.RandomState(3)

    def like(x):
        out = rng.randn(*x.shape)
        return jnp.asarray(out + 1j * rng.randn(*x.shape) if x.dtype.kind == "c" else out, x.dtype)

    def flat(*args):
        return namoo.tree.leaves(fun(*args))

    direction, weights = [like(x) for x in args], [like(x) for x in flat(*args)]

    def total(args):
        outs = flat(*args)
        return sum(jnp.sum(jnp.real(jnp.conj(w) * x)) for w, x in zip(weights, outs, strict=True))

    def moved(step):
        return [x + step * d for x, d in zip(args, direction, strict=True)]

    def along(f, step=1e-6):
        plus, minus = f(moved(step)), f(moved(-step))
        return namoo.tree.map(lambda a, b: (a - b) / (2 * step), plus, minus)

    slope = along(total)
    gradient = namoo.grad(total)
    for value in (namoo.jvp(total, (args,), (direction,))[1], _inner(gradient(args), direction)):
        np.testing.assert_allclose(value, slope, rtol, rtol)
    change = namoo.jvp(gradient, (args,), (direction,))[1]
    for a, b in zip(change, along(gradient, 1e-4), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4 * (1 + float(np.abs(b).max())))


def _inner(xs, ys):
    """Return the inner product of a gradient `xs` and a direction `ys`."""
    jnp = namoo.numpy
    return sum(jnp.sum(jnp.real(x * y)) for x, y in zip(xs, ys, strict=True))
