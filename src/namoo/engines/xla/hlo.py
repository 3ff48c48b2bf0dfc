"""StableHLO as text: values, types, and the emitter that rules of primitives use.

A rule `stablehlo(hlo, *operands, **params)` takes an `Emitter` and values, and returns values. All
text is in MLIR's generic syntax, which one function can write:

    %2 = "stablehlo.add"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.analysis.checks import in_loops
from namoo.core.avals import ShapedArray
from namoo.engines.xla.collectives import Collectives

_ELEMENTS = {
    "bool": "i1",
    "float0": "i1",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
for _bits in (2, 4, 8, 16, 32, 64):
    _ELEMENTS[f"int{_bits}"] = f"i{_bits}"
    _ELEMENTS[f"uint{_bits}"] = f"ui{_bits}"
for _bits in (16, 32, 64):
    _ELEMENTS[f"float{_bits}"] = f"f{_bits}"
for _name in (
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
):
    _ELEMENTS[_name] = "f" + _name[5:].replace("_", "").upper()


def physical(dtype: Any) -> np.dtype:
    """Return the dtype on the device; a random key of 64 or 128 bits is one number."""
    numpy = np.dtype(getattr(dtype, "numpy", dtype))
    if numpy == dtypes.float0:
        return np.dtype(bool)
    if numpy.names is not None:
        return np.dtype({4: np.uint32, 8: np.uint64, 16: np.complex128}[numpy.itemsize])
    return numpy


def element(dtype: np.dtype) -> str:
    """Return the MLIR name of an element type."""
    if dtype.name not in _ELEMENTS:
        raise TypeError(f"XLA has no elements of type {dtype}: convert them to another type first.")
    return _ELEMENTS[dtype.name]


def tensor(shape: Sequence[int], dtype: np.dtype | None) -> str:
    """Return the MLIR name of an array type; without a dtype, that of tokens.

    Example:
        >>> tensor((2, 3), np.dtype("float32"))
        'tensor<2x3xf32>'
    """
    if dtype is None:
        return "!stablehlo.token"
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element(dtype)}>"


def ints(values: Sequence[int]) -> str:
    """Write a list of integers as an attribute."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def flags(values: Sequence[bool]) -> str:
    """Write a list of booleans as an attribute."""
    return f"array<i1: {', '.join('true' if v else 'false' for v in values)}>"


def matrix(rows: Sequence[Sequence[int]]) -> str:
    """Write rows of integers as an attribute; an empty list counts as pairs."""
    array = np.asarray(rows, np.int64).reshape(len(rows), -1 if rows else 2)
    shape = "x".join(map(str, array.shape)) + "xi64"
    return f"dense<{array.tolist() if array.size else ''}> : tensor<{shape}>"


def attribute(value: Any) -> str:
    """Write a Python value as an attribute; a string is one already."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{value} : i64"
    values = list(value)
    if values and isinstance(values[0], (bool, np.bool_)):
        return flags(values)
    return ints(values)


def dense(value: np.ndarray) -> str:
    """Write the values of a constant exactly: floats by their bits."""
    if value.size == 0:
        return f"dense<> : {tensor(value.shape, value.dtype)}"
    first = value.reshape(-1)[:1]
    one = value.size == 1 or bool((_bits_of(value) == _bits_of(first)).all())
    if one:
        return f"dense<{number(first[0])}> : {tensor(value.shape, value.dtype)}"
    return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex()}"> : ' + tensor(
        value.shape, value.dtype
    )


def _bits_of(value: np.ndarray) -> np.ndarray:
    """Return the bytes of the elements, so that -0.0 differs from 0.0 and NaN equals itself."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(value.size, value.dtype.itemsize)


def number(x: Any) -> str:
    """Write a number exactly: floats by their bits."""
    dtype = x.dtype
    if dtype.kind == "b":
        return "true" if x else "false"
    if dtype.kind == "c":
        return f"({number(x.real)}, {number(x.imag)})"
    if dtypes.issubdtype(dtype, np.integer):
        return str(int(x))
    return f"0x{int.from_bytes(x.tobytes(), 'little'):0{2 * dtype.itemsize}X}"


class Value:
    """A value of the module: its name, and its type."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: Any):
        self.name = name
        self.shape = shape
        self.dtype = dtype

    @property
    def type(self) -> str:
        return tensor(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


Kind = tuple[tuple[int, ...], Any]
"""Shape and dtype of a result."""

TOKEN: Kind = ((), None)
"""The type of tokens, which order effects: each takes the token of the previous one."""


def kind_of(x: Any) -> Kind:
    """Return the shape and the device dtype of a value or an abstract value."""
    return tuple(x.shape), None if x.dtype is None else physical(x.dtype)


class Writer:
    """The lines of one function, and its names."""

    def __init__(self):
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%{self.count - 1}"

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Kind],
        attributes: dict[str, str] | None = None,
        regions: Sequence[str] = (),
        notes: dict[str, str] | None = None,
    ) -> list[Value]:
        """Write one operation; `notes` are discardable attributes."""
        values = []
        left = ""
        if len(results) == 1:
            values = [Value(self.name(), *results[0])]
            left = f"{values[0].name} = "
        elif results:
            base = self.name()
            values = [Value(f"{base}#{i}", *kind) for i, kind in enumerate(results)]
            left = f"{base}:{len(results)} = "
        text = f'{left}"{name}"({", ".join(x.name for x in operands)})'
        if attributes:
            text += f" <{{{', '.join(f'{k} = {v}' for k, v in attributes.items())}}}>"
        if regions:
            text += f" ({', '.join(regions)})"
        if notes:
            text += f" {{{', '.join(f'{k} = {v}' for k, v in notes.items())}}}"
        types = ", ".join(x.type for x in operands)
        self.lines.append(f"{text} : ({types}) -> ({', '.join(tensor(*k) for k in results)})")
        return values

    @contextmanager
    def region(self, kinds: Sequence[Kind]) -> Iterator[tuple[list[Value], list[str]]]:
        """Write a region with arguments; its text becomes the only item of the list."""
        outer, self.lines = self.lines, []
        arguments = [Value(self.name(), *kind) for kind in kinds]
        text: list[str] = []
        try:
            yield arguments, text
        finally:
            inner, self.lines = self.lines, outer
        head = ", ".join(map(repr, arguments))
        head = f"^bb0({head}):\n" if head else ""
        text.append("{\n" + head + "\n".join(inner) + "\n}")


class OnTheHost(Exception):
    """The platform lacks an operation: NumPy computes the equation on the host."""


_LAPACK = {"f": "s", "d": "d", "F": "c", "D": "z"}


class Emitter(Collectives):
    """Emits operations for the rules of primitives.

    `avals` are the types of the results of the current equation, `inputs` those of its operands.
    """

    def __init__(self, module: Any, writer: Writer):
        self.module = module
        self.writer = writer
        self.avals: list[ShapedArray] = []
        self.inputs: list[ShapedArray] = []
        self.token: Value | None = None
        """The token of the last effect."""
        self.iterations: list[tuple[str, Value]] = []
        """The loops around, and the numbers of their iterations."""

    ints = staticmethod(ints)
    flags = staticmethod(flags)
    matrix = staticmethod(matrix)

    def on_the_host(self) -> OnTheHost:
        """The exception that a rule raises to have NumPy compute the equation."""
        return OnTheHost()

    @property
    def platform(self) -> str:
        """The platform of the program: "cpu", "cuda", …"""
        return self.module.platform

    def op(
        self,
        name: str,
        *operands: Value,
        result: Any = None,
        attributes: dict[str, str] | None = None,
        regions: Sequence[str] = (),
        **more: Any,
    ) -> Any:
        """Emit an operation of StableHLO, or of another dialect if `name` has a dot.

        Args:
            more: attributes that are integers, booleans or lists of them.
            result: shape and dtype (or anything that has them) of the result, or a list of them; by
                default of the equation's own results.

        Returns:
            the value, or a list of values where `result` is a list or the equation has several.
        """
        full = name if "." in name else f"stablehlo.{name}"
        wanted = self.avals if result is None else result
        many = isinstance(wanted, list) and not (result is None and len(wanted) == 1)
        kinds = [_kind(w) for w in wanted] if isinstance(wanted, list) else [_kind(wanted)]
        if more:
            attributes = {**(attributes or {}), **{k: attribute(v) for k, v in more.items()}}
        values = self.writer.op(full, operands, kinds, attributes, regions)
        return values if many else values[0]

    def elementwise(self, name: str, *operands: Value, **options: Any) -> Value:
        """Emit an operation on equal shapes; scalars are broadcast."""
        xs = self.alike(*operands)
        if not name.startswith("chlo.") or xs[0].dtype.itemsize >= 4:
            return self.op(name, *xs, **options)
        # Formulas of several steps, which must be rounded once.
        xs = [self.widen(x) for x in xs]
        return self.convert(self.op(name, *xs, result=xs[0], **options), self.avals[0].dtype)

    def record(self, name: str, **fields: Any) -> str:
        """Write an attribute of StableHLO whose fields are integers or lists of them."""
        texts = []
        for key, value in fields.items():
            if isinstance(value, int):
                texts.append(f"{key} = {value}")
            elif len(value):
                texts.append(f"{key} = {[int(i) for i in value]}")
        return f"#stablehlo.{name}<{', '.join(texts)}>"

    def alike(self, *operands: Value) -> list[Value]:
        """Broadcast operands to the shape of the equation's result."""
        return [self.broadcast(x, self.avals[0].shape) for x in operands]

    def constant(self, value: Any, dtype: Any = None, shape: Sequence[int] = ()) -> Value:
        """Emit a constant; a number is broadcast to `shape`."""
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(physical(dtype))
        constant = self._constant(array)
        return self.broadcast(constant, shape) if array.ndim == 0 else constant

    def _constant(self, array: np.ndarray) -> Value:
        kind = array.shape, physical(array.dtype)
        if array.dtype.names is not None or array.dtype == dtypes.float0:
            array = np.ascontiguousarray(array).view(kind[1]).reshape(array.shape)
        first = array.reshape(-1)[:1]
        splat = array.size > 1 and bool((_bits_of(array) == _bits_of(first)).all())
        packed = array.dtype == bool or array.dtype.name in ("int2", "uint2", "int4", "uint4")
        if packed and array.size > 1 and not splat:
            # Sub-byte elements have a packed form: write bytes, and convert.
            wide = self._constant(array.astype(np.int8))
            return self.convert(wide, array.dtype)
        if splat:
            # A splat is shorter, and is parsed faster.
            return self.broadcast(self._constant(first.reshape(())), array.shape)
        return self.op("constant", result=kind, attributes={"value": dense(array)})

    def broadcast(self, x: Value, shape: Sequence[int], dims: Sequence[int] | None = None) -> Value:
        """Broadcast `x` to a shape; its axes become `dims` (by default the last ones)."""
        shape = tuple(shape)
        dims = range(len(shape) - x.ndim, len(shape)) if dims is None else dims
        if x.shape == shape and list(dims) == sorted(dims):
            return x
        return self.op("broadcast_in_dim", x, result=(shape, x.dtype), broadcast_dimensions=dims)

    def convert(self, x: Value, dtype: Any) -> Value:
        """Convert `x` to another element type."""
        dtype = physical(dtype)
        if x.dtype == dtype:
            return x
        if x.dtype == dtypes.float4_e2m1fn and dtypes.issubdtype(dtype, np.integer):
            x = self.convert(x, np.float32)  # XLA takes 6, the largest value, for infinity
        return self.op("convert", x, result=(x.shape, dtype))

    def widen(self, x: Value) -> Value:
        """Convert `x` to an accumulation type: narrow floats to float32, integers to int32."""
        if x.dtype.itemsize >= 4:
            return x
        return self.convert(x, np.int32 if dtypes.issubdtype(x.dtype, np.integer) else np.float32)

    def bitcast(self, x: Value, dtype: Any, shape: Sequence[int]) -> Value:
        """Bitcast `x` to another element type."""
        return self.op("bitcast_convert", x, result=(tuple(shape), physical(dtype)))

    def words(self, keys: Value) -> list[Value]:
        """Return the 32-bit words of random keys, each as an array of their shape."""
        if keys.dtype == np.uint32:
            return [keys]
        if keys.dtype == np.complex128:
            halves = [self.bitcast(x, np.uint64, x.shape) for x in self.parts(keys)]
            return [word for half in halves for word in self.words(half)]
        pairs = self.bitcast(keys, np.uint32, (*keys.shape, 2))
        return [self.reshape(self.part(pairs, keys.ndim, i, i + 1), keys.shape) for i in (0, 1)]

    def keys(self, words: Sequence[Value]) -> Value:
        """Make random keys from their words."""
        shape = words[0].shape
        if len(words) == 1:
            return words[0]
        if len(words) == 4:
            halves = [self.bitcast(self.keys(ws), float, shape) for ws in (words[:2], words[2:])]
            return self.op("complex", *halves, result=(shape, np.complex128))
        pairs = self.concatenate([self.reshape(w, (*shape, 1)) for w in words], len(shape))
        return self.bitcast(pairs, np.uint64, shape)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        return x if x.shape == shape else self.op("reshape", x, result=(shape, x.dtype))

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        shape = tuple(x.shape[i] for i in permutation)
        return self.op("transpose", x, result=(shape, x.dtype), permutation=permutation)

    def compare(self, x: Value, y: Value, direction: str, total: bool = False) -> Value:
        """Compare: `direction` is EQ, NE, LT, LE, GT or GE; `total` orders NaN and signed zeros."""
        if x.dtype.kind in "ui" or x.dtype == bool or dtypes.issubdtype(x.dtype, np.integer):
            unsigned = x.dtype == bool or dtypes.issubdtype(x.dtype, np.unsignedinteger)
            how = "UNSIGNED" if unsigned else "SIGNED"
        else:
            how = "TOTALORDER" if total else "FLOAT"
        attributes = {
            "comparison_direction": f"#stablehlo<comparison_direction {direction}>",
            "compare_type": f"#stablehlo<comparison_type {how}>",
        }
        return self.op("compare", x, y, result=(x.shape, np.dtype(bool)), attributes=attributes)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """Select `x` where the condition holds, else `y`."""
        return self.op("select", condition, x, y, result=x)

    def combine(self, name: str, x: Value, y: Value) -> Value:
        """Combine two values of one type; minimum and maximum also take complex numbers."""
        if name not in ("maximum", "minimum") or x.dtype.kind != "c":
            return self.op(name, x, y, result=x)
        better = self.less(y, x) if name == "maximum" else self.less(x, y)
        keep = self.combine("or", better, self.compare(x, x, "NE"))
        return self.select(keep, x, y)

    def less(self, x: Value, y: Value, total: bool = False) -> Value:
        """Compare x < y; complex numbers are ordered by real part, then by imaginary part."""
        if x.dtype.kind != "c":
            return self.compare(x, y, "LT", total)
        (a, b), (c, d) = self.parts(x), self.parts(y)
        tie = self.combine("and", self.compare(a, c, "EQ", total), self.compare(b, d, "LT", total))
        return self.combine("or", self.compare(a, c, "LT", total), tie)

    def parts(self, x: Value) -> list[Value]:
        """Return the real and the imaginary part."""
        kind = x.shape, np.zeros(0, x.dtype).real.dtype
        return [self.op(name, x, result=kind) for name in ("real", "imag")]

    def slice(
        self, x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None
    ) -> Value:
        strides = [1] * x.ndim if strides is None else list(strides)
        shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))
        return self.op(
            "slice",
            x,
            result=(shape, x.dtype),
            start_indices=starts,
            limit_indices=limits,
            strides=strides,
        )

    def part(self, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Slice along one axis."""
        starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        starts[axis], stops[axis], steps[axis] = start, stop, step
        return self.slice(x, starts, stops, steps)

    def pad(self, x: Value, value: Value, config: Sequence[tuple[int, int, int]]) -> Value:
        """Pad `x` with a value before, after and between its elements."""
        low, high, inner = zip(*config, strict=True) if config else ((), (), ())
        shape = tuple(
            a + b + n + max(n - 1, 0) * c for n, (a, b, c) in zip(x.shape, config, strict=True)
        )
        return self.op(
            "pad",
            x,
            value,
            result=(shape, x.dtype),
            edge_padding_low=low,
            edge_padding_high=high,
            interior_padding=inner,
        )

    def iota(self, shape: Sequence[int], dtype: Any, axis: int) -> Value:
        """Return the indices along an axis."""
        return self.op("iota", result=(tuple(shape), dtype), iota_dimension=axis)

    def concatenate(self, xs: Sequence[Value], axis: int) -> Value:
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self.op("concatenate", *xs, result=(tuple(shape), xs[0].dtype), dimension=axis)

    def index(self, x: Value) -> Value:
        """Convert integers to a signed type that holds all indices of an array."""
        if x.dtype in (np.int32, np.int64):
            return x
        if x.dtype == np.uint64:
            most = self.constant(np.iinfo(np.int64).max, x.dtype, x.shape)
            x = self.combine("minimum", x, most)
        return self.convert(x, np.int64 if x.dtype.itemsize >= 4 else np.int32)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        starts = [self.index(s) for s in starts]
        return self.op(
            "dynamic_slice", x, *starts, result=(tuple(sizes), x.dtype), slice_sizes=sizes
        )

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        return self.op("dynamic_update_slice", x, update, *map(self.index, starts), result=x)

    def row(self, x: Value, index: Value) -> Value:
        """Return `x[index]`."""
        starts = [index, *[self.constant(0, index.dtype)] * (x.ndim - 1)]
        return self.reshape(self.dynamic_slice(x, starts, (1, *x.shape[1:])), x.shape[1:])

    def set_row(self, x: Value, row: Value, index: Value) -> Value:
        """Return `x` with `x[index]` replaced."""
        starts = [index, *[self.constant(0, index.dtype)] * (x.ndim - 1)]
        return self.dynamic_update_slice(x, self.reshape(row, (1, *row.shape)), starts)

    def region(self, kinds: Sequence[Any], body: Callable[..., Sequence[Value]]) -> str:
        """Write a region: `body` takes its arguments, of these types, and returns its results."""
        with self.writer.region([_kind(k) for k in kinds]) as (arguments, text):
            self.give(body(*arguments))
        return text[0]

    def give(self, values: Sequence[Value]) -> None:
        """End a region with its results."""
        self.writer.op("stablehlo.return", list(values), [])

    def combiner(self, name: str, dtype: Any) -> str:
        """Write a region that combines two scalars of one type by an operation."""
        kind = ((), physical(dtype))
        return self.region([kind, kind], lambda x, y: [self.combine(name, x, y)])

    def reduce(self, name: str, x: Value, start: Any, axes: Sequence[int]) -> Value:
        """Reduce `x` along axes by an operation, starting from `start`."""
        first = self.constant(start, x.dtype)
        return self.reduce_by(lambda a, b: [self.combine(name, a, b)], [x], [first], axes)[0]

    def reduce_by(
        self,
        body: Callable[..., Sequence[Value]],
        xs: Sequence[Value],
        starts: Sequence[Value],
        axes: Sequence[int],
    ) -> list[Value]:
        """Reduce several arrays of one shape together, by a function of twice as many scalars."""
        shape = tuple(n for i, n in enumerate(xs[0].shape) if i not in axes)
        return self.op(
            "reduce",
            *xs,
            *starts,
            result=[(shape, x.dtype) for x in xs],
            dimensions=axes,
            regions=[self.region([*starts, *starts], body)],
        )

    def while_loop(
        self,
        start: Sequence[Value],
        condition: Callable[..., Value],
        body: Callable[..., Sequence[Value]],
        effects: bool = False,
    ) -> list[Value]:
        """Emit a loop over values; both functions may use values from outside.

        Args:
            effects: whether the functions have effects; then the token is a loop value.
        """
        if effects:
            return self._in_order(
                lambda token: self.while_loop(
                    [token, *start],
                    lambda token, *xs: self._after(token, lambda: [condition(*xs)])[1],
                    lambda token, *xs: self._after(token, lambda: body(*xs)),
                )
            )
        kinds = [kind_of(x) for x in start]
        regions = [self.region(kinds, lambda *xs: [condition(*xs)]), self.region(kinds, body)]
        return self.op("while", *start, result=kinds, regions=regions)

    def case(
        self,
        index: Value,
        branches: Sequence[Callable[[], Sequence[Value]]],
        results: Sequence[Any],
        effects: bool = False,
    ) -> list[Value]:
        """Emit branches selected by an int32 index; any other index selects the last one."""
        if effects:
            return self._in_order(
                lambda token: self.case(
                    index,
                    [lambda b=branch: self._after(token, b) for branch in branches],
                    [TOKEN, *results],
                )
            )
        regions = [self.region([], branch) for branch in branches]
        return self.op("case", index, result=[_kind(r) for r in results], regions=regions)

    @contextmanager
    def iteration(self, loop: str, number: Value) -> Iterator[None]:
        """Emit a loop's body; errors raised inside name the iteration."""
        self.iterations.append((loop, number))
        yield
        self.iterations.pop()

    def require(
        self, operands: Sequence[Value], evaluate: Callable[..., Any], holds: Value
    ) -> list[Value]:
        """Call a Python function that raises, unless a condition holds."""
        names, numbers = [name for name, _ in self.iterations], [i for _, i in self.iterations]

        def raising(*arrays):
            values, turns = arrays[: len(operands)], arrays[len(operands) :]
            with in_loops(names, turns):
                return evaluate(*values)

        def fail() -> Sequence[Value]:
            return self.module.host(self, raising, [*operands, *numbers], result=[], effect=True)

        return self.case(self.convert(holds, np.int32), [fail, list], [], effects=True)

    def foreign(self, *args: Any) -> list[Value]:
        """Call a handler of the typed FFI; see `foreign_call`."""
        return self.module.foreign(self, *args)

    def order(self) -> Value:
        """The token of the last effect."""
        token = self.token
        if token is None:
            token = self.token = self.op("create_token", result=TOKEN)
        return token

    def _in_order(self, write: Callable[[Value], list[Value]]) -> list[Value]:
        """Emit code with effects: `write` takes a token, and returns the next one and values."""
        self.token, *values = write(self.order())
        return values

    def _after(self, token: Value, write: Callable[[], Sequence[Value]]) -> list[Value]:
        """Write values whose effects follow a token; return the next token and the values."""
        outer, self.token = self.token, token
        values = write()
        inner, self.token = self.token, outer
        return [inner, *values]

    def constrain(self, x: Value, sharding: Any) -> Value:
        """Constrain the sharding of `x`."""
        text = self.module.sharding(sharding, x.ndim)
        if text is None:
            return x
        attributes = {"sharding": f"#sdy.sharding{text}"}
        return self.op("sdy.sharding_constraint", x, result=x, attributes=attributes)

    def inspect(self, x: Value, callback: Callable[[Any], None]) -> None:
        """Call a function with the sharding of `x` when it is known."""
        self.module.inspect(self, x, callback)

    def inline(self, closed: Any, operands: Sequence[Value]) -> list[Value]:
        """Inline the equations of a program."""
        return self.module.inline(self, closed, operands)

    def call(self, closed: Any, operands: Sequence[Value], name: str = "") -> list[Value]:
        """Call a program as a separate function; equal programs share one."""
        return self.module.call(self, closed, operands, name)

    def apply(self, function: Callable[..., Any], *operands: Value) -> Any:
        """Trace a function for these operands, and inline it; for rules in terms of primitives."""
        return self.module.apply(self, function, operands)

    def lapack(
        self, name: str, *operands: Value, result: list[Any], ok: str | None = "EQ", **options: Any
    ) -> list[Value]:
        """Call a LAPACK routine, named without the letter of its type, on stacks of matrices.

        Args:
            result: the types of the results.
            ok: how the routine's info compares with 0 on success; otherwise results are NaN. None
                for a routine without info.
            options: letters, integers and booleans.

        Raises:
            OnTheHost: the program is not for a CPU.
        """
        stack = max(operands, key=lambda x: x.ndim)
        batch, kinds = stack.shape[:-2], [_kind(r) for r in result]
        found = self.module.lapack(
            self,
            f"{_LAPACK[stack.dtype.char]}{name}",
            operands,
            [*kinds, *([(batch, np.dtype(np.int32))] if ok else [])],
            options,
        )
        if ok is None:
            return found
        *found, report = found
        good = self.compare(report, self.constant(0, np.int32, batch), ok)
        return [self.only(good, x) if x.dtype.kind in "fc" else x for x in found]

    def only(self, good: Value, x: Value) -> Value:
        """Return `x` for the examples where a condition holds, and NaN for the others."""
        nan = self.constant(np.nan, x.dtype, x.shape)
        return self.select(self.broadcast(good, x.shape, range(good.ndim)), x, nan)

    def host(self, function: Callable[..., Any], *operands: Value, result: Any = None) -> Any:
        """Call a Python function of NumPy arrays when the program runs."""
        return self.module.host(self, function, operands, result)


def _kind(x: Any) -> Kind:
    if isinstance(x, tuple):
        return (tuple(x[0]), None if x[1] is None else physical(x[1]))
    return kind_of(x)
