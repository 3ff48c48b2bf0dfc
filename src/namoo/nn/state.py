"""What a layer remembers from call to call, outside of it: `State`.

A layer that counts or averages declares a `StateIndex` with the value it starts from.
`make_with_state` takes these values out of a new model and puts them into a `State`, a tree of
arrays by the path of the layer. The state is given to the model and returned by it:

    model, state = nn.make_with_state(Model)(key=key)
    y, state = model(x, state)
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from namoo import tree
from namoo._module.module import Module
from namoo._module.update import put_path, walk
from namoo._tree.keys import DictKey
from namoo._tree.registry import register_pytree_node
from namoo.core.avals import aval_of
from namoo.paths import path_string


class StateIndex(Module):
    """The place of a layer's value in a `State`.

    Args:
      init: the value to start from, a tree of arrays.
      name: the place, which `make_with_state` sets.
    """

    init: Any
    name: str | None = None


class StatefulLayer(Module):
    """A layer that is called with a state and returns one: `y, state = layer(x, state)`."""

    @abc.abstractmethod
    def __call__(self, x: Any, state: Any, *, key: Any = None) -> tuple[Any, Any]:
        """The result for one example, and the new state."""

    def is_stateful(self) -> bool:
        """Whether the layer needs a state; a container of layers may not."""
        return True


class State:
    """Values that layers remember, by place. It cannot be changed: `set` makes a new one.

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
        """The value of a layer.

        Args:
          index: the layer's index.

        Returns:
          A tree of arrays.

        Raises:
          ValueError: if the model was made without `make_with_state`, or the state is of another.
        """
        return self._values[self._check(index)]

    def set(self, index: StateIndex, value: Any) -> State:
        """The state with another value for a layer.

        Args:
          index: the layer's index.
          value: a tree of arrays of the same structure, shapes and dtypes as before.

        Returns:
          The new state.

        Raises:
          ValueError: if the value is of another kind, or there is no such place.
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
                "this model has no place in a state yet. Make it with "
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
    """Turns a model's constructor into one that returns the model and its state.

    Args:
      make: a class, or a function that makes a model.

    Returns:
      A function of the same arguments that returns `(model, state)`.

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
                # One layer in two places has one state.
                same = tuple(id(leaf) for leaf in tree.leaves(part.init))
                name = names.setdefault(same, path_string(path))
                values.setdefault(name, part.init)
                model = put_path(model, path, StateIndex(None, name))
        return model, State(values)

    return made
