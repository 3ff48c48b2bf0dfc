"""Calls of compiled functions of other libraries: `native_call`, and what `ffi_call` binds."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from namoo import errors, tree_util
from namoo._base.foreign import Arguments, Number, Target, call
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point
from namoo.control.callback import VMAP_METHODS, PureCallback, result_avals
from namoo.core.avals import aval_of


class ForeignCall(PureCallback):
    """A call of `target` with pointers to the operands and the results.

    `layouts` has for each operand and each result the order of its axes in memory, the slowest
    first, and `aliases` pairs of an operand and a result that are one buffer for the function.
    """

    name = "ffi_call"

    def evaluate(self, *values, target, arguments, result_avals, layouts, aliases, **rest):
        if not target.address:
            raise ValueError(
                f"No FFI target {target.name!r} is registered for the CPU; see register_ffi_target."
                + at_user_line()
            )
        orders = layouts[len(values) :]
        results = [np.empty(a.shape, getattr(a.dtype, "numpy", a.dtype)) for a in result_avals]
        sources = [_in_order(x, o) for x, o in zip(values, layouts, strict=False)]
        written = [_in_order(x, o) for x, o in zip(results, orders, strict=True)]
        for i, j in aliases:
            written[j][...] = sources[i]
            sources[i] = written[j]
        # The function sees the shapes of arrays, and not the order of their axes.
        seen = [x.reshape(v.shape) for x, v in zip(sources, values, strict=True)]
        shown = [x.reshape(r.shape) for x, r in zip(written, results, strict=True)]
        try:
            call(target, arguments, seen, shown)
        except RuntimeError as error:
            raise errors.JaxRuntimeError(f"{error}{at_user_line()}") from None
        return [_in_order(x, np.argsort(o)) for x, o in zip(written, orders, strict=True)]

    def jvp(self, primals, tangents, *, target, **params):
        raise ValueError(
            f"The FFI call to `{target.name}` cannot be differentiated. You can use "
            "`namoo.custom_jvp` or `namoo.custom_vjp` to add support." + at_user_line()
        )

    def batch(self, xs, dims, *, axis, layouts, vmap_method, **params):
        wide = vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized")
        if wide and not axis.devices:
            alike = vmap_method != "legacy_vectorized"
            grown = [alike or d is not None for d in dims] + [True] * (len(layouts) - len(dims))
            layouts = tuple(
                (0, *(i + 1 for i in order)) if g else order
                for order, g in zip(layouts, grown, strict=True)
            )
        return super().batch(
            xs, dims, axis=axis, layouts=layouts, vmap_method=vmap_method, **params
        )

    def native(self, emit, *operands, layouts, target, arguments, result_avals, aliases, **rest):
        if not target.address:
            raise emit.unsupported()
        moved = [_reorder(emit, x, order) for x, order in zip(operands, layouts, strict=False)]
        orders = layouts[len(operands) :]
        outs = emit.foreign(target, arguments, operands, moved, orders, aliases)
        return [_reorder(emit, x, np.argsort(o)) for x, o in zip(outs, orders, strict=True)]

    def stablehlo(self, hlo, *operands, target, arguments, layouts, aliases, **rest):
        if not target.typed:
            raise hlo.on_the_host()
        return hlo.foreign(target, arguments.named, operands, layouts, aliases, self.effectful)


class ForeignEffect(ForeignCall):
    """A call that has effects: it happens exactly as often as the program says."""

    name, effectful, exactly_once = "ffi_call_with_effects", True, True


foreign_call_p = ForeignCall()
foreign_effect_p = ForeignEffect()


def _in_order(x: np.ndarray, order: Any) -> np.ndarray:
    return np.asarray(x.transpose(order), order="C")


def _reorder(emit: Any, x: Any, order: Any) -> Any:
    order = [int(i) for i in order]
    if order == sorted(order):
        return x
    shape = tuple(x.shape[i] for i in order)
    back = np.argsort(order)
    key = ("transpose", tuple(order))
    return emit.reindex(x, lambda index: [index[i] for i in back], shape=shape, key=key)


def bind_call(
    target: Target,
    arguments: Arguments,
    operands: list[Any],
    outs: tuple[Any, ...],
    layouts: tuple[tuple[int, ...], ...],
    aliases: tuple[tuple[int, int], ...],
    vmap_method: str | None,
    effect: bool,
) -> list[Any]:
    """The results of a call; `outs` has their types."""
    prim = foreign_effect_p if effect else foreign_call_p
    return prim.bind(
        *operands,
        target=target,
        arguments=arguments,
        result_avals=outs,
        layouts=layouts,
        aliases=aliases,
        vmap_method=vmap_method,
    )


def row_major(shapes: Any) -> tuple[tuple[int, ...], ...]:
    """The default layouts of arrays."""
    return tuple(tuple(range(len(shape))) for shape in shapes)


@entry_point
def native_call(
    function: Any,
    result_shape_dtypes: Any,
    *operands: Any,
    vmap_method: str | None = None,
    has_side_effect: bool = False,
    status: bool = False,
) -> Any:
    """Call a compiled function with a plain C signature, from compiled code without Python.

        void function(const float* x, int64_t n, float* y)

    Arrays are passed as pointers to their elements, which are contiguous, the last axis fastest.
    Python numbers are passed by value, as `int64_t`, `double` or `bool`, and NumPy's numbers as
    their own type. Pointers to the results follow the operands. The function must not write to its
    operands. It has no derivative: wrap the call in `custom_vjp` to give it one. JAX does not have
    this function.

    Args:
        function: its address as an integer, a function of a `ctypes` library, or an object with an
            `address`, such as a `cfunc` of Numba. It must live as long as programs that call it.
        result_shape_dtypes: what it writes, as a tree of objects with `shape` and `dtype`.
        *operands: arrays and numbers.
        vmap_method: how `vmap` calls it, as for `pure_callback`.
        has_side_effect: whether it must run even if its results are not needed.
        status: whether the function returns an `int`, where other values than 0 are errors.

    Returns:
        the results, a tree like `result_shape_dtypes`.

    Raises:
        JaxRuntimeError: the function returned another status than 0.
        TypeError: `function` has no address, or an operand is neither an array nor a number.

    Example:
        >>> import ctypes
        >>> import namoo, namoo.numpy as jnp
        >>> libc = ctypes.CDLL(None)
        >>> shape = namoo.ShapeDtypeStruct((3,), jnp.float32)
        >>> def reverse_order(x, y):
        ...     ctypes.memmove(y, x, 12)
        >>> copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(reverse_order)
        >>> namoo.jit(lambda x: native_call(copy, shape, x) + 1)(jnp.zeros(3))
        Array([1., 1., 1.], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"native_call: vmap_method must be one of {', '.join(VMAP_METHODS)} or None, but got "
            f"{vmap_method!r}."
        )
    name, address = _address(function)
    target = Target(name, address, False, function, status)
    arrays: list[Any] = []
    order: list[Number | None] = []
    for i, x in enumerate(operands):
        if isinstance(x, (bool, int, float, np.number, np.bool_)):
            dtype = np.asarray(x).dtype if not isinstance(x, int) else np.dtype(type(x))
            order.append(Number(x, dtype))
            continue
        try:
            aval_of(x)
        except TypeError:
            raise TypeError(
                f"native_call: operand {i} must be an array or a number, got {short(x)}. Pass the "
                "leaves of a tree one by one." + at_user_line()
            ) from None
        arrays.append(x)
        order.append(None)
    outs, tree = result_avals("native_call", result_shape_dtypes)
    layouts = row_major([aval_of(x).shape for x in arrays] + [a.shape for a in outs])
    results = bind_call(
        target, Arguments({}, order), arrays, outs, layouts, (), vmap_method, has_side_effect
    )
    return tree_util.tree_unflatten(tree, results)


def _address(function: Any) -> tuple[str, int]:
    """The name and the address of a compiled function."""
    if type(function) is int:
        return hex(function), function
    name = getattr(function, "__name__", None) or type(function).__name__
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return name, address
    if isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return name, ctypes.cast(function, ctypes.c_void_p).value or 0
    raise TypeError(
        f"native_call: {short(function)} is no compiled function. Pass an address, a function of a "
        "ctypes library, or a Numba cfunc; Python functions are called with namoo.pure_callback."
        + at_user_line()
    )
