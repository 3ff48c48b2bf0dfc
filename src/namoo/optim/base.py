"""The protocol: a transformation of gradients is a pair of functions, `init` and `update`.

    state = tx.init(params)
    updates, state = tx.update(gradients, state, params)
    params = apply_updates(params, updates)

Everything in `namoo.optim` is such a pair, or makes one from others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from namoo import numpy as jnp
from namoo import tree
from namoo._base.hints import OPTIMISER_ATTRIBUTES, attribute_message
from namoo._base.short import short
from namoo._base.source_context import entry_point, hide_internal_frames
from namoo.tree_util import keystr

__all__ = [
    "apply_updates", "EmptyState", "GradientTransformation", "GradientTransformationExtraArgs",
    "identity", "incremental_update", "init_empty_state", "MaskOrFn", "OptState", "Params",
    "periodic_update", "ScalarOrSchedule", "Schedule", "set_to_zero", "StatefulSchedule",
    "stateless", "stateless_with_tree_map", "TransformInitFn", "TransformUpdateExtraArgsFn",
    "TransformUpdateFn", "Updates", "with_extra_args_support",
]  # fmt: skip

Array = Any
Params = Any
Updates = Any
OptState = Any
Schedule = Callable[[Any], Any]
ScalarOrSchedule = Any
MaskOrFn = Any


class TransformInitFn(Protocol):
    """Makes the first state of a transformation from the parameters."""

    def __call__(self, params: Params) -> OptState: ...


class TransformUpdateFn(Protocol):
    """Maps updates and a state into new updates and the next state."""

    def __call__(
        self, updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]: ...


class TransformUpdateExtraArgsFn(Protocol):
    """Like `TransformUpdateFn`, with more keyword arguments, such as the loss."""

    def __call__(
        self, updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]: ...


@runtime_checkable
class StatefulSchedule(Protocol):
    """A hyperparameter that follows its own state; see `inject_hyperparams`."""

    def init(self) -> Any: ...

    def update(self, state: Any, **extra_args: Any) -> Any: ...

    def __call__(self, state: Any, **extra_args: Any) -> Any: ...


class _Pair(NamedTuple):
    init: Callable[..., Any]
    update: Callable[..., Any]


class GradientTransformation(_Pair):
    """A pair of pure functions.

    `init(params)` returns the state; `update(updates, state, params=None)` returns new updates
    and the next state. The `update` of namoo's own transformations raises if the state and the
    gradients differ in shape, which would otherwise be broadcast silently.

    Example:
        >>> halve = GradientTransformation(
        ...     lambda params: EmptyState(), lambda g, state, params=None: (0.5 * g, state)
        ... )
        >>> halve.update(jnp.array([2.0]), halve.init(jnp.zeros(1)))
        (Array([1.], dtype=float32), EmptyState())
    """

    __slots__ = ()

    def __new__(cls, init: Callable[..., Any], update: Callable[..., Any]) -> Any:
        is_own = getattr(update, "__module__", "").startswith("namoo.")
        if is_own and not hasattr(update, "keeps_shapes"):
            update = _keeping_shapes(update)
        return super().__new__(cls, init, update)

    @entry_point
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(attribute_message(self, name, OPTIMISER_ATTRIBUTES))


def _keeping_shapes(update: Callable[..., Any]) -> Callable[..., Any]:
    """`update`, which raises if the state changes its shapes."""

    @functools.wraps(update)
    def checked(updates, state, *args, **kwargs):
        try:
            try:
                new_updates, new_state = update(updates, state, *args, **kwargs)
                require_same_shapes(state, new_state)
                return new_updates, new_state
            except (AttributeError, TypeError, ValueError):
                params = args[0] if args else kwargs.get("params")
                if message := _misfit(updates, state, params):
                    raise ValueError(message) from None
                raise
        except Exception as error:
            hide_internal_frames(error)
            raise

    setattr(checked, "keeps_shapes", True)  # noqa: B010
    return checked


def _misfit(updates: Updates, state: OptState, params: Params | None) -> str:
    """Return how the gradients differ from the parameters or from the state of an update, or ''."""
    if params is not None and (text := _lacking(updates, params)):
        return f"{text}. Take the gradients by the parameters that tx.init was called with."
    is_tree = not hasattr(updates, "dtype")
    like = [x for x in _parts(state) if is_tree and type(x) is type(updates)]
    for part in like:
        if text := _lacking(updates, part, shapes=False):
            return (
                f"{text}, which the optimiser's state has or lacks: it was made for other "
                "parameters. Make a state for these with tx.init(params)."
            )
    if not like and (state is None or is_tree and type(state) is type(updates)):
        return (
            f"the state of an update must be what tx.init(params) returned, got {short(state)}. "
            "Write state = tx.init(params), then updates, state = tx.update(grads, state, params)."
        )
    return ""


def _lacking(updates: Updates, like: Any, shapes: bool = True) -> str:
    """Return which leaves the gradients lack, have in excess or in another shape, or ''."""
    found = {keystr(path): jnp.shape(x) for path, x in tree.leaves_with_path(updates)}
    wanted = {keystr(path): jnp.shape(x) for path, x in tree.leaves_with_path(like)}
    for verb, names in (
        ("lack", [n for n in wanted if n not in found]),
        ("have, in excess,", [n for n in found if n not in wanted]),
    ):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return f"the gradients {verb} {', '.join(n or 'the root' for n in names[:3])}{more}"
    for name, shape in wanted.items():
        if shapes and found[name] != shape:
            return f"the gradient {name or 'itself'} has shape {found[name]} instead of {shape}"
    return ""


def _parts(state: OptState) -> list[Any]:
    """Return the trees inside of a state: the fields of the named tuples that it is made of."""
    if isinstance(state, tuple):
        return [part for field in state for part in [field, *_parts(field)]]
    return []


def require_same_shapes(state: OptState, new_state: OptState) -> None:
    """Raise if a step changes the shapes of the state, as gradients of other shapes do.

    Raises:
        ValueError: names the first part of the state whose shape is not that of its gradient.
    """
    before, after = tree.leaves(state), tree.leaves(new_state)
    if len(before) != len(after) or all(
        x.shape == getattr(y, "shape", ()) if hasattr(x, "shape") else True
        for x, y in zip(before, after, strict=True)
    ):
        return
    pairs = zip(tree.leaves_with_path(state), tree.leaves(new_state), strict=True)
    for (path, x), y in pairs:
        if jnp.shape(x) != jnp.shape(y):
            raise ValueError(
                f"the optimiser's state at {keystr(path)} has shape {jnp.shape(x)}, but the "
                f"gradients would make it {jnp.shape(y)}: it belongs to parameters of other "
                "shapes. Make a state for these with tx.init(params)."
            )


class GradientTransformationExtraArgs(GradientTransformation):
    """A `GradientTransformation` whose `update` takes keyword arguments beyond `params`."""


class EmptyState(NamedTuple):
    """The state of a stateless transformation."""


def init_empty_state(params: Params) -> EmptyState:
    """The `init` of a transformation without state.

    Example:
        >>> init_empty_state(None)
        EmptyState()
    """
    del params
    return EmptyState()


def require_params(name: str, params: Params) -> None:
    """Raise ValueError where `update` needs the parameters and was called without them."""
    if params is None:
        raise ValueError(
            f"{name}: update needs the current parameters. Write "
            "`updates, state = tx.update(gradients, state, params)`."
        )


def map_updates(f: Callable[..., Any], updates: Updates, *rest: Any) -> Any:
    """`f` of every update and what belongs to it; where an update is None the result is None.

    A gradient of None means that a parameter is not trained, whatever `rest` holds there.

    Example:
        >>> map_updates(lambda g, m: g + m, {"w": 1, "b": None}, {"w": 10, "b": 20})
        {'b': None, 'w': 11}
    """
    return tree.map(
        lambda u, *r: None if u is None else f(u, *r), updates, *rest, is_leaf=lambda x: x is None
    )


def identity() -> GradientTransformation:
    """The transformation that changes nothing.

    Example:
        >>> tx = identity()
        >>> tx.update(jnp.array([1.0]), tx.init(None))
        (Array([1.], dtype=float32), EmptyState())
    """

    def update(updates, state, params=None):
        del params
        return updates, state

    return GradientTransformation(init_empty_state, update)


def set_to_zero() -> GradientTransformation:
    """Set all updates to zero: the parameters do not change.

    Example:
        >>> tx = set_to_zero()
        >>> tx.update(jnp.array([1.0]), tx.init(None))[0]
        Array([0.], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        return tree.map(jnp.zeros_like, updates), state

    return GradientTransformation(init_empty_state, update)


def stateless(f: Callable[[Updates, Params | None], Updates]) -> GradientTransformation:
    """A transformation from a function of the updates and the parameters.

    Args:
        f: takes the trees of updates and of parameters, returns a tree of updates.

    Example:
        >>> tx = stateless(lambda g, p: tree.map(lambda u: 2 * u, g))
        >>> tx.update(jnp.array([1.0]), tx.init(None))[0]
        Array([2.], dtype=float32)
    """

    def update(updates, state, params=None):
        del state
        return f(updates, params), EmptyState()

    return GradientTransformation(init_empty_state, update)


def stateless_with_tree_map(f: Callable[[Array, Array | None], Array]) -> GradientTransformation:
    """A transformation from a function of one update and its parameter.

    Args:
        f: takes an array of updates and the parameter, None where `update` gets no parameters.

    Example:
        >>> tx = stateless_with_tree_map(lambda g, p: g + p)
        >>> tx.update({"w": jnp.array([1.0])}, tx.init(None), {"w": jnp.array([10.0])})[0]
        {'w': Array([11.], dtype=float32)}
    """

    def update(updates, state, params=None):
        del state
        if params is None:
            return tree.map(lambda u: f(u, None), updates), EmptyState()
        return tree.map(f, updates, params), EmptyState()

    return GradientTransformation(init_empty_state, update)


def takes_extra_args(tx: Any) -> bool:
    """Whether `tx` is a `GradientTransformationExtraArgs`, of this package or of Optax."""
    # By name: Optax has a class of its own, and this package does not import it.
    return any(c.__name__ == "GradientTransformationExtraArgs" for c in type(tx).__mro__)


def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """The same transformation, accepting (and ignoring) any extra keyword arguments.

    Example:
        >>> tx = with_extra_args_support(identity())
        >>> tx.update(jnp.array([1.0]), tx.init(None), value=3.0)[0]
        Array([1.], dtype=float32)
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    if not hasattr(tx, "init") or not hasattr(tx, "update"):
        raise TypeError(
            f"a transformation of gradients is a pair (init, update), got {short(tx)}. Write "
            "optim.chain(a, b), with each transformation as an argument."
        )
    if takes_extra_args(tx):
        return GradientTransformationExtraArgs(tx.init, tx.update)

    def update(updates, state, params=None, **extra_args):
        del extra_args
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def apply_updates(params: Params, updates: Updates) -> Params:
    """The parameters after a step: `params + updates`, in the parameters' own types.

    Example:
        >>> apply_updates({"w": jnp.array([1.0, 2.0])}, {"w": jnp.array([0.5, -0.5])})
        {'w': Array([1.5, 1.5], dtype=float32)}
    """

    def step(p, u):
        if p is None or u is None:
            return p
        return jnp.asarray(p + u).astype(jnp.asarray(p).dtype)

    is_none = lambda x: x is None  # noqa: E731
    if isinstance(updates, tuple) and len(updates) == 2 and not isinstance(params, tuple):
        raise TypeError(
            "apply_updates takes the updates alone, but got a pair. Write updates, state = "
            "tx.update(grads, state, params), then apply_updates(params, updates)."
        )
    new = tree.map(step, params, updates, is_leaf=is_none)
    old, found = (tree.leaves(t, is_leaf=is_none) for t in (params, new))
    for i, (p, q) in enumerate(zip(old, found, strict=True)):
        if p is not None and jnp.shape(p) != jnp.shape(q):
            path, _ = tree.leaves_with_path(params, is_leaf=is_none)[i]
            raise ValueError(
                f"apply_updates: the parameter at {keystr(path) or 'the root'} has shape "
                f"{jnp.shape(p)}, and its update would make it {jnp.shape(q)}. Updates have the "
                "shapes of the parameters."
            )
    return new


def incremental_update(new_tensors: Params, old_tensors: Params, step_size: Any) -> Params:
    """A weighted mean of two trees, as for a slow copy of the parameters.

        s·new + (1 - s)·old

    Example:
        >>> incremental_update(jnp.array([1.0]), jnp.array([0.0]), 0.1)
        Array([0.1], dtype=float32)
    """
    return map_updates(
        lambda new, old: step_size * new + (1.0 - step_size) * old, new_tensors, old_tensors
    )


def periodic_update(
    new_tensors: Params, old_tensors: Params, steps: Any, update_period: Any
) -> Params:
    """The new tree at every `update_period`-th step, the old one at the others.

    Example:
        >>> periodic_update(jnp.array([1.0]), jnp.array([0.0]), jnp.array(3), 2)
        Array([0.], dtype=float32)
    """
    fresh = jnp.mod(steps, update_period) == 0
    return tree.map(lambda new, old: jnp.where(fresh, new, old), new_tensors, old_tensors)
