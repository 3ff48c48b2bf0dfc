"""Derivatives compared with finite differences, for tests of functions that have their own rules.

Each check goes along one random direction through all arguments (in reverse mode also along one
through all results), so that it takes a few calls of the function, however large the arguments are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.api.grad import jvp, linearize, vjp
from namoo.transforms.arguments import argument_paths, function_name, is_array

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__dir__ = __all__.copy


EPS = 1e-4
"""The step of finite differences, where none is given."""

_MODES = ("fwd", "rev", "lin")

# How far a derivative may be from a finite difference, for each element of an array; types of eight
# bits that are not here have a tenth.
_TOLERANCES = {
    "float64": 1e-5,
    "complex128": 1e-5,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float16": 1e-2,
    "bfloat16": 1e-1,
    "float8_e8m0fnu": 1.0,
    "float4_e2m1fn": 1.0,
}

Tolerance = float | Mapping[Any, float] | None


def _tolerance(given: Tolerance, dtype: Any) -> float:
    """What was asked for, or what suits the type."""
    dtype = dtypes.canonicalize_dtype(dtype)
    if isinstance(given, Mapping):
        given = {np.dtype(kind): value for kind, value in given.items()}.get(dtype)
    if given is not None:
        return given
    return _TOLERANCES.get(dtype.name, 1e-1) if dtypes.issubdtype(dtype, np.inexact) else 0.0


def _varies(x: Any) -> bool:
    """Whether a leaf is differentiated: integers, keys and leaves that are not arrays are not."""
    return is_array(x) and dtypes.issubdtype(dtypes.dtype_of(x), np.inexact)


def _described(x: Any, dtype: Any = None) -> str:
    """The dtype, its own if no other is given, and the shape of an array."""
    dtype = dtypes.dtype_of(x) if dtype is None else dtype
    dtype = dtypes.canonicalize_dtype(dtype, allow_extended=True)
    return f"{dtype}[{','.join(map(str, np.shape(x)))}]"


def _wide(x: Any) -> np.ndarray:
    """Convert a leaf that varies to 64 bits, so that sums and differences add no rounding error."""
    x = np.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _direction(rng: np.random.RandomState, like: Any) -> Any:
    """For each leaf of a tree a random tangent; float0 for one that is held still."""

    def one(x):
        if not _varies(x):
            return np.zeros(np.shape(x), dtypes.float0) if is_array(x) else x
        random: Any = rng.randn(*np.shape(x))
        dtype = dtypes.dtype_of(x)
        if dtypes.issubdtype(dtype, np.complexfloating):
            random = random + 1j * rng.randn(*np.shape(x))
        return random if dtypes.is_python_scalar(x) else np.asarray(random).astype(dtype)

    return tree_util.tree_map(one, like)


def _difference(f: Callable, args: Any, tangents: Any, eps: float) -> Any:
    """The derivative of `f` along `tangents`: [f(args + eps·tangents) - f(args - eps·tangents)]
    divided by 2·eps."""

    def at(step):
        def moved(x, tangent):
            if not _varies(x):
                return x
            if dtypes.is_python_scalar(x):
                return x + step * tangent
            value = (_wide(x) + step * _wide(tangent)).astype(dtypes.dtype_of(x))
            return value if isinstance(x, (np.ndarray, np.generic)) else jnp.asarray(value)

        return f(*tree_util.tree_map(moved, args, tangents))

    def quotient(above, below):
        if not _varies(above):
            return above
        above, below = _wide(above), _wide(below)
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, where nothing changes
            return np.where(above == below, 0, above - below) / (2 * eps)

    return tree_util.tree_map(quotient, at(eps), at(-eps))


def _product(xs: Iterable[Any], ys: Iterable[Any]) -> np.ndarray:
    """The real inner product of the leaves that vary, one number for each."""
    return np.array(
        [
            np.real(np.vdot(_wide(x), _wide(y))) if _varies(x) else 0.0
            for x, y in zip(xs, ys, strict=True)
        ]
    )


class _Leaf(NamedTuple):
    """What was found at a leaf, what should have been, and how far they may be apart."""

    path: str
    found: np.ndarray
    expected: np.ndarray
    atol: float
    rtol: float
    kind: str

    @property
    def excess(self) -> np.ndarray:
        """By how much elements differ, in multiples of what is allowed: above 1 is wrong."""
        with np.errstate(all="ignore"):
            gap = np.abs(self.found - self.expected)
            ratio = gap / (self.atol + self.rtol * np.abs(self.expected))
        same = (self.found == self.expected) | (np.isnan(self.found) & np.isnan(self.expected))
        return np.where(same, 0.0, np.where(np.isfinite(gap) & ~np.isnan(ratio), ratio, np.inf))


class _Check(NamedTuple):
    """How one derivative is compared, and what a message about it begins with."""

    title: str
    atol: Tolerance
    rtol: Tolerance
    eps: float

    def leaf(self, path: str, like: Any, found: Any, expected: Any) -> _Leaf:
        """Two arrays of the type of `like`, which may differ more the more elements they have."""
        dtype, size = dtypes.dtype_of(like), np.size(like)
        atol, rtol = _tolerance(self.atol, dtype) * size, _tolerance(self.rtol, dtype) * size
        # Booleans have no differences: they become numbers.
        found, expected = 1.0 * _wide(found), 1.0 * _wide(expected)
        return _Leaf(path, np.asarray(found), np.asarray(expected), atol, rtol, _described(like))

    def require_close(self, leaves: Sequence[_Leaf], what: str, by: tuple[str, str]) -> None:
        """Raise an error about the worst leaf, if it is wrong."""
        worst, most = None, 1.0
        for leaf in leaves:
            if leaf.found.size and (excess := leaf.excess.max()) > most:
                worst, most = leaf, excess
        if worst is None:
            return
        excess = worst.excess
        index = np.unravel_index(int(np.argmax(excess)), excess.shape)
        found, expected = worst.found[index], worst.expected[index]
        where = worst.path
        if index:
            where += f", element {[int(i) for i in index]}"
        width = max(map(len, by))
        lines = [
            f"{self.title}: {what}",
            f"  worst at {where} ({worst.kind}):",
            *(f"    {b:{width}}  {x:.9g}" for b, x in zip(by, (found, expected), strict=True)),
            f"  They differ by {abs(found - expected):.3g}; atol={worst.atol:.3g} and "
            f"rtol={worst.rtol:.3g} allow {worst.atol + worst.rtol * abs(expected):.3g}.",
        ]
        if excess.size > 1:
            lines[-1] += f" {np.sum(excess > 1)} of {excess.size} elements are wrong."
        raise AssertionError("\n".join(lines))

    def require_derivative(self, leaves: Sequence[_Leaf]) -> None:
        """Derivatives are what finite differences are."""
        by = "derivative", f"finite difference, eps={self.eps:g}"
        self.require_close(leaves, "the derivative is wrong.", by)

    def require_values(self, found: Any, expected: Any) -> None:
        """The value that comes with a derivative is that of the function."""
        leaves = []
        for path, x, y in _paired(found, expected):
            if is_array(x):
                self.require_kind(path, "value", x, y, dtypes.dtype_of(y))
                if not dtypes.is_extended(dtypes.dtype_of(x)):
                    leaves.append(self.leaf(path, x, x, y))
        by = "beside the derivative", "by the function"
        self.require_close(leaves, "the value beside the derivative is not the function's.", by)

    def require_kind(self, path: str, what: str, found: Any, like: Any, dtype: Any) -> None:
        """A leaf has a shape and a dtype."""
        wanted = _described(like, dtype)
        got = _described(found) if is_array(found) else repr(found)
        if got != wanted:
            raise AssertionError(
                f"{self.title}: the {what} at {path} is {got}; it should be {wanted}."
            )


def _paired(tree: Any, other: Any) -> list[tuple[str, Any, Any]]:
    """The leaves of two results of one structure, with their paths."""
    leaves = tree_util.tree_leaves_with_path(tree)
    others = tree_util.tree_structure(tree).flatten_up_to(other)
    return [
        ("result" + tree_util.keystr(path), x, y)
        for (path, x), y in zip(leaves, others, strict=True)
    ]


@entry_point
def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a forward derivative with finite differences, along one random direction.

    Args:
        f: the function.
        f_jvp: takes a tuple of arguments and one of tangents, and gives the value and its tangent,
            as `functools.partial(namoo.jvp, f)`.
        args: the arguments, a tuple; leaves that are no floats are held still.
        atol: how far results may be apart, a number or one for each dtype; a result is allowed this
            as many times as it has elements.
        rtol: the same, in proportion to the result.
        eps: the step of the finite difference.
        err_msg: what messages begin with.

    Raises:
        AssertionError: the derivative is wrong.

    Example:
        >>> import functools, namoo, namoo.numpy as jnp
        >>> check_jvp(jnp.sin, functools.partial(namoo.jvp, jnp.sin), (jnp.ones(3),))
    """
    check = _Check(err_msg or 'check_jvp, mode "fwd"', atol, rtol, eps)
    args = tuple(args)
    tangents = _direction(np.random.RandomState(0), args)
    value, tangent = f_jvp(args, tangents)
    check.require_values(value, f(*args))
    expected = _difference(f, args, tangents, eps)
    leaves = []
    for (path, x, t), (_, _, e) in zip(
        _paired(value, tangent), _paired(value, expected), strict=True
    ):
        if is_array(x):
            check.require_kind(path, "tangent", t, x, dtypes.tangent_dtype(dtypes.dtype_of(x)))
        if _varies(x):
            leaves.append(check.leaf(path, x, t, e))
    check.require_derivative(leaves)


@entry_point
def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a reverse derivative with finite differences, along random directions.

    For a tangent `t` and a cotangent `c`, the product of `t` with the derivative's cotangent must
    be that of `c` with the finite difference along `t`.

    Args:
        f: the function.
        f_vjp: takes the arguments, and gives the value and a function from cotangents of the value
            to a tuple of cotangents of the arguments, as `functools.partial(namoo.vjp, f)`.
        args: the arguments, a tuple; leaves that are no floats are held still.
        atol: how far the products may be apart, a number or one for each dtype.
        rtol: the same, in proportion to the product.
        eps: the step of the finite difference.
        err_msg: what messages begin with.

    Raises:
        AssertionError: the derivative is wrong.

    Example:
        >>> import functools, namoo, namoo.numpy as jnp
        >>> check_vjp(jnp.sin, functools.partial(namoo.vjp, jnp.sin), (jnp.ones(3),))
    """
    check = _Check(err_msg or 'check_vjp, mode "rev"', atol, rtol, eps)
    args = tuple(args)
    value, pullback = f_vjp(*args)
    check.require_values(value, f(*args))
    rng = np.random.RandomState(0)
    tangents, cotangents = _direction(rng, args), _direction(rng, value)
    primals, structure = tree_util.tree_flatten(args)
    paths = argument_paths(f, args, {})
    found = structure.flatten_up_to(pullback(_conjugate(cotangents)))
    for path, x, c in zip(paths, primals, found, strict=True):
        if _varies(x):
            check.require_kind(path, "cotangent", c, x, dtypes.dtype_of(x))
    along = tree_util.tree_leaves(tangents)
    found = _product(along, [np.conj(_wide(c)) if _varies(c) else 0 for c in found])

    def differences(tangents):
        change = _difference(f, args, tangents, eps)
        return _product(tree_util.tree_leaves(change), tree_util.tree_leaves(cotangents)).sum()

    # The products are real, and as rough as the roughest of what is multiplied.
    varying = [x for x in (*primals, *tree_util.tree_leaves(value)) if _varies(x)]
    kinds = [dtypes.finfo(dtypes.dtype_of(x)).dtype for x in varying]
    atol = max((_tolerance(atol, kind) for kind in kinds), default=0.0)
    rtol = max((_tolerance(rtol, kind) for kind in kinds), default=0.0)

    def product(path, like, found, tangents):
        expected = np.array(differences(tangents))
        return _Leaf(path, np.array(found), expected, atol, rtol, like)

    total = product("all arguments together", "a sum", found.sum(), tangents)
    if total.excess <= 1:
        return
    leaves = []
    for i, path in enumerate(paths):
        if _varies(primals[i]):
            alone = [t if i == j or not _varies(t) else 0 * t for j, t in enumerate(along)]
            kind = _described(primals[i])
            leaves.append(product(path, kind, found[i], structure.unflatten(alone)))
    check.require_derivative(leaves)
    check.require_derivative([total])  # each argument alone is within the tolerance


def _conjugate(tree: Any) -> Any:
    return tree_util.tree_map(lambda x: np.conj(x) if np.iscomplexobj(x) else x, tree)


def _held_still(f: Callable, args: tuple) -> tuple[Callable, tuple]:
    """A function of those leaves that vary, with those results that do, and its arguments."""
    leaves, structure = tree_util.tree_flatten(args)
    varying = [_varies(x) for x in leaves]
    if not any(varying):
        kinds = ", ".join(_described(x) if is_array(x) else repr(x) for x in leaves[:5])
        raise TypeError(
            "check_grads: no argument has a derivative: args must hold arrays or numbers of a "
            f"floating or complex type, got {kinds or 'nothing'}."
        )

    @functools.wraps(f)
    def of_varying(*moved):
        given = iter(tree_util.tree_leaves(moved))
        whole = [next(given) if v else x for x, v in zip(leaves, varying, strict=True)]
        results = f(*structure.unflatten(whole))
        kept = tree_util.tree_map(lambda y: y if _varies(y) else None, results)
        if not tree_util.tree_leaves(kept):
            raise TypeError(
                f"check_grads: no result of {function_name(f)} has a derivative: it must return "
                "arrays of a floating or complex type."
            )
        return kept

    chosen = [x if v else None for x, v in zip(leaves, varying, strict=True)]
    return of_varying, structure.unflatten(chosen)


def _chosen_modes(modes: str | Iterable[str]) -> list[str]:
    """The modes in a name, in several names, or in several written as one."""
    modes = modes if isinstance(modes, str) else [*modes]
    chosen = [mode for mode in _MODES if mode in modes]
    if not chosen or (not isinstance(modes, str) and set(modes) - set(chosen)):
        raise ValueError(
            f"check_grads: modes must be some of {', '.join(map(repr, _MODES))}, got {modes!r}."
        )
    return chosen


@entry_point
def check_grads(
    f: Callable,
    args: Iterable[Any],
    order: int,
    modes: str | Iterable[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of a function with finite differences, along random directions.

    Args:
        f: the function.
        args: the arguments, a tuple of trees; leaves that are no floats are held still, and results
            that are none are not looked at.
        order: derivatives are checked up to this order, each mode of each mode.
        modes: of 'fwd' (`jvp`), 'rev' (`vjp`) and 'lin' (`linearize`), one or several.
        atol: how far numbers may be apart, a number or one for each dtype; what suits the dtypes
            where there is none.
        rtol: the same, in proportion to the number.
        eps: the step of finite differences; `EPS` if None.

    Raises:
        AssertionError: a derivative is wrong; it names the mode, the order, the worst leaf and its
            two numbers.
        TypeError: no argument or no result has a derivative.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> check_grads(lambda p, n: p["w"] ** n, ({"w": jnp.ones(3)}, 2), order=2)
        >>> @namoo.custom_jvp
        ... def square(x):
        ...     return x * x
        >>> square.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * primals[0] * tangents[0]))
        <function ...>
        >>> check_grads(square, (1.0,), order=1, modes="rev")
        Traceback (most recent call last):
        ...
        AssertionError: check_grads of square, mode "rev", order 1: the derivative is wrong.
          worst at x (float32[]):
        ...
    """
    try:
        args = tuple(args)
    except TypeError:
        raise TypeError(f"check_grads: args must be a tuple of arguments, got {args!r}.") from None
    chosen, step, name = _chosen_modes(modes), eps or EPS, function_name(f)

    def check(f: Callable, args: tuple, before: tuple[str, ...]) -> None:
        for mode in chosen:
            chain = (mode, *before)
            title = f'check_grads of {name}, mode "{mode}", order {len(chain)}'
            if before:
                title += f" ({' of '.join(chain)})"
            derive, compare, deeper = _WAYS[mode]
            compare(f, functools.partial(derive, f), args, atol, rtol, step, title)
            if len(chain) < order:
                check(*deeper(f, args), chain)

    check(*_held_still(f, args), ())


def _linearized(f: Callable, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    value, linear = linearize(f, *primals)
    return value, linear(*tangents)


def _pushed(derive: Callable, f: Callable, args: tuple) -> tuple[Callable, tuple]:
    """The forward derivative as a function, and arguments for it."""

    def forward(primals, tangents):
        return derive(f, primals, tangents)

    return forward, (args, args)


def _pulled(f: Callable, args: tuple) -> tuple[Callable, tuple]:
    """The reverse derivative as a function, and arguments for it."""

    @functools.wraps(f)
    def backward(*args):
        value, pullback = vjp(f, *args)
        return pullback(value)

    return backward, args


# How each mode differentiates, how that is checked, and what is differentiated again.
_WAYS: dict[str, tuple[Callable, Callable, Callable[..., tuple[Callable, tuple]]]] = {
    "fwd": (jvp, check_jvp, functools.partial(_pushed, jvp)),
    "rev": (vjp, check_vjp, _pulled),
    "lin": (_linearized, check_jvp, functools.partial(_pushed, _linearized)),
}
