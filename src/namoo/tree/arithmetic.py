"""Arithmetic on whole trees of arrays, and a table of a tree's arrays.

These functions are public as `namoo.tree.*`. They are in their own module because they know about
arrays, and the rest of the package does not. Leaves that are not arrays or numbers (functions,
strings) are passed through and not counted.

"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import random, tree
from namoo._base import dtypes, units
from namoo._base.source_context import entry_point
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.core.trace import Tracer
from namoo.tree.paths import path_string

__all__ = [
    "add",
    "allclose",
    "cast",
    "count",
    "full_like",
    "global_norm",
    "nbytes",
    "ones_like",
    "random_like",
    "scale",
    "sub",
    "summary",
    "vdot",
    "zeros_like",
]

_ARRAYS = (Array, np.ndarray, np.generic, ShapeDtypeStruct, bool, int, float, complex)


def _is_number(x: Any) -> bool:
    return isinstance(x, _ARRAYS)


def _arrays(of: Any) -> list[Any]:
    return [x for x in tree.leaves(of) if _is_number(x)]


def _map(f: Callable[..., Any], of: Any, *rest: Any) -> Any:
    return tree.map(lambda x, *xs: f(x, *xs) if _is_number(x) else x, of, *rest)


def _size(x: Any) -> int:
    return math.prod(aval_of(x).shape)


def _bytes(x: Any) -> int:
    dtype = aval_of(x).dtype
    return _size(x) * getattr(dtype, "numpy", dtype).itemsize


def count(of: Any) -> int:
    """Count the elements of all arrays of a tree, such as the parameters of a model.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s.

    Returns:
        The sum of the sizes.

    Example:
        >>> import namoo.numpy as jnp
        >>> count({"W": jnp.ones((784, 128)), "b": jnp.zeros(128)})
        100480
    """
    return sum(map(_size, _arrays(of)))


def nbytes(of: Any) -> int:
    """Count the bytes of all arrays of a tree.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s.

    Returns:
        The sum of the sizes in bytes.

    Example:
        >>> import namoo.numpy as jnp
        >>> nbytes({"W": jnp.ones((2, 3)), "b": jnp.zeros(3, jnp.bfloat16)})
        30
    """
    return sum(map(_bytes, _arrays(of)))


def global_norm(of: Any, ord: Any = 2) -> Any:
    """Compute the norm of all elements of a tree taken together.

        ‖t‖ = √(Σ |x|²)

    Args:
        of: a tree of arrays.
        ord: 2, 1 for the sum of absolute values, or `inf` for the largest.

    Returns:
        A scalar.

    Example:
        >>> import namoo.numpy as jnp
        >>> global_norm({"a": jnp.array([3.0]), "b": jnp.array([4.0])})
        Array(5., dtype=float32)
    """
    parts = _arrays(of)
    if not parts:
        return jnp.asarray(0.0)
    if ord == 2:
        return jnp.sqrt(sum(jnp.sum(jnp.real(x * jnp.conj(x))) for x in map(jnp.asarray, parts)))
    if ord == 1:
        return sum(jnp.sum(jnp.abs(x)) for x in parts)
    if ord == math.inf:
        return jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in parts]))
    raise ValueError(f"tree.global_norm knows the orders 1, 2 and inf, not {ord!r}")


def zeros_like(of: Any, dtype: Any = None) -> Any:
    """Return a tree of zeros with the shapes of another tree.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s.
        dtype: of the new arrays; None keeps the dtype of each.

    Returns:
        A tree of the same structure.

    Example:
        >>> import namoo.numpy as jnp
        >>> zeros_like({"a": jnp.ones(2)})
        {'a': Array([0., 0.], dtype=float32)}
    """
    return full_like(of, 0, dtype)


def ones_like(of: Any, dtype: Any = None) -> Any:
    """Return a tree of ones with the shapes of another tree.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s.
        dtype: of the new arrays; None keeps the dtype of each.

    Returns:
        A tree of the same structure.

    Example:
        >>> import namoo.numpy as jnp
        >>> ones_like({"a": jnp.zeros(2)})
        {'a': Array([1., 1.], dtype=float32)}
    """
    return full_like(of, 1, dtype)


def full_like(of: Any, value: Any, dtype: Any = None) -> Any:
    """Return a tree filled with one value, with the shapes of another tree.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s.
        value: a number.
        dtype: of the new arrays; None keeps the dtype of each.

    Returns:
        A tree of the same structure.

    Example:
        >>> import namoo.numpy as jnp
        >>> full_like({"a": jnp.zeros(2)}, 7)
        {'a': Array([7., 7.], dtype=float32)}
    """
    return _map(lambda x: jnp.full(aval_of(x).shape, value, dtype or aval_of(x).dtype), of)


def random_like(
    key: Any, of: Any, sampler: Callable[..., Any] = random.normal, dtype: Any = None
) -> Any:
    """Return a tree of random numbers with the shapes of another tree; each leaf has its own key.

    Args:
        key: a key.
        of: a tree; its arrays may be `ShapeDtypeStruct`s.
        sampler: a function `(key, shape, dtype)`: `random.normal`, `random.uniform`, or an
            initialiser of `namoo.nn.initializers`.
        dtype: of the new arrays; None keeps the dtype of each.

    Returns:
        A tree of the same structure.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> noise = random_like(namoo.random.key(0), {"a": jnp.zeros(2), "b": jnp.zeros(2)})
        >>> bool((noise["a"] != noise["b"]).all())
        True
    """
    leaves, treedef = tree.flatten(of)
    keys = random.split(key, max(len(leaves), 1))
    return treedef.unflatten(
        [
            sampler(k, aval_of(x).shape, dtype or aval_of(x).dtype) if _is_number(x) else x
            for k, x in zip(keys, leaves, strict=False)
        ]
    )


@entry_point
def add(a: Any, b: Any, scale: Any = 1) -> Any:
    """Add two trees.

        a + scale · b

    Args:
        a: a tree of arrays.
        b: a tree of the same structure.
        scale: a factor for `b`.

    Returns:
        The sum, leaf by leaf.

    Raises:
        ValueError: if the structures differ.

    Example:
        >>> add({"w": 1.0, "b": 2.0}, {"w": 10.0, "b": 20.0}, scale=-0.5)
        {'b': -8.0, 'w': -4.0}
    """
    if isinstance(scale, (int, float)) and scale == 1:
        return _map(lambda x, y: x + y, a, b)
    return _map(lambda x, y: x + scale * y, a, b)


@entry_point
def sub(a: Any, b: Any) -> Any:
    """Subtract one tree from another.

    Args:
        a: a tree of arrays.
        b: a tree of the same structure.

    Returns:
        The difference, leaf by leaf.

    Raises:
        ValueError: if the structures differ.

    Example:
        >>> sub({"w": 1.0}, {"w": 10.0})
        {'w': -9.0}
    """
    return _map(lambda x, y: x - y, a, b)


def scale(factor: Any, of: Any) -> Any:
    """Multiply every array of a tree by a number.

    Args:
        factor: a number.
        of: a tree of arrays.

    Returns:
        The product, leaf by leaf.

    Example:
        >>> scale(2.0, {"w": 1.5})
        {'w': 3.0}
    """
    return _map(lambda x: factor * x, of)


@entry_point
def vdot(a: Any, b: Any) -> Any:
    """Compute the inner product of two trees.

        Σ conj(x)·y

    Args:
        a: a tree of arrays.
        b: a tree of the same structure.

    Returns:
        A scalar.

    Raises:
        ValueError: if the structures differ.

    Example:
        >>> import namoo.numpy as jnp
        >>> vdot({"a": jnp.array([1.0, 2.0])}, {"a": jnp.array([3.0, 4.0])})
        Array(11., dtype=float32)
    """
    return sum(_arrays(_map(jnp.vdot, a, b)), jnp.asarray(0.0))


def cast(of: Any, dtype: Any) -> Any:
    """Convert the floating-point arrays of a tree; integers, booleans and keys are left alone.

    Args:
        of: a tree.
        dtype: the dtype to convert to; None converts nothing.

    Returns:
        A tree of the same structure.

    Example:
        >>> import namoo.numpy as jnp
        >>> cast({"w": jnp.ones(1), "n": jnp.arange(1)}, jnp.bfloat16)
        {'n': Array([0], dtype=int32), 'w': Array([1], dtype=bfloat16)}
    """
    if dtype is None:
        return of

    def convert(x):
        is_array = isinstance(x, (Array, np.ndarray, np.generic))
        is_float = is_array and dtypes.issubdtype(x.dtype, np.floating)
        return jnp.asarray(x, dtype) if is_float else x

    return tree.map(convert, of)


@entry_point
def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Return whether the elements of two trees are equal within a tolerance.

        |a - b| ≤ atol + rtol·|b|, everywhere

    Args:
        a: a tree of arrays.
        b: a tree of the same structure.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is equal to NaN.

    Returns:
        A boolean scalar.

    Raises:
        ValueError: if the structures differ.

    Example:
        >>> bool(allclose({"w": 1.0}, {"w": 1.0 + 1e-7}))
        True
    """
    flags = _map(lambda x, y: jnp.allclose(x, y, rtol, atol, equal_nan), a, b)
    found = [x for x in tree.leaves(flags) if isinstance(x, Array)]
    return jnp.all(jnp.stack(found)) if found else jnp.asarray(True)


class Summary(str):
    """A table; its `repr` is its text, and a notebook shows it as a table.

    Attributes:
        rows: the cells, the heads of the columns first.
    """

    rows: list[tuple[str, ...]]
    of: Any = None
    """The tree, where the table has its arrays."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from namoo._base import html

        if self.of is not None:
            from namoo.module.notebook import tree_html

            return tree_html(self.of)
        head, *rows = [[html.escape(cell) for cell in row] for row in self.rows]
        # Depth in a model is written with blanks.
        rows = [[f"<code>{name}</code>", *rest] for name, *rest in rows]
        return html.fragment(html.table(head, rows, left=3))


def summary(of: Any, *example: Any, depth: int | None = None) -> Summary:
    """Return a table of a tree: one line for each array; or of a model: one for each layer.

    Args:
        of: a tree; its arrays may be `ShapeDtypeStruct`s or traced, which have no norm.
        *example: arguments of a model. The model is called with them once, and the table has a line
            for each call of a layer inside it: output, parameters, operations, and the time of the
            layer by itself under `jit`. Arguments may be `ShapeDtypeStruct`s; then nothing is run.
        depth: merge the arrays whose paths have the same first `depth` keys into one line; for a
            model, leave out layers that are nested more deeply.

    Returns:
        The text. Without an example: path, shape, dtype, size, bytes and norm.

    Example:
        >>> import namoo.numpy as jnp
        >>> summary([{"W": jnp.ones((3, 4)), "b": jnp.zeros(4)}, {"W": jnp.ones((4, 1))}])
        path  shape   dtype    size  bytes  norm
        0/W   (3, 4)  float32    12     48  3.464
        0/b   (4,)    float32     4     16  0
        1/W   (4, 1)  float32     4     16  2
        total         3 arrays   20     80  4
        >>> summary([{"W": jnp.ones((3, 4)), "b": jnp.zeros(4)}, {"W": jnp.ones((4, 1))}], depth=1)
        path  shape  dtype     size  bytes  norm
        0            2 arrays    16     64  3.464
        1     (4, 1) float32      4     16  2
        total        3 arrays    20     80  4
        >>> import namoo
        >>> model = namoo.nn.MLP(3, 1, 4, 1, key=namoo.random.key(0))
        >>> summary(model, jnp.ones(3))  # doctest: +ELLIPSIS
        layer       kind    output  parameters  FLOPs   time
        model       MLP     f32[1]          21     ...
          layers/0  Linear  f32[4]          16     ...
          layers/1  Linear  f32[1]           5     ...
    """
    if example:
        return _layers(of, example, depth)
    groups: dict[str, list[Any]] = {}
    for path, leaf in tree.leaves_with_path(of):
        if _is_number(leaf):
            groups.setdefault(path_string(path if depth is None else path[:depth]), []).append(leaf)
    rows = [_row(name, leaves) for name, leaves in groups.items()]
    rows.append(_row("total", [x for leaves in groups.values() for x in leaves], is_total=True))
    table = _table([("path", "shape", "dtype", "size", "bytes", "norm"), *rows], (3, 4))
    table.of = of
    return table


def _layers(model: Any, example: tuple[Any, ...], depth: int | None) -> Summary:
    """Return the table of a model's layers."""
    from namoo.module.layers import called_layers  # loads the rest of modules

    rows = [("layer", "kind", "output", "parameters", "FLOPs", "time")]
    for layer in called_layers(model, example):
        if depth is not None and layer.depth > depth:
            continue
        name = layer.path or ("model" if layer.depth == 0 else "-")
        rows.append(
            (
                "  " * layer.depth + name,
                layer.kind,
                layer.output,
                "(shared)" if layer.repeated else f"{layer.parameters:,}",
                "" if layer.flops is None else units.count(layer.flops) or "0",
                "" if layer.seconds is None else units.seconds(layer.seconds),
            )
        )
    return _table(rows, (3, 4, 5))


def _row(name: str, leaves: list[Any], is_total: bool = False) -> tuple[str, ...]:
    if len(leaves) == 1 and not is_total:
        shape, dtype = str(aval_of(leaves[0]).shape), str(aval_of(leaves[0]).dtype)
    else:
        shape, dtype = "", f"{len(leaves)} array{'s' * (len(leaves) != 1)}"
    sizes = f"{count(leaves):,}", f"{nbytes(leaves):,}"
    return name, shape, dtype, *sizes, _norm_text(leaves)


def _norm_text(leaves: list[Any]) -> str:
    """Return the norm, or an empty text where there is none: abstract values, tracers, keys."""
    total = 0.0
    for x in leaves:
        is_known = not isinstance(x, (ShapeDtypeStruct, Tracer))
        if not is_known or not dtypes.issubdtype(aval_of(x).dtype, np.number):
            return "" if is_known else "-"
        total += float(np.sum(np.abs(np.asarray(x).astype(np.complex128)) ** 2))
    return f"{math.sqrt(total):.4g}"


def _table(rows: list[tuple[str, ...]], right: tuple[int, ...]) -> Summary:
    """Return a table whose columns `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    found = Summary("\n".join(lines))
    found.rows = rows
    return found
