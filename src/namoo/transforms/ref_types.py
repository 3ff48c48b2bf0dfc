"""The types of references, and the effects of programs that use them."""

from __future__ import annotations

from typing import Any

from namoo.core.avals import AbstractValue, ShapedArray
from namoo.core.jaxpr import Effect


class AbstractRef(AbstractValue):
    """The type of a reference.

    Args:
        inner_aval: the type of the value that it holds.
        memory_space: has no effect.
        kind: "no_grad_no_remat" for one that takes values without their derivatives; or None.
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    vma: frozenset = frozenset()
    weak_type = False

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: str | None = None):
        self.inner_aval = inner_aval.strong()
        self.memory_space = memory_space
        self.kind = kind

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def update(self, **changes: Any) -> AbstractRef:
        """A copy with some fields of the inner type changed."""
        return AbstractRef(self.inner_aval.update(**changes), self.memory_space, self.kind)

    def tangent(self) -> ShapedArray:
        """The type of the derivative of what it holds."""
        return self.inner_aval.tangent()

    def str_short(self, short_dtypes: bool = True) -> str:
        """The type in few characters: `Ref{f32[3]}`."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AbstractRef)
            and self.inner_aval == other.inner_aval
            and self.kind == other.kind
        )

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.kind))


class RefEffect(Effect):
    """Something that an equation does with a reference, which is the variable `input`."""

    __slots__ = ("input",)

    def __init__(self, input: Any):
        super().__init__()
        self.input = input

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.input is self.input

    def __hash__(self) -> int:
        return hash((self.name, id(self.input)))

    def __repr__(self) -> str:
        return f"{self.name}({self.input})"


class ReadEffect(RefEffect):
    """It reads the reference."""

    __slots__ = ()


class WriteEffect(RefEffect):
    """It writes to the reference."""

    __slots__ = ()


class AccumEffect(RefEffect):
    """It adds to the reference."""

    __slots__ = ()
