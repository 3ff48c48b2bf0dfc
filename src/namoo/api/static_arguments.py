"""Static and donated arguments of `jit`, by number and by name.

Static arguments are part of the program, so they must be known and hashable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo._base.short import short
from namoo.core.array import Array
from namoo.core.trace import Tracer
from namoo.transforms.arguments import argnums_tuple, argument_names, function_name, signature


def require_hashable(fun: Callable, static: Sequence[tuple[int | str, Any]]) -> None:
    """Refuse static arguments that cannot decide which program is used.

    Args:
        fun: The function that is compiled.
        static: The number or the keyword of each static argument, and its value.
    """
    for name, value in static:
        if isinstance(value, Tracer):
            remedy = value.static_remedy() or "Mark it static there, too."
            raise _refused(
                fun, name, f"is traced by a function outside. {value.origin()}\n{remedy}"
            )
        if isinstance(value, Array):
            raise _refused(fun, name, "is an array. Arrays are data: do not mark it static.")
        try:
            hash(value)
        except TypeError:
            raise _refused(
                fun,
                name,
                f"is {short(value)} of type {type(value).__name__}. Static arguments decide which "
                "program is used, so they need __hash__ and __eq__: pass a tuple for a list, a "
                "frozen dataclass for a dict; or do not mark it static.",
            ) from None


def _refused(fun: Callable, name: int | str, why: str) -> ValueError:
    if isinstance(name, int):
        name = argument_names(fun, [()] * (name + 1))[name]
    return ValueError(
        "Non-hashable static arguments are not supported in a jit function: argument "
        f"{name!r} of {function_name(fun)} {why}"
    )


def chosen_arguments(
    fun: Callable, what: str, nums: Any, names: Any
) -> tuple[tuple[int, ...], frozenset]:
    """Complete `argnums` from `argnames` and vice versa, using the signature."""
    both = nums is not None and names is not None
    nums = () if nums is None else argnums_tuple(nums, f"{what}_argnums")
    names = () if names is None else (names,) if isinstance(names, str) else names
    if not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"{what}_argnames must be a string or strings, got {names!r}.")
    names = tuple(names)
    if not nums and not names:
        return (), frozenset()
    sig = signature(fun)
    if sig is None:
        if names and not nums:
            raise ValueError(
                f"Getting the signature of function {function_name(fun)} failed. Pass "
                f"{what}_argnums instead of {what}_argnames."
            )
        return nums, frozenset(names)
    parameters = list(sig.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for i in nums:
        if not variadic and not -len(positional) <= i < len(positional):
            raise ValueError(
                f"jitted function {function_name(fun)} has {what}_argnums={nums}, but only "
                f"{len(positional)} positional arguments."
            )
    for name in names:
        p = sig.parameters.get(name)
        if p is not None and p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            raise ValueError(
                f"jitted function {function_name(fun)} has {what}_argnames={name!r}, but that "
                f"argument is given by position only. Use {what}_argnums."
            )
        if not keywords and p is None:
            raise ValueError(
                f"jitted function {function_name(fun)} has invalid argname {name!r} in "
                f"{what}_argnames. Function does not take these args. Its arguments are "
                f"{list(sig.parameters)}."
            )
    all_nums, all_names = set(nums), set(names)
    for i, p in enumerate([] if both else positional):
        if (i in nums or i - len(positional) in nums) and p.kind is p.POSITIONAL_OR_KEYWORD:
            all_names.add(p.name)
        if p.name in names:
            all_nums.add(i)
    return tuple(sorted(all_nums)), frozenset(all_names)


def refuse_overlap(
    nums: Sequence[int],
    names: frozenset,
    donated_nums: Sequence[int],
    donated_names: frozenset,
) -> None:
    """Refuse arguments that are both static and donated: a static one has no memory to give."""
    for kind, both in (
        ("argnames", names & donated_names),
        ("argnums", set(nums) & set(donated_nums)),
    ):
        if both:
            raise ValueError(
                f"static_{kind} and donate_{kind} cannot intersect: {sorted(both)} are in both. A "
                "static argument is a Python value of the program; donate arguments that are "
                "arrays."
            )
