"""Find the sizes of dimension variables from the shapes of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo.dimensions.expression import ONE, DimExpr, UnexpectedDimVar, normal
from namoo.errors import InconclusiveDimensionOperation

_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"


class Equation(NamedTuple):
    """A symbolic size of an argument, its actual size, and its name in messages."""

    expression: DimExpr
    size: Any
    name: str


def solve(equations: Sequence[Equation], specification: str) -> dict[str, Any]:
    """The sizes of the variables, such that all equations and all constraints of the scope hold.

    An equation is used when all of its variables but one are known and that one is a term of its
    own, as in `2*a + b*b`, with `b` known.

    Args:
        equations: what is known. Sizes are integers, or symbolic dimensions of another scope.
        specification: the symbolic shapes, for messages.

    Returns:
        The sizes by the names of the variables.

    Raises:
        UnexpectedDimVar: a constraint is about a variable that no equation has.
        ValueError: a variable cannot be determined; or the sizes contradict one another, or a
            constraint.

    Example:
        >>> from namoo.dimensions.scope import symbolic_shape
        >>> a, b = symbolic_shape("a, 2*b + a")
        >>> solve([Equation(b, 7, "x.shape[1]"), Equation(a, 3, "x.shape[0]")], "")
        {'a': 3, 'b': 2}
    """
    return _Solver(specification).solve(equations)


class _Solver:
    def __init__(self, specification: str):
        self.specification = (
            f" Using the following polymorphic shapes specifications: {specification}."
        )
        self.sizes: dict[str, Any] = {}
        self.obtained = " Obtained dimension variables: "

    def solve(self, equations: Sequence[Equation]) -> dict[str, Any]:
        left = [*equations]
        while left:
            before, left = left, [e for e in left if not self._use(e)]
            if len(left) == len(before):
                self._refuse_unsolved(left)
        if equations:
            for text, sign, difference in equations[0].expression.scope.stated:
                self._check_constraint(text, sign, difference)
        return self.sizes

    def _use(self, equation: Equation) -> bool:
        """Find a variable by an equation, or check it if it has no unknown one."""
        unknown: tuple[str, int] | None = None
        rest = equation.size
        for term, n in equation.expression.terms:
            try:
                value = n
                for factor, exponent in () if term == ONE else term.factors:
                    single = DimExpr(((type(term)({factor: 1}), 1),), equation.expression.scope)
                    value = value * single.evaluate(self.sizes) ** exponent
                rest = rest - value
            except UnexpectedDimVar:
                factor, exponent = term.factors[0]
                if unknown or len(term.factors) > 1 or exponent > 1 or factor.operands:
                    return False
                unknown = factor.name, n
        if unknown is None:
            self._check_equal(equation)
            return True
        name, n = unknown
        size, remainder = (rest, 0) if n == 1 else divmod(rest, n)
        if not _holds("==", remainder):
            self._refuse(
                "polymorphic shapes specification. "
                f"Division had remainder {remainder} when computing the value of '{name}'."
            )
        self.sizes[name] = size
        self.obtained += (
            f"'{name}' = {size} from specification '{equation.expression}' for dimension "
            f"{equation.name} (= {equation.size}), "
        )
        if not _holds(">=", size - 1):
            self._refuse(
                "polymorphic shapes specification. "
                f"Expected value >= 1 for dimension variable '{name}'."
            )
        return True

    def _check_equal(self, equation: Equation) -> None:
        wanted = equation.expression.evaluate(self.sizes)
        if wanted != equation.size:
            self._refuse(
                "polymorphic shapes specification. "
                f"Found inconsistency between dimension size {equation.name} (= {equation.size}) "
                f"and the specification '{equation.expression}' (= {wanted})."
            )

    def _check_constraint(self, text: str, sign: str, difference: Any) -> None:
        found = difference
        if isinstance(found, DimExpr) and not found.variables() <= self.sizes.keys():
            # A variable that an equation defines occurs in no shape.
            found = normal(dict(found.terms), found.scope)
        if isinstance(found, DimExpr):
            found = found.evaluate(self.sizes)
        if not _holds(sign, found):
            relation = "equal" if sign == "==" else "greater or equal"
            self._refuse(
                f"symbolic shape constraint {text.strip()}. Expected '{difference}' to be "
                f"{relation} to 0, but found {found}."
            )

    def _refuse(self, what: str) -> None:
        raise ValueError(
            f"Input shapes do not match the {what}{self.specification}{self.obtained}. Please see "
            f"{_PAGE}#shape-assertion-errors for more details."
        )

    def _refuse_unsolved(self, left: Sequence[Equation]) -> None:
        unknown = set().union(*(e.expression.variables() for e in left)) - self.sizes.keys()
        listed = ", ".join(f"'{e.expression}' for dimension size {e.name}" for e in left)
        raise ValueError(
            f"Cannot solve for values of dimension variables {unknown}. We can only solve linear "
            f"uni-variate constraints.{self.specification} Unprocessed specifications: {listed}. "
            f"Please see {_PAGE}#dimension-variables-must-be-solvable-from-the-input-shapes for "
            "more details."
        )


def _holds(sign: str, difference: Any) -> bool:
    """Whether a difference is zero, or is not negative; unknown counts as False."""
    if sign == "==":
        return difference == 0
    try:
        return difference >= 0
    except InconclusiveDimensionOperation:
        return False
