"""References: memory that a program reads and writes.

A reference is either a *cell*, which holds its present value under the transformation that made it,
or a variable of a program that is being staged. Reading and writing a cell is ordinary computation
on immutable values, so every transformation works on it. Programs are staged with equations that
read and write; `discharge` turns them into programs without references before they are run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.source_context import at_user_line, entry_point
from namoo.core.array import Array, EagerArray, owned, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Effect, JaxprEqn
from namoo.core.primitive import Primitive
from namoo.core.trace import EvalTrace, Trace, context, set_trace
from namoo.primitives.families import add_any
from namoo.primitives.shape import convert_element_type, shape_of, zeros
from namoo.transforms.ref_index import (
    Index,
    python_index,
    read_index,
    replace,
    select,
    selected_shape,
    shown,
)
from namoo.transforms.ref_types import (
    AbstractRef,
    AccumEffect,
    ReadEffect,
    RefEffect,
    WriteEffect,
)


class Ref:
    """A mutable reference to an array; `namoo.new_ref` makes one.

    `ref[...]` is its value, `ref[1:3] = x` and `ref[0] += x` change it. Operations take values and
    no references: write `jnp.sin(ref[...])`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> ref = namoo.new_ref(jnp.zeros(3))
        >>> ref[1] = 5.0
        >>> ref[...]
        Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_freed", "_trace", "aval")
    # NumPy defers to our operators; there are none, so using a reference as an array is an error.
    __array_ufunc__ = None

    aval: AbstractRef
    _trace: Trace
    _freed: bool

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError("namoo.Ref cannot be made directly; use namoo.new_ref(array).")

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @property
    def at(self) -> RefIndexer:
        """`ref.at[index]` refers to a part of it."""
        return RefIndexer(self)

    @entry_point
    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    @entry_point
    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add a value to the part that an index selects."""
        addupdate(self, idx, x)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: the reference has shape ()")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "A mutable reference is not an array: read it first, with ref[...]." + at_user_line()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"

    @property
    def sharding(self) -> Any:
        """The devices and layout of the value."""
        return self[...].sharding

    @property
    def committed(self) -> bool:
        """Whether the value must stay where it is."""
        return self[...].committed

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value's first element."""
        return self[...].unsafe_buffer_pointer()


def _new(cls: Any, trace: Trace, aval: AbstractRef) -> Any:
    ref = object.__new__(cls)
    ref._trace, ref.aval, ref._freed = trace, aval, False
    return ref


class StagedRef(Ref):
    """A reference that is a variable of the program being staged."""

    __slots__ = ("_var",)

    _var: Any

    @staticmethod
    def of(trace: Trace, var: Any) -> StagedRef:
        """The reference of a variable."""
        ref = _new(StagedRef, trace, var.aval)
        ref._var = var
        return ref


class Cell(Ref):
    """A reference that holds its value, under the transformation that made it.

    An eager cell holds a NumPy array, and shares it with the arrays that it was made of or that
    were read from it. It writes to the array if nothing else refers to it, else to a copy.
    """

    __slots__ = ("_held", "_weak", "changed")

    _held: list[Any]
    _weak: bool
    changed: bool

    @staticmethod
    def of(trace: Trace, value: Any, aval: AbstractRef) -> Cell:
        """A reference with a first value."""
        cell = _new(Cell, trace, aval)
        cell._hold(value)
        cell.changed = False
        return cell

    def _hold(self, value: Any) -> None:
        plain = type(value) is EagerArray and isinstance(self._trace, EvalTrace)
        self._held = [value._value if plain else value]
        self._weak = aval_of(value).weak_type

    def value(self) -> Any:
        """The present value."""
        (held,) = self._held
        return EagerArray(held, self._weak) if type(held) is np.ndarray else held

    def store(self, value: Any) -> None:
        """Replace the value."""
        self._hold(value)
        self.changed = True

    def _in_place(self, index: Index, operands: Sequence[Any]) -> tuple[Any, ...] | None:
        """The index of a part that NumPy can read and write as a view; None if it cannot."""
        if type(self._held[0]) is not np.ndarray or any(map(shape_of, operands)):
            return None
        sizes = [size for size, entry in zip(self.shape, index, strict=False) if entry is None]
        places = [int(to_numpy(i)) for i in operands]
        places = [min(max(i + n * (i < 0), 0), n - 1) for i, n in zip(places, sizes, strict=True)]
        return python_index(index, places)

    def write(self, index: Index, operands: Sequence[Any], part: Any, adds: bool = False) -> None:
        """Replace a part of the value, or add to it; in place where nothing else has the memory."""
        view = self._in_place(index, operands)
        if view is None or type(part) is not EagerArray:
            if adds:
                part = add_any(select(self.value(), index, operands), part)
            self.store(replace(self.value(), index, operands, part))
            return
        if not _sole_owner(self._held):
            self._held[0] = self._held[0].copy()
        if adds:
            self._held[0][view or ...] += part._value
        else:
            self._held[0][view or ...] = part._value
        self._weak, self.changed = False, True

    def __repr__(self) -> str:
        if isinstance(self._trace, EvalTrace):
            return repr(self.value()).replace("Array", "Ref", 1)
        return super().__repr__()


def _sole_owner(held: list[np.ndarray]) -> bool:
    """Whether only this list refers to the array in it, and no view."""
    # One reference is the list's, one is this call's.
    return held[0].flags.owndata and held[0].flags.writeable and sys.getrefcount(held[0]) == 2


def home(trace: Trace) -> Trace:
    """The trace that computes values: one that stages tangents passes these on to its parent."""
    while trace.kind == "stage" and getattr(trace, "parent", None) is not None:
        trace = trace.parent
    return trace


def owns(trace: Trace, ref: Any) -> bool:
    """Whether a value is a cell that was made under this trace."""
    if type(ref) is not Cell:
        return False
    own = ref._trace
    if isinstance(own, EvalTrace):
        return isinstance(trace, EvalTrace)
    return own is trace or getattr(own, "tag", own) is getattr(trace, "tag", trace)


def stages_refs(trace: Trace) -> bool:
    """Whether operations on references become equations under this trace."""
    return trace.kind == "stage" and not trace.keeps_cells  # type: ignore[attr-defined]


def is_inner(x: Any) -> bool:
    """Whether a value is a reference that a transformation made, and so good for one call only."""
    return isinstance(x, Ref) and not (type(x) is Cell and isinstance(x._trace, EvalTrace))


def refuse_aliases(
    name: str, how: str, leaves: Sequence[Any], names: Any, consts: Sequence[Any] = ()
) -> None:
    """Refuse a reference that a function gets twice: a write to one would change the other.

    Args:
        name: the function.
        how: the transformation that traces it.
        leaves: its flat arguments.
        names: makes the names of these; called only for a message.
        consts: what the function closes over.
    """
    places: dict[int, int] = {}
    for i, x in enumerate(leaves):
        if not isinstance(x, Ref):
            continue
        if id(x) in places:
            first, second = names()[places[id(x)]], names()[i]
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {name} for {how} the mutable array reference of type {x.aval} "
                f"appeared at both {first} and {second}." + at_user_line()
            )
        places[id(x)] = i
    for c in consts:
        if id(c) in places:
            raise ValueError(
                f"when tracing {name} for {how}, a mutable array reference of type {c.aval} was "
                f"both closed over and passed as the argument {names()[places[id(c)]]}. Use one of "
                "them." + at_user_line()
            )


def refuse_returned(name: str, how: str, outs: Sequence[Any]) -> None:
    """Refuse a reference among the results of a function."""
    for x in outs:
        if isinstance(x, Ref):
            raise ValueError(
                f"function {name} traced for {how} returned a mutable array reference of type "
                f"{x.aval}, but mutable array references cannot be returned. Return its value, "
                "ref[...]." + at_user_line()
            )


def refuse_refs(what: str, leaves: Sequence[Any]) -> None:
    """Refuse references among the arguments of an operation that takes arrays only."""
    if any(isinstance(x, Ref) for x in leaves):
        raise TypeError(
            f"{what} does not take mutable references. Pass values, ref[...], and write the "
            "results to the references afterwards." + at_user_line()
        )


class RefPrimitive(Primitive):
    """An operation on a reference, its first operand."""

    multiple_results = True
    effectful = True
    exactly_once = True
    effect: type[RefEffect]
    verb: str

    def bind(self, *args: Any, **params: Any) -> Any:
        ref, *operands = args
        _require_usable(ref, self.name)
        trace = home(context.trace)
        if owns(trace, ref):
            with set_trace(trace):
                return self.on_cell(ref, operands, **params)
        if trace.kind == "stage":
            with set_trace(trace):
                return trace.process(self, args, params)
        if isinstance(trace, EvalTrace):
            _escaped(ref)
        own = getattr(trace, "owns", lambda x: False)
        if any(map(own, operands)):
            return self.on_outer(trace, ref, operands, **params)
        with set_trace(trace.parent):
            return self.bind(*args, **params)

    def on_cell(self, cell: Cell, operands: Sequence[Any], **params: Any) -> list[Any]:
        """Results for a reference of the current trace."""
        raise self._missing("on_cell")

    def on_outer(self, trace: Trace, ref: Ref, operands: Sequence[Any], **params: Any) -> list[Any]:
        """Results for a reference from outside of a trace, with operands of the trace."""
        raise self._missing("on_outer")

    def effects_of(self, eqn: JaxprEqn) -> frozenset[Effect]:
        return frozenset([self.effect(eqn.invars[0])])


def _escaped(ref: Ref) -> None:
    raise ValueError(
        f"A mutable reference of type {ref.aval} was used outside of the function that made it. "
        "Return its value, ref[...], or make it outside and pass it in." + at_user_line()
    )


def _require_usable(ref: Any, name: str) -> None:
    if not isinstance(ref, Ref):
        found = aval_of(ref)
        raise ValueError(f"`{name}` must be called on `Ref` types: {found}." + at_user_line())
    if ref._freed:
        raise ValueError(
            f"`{name}` must be called on `Ref` types: {ref.aval.inner_aval}. The reference was "
            "freed." + at_user_line()
        )


class Get(RefPrimitive):
    """The value of a reference, or a part of it."""

    name = "get"
    effect, verb = ReadEffect, "a get"
    exactly_once = False

    def abstract(self, ref, *operands, index):
        shape = selected_shape(ref.shape, index, [a.shape for a in operands])
        return [ref.inner_aval.update(shape=shape)]

    def on_cell(self, cell, operands, *, index):
        view = cell._in_place(index, operands)
        if view is None:
            return [select(cell.value(), index, operands)]
        return [EagerArray(np.asarray(cell._held[0][view or ...]), cell._weak)]

    def on_outer(self, trace, ref, operands, *, index):
        with set_trace(trace.parent):
            (value,) = self.bind(ref, index=())
        return [select(value, index, operands)]

    def format(self, eqn, names, typed):
        ref, *operands = eqn.invars
        place = shown(eqn.params["index"], ref.aval.shape, [*map(names, operands)])
        return f"{typed} <- {names(ref)}[{place}]"


class _Writes(RefPrimitive):
    """An operation that changes a reference; the second operand is a value."""

    def abstract(self, ref, value, *operands, index):
        shape = selected_shape(ref.shape, index, [a.shape for a in operands])
        return [ref.inner_aval.update(shape=shape)]

    def on_outer(self, trace, ref, operands, *, index):
        value, *places = operands
        if ref.aval.kind == "no_grad_no_remat" and trace.kind == "jvp":
            primal = trace.pair(value)[0]  # type: ignore[attr-defined]
            with set_trace(trace.parent):
                return self.bind(ref, primal, *places, index=index)
        kind, how = {
            "jvp": (f"{self.verb} operation with a differentiated value", "non-differentiated"),
            "batch": (f"{self.verb} operation with vmapped value", "unbatched"),
        }.get(trace.kind, (f"{self.verb} operation with a transformed value", "outer"))
        to = {"jvp": "of the differentiated", "batch": "to the vmapped"}.get(trace.kind, "of the")
        article = "an" if how[0] in "aeiou" else "a"
        raise ValueError(
            f"performing {kind} on {article} {how} array reference of type {ref.aval}. Move the "
            f"array reference to be an argument {to} function?" + at_user_line()
        )


class Swap(_Writes):
    """Write a value to a part of a reference; the result is what was there before."""

    name = "swap"
    effect, verb = WriteEffect, "a set/swap"

    def on_cell(self, cell, operands, *, index):
        value, *places = operands
        before = get_p.on_cell(cell, places, index=index)
        cell.write(index, places, value)
        return before

    def format(self, eqn, names, typed):
        ref, value, *operands = eqn.invars
        place = (
            f"{names(ref)}[{shown(eqn.params['index'], ref.aval.shape, [*map(names, operands)])}]"
        )
        if eqn.outvars[0].dropped:
            return f"{place} <- {names(value)}"
        return f"{typed}, {place} <- {place}, {names(value)}"


class AddUpdate(_Writes):
    """Add a value to a part of a reference."""

    name = "addupdate"
    effect, verb = AccumEffect, "an addupdate"

    def abstract(self, ref, value, *operands, index):
        return []

    def on_cell(self, cell, operands, *, index):
        value, *places = operands
        cell.write(index, places, value, adds=True)
        return []

    def format(self, eqn, names, typed):
        ref, value, *operands = eqn.invars
        place = shown(eqn.params["index"], ref.aval.shape, [*map(names, operands)])
        return f"{names(ref)}[{place}] += {names(value)}"


class MakesRef(Primitive):
    """An operation whose result is a reference."""

    effectful = True

    def bind(self, *args: Any, **params: Any) -> Ref:
        trace = home(context.trace)
        with set_trace(trace):
            if stages_refs(trace):
                return StagedRef.of(trace, trace.process(self, args, params)._var)
            return Cell.of(trace, *self.first(*args, **params))

    def first(self, *args: Any, **params: Any) -> tuple[Any, AbstractRef]:
        """The value that the reference holds first, and its type."""
        raise self._missing("first")


class NewRef(MakesRef):
    """A reference that holds a value."""

    name = "new_ref"

    def abstract(self, x, *, kind, memory_space):
        return AbstractRef(x, memory_space, kind)

    def first(self, x, **params):
        return x, self.abstract(aval_of(x), **params)


class EmptyRef(MakesRef):
    """A reference without a first value: it holds zeros."""

    name = "empty_ref"

    def abstract(self, *, memory_space, ty):
        return AbstractRef(ty, memory_space)

    def first(self, *, ty, **params):
        return zeros(ty), self.abstract(ty=ty, **params)


class Freeze(RefPrimitive):
    """The last value of a reference."""

    name = "freeze"
    effect, verb = ReadEffect, "a freeze"

    def abstract(self, ref):
        return [ref.inner_aval]

    def on_cell(self, cell, operands):
        return [cell.value()]


class FreeRef(RefPrimitive):
    """The end of a reference."""

    name = "free_ref"
    effect, verb = WriteEffect, "a free"

    def abstract(self, ref):
        return []

    def on_cell(self, cell, operands):
        return []


get_p, swap_p, addupdate_p = Get(), Swap(), AddUpdate()
new_ref_p, empty_ref_p, freeze_p, free_ref_p = NewRef(), EmptyRef(), Freeze(), FreeRef()


class RefIndexer:
    """The property `at` of a reference: index it."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref | TransformedRef):
        self.ref = ref

    def __getitem__(self, index: Any) -> TransformedRef:
        return TransformedRef(self.ref, *read_index(self.ref.shape, index))


class TransformedRef:
    """A part of a reference: `ref.at[1:3]`."""

    __slots__ = ("index", "operands", "ref")

    def __init__(self, ref: Ref | TransformedRef, index: Index, operands: Sequence[Any]):
        self.ref, self.index, self.operands = ref, index, operands

    @property
    def shape(self) -> tuple[int, ...]:
        return selected_shape(self.ref.shape, self.index, [*map(shape_of, self.operands)])

    dtype = property(lambda self: self.ref.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    aval = property(lambda self: self.ref.aval.update(shape=self.shape))
    at = property(RefIndexer)
    addupdate = Ref.addupdate

    @entry_point
    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    @entry_point
    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def __repr__(self) -> str:
        return f"TransformedRef<{self.aval}>"


def _read(ref: Ref | TransformedRef, index: Index, operands: Sequence[Any]) -> Any:
    if isinstance(ref, TransformedRef):
        return select(_read(ref.ref, ref.index, ref.operands), index, operands)
    return get_p.bind(ref, *operands, index=index)[0]


def _write(ref: Any, index: Index, operands: Sequence[Any], value: Any, prim: RefPrimitive) -> Any:
    if isinstance(ref, TransformedRef):
        if index and prim is addupdate_p:
            value = add_any(_read(ref, index, operands), value)
        if index:
            value = replace(_read(ref, (), ()), index, operands, value)
        return _write(ref.ref, ref.index, ref.operands, value, swap_p if index else prim)
    return prim.bind(ref, value, *operands, index=index)


def _prepared(ref: Any, index: Any, value: Any, name: str) -> tuple[Index, list[Any], Any]:
    """An index and a value that fits the part that it selects."""
    if not isinstance(ref, (Ref, TransformedRef)):
        _require_usable(ref, name)
    entries, operands = read_index(ref.shape, index)
    if not isinstance(value, Array):
        value = owned(value, aval_of(value).weak_type)
    found = value.aval
    if found.dtype != ref.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value dtype: {found.dtype}."
            + at_user_line()
        )
    expected = selected_shape(ref.shape, entries, [*map(shape_of, operands)])
    if found.shape != expected:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {expected}. "
            f"Value shape: {found.shape}. Write jnp.broadcast_to(value, {expected})."
            + at_user_line()
        )
    if found.weak_type:
        value = convert_element_type(value, found.dtype)
    return entries, operands, value


def get(ref: Ref | TransformedRef, idx: Any = None) -> Any:
    """Read a reference: `ref[idx]`.

    Args:
        ref: a reference.
        idx: integers, slices and arrays of integers; everything by default.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> get(namoo.new_ref(jnp.arange(3)), 1)
        Array(1, dtype=int32)
    """
    if not isinstance(ref, (Ref, TransformedRef)):
        _require_usable(ref, "get")
    return _read(ref, *read_index(ref.shape, idx))


def swap(ref: Ref | TransformedRef, idx: Any, value: Any) -> Any:
    """Write to a reference, and return what was there before.

    Args:
        ref: a reference.
        idx: integers, slices and arrays of integers; None for everything.
        value: an array of the shape and dtype of what the index selects.

    Raises:
        ValueError: the shape or the dtype is another one, or an index is out of bounds.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> ref = namoo.new_ref(jnp.arange(3))
        >>> swap(ref, 1, 10), ref[...]
        (Array(1, dtype=int32), Array([ 0, 10,  2], dtype=int32))
    """
    index, operands, value = _prepared(ref, idx, value, "swap")
    before = _read(ref, index, operands) if isinstance(ref, TransformedRef) else None
    (out,) = _write(ref, index, operands, value, swap_p)
    return out if before is None else before


def set(ref: Ref | TransformedRef, idx: Any, value: Any) -> None:
    """Write to a reference: `ref[idx] = value`; see `swap`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> ref = namoo.new_ref(jnp.arange(3))
        >>> set(ref, 1, 10)
        >>> ref
        Ref([ 0, 10,  2], dtype=int32)
    """
    index, operands, value = _prepared(ref, idx, value, "swap")
    trace = home(context.trace)
    if isinstance(ref, Cell) and owns(trace, ref) and not ref._freed:
        with set_trace(trace):  # without reading what was there
            ref.write(index, operands, value)
        return
    _write(ref, index, operands, value, swap_p)


def addupdate(ref: Ref | TransformedRef, idx: Any, x: Any) -> None:
    """Add to a reference: `ref[idx] += x`, as one operation.

    Args:
        ref: a reference.
        idx: integers, slices and arrays of integers; None for everything.
        x: an array of the shape and dtype of what the index selects.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> ref = namoo.new_ref(jnp.arange(3))
        >>> addupdate(ref, 1, 10)
        >>> ref
        Ref([ 0, 11,  2], dtype=int32)
    """
    index, operands, x = _prepared(ref, idx, x, "addupdate")
    _write(ref, index, operands, x, addupdate_p)


@entry_point
def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Make a mutable reference to a copy of an array.

    Args:
        init_val: the first value.
        memory_space: has no effect.
        kind: "no_grad_no_remat" for a reference that a differentiated function may write to: it
            takes the values without their derivatives.

    Returns:
        a reference: `ref[...]` reads it, `ref[...] = x` writes to it.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> total = namoo.new_ref(0.0)
        >>> @namoo.jit
        ... def count(x):
        ...     total[...] += jnp.sum(x)
        >>> count(jnp.ones(3)), count(jnp.ones(4))
        (None, None)
        >>> total
        Ref(7., dtype=float32)
    """
    if isinstance(init_val, (Ref, TransformedRef)):
        raise TypeError(
            "new_ref takes an array, and was given a mutable reference: write new_ref(ref[...])."
            + at_user_line()
        )
    try:
        aval = aval_of(init_val)
    except TypeError:
        raise TypeError(
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of "
            f"type {type(init_val)} and was passed to new_ref at position 0." + at_user_line()
        ) from None
    if not isinstance(init_val, Array):
        init_val = owned(init_val, aval.weak_type)
    return new_ref_p.bind(init_val, kind=kind, memory_space=memory_space)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a reference whose value is not given yet: write to it first.

    Args:
        ty: something with a shape and a dtype, such as a `ShapeDtypeStruct`.
        memory_space: has no effect.

    Example:
        >>> import namoo
        >>> ref = empty_ref(namoo.ShapeDtypeStruct((), "float32"))
        >>> ref[...] = 1.0
        >>> ref
        Ref(1., dtype=float32)
    """
    return empty_ref_p.bind(memory_space=memory_space, ty=ShapedArray(ty.shape, ty.dtype))


def freeze(ref: Ref) -> Any:
    """The last value of a reference, which must not be used any more.

    Example:
        >>> import namoo
        >>> freeze(namoo.new_ref(1.0))
        Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(ref, Ref):
        _require_usable(ref, "freeze")
    return freeze_p.bind(ref)[0]


def free_ref(ref: Ref) -> None:
    """End a reference: its memory may be used for something else.

    Raises:
        ValueError: the reference was freed before.

    Example:
        >>> import namoo
        >>> free_ref(namoo.new_ref(1.0))
    """
    free_ref_p.bind(ref)
    ref._freed = True
