"""Operators and methods that arrive when the first of them is used.

They are written on everything above the core, and loading all of that takes longer than NumPy
itself; a program that only looks at trees or settings does without.
"""

from __future__ import annotations

from typing import Any

from namoo._lazy import load_module

# Python looks these up on the class, so each one needs a place holder there.
_SPECIAL = """
abs add and array bool complex contains copy deepcopy delitem divmod dlpack dlpack_device eq float
floordiv format ge getitem gt hash index int invert iter le len lshift lt matmul mod mul ne neg or
pos pow radd rand rdivmod repr rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift
rsub rtruediv rxor setitem str sub truediv xor
""".split()


def attach_late(cls: type) -> None:
    """Make a class load its operators and methods when they are first asked for."""
    for name in _SPECIAL:
        setattr(cls, f"__{name}__", _special(f"__{name}__"))
    setattr(cls, "__getattr__", _missing)  # noqa: B010


def settle(cls: type) -> None:
    """Take away the place holders that are left once everything has arrived."""
    for name, thing in list(vars(cls).items()):
        if thing is _missing or hasattr(thing, "is_late"):
            delattr(cls, name)


def _load() -> None:
    load_module("namoo.numpy._methods")


def _special(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _load()
        return getattr(type(self), name)(self, *args, **kwargs)

    method.is_late = True  # type: ignore[attr-defined]
    return method


def _missing(self: Any, name: str) -> Any:
    _load()
    return object.__getattribute__(self, name)
