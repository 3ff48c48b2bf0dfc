"""Types of values on a mesh: how they are split over its axes, and along which they differ."""

from __future__ import annotations

from typing import Any

from namoo.core.avals import ShapedArray


class MeshArray(ShapedArray):
    """Shape, dtype and weak type of a value on a mesh of devices.

    Args:
        aval: the type without the mesh.
        vma: the mesh axes along which the value differs, inside of a `shard_map` that tracks them.
        split: a `NamedSharding` over an abstract mesh, with an entry for each dimension, where the
            mesh has axes of type Explicit; otherwise None.
    """

    __slots__ = ("split", "vma")

    def __init__(self, aval: ShapedArray, vma: frozenset = frozenset(), split: Any = None):
        super().__init__(aval.shape, aval.dtype, aval.weak_type)
        self.vma = vma
        self.split = split

    @property
    def sharding(self) -> Any:
        return super().sharding if self.split is None else self.split

    def update(self, **changes: Any) -> ShapedArray:
        aval = super().update(**changes)
        split = self.split
        if "sharding" in changes:
            split = changes["sharding"]
        elif split is not None and aval.shape != self.shape:
            split = _resized(split, len(self.shape), len(aval.shape))
        return MeshArray(aval, changes.get("vma", self.vma), split)

    def tangent(self) -> ShapedArray:
        aval = super().tangent()
        return self if aval is self else MeshArray(aval, self.vma, self.split)

    def to_ct_aval(self) -> ShapedArray:
        """The type of cotangents: what is unreduced in one direction is reduced in the other."""
        aval = self.tangent()
        if self.split is None or not (self.split.spec.unreduced or self.split.spec.reduced):
            return aval
        spec = self.split.spec
        other = spec.update(unreduced=frozenset()).update(
            unreduced=spec.reduced, reduced=spec.unreduced
        )
        return MeshArray(aval, self.vma, self.split.with_spec(other))

    def strong(self) -> ShapedArray:
        return MeshArray(super().strong(), self.vma, self.split)

    def without_axis(self, dim: int) -> ShapedArray:
        """The type of an element along a dimension."""
        split = self.split
        if split is not None:
            entries = split.spec.partitions
            split = split.with_spec(split.spec.update(entries[:dim] + entries[dim + 1 :]))
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        return MeshArray(ShapedArray(shape, self.dtype, self.weak_type), self.vma, split)

    def str_short(self, short_dtypes: bool = True) -> str:
        text, marks = super().str_short(short_dtypes), []
        if self.vma:
            marks.append(f"V:{','.join(sorted(map(str, self.vma)))}")
        if self.split is not None:
            spec = self.split.spec
            if any(spec.partitions):
                sizes = zip(self.shape, spec.partitions, strict=True)
                dims = ",".join(f"{n}{_mark(entry)}" for n, entry in sizes)
                text = f"{text[: text.index('[')]}[{dims}]"
            marks += [f"U:{_listed(spec.unreduced)}"] if spec.unreduced else []
            marks += [f"R:{_listed(spec.reduced)}"] if spec.reduced else []
        return f"{text}{{{', '.join(marks)}}}" if marks else text

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and same_split(self, other)

    __hash__ = ShapedArray.__hash__


def _resized(split: Any, before: int, after: int) -> Any:
    """The split of a value with leading dimensions added or removed."""
    entries = split.spec.partitions
    if after < before:
        entries = entries[before - after :]
    elif after > before:
        entries = (*[None] * (after - before), *entries)
    return split.with_spec(split.spec.update(entries))


def _spec(split: Any) -> Any:
    """What two types must agree in: the axes that split a value; None if there are none."""
    if split is None:
        return None
    spec = split.spec
    return spec if any(spec.partitions) or spec.unreduced or spec.reduced else None


def same_split(a: Any, b: Any) -> bool:
    """Whether two types agree in the axes that split a value."""
    return _spec(getattr(a, "split", None)) == _spec(getattr(b, "split", None))


def is_split(aval: Any) -> bool:
    """Whether the type of a value says that mesh axes split it, or that it is (un)reduced."""
    return type(aval) is MeshArray and _spec(aval.split) is not None


def _listed(names: Any) -> str:
    listed = ",".join(sorted(map(str, names)))
    return listed if len(names) == 1 else f"({listed})"


def _mark(entry: Any) -> str:
    if entry is None:
        return ""
    return f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"
