"""Compiled functions of other libraries in programs: XLA's typed FFI, on the CPU.

A handler is a C or C++ function that is written with the headers in `include_dir()`. Native code
calls it without Python; the engine xla registers it with XLA. For functions with a plain C
signature there is `namoo.native_call`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from namoo._base.dtypes import canonicalize_dtype
from namoo._base.foreign import TYPES, Arguments, Target
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point
from namoo._base.source_context import make_entry_points as _guard
from namoo.control.callback import VMAP_METHODS
from namoo.control.foreign_call import bind_call
from namoo.core.avals import ShapedArray, aval_of

__all__ = [
    "ffi_call",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type_id",
]
__dir__ = __all__.copy


_targets: dict[str, Target] = {}
"""Handlers by name, as long as the process lives."""


def pycapsule(funcptr: Any) -> Any:
    """Wrap a function of a `ctypes` library, for `register_ffi_target`.

    Args:
        funcptr: the function.

    Returns:
        a `PyCapsule` that holds its address.

    Example:
        >>> pycapsule(ctypes.CDLL(None).abs)  # doctest: +ELLIPSIS
        <capsule object NULL at 0x...>
    """
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, destructor)
    return new(ctypes.cast(funcptr, ctypes.c_void_p), None, destructor(0))


def _address(capsule: Any) -> int:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return pointer(capsule, name(capsule))


def include_dir() -> str:
    """The folder of the headers of XLA's FFI, which come with `jaxlib`.

    Raises:
        ImportError: `jaxlib` is not installed.

    Example:
        >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
        True
    """
    found = importlib.util.find_spec("jaxlib")
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            "The headers of XLA's FFI come with jaxlib, which is not installed: pip install jaxlib."
        )
    return os.path.join(next(iter(found.submodule_search_locations)), "include")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Register a handler under a name, for `ffi_call`.

    Args:
        name: the name.
        fn: what `pycapsule` returns for the handler, or a dict whose entry "execute" is that.
        platform: "cpu"; handlers for other platforms are not called.
        api_version: 1, the typed FFI.
        kwargs: have no effect.

    Raises:
        ValueError: another API version, or a handler with more than one stage.
        TypeError: `fn` is not a capsule.

    Example:
        >>> register_ffi_target("nothing", pycapsule(ctypes.CDLL(None).abs))
    """
    if platform.lower() not in ("cpu", "host"):
        return
    if api_version != 1:
        raise ValueError(
            f"register_ffi_target: api_version must be 1, the typed FFI, got {api_version}. For "
            "a plain C function write namoo.native_call."
        )
    if isinstance(fn, Mapping):
        if set(fn) != {"execute"}:
            raise ValueError(
                "register_ffi_target: only the stage 'execute' of a handler is called, but the "
                f"handler {name!r} has the stages {sorted(fn)}."
            )
        fn = fn["execute"]
    if type(fn).__name__ != "PyCapsule":
        raise TypeError(
            f"register_ffi_target: the handler must be a capsule, got {short(fn)}. Write "
            "register_ffi_target(name, namoo.ffi.pycapsule(library.function))."
        )
    _targets[name] = Target(name, _address(fn), True, fn)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Allow XLA to split a handler's calls along leading axes; has no effect on native code.

    Args:
        name: the name of the target.
    """


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Not supported, as in JAX.

    Raises:
        ValueError: always.
    """
    raise ValueError("register_ffi_type_id is not supported after jaxlib version 381.")


def _result_types(results: Sequence[Any]) -> tuple[ShapedArray, ...]:
    avals = []
    for i, result in enumerate(results):
        if not (hasattr(result, "shape") and hasattr(result, "dtype")):
            raise ValueError(
                "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. "
                f"Got {result} at position {i}."
            )
        dtype = canonicalize_dtype(result.dtype)
        avals.append(ShapedArray(tuple(result.shape), dtype))
    return tuple(avals)


def _layout(shape: Sequence[int], layout: Any) -> tuple[int, ...]:
    """The order of axes in memory, the slowest first."""
    if layout is None:
        return tuple(range(len(shape)))
    return tuple(int(i) for i in getattr(layout, "major_to_minor", layout))


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered handler of XLA's typed FFI.

    It has no derivative: wrap it in `custom_vjp` to give it one.

    Args:
        target_name: the name of the handler.
        result_shape_dtypes: an object with `shape` and `dtype`, or a sequence of them.
        has_side_effect: whether the handler must run even if its results are not needed.
        vmap_method: how `vmap` calls it: 'sequential', 'sequential_unrolled', 'expand_dims',
          'broadcast_all' or 'legacy_vectorized'; as for `pure_callback`.
        input_layouts: for each operand the order of its axes in memory, the slowest first; None
          for the default.
        output_layouts: the same for the results.
        input_output_aliases: operands that the handler overwrites, with the results that they are.
        custom_call_api_version: 4, the typed FFI.
        legacy_backend_config: not supported.

    Returns:
        a function of arrays; keyword arguments are attributes of the call.

    Raises:
        ValueError: an option is wrong; or, when the call runs, no handler is registered under the
          name. The engine xla also finds handlers that come with `jaxlib`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> scale = ffi_call("a scale", namoo.ShapeDtypeStruct((3,), jnp.float32))
        >>> scale(jnp.ones(3), factor=2.0)
        Traceback (most recent call last):
        ValueError: No FFI target 'a scale' is registered for the CPU; see register_ffi_target.
        ...
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got: "
            f"{vmap_method}"
        )
    if custom_call_api_version < 4 or legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; "
            f"got {custom_call_api_version}. Only version 4, the typed FFI, is supported."
        )
    many = isinstance(result_shape_dtypes, Sequence)
    outs = _result_types(result_shape_dtypes if many else [result_shape_dtypes])
    out_layouts = output_layouts if many or output_layouts is None else [output_layouts]

    @entry_point
    def call(*args: Any, **attributes: Any) -> Any:
        target = _targets.get(target_name) or Target(target_name, 0, True, None)
        avals = [aval_of(x) for x in args]
        for name, given, wanted in (
            ("input", input_layouts, avals),
            ("output", out_layouts, outs),
        ):
            if given is not None and len(given) != len(wanted):
                what = "input arguments" if name == "input" else "outputs"
                raise ValueError(
                    f"The number of {what} ({len(wanted)}) must equal the number of {name} layouts "
                    f"({len(given)})."
                )
        orders = [*(input_layouts or [None] * len(avals)), *(out_layouts or [None] * len(outs))]
        layouts = tuple(_layout(a.shape, o) for a, o in zip((*avals, *outs), orders, strict=True))
        aliases = tuple((input_output_aliases or {}).items())
        for i, j in aliases:
            _check_alias(i, j, avals, outs, layouts)
        values = {k: _attribute(target_name, k, v) for k, v in attributes.items()}
        results = bind_call(
            target, Arguments(values), list(args), outs, layouts, aliases, vmap_method,
            has_side_effect,
        )  # fmt: skip
        return results if many else results[0]

    return call


def _check_alias(i: int, j: int, avals: Sequence[Any], outs: Sequence[Any], layouts: Any) -> None:
    if i >= len(avals):
        raise ValueError(
            f"input_output_aliases contains the mapping '{i}:{j}' with input index {i} outside the "
            f"range [0, {len(avals)})."
        )
    if j >= len(outs):
        raise ValueError(
            f"input_output_aliases contains the mapping '{i}:{j}' with output index {j} outside "
            f"the range [0, {len(outs)})."
        )
    a, b = avals[i], outs[j]
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        raise ValueError(
            f"input_output_aliases contains the mapping '{i}:{j}', but the referenced input has "
            f"type {a.str_short()} and the output {b.str_short()}."
        )
    if layouts[i] != layouts[len(avals) + j]:
        raise ValueError(
            f"input_output_aliases contains the mapping '{i}:{j}', but the layouts of the input "
            "and the output differ."
        )


def _attribute(target: str, name: str, value: Any) -> Any:
    """An attribute that can be passed: a number, an array, a text, or a dict of them."""
    if isinstance(value, (str, bool, int, float, np.generic)):
        return value
    if isinstance(value, Mapping):
        return {k: _attribute(target, k, v) for k, v in value.items()}
    if isinstance(value, (np.ndarray, tuple, list)):
        array = np.asarray(value)
        if array.dtype.name in TYPES:
            return array
    raise TypeError(
        f"ffi_call: the attribute {name} of {target!r} is {short(value)}, but attributes are "
        "numbers, texts, NumPy arrays or dicts of them; traced values are operands."
        + at_user_line()
    )


_guard(globals())
