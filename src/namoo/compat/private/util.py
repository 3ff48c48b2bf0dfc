"""Small functions of sequences."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo._base.caches import register
from namoo.api_util import safe_map

__all__ = [
    "HashablePartial",
    "cache",
    "concatenate",
    "merge_lists",
    "partition_list",
    "safe_map",
    "safe_zip",
    "split_list",
    "subvals",
    "unzip2",
    "unzip3",
    "weakref_lru_cache",
    "wraps",
]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return `zip` as a list; the sequences must have the same length."""
    return list(zip(*args, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first and the second elements of pairs."""
    rows = list(pairs)
    return tuple(a for a, _ in rows), tuple(b for _, b in rows)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return the first, second and third elements of triples."""
    rows = list(triples)
    return tuple(tuple(row[i] for row in rows) for i in range(3))


def split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Split a list into parts of the given lengths, and the rest."""
    ends = [0, *itertools.accumulate(sizes)]
    parts = [list(items[a:b]) for a, b in itertools.pairwise(ends)]
    return [*parts, list(items[ends[-1] :])]


def partition_list(flags: Sequence[bool], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split a list into the elements whose flag is False and those whose flag is True."""
    rows = safe_zip(flags, items)
    return [x for flag, x in rows if not flag], [x for flag, x in rows if flag]


def merge_lists(flags: Sequence[bool], zeros: Sequence[Any], ones: Sequence[Any]) -> list[Any]:
    """Undo `partition_list`."""
    parts = iter(zeros), iter(ones)
    return [next(parts[bool(flag)]) for flag in flags]


def concatenate(sequences: Iterable[Iterable[Any]]) -> list[Any]:
    """Concatenate several sequences."""
    return list(itertools.chain.from_iterable(sequences))


def subvals(items: Sequence[Any], changes: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return a tuple with some elements replaced."""
    values = list(items)
    for index, value in changes:
        values[index] = value
    return tuple(values)


def wraps(
    wrapped: Callable[..., Any], namestr: str | None = None, docstr: str | None = None, **_: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Like `functools.wraps`, with patterns such as `vmap({fun})` for name and docstring."""

    def wrapper(fun: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(wrapped, "__name__", "<unnamed function>")
        fun = functools.wraps(wrapped)(fun)
        fun.__name__ = (namestr or "{fun}").format(fun=name)
        fun.__doc__ = (docstr or "{doc}").format(fun=name, doc=getattr(wrapped, "__doc__", ""))
        return fun

    return wrapper


_caches: weakref.WeakSet[Any] = register(
    "compat.private.util caches of other libraries",
    weakref.WeakSet(),
    bound="what the libraries ask for, 4096 results a function by default",
    keyed_by="arguments, settings",
    entries=lambda: sum(remembered.cache_info().currsize for remembered in _caches),
    clear=lambda: [remembered.cache_clear() for remembered in _caches],
)


def cache(
    max_size: int | None = 4096, **_: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Like `functools.lru_cache`, with the settings that tracing depends on in the key."""

    def wrapper(fun: Callable[..., Any]) -> Callable[..., Any]:
        from namoo._base.config import config

        @functools.lru_cache(max_size)
        def remembered(_: int, *args: Any, **kwargs: Any) -> Any:
            return fun(*args, **kwargs)

        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            return remembered(config.trace_id(), *args, **kwargs)

        _caches.add(remembered)
        call.cache_clear = remembered.cache_clear  # type: ignore[attr-defined]
        call.cache_info = remembered.cache_info  # type: ignore[attr-defined]
        return call

    return wrapper


def weakref_lru_cache(
    fun: Callable[..., Any], maxsize: int | None = 2048, **_: Any
) -> Callable[..., Any]:
    """Like `cache`, for functions whose first argument JAX would hold weakly."""
    return cache(maxsize)(fun)


class HashablePartial:
    """A `functools.partial` that is compared by function and arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def _key(self) -> Any:
        return self.f, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
