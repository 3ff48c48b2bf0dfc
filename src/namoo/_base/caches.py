"""The register of caches.

Everything the library remembers is declared here: a name, a bound, and what decides an entry.
`clear_caches` and `memory_report` (see `namoo.memo.caches`) walk the register, and the page
`docs/caches.md` is generated from the declarations, so their arguments are literals.

A function declares its cache with `cached`, a module-level table with `register`.  State that
belongs to one program and dies with it is stored in `Jaxpr.cache`: a function declares it with
`per_program`, other code declares the key with `program_key`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Cache(NamedTuple):
    """A declared cache.

    Attributes:
        name: the room and what is remembered, as in "api.jit programs".
        bound: the largest number of entries, or the reason why there cannot be many.
        keyed_by: what decides an entry.
        kept: whether `clear_caches` leaves it alone, because its entries are facts that stay true.
        holder: the object that holds the entries, for the size; None where it cannot be reached.
        entries: returns the number of entries.
        clear: removes all entries.
    """

    name: str
    bound: int | str
    keyed_by: str
    kept: bool
    holder: Any
    entries: Callable[[], int]
    clear: Callable[[], object]


caches: dict[str, Cache] = {}
"""All caches of the modules that were imported, by name."""

program_keys: dict[str, str] = {}
"""The keys of `Jaxpr.cache`: what else decides an entry, by the first part of the key."""


def cached(name: str, *, bound: int | str, keyed_by: str, kept: bool = False) -> Callable[[F], F]:
    """Declare a function whose results are remembered by its arguments.

    Args:
        name: the name in the register.
        bound: the largest number of entries; the least recently used one is evicted.  A string says
          why the number is limited anyway, and nothing is evicted.
        keyed_by: what the arguments are.
        kept: whether the entries survive `clear_caches`.

    Returns:
        A decorator.  The decorated function is what `functools.lru_cache` makes.
    """

    def wrap(function: F) -> F:
        remembered: Any = functools.lru_cache(bound if type(bound) is int else None)(function)
        count = lambda: remembered.cache_info().currsize  # noqa: E731
        caches[name] = Cache(name, bound, keyed_by, kept, remembered, count, remembered.cache_clear)
        return remembered

    return wrap


def register(
    name: str,
    table: T,
    *,
    bound: int | str,
    keyed_by: str,
    kept: bool = False,
    entries: Callable[[], int] | None = None,
    clear: Callable[[], object] | None = None,
) -> T:
    """Declare a table that a module fills itself.

    Args:
        name: the name in the register.
        table: a dictionary, list or set; None where `entries` and `clear` reach the entries.
        bound: the largest number of entries, or the reason why there cannot be many.  The owner of
          the table enforces it.
        keyed_by: what decides an entry.
        kept: whether the entries survive `clear_caches`.
        entries: counts the entries; the default is the length of the table.
        clear: removes all entries; the default clears the table.

    Returns:
        The table.
    """
    holder: Any = table
    caches[name] = Cache(
        name, bound, keyed_by, kept, holder, entries or holder.__len__, clear or holder.clear
    )
    return table


_MISSING: Any = object()


def program_key(key: str, *, keyed_by: str = "") -> str:
    """Declare a key of `Jaxpr.cache`, whose entries die with their program.

    Args:
        key: the key, or the first part of it.
        keyed_by: what else is part of the key.

    Returns:
        The key.
    """
    program_keys[key] = keyed_by
    return key


def derived(jaxpr: Any, key: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` derives from a program; it is made once and kept with the program.

    Args:
        jaxpr: the program, a `Jaxpr`.
        key: a key that `program_key` declared, or a tuple that begins with one.
        make: a function without arguments.
    """
    value = jaxpr.cache.get(key, _MISSING)
    if value is _MISSING:
        value = jaxpr.cache[key] = make()
    return value


def per_program(key: str, *, keyed_by: str = "") -> Callable[[F], F]:
    """Declare a function of a program whose result is kept with the program.

    The function takes a `Jaxpr` or a `ClosedJaxpr` (whose constants must not matter), and hashable
    arguments, by position.

    Args:
        key: the name in the register.
        keyed_by: what the other arguments are.

    Returns:
        A decorator.
    """
    program_keys[key] = keyed_by

    def wrap(function: F) -> F:
        def find(program: Any, *args: Any) -> Any:
            found = (key, *args) if args else key
            value = program.cache.get(found, _MISSING)
            if value is _MISSING:
                value = program.cache[found] = function(program, *args)
            return value

        return functools.update_wrapper(find, function)  # type: ignore[return-value]

    return wrap
