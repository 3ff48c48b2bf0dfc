"""`namoo.extend.linear_util`: functions that carry the transformations they are called through.

A transformation takes the function to call, then its own parameters, then the arguments of the
call. It may store an auxiliary value, which is known once the function has run.

Example:
    >>> from namoo.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scaled(f, factor, *args):
    ...     return factor * f(*args)
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from namoo._base import config
from namoo._base.caches import register

__all__ = [
    "Store",
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]
__dir__ = __all__.copy

_NOTHING = object()


class StoreException(Exception):
    """A store was read before it was filled, or filled twice."""


class Store:
    """A cell for one value, which is filled once."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = _NOTHING

    @property
    def val(self) -> Any:
        """The stored value."""
        if self._value is _NOTHING:
            raise StoreException("The store is empty: its function has not been called yet.")
        return self._value

    def store(self, value: Any) -> None:
        """Fill the store."""
        if self._value is not _NOTHING:
            raise StoreException("The store is already full: its function was called twice.")
        self._value = value

    def reset(self) -> None:
        """Empty the store."""
        self._value = _NOTHING

    def __bool__(self) -> bool:
        return self._value is not _NOTHING


class WrappedFun:
    """A function, and the transformations that its calls go through, outermost first.

    Args:
        f: the function.
        f_transformed: the function with all transformations applied.
        transforms: pairs of a transformation and its parameters.
        stores: for each transformation its store, or None.
        params: keyword arguments that every call of `f` gets.
        debug_info: names of the function's arguments and results, for messages.
    """

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "debug_info", "in_type")

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, Any], ...],
        debug_info: Any,
    ) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.debug_info = debug_info
        self.in_type = None

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self, transform: Callable[..., Any], params: tuple[Any, ...], store: Store | None
    ) -> WrappedFun:
        """The function with one more transformation around it."""
        own = params if store is None else (store, *params)
        return WrappedFun(
            self.f,
            functools.partial(transform, self.f_transformed, *own),
            ((transform, params), *self.transforms),
            (store, *self.stores),
            self.params,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function through its transformations."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: tuple[Store | None, ...]) -> None:
        """Fill the stores with the values of an equal function that has been called."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def __repr__(self) -> str:
        steps = "".join(f"\n  {transform} {params}" for transform, params in self.transforms)
        return f"Wrapped function:{steps}\nCore: {self.__name__}"

    def __hash__(self) -> int:
        return hash((self.f, self.transforms, self.params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and (self.f, self.transforms, self.params) == (
            other.f,
            other.transforms,
            other.params,
        )


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """A `WrappedFun` without transformations.

    Example:
        >>> wrap_init(lambda x, y: x - y, {"y": 1}).call_wrapped(3)
        2
    """
    given = () if params is None else tuple(sorted(params.items()))
    start = functools.partial(f, **params) if params else f
    return WrappedFun(f, start, (), (), given, debug_info)


def transformation2(transform: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation `transform(f, *params, *args, **kwargs)`, as a function of `WrappedFun`."""

    @functools.wraps(transform)
    def apply(fun: WrappedFun, *params: Any) -> WrappedFun:
        return fun.wrap(transform, params, None)

    return apply


def transformation_with_aux2(
    transform: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation `transform(f, store, *params, *args)` that keeps an auxiliary value.

    The decorated function returns the transformed function, and a function without arguments that
    returns what was stored.
    """

    @functools.wraps(transform)
    def apply(fun: WrappedFun, *params: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        return fun.wrap(transform, params, store), lambda: store.val

    return apply


def _drive(generator: Any, f: Callable[..., Any]) -> Any:
    """Run a generator that yields the arguments of `f`, is sent its result, and yields its own."""
    args, kwargs = next(generator)
    outcome = generator.send(f(*args, **kwargs))
    generator.close()
    return outcome


def transformation(generate: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation written as a generator.

    It yields the arguments and keyword arguments of the function, is sent the result, and yields
    its own result.

    Example:
        >>> @transformation
        ... def negated(x):
        ...     yield -(yield (-x,), {})
        >>> negated(wrap_init(lambda x: x + 1)).call_wrapped(3)
        2
    """

    @transformation2
    @functools.wraps(generate)
    def apply(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _drive(generate(*args, **kwargs), f)

    return apply


def transformation_with_aux(
    generate: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation written as a generator that yields its result and an auxiliary value."""

    @transformation_with_aux2
    @functools.wraps(generate)
    def apply(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        result, aux = _drive(generate(*args, **kwargs), f)
        store.store(aux)
        return result

    return apply


def merge_linear_aux(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the auxiliary value that is set: True and the first one, or False and the second.

    Raises:
        StoreException: both are set, or neither is.
    """
    try:
        value = first()
    except StoreException:
        return False, second()
    try:
        second()
    except StoreException:
        return True, value
    raise StoreException("Both stores are full.")


_caches: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary] = register(
    "extend.linear_util caches of other libraries",
    weakref.WeakKeyDictionary(),
    bound="live functions",
    keyed_by="function, transformations, arguments, settings",
    entries=lambda: sum(map(len, _caches.values())),
    clear=lambda: [results.clear() for results in _caches.values()],
)


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Cache the results of `call(fun: WrappedFun, *args)` by function, arguments and settings.

    A result lives as long as its function. On a hit, the auxiliary values of the cached call are
    stored again.

    Args:
        call: a function of a `WrappedFun` and hashable arguments.
        explain: accepted for compatibility with JAX.
    """
    results: weakref.WeakKeyDictionary[Callable[..., Any], dict[Any, Any]]
    results = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        known = results.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args, config.config.trace_id())
        if key in known:
            result, stores = known[key]
            fun.populate_stores(stores)
        else:
            result = call(fun, *args)
            known[key] = result, fun.stores
        return result

    _caches[remembered] = results
    remembered.cache_clear = results.clear  # type: ignore[attr-defined]
    return remembered
