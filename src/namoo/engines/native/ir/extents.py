"""Sizes that are numbers at run time: expressions of dimension variables, in shapes of programs.

A program that was traced on symbolic shapes has them wherever other programs have integers: in the
shapes of nodes, in strides and in the ranges of loops. Arithmetic on them gives expressions, which
`Function.number` computes. A question about one whose answer depends on the sizes raises
`InconclusiveDimensionOperation`; what must be decided for all sizes asks `at_least`, and what only
estimates costs takes the size to be `about` a typical one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from namoo.dimensions.sizes import is_symbolic as is_dynamic
from namoo.errors import InconclusiveDimensionOperation

TYPICAL = 509
"""What estimates take a dimension variable to be; a prime number, so that nothing divides it."""


def at_least(x: Any, y: Any) -> bool:
    """Whether x >= y is known to hold for all sizes."""
    try:
        return x >= y
    except InconclusiveDimensionOperation:
        return False


def about(size: Any) -> Any:
    """A size for estimates."""
    if not is_dynamic(size):
        return size
    return size.evaluate(dict.fromkeys(size.variables(), TYPICAL))


def typical(shape: Iterable[Any]) -> tuple[int, ...]:
    """A shape for estimates."""
    return tuple(map(about, shape))


def variables(shapes: Iterable[Iterable[Any]]) -> tuple[str, ...]:
    """The names of the variables in some shapes, in order."""
    names: set[str] = set()
    for shape in shapes:
        for size in shape:
            if is_dynamic(size):
                names |= size.variables()
    return tuple(sorted(names))


def numbered(shape: Iterable[Any], numbers: Mapping[str, int]) -> tuple[Any, ...]:
    """A shape with numbers in place of variables, and None in place of other expressions."""
    return tuple(numbers.get(str(n)) if is_dynamic(n) else n for n in shape)
