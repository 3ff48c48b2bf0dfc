"""Compiled functions of other libraries: their addresses, and the call frames of XLA's typed FFI.

A handler of the typed FFI takes one pointer, to an `XLA_FFI_CallFrame` (`xla/ffi/api/c_api.h`). All
its fields are 64 bits wide, so a frame is a list of words. Words that are the same in every call
(types, dimensions, attributes, the table of functions that a handler may call) are addresses of
memory that the target keeps; the others are places in the frame itself, or buffers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo._base.caches import cached
from namoo._base.dtypes import KeyDType

TYPES = {
    "bool": 1, "int4": 21, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint4": 22, "uint8": 6,
    "uint16": 7, "uint32": 8, "uint64": 9, "float16": 10, "float32": 11, "float64": 12,
    "bfloat16": 16, "complex64": 15, "complex128": 18, "float8_e5m2": 19, "float8_e3m4": 29,
    "float8_e4m3": 28, "float8_e4m3fn": 20, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "float4_e2m1fn": 32, "float8_e8m0fnu": 33,
}  # fmt: skip
"""The numbers of dtypes in the typed FFI."""

WORD = 8
_EXECUTE = 3
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4
_VERSION = 0 | 3 << 32
_FUNCTIONS = 18
_CREATE, _MESSAGE, _DESTROY, _SCHEDULE, _THREADS = 0, 1, 2, 11, 12

Type = tuple[tuple[int, ...], np.dtype]


class Here(NamedTuple):
    """A pointer to a word of the frame itself."""

    word: int


class Buffer(NamedTuple):
    """A pointer to an operand, or, after them, to a result."""

    number: int


Word = int | Here | Buffer


class Number(NamedTuple):
    """An argument that is passed by value, by its dtype."""

    value: Any
    dtype: np.dtype


class Target:
    """A function of another library.

    Args:
        name: what messages call it.
        address: where it is.
        typed: whether it is a handler of XLA's typed FFI; else it takes pointers and numbers.
        keep: what must live as long as the function.
        status: whether a function that is not typed returns an `int`, which is 0 on success.
    """

    def __init__(self, name: str, address: int, typed: bool, keep: Any, status: bool = False):
        self.name, self.address, self.typed = name, address, typed
        self.keep, self.status = keep, status

    def __repr__(self) -> str:
        return self.name


class Arguments:
    """What a call passes beside arrays: attributes by name, or numbers in order.

    Attributes:
        named: attributes of the typed FFI.
        order: for a plain function its arguments: a `Number`, or None for the next operand.
    """

    def __init__(self, named: Mapping[str, Any], order: Sequence[Number | None] = ()):
        self.named, self.order = dict(named), tuple(order)
        self.memory: list[Any] = []
        """What the addresses in frames point to."""
        self.frames: dict[tuple[Any, ...], list[Word]] = {}

    def __repr__(self) -> str:
        shown = [f"{k}={v!r}" for k, v in self.named.items()]
        return f"({', '.join([*shown, *('_' if x is None else str(x.value) for x in self.order)])})"

    def frame(self, operands: Sequence[Type], results: Sequence[Type]) -> list[Word]:
        """The words of a call frame for buffers of these types."""
        key = (*operands, None, *results)
        if key not in self.frames:
            self.frames[key] = self._frame(operands, results)
        return self.frames[key]

    def _frame(self, operands: Sequence[Type], results: Sequence[Type]) -> list[Word]:
        count = len(operands) + len(results)
        first = 22 + count
        words: list[Word] = [21 * WORD, 0, _api(), 0, _EXECUTE]
        for start, types in ((0, operands), (len(operands), results)):
            kinds = self._kept(np.ones(max(len(types), 1), np.int32))
            words += [5 * WORD, 0, len(types), kinds, Here(22 + start)]
        words += [*self._attributes(self.named), 0]
        words += [Here(first + 6 * i) for i in range(count)]
        for i, (shape, dtype) in enumerate((*operands, *results)):
            dims = self._kept(np.array(shape or (0,), np.int64))
            words += [6 * WORD, 0, TYPES[_name(dtype)], Buffer(i), len(shape), dims]
        return words

    def _kept(self, array: np.ndarray) -> int:
        self.memory.append(array)
        return array.ctypes.data

    def _words(self, *words: int) -> int:
        return self._kept(np.array([w % 2**64 for w in words] or [0], np.uint64))

    def _text(self, text: str) -> int:
        """The address of an `XLA_FFI_ByteSpan`."""
        data = np.frombuffer(text.encode() + b"\0", np.uint8).copy()
        return self._words(self._kept(data), len(data) - 1)

    def _attributes(self, named: Mapping[str, Any]) -> list[int]:
        """The words of an `XLA_FFI_Attrs`, whose names are sorted."""
        names = sorted(named)
        pairs = [self._attribute(named[name]) for name in names]
        kinds = self._kept(np.array([kind for kind, _ in pairs] or [0], np.int32))
        texts = self._words(*map(self._text, names))
        return [6 * WORD, 0, len(names), kinds, texts, self._words(*(at for _, at in pairs))]

    def _attribute(self, value: Any) -> tuple[int, int]:
        """The kind and the address of an attribute."""
        if isinstance(value, str):
            return _STRING, self._text(value)
        if isinstance(value, Mapping):
            return _DICTIONARY, self._words(*self._attributes(value))
        array = np.ascontiguousarray(value)
        data = self._kept(array if array.size else np.zeros(1))
        kind = TYPES[_name(array.dtype)]
        if np.ndim(value):
            return _ARRAY, self._words(kind, array.size, data)
        return _SCALAR, self._words(kind, data)


def _name(dtype: Any) -> str:
    return dtype.name if not isinstance(dtype, KeyDType) and dtype.names is None else "uint32"


def call(
    target: Target,
    arguments: Arguments,
    operands: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
) -> None:
    """Call a function from Python.

    Raises:
        RuntimeError: the function returned an error.
    """
    arrays = [*operands, *results]
    pointers = [a.ctypes.data for a in arrays]
    if not target.typed:
        rest = iter(pointers)
        given = [
            ctypes.c_void_p(next(rest))
            if x is None
            else np.ctypeslib.as_ctypes_type(x.dtype)(x.value)
            for x in arguments.order
        ]
        given += [ctypes.c_void_p(p) for p in rest]
        kind = ctypes.c_int if target.status else None
        code = ctypes.CFUNCTYPE(kind)(target.address)(*given)
        if code:
            raise RuntimeError(failure(target, code))
        return
    types = [(a.shape, a.dtype) for a in arrays]
    words = arguments.frame(types[: len(operands)], types[len(operands) :])
    frame = (ctypes.c_uint64 * len(words))()
    base = ctypes.addressof(frame)
    for i, word in enumerate(words):
        if isinstance(word, Here):
            frame[i] = base + word.word * WORD
        else:
            frame[i] = (pointers[word.number] or 0) if isinstance(word, Buffer) else word % 2**64
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(target.address)(base)
    if error:
        raise RuntimeError(failure(target, error))


def failure(target: Target, code: int) -> str:
    """The message of an error that a function returned; it can be asked once."""
    if not target.typed:
        return f"The function {target.name} returned the status {code}."
    return f"The FFI target {target.name} failed: {_errors.pop(code).value.decode()}"


_errors: dict[int, Any] = {}
"""The messages of errors that handlers made and that were not yet raised, by address."""


def _api() -> int:
    """The address of the table of functions that handlers call."""
    return ctypes.addressof(_make_api()[0])


@cached("foreign functions: the table of XLA's functions", bound=1, keyed_by="nothing", kept=True)
def _make_api() -> tuple[Any, list[Any]]:
    """An `XLA_FFI_Api`, and the functions in it."""
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def field(args: int, number: int) -> int:
        return ctypes.c_uint64.from_address(args + number * WORD).value

    def fail(message: bytes) -> int:
        note = ctypes.create_string_buffer(message)
        _errors[ctypes.addressof(note)] = note
        return ctypes.addressof(note)

    def create(args: int) -> int:
        return fail(ctypes.string_at(field(args, 2)))

    def message(args: int) -> int:
        ctypes.c_uint64.from_address(args + 3 * WORD).value = field(args, 2)
        return 0

    def destroy(args: int) -> int:
        _errors.pop(field(args, 2), None)
        return 0

    def schedule(args: int) -> int:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(field(args, 3))(field(args, 4))
        return 0

    def threads(args: int) -> int:
        ctypes.c_int64.from_address(field(args, 3)).value = 1
        return 0

    def absent(args: int) -> int:
        return fail(b"it calls a function of XLA's runtime that exists on the engine xla alone")

    known: dict[int, Callable[[int], int]] = {
        _CREATE: create, _MESSAGE: message, _DESTROY: destroy, _SCHEDULE: schedule,
        _THREADS: threads,
    }  # fmt: skip
    functions = [kind(known.get(i, absent)) for i in range(_FUNCTIONS)]
    table = (ctypes.c_uint64 * (6 + _FUNCTIONS))()
    table[0], table[2], table[4] = len(table) * WORD, 3 * WORD, _VERSION
    for i, function in enumerate(functions):
        table[6 + i] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return table, functions
