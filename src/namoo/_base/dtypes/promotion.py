"""Promotion: the common type of operands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from namoo._base.caches import cached, register
from namoo._base.config import config
from namoo._base.dtypes.canonical import (
    default_float_dtype,
    dtype_and_weak,
    dtype_of,
    narrow_explicit,
    python_scalar_dtype,
    scalar_type_of,
)
from namoo._base.dtypes.elements import (
    COMPLEXES,
    FLOATS,
    NARROW_FLOATS,
    NARROW_SIGNED,
    NARROW_UNSIGNED,
    NUMBERS,
    SIGNED,
    TO_32_BITS,
    UNSIGNED,
    WEAK_TYPES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    issubdtype,
    itemsize_bits,
    uint8,
    uint16,
    uint32,
    uint64,
)
from namoo._base.dtypes.keys import DType
from namoo._base.source_context import called_by_user


class TypePromotionError(ValueError):
    """Operands have types that are not promoted to a common one."""

    __module__ = "namoo.dtypes"


# A weak type is a node of the graph under Python's type; a strong one under its dtype.
Node: TypeAlias = "DType | type"


def _chains(mode: str, x64: bool) -> Iterable[tuple[Node, ...]]:
    """The graph of promotion as chains, each from a type up to those it may be promoted to."""
    if mode == "strict":
        yield int, float, complex
        yield from ((int, dtype) for dtype in [*SIGNED, *UNSIGNED])
        yield from ((float, dtype) for dtype in FLOATS)
        yield from ((complex, dtype) for dtype in COMPLEXES)
        return
    yield bool_, int
    yield int, uint8, uint16, uint32, uint64, float
    yield int, int8, int16, int32, int64, float
    yield uint8, int16
    yield uint16, int32
    # While 64-bit types are off, a pair of 32-bit types must not promote to one.
    yield uint32, int64 if x64 else int32
    yield float, bfloat16, float32, float64, complex128
    yield float, float16, float32, complex64, complex128
    yield float, complex, complex64
    # Narrow types promote with weak ones only: an accidental conversion would lose too much.
    yield from ((int, dtype) for dtype in [*NARROW_SIGNED, *NARROW_UNSIGNED])
    yield from ((float, dtype) for dtype in NARROW_FLOATS)


@cached("base.dtypes promotion lattice", bound=4, keyed_by="promotion mode, x64", kept=True)
def _upper_bounds(mode: str, x64: bool) -> dict[Node, frozenset[Node]]:
    """For each type, itself and all types above it."""
    above: dict[Node, set[Node]] = {node: {node} for node in [bool_, *NUMBERS, *WEAK_TYPES]}
    links = [pair for chain in _chains(mode, x64) for pair in zip(chain, chain[1:], strict=False)]
    grown = True
    while grown:
        before = sum(map(len, above.values()))
        for low, high in links:
            above[low] |= above[high]
        grown = sum(map(len, above.values())) != before
    return {node: frozenset(bounds) for node, bounds in above.items()}


@cached("base.dtypes least upper bounds", bound=4096, keyed_by="promotion mode, x64, types")
def _least_upper_bound(mode: str, x64: bool, nodes: frozenset[Node]) -> Node:
    above = _upper_bounds(mode, x64)
    for node in nodes:
        if node not in above:
            raise ValueError(
                f"values of dtype {node} are not promoted: they combine only with their own type"
            )
    common = frozenset.intersection(*(above[node] for node in nodes))
    for node in common:
        if common <= above[node]:
            return node
    raise TypePromotionError(_no_promotion(mode, nodes))


def _no_promotion(mode: str, nodes: frozenset[Node]) -> str:
    names = sorted(f"Python {n.__name__}" if isinstance(n, type) else str(n) for n in nodes)
    message = f"Input dtypes {' and '.join(names)} have no available implicit dtype promotion path"
    if mode == "strict":
        return (
            f"{message} when jax_numpy_dtype_promotion=strict: convert an operand, as in "
            "x.astype(y.dtype), or set the option to 'standard'"
        )
    if any(node in [*NARROW_SIGNED, *NARROW_UNSIGNED] for node in nodes):
        what, target = "1-bit, 2-bit and 4-bit integers", "int32"
    else:
        narrow = next(node for node in nodes if node in NARROW_FLOATS)
        what, target = f"{itemsize_bits(narrow)}-bit floats", "float32"
    return (
        f"{message}: {what} do not support implicit promotion; convert the operand, as in "
        f"x.astype('{target}')"
    )


def _node(dtype: Any, weak: bool) -> Node:
    if not weak or dtype == bool_:
        return dtype
    if dtype.kind == "c":
        return complex
    return int if issubdtype(dtype, np.integer) else float


_joins: dict[tuple[Any, ...], tuple[DType, bool]] = register(
    "base.dtypes joins",
    {},
    bound="combinations of dtypes",
    keyed_by="promotion mode, x64, dtypes and weak types",
)


def join(*pairs: tuple[Any, bool], name: str = "") -> tuple[Any, bool]:
    """The common type of operands given as pairs of dtype and weakness.

    Args:
        pairs: for each operand, its canonical dtype and whether it is weak.
        name: the public function that has these operands.

    Returns:
        The dtype, and whether the result is weak.

    Raises:
        TypePromotionError: there is no common type.

    Example:
        >>> join((int32, False), (float32, True)), join((float16, False), (float32, True))
        ((dtype('float32'), True), (dtype('float16'), False))
    """
    if len(pairs) == 2:
        (a, weak_a), (b, weak_b) = pairs
        if a is b and not (weak_a and weak_b):
            return a, False
    mode, x64 = config.numpy_dtype_promotion, config.enable_x64
    found = _joins.get((mode, x64, pairs))
    if found is not None:
        return found
    try:
        return _join(mode, x64, pairs)
    except TypePromotionError:
        if mode == "standard" or called_by_user(name):
            raise
    return _join("standard", x64, pairs)


def _join(mode: str, x64: bool, pairs: tuple[tuple[Any, bool], ...]) -> tuple[Any, bool]:
    dtypes = {dtype for dtype, _ in pairs}
    all_weak = all(weak for _, weak in pairs)
    if len(dtypes) == 1 and not all_weak or len(pairs) == 1:
        joined, weak = pairs[0][0], all_weak
    else:
        # Among weak operands only, the widths they happen to have decide, as strong ones' do.
        weak = all_weak and mode == "standard"
        node = _least_upper_bound(
            mode, x64, frozenset(_node(dtype, w and not weak) for dtype, w in pairs)
        )
        if isinstance(node, type):
            joined, weak = python_scalar_dtype(node), True
        else:
            # Only arrays made under `enable_x64` bring a 64-bit type here while it is off.
            joined = narrow_explicit(node, " by an array made with 64-bit types")
            if joined is not node:
                return joined, weak
    result = joined, weak and joined != bool_
    if x64 or joined not in TO_32_BITS:
        _joins[mode, x64, pairs] = result
    return result


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The common dtype of values or dtypes, and whether the result is weak.

    Example:
        >>> lattice_result_type(np.int8(1), 2), lattice_result_type(1, 2.0)
        ((dtype('int8'), False), (dtype('float32'), True))
    """
    return join(*map(dtype_and_weak, args))


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on values or dtypes would have.

    Args:
        args: arrays, scalars, dtypes; None stands for the default float.
        return_weak_type_flag: also say whether the result is weak.

    Returns:
        The dtype, or a pair of it and the flag.

    Raises:
        ValueError: no argument, or types without a common one.
        TypeError: an argument without dtype.

    Example:
        >>> result_type(np.arange(3), 1.5), result_type("int8", "uint8")
        (dtype('float32'), dtype('int16'))
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype")
    dtype, weak = lattice_result_type(*(default_float_dtype() if x is None else x for x in args))
    if weak:
        unsigned = np.dtype(np.uint64 if config.enable_x64 else np.uint32)
        dtype = unsigned if dtype.kind == "u" else python_scalar_dtype(scalar_type_of(dtype))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> DType:
    """The least type above two types; Python's `int`, `float` and `complex` count as weak.

    Example:
        >>> promote_types("int32", "float16"), promote_types("uint8", int)
        (dtype('float16'), dtype('uint8'))
    """
    # By identity, because NumPy's float64 equals Python's float.
    nodes = frozenset(x if any(x is weak for weak in WEAK_TYPES) else np.dtype(x) for x in (a, b))
    mode = config.numpy_dtype_promotion
    try:
        return np.dtype(_least_upper_bound(mode, config.enable_x64, nodes))
    except TypePromotionError:
        if mode == "standard" or called_by_user():
            raise
    return np.dtype(_least_upper_bound("standard", config.enable_x64, nodes))


def safe_to_cast(source: Any, target: Any) -> bool:
    """Whether promotion would convert the first type (or value) to the second.

    Example:
        >>> safe_to_cast("int16", "float32"), safe_to_cast("float32", "int16")
        (True, False)
    """
    output = dtype_of(target)
    return dtype_of(source) == output or result_type(source, output) == output
