"""Optimisers as triples of functions: `(init, update, get_params)`.

The state includes the parameters:

    state = init(params)
    state = update(i, gradients, state)      # i counts the steps from 0
    params = get_params(state)

Each optimiser is written for a single array; the decorator `optimizer` makes it work on trees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base.source_context import make_entry_points as _guard

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "Schedule",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]
__dir__ = __all__.copy


Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The state of an optimiser: the leaves of each parameter's state."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda defs, children: OptimizerState(children[0], *defs),
)


class Optimizer(NamedTuple):
    """The three functions of an optimiser."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Turn an optimiser of arrays into one of trees of arrays.

    Args:
        opt_maker: a function that returns a triple `(init, update, get_params)` for one array.

    Returns:
        a function of the same arguments, whose triple takes and returns trees; the state is an
        `OptimizerState`.

    Raises:
        TypeError: raised by `update` if the tree of gradients does not match the parameters, or if
            the state of an array changed its structure.

    Example:
        >>> @optimizer
        ... def descent(rate):
        ...     return (lambda x: x), (lambda i, g, x: x - rate * g), (lambda x: x)
        >>> init, update, get_params = descent(0.5)
        >>> get_params(update(0, {"w": jnp.ones(2)}, init({"w": jnp.zeros(2)})))
        {'w': Array([-0.5, -0.5], dtype=float32)}
    """

    @functools.wraps(opt_maker)
    def make(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params):
            leaves, tree = tree_util.tree_flatten(params)
            return _packed([init(x) for x in leaves], tree)

        def update_tree(i, grads, state):
            leaves, tree = tree_util.tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "The optimizer update function was passed a gradient tree that does not match "
                    f"the parameter tree it was initialized with: the parameters are "
                    f"{state.tree_def}, the gradients {tree}."
                )
            new = [update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)]
            packed = _packed(new, tree)
            for old, now in zip(state.subtree_defs, packed.subtree_defs, strict=True):
                if old != now:
                    raise TypeError(
                        "The optimizer update function changed the structure of its state: it was "
                        f"given {old} and returned {now}."
                    )
            return packed

        def params_of(state):
            return state.tree_def.unflatten([get_params(s) for s in _states(state)])

        return Optimizer(
            functools.wraps(init)(init_tree),
            functools.wraps(update)(update_tree),
            functools.wraps(get_params)(params_of),
        )

    return make


def _packed(states: Sequence[Any], tree: Any) -> OptimizerState:
    flat = [tree_util.tree_flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(t for _, t in flat))


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.unflatten(leaves) for tree, leaves in pairs]


def _starting_with_zeros(count: int) -> Callable[[Any], Any]:
    """Return an `init` whose state is `(x, 0, …, 0)`, with `count` arrays of zeros like x."""
    return lambda x: (x, *(jnp.zeros_like(x) for _ in range(count)))


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def sgd(step_size: Any):
    """Stochastic gradient descent: x ← x - α·g.

    Args:
        step_size: α, a number or a schedule (a function of the step's number).

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = sgd(0.1)
        >>> get_params(update(0, jnp.ones(2), init(jnp.ones(2))))
        Array([0.9, 0.9], dtype=float32)
    """
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float):
    """Gradient descent with momentum: v ← μ·v + g, x ← x - α·v.

    Args:
        step_size: α, a number or a schedule.
        mass: μ, the decay rate of the velocity.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = momentum(0.1, mass=0.5)
        >>> get_params(update(0, jnp.ones(2), init(jnp.ones(2))))
        Array([0.9, 0.9], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _starting_with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float):
    """Gradient descent with Nesterov's momentum: v ← μ·v + g, x ← x - α·(μ·v + g).

    Args:
        step_size: α, a number or a schedule.
        mass: μ, the decay rate of the velocity.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = nesterov(0.1, mass=0.5)
        >>> get_params(update(0, jnp.ones(2), init(jnp.ones(2))))
        Array([0.85, 0.85], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _starting_with_zeros(1), update, _first


def _inverse_root_or_zero(x: Any) -> Any:
    return jnp.where(x > 0, 1.0 / jnp.sqrt(x), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9):
    """Adagrad: s ← s + g², m ← (1 - μ)·g/√s + μ·m, x ← x - α·m.

    Args:
        step_size: α, a number or a schedule.
        momentum: μ.

    Returns:
        the triple `(init, update, get_params)`.

    Reference: Duchi, Hazan, Singer, "Adaptive Subgradient Methods", 2011.

    Example:
        >>> init, update, get_params = adagrad(0.5, momentum=0.0)
        >>> get_params(update(0, jnp.array([2.0, 0.0]), init(jnp.ones(2))))
        Array([0.5, 1. ], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root_or_zero(squares)) + momentum * m
        return x - rate(i) * m, squares, m

    return _starting_with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8):
    """RMSProp: s ← γ·s + (1 - γ)·g², x ← x - α·g/√(s + ε).

    Args:
        step_size: α, a number or a schedule.
        gamma: γ, the decay rate of the mean square.
        eps: ε, keeps the division finite.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = rmsprop(0.5, gamma=0.0)
        >>> get_params(update(0, jnp.full(2, 3.0), init(jnp.ones(2))))
        Array([0.5, 0.5], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, square = state
        square = square * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(square + eps), square

    return _starting_with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9):
    """RMSProp whose steps have momentum: m ← μ·m + α·g/√(s + ε), x ← x - m.

    Args:
        step_size: α, a number or a schedule.
        gamma: the decay rate of the mean square s.
        eps: ε, keeps the division finite.
        momentum: μ.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = rmsprop_momentum(0.5, gamma=0.0)
        >>> get_params(update(0, jnp.full(2, 3.0), init(jnp.ones(2))))
        Array([0.5, 0.5], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, square, m = state
        square = square * gamma + jnp.square(g) * (1.0 - gamma)
        m = momentum * m + rate(i) * g / jnp.sqrt(square + eps)
        return x - m, square, m

    return _starting_with_zeros(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8):
    """Adam: steps of the mean gradient over the root of the mean square, both bias-corrected.

        m ← (1 - β₁)·g + β₁·m,   v ← (1 - β₂)·g² + β₂·v
        x ← x - α · m/(1 - β₁ᵗ) / (√(v/(1 - β₂ᵗ)) + ε),   t = i + 1

    Args:
        step_size: α, a number or a schedule.
        b1: β₁, the decay rate of the mean gradient.
        b2: β₂, the decay rate of the mean square.
        eps: ε, keeps the division finite.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = adam(0.5)
        >>> get_params(update(0, jnp.full(2, 3.0), init(jnp.ones(2)))).round(3)
        Array([0.5, 0.5], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - rate(i) * mean / (jnp.sqrt(square) + eps), m, v

    return _starting_with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8):
    """AdaMax: Adam with a decaying maximum of the gradient instead of the mean square.

        m ← (1 - β₁)·g + β₁·m,   u ← max(β₂·u, |g|),   x ← x - α/(1 - β₁ᵗ) · m/(u + ε)

    Args:
        step_size: α, a number or a schedule.
        b1: β₁, the decay rate of the mean gradient.
        b2: β₂, the decay rate of the maximum.
        eps: ε, keeps the division finite.

    Returns:
        the triple `(init, update, get_params)`.

    Example:
        >>> init, update, get_params = adamax(0.5)
        >>> get_params(update(0, jnp.full(2, 3.0), init(jnp.ones(2)))).round(3)
        Array([0.5, 0.5], dtype=float32)
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        unbiased = rate(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - unbiased * m / (largest + eps), m, largest

    return _starting_with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9):
    """SM3: Adagrad with one sum per slice of each axis instead of one per element.

    Args:
        step_size: a number or a schedule.
        momentum: the decay rate of the last step.

    Returns:
        the triple `(init, update, get_params)`.

    Reference: Anil, Gupta, Koren, Singer, "Memory-Efficient Adaptive Optimization", 2019.

    Example:
        >>> init, update, get_params = sm3(0.5, momentum=0.0)
        >>> get_params(update(0, jnp.full((1, 2), 4.0), init(jnp.ones((1, 2)))))
        Array([[0.5, 0.5]], dtype=float32)
    """
    rate = make_schedule(step_size)

    def init(x):
        shape = x.shape
        x = jnp.atleast_1d(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i, g, state):
        x, m, sums, shape = state
        axes = range(x.ndim)
        along = [
            jnp.expand_dims(s, [k for k in range(g.ndim) if k != axis])
            for axis, s in enumerate(sums)
        ]
        total = functools.reduce(jnp.minimum, along) + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root_or_zero(total)) + momentum * m
        x = x - rate(i) * m
        sums = [jnp.max(total, [k for k in axes if k != axis]) for axis in axes]
        return x, m, sums, shape

    return init, update, lambda state: state[0].reshape(state[3])


def constant(step_size: Any) -> Schedule:
    """Return a constant step size.

    Example:
        >>> constant(0.1)(100)
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return a step size α·rᵏ with k = i / decay_steps.

    Args:
        step_size: α, the first step size.
        decay_steps: after how many steps it is multiplied by the rate.
        decay_rate: r.

    Returns:
        the step size as a function of the step's number i.

    Example:
        >>> exponential_decay(1.0, 10, 0.5)(20)
        0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Return a step size α / (1 + r·k) with k = i / decay_steps.

    Args:
        step_size: α, the first step size.
        decay_steps: the unit in which steps are counted.
        decay_rate: r.
        staircase: round k down.

    Returns:
        the step size as a function of the step's number i.

    Example:
        >>> inverse_time_decay(1.0, 10, 0.5)(20)
        0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """Return a step size that falls from α to ω in `decay_steps` steps: (1 - k)ᵖ·(α - ω) + ω.

    Args:
        step_size: α, the first step size.
        decay_steps: when the last step size is reached; k = min(i, decay_steps) / decay_steps.
        final_step_size: ω, the last step size.
        power: p.

    Returns:
        the step size as a function of the step's number i.

    Example:
        >>> polynomial_decay(1.0, 10, 0.5)(5)
        Array(0.75, dtype=float32, weak_type=True)
    """

    def schedule(i):
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return a step size that changes after given steps.

    Args:
        boundaries: the last step of each value except the last value.
        values: the step sizes, one more than there are boundaries.

    Returns:
        the step size as a function of the step's number.

    Raises:
        ValueError: an argument is not a sequence, or the lengths do not match.

    Example:
        >>> piecewise_constant([10], [1.0, 0.1])(11)
        Array(0.1, dtype=float32)
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if boundaries.ndim != 1 or values.ndim != 1:
        raise ValueError(
            "piecewise_constant: boundaries and values must be sequences, got arrays of shapes "
            f"{boundaries.shape} and {values.shape}."
        )
    if len(boundaries) != len(values) - 1:
        raise ValueError(
            "piecewise_constant: boundaries length must be one shorter than values length, got "
            f"{len(boundaries)} and {len(values)}."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a schedule as it is, and a number as a constant schedule.

    Raises:
        TypeError: the argument is neither a function nor a scalar.

    Example:
        >>> make_schedule(0.1)(5)
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        "A step size must be a scalar or a function of the step's number, got "
        f"{type(scalar_or_schedule)} of shape {jnp.shape(scalar_or_schedule)}."
    )


def l2_norm(tree: Any) -> Any:
    """Return the Euclidean norm of all leaves of a tree together: √(Σ x²).

    Example:
        >>> l2_norm([jnp.array([3.0]), jnp.array([4.0])])
        Array(5., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale a tree of gradients so that its norm is at most `max_norm`.

    Example:
        >>> clip_grads([jnp.array([3.0]), jnp.array([4.0])], 1.0)
        [Array([0.6], dtype=float32), Array([0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


class JoinPoint:
    """The marker for the state of one parameter in a tree of parameters."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return the state as a tree like the parameters, with a `JoinPoint` for each of them.

    Use it to write states to files; `pack_optimizer_state` is the inverse.

    Example:
        >>> state = momentum(0.1, 0.9)[0]({"w": 1.0})
        >>> unpack_optimizer_state(state)["w"].subtree
        (1.0, Array(0., dtype=float32, weak_type=True))
    """
    return opt_state.tree_def.unflatten([JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the optimiser's state, given a tree of `JoinPoint`s.

    Raises:
        AssertionError: a leaf of the tree is not a JoinPoint.

    Example:
        >>> pack_optimizer_state({"w": JoinPoint((1.0, 2.0))}).packed_state
        ([1.0, 2.0],)
    """
    leaves, tree = tree_util.tree_flatten(marked_pytree)
    wrong = [type(x).__name__ for x in leaves if not isinstance(x, JoinPoint)]
    if wrong:
        raise AssertionError(
            "pack_optimizer_state: every leaf must be a JoinPoint, as unpack_optimizer_state "
            f"makes them; found {wrong[0]}."
        )
    return _packed([x.subtree for x in leaves], tree)


_guard(globals())
