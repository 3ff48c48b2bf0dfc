"""Shardings in types: how the results of an operation are split, given how its operands are.

Each primitive may have a rule `sharded(*operands, **params)`. Its operands have a shape, and
`entries`: for each dimension the mesh axis or axes that split it, or None. It returns the entries
of the result (None where there are fewer than dimensions), or a list of them for several results,
and raises a `ShardingTypeError` where the operands do not decide it. `by_shape` is the rule of
elementwise operations, and of all that have no other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo._base.config import Scope, config
from namoo._base.source_context import at_user_line
from namoo.analysis.mesh_types import MeshArray, is_split
from namoo.core.avals import ShapedArray
from namoo.core.trace import context
from namoo.errors import ShardingTypeError

Entries = Sequence[Any]


class Undecided(Exception):
    """The compiler chooses the sharding of a result, whose type has none."""


class Operand(NamedTuple):
    """How an operand is split: an entry for each dimension."""

    shape: tuple[int, ...]
    dtype: Any
    entries: tuple[Any, ...]
    sizes: dict[Any, int]
    """The sizes of the mesh axes."""

    @property
    def spec(self) -> str:
        return f"P({', '.join(map(repr, self.entries))}{',' * (len(self.entries) == 1)})"

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        count = 1
        for name in axes_of(self.entries[dim]):
            count *= self.sizes[name]
        return count


def axes_of(entry: Any) -> tuple:
    """The mesh axes of one entry."""
    return entry if isinstance(entry, tuple) else () if entry is None else (entry,)


def refuse(message: str) -> Any:
    """Raise a `ShardingTypeError`."""
    raise ShardingTypeError(message + at_user_line())


def by_compiler() -> Scope:
    """A context in which the compiler chooses the shardings of all results."""
    return Scope("sharding_rules", "off")


def where_clear() -> Scope:
    """A context in which the compiler chooses the shardings that operands do not decide.

    Transposition works in it: the type of each cotangent is known, whatever its rule does.
    """
    return Scope("sharding_rules", "clear")


def on_mesh(prim: Any, avals: Sequence[Any], out: Any, params: dict) -> Any:
    """The types of the results of an operation with their mesh, given those of the operands."""
    outs = out if prim.multiple_results else [out]
    given = prim.holds_program or prim.sharded is True
    splits = None if given else _split(prim, avals, outs, params)
    vma = frozenset()
    if context.checked:
        vma = prim.varies(vma.union(*(a.vma for a in avals if isinstance(a, ShapedArray))), params)
    splits = splits or [None] * len(outs)
    typed = [_typed(given, a, vma, s) for a, s in zip(outs, splits, strict=True)]
    return typed if prim.multiple_results else typed[0]


def _typed(given: bool, aval: Any, vma: frozenset, split: Any) -> Any:
    # The types of a program that an operation holds have a mesh already.
    if given and type(aval) is MeshArray or not isinstance(aval, ShapedArray):
        return aval
    if split is None and not context.checked:
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type)
    return MeshArray(aval, vma, split)


def _split(prim: Any, avals: Sequence[Any], outs: Sequence[Any], params: dict) -> Any:
    """The shardings of the results; None where types have none."""
    splits = [a.split for a in avals if type(a) is MeshArray and a.split is not None]
    if not splits:
        return None
    first = next((a.split for a in avals if is_split(a)), None)
    if config.sharding_rules == "off" and (first is not None or splits):
        raise Undecided
    if first is None:
        return [splits[0].with_spec([None] * len(a.shape)) for a in outs]
    for other in splits:
        if other.mesh != first.mesh:
            refuse(
                f"{prim.name}: Mesh for all inputs should be equal. Got one mesh: {first.mesh} and "
                f"another mesh: {other.mesh}"
            )
    sizes = first.mesh.shape
    operands = [Operand(a.shape, a.dtype, entries_of(a), sizes) for a in avals]
    try:
        if prim.sharded is not None:
            found = prim.sharded(*operands, **params)
            listed = found if prim.multiple_results else [found]
        else:
            listed = [by_shape(prim.name, operands, a.shape) for a in outs]
        padded = [
            [*entries, *[None] * (len(a.shape) - len(entries))]
            for entries, a in zip(listed, outs, strict=True)
        ]
        _refuse_twice(prim, operands, padded)
        for entries, a in zip(padded, outs, strict=True):
            _require_divisible(prim, Operand(a.shape, a.dtype, tuple(entries), sizes))
    except (ShardingTypeError, ValueError):
        if config.sharding_rules == "clear":
            raise Undecided from None
        raise
    return [first.with_spec(entries) for entries in padded]


def entries_of(aval: Any) -> tuple:
    """How the dimensions of a type are split."""
    split = aval.split if type(aval) is MeshArray else None
    return (None,) * len(aval.shape) if split is None else split.spec.partitions


def _refuse_twice(prim: Any, operands: Sequence[Operand], found: Sequence[Entries]) -> None:
    for entries in found:
        names = list(itertools.chain(*map(axes_of, entries)))
        if len(names) > len(set(names)):
            specs = ", ".join(x.spec for x in operands)
            refuse(
                f"{prim.name} operation with operands of {specs} produces an illegally sharded "
                f"result: {tuple(entries)} splits two dimensions over one mesh axis. Change the "
                "sharding of an operand with reshard, or give out_sharding."
            )


def _require_divisible(prim: Any, out: Operand) -> None:
    for i, size in enumerate(out.shape):
        if size % (parts := out.parts(i)):
            raise ValueError(
                f"{prim.name}: sharding spec {out.spec} implies that array axis {i} is partitioned "
                f"{parts} times, but does not evenly divide the dimension size {size} of the "
                f"result, of shape {out.shape}. Gather the operands first with "
                f"namoo.sharding.reshard.{at_user_line()}"
            )


def by_shape(name: str, operands: Sequence[Operand], shape: tuple[int, ...]) -> Entries:
    """The entries of a result that has the shape of its operands, scalars aside.

    Each dimension is split as in the operands; where some do not split it, as in the others.
    """
    others = [x for x in operands if x.shape and x.shape != shape and any(x.entries)]
    if others:
        refuse(
            f"{name} has no rule for the sharding of its result, with operands split as "
            f"{', '.join(x.spec for x in operands)}. Reshard them to P(), or let the compiler "
            "choose: namoo.sharding.auto_axes(f, out_sharding=...)."
        )
    return agreed(name, [x for x in operands if x.shape == shape], len(shape))


def agreed(
    name: str,
    operands: Sequence[Operand],
    ndim: int,
    what: str = "got incompatible shardings for broadcasting",
) -> list[Any]:
    """The entries that operands of one shape agree in."""
    entries: list[Any] = [None] * ndim
    for x in operands:
        for i, entry in enumerate(x.entries):
            if entry is None or entries[i] == entry:
                continue
            if entries[i] is not None:
                _refuse_different(name, operands, what)
            entries[i] = entry
    names = list(itertools.chain(*map(axes_of, entries)))
    if len(names) > len(set(names)):
        _refuse_different(name, operands, what)
    return entries


def _refuse_different(name: str, operands: Sequence[Operand], what: str) -> None:
    specs = ", ".join(x.spec for x in operands)
    refuse(f"{name} {what}: {specs}. Change one with namoo.sharding.reshard(x, spec).")


def resized(what: str, x: Operand, shape: Sequence[int]) -> tuple:
    """The entries of an operand whose dimensions get other sizes, in place."""
    for i, (before, after) in enumerate(zip(x.shape, shape, strict=True)):
        if before != after and x.entries[i] is not None and after % x.parts(i):
            refuse(
                f"{what} on sharded dims is not supported where the size of the result, {after}, "
                f"is not divisible by the mesh axes {x.entries[i]!r}: dimension {i} of {x.shape}, "
                f"sharded as {x.spec}. Gather it first with namoo.sharding.reshard."
            )
    return x.entries


def without(entries: Sequence[Any], dims: Sequence[int]) -> list[Any]:
    """Entries without those of some dimensions."""
    return [entry for i, entry in enumerate(entries) if i not in dims]


def same(name: str, operands: Sequence[Operand], what: str) -> list[Any]:
    """The entries that all operands must have, those aside that nothing splits."""
    arrays = [x for x in operands if x.shape and any(x.entries)]
    if any(x.entries != arrays[0].entries for x in arrays):
        _refuse_different(name, arrays, what)
    return list(arrays[0].entries) if arrays else []


def unsplit(what: str, x: Operand, dims: Sequence[int]) -> tuple:
    """The entries of an operand, which must not be split along `dims`."""
    if any(x.entries[i] is not None for i in dims):
        refuse(
            f"{what}, but dimensions {list(dims)} of the operand of shape {x.shape} are, as "
            f"{x.spec}. Gather it first with namoo.sharding.reshard."
        )
    return x.entries


def reshaped(x: Operand, sizes: Sequence[int], dimensions: Any = None) -> list[Any]:
    """The entries of a reshaped operand.

    Dimensions of size 1 come and go. Apart from them one dimension may be cut into several, which
    its mesh axes split from the first on, or several joined to one, of which only leading ones may
    be split.
    """
    if not any(x.entries):
        return [None] * len(sizes)
    groups = list(_groups(x.shape, sizes))
    changed = [g for g in groups if [x.shape[i] for i in g[0]] != [sizes[j] for j in g[1]]]
    entries: list[Any] = [None] * len(sizes)
    clear = dimensions is None and len(changed) <= 1
    for ins, outs in groups:
        if len(ins) > 1 and len(outs) > 1:
            clear = False
        names = [name for i in ins for name in axes_of(x.entries[i])]
        split = [x.entries[i] is not None for i in ins]
        if not names:
            continue
        if split != sorted(split, reverse=True):
            clear = False
        if len(outs) == 0 or not clear:
            _refuse_reshape(x, sizes)
        for j in outs:
            left, own = sizes[j], []
            while names and left > 1:
                left, rest = divmod(left, x.sizes[names[0]])
                if rest:
                    _refuse_reshape(x, sizes)
                own.append(names.pop(0))
            entries[j] = tuple(own)
        if names:
            _refuse_reshape(x, sizes)
    if not clear:
        _refuse_reshape(x, sizes)
    return entries


def _groups(before: Sequence[int], after: Sequence[int]) -> Any:
    """Pairs of dimensions of both shapes, without those of size 1, that hold the same elements."""
    ins = [i for i, n in enumerate(before) if n != 1]
    outs = [j for j, n in enumerate(after) if n != 1]
    while ins or outs:
        left, right = [], []
        m = n = 1
        while not left or m != n:
            if (m <= n and ins) or not outs:
                left.append(ins.pop(0))
                m *= before[left[-1]]
            else:
                right.append(outs.pop(0))
                n *= after[right[-1]]
        yield left, right


def _refuse_reshape(x: Operand, sizes: Sequence[int]) -> None:
    refuse(
        "This reshape is not supported. Please specify the sharding of the output via the "
        f"`out_sharding` argument of lax.reshape. Got an operand of shape {x.shape}, sharded as "
        f"{x.spec}, and new sizes {tuple(sizes)}."
    )


def of_matrices(name: str, xs: Sequence[Operand], ranks: Sequence[int]) -> list[Any]:
    """The entries of the batch of an operation on stacks, whose matrices are not split."""
    for i, (x, rank) in enumerate(zip(xs, ranks, strict=True)):
        n = len(x.shape)
        what = f"Input {i} to {name} must be unsharded on non-batch dimensions"
        unsplit(what, x, range(n - rank, n))
    batches = [
        x._replace(entries=x.entries[: len(x.shape) - rank])
        for x, rank in zip(xs, ranks, strict=True)
    ]
    return same(name, batches, "needs the same batch sharding for all inputs, got")
