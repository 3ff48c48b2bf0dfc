"""Expressions of dimension variables: sums of terms, and terms are products of factors.

A factor is a variable, or `floordiv`, `mod`, `max` or `min` of two expressions. Expressions are
kept in a normal form, so that equal ones have equal terms. One without variables is an `int`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.errors import InconclusiveDimensionOperation

if TYPE_CHECKING:
    from namoo.dimensions.scope import SymbolicScope


class Factor:
    """A variable, or an operation on expressions. `key` orders factors: shorter ones come first."""

    __slots__ = ("key", "name", "operands", "size")

    def __init__(self, name: str, operands: tuple[DimExpr, ...] = ()):
        self.name = name
        self.operands = operands
        self.size = 1 + sum(x.size for x in operands)
        self.key = (self.size, name, *(x.key for x in operands))

    def __eq__(self, other: object) -> bool:
        return type(other) is Factor and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})" if self.operands else self.name


class Term:
    """A product of factors with exponents. The empty product is 1."""

    __slots__ = ("factors", "key", "size")

    def __init__(self, exponents: Mapping[Factor, int]):
        pairs = [(f, n) for f, n in exponents.items() if n]
        self.factors = sorted(pairs, key=lambda pair: pair[0].key, reverse=True)
        self.size = sum(1 + n * f.size for f, n in self.factors)
        self.key = (self.size, tuple((f.key, n) for f, n in self.factors))

    def __eq__(self, other: object) -> bool:
        return type(other) is Term and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def times(self, other: Term, power: int = 1) -> Term | None:
        """The product with another term, or the quotient for power -1; None if it is not a term."""
        exponents = dict(self.factors)
        for factor, n in other.factors:
            exponents[factor] = exponents.get(factor, 0) + power * n
        return None if any(n < 0 for n in exponents.values()) else Term(exponents)

    def __str__(self) -> str:
        return "*".join(f"{f}^{n}" if n > 1 else str(f) for f, n in reversed(self.factors))


ONE = Term({})
Terms = tuple[tuple[Term, int], ...]
DimSize = "int | DimExpr"


def add_terms(into: dict[Term, int], terms: Iterable[tuple[Term, int]], scale: int = 1) -> None:
    """Add terms with coefficients, `scale` times."""
    for term, n in terms:
        into[term] = into.get(term, 0) + scale * n


def normal(coefficients: dict[Term, int], scope: SymbolicScope) -> Any:
    """Make the expression with these coefficients, simplified by its scope's equations.

    The result is an `int` if only a constant is left.
    """
    for _ in range(100):
        rules = (scope.rewrite(t, n) for t, n in coefficients.items() if n)
        rule = next((r for r in rules if r is not None), None)
        if rule is None:
            break
        add_terms(coefficients, rule)
    terms = sorted(((t, n) for t, n in coefficients.items() if n), key=_order, reverse=True)
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0] == ONE:
        return terms[0][1]
    return DimExpr(tuple(terms), scope)


def _order(pair: tuple[Term, int]) -> Any:
    return pair[0].key, pair[1]


def as_integer(x: Any) -> int | None:
    """Convert anything that is an integer to a Python integer; None for other values."""
    if isinstance(x, (bool, np.bool_)):
        return int(x)
    try:
        return operator.index(x)
    except (TypeError, InconclusiveDimensionOperation):
        return None


def terms_of(x: Any) -> Terms:
    """The terms of an integer or an expression."""
    return x.terms if isinstance(x, DimExpr) else ((ONE, x),)


def _arithmetic(compute: Callable[[DimExpr, Any], Any], name: str, swapped: bool = False) -> Any:
    """A method of `DimExpr`: with integers and dimensions symbolic, with anything else an array."""

    def method(self: DimExpr, other: Any) -> Any:
        if isinstance(other, DimExpr):
            self.require_same_scope(other, name)
        elif (integer := as_integer(other)) is not None and not hasattr(other, "aval"):
            other = integer
        elif isinstance(other, (str, bytes, list, tuple, dict)) or other is None:
            return NotImplemented
        else:
            array = self.__jax_array__()
            operation = getattr(operator, name)
            return operation(other, array) if swapped else operation(array, other)
        return compute(other, self) if swapped else compute(self, other)

    return method


def _add(x: Any, y: Any) -> Any:
    coefficients = dict(terms_of(x))
    add_terms(coefficients, terms_of(y))
    return normal(coefficients, scope_of(x, y))


def _sub(x: Any, y: Any) -> Any:
    coefficients = dict(terms_of(x))
    add_terms(coefficients, terms_of(y), -1)
    return normal(coefficients, scope_of(x, y))


def _mul(x: Any, y: Any) -> Any:
    coefficients: dict[Term, int] = {}
    for a, n in terms_of(x):
        for b, m in terms_of(y):
            add_terms(coefficients, [(a.times(b), n * m)])  # type: ignore[list-item]
    return normal(coefficients, scope_of(x, y))


def scope_of(*values: Any) -> SymbolicScope:
    """The scope of the expressions among some sizes."""
    return next(x.scope for x in values if isinstance(x, DimExpr))


_STEPS = 16
"""How long a polynomial division may take: if it does not end, the quotient is not a polynomial."""


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder, by polynomial division where that is exact; else as operations."""
    scope = scope_of(x, y)
    if y == 0:
        raise ZeroDivisionError(f"the dimension '{x}' is divided by 0")
    (leading, by), *_ = terms_of(y)
    quotient: Any = 0
    rest: Any = x
    for _ in range(_STEPS):
        step = None
        if isinstance(rest, DimExpr):
            steps = ((t.times(leading, -1), n // by) for t, n in rest.terms if n % by == 0)
            step = next(((t, n) for t, n in steps if t is not None), None)
        if step is None:
            break
        part = normal({step[0]: step[1]}, scope)
        rest = rest - part * y
        quotient = quotient + part
    if not isinstance(rest, DimExpr):
        if isinstance(y, int):
            return quotient + rest // y, rest % y
        if rest == 0:
            return quotient, 0
    return tuple(_operation(name, x, y, scope) for name in ("floordiv", "mod"))  # type: ignore


def _operation(name: str, x: Any, y: Any, scope: SymbolicScope) -> Any:
    operands = tuple(v if isinstance(v, DimExpr) else DimExpr(((ONE, v),), scope) for v in (x, y))
    return normal({Term({Factor(name, operands): 1}): 1}, scope)


def _floordiv(x: Any, y: Any) -> Any:
    return _divmod(x, y)[0]


def _mod(x: Any, y: Any) -> Any:
    return _divmod(x, y)[1]


def _pow(x: Any, y: Any) -> Any:
    if not isinstance(y, int) or y < 0:
        raise InconclusiveDimensionOperation(
            f"the power '{x}' ** '{y}' is not a dimension: the exponent must be an integer, and "
            "not negative"
        )
    result: Any = 1
    for _ in range(y):
        result = x * result
    return result


def max_dim(x: Any, y: Any) -> Any:
    """The larger of two sizes, as an expression if that depends on their variables.

    Example:
        >>> from namoo.export import symbolic_shape
        >>> a, = symbolic_shape("a")
        >>> max_dim(a, a + 2), max_dim(a, 3)
        (a + 2, max(a, 3))
    """
    return _extreme("max", max, x, y)


def min_dim(x: Any, y: Any) -> Any:
    """The smaller of two sizes, as an expression if that depends on their variables.

    Example:
        >>> from namoo.export import symbolic_shape
        >>> a, = symbolic_shape("a")
        >>> min_dim(a, a + 2), min_dim(a, 3)
        (a, min(a, 3))
    """
    return _extreme("min", min, x, y)


def _extreme(name: str, of_integers: Callable[..., Any], x: Any, y: Any) -> Any:
    x, y = (v if isinstance(v, DimExpr) else operator.index(v) for v in (x, y))
    if not isinstance(x, DimExpr) and not isinstance(y, DimExpr):
        return of_integers(x, y)
    if isinstance(x, DimExpr) and isinstance(y, DimExpr):
        x.require_same_scope(y, name)
    low, high = bounds(x - y)
    if low >= 0:
        return x if name == "max" else y
    if high <= 0:
        return y if name == "max" else x
    return _operation(name, x, y, scope_of(x, y))


def bounds(x: Any) -> tuple[Any, Any]:
    """The smallest and the largest value that a size can have; infinities are floats."""
    return x.scope.bounds(x) if isinstance(x, DimExpr) else (x, x)


def is_symbolic_dim(x: Any) -> bool:
    """Whether a size is an expression of dimension variables rather than an integer.

    Example:
        >>> from namoo.export import symbolic_shape
        >>> [is_symbolic_dim(d) for d in symbolic_shape("b, 3")]
        [True, False]
    """
    return isinstance(x, DimExpr)


def _compared(sign: str, decide: Callable[[Any, Any], bool | None]) -> Any:
    def method(self: DimExpr, other: Any) -> bool:
        if isinstance(other, DimExpr):
            self.require_same_scope(other, sign)
        elif hasattr(other, "aval") or (integer := as_integer(other)) is None:
            return getattr(operator, _NAMES[sign])(self.__jax_array__(), other)
        else:
            other = integer
        answer = decide(*bounds(self - other))
        if answer is None:
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive."
                f"{self.scope.described()}\n\nThe answer is not the same for all sizes. If the "
                "program is meant for some of them only, say so with constraints: "
                f'symbolic_shape(..., constraints=["{self} {sign.rstrip("=")}= {other}"]).'
            )
        return answer

    return method


_NAMES = {">=": "ge", ">": "gt", "<=": "le", "<": "lt"}


def _at_least(low: Any, high: Any) -> bool | None:
    return True if low >= 0 else False if high < 0 else None


def _more(low: Any, high: Any) -> bool | None:
    return True if low > 0 else False if high <= 0 else None


def _opposite(decide: Callable[[Any, Any], bool | None]) -> Callable[[Any, Any], bool | None]:
    def decided(low: Any, high: Any) -> bool | None:
        answer = decide(low, high)
        return None if answer is None else not answer

    return decided


class DimExpr:
    """A size that depends on dimension variables; arithmetic with it is that of integers."""

    __slots__ = ("_hash", "key", "scope", "size", "terms")
    is_dimension = True
    __array_ufunc__ = None  # so that NumPy's scalars leave arithmetic to this class
    as_array: Callable[[DimExpr], Any]
    """Makes an array of the value; `api.wiring` sets it."""

    def __init__(self, terms: Terms, scope: SymbolicScope):
        self.terms = terms
        self.scope = scope
        self.size = sum(1 + abs(n) * t.size for t, n in terms)
        self.key = (self.size, tuple((t.key, n) for t, n in terms))
        self._hash = hash((self.key, id(scope)))

    __add__, __radd__ = _arithmetic(_add, "add"), _arithmetic(_add, "add", True)
    __sub__, __rsub__ = _arithmetic(_sub, "sub"), _arithmetic(_sub, "sub", True)
    __mul__, __rmul__ = _arithmetic(_mul, "mul"), _arithmetic(_mul, "mul", True)
    __floordiv__ = _arithmetic(_floordiv, "floordiv")
    __rfloordiv__ = _arithmetic(_floordiv, "floordiv", True)
    __mod__, __rmod__ = _arithmetic(_mod, "mod"), _arithmetic(_mod, "mod", True)
    __divmod__ = _arithmetic(_divmod, "divmod")
    __rdivmod__ = _arithmetic(_divmod, "divmod", True)
    __pow__ = _arithmetic(_pow, "pow")
    __ge__, __gt__ = _compared(">=", _at_least), _compared(">", _more)
    __le__, __lt__ = _compared("<=", _opposite(_more)), _compared("<", _opposite(_at_least))

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / (other.__jax_array__() if is_symbolic_dim(other) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__jax_array__()

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        # Sizes that may or may not be equal are different: shapes are compared and hashed by it.
        if isinstance(other, DimExpr):
            return self.key == other.key and self.scope is other.scope
        return False

    def __hash__(self) -> int:
        return self._hash

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant"
        )

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' != '0' is inconclusive."
            + self.scope.described()
        )

    def __jax_array__(self) -> Any:
        return DimExpr.as_array(self)

    def __deepcopy__(self, memo: Any) -> DimExpr:
        return self

    def __copy__(self) -> DimExpr:
        return self

    def variables(self) -> set[str]:
        """The names of the variables in the expression."""
        found: set[str] = set()
        for term, _ in self.terms:
            for factor, _ in term.factors:
                found |= set().union(*(x.variables() for x in factor.operands))
                if not factor.operands:
                    found.add(factor.name)
        return found

    def evaluate(self, sizes: Mapping[str, Any]) -> Any:
        """The size, given the sizes of the variables: integers, or dimensions of another scope."""
        total: Any = 0
        for term, n in self.terms:
            product: Any = n
            for factor, exponent in term.factors:
                product = product * _evaluated(factor, sizes) ** exponent
            total = total + product
        return total

    def require_same_scope(self, other: DimExpr, operation: str) -> None:
        """Raise a ValueError if two dimensions have different scopes."""
        if self.scope is not other.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes for {operation}: expected the scope of '{self}'"
                f"{self.scope.described()}\nand found for '{other}' another scope"
                f"{other.scope.described()}\nMake both with one call of symbolic_shape, or pass "
                "scope=."
            )

    def __repr__(self) -> str:
        text = ""
        for term, n in self.terms:
            sign = "- " if n < 0 else "+ " if text else ""
            number = "" if abs(n) == 1 and term != ONE else str(abs(n))
            text += f" {sign}{number}{'*' if number and term != ONE else ''}{term}"
        return text.strip()


def _evaluated(factor: Factor, sizes: Mapping[str, Any]) -> Any:
    if not factor.operands:
        if factor.name not in sizes:
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{factor.name}' that is not appearing in the "
                f"shapes of the function arguments; these have {sorted(sizes)}."
            )
        return sizes[factor.name]
    x, y = (operand.evaluate(sizes) for operand in factor.operands)
    return _OPERATIONS[factor.name](x, y)


class UnexpectedDimVar(Exception):
    """A dimension variable has no size."""


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max_dim,
    "min": min_dim,
}


def operation(name: str, x: Any, y: Any) -> Any:
    """`floordiv`, `mod`, `max` or `min` of two sizes."""
    return _OPERATIONS[name](x, y)


def variable(name: str, scope: SymbolicScope) -> Any:
    """The dimension that is a variable, or the expression that its scope replaces it by."""
    return normal({Term({Factor(name): 1}): 1}, scope)
