"""QR factors of small matrices, by Householder's reflectors, as LAPACK computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.types import part_of
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.linalg.stack import Cell, Index, StackRoutine, StackWriter, Tile

_TINY = {"f32": float(np.finfo(np.float32).tiny), "f64": float(np.finfo(np.float64).tiny)}


class ReflectorStack(StackRoutine):
    """R and the reflectors below it in one matrix, and the factors of the reflectors."""

    takes_over = {0: 0}

    def __init__(self, a: Node):
        super().__init__([a], len(a.shape) - 2)
        self.m, self.n = a.shape[-2:]
        self.work = 2 * self.count * self.m * self.n * min(self.m, self.n)

    def key(self) -> Any:
        return "geqrf"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        w, a, taus = self.tiles(f)
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, a)
            reflect(w, a, taus)
            self.store_matrices(w, places[1], unit, a)
            self.store_matrices(w, places[2], unit, taus)

    def tiles(self, f: Function, size: int = 0) -> tuple[StackWriter, Tile, Tile]:
        """A writer, and tiles for the matrix and for the factors."""
        w = self.writer(f, max(size, self.m * self.n))
        return w, Tile(w, self.elem, self.m, self.n), Tile(w, self.elem, min(self.m, self.n), 1)


class QRStack(ReflectorStack):
    """A = Q R; `k` is the number of columns of Q."""

    takes_over = {}

    def __init__(self, a: Node, k: int):
        super().__init__(a)
        self.k = k
        self.work *= 2

    def key(self) -> Any:
        return "qr", self.k

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        m, n, k = self.m, self.n, self.k
        w, a, taus = self.tiles(f, m * k)
        q, r = Tile(w, self.elem, m, k), Tile(w, self.elem, k, n)
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, a)
            reflect(w, a, taus)
            product(w, a, taus, q)
            self.store_matrices(w, places[1], unit, q)
            for i in w.steps(0, k):
                for j in w.steps(0, n):
                    r.put(i, j, w.number(0.0))
            for i in w.steps(0, min(k, n)):
                for j in w.steps(i, n):
                    r.put(i, j, a.get(i, j))
            self.store_matrices(w, places[2], unit, r)


class ProductStack(ReflectorStack):
    """The first columns of the product of given reflectors."""

    takes_over = {0: 0}

    def __init__(self, a: Node, taus: Node):
        super().__init__(a)
        self.factors = taus.shape[-1]

    def key(self) -> Any:
        return "product"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        w, a, _ = self.tiles(f)
        taus, q = Tile(w, self.elem, self.factors, 1), Tile(w, self.elem, self.m, self.n)
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, a)
            if self.factors:
                self.load_matrices(w, places[1], unit, taus)
            product(w, a, taus, q)
            self.store_matrices(w, places[2], unit, q)


def reflect(w: StackWriter, a: Tile, taus: Tile) -> None:
    """Turn a matrix into R and reflectors, column by column."""
    for k in w.steps(0, taus.rows):
        tau = _reflector(w, a, k)
        taus.put(k, 0, tau)
        _apply(w, a, k, a, w.plus(k, 1), w.conj(tau))


def product(w: StackWriter, a: Tile, taus: Tile, q: Tile) -> None:
    """Set Q to the first columns of H₁ H₂ …, the last reflector first."""
    for i in w.steps(0, q.rows):
        for j in w.steps(0, q.columns):
            q.put(i, j, w.number(0.0))
    for i in w.steps(0, min(q.rows, q.columns)):
        q.put(i, i, w.number(1.0))
    for step in w.steps(0, taus.rows):
        k = w.minus(taus.rows - 1, step)
        _apply(w, a, k, q, k, taus.get(k))


def _reflector(w: StackWriter, a: Tile, k: Index) -> Any:
    """The factor of the reflector that makes column k zero below its diagonal."""
    f, part = w.f, part_of(w.part)
    zero = constant(part, 0.0)
    alpha = a.get(k, k)
    # Elements are divided by the largest one, so that their squares neither overflow nor underflow.
    greatest = Cell(w, part)
    greatest.set(w.wide(zero))
    for i in w.steps(w.plus(k, 1), a.rows):
        greatest.set(f.maximum(greatest.get(), w.size(a.get(i, k))))
    below = f.compare("eq", greatest.get(), zero)
    if w.complex:
        below = f.and_(below, f.compare("eq", alpha[1], zero))
    unit = f.maximum(f.maximum(greatest.get(), w.size(alpha)), constant(part, _TINY[part]))
    inverse = f.fdiv(constant(part, 1.0), unit)
    total = Cell(w, part)
    total.set(w.squared(w.wide(zero), w.scale(alpha, inverse)))
    for i in w.steps(w.plus(k, 1), a.rows):
        total.set(w.squared(total.get(), w.scale(a.get(i, k), inverse)))
    length = f.mul(unit, f.sqrt(total.get()))
    beta = f.neg(f.intrinsic("copysign", length, w.real(alpha)))
    tau = w.div(w.sub(w.from_real(beta), alpha), w.from_real(beta))
    tau = w.select(below, w.number(0.0), tau)
    pivot = w.select(below, w.number(1.0), w.sub(alpha, w.from_real(beta)))
    for i in w.steps(w.plus(k, 1), a.rows):
        a.put(i, k, w.div(a.get(i, k), pivot))
    a.put(k, k, w.select(below, alpha, w.from_real(beta)))
    return tau


def _apply(w: StackWriter, a: Tile, k: Index, x: Tile, first: Index, tau: Any) -> None:
    """Apply I - τ v vᴴ to the columns of X from `first` on; v is below the diagonal of column k."""
    after = w.plus(k, 1)
    for j, width in w.blocks(first, x.columns):
        sums = [Cell(w, w.elem) for _ in range(width)]
        for r, total in enumerate(sums):
            total.set(x.get(k, w.plus(j, r)))
        for i in w.steps(after, x.rows):
            v = w.conj(a.get(i, k))
            for r, total in enumerate(sums):
                total.set(w.plus_product(total.get(), v, x.get(i, w.plus(j, r))))
        moves = [w.mul(tau, total.get()) for total in sums]
        for r, move in enumerate(moves):
            here = k, w.plus(j, r)
            x.put(*here, w.sub(x.get(*here), move))
        for i in w.steps(after, x.rows):
            v = a.get(i, k)
            for r, move in enumerate(moves):
                here = i, w.plus(j, r)
                x.put(*here, w.minus_product(x.get(*here), v, move))
