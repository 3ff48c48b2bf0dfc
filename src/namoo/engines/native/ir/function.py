"""LLVM IR as text: typed values, operations on scalars and vectors, loops with hoisting.

A `Value` knows its element type, its number of lanes (0: a scalar) and the *depth* of the loop it
was computed in.  An operation is emitted at the greatest depth of its operands, so loop-invariant
code is hoisted.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo._base.dtypes import bfloat16
from namoo.engines.native.ir.target import converts_half, has, has_fma

FLOATS = ("f16", "bf16", "f32", "f64")
# Narrow floats are integers to LLVM: they are only loaded, stored and converted, by our own code.
# What LLVM's types `half` and `bfloat` compile to depends on the processor.
_NAMES = {"f16": "i16", "bf16": "i16", "f32": "float", "f64": "double", "ptr": "ptr"}
_NARROW = {"f16": np.dtype(np.float16), "bf16": bfloat16}
_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "ptr": 64}


def llvm_name(elem: str) -> str:
    """LLVM's name of an element type: its integers have no sign."""
    return _NAMES.get(elem) or f"i{elem[1:]}"


def bits_of(elem: str) -> int:
    """Number of bits of an element type."""
    return _BITS.get(elem) or int(elem[1:])


def is_float(elem: str) -> bool:
    return elem in FLOATS


def is_signed(elem: str) -> bool:
    return elem[0] == "i" and elem != "i1"


class Value:
    """An SSA value or a constant.

    `elem` is one of i1, i8, …, i64, u8, …, u64, f16, bf16, f32, f64, ptr.
    """

    __slots__ = ("constant", "depth", "elem", "lanes", "name")

    def __init__(self, name: str, elem: str, lanes: int = 0, depth: int = 0, constant: Any = None):
        self.name = name
        self.elem = elem
        self.lanes = lanes
        self.depth = depth
        self.constant = constant

    @property
    def type(self) -> str:
        return vector_type(self.elem, self.lanes)

    def __repr__(self) -> str:
        return f"{vector_type(self.elem, self.lanes)} {self.name}"


class Mask(Value):
    """A constant mask: the first `count` lanes."""

    __slots__ = ("count",)


def mask_of(lanes: int, count: int) -> Mask:
    bits = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes))
    mask = Mask(f"<{bits}>", "i1", lanes)
    mask.count = count
    return mask


@cached("native ir: vector types", bound=1024, keyed_by="element type, lanes")
def vector_type(elem: str, lanes: int) -> str:
    return f"<{lanes} x {llvm_name(elem)}>" if lanes else llvm_name(elem)


def constant(elem: str, number: Any) -> Value:
    """A scalar constant; an integer that its type cannot hold wraps around."""
    if elem[0] in "iu" and elem != "i1":
        return _integer(elem, int(number))
    if elem in _NARROW:
        with np.errstate(all="ignore"):
            narrow = np.asarray(number).astype(_NARROW[elem])
        return Value(str(narrow.view(np.uint16)), elem, constant=float(narrow))
    if is_float(elem):
        number = float(number)
        if elem == "f32":
            number = ctypes.c_float(number).value
        # LLVM writes floats exactly as the hexadecimal bits of a double.
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
        return Value(text, elem, constant=number)
    assert elem == "i1"
    return Value("true" if number else "false", elem, constant=bool(number))


@cached("native ir: integer constants", bound=4096, keyed_by="element type, number")
def _integer(elem: str, number: int) -> Value:
    number = _wrapped(number, elem)
    return Value(str(number), elem, constant=number)


class _Level:
    """A loop being written: the text so far, and the block that is still open."""

    __slots__ = ("chunks", "index", "label", "lines", "memo", "phis")

    def __init__(self, label: str):
        self.chunks: list[str] = []
        self.index: tuple[Value | None, Value | None, int] = None, None, 0
        """The loop variable, its start, and its step."""
        self.label = label
        self.lines: list[str] = []
        self.phis: list[tuple[Value, Value, Value | None]] = []
        self.memo: dict[Any, Any] = {}


class Function:
    """One LLVM function being written."""

    def __init__(self, name: str, parameters: Sequence[str], result: str = "void"):
        self.name = name
        self.result = result
        self.counter = 0
        self.parameters = [Value(f"%a{i}", elem) for i, elem in enumerate(parameters)]
        self.levels = [_Level("entry")]
        self.preamble: list[str] = []
        """Lines for the function's start, which can be added at any time."""
        self.epoch = 0
        """Incremented when memory may have changed, so that earlier loads are not reused."""
        self.narrow: dict[str, Value] = {}
        """The narrow floats of values that were widened, which need no rounding."""
        self.declarations: dict[str, str] = {}
        """Declarations of the external functions that it calls, by name."""

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    def line(self, text: str, depth: int | None = None) -> None:
        """Write a line into the open block of a loop: the current one by default."""
        self.levels[-1 if depth is None else depth].lines.append(text)

    def emit(self, elem: str, lanes: int, text: str, operands: Sequence[Value]) -> Value:
        """Emit an operation at the depth of its operands; equal ones are emitted once."""
        depth = 0
        for operand in operands:
            if operand.depth > depth:
                depth = operand.depth
        levels = self.levels
        for level in levels if depth == len(levels) - 1 else levels[: depth + 1]:
            if (known := level.memo.get(text)) is not None:
                # The depth of a pointer also marks when its memory is written; and the text of an
                # operation does not distinguish signed from unsigned integers.
                if known.depth == depth and known.elem == elem:
                    return known
                return Value(known.name, elem, lanes, depth)
        self.counter += 1
        name = f"%v{self.counter}"
        level = levels[depth]
        level.lines.append(f"  {name} = {text}")
        value = level.memo[text] = Value(name, elem, lanes, depth)
        return value

    def emit_here(self, elem: str, lanes: int, text: str) -> Value:
        """Emit an operation in the current loop, whatever its operands are: loads and calls."""
        name = self.fresh()
        self.line(f"  {name} = {text}")
        return Value(name, elem, lanes, self.depth)

    def text(self, attributes: str = "") -> str:
        """The finished function."""
        (level,) = self.levels
        level.chunks.append(_block(level.label, level.lines))
        if self.preamble:
            label, *rest = level.chunks[0].split("\n", 1)
            level.chunks[0] = "\n".join([label, *self.preamble, *rest])
        parameters = ", ".join(repr(p) for p in self.parameters)
        return "\n".join(
            [
                f"define {self.result} @{self.name}({parameters}) {attributes} {{",
                *level.chunks,
                "}",
            ]
        )

    @contextmanager
    def loop(self, start: Value | int, stop: Value | int, step: int = 1):
        """A loop that runs at least once: `with f.loop(0, n) as i`."""
        start, stop = _int(start), _int(stop)
        number = self.counter = self.counter + 1
        label = f"L{number}"
        level = _Level(label)
        self.levels.append(level)
        index = Value(f"%i{number}", "i64", 0, self.depth)
        level.index = index, start, step
        yield index
        self.levels.pop()
        parent = self.levels[-1]
        following, more = f"%n{number}", f"%c{number}"
        level.lines += [
            f"  {following} = add nuw nsw i64 {index.name}, {step}",
            f"  {more} = icmp slt i64 {following}, {stop.name}",
            f"  br i1 {more}, label %{label}, label %X{number}",
        ]
        head = [f"  {index.name} = phi i64 [{start.name}, %{parent.label}], "
                f"[{following}, %{level.label}]"]  # fmt: skip
        for phi, first, last in level.phis:
            assert last is not None, "an accumulator without its next value"
            head.append(
                f"  {phi.name} = phi {phi.type} [{first.name}, %{parent.label}], "
                f"[{last.name}, %{level.label}]"
            )
        if level.chunks:
            first_block = level.chunks[0].split("\n", 1)
            level.chunks[0] = "\n".join([first_block[0], *head, *first_block[1:]])
        else:
            level.lines[:0] = head
        level.chunks.append(_block(level.label, level.lines))
        parent.lines.append(f"  br label %{label}")
        parent.chunks.append(_block(parent.label, parent.lines))
        parent.chunks += level.chunks
        parent.label, parent.lines = f"X{number}", []

    @contextmanager
    def repeat(self):
        """A while loop: emit the condition and `proceed_while`, then the body."""
        number = self.counter = self.counter + 1
        label = f"L{number}"
        level = _Level(label)
        self.levels.append(level)
        yield number
        self.levels.pop()
        parent = self.levels[-1]
        level.lines.append(f"  br label %{label}")
        head = [
            f"  {phi.name} = phi {phi.type} [{first.name}, %{parent.label}], "
            f"[{last.name}, %{level.label}]"
            for phi, first, last in level.phis
            if last is not None
        ]
        assert len(head) == len(level.phis), "a carried value without its next value"
        first_block = level.chunks[0].split("\n", 1)
        level.chunks[0] = "\n".join([first_block[0], *head, *first_block[1:]])
        level.chunks.append(_block(level.label, level.lines))
        parent.lines.append(f"  br label %{label}")
        parent.chunks.append(_block(parent.label, parent.lines))
        parent.chunks += level.chunks
        parent.label, parent.lines = f"X{number}", []

    def proceed_while(self, number: int, condition: Value) -> None:
        """Leave the loop of `repeat` unless the condition holds."""
        self.line(f"  br i1 {condition.name}, label %P{number}, label %X{number}")
        self.start_block(f"P{number}")

    def leave_if(self, condition: Value, label: str) -> None:
        """Jump to a block at the function's end."""
        number = self.counter = self.counter + 1
        self.line(f"  br i1 {condition.name}, label %{label}, label %K{number}")
        self.start_block(f"K{number}")

    def carry(self, initial: Value) -> Value:
        """A value that the current loop carries from iteration to iteration; see `carried`."""
        phi = Value(self.fresh(), initial.elem, initial.lanes, self.depth)
        self.levels[-1].phis.append((phi, initial, None))
        return phi

    def carried(self, phi: Value, value: Value) -> Value:
        """Set the value of `phi` in the next iteration; return its value after the loop."""
        phis = self.levels[-1].phis
        for i, (known, first, _) in enumerate(phis):
            if known is phi:
                phis[i] = (phi, first, value)
        return Value(value.name, value.elem, value.lanes, self.depth - 1)

    @contextmanager
    def branch(self, condition: Value):
        """Code that runs only where a scalar condition holds."""
        if condition.constant:
            yield
            return
        number = self.counter = self.counter + 1
        label = f"B{number}"
        level = _Level(label)
        self.levels.append(level)
        yield
        self.levels.pop()
        parent = self.levels[-1]
        level.lines.append(f"  br label %X{number}")
        level.chunks.append(_block(level.label, level.lines))
        parent.lines.append(f"  br i1 {condition.name}, label %{label}, label %X{number}")
        parent.chunks.append(_block(parent.label, parent.lines))
        parent.chunks += level.chunks
        parent.label, parent.lines = f"X{number}", []

    def start_block(self, label: str) -> None:
        """Close the current block, which has its terminator, and open another."""
        level = self.levels[-1]
        level.chunks.append(_block(level.label, level.lines))
        level.label, level.lines = label, []

    def offset(self, pointer: Value, index: Value | int, elem: str) -> Value:
        """The address of an element."""
        if isinstance(index, Value):
            distance, operands = index.name, (pointer, index)
        else:
            distance, operands = str(index), (pointer,)
        if distance == "0":
            return pointer
        text = f"getelementptr {storage(elem)}, ptr {pointer.name}, i64 {distance}"
        return self.emit("ptr", 0, text, operands)

    def stepped(self, index: Value, stride: int) -> Value:
        """`index * stride`: an induction variable in the loop of that index."""
        level = self.levels[-1]
        variable, start, step = level.index
        if stride == 1 or start is None or index is not variable:
            return self.mul(index, constant("i64", stride))
        key = ("step", stride)
        if key not in level.memo:
            phi = level.memo[key] = self.carry(self.mul(start, constant("i64", stride)))
            self.carried(phi, self.add(phi, constant("i64", step * stride)))
        return level.memo[key]

    def load(self, address: Value, elem: str, lanes: int = 0, mask: Value | None = None) -> Value:
        """Load one element, or `lanes` contiguous ones. Booleans are bytes in memory."""
        stored = "u8" if elem == "i1" else elem
        kind = vector_type(stored, lanes)
        size = bits_of(stored) // 8
        if mask is None:
            text = f"load {kind}, ptr {address.name}, align {size}"
        else:
            name = f"llvm.masked.load.{suffix(stored, lanes)}.p0"
            text = (
                f"call {kind} @{name}(ptr align {size} {address.name}, "
                f"<{lanes} x i1> {mask.name}, {kind} zeroinitializer)"
            )
            self.declarations[name] = f"declare {kind} @{name}(ptr, <{lanes} x i1>, {kind})"
        key = ("load", text, self.epoch)
        for level in self.levels[: address.depth + 1]:
            if (known := level.memo.get(key)) is not None:
                return known
        depth = max(address.depth, mask.depth if mask else 0)
        name = self.fresh()
        self.levels[depth].lines.append(f"  {name} = {text}")
        value = Value(name, stored, lanes, depth)
        if elem == "i1":
            value = self.convert(value, "i1")
        self.levels[depth].memo[key] = value
        return value

    def store(self, value: Value, address: Value, mask: Value | None = None) -> None:
        """Store one element, or contiguous ones, in the current loop."""
        if value.elem == "i1":
            value = self.convert(value, "u8")
        size = bits_of(value.elem) // 8
        if isinstance(mask, Mask) and mask.count == 1:
            # LLVM would store the whole word of a truncated value, past the end of the array.
            value, mask = self.lane(value, 0), None
        if mask is None:
            self.line(f"  store {value!r}, ptr {address.name}, align {size}")
            return
        value = self.splat(value, mask.lanes)
        name = f"llvm.masked.store.{suffix(value.elem, value.lanes)}.p0"
        self.declarations[name] = f"declare void @{name}({value.type}, ptr, <{mask.lanes} x i1>)"
        self.line(f"  call void @{name}({value!r}, ptr align {size} {address.name}, {mask!r})")

    def prefetch(self, address: Value) -> None:
        """Prefetch memory that is read soon."""
        self.declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        self.line(f"  call void @llvm.prefetch.p0(ptr {address.name}, i32 0, i32 3, i32 1)")

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar repeated in all lanes."""
        if value.lanes == lanes:
            return value
        assert value.lanes == 0, f"{value!r} cannot become {lanes} lanes"
        if value.constant is not None:
            text = f"splat ({value!r})"
            return Value(text, value.elem, lanes, 0, value.constant)
        kind = vector_type(value.elem, lanes)
        one = self.emit(
            value.elem, lanes, f"insertelement {kind} poison, {value!r}, i64 0", (value,)
        )
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.emit(value.elem, lanes, f"shufflevector {one!r}, {kind} poison, {mask}", (one,))

    def same_lanes(self, *values: Value) -> tuple[int, list[Value]]:
        """Broadcast scalars to vectors, if any value is one; return the lanes and the values."""
        lanes = max(v.lanes for v in values)
        return lanes, [self.splat(v, lanes) for v in values] if lanes else list(values)

    def lane(self, value: Value, index: int) -> Value:
        """One element of a vector."""
        if not value.lanes:
            return value
        if value.constant is not None:
            return constant(value.elem, value.constant)
        return self.emit(value.elem, 0, f"extractelement {value!r}, i64 {index}", (value,))

    def pack(self, values: Sequence[Value]) -> Value:
        """Build a vector from scalars."""
        lanes, elem = len(values), values[0].elem
        kind = vector_type(elem, lanes)
        out = Value("poison", elem, lanes)
        for i, value in enumerate(values):
            out = self.emit(
                elem, lanes, f"insertelement {kind} {out.name}, {value!r}, i64 {i}", (out, value)
            )
        return out

    def shuffle(self, x: Value, lanes: Sequence[int], y: Value | None = None) -> Value:
        """The lanes of one or two vectors in another order."""
        mask = ", ".join(f"i32 {i}" for i in lanes)
        second = y.name if y else "poison"
        text = f"shufflevector {x!r}, {x.type} {second}, <{len(lanes)} x i32> <{mask}>"
        return self.emit(x.elem, len(lanes), text, (x, y) if y else (x,))

    def iota(self, elem: str, lanes: int) -> Value:
        """0, 1, 2, … in the lanes."""
        name = llvm_name(elem)
        return Value(f"<{', '.join(f'{name} {i}' for i in range(lanes))}>", elem, lanes)

    def _binary(self, x: Value, y: Value, integers: str, floats: str, unsigned: str = "") -> Value:
        if x.lanes != y.lanes:
            _, (x, y) = self.same_lanes(x, y)
        if x.elem in FLOATS:
            name = floats
        else:
            name = unsigned if unsigned and not is_signed(x.elem) else integers
        return self.emit(x.elem, x.lanes, f"{name} {x!r}, {y.name}", (x, y))

    def add(self, x: Value, y: Value) -> Value:
        if x.elem == "i1":
            return self._binary(x, y, "or", "")
        if x.elem[0] in "iu":
            if x.constant is not None and y.constant is not None and not x.lanes | y.lanes:
                return constant(x.elem, x.constant + y.constant)
            if y.constant == 0:
                return x
            if x.constant == 0:
                return y
        return self._binary(x, y, "add", "fadd")

    def sub(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "sub", "fsub")

    def mul(self, x: Value, y: Value) -> Value:
        if x.elem == "i1":
            return self._binary(x, y, "and", "")
        if x.elem[0] in "iu":
            if x.constant is not None and y.constant is not None and not x.lanes | y.lanes:
                return constant(x.elem, x.constant * y.constant)
            if y.constant == 1:
                return x
            if x.constant == 1:
                return y
        return self._binary(x, y, "mul", "fmul")

    def fdiv(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "", "fdiv")

    def idiv(self, x: Value, y: Value) -> Value:
        """Integer division towards zero; dividing by zero is undefined."""
        return self._binary(x, y, "sdiv", "", "udiv")

    def irem(self, x: Value, y: Value) -> Value:
        """Remainder of `idiv`."""
        return self._binary(x, y, "srem", "", "urem")

    def and_(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "and", "")

    def or_(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "or", "")

    def xor(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "xor", "")

    def not_(self, x: Value) -> Value:
        return self.xor(x, constant(x.elem, 1 if x.elem == "i1" else -1))

    def shl(self, x: Value, y: Value) -> Value:
        """Shift left; by the width or more is undefined."""
        return self._binary(x, y, "shl", "")

    def lshr(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "lshr", "")

    def ashr(self, x: Value, y: Value) -> Value:
        return self._binary(x, y, "ashr", "")

    def neg(self, x: Value) -> Value:
        if is_float(x.elem):
            return self.emit(x.elem, x.lanes, f"fneg {x!r}", (x,))
        return self.sub(constant(x.elem, 0), x)

    def muladd(self, x: Value, y: Value, z: Value) -> Value:
        """x·y + z with one rounding or two, whichever is faster."""
        return self.intrinsic("fma", x, y, z) if has_fma() else self.add(self.mul(x, y), z)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x·y + z with one rounding."""
        if has_fma():
            return self.intrinsic("fma", x, y, z)
        if x.elem == "f32":
            # The product of two f32 is exact in f64.
            x, y, z = (self.convert(v, "f64") for v in (x, y, z))
            return self.convert(self.add(self.mul(x, y), z), "f32")
        product = self.mul(x, y)
        (a, b), (c, d) = self._halves(x), self._halves(y)
        rest = self.sub(self.mul(a, c), product)
        for u, v in ((a, d), (b, c), (b, d)):
            rest = self.add(rest, self.mul(u, v))
        total = self.add(product, z)
        part = self.sub(total, product)
        lost = self.add(self.sub(product, self.sub(total, part)), self.sub(z, part))
        out = self.add(total, self.add(lost, rest))
        # The plain result where it is zero (for the sign), or where a value or a half is infinite.
        return self.select(self.compare("gt", self.fabs(out), constant("f64", 0.0)), out, total)

    def _halves(self, x: Value) -> tuple[Value, Value]:
        """Split an f64 into a sum of two numbers of at most 26 bits (Veltkamp and Dekker)."""
        moved = self.mul(x, constant("f64", 2.0**27 + 1))
        high = self.sub(moved, self.sub(moved, x))
        return high, self.sub(x, high)

    def intrinsic(self, name: str, *operands: Value, extra: str = "", flags: str = "") -> Value:
        """Call an intrinsic of LLVM that maps one type to itself, such as `sqrt`."""
        lanes, values = self.same_lanes(*operands)
        kind = values[0].type
        full = f"llvm.{name}.{suffix(values[0].elem, lanes)}"
        if full not in self.declarations:
            kinds = ", ".join([kind] * len(values) + ([extra.split()[0]] if extra else []))
            self.declarations[full] = f"declare {kind} @{full}({kinds})"
        arguments = ", ".join([repr(v) for v in values] + ([extra] if extra else []))
        call = f"call {flags}{kind} @{full}({arguments})"
        return self.emit(values[0].elem, lanes, call, values)

    def can_scale(self, x: Value) -> bool:
        """Whether the machine scales such vectors by powers of two in one instruction."""
        return x.lanes * bits_of(x.elem) >= 512 and has("avx512f")

    def scale(self, x: Value, k: Value) -> Value:
        """x·2ᵏ for a whole number k, rounded once."""
        lanes, (x, k) = self.same_lanes(x, k)
        whole = 512 // bits_of(x.elem)
        if lanes > whole:
            half = lanes // 2
            low, high = (
                self.scale(*(self.shuffle(v, range(i, i + half)) for v in (x, k)))
                for i in (0, half)
            )
            return self.shuffle(low, range(lanes), high)
        kind, name = x.type, f"llvm.x86.avx512.mask.scalef.p{'s' if x.elem == 'f32' else 'd'}.512"
        self.declarations[name] = f"declare {kind} @{name}({kind}, {kind}, {kind}, i{whole}, i32)"
        text = f"call {kind} @{name}({x!r}, {k!r}, {kind} zeroinitializer, i{whole} -1, i32 4)"
        return self.emit(x.elem, lanes, text, (x, k))

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def fabs(self, x: Value) -> Value:
        return self.intrinsic("fabs", x)

    def floor(self, x: Value) -> Value:
        return self.intrinsic("floor", x)

    def compare(self, relation: str, x: Value, y: Value) -> Value:
        """`relation` is one of eq, ne, lt, le, gt, ge.  With NaN, only `ne` holds."""
        lanes, (x, y) = self.same_lanes(x, y)
        if is_float(x.elem):
            text = f"fcmp {'une' if relation == 'ne' else 'o' + relation} {x!r}, {y.name}"
        else:
            sign = "" if relation in ("eq", "ne") else "s" if is_signed(x.elem) else "u"
            if x.constant is not None and y.constant is not None and not lanes:
                return constant("i1", getattr(operator, relation)(x.constant, y.constant))
            text = f"icmp {sign}{relation} {x!r}, {y.name}"
        return self.emit("i1", lanes, text, (x, y))

    def unordered(self, x: Value) -> Value:
        """Whether a float is NaN."""
        return self.emit("i1", x.lanes, f"fcmp uno {x!r}, {x.name}", (x,))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """`x` where the condition holds, else `y`."""
        if condition.constant is not None:
            return x if condition.constant else y
        if x is y:
            return x
        if not condition.lanes:
            lanes, (x, y) = self.same_lanes(x, y)
        else:
            lanes, (condition, x, y) = self.same_lanes(condition, x, y)
        return self.emit(x.elem, lanes, f"select {condition!r}, {x!r}, {y!r}", (condition, x, y))

    def maximum(self, x: Value, y: Value) -> Value:
        """The greater; NaN if one is."""
        if is_float(x.elem):
            # The sign of a zero is unspecified here: ordering zeros would cost instructions.
            return self.intrinsic("maximum", x, y, flags="nsz ")
        return self.intrinsic("smax" if is_signed(x.elem) else "umax", x, y)

    def minimum(self, x: Value, y: Value) -> Value:
        """The less; NaN if one is."""
        if is_float(x.elem):
            return self.intrinsic("minimum", x, y, flags="nsz ")
        return self.intrinsic("smin" if is_signed(x.elem) else "umin", x, y)

    def bitcast(self, x: Value, elem: str) -> Value:
        """The same bits as another type of the same width."""
        if llvm_name(x.elem) == llvm_name(elem):
            # The number of a constant differs between types with the same bits.
            if x.constant is not None and {x.elem[0], elem[0]} <= {"i", "u"}:
                return self.splat(constant(elem, x.constant), x.lanes)
            return Value(x.name, elem, x.lanes, x.depth)
        return self.emit(elem, x.lanes, f"bitcast {x!r} to {vector_type(elem, x.lanes)}", (x,))

    def bitcast_pointer(self, x: Value) -> Value:
        """An address as a number."""
        return self.emit("u64", 0, f"ptrtoint {x!r} to i64", (x,))

    def convert(self, x: Value, elem: str) -> Value:
        """Convert as C does; floats beyond an integer's range saturate, NaN becomes 0."""
        if x.elem == elem:
            return x
        if x.constant is not None and not x.lanes and _folds(x, elem):
            return constant(elem, x.constant)
        if x.elem in _NARROW:
            wide = self._widened(x)
            self.narrow[wide.name] = x
            return self.convert(wide, elem)
        if elem in _NARROW:
            if (known := self.narrow.get(x.name)) is not None and known.elem == elem:
                return Value(known.name, elem, known.lanes, known.depth)
            x = self._rounded_to_odd(x) if (x.elem, elem) == ("f64", "f16") else x
            return self._narrowed(self.convert(x, "f32"), elem)
        if elem == "i1":
            return self.compare("ne", x, constant(x.elem, 0))
        if is_float(x.elem) and is_float(elem):
            name = "fpext" if elem == "f64" else "fptrunc"
        elif is_float(x.elem):
            return self._to_integer(x, elem)
        elif is_float(elem):
            name = "sitofp" if is_signed(x.elem) else "uitofp"
        elif llvm_name(x.elem) == llvm_name(elem):
            return self.bitcast(x, elem)
        elif bits_of(elem) < bits_of(x.elem):
            name = "trunc"
        else:
            name = "sext" if is_signed(x.elem) else "zext"
        return self.emit(elem, x.lanes, f"{name} {x!r} to {vector_type(elem, x.lanes)}", (x,))

    def _widened(self, x: Value) -> Value:
        """A narrow float as f32."""

        def word(value: int) -> Value:
            return constant("u32", value)

        if x.elem == "f16" and converts_half():
            half = self.emit(x.elem, x.lanes, f"bitcast {x!r} to {_half(x.lanes)}", (x,))
            kind = vector_type("f32", x.lanes)
            text = f"fpext {_half(x.lanes)} {half.name} to {kind}"
            return self.emit("f32", x.lanes, text, (half,))
        bits = self.convert(self.bitcast(x, "u16"), "u32")
        if x.elem == "bf16":
            return self.bitcast(self.shl(bits, word(16)), "f32")
        # The biases of the exponents differ by 112.  Multiplying normalises subnormal numbers.
        size = self.shl(self.and_(bits, word(0x7FFF)), word(13))
        finite = self.mul(self.bitcast(size, "f32"), constant("f32", 2.0**112))
        special = self.or_(size, word(0x7F800000))
        size = self.select(
            self.compare("lt", size, word(0x0F800000)), self.bitcast(finite, "u32"), special
        )
        sign = self.shl(self.and_(bits, word(0x8000)), word(16))
        return self.bitcast(self.or_(size, sign), "f32")

    def _narrowed(self, x: Value, elem: str) -> Value:
        """An f32 as a narrow float: to nearest, ties to even."""

        def word(value: int) -> Value:
            return constant("u32", value)

        if elem == "f16" and converts_half():
            half = self.emit(elem, x.lanes, f"fptrunc {x!r} to {_half(x.lanes)}", (x,))
            text = f"bitcast {_half(x.lanes)} {half.name} to {vector_type(elem, x.lanes)}"
            return self.emit(elem, x.lanes, text, (half,))
        bits = self.bitcast(x, "u32")
        drop = 16 if elem == "bf16" else 13
        odd = self.and_(self.lshr(bits, word(drop)), word(1))
        if elem == "bf16":
            # The processor's own instruction, if there is one, flushes subnormal numbers to zero.
            near = self.add(self.add(bits, word(0x7FFF)), odd)
            out = self.select(self.unordered(x), self.or_(bits, word(0x400000)), near)
            return self.bitcast(self.convert(self.lshr(out, word(16)), "u16"), elem)
        size = self.and_(bits, word(0x7FFFFFFF))
        # The biases of the exponents differ by 112; a carry from rounding increments the exponent.
        normal = self.add(self.add(size, word(0xFFF - (112 << 23))), odd)
        normal = self.lshr(normal, word(13))
        # Adding ½ rounds to as many fraction bits as a subnormal number has.
        moved = self.add(self.bitcast(size, "f32"), constant("f32", 0.5))
        subnormal = self.sub(self.bitcast(moved, "u32"), word(0x3F000000))
        nan = self.or_(word(0x7E00), self.lshr(size, word(13)))
        large = self.select(self.unordered(x), self.and_(nan, word(0x7FFF)), word(0x7C00))
        out = self.select(self.compare("lt", size, word(113 << 23)), subnormal, normal)
        out = self.select(self.compare("lt", size, word(143 << 23)), out, large)
        sign = self.and_(self.lshr(bits, word(16)), word(0x8000))
        return self.bitcast(self.convert(self.or_(out, sign), "u16"), elem)

    def _rounded_to_odd(self, x: Value) -> Value:
        """Round an f64 to odd in f32, so that rounding it again to a narrow float is correct."""
        near = self.convert(x, "f32")
        back = self.convert(near, "f64")
        beyond = self.compare("gt", self.fabs(back), self.fabs(x))
        bits = self.sub(self.bitcast(near, "u32"), self.convert(beyond, "u32"))
        bits = self.or_(bits, self.convert(self.compare("ne", back, x), "u32"))
        return self.bitcast(bits, "f32")

    def _to_integer(self, x: Value, elem: str) -> Value:
        kind, source = vector_type(elem, x.lanes), suffix(x.elem, x.lanes)
        sign = "s" if is_signed(elem) else "u"
        name = f"llvm.fpto{sign}i.sat.{suffix(elem, x.lanes)}.{source}"
        self.declarations[name] = f"declare {kind} @{name}({x.type})"
        return self.emit(elem, x.lanes, f"call {kind} @{name}({x!r})", (x,))

    def fold(self, x: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Reduce the lanes of a vector in a fixed tree: halves with halves."""
        while x.lanes > 1:
            half = x.lanes // 2
            low = self.shuffle(x, range(half))
            high = self.shuffle(x, range(half, 2 * half))
            rest = [self.lane(x, i) for i in range(2 * half, x.lanes)]
            x = combine(low, high)
            if rest:
                x = combine(self.fold(x, combine), *rest)
        return self.lane(x, 0)


def _half(lanes: int) -> str:
    """LLVM's own type of f16."""
    return f"<{lanes} x half>" if lanes else "half"


def _folds(x: Value, elem: str) -> bool:
    """Whether the conversion of a constant can be folded: Python's numbers are f64 or integers."""
    if is_float(x.elem):
        return elem[0] not in "iu"
    return not is_float(elem) or abs(x.constant) <= 2**53


@cached("native ir: intrinsic suffixes", bound=1024, keyed_by="element type, lanes")
def suffix(elem: str, lanes: int) -> str:
    """How intrinsics spell a type in their names."""
    name = {"float": "f32", "double": "f64"}.get(llvm_name(elem), llvm_name(elem))
    return f"v{lanes}{name}" if lanes else name


def storage(elem: str) -> str:
    """The type in memory: booleans are bytes."""
    return "i8" if elem == "i1" else llvm_name(elem)


def _int(x: Value | int) -> Value:
    return constant("i64", x) if isinstance(x, int) else x


def _wrapped(number: int, elem: str) -> int:
    bits = bits_of(elem)
    number &= (1 << bits) - 1
    return number - (1 << bits) if is_signed(elem) and number >> (bits - 1) else number


def _block(label: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{label}:", *lines])
