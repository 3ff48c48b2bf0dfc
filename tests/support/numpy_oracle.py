"""Evaluate expressions with JAX and namoo; compare values, dtypes, weak types and shapes.

An expression is a string over `jnp`, `np` and the arrays below.  JAX evaluates a whole table of
them in one traced function, which takes one compilation; namoo evaluates each of them eagerly and
under `jit`.  Where JAX raises, namoo must raise the same type of error.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy
import ml_dtypes
import numpy as np

import namoo
import namoo.numpy

_rng = np.random.RandomState(0)
_odd = np.array([[1.5, np.nan, -0.0, np.inf], [-np.inf, 0.0, 2.0, -3.5], [np.nan, 1.0, -1.0, 0.5]])

ARRAYS: dict[str, np.ndarray] = {
    "f": _rng.randn(3, 4).astype(np.float32),
    "g": _rng.randn(4).astype(np.float32),
    "p": _rng.uniform(0.1, 3.0, (3, 4)).astype(np.float32),
    "q": _rng.uniform(-0.9, 0.9, (3, 4)).astype(np.float32),
    "h": _rng.randn(3, 4).astype(np.float16),
    "b": _rng.randn(3, 4).astype(ml_dtypes.bfloat16),
    "i": _rng.randint(-5, 6, (3, 4)).astype(np.int32),
    "j": _rng.randint(1, 6, (4,)).astype(np.int32),
    "k": _rng.randint(-100, 100, (3, 4)).astype(np.int8),
    "u": _rng.randint(0, 200, (3, 4)).astype(np.uint8),
    "v": _rng.randint(0, 9, (3, 4)).astype(np.uint32),
    "t": _rng.rand(3, 4) > 0.5,
    "c": (_rng.randn(3, 4) + 1j * _rng.randn(3, 4)).astype(np.complex64),
    "n": _odd.astype(np.float32),
    "e": np.zeros((0, 4), np.float32),
    "s": np.asarray(0.75, np.float32),
    "z": _rng.randn(2, 3, 4).astype(np.float32),
    "m": _rng.randn(4, 4).astype(np.float32),
}

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


class Raised:
    """An error in place of a result."""

    def __init__(self, error: Exception):
        self.error = error
        self.name = type(error).__name__

    def __repr__(self) -> str:
        return f"{self.name}: {str(self.error)[:200]}"


def _environment(jnp: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    return {"jnp": jnp, "np": np, **arrays}


def _evaluate(expression: str, environment: dict[str, Any]) -> Any:
    try:
        return eval(expression, environment)
    except Exception as error:
        return Raised(error)


def _is_array(x: Any) -> bool:
    return isinstance(x, (jax.Array, namoo.Array))


def _together(package: Any, jnp: Any, expressions: Sequence[str], static: Sequence[str]) -> Any:
    """Compute all results in one traced function of the arrays."""
    kept: list[Any] = []

    def fun(arrays):
        fixed = {name: ARRAYS[name] for name in static}
        environment = _environment(jnp, {**arrays, **fixed})
        kept[:] = [_evaluate(text, environment) for text in expressions]
        leaves, tree = jax.tree.flatten(kept, is_leaf=lambda x: isinstance(x, Raised))
        kept[:] = [leaves, tree]
        return [x for x in leaves if _is_array(x)]

    arrays = {name: jnp.asarray(x) for name, x in ARRAYS.items() if name not in static}
    compiled = (jax if package is jax else namoo).jit(fun)
    outs = iter(compiled(arrays))
    leaves, tree = kept
    return jax.tree.unflatten(tree, [next(outs) if _is_array(x) else x for x in leaves])


@functools.cache
def traced_results(name: str, expressions: tuple[str, ...], static: tuple[str, ...]) -> dict:
    """Return what a package computes for a table of expressions, in one program."""
    package = jax if name == "jax" else namoo
    results = _together(package, package.numpy, expressions, static)
    return dict(zip(expressions, results, strict=True))


def eager_result(package: Any, expression: str) -> Any:
    """Return what a package computes for an expression, operation by operation."""
    return _evaluate(expression, _environment(package.numpy, _arrays(package.__name__)))


@functools.cache
def _arrays(package: str) -> dict[str, Any]:
    jnp = jax.numpy if package == "jax" else namoo.numpy
    return {name: jnp.asarray(x) for name, x in ARRAYS.items()}


def _is_such_error(found: Any, wanted: Any) -> bool:
    """Return whether an `except` clause for the wanted error would catch the found one."""
    if not (isinstance(found, Raised) and isinstance(wanted, Raised)):
        return False
    kind = getattr(builtins, wanted.name, None)
    return found.name == wanted.name or kind is not None and isinstance(found.error, kind)


def assert_same(found: Any, wanted: Any, where: str, weak: bool = True) -> None:
    """Check that two results agree in structure, shape, dtype, weak type and values, or errors."""
    if isinstance(wanted, Raised) or isinstance(found, Raised):
        assert _is_such_error(found, wanted), f"{where}: {found!r} instead of {wanted!r}"
    elif isinstance(wanted, (tuple, list)):
        assert isinstance(found, (tuple, list)), f"{where}: {type(found)}"
        assert type(found).__name__ == type(wanted).__name__, where
        assert len(found) == len(wanted), where
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b, where, weak)
    elif isinstance(wanted, jax.Array):
        assert isinstance(found, namoo.Array), f"{where}: {found!r} is no array"
        assert found.shape == wanted.shape, f"{where}: shape {found.shape}, not {wanted.shape}"
        assert str(found.dtype) == str(wanted.dtype), f"{where}: {found.dtype}, not {wanted.dtype}"
        if weak:
            text = f"{where}: weak type {found.weak_type}, not {wanted.weak_type}"
            assert found.weak_type == wanted.weak_type, text
        assert_close(np.asarray(found), np.asarray(wanted), where)
    elif isinstance(wanted, np.ndarray):
        assert_close(np.asarray(found), wanted, where)
    else:
        assert found == wanted or (found != found and wanted != wanted), where


def assert_close(found: np.ndarray, wanted: np.ndarray, where: str) -> None:
    """Check that values are equal up to the rounding of a few operations."""
    tolerance = TOLERANCE.get(str(wanted.dtype))
    if tolerance is None:
        np.testing.assert_array_equal(found, wanted, err_msg=where)
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        found.astype(wide), wanted.astype(wide), tolerance, tolerance, err_msg=where
    )


def check_traced(table: tuple[str, ...], expression: str, static: tuple[str, ...] = ()) -> None:
    """Compare an expression of a table, eagerly and under `jit`, with JAX under `jit`."""
    wanted = traced_results("jax", table, static)[expression]
    assert_same(traced_results("namoo", table, static)[expression], wanted, f"jit: {expression}")
    found = eager_result(namoo, expression)
    if isinstance(wanted, Raised) and not _is_such_error(found, wanted):
        # An expression that cannot be traced may work eagerly.
        wanted = eager_result(jax, expression)
    assert_same(found, wanted, f"eager: {expression}")


def check_eager(expression: str) -> None:
    """Compare an expression that needs concrete values with JAX."""
    assert_same(eager_result(namoo, expression), eager_result(jax, expression), expression)
