"""Bound methods of modules; they are trees with the module as their child."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from namoo.tree.keys import GetAttrKey
from namoo.tree.registry import register_pytree_node


class BoundMethod:
    """A method bound to its module.

    It can be passed to `jit`, `grad` and `vmap` as an argument: the arrays of the module are its
    leaves. As a static value it would carry the arrays into the program as constants.
    """

    __slots__ = ("__func__", "__self__", "__weakref__")

    def __init__(self, function: Callable, module: Any):
        self.__func__ = function
        self.__self__ = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundMethod) or self.__func__ is not other.__func__:
            return False
        return self.__self__ is other.__self__ or self.__self__ == other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, self.__self__))

    def __repr__(self) -> str:
        return f"<bound method {self.__func__.__qualname__} of {self.__self__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)


register_pytree_node(
    BoundMethod,
    lambda method: ((method.__self__,), method.__func__),
    lambda function, children: BoundMethod(function, children[0]),
    lambda method: (((GetAttrKey("__self__"), method.__self__),), method.__func__),
)


class Method:
    """The descriptor for a function in the body of a module's class."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.function = function

    @property
    def __isabstractmethod__(self) -> bool:
        return getattr(self.function, "__isabstractmethod__", False)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.function if instance is None else BoundMethod(self.function, instance)
