"""Operations that compute nothing and only control how a program is compiled and run."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import tree_util
from namoo.core.array import owned
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive, Zero, is_linear, is_zero
from namoo.core.trace import Tracer
from namoo.primitives.arithmetic import add, mul, sub
from namoo.primitives.shape import broadcast_in_dim, instantiate

__all__ = [
    "after_all", "after_all_p", "create_token", "create_token_p", "dce_sink", "dce_sink_p",
    "optimization_barrier", "optimization_barrier_p", "rng_uniform", "rng_uniform_p",
]  # fmt: skip


class OptimizationBarrier(Primitive):
    """All operands, unchanged; compilers move no operation across it."""

    name = "optimization_barrier"
    multiple_results = True

    def evaluate(self, *xs):
        return list(xs)

    def abstract(self, *xs):
        weak = all(x.weak_type for x in xs)
        return [x.update(weak_type=weak) for x in xs]

    def jvp(self, primals, tangents):
        outs = self.bind(*primals)
        given = self.bind(*(t for t in tangents if not is_zero(t)))
        rest = iter(given)
        return outs, [Zero(t.aval) if is_zero(t) else next(rest) for t in tangents]

    def transpose(self, cts, *operands):
        given = self.bind(*map(instantiate, cts))
        return [ct if is_linear(x) else None for ct, x in zip(given, operands, strict=True)]

    def batch(self, xs, dims):
        return self.bind(*xs), list(dims)

    def native(self, emit, *xs):
        return list(xs)

    def stablehlo(self, hlo, *xs):
        return hlo.op("optimization_barrier", *xs, result=list(hlo.avals)) if xs else []


optimization_barrier_p = OptimizationBarrier()


def optimization_barrier(operand: Any, /) -> Any:
    """A tree of arrays, unchanged, across which compilers move no operations.

    Example:
        >>> optimization_barrier((1.0, 2))
        (Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    leaves, tree = tree_util.tree_flatten(operand)
    if not any(isinstance(x, Tracer) for x in leaves):  # eager: there is no program
        return tree.unflatten([owned(x, aval_of(x).weak_type) for x in leaves])
    return tree.unflatten(optimization_barrier_p.bind(*leaves))


class CreateToken(Primitive):
    """A value without content, that orders operations."""

    name = "create_token"

    def evaluate(self):
        return np.zeros((0,), np.bool_)

    def abstract(self):
        return ShapedArray((0,), np.dtype(np.bool_))

    def stablehlo(self, hlo):
        return hlo.constant(self.evaluate())


create_token_p = CreateToken()


def create_token(_: Any = None) -> Any:
    """A token: a value without content, that orders operations.

    Example:
        >>> create_token().shape
        (0,)
    """
    return create_token_p.bind()


class AfterAll(Primitive):
    """A token that waits for others."""

    name = "after_all"

    def evaluate(self, *tokens):
        return np.zeros((0,), np.bool_)

    def abstract(self, *tokens):
        if any(t.shape != (0,) or t.dtype != np.bool_ for t in tokens):
            raise TypeError("Arguments to after_all must be tokens.")
        return ShapedArray((0,), np.dtype(np.bool_))

    def batch(self, tokens, dims):
        return self.bind(), None

    def stablehlo(self, hlo, *tokens):
        return hlo.constant(self.evaluate())


after_all_p = AfterAll()


def after_all(*operands: Any) -> Any:
    """A token that waits for other tokens.

    Example:
        >>> after_all(create_token(), create_token()).shape
        (0,)
    """
    return after_all_p.bind(*operands)


class DceSink(Primitive):
    """Uses values, so that their computation is not eliminated."""

    name = "dce_sink"
    multiple_results = True
    effectful = True

    def evaluate(self, *xs):
        return []

    def abstract(self, *xs):
        return []

    def jvp(self, primals, tangents):
        return self.bind(*primals), []

    def batch(self, xs, dims):
        return self.bind(*xs), []

    def stablehlo(self, hlo, *xs):
        return []


dce_sink_p = DceSink()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the operations that compute a tree of arrays, even if nothing uses it.

    Example:
        >>> dce_sink(1.0)
    """
    dce_sink_p.bind(*tree_util.tree_leaves(val))


class RngUniform(Primitive):
    """Uniform random numbers from a generator with state."""

    name = "rng_uniform"
    effectful = True
    sets_weak = True

    def weak_result(self, weak, params):
        return False

    def evaluate(self, a, b, *, shape):
        drawn = np.random.default_rng().random(shape)
        return (a + (b - a) * drawn).astype(a.dtype)

    def abstract(self, a, b, *, shape):
        if a.dtype != b.dtype or a.shape or b.shape:
            raise ValueError(
                f"rng_uniform: the bounds must be scalars of one dtype, got {a.str_short()} and "
                f"{b.str_short()}."
            )
        return ShapedArray(shape, a.dtype)

    def batch(self, xs, dims, *, shape):
        size = next(x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        unit = self.bind(np.zeros((), xs[0].dtype), np.ones((), xs[0].dtype), shape=(size, *shape))
        low, high = (
            broadcast_in_dim(x, (size, *shape), () if d is None else (0,))
            for x, d in zip(xs, dims, strict=True)
        )
        return add(low, mul(sub(high, low), unit)), 0

    def stablehlo(self, hlo, a, b, *, shape):
        low, high = hlo.widen(a), hlo.widen(b)
        out = hlo.op(
            "rng",
            low,
            high,
            hlo.constant(np.array(shape, np.int64)),
            result=(shape, low.dtype),
            rng_distribution="#stablehlo<rng_distribution UNIFORM>",
        )
        return hlo.convert(out, a.dtype)


rng_uniform_p = RngUniform()


def rng_uniform(a: Any, b: Any, shape: Any) -> Any:
    """Uniform random numbers in [a, b), different at each call; prefer `namoo.random`.

    Example:
        >>> import namoo.numpy as jnp
        >>> rng_uniform(jnp.float32(0), jnp.float32(1), (2, 3)).shape
        (2, 3)
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))
