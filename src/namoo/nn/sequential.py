"""`Sequential`: layers that are called one after another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from namoo import random
from namoo._base.caches import cached
from namoo.module.module import Module
from namoo.nn.state import State, StatefulLayer


class Sequential(StatefulLayer):
    """Layers that are called one after another; plain functions are layers, too.

    A key is split, one part for each layer. If a layer has a state (see `StatefulLayer`), the call
    takes the state and returns it with the result.

    Args:
        layers: modules and functions of one argument.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> a, b = namoo.random.split(namoo.random.key(0))
        >>> net = namoo.nn.Sequential(
        ...     [namoo.nn.Linear(3, 4, key=a), namoo.nn.relu, namoo.nn.Linear(4, 2, key=b)]
        ... )
        >>> net(jnp.ones(3)).shape, len(net), net[1].__name__
        ((2,), 3, 'relu')
    """

    layers: tuple[Any, ...]

    def __init__(self, layers: Sequence[Callable[..., Any]], *more: Any):
        if more or not isinstance(layers, Iterable):
            raise TypeError("Sequential takes a list of layers: write Sequential([a, b]).")
        self.layers = tuple(layers)
        for i, layer in enumerate(self.layers):
            if not callable(layer):
                raise TypeError(f"layer {i} of Sequential is not a function: {layer!r}")

    def is_stateful(self) -> bool:
        """Return whether a layer needs a state."""
        return any(isinstance(x, StatefulLayer) and x.is_stateful() for x in self.layers)

    def __call__(self, x: Any, state: State | None = None, *, key: Any = None) -> Any:
        """Return the result of the last layer.

        Args:
            x: the input of the first layer.
            state: the state, if a layer has one.
            key: for layers that take one.

        Returns:
            The result; `(result, state)` if a state was given.

        Raises:
            ValueError: if a layer needs a state and there is none.
        """
        count = len(self.layers)
        keys = [None] * count if key is None else random.split(key, count)
        given = state is not None
        for i, (layer, k) in enumerate(zip(self.layers, keys, strict=True)):
            keyword = {"key": k} if _takes_key(type(layer)) else {}
            if isinstance(layer, StatefulLayer) and layer.is_stateful():
                if state is None:
                    raise ValueError(
                        f"layer {i}, a {type(layer).__name__}, needs a state: make the model with "
                        "`model, state = nn.make_with_state(Model)(…)`, and call it with "
                        "`y, state = model(x, state)`"
                    )
                x, state = layer(x, state, **keyword)
            else:
                x = layer(x, **keyword)
        return (x, state) if given else x

    def __getitem__(self, i: int | slice) -> Any:
        return Sequential(self.layers[i]) if isinstance(i, slice) else self.layers[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)


@cached("nn.sequential layers that take a key", bound=1024, keyed_by="class of the layer")
def _takes_key(cls: type) -> bool:
    """Return whether a layer is a module whose call takes `key=`; a plain function does not."""
    if not issubclass(cls, Module):
        return False
    parameters = inspect.signature(cls.__call__).parameters.values()  # type: ignore[operator]
    return any(p.name == "key" or p.kind is p.VAR_KEYWORD for p in parameters)


class Lambda(Module):
    """A layer that applies a function, and ignores its key.

    Args:
        fn: a function of one argument.

    Example:
        >>> Lambda(abs)(-3)
        3
    """

    fn: Callable[[Any], Any]

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Apply the function; `key` is not used."""
        return self.fn(x)
