"""Types of values that differ between devices."""

from __future__ import annotations

from typing import Any

from namoo.core.avals import ShapedArray


class VaryingArray(ShapedArray):
    """Shape, dtype and weak type of a value inside `shard_map`, and the axes it varies along."""

    __slots__ = ("vma",)

    def __init__(self, aval: ShapedArray, vma: frozenset):
        super().__init__(aval.shape, aval.dtype, aval.weak_type)
        self.vma = vma

    def update(self, **changes: Any) -> ShapedArray:
        return VaryingArray(super().update(**changes), changes.get("vma", self.vma))

    def tangent(self) -> ShapedArray:
        aval = super().tangent()
        return self if aval is self else VaryingArray(aval, self.vma)

    def strong(self) -> ShapedArray:
        return VaryingArray(super().strong(), self.vma)

    def str_short(self, short_dtypes: bool = True) -> str:
        names = f"{{V:{','.join(sorted(map(str, self.vma)))}}}" if self.vma else ""
        return super().str_short(short_dtypes) + names
