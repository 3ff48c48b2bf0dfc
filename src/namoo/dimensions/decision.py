"""Bounds of expressions: linear programming over their terms, in exact arithmetic.

Each term is treated as a variable of a linear program. What is known about it (a size is at least
1, `mod(x, 4)` is between 0 and 3, `max(x, y)` is at least `x`) and the constraints of the scope are
its inequalities. Bounds hold for all sizes, but better ones may exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from namoo.dimensions.expression import ONE, DimExpr, Factor, Term, normal, operation, terms_of
from namoo.errors import InconclusiveDimensionOperation

INFINITY = math.inf
Bounds = tuple[Any, Any]


def lower_bound(e: DimExpr, constraints: Sequence[DimExpr]) -> Any:
    """The best known lower bound of `e`, given expressions that are not negative.

    By duality it is the largest k with e - k = Σ λᵢ cᵢ for some λᵢ ≥ 0.

    Raises:
        ValueError: no sizes satisfy the constraints.
    """
    terms = {t for c in (e, *constraints) for t, _ in terms_of(c) if t != ONE}
    rows = sorted(terms, key=lambda t: t.key)
    wanted = dict(terms_of(e))
    columns = [dict(terms_of(c)) for c in constraints]
    matrix = [[Fraction(c.get(t, 0)) for c in columns] for t in rows]
    target = [Fraction(wanted.get(t, 0)) for t in rows]
    cost = [Fraction(c.get(ONE, 0)) for c in columns]
    value = _minimum(matrix, target, cost)
    if value is None:
        return -INFINITY
    return math.ceil(wanted.get(ONE, 0) - value)


def _minimum(matrix: list[Any], target: list[Any], cost: list[Any]) -> Fraction | None:
    """The minimum of cost·λ under matrix·λ = target and λ ≥ 0, by the simplex method.

    Returns None if no λ satisfies the equations; raises ValueError if there is no minimum.
    """
    count, width = len(matrix), len(cost)
    table = []
    for i, (row, b) in enumerate(zip(matrix, target, strict=True)):
        sign = -1 if b < 0 else 1
        artificial = [Fraction(i == j) for j in range(count)]
        table.append([*(sign * x for x in row), *artificial, sign * b])
    basis = [width + i for i in range(count)]
    first = [Fraction(j >= width) for j in range(width + count)]
    if _optimise(table, basis, first, width + count) > 0:
        return None
    for i in range(count):  # artificial variables at 0 leave the basis where they can
        if basis[i] >= width:
            j = next((j for j in range(width) if table[i][j]), None)
            if j is not None:
                _pivot(table, basis, i, j)
    return _optimise(table, basis, [*cost, *[Fraction(0)] * count], width)


def _optimise(table: list[Any], basis: list[Any], cost: list[Any], width: int) -> Fraction:
    """Improve a basic solution until it is optimal (Bland's rule); return the cost."""
    while True:
        reduced = None
        for j in range(width):
            if j in basis:
                continue
            gain = cost[j] - sum(cost[b] * row[j] for b, row in zip(basis, table, strict=True))
            if gain < 0:
                reduced = j
                break
        if reduced is None:
            return sum((cost[b] * r[-1] for b, r in zip(basis, table, strict=True)), Fraction(0))
        ratios = [
            (row[-1] / row[reduced], basis[i], i) for i, row in enumerate(table) if row[reduced] > 0
        ]
        if not ratios:
            raise ValueError("Unsatisfiable constraint")
        _pivot(table, basis, min(ratios)[2], reduced)


def _pivot(table: list[Any], basis: list[Any], i: int, j: int) -> None:
    by = table[i][j]
    table[i] = [x / by for x in table[i]]
    for k, row in enumerate(table):
        if k != i and row[j]:
            table[k] = [x - row[j] * y for x, y in zip(row, table[i], strict=True)]
    basis[i] = j


def known_facts(
    e: DimExpr, explicit: Sequence[DimExpr], bounds: Callable[[Any], Bounds]
) -> list[Any]:
    """Expressions that are never negative, about the terms of `e` and of the constraints."""
    facts: list[DimExpr] = []
    seen: set[Term] = set()
    waiting = [t for c in (e, *explicit) for t, _ in terms_of(c)]
    present = set(waiting)
    scope = e.scope

    def add(fact: Any) -> None:
        if isinstance(fact, DimExpr):
            facts.append(fact)
            for term, _ in fact.terms:
                present.add(term)
                waiting.append(term)

    while waiting:
        term = waiting.pop()
        if term in seen or term == ONE:
            continue
        seen.add(term)
        value = DimExpr(((term, 1),), scope)
        single = len(term.factors) == 1 and term.factors[0][1] == 1
        if single and term.factors[0][0].operands:
            for fact in _facts_of(term.factors[0][0], value, bounds, present):
                add(fact)
        low, high = _term_bounds(term, bounds)
        if low > -INFINITY:
            add(value - low)
        if high < INFINITY:
            add(high - value)
        if not single:
            for factor, _ in term.factors:
                low, _ = _factor_bounds(factor, bounds)
                rest = term.times(Term({factor: 1}), -1)
                if (
                    rest is not None
                    and rest != ONE
                    and low > 0
                    and _term_bounds(rest, bounds)[0] >= 0
                ):
                    add(value - normal({rest: low}, scope))
    return facts


def _facts_of(
    factor: Factor, value: DimExpr, bounds: Callable[..., Any], present: set[Term]
) -> list[Any]:
    """The inequalities that hold for the value of an operation."""
    x, y = (_plain(v) for v in factor.operands)
    if factor.name == "max":
        return [value - x, value - y]
    if factor.name == "min":
        return [x - value, y - value]
    low, high = bounds(y)
    if factor.name == "mod":
        facts = [value, y - 1 - value] if low > 0 else [-value, value - y - 1] if high < 0 else []
        if low > 0 and bounds(x)[0] >= 0:
            facts.append(x - value)
        quotient = Term({Factor("floordiv", factor.operands): 1})
        if isinstance(y, int) and quotient in present:
            rest = x - y * normal({quotient: 1}, value.scope) - value
            facts += [rest, -rest]
        return facts
    if not isinstance(y, int):
        return []
    rest = x - y * value  # it is mod(x, y)
    return [rest, y - 1 - rest] if y > 0 else [-rest, rest - y - 1]


def _plain(x: DimExpr) -> Any:
    return x.terms[0][1] if x.terms[0][0] == ONE else x


def _factor_bounds(factor: Factor, bounds: Callable[[Any], Bounds]) -> Bounds:
    if not factor.operands:
        return 1, INFINITY
    x, y = (_plain(v) for v in factor.operands)
    (xl, xh), (yl, yh) = bounds(x), bounds(y)
    if factor.name == "max":
        return max(xl, yl), max(xh, yh)
    if factor.name == "min":
        return min(xl, yl), min(xh, yh)
    if yl <= 0 <= yh and not (yl == -INFINITY and yh == INFINITY):
        raise InconclusiveDimensionOperation(
            f"Possible division by 0 in '{factor}': the divisor is between {yl} and {yh}."
        )
    if yl <= 0 <= yh:
        return -INFINITY, INFINITY
    if factor.name == "mod":
        return (0, yh - 1) if yl > 0 else (yl + 1, 0)
    corners = [_floordiv(n, d) for n in (xl, xh) for d in (yl, yh)]
    known = [c for c in corners if c is not None]
    return min(known), max(known)


def _floordiv(n: Any, d: Any) -> Any:
    """n // d with infinities; None for infinity by infinity, which other corners bound."""
    if abs(n) == INFINITY:
        return None if abs(d) == INFINITY else n * (1 if d > 0 else -1)
    if abs(d) == INFINITY:
        return 0 if n == 0 or (n > 0) == (d > 0) else -1
    return n // d


def _times(x: Any, y: Any) -> Any:
    return 0 if x == 0 or y == 0 else x * y


def _term_bounds(term: Term, bounds: Callable[[Any], Bounds]) -> Bounds:
    low, high = 1, 1
    for factor, exponent in term.factors:
        fl, fh = _factor_bounds(factor, bounds)
        for _ in range(exponent):
            corners = [_times(a, b) for a in (low, high) for b in (fl, fh)]
            low, high = min(corners), max(corners)
        if exponent % 2 == 0 and len(term.factors) == 1:
            low = max(low, 0)
    return low, high


def rounded(e: DimExpr) -> DimExpr:
    """An equivalent of `e >= 0`: coefficients divided by their common divisor, rounded down."""
    numbers = dict(e.terms)
    constant = numbers.pop(ONE, 0)
    by = math.gcd(*numbers.values())
    terms = {t: n // by for t, n in numbers.items()}
    return normal({**terms, ONE: constant // by}, e.scope)


__all__ = ["INFINITY", "known_facts", "lower_bound", "operation", "rounded"]
