"""Index arithmetic: affine functions of loop variables, simplified by the ranges of these.

A rule says which element of an operand it reads by computing with indices: `i * 4 + j`, `i // n`,
`i % n`.  `(i * n + j) // n` simplifies to `i`, so a reshape of a contiguous array costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from namoo._base.caches import register
from namoo.engines.native.ir.extents import at_least, is_dynamic
from namoo.errors import InconclusiveDimensionOperation

_serials = count()


class Symbol:
    """An integer that is known at run time, between `low` and `high` (inclusive)."""

    __slots__ = ("high", "low", "serial", "value", "vector")

    def __init__(self, value: Any, low: int, high: int, vector: bool = False):
        self.value = value
        """The value in the code: the variable of a loop, or something computed from data."""
        self.low = low
        self.high = high
        self.serial = next(_serials)
        self.vector = vector
        """Whether it differs from lane to lane."""


class Loop(Symbol):
    """A loop variable; if `vector`, lane number `k` stands for the variable plus `k`."""

    __slots__ = ()


class Quotient(Symbol):
    """`base // divisor` or `base % divisor`, where neither can be simplified."""

    __slots__ = ("base", "divisor", "remainder")

    def __init__(self, base: Index, divisor: int, remainder: bool):
        low, high = base.range()
        if is_dynamic(divisor) and not at_least(low, 0):
            raise InconclusiveDimensionOperation(f"{base} // {divisor}, which may be negative")
        if remainder:
            low, high = 0, divisor - 1
        else:
            low, high = low // divisor, high // divisor
        super().__init__(None, low, high, base.varies)
        self.base = base
        self.divisor = divisor
        self.remainder = remainder


class Index:
    """A constant and multiples of symbols."""

    __slots__ = ("_key", "constant", "terms")

    def __init__(self, terms: dict[Symbol, int], constant: int = 0):
        self.terms = terms
        self.constant = constant
        self._key: tuple | None = None

    @staticmethod
    def of(x: Index | Symbol | int) -> Index:
        if isinstance(x, Index):
            return x
        if isinstance(x, Symbol):
            return Index({x: 1}) if x.low != x.high else Index({}, x.low)
        return Index({}, x if is_dynamic(x) else int(x))

    @property
    def varies(self) -> bool:
        """Whether it differs from lane to lane."""
        return any(s.vector for s in self.terms)

    def range(self) -> tuple[int, int]:
        """The least and the greatest value it can have."""
        low = high = self.constant
        for symbol, factor in self.terms.items():
            a, b = symbol.low * factor, symbol.high * factor
            rises = factor > 0
            low += a if rises else b
            high += b if rises else a
        return low, high

    def key(self) -> tuple:
        if self._key is None:
            self._key = self.constant, frozenset([(s.serial, c) for s, c in self.terms.items()])
        return self._key

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) or is_dynamic(other):
            return not self.terms and self.constant == other
        return (
            isinstance(other, Index)
            and self.constant == other.constant
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return hash(self.key())

    def __add__(self, other: Index | int) -> Index:
        if not isinstance(other, Index):
            return Index(self.terms, self.constant + other) if other != 0 else self
        if not other.terms:
            return self + other.constant
        if not self.terms:
            return other + self.constant
        terms = dict(self.terms)
        for symbol, factor in other.terms.items():
            total = terms.get(symbol, 0) + factor
            if total != 0:
                terms[symbol] = total
            else:
                del terms[symbol]
        return _joined(Index(terms, self.constant + other.constant))

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + -other

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index({})
        return Index({s: c * factor for s, c in self.terms.items()}, self.constant * factor)

    __rmul__ = __mul__

    def __divmod__(self, n: int) -> tuple[Index, Index]:
        if n == 1:
            return self, Index({})
        # self = whole·n + rest, where n divides all terms of the first part.
        divided: dict[Symbol, int] = {}
        others: dict[Symbol, int] = {}
        for symbol, factor in self.terms.items():
            if factor % n != 0:
                others[symbol] = factor
            else:
                divided[symbol] = factor // n
        if is_dynamic(n) or is_dynamic(self.constant):
            shift, constant = 0, self.constant
        else:
            shift, constant = divmod(self.constant, n)
        whole, rest = Index(divided, shift), Index(others, constant)
        if not others and not is_dynamic(n) and not is_dynamic(constant):
            return whole, rest
        low, high = rest.range()
        if is_dynamic(n) or is_dynamic(low) or is_dynamic(high):
            if at_least(low, 0) and at_least(n - 1, high):
                return whole, rest
        elif low // n == high // n:
            times = low // n
            return whole + times, rest - times * n
        quotient, remainder = _quotient(rest, n, False), _quotient(rest, n, True)
        return whole + Index.of(quotient), Index.of(remainder)

    def __floordiv__(self, n: int) -> Index:
        return divmod(self, n)[0]

    def __mod__(self, n: int) -> Index:
        return divmod(self, n)[1]

    def __repr__(self) -> str:
        parts = [f"{c}*s{s.serial}" for s, c in self.terms.items()]
        return " + ".join([*parts, str(self.constant)])


# Equal quotients are interned, so that sums can join them again; the table is on the base's symbol.
_quotients: dict[tuple, Quotient] = register(
    "native index: quotients", {}, bound=10_000, keyed_by="index expression, divisor, kind"
)


def _quotient(base: Index, n: int, remainder: bool) -> Symbol:
    key = (base.key(), n, remainder)
    known = _quotients.get(key)
    if known is None or known.base != base:
        if len(_quotients) > 10_000:
            _quotients.clear()
        known = _quotients[key] = Quotient(base, n, remainder)
    return known


def _joined(index: Index) -> Index:
    """(b // n)·n·c + (b % n)·c is b·c."""
    for symbol, factor in index.terms.items():
        if type(symbol) is Quotient and symbol.remainder:
            n = symbol.divisor
            whole = _quotients.get((symbol.base.key(), n, False))
            if whole is not None and index.terms.get(whole) == factor * n:
                rest = {s: c for s, c in index.terms.items() if s is not symbol and s is not whole}
                return Index(rest, index.constant) + symbol.base * factor
    return index


def ravel(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """The position in a contiguous array."""
    terms: dict[Symbol, int] = {}
    constant, stride = 0, 1
    for i, n in zip(reversed(index), reversed(shape), strict=True):
        constant += i.constant * stride
        for symbol, factor in i.terms.items():
            terms[symbol] = terms.get(symbol, 0) + factor * stride
        stride *= n
    if 0 in terms.values():
        terms = {s: c for s, c in terms.items() if c != 0}
    return _joined(Index(terms, constant))


def unravel(position: Index, shape: tuple[int, ...]) -> list[Index]:
    """The index of a position in a contiguous array."""
    out = []
    for n in reversed(shape[1:]):
        position, place = divmod(position, n)
        out.append(place)
    return [*([position] if shape else []), *reversed(out)]
