"""JAX's tables of rules, as views: each rule is stored as an attribute of its primitive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any
from weakref import WeakSet

from namoo.core import primitive as own
from namoo.extend.core import primitives
from namoo.extend.primitive import Primitive
from namoo.memo import trace_cache


class Rules(MutableMapping[Any, Callable[..., Any]]):
    """One kind of rule of all primitives, as a dictionary by primitive.

    Args:
        kind: the name of the method of `core.primitive.Primitive`.

    Built-in primitives appear with their own rules, which can be replaced. Iteration visits the
    primitives of `namoo.extend.core.primitives` and those that were given a rule here.
    """

    def __init__(self, kind: str):
        self.kind = kind
        self.given: WeakSet[Any] = WeakSet()

    def __getitem__(self, prim: Any) -> Callable[..., Any]:
        if self._is_users(prim):
            rule = getattr(prim, f"{self.kind}_rule")
        else:
            rule = getattr(prim, self.kind) if self._has(prim) else None
        if rule is None:
            raise KeyError(prim)
        return rule

    def __setitem__(self, prim: Any, rule: Callable[..., Any]) -> None:
        if self._is_users(prim):
            setattr(prim, f"{self.kind}_rule", rule)
            if self.kind == "batch":
                prim.takes_axis = False  # the rule that it replaces may have taken the axis
        elif self._is_special(prim):
            raise TypeError(f"'{prim}' holds a program: its {self.kind} rule cannot be replaced.")
        else:
            setattr(prim, self.kind, rule)
            trace_cache.programs.clear()  # they were traced with the previous rule
        self.given.add(prim)

    def __delitem__(self, prim: Any) -> None:
        if prim not in self.given:
            raise KeyError(prim)
        if self._is_users(prim):
            setattr(prim, f"{self.kind}_rule", None)
        else:
            delattr(prim, self.kind)
            trace_cache.programs.clear()
        self.given.discard(prim)

    def __iter__(self) -> Iterator[Any]:
        found = {getattr(primitives, name) for name in dir(primitives) if name.endswith("_p")}
        return iter([prim for prim in found.union(self.given) if prim in self])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"<the {self.kind} rules of {len(self)} operations>"

    def _is_users(self, prim: Any) -> bool:
        if not isinstance(prim, own.Primitive):
            raise TypeError(
                f"Rules belong to operations (namoo.extend.core.Primitive), not {prim!r}."
            )
        return Primitive in type(prim).__mro__

    def _is_special(self, prim: Any) -> bool:
        return prim.higher_order or self.kind == "batch" and prim.takes_axis

    def _has(self, prim: Any) -> bool:
        """Return whether a built-in primitive has the rule, with JAX's signature."""
        if self._is_special(prim):
            return False
        if self.kind in vars(prim) or self.kind == "jvp" and prim.linear:
            return True
        return getattr(type(prim), self.kind) is not getattr(own.Primitive, self.kind)
