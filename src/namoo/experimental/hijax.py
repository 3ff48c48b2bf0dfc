"""`namoo.experimental.hijax`: operations that are defined by other ones, with their own rules.

An operation on arrays is a `HiPrimitive`: it is one equation in a program, has its own derivative,
and is compiled as the operations that `to_lojax` consists of. Values that are not arrays
(`HiType`, `MutableHiType`) can be described, and operations that make or read them are evaluated
where they are called; they are not part of programs.

Example:
    >>> import namoo
    >>> class Cube(HiPrimitive):
    ...     def abstract_eval(self, aval):
    ...         return aval, set()
    ...     def to_lojax(self, x):
    ...         return x * x * x
    ...     def jvp(self, primals, tangents):
    ...         return self.bind(*primals), 3 * primals[0] ** 2 * tangents[0]
    >>> cube = Cube("cube").bind
    >>> print(namoo.jit(cube)(2.0), namoo.grad(cube)(2.0))
    8.0 12.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from namoo.core.avals import AbstractValue, ShapedArray, aval_handlers
from namoo.core.primitive import Zero
from namoo.extend.primitive import Primitive
from namoo.interpreters.ad import instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]
__dir__ = __all__.copy


class HiPrimitive(Primitive):
    """An operation that is defined by a class: the methods are its rules.

    Args:
        name: its name in programs.

    A subclass defines `abstract_eval`, which returns the type of the result and a set of effects,
    and `to_lojax`, which computes the result with other operations; `jvp` and `transpose` if it is
    differentiated. A subclass that defines `impl` is evaluated by it wherever it is called.
    """

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether the operation is replaced by others before it is compiled."""
        return True

    def is_effectful(self, params: dict[str, Any]) -> bool:
        """Whether the operation has side effects."""
        return False

    def to_lojax(self, *operands: Any, **params: Any) -> Any:
        """Compute the result with other operations."""
        raise TypeError(f"{type(self).__name__} must define to_lojax, to be computed.")

    def lowering(self, platform: str) -> Callable[..., Any]:
        def rule(context: Any, *operands: Any, **params: Any) -> list[Any]:
            out = self.to_lojax(*operands, **params)
            return list(out) if self.multiple_results else [out]

        return rule

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the operation."""
        if self.impl is not None:
            return self.impl(*operands, **params)
        return super().bind(*operands, **params)


class HiType(AbstractValue):
    """The type of values that consist of arrays; a subclass defines which ones."""

    is_high = True
    has_qdd = False


class MutableHiType(AbstractValue):
    """The type of values that can be changed, and that consist of arrays."""

    is_high = True
    has_qdd = True


class AvalQDD(NamedTuple):
    """A type, and the arrays that a value of this type currently consists of."""

    aval: Any
    qdd: Any


class AvalMutableQDD:
    """A type, and the arrays that the value consists of at this point of a program.

    Attributes:
        aval: the type.
        mutable_qdd: the arrays that the value consists of.
    """

    def __init__(self, aval: Any, mutable_qdd: Any):
        self.aval = aval
        self.mutable_qdd = mutable_qdd


class aval_method:
    """A method that tracers of a type have; it is given the tracer.

    Args:
        fun: the function.
    """

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun


class aval_property:
    """A property that tracers of a type have.

    Args:
        fget: the function of the tracer that computes it.
    """

    def __init__(self, fget: Callable[[Any], Any]):
        self.fget = fget


class _EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect: type) -> None:
        """Add a class of effects."""
        self.types.add(effect)

    def contains(self, effect: Any) -> bool:
        """Whether an effect belongs to one of the classes."""
        return isinstance(effect, tuple(self.types))


control_flow_allowed_effects = _EffectTypes()
"""The effects that the branches and bodies of control flow may have."""


def register_hitype(cls: type, typeof: Callable[[Any], Any]) -> None:
    """Give the values of a class a type.

    Args:
        cls: the class.
        typeof: the function from a value to its type; `namoo.typeof` calls it.

    Example:
        >>> import namoo
        >>> class Box: ...
        >>> class BoxType(HiType): ...
        >>> register_hitype(Box, lambda box: BoxType())
        >>> type(namoo.typeof(Box())).__name__
        'BoxType'
    """
    aval_handlers[cls] = typeof
