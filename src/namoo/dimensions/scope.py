"""Scopes: the variables of symbolic shapes with the constraints on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo.dimensions.decision import INFINITY, Bounds, known_facts, lower_bound, rounded
from namoo.dimensions.expression import ONE, DimExpr, Factor, Term, normal, terms_of
from namoo.dimensions.parsing import Parser


class SymbolicScope:
    """Dimension variables that may be used together, with constraints on their values.

    Args:
        constraints: comparisons with `>=`, `<=` or `==`, as strings. Each variable is at least 1.

    Example:
        >>> scope = SymbolicScope(["b >= 4"])
        >>> b, = symbolic_shape("b", scope=scope)
        >>> b >= 3
        True
    """

    def __init__(self, constraints: Sequence[str] = ()):
        if isinstance(constraints, str):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings, and not a string: "
                f"[{constraints!r}]"
            )
        self.constraints = tuple(constraints)
        self.stated: list[tuple[str, str, Any]] = []
        """The constraints as they were given: text, sign, left minus right side."""
        self._explicit: list[DimExpr] = []
        self._rules: dict[Term, tuple[int, Any]] = {}
        self._known: dict[DimExpr, Bounds] = {}
        self._in_progress: set[DimExpr] = set()
        # Short constraints first: they simplify the longer ones.
        for text in sorted(self.constraints, key=len):
            self._constrain(text)

    def _constrain(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings, got {text!r}"
            )
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError(
                "Constraint parsing error: must contain one of '==' or '>=' or '<=', got " + text
            )
        left, right = (Parser(side, self).expression_only() for side in text.split(sign, 1))
        if sign == "<=":
            left, right = right, left
        difference = left - right
        low, high = (
            self.bounds(difference) if isinstance(difference, DimExpr) else (difference,) * 2
        )
        if high < 0 or (sign == "==" and low > 0):
            raise ValueError(f"Unsatisfiable explicit constraint: {text.strip()}")
        self.stated.append((text, sign, difference))
        if not isinstance(difference, DimExpr):
            return
        if sign == "==":
            self._add_rule(left, right)
            self._explicit += [difference, -difference]
        elif low < 0:
            self._explicit.append(rounded(difference))
        self._known.clear()

    def _add_rule(self, left: Any, right: Any) -> None:
        """Rewrite the term on the left of an equation, or else its longest term."""
        terms = [(t, n) for t, n in terms_of(left) if t != ONE]
        if len(terms) != 1 or terms[0][0] in dict(terms_of(right)):
            left, right = left - right, 0
        term, n = next((t, n) for t, n in terms_of(left) if t != ONE)
        rest = right - (left - normal({term: n}, self)) if isinstance(left, DimExpr) else right
        self._rules[term] = (n, rest) if n > 0 else (-n, -rest)
        factor, exponent = term.factors[0]
        if rest == 0 and n == 1 and factor.name == "mod" and exponent == 1 == len(term.factors):
            x, y = factor.operands  # x is a multiple of y
            if (by := dict(y.terms).get(ONE)) is not None and len(y.terms) == 1:
                quotient = Term({Factor("floordiv", factor.operands): 1})
                rest = x - normal({quotient: by}, self)  # it holds, but is not applied yet
                self._explicit += [rest, -rest] if isinstance(rest, DimExpr) else []
                self._rules[quotient] = (by, x) if by > 0 else (-by, -x)

    def rewrite(self, term: Term, n: int) -> list[tuple[Term, int]] | None:
        """What to add to an expression in which `term` occurs `n` times, by an equation."""
        if not self._rules:
            return None
        for pattern, (count, replacement) in self._rules.items():
            if n % count or (rest := term.times(pattern, -1)) is None:
                continue
            changes = [(term, -n)]
            for t, m in terms_of(replacement):
                changes.append((t.times(rest), m * (n // count)))  # type: ignore[arg-type]
            return changes
        return None

    def bounds(self, e: DimExpr) -> Bounds:
        """The smallest and the largest value of an expression, as far as they are known."""
        if e in self._known:
            return self._known[e]
        if e in self._in_progress:
            return -INFINITY, INFINITY
        self._in_progress.add(e)
        try:
            found = self._lower(e), -self._lower(_negative(e))
        except ValueError as error:
            raise ValueError(f"{error} among {list(self.constraints)}") from None
        finally:
            self._in_progress.discard(e)
        if not self._in_progress:
            self._known[e] = found
        return found

    def _lower(self, e: DimExpr) -> Any:
        facts = [*self._explicit, *known_facts(e, self._explicit, self._operand_bounds)]
        low = lower_bound(e, facts)
        if low > -INFINITY or (cases := _cases(e)) is None:
            return low
        return min(self._lower(c) if isinstance(c, DimExpr) else c for c in cases)

    def _operand_bounds(self, x: Any) -> Bounds:
        return self.bounds(x) if isinstance(x, DimExpr) else (x, x)

    def described(self) -> str:
        """The constraints, for messages."""
        if not self.constraints:
            return ""
        return "\nwith constraints:\n" + "\n".join(f"  {text}" for text in self.constraints)

    def __deepcopy__(self, memo: Any) -> SymbolicScope:
        return self

    def __repr__(self) -> str:
        return f"SymbolicScope({list(self.constraints)})"


def _cases(e: DimExpr) -> tuple[Any, Any] | None:
    """The two values of `e` that a `max` or `min` decides, the smaller of which it is."""
    for term, n in e.terms:
        if len(term.factors) == 1 and term.factors[0][1] == 1:
            factor = term.factors[0][0]
            if factor.name == ("max" if n < 0 else "min") and factor.operands:
                rest = e - normal({term: n}, e.scope)
                x, y = factor.operands
                return rest + n * x, rest + n * y
    return None


def _negative(e: DimExpr) -> DimExpr:
    return DimExpr(tuple((t, -n) for t, n in e.terms), e.scope)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Make a shape with symbolic dimensions from a string.

    Args:
        shape_spec: dimensions separated by commas, perhaps in parentheses. A dimension is an
            integer or an expression of variables with `+`, `-`, `*`, `^`, `floordiv`, `mod`, `max`
            and `min`. `_` is the dimension of `like`, and `...` at the end all of its other
            dimensions. None is the whole of `like`.
        constraints: comparisons that the sizes satisfy; see `SymbolicScope`.
        scope: a scope whose variables are used; by default a new one, with `constraints`.
        like: a shape for `_` and `...`.

    Returns:
        a tuple of integers and symbolic dimensions.

    Raises:
        ValueError: the text is not a shape, or does not fit `like`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> b, n = symbolic_shape("b, 2*n")
        >>> namoo.eval_shape(jnp.transpose, namoo.ShapeDtypeStruct((b, n, 3), "float32")).shape
        (3, 2*n, b)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return Parser(shape_spec, scope, like).shape()
