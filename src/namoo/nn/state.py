"""`State`: what layers remember from call to call, stored outside of the layers.

A layer that counts or averages declares a `StateIndex` with its initial value. `make_with_state`
moves these values from a new model into a `State`, a tree of arrays by the path of the layer. The
model takes the state and returns a new one:

    model, state = nn.make_with_state(Model)(key=key)
    y, state = model(x, state)
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from namoo import tree
from namoo.core.avals import aval_of
from namoo.module.module import Module
from namoo.module.update import put_path, walk
from namoo.tree.keys import DictKey
from namoo.tree.paths import path_string
from namoo.tree.registry import register_pytree_node


class StateIndex(Module):
    """The key of a layer's value in a `State`.

    Args:
        init: the value to start from, a tree of arrays.
        name: the key, set by `make_with_state`.
    """

    init: Any
    name: str | None = None


class StatefulLayer(Module):
    """A layer that is called with a state and returns one: `y, state = layer(x, state)`."""

    @abc.abstractmethod
    def __call__(self, x: Any, state: Any, *, key: Any = None) -> tuple[Any, Any]:
        """Return the result for one example, and the new state."""

    def is_stateful(self) -> bool:
        """Return whether the layer needs a state; a container of layers may not."""
        return True


class State:
    """The values that layers remember, by key. It is immutable: `set` returns a new one.

    Example:
        >>> import namoo.numpy as jnp
        >>> index = StateIndex(None, "layers/0/count")
        >>> state = State({"layers/0/count": jnp.array(0)})
        >>> state.set(index, state.get(index) + 1)
        State({'layers/0/count': Array(1, dtype=int32, weak_type=True)})
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]):
        self._values = dict(values)

    def get(self, index: StateIndex) -> Any:
        """Return the value of a layer.

        Args:
            index: the layer's index.

        Returns:
            A tree of arrays.

        Raises:
            ValueError: if the model was made without `make_with_state`, or the state is of another.
        """
        return self._values[self._check(index)]

    def set(self, index: StateIndex, value: Any) -> State:
        """Return the state with another value for a layer.

        Args:
            index: the layer's index.
            value: a tree of arrays of the same structure, shapes and dtypes as before.

        Returns:
            The new state.

        Raises:
            ValueError: if the value has another type, or the state has no such key.
        """
        name = self._check(index)
        differences = tree.diff(self._values[name], value, compare_leaves=_type_words)
        if differences:
            from namoo.tree_util import mismatch

            raise mismatch(f"State.set: the new value of {name!r} is of another kind", differences)
        return State({**self._values, name: value})

    def _check(self, index: StateIndex) -> str:
        if index.name is None:
            raise ValueError(
                "this model has no state yet. Make it with "
                "`model, state = nn.make_with_state(Model)(…)`."
            )
        if index.name not in self._values:
            raise ValueError(
                f"the state has nothing for {index.name!r}, only for {list(self._values)}: it "
                "belongs to another model."
            )
        return index.name

    def __repr__(self) -> str:
        return f"State({self._values!r})"


def _type_words(a: Any, b: Any) -> str | None:
    x, y = aval_of(a), aval_of(b)
    if (x.shape, x.dtype) == (y.shape, y.dtype):
        return None
    return f"expected {x.str_short()}, found {y.str_short()}"


register_pytree_node(
    State,
    lambda s: (list(s._values.values()), tuple(s._values)),
    lambda names, values: State(dict(zip(names, values, strict=True))),
    lambda s: ([(DictKey(k), v) for k, v in s._values.items()], tuple(s._values)),
)


def make_with_state(make: Callable[..., Any]) -> Callable[..., tuple[Any, State]]:
    """Turn a model's constructor into one that returns the model and its state.

    Args:
        make: a class, or a function that makes a model.

    Returns:
        A function of the same arguments that returns `(model, state)`.

    Example:
        >>> import namoo
        >>> norm, state = namoo.nn.make_with_state(namoo.nn.BatchNorm)(2, axis_name="batch")
        >>> state
        State({'statistics': (Array(0, dtype=int32), Array([0., 0.], dtype=float32), Array([1., 1.],
        dtype=float32))})
    """

    def made(*args: Any, **kwargs: Any) -> tuple[Any, State]:
        model = make(*args, **kwargs)
        values: dict[str, Any] = {}
        names: dict[tuple[int, ...], str] = {}
        for path, part in list(walk(model)):
            if isinstance(part, StateIndex) and part.name is None:
                # A layer that occurs twice in a model has one state.
                same = tuple(id(leaf) for leaf in tree.leaves(part.init))
                name = names.setdefault(same, path_string(path))
                values.setdefault(name, part.init)
                model = put_path(model, path, StateIndex(None, name))
        return model, State(values)

    return made
