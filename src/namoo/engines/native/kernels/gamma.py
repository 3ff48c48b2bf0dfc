"""Gamma samples by rejection: each element is drawn in registers until one is accepted.

The same sampler as `primitives.random.gamma`; Marsaglia and Tsang (2000), "A simple method for
generating gamma variables".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.lane_loops import repeat_while_any
from namoo.engines.native.ir.vectors import Number, fma, where
from namoo.engines.native.kernels import random
from namoo.engines.native.kernels.random import Words

if TYPE_CHECKING:
    from namoo.engines.native.graph.node import Node
    from namoo.engines.native.kernels.emitter import Emitter


def gamma(emit: Emitter, keys: Node, alpha: Node, name: str, log_space: bool) -> Node:
    """Draw samples, or their logarithms, for shape parameters `alpha`, whose first axes are those
    of the keys."""
    if alpha.elem not in ("f32", "f64"):
        raise emit.unsupported()
    random.hash_of(emit, name)
    rank, shape = len(keys.shape), alpha.shape[len(keys.shape) :]

    def element(k, index, keys, alpha):
        value = k.at(alpha, index)
        sampler = _Sampler(k.f, name, value.elem)
        high, low = random.position(k, index[rank:], shape)
        key = sampler.new_key(k.at(keys, index[:rank]), high, low)
        return sampler.draw(key, Number(k.f, value), log_space).value

    what = ("random_gamma", name, rank, log_space)
    return emit.compute([keys, alpha], element, key=what, cost=16 * tuning.HASH_COST)


class _Sampler:
    """Draws samples of one element type with one random generator."""

    def __init__(self, f: Function, name: str, elem: str):
        self.f, self.name, self.elem = f, name, elem
        self.function, self.count = random.HASHES[name]
        self.dtype = np.dtype(np.float32 if elem == "f32" else np.float64)

    def new_key(self, key: Words, high: Value, low: Value) -> Words:
        """The `low`-th of the keys that a key is split into."""
        counter = [*[random.word(0)] * (self.count - 2), high, low]
        return self.function(self.f, key, counter)[: len(key)]

    def new_keys(self, key: Words, n: int) -> list[Words]:
        """All of the `n` keys that a key is split into."""
        return [self.new_key(key, random.word(0), random.word(i)) for i in range(n)]

    def uniform(self, key: Words) -> Number:
        """A uniform number in [0, 1): random bits become the fraction of a number in [1, 2)."""
        f, wide = self.f, self.elem == "f64"
        words = self.function(f, key, [random.word(0)] * self.count)
        bits = random.combined(f, self.name, words, 64 if wide else 32)
        shift, one = (12, 0x3FF << 52) if wide else (9, 0x7F << 23)
        bits = f.lshr(bits, constant(bits.elem, shift))
        return Number(f, f.bitcast(f.or_(bits, constant(bits.elem, one)), self.elem)) - 1.0

    def normal(self, key: Words) -> Number:
        above = float(np.nextafter(self.dtype.type(-1), self.dtype.type(0)))
        u = self.uniform(key) * float(self.dtype.type(1) - self.dtype.type(above)) + above
        u = where(u < above, above, u)
        return self._apply("erf_inv", u) * math.sqrt(2)

    def _apply(self, name: str, *xs: Number) -> Number:
        return Number(self.f, ops.TABLE[name](self.f, *(x.value for x in xs)))

    def draw(self, key: Words, alpha: Number, log_space: bool) -> Number:
        # Below 1 the density has a pole: draw for alpha + 1, and multiply by u^(1/alpha).
        large = alpha >= 1.0
        third = float(self.dtype.type(1 / 3))
        d = where(large, alpha, alpha + 1.0) - third
        first, boost = self.new_keys(key, 2)
        cube = self._accepted(first, d, third / d.sqrt())
        u = self.uniform(boost)
        if not log_space:
            factor = self._apply("pow", 1.0 - u, 1.0 / alpha)
            return d * cube * where(large, 1.0, factor)
        logarithm = self._apply("log1p", -u)
        factor = where(large | logarithm.equals(0.0), 0.0, logarithm * (1.0 / alpha))
        return self._apply("log", d) + self._apply("log", cube) + factor

    def _accepted(self, key: Words, d: Number, c: Number) -> Number:
        """The cube of 1 + c·x for the first normal number x that is accepted."""
        # For NaN parameters nothing is drawn.
        start = [(d * 0.0 <= math.log(2)).value, d.like(1.0).value, *key]
        with repeat_while_any(self.f, start) as (state, carry):
            active, cube = (Number(self.f, v) for v in state[:2])
            rest, x_key, u_key = self.new_keys(state[2:], 3)
            x, v = self._positive(active, x_key, c)
            x, v = x * x, v * v * v
            u = self.uniform(u_key)
            rejected = u >= 1.0 - float(self.dtype.type(0.0331)) * (x * x)
            bound = x * 0.5 + d * (1.0 - v + self._apply("log", v))
            rejected = rejected & (self._apply("log", u) >= bound)
            carry([(active & rejected).value, where(active, v, cube).value, *rest])
        return Number(self.f, state[1])

    def _positive(self, active: Number, key: Words, c: Number) -> tuple[Number, Number]:
        """Normal numbers x for which v = 1 + c·x is positive, and v."""
        zero = c.like(0.0).value
        with repeat_while_any(self.f, [active.value, zero, zero, *key]) as (state, carry):
            active, x, v = (Number(self.f, value) for value in state[:3])
            rest, drawn = self.new_keys(state[3:], 2)
            new = self.normal(drawn)
            x, v = where(active, new, x), where(active, fma(new, c, 1.0), v)
            carry([(active & (v <= 0.0)).value, x.value, v.value, *rest])
        return Number(self.f, state[1]), Number(self.f, state[2])
