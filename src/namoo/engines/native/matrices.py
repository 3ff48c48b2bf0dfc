"""Operands of contractions as matrices in memory."""

from __future__ import annotations

import math

BLAS = {"f32": "sgemm", "f64": "dgemm", "c64": "cgemm", "c128": "zgemm"}


class Operand:
    """One side of a contraction as a matrix in memory: its strides in elements."""

    __slots__ = ("batch", "contract", "free")

    def __init__(self, shape: tuple[int, ...], batch, contract):
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        free = [i for i in range(len(shape)) if i not in batch and i not in contract]
        self.batch = [strides[i] for i in batch]
        self.free = _merged(shape, strides, free)
        self.contract = _merged(shape, strides, contract)

    @property
    def usable(self) -> bool:
        """Whether BLAS can read it where it lies."""
        if self.free is None or self.contract is None:
            return False
        return self.free <= 1 or self.contract <= 1


def _merged(shape, strides, axes) -> int | None:
    """The stride of several axes that are one in memory; 0 for a single element."""
    axes = [i for i in axes if shape[i] > 1]
    for i, j in zip(axes[:-1], axes[1:], strict=True):
        if strides[i] != strides[j] * shape[j]:
            return None
    return strides[axes[-1]] if axes else 0
