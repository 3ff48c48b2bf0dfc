"""Operators and methods of arrays, concrete and traced.

They are written on everything above the core, so the core cannot define them; importing this module
attaches them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.deleted import Deleted
from namoo._base.late_methods import remove_placeholders
from namoo._base.lazy import later
from namoo._base.source_context import at_user_line, entry_point
from namoo._base.tracer_advice import (
    ARRAY_ADVICE,
    BOOL_ADVICE,
    INTEGER_ADVICE,
    PRINT_ADVICE,
    SCALAR_ADVICE,
)
from namoo.core.array import Array, EagerArray, PlacedArray, delete
from namoo.core.trace import Tracer
from namoo.eager import attach_shortcuts, without_shortcut
from namoo.engines.base import Device
from namoo.engines.registry import home
from namoo.numpy import arithmetic as ar
from namoo.numpy import contraction, creation, logic, number_parts, reductions, selection
from namoo.numpy.at import IndexUpdateHelper
from namoo.numpy.device_arguments import placed
from namoo.numpy.indexing import getitem
from namoo.numpy.promote import OPERANDS, to_array
from namoo.primitives import bits
from namoo.primitives import shape as lax

exchange = later("namoo.numpy.exchange")
manipulation = later("namoo.numpy.manipulation")
notebook = later("namoo.numpy.notebook")
printing = later("namoo.numpy.printing")
array_api = later("namoo.numpy.array_api")

Method = Callable[..., Any]


def _operator(symbol: str, fun: Method, swap: bool = False) -> Method:
    """The operator that calls `fun`; foreign types may provide their own operator."""
    fun = without_shortcut(fun)  # operators have their own shortcuts

    @entry_point
    def method(self: Array, other: Any, /) -> Any:
        if not isinstance(other, OPERANDS):
            convert = getattr(other, "__jax_array__", None)
            if convert is None:
                if type(other) in (list, tuple, dict, set):
                    # Not left to Python: it would repeat a list by an integer array.
                    # The name is that of JAX's class, so that a search finds its explanations.
                    pair = ("ArrayImpl", type(other).__name__)
                    left, right = reversed(pair) if swap else pair
                    raise TypeError(
                        f"unsupported operand type(s) for {symbol}: {left!r} and {right!r}; "
                        "convert it first: jnp.asarray(...)"
                    )
                return NotImplemented
            other = convert()
        return fun(other, self) if swap else fun(self, other)

    return method


_ARITHMETIC: list[tuple[str, str, Method]] = [
    ("add", "+", ar.add),
    ("sub", "-", ar.subtract),
    ("mul", "*", ar.multiply),
    ("truediv", "/", ar.true_divide),
    ("floordiv", "//", ar.floor_divide),
    ("mod", "%", ar.remainder),
    ("divmod", "divmod", ar.divmod),
    ("pow", "**", ar.power),
    ("matmul", "@", contraction.matmul),
    ("and", "&", logic.bitwise_and),
    ("or", "|", logic.bitwise_or),
    ("xor", "^", logic.bitwise_xor),
    ("lshift", "<<", logic.left_shift),
    ("rshift", ">>", logic.right_shift),
]
_COMPARISONS: list[tuple[str, str, Method]] = [
    ("eq", "==", logic.equal),
    ("ne", "!=", logic.not_equal),
    ("lt", "<", logic.less),
    ("le", "<=", logic.less_equal),
    ("gt", ">", logic.greater),
    ("ge", ">=", logic.greater_equal),
]


def _known(x: Tracer, error: type[errors.JAXTypeError], wanted: str, advice: str) -> Any:
    """The value of a traced array where its transformation knows it, or an error with advice."""
    try:
        return to_array(x.concrete(wanted))
    except errors.ConcretizationTypeError:
        # Raised again below, in terms of the conversion and with advice for it.
        pass
    return x.refuse(error, wanted, advice)


def _missing_attribute(self: Array, name: str) -> Any:
    from namoo._base.hints import ARRAY_ATTRIBUTES, attribute_message  # needed only for errors

    raise AttributeError(attribute_message(self, name, ARRAY_ATTRIBUTES), name=name, obj=self)


def _format(self: Tracer, spec: str) -> str:
    if not spec:
        return repr(self)
    wanted = f"a concrete value for the format {spec!r}"
    value = _known(self, errors.ConcretizationTypeError, wanted, PRINT_ADVICE)._value
    return format(value if value.ndim else value[()], spec)


def _scalar(x: Array, kind: type) -> np.ndarray:
    """The value of an array without axes, for conversion to a Python number."""
    if x.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars. Got an array of shape "
            f"{x.shape}: select an element first, as in x[0]." + at_user_line()
        )
    if isinstance(x, Tracer):
        wanted = f"a concrete value for {kind.__name__}()"
        advice = SCALAR_ADVICE.format(kind=kind.__name__)
        x = _known(x, errors.ConcretizationTypeError, wanted, advice)
    return x._value  # type: ignore[attr-defined]


def _bool(self: Array) -> bool:
    x = self
    if x.size != 1:
        what = "an empty array" if not x.size else "an array with more than one element"
        advice = "x.size > 0" if not x.size else "x.any() or x.all()"
        raise ValueError(f"The truth value of {what} is ambiguous. Use {advice}.")
    if isinstance(x, Tracer):
        wanted = "a concrete truth value"
        x = _known(x, errors.TracerBoolConversionError, wanted, BOOL_ADVICE)
    value = x._value  # type: ignore[attr-defined]
    if value.dtype.names is not None:
        raise TypeError("A random key has no truth value." + at_user_line())
    return bool(value)


def _int(self: Array) -> int:
    return int(_scalar(self, int))


def _float(self: Array) -> float:
    return float(_scalar(self, float))


def _complex(self: Array) -> complex:
    return complex(_scalar(self, complex))


def _index(self: Array) -> int:
    x = self
    if x.ndim or not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index. Got an array of type "
            f"{x.aval.str_short(short_dtypes=False)}." + at_user_line()
        )
    if isinstance(x, Tracer):
        wanted = "a concrete integer"
        x = _known(x, errors.TracerIntegerConversionError, wanted, INTEGER_ADVICE)
    return int(x._value)  # type: ignore[attr-defined]


def _array(self: Array, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    if isinstance(self, Tracer):
        self.refuse(errors.TracerArrayConversionError, "a NumPy array", ARRAY_ADVICE)
    value = self._value  # type: ignore[attr-defined]
    if dtypes.is_extended(self.dtype):
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
            f"random.key_data(x) for the words of an array of type {self.dtype}."
        )
    if copy or (dtype is not None and value.dtype != dtype):
        return np.array(value, dtype)
    return _read_only(value)


def _read_only(value: np.ndarray) -> np.ndarray:
    view = value.view()
    view.flags.writeable = False
    return view


def _buffer(self: EagerArray, flags: int, /) -> memoryview:
    # Only from 3.12 on does Python call this; before, the C++ part says the same.
    if dtypes.is_extended(self.dtype):
        raise BufferError("random keys have no memory to read; see random.key_data")
    return memoryview(_read_only(self._value))  # type: ignore[arg-type]


def _dlpack(
    self: EagerArray,
    *,
    stream: None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    return exchange.give(
        self._value, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def _dlpack_device(self: EagerArray) -> tuple[int, int]:
    return self._value.__dlpack_device__()


def _item(self: Array, *args: Any) -> Any:
    """The one element, or the one at an index, as a Python number."""
    x = self
    if isinstance(x, Tracer):
        advice = SCALAR_ADVICE.format(kind="float")
        x = to_array(x.concrete("a concrete value for item()", advice))
    if dtypes.is_extended(x.dtype):
        raise TypeError(f"No Python scalar type for elements of dtype {x.dtype}.")
    return x._value.item(*args)


def _tolist(self: Array) -> Any:
    """The elements as nested lists of Python numbers."""
    return _method_values(self, "tolist").tolist()


def _tobytes(self: Array, order: Any = "C") -> bytes:
    """The bytes of the elements."""
    return _method_values(self, "tobytes").tobytes(order)


def _method_values(x: Array, method: str) -> np.ndarray:
    if isinstance(x, Tracer):
        x = to_array(
            x.concrete(
                f"a concrete value for {method}()",
                f"The {method}() method was called on traced array: return the array, and call "
                "the method on the result, outside of the function.",
            )
        )
    return x._value  # type: ignore[attr-defined]


def _namespace(self: Array, /, *, api_version: str | None = None) -> Any:
    """The module of functions for arrays, by the Python array API standard."""
    import namoo.numpy

    if api_version not in (None, array_api.__array_api_version__):
        raise ValueError(
            f"api_version={api_version!r} is not available; "
            f"write {array_api.__array_api_version__!r}."
        )
    return namoo.numpy


def _iterate(self: Array) -> Iterator[Array]:
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    if isinstance(self, PlacedArray) and not (self._committed and self._sharding.num_devices == 1):
        # Like JAX, read an array on several devices once, not row by row.
        return (EagerArray(np.asarray(row), self._weak) for row in self._value)
    return iter(manipulation.unstack(self))


def _len(self: Array) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object: the array has no axes")
    return self.shape[0]


def _contains(self: Array, other: Any) -> Any:
    if other is None or isinstance(other, str):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(other)}.")
    if self.ndim != 1:
        raise ValueError(
            f"Array.__contains__: search array must be one-dimensional, got shape {self.shape}."
        )
    if np.ndim(other):
        raise ValueError(
            f"Array.__contains__: query value must be a scalar, got shape {np.shape(other)}."
        )
    return reductions.any(logic.equal(self, other))


SETITEM = """\
Arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, write
    x = x.at[idx].set(y)
and likewise .add(y), .multiply(y), .min(y), .max(y), .apply(f)."""


def _setitem(self: Array, index: Any, value: Any) -> None:
    raise TypeError(SETITEM + at_user_line())


def _delitem(self: Array, index: Any) -> None:
    raise TypeError("Arrays are immutable; use jnp.delete(x, index) to leave elements out.")


def _reshape(self: Array, *shape: Any, order: str = "C", out_sharding: Any = None) -> Array:
    """The same elements with another shape; one length may be -1."""
    wanted = shape[0] if len(shape) == 1 else shape
    return manipulation.reshape(self, wanted, order, out_sharding=out_sharding)


def _transpose(self: Array, *axes: Any) -> Array:
    """The array with its axes permuted; reversed by default."""
    if not axes or (len(axes) == 1 and axes[0] is None):
        return manipulation.transpose(self)
    return manipulation.transpose(self, axes[0] if len(axes) == 1 else axes)


def _astype(self: Array, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """The array with its elements converted to another type."""
    return creation.astype(self, dtype, copy=copy)


def _copy(self: Array) -> Array:
    """A copy of the array."""
    return creation.array(self, copy=True)


def _deepcopy(self: Array, memo: Any) -> Array:
    return creation.array(self, copy=True)


def _rounded(self: Array, ndigits: int | None = None) -> Array:
    out = number_parts.round(self, ndigits or 0)
    return _astype(out, int) if ndigits is None else out


def _view(self: Array, dtype: Any = None, type: None = None) -> Array:
    """The same bytes read as another type; the last axis grows or shrinks accordingly."""
    if type is not None:
        raise NotImplementedError(
            "`type` argument of array.view() is not supported. For another shape, write "
            "x.reshape(...)."
        )
    if dtype is None:
        return self
    wanted = dtypes.check_user_dtype_supported(dtype, "view")
    own_bits, new_bits = dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(wanted)
    if not self.ndim:
        if own_bits != new_bits:
            raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
        return lax.reshape(_view(lax.reshape(self, (1,)), wanted), ())
    if self.shape[-1] * own_bits % new_bits:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            f"bytes of the last axis of the array, got {self.aval.str_short()} as {wanted}."
        )
    return _reinterpret(self, wanted, own_bits, new_bits)


def _reinterpret(x: Array, wanted: Any, own_bits: int, new_bits: int) -> Array:
    if x.dtype == wanted:
        return x
    if x.dtype == np.bool_:
        return _view(_astype(x, np.uint8), wanted)
    if wanted == np.bool_:
        return _astype(_view(x, np.uint8), np.bool_)
    if x.dtype.kind == "c":
        parts = [
            lax.expand_dims(p, (x.ndim,)) for p in (number_parts.real(x), number_parts.imag(x))
        ]
        from namoo.primitives.slicing import concatenate

        pairs = lax.reshape(concatenate(parts, x.ndim), (*x.shape[:-1], 2 * x.shape[-1]))
        return _view(pairs, wanted)
    if wanted.kind == "c":
        pairs = _view(x, dtypes.finfo(wanted).dtype)
        from namoo.primitives.elementwise import complex as make_complex

        return make_complex(
            getitem(pairs, (..., slice(0, None, 2))), getitem(pairs, (..., slice(1, None, 2)))
        )
    if own_bits < new_bits:
        factor = new_bits // own_bits
        split = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // factor, factor))
        return bits.bitcast_convert_type(split, wanted)
    out = bits.bitcast_convert_type(x, wanted)
    if own_bits > new_bits:
        out = lax.reshape(out, (*out.shape[:-2], out.shape[-2] * out.shape[-1]))
    return out


def _byteswap(self: Array) -> Array:
    """The array with the bytes of each element in reverse order."""
    if self.dtype.kind == "c":
        from namoo.primitives.elementwise import complex as make_complex

        return make_complex(_byteswap(number_parts.real(self)), _byteswap(number_parts.imag(self)))
    if self.dtype.itemsize == 1:
        return _copy(self)
    octets = bits.bitcast_convert_type(self, np.dtype(np.uint8))
    return bits.bitcast_convert_type(lax.rev(octets, (self.ndim,)), self.dtype)


def _flat(self: Array) -> Any:
    raise NotImplementedError("Arrays have no .flat; use x.ravel(), or x.flatten().")


def _compress(
    self: Array,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Array:
    """The slices along an axis for which a condition holds."""
    import namoo.numpy as jnp

    return jnp.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def _later(name: str) -> Method:
    """The function of that name in `namoo.numpy`, as a method; it is looked up when called."""

    def method(self: Array, *args: Any, **options: Any) -> Any:
        import namoo.numpy as jnp

        return getattr(jnp, name)(self, *args, **options)

    method.__name__ = name
    method.__doc__ = f"As `namoo.numpy.{name}` of this array."
    return method


def _sharding(self: Array) -> Any:
    if isinstance(self, Tracer):
        raise AttributeError(
            "The 'sharding' attribute is not available on traced array with shape "
            f"{self.aval.str_short(short_dtypes=False)}: its placement is not known yet. "
            "namoo.typeof(x) has its type."
        )
    # Imported here because few programs need it.
    from namoo.devices.sharding.shardings import SingleDeviceSharding

    return SingleDeviceSharding(home())


def _memory_format(self: Array) -> Any:
    """The order of the elements in memory, and the sharding of the array."""
    # Imported here because few programs need it.
    from namoo.devices.sharding.memory_layout import Format, row_major

    return Format(row_major(self.ndim), self.sharding)


def _is_deleted(self: EagerArray) -> bool:
    """Whether the array was given up: deleted, or donated to a compiled function."""
    return type(self._value) is Deleted


def _block_until_ready(self: Array) -> Array:
    """The array itself: values are ready when a call returns."""
    return self


def _copy_to_host_async(self: Array) -> None:
    """Do nothing: arrays are on the host."""


def _devices(self: Array) -> set[Device]:
    """The devices of the array."""
    return {home()}


def _to_device(self: Array, device: Any, *, stream: None = None) -> Array:
    """The array on a device, or with a sharding."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return placed("array.to_device", self, device)


def _shards(self: EagerArray) -> list[Any]:
    """The parts of the array on devices: one, which is all of it."""
    from namoo.devices.placed_array import Shard

    return [Shard(self, home(), 0, 0)]


def _addressable_data(self: EagerArray, index: int) -> EagerArray:
    """The part of the array on the device of that number."""
    if operator.index(index) != 0:
        raise IndexError(f"the array is on one device, there is no part {index}")
    return self


def _key_words(self: Array) -> Array:
    """The words of random keys, by JAX's name: `random.key_data`, of deleted keys as well."""
    if not isinstance(self.dtype, dtypes.KeyDType):
        return _missing_attribute(self, "_base_array")
    if isinstance(self, EagerArray) and type(self._value) is Deleted:
        words = EagerArray(np.empty((*self.shape, *self.dtype.key_shape), np.uint32))
        delete(words)
        return words
    from namoo.primitives.random.prng import random_unwrap_p

    return random_unwrap_p.bind(self)


def _key_generator(self: Array) -> Any:
    """The generator of random keys, by JAX's name; `random.key_impl` returns its name."""
    if not isinstance(self.dtype, dtypes.KeyDType):
        return _missing_attribute(self, "_impl")
    return self.dtype._impl


_METHODS: dict[str, Any] = {
    "__bool__": _bool,
    "__int__": _int,
    "__float__": _float,
    "__complex__": _complex,
    "__index__": _index,
    "__array__": _array,
    "__array_namespace__": _namespace,
    "__iter__": _iterate,
    "__len__": _len,
    "__contains__": _contains,
    "__getitem__": getitem,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__getattr__": _missing_attribute,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__round__": _rounded,
    "__neg__": lambda self: ar.negative(self),
    "__pos__": ar.positive,
    "__abs__": ar.absolute,
    "__invert__": logic.bitwise_not,
    "all": reductions.all,
    "any": reductions.any,
    "astype": _astype,
    "block_until_ready": _block_until_ready,
    "byteswap": _byteswap,
    "clip": selection.clip,
    "compress": _compress,
    "conj": number_parts.conjugate,
    "conjugate": number_parts.conjugate,
    "copy": _copy,
    "copy_to_host_async": _copy_to_host_async,
    "devices": _devices,
    "dot": contraction.dot,
    "item": _item,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "reshape": _reshape,
    "round": number_parts.round,
    "std": reductions.std,
    "sum": reductions.sum,
    "to_device": _to_device,
    "tobytes": _tobytes,
    "tolist": _tolist,
    "trace": contraction.trace,
    "transpose": _transpose,
    "var": reductions.var,
    "view": _view,
    **{
        name: _later(name)
        for name in (
            "argmax",
            "argmin",
            "argpartition",
            "argsort",
            "choose",
            "cumprod",
            "cumsum",
            "diagonal",
            "nonzero",
            "ravel",
            "repeat",
            "searchsorted",
            "sort",
            "squeeze",
            "swapaxes",
            "take",
        )
    },
    "flatten": _later("ravel"),
    "T": property(lambda self: manipulation.transpose(self), doc="The array transposed."),
    "mT": property(lambda self: manipulation.matrix_transpose(self), doc="Matrices transposed."),
    "real": property(lambda self: number_parts.real(self), doc="The real part."),
    "imag": property(lambda self: number_parts.imag(self), doc="The imaginary part."),
    "at": property(IndexUpdateHelper, doc="Changed copies: x.at[index].set(y) and the like."),
    "flat": property(_flat),
    "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of one element."),
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all elements."),
    "device": property(lambda self: home(), doc="The device of the array."),
    "format": property(_memory_format, doc="The sharding, and the order of elements in memory."),
    "sharding": property(_sharding, doc="The sharding of the array."),
    "_base_array": property(_key_words),
    "_impl": property(_key_generator),
    "committed": property(lambda self: False, doc="Whether it was put on a chosen device."),
}

_EAGER_METHODS: dict[str, Any] = {
    "__repr__": lambda self: printing.array_text(self),
    "_repr_html_": lambda self: notebook.array_html(self),
    "__treescope_repr__": lambda self, path, render: render(np.asarray(self), path),
    "__str__": lambda self: str(self._value),
    "__format__": lambda self, spec: format(
        self._value if self._value.ndim else self._value[()], spec
    ),
    "__buffer__": _buffer,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "addressable_data": _addressable_data,
    "addressable_shards": property(_shards),
    "global_shards": property(_shards),
    "clone": _copy,
    "delete": delete,
    "is_deleted": _is_deleted,
    "is_ready": lambda self: True,
    "on_device_size_in_bytes": lambda self: self.size * self.dtype.itemsize,
    "platform": lambda self: "cpu",
    "unsafe_buffer_pointer": lambda self: self._value.ctypes.data,
    "is_fully_addressable": property(lambda self: True),
    "is_fully_replicated": property(lambda self: True),
}


_OPERATORS = {
    **{f"__{name}__": _operator(symbol, fun) for name, symbol, fun in _ARITHMETIC + _COMPARISONS},
    **{f"__r{name}__": _operator(symbol, fun, swap=True) for name, symbol, fun in _ARITHMETIC},
}


def attach() -> None:
    """Give `Array` and `EagerArray` all of the above."""
    methods = {**_OPERATORS, **_METHODS}
    attach_shortcuts(methods, "numpy._methods")
    traced = {"__format__": _format}
    for cls, attributes in ((Array, methods), (EagerArray, _EAGER_METHODS), (Tracer, traced)):
        for name, method in attributes.items():
            plain = isinstance(method, FunctionType) and not hasattr(method, "is_entry_point")
            setattr(cls, name, entry_point(method) if plain else method)
    remove_placeholders(Array)


attach()
