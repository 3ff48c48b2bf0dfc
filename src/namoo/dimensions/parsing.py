"""Read symbolic shapes and dimensions from text."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from namoo.dimensions.expression import as_integer, is_symbolic_dim, operation, variable

_TOKENS = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(\.\.\.)|([-+*^(),]))")
_OPERATIONS = ("floordiv", "mod", "max", "min")
_DEPTH = 100
"""How deep expressions may be nested: text from files must not exhaust the stack."""


class Parser:
    """A parser by recursive descent.

    Args:
        text: the text, or None for the whole of `like`.
        scope: the scope of the variables.
        like: the shape that `_` and `...` refer to.
    """

    def __init__(self, text: str | None, scope: Any, like: Sequence[Any] | None = None):
        self.text = "..." if text is None else text
        self.scope = scope
        self.like = None if like is None else tuple(like)
        self.depth = 0
        self.tokens = self._tokens()
        self.place = 0

    def _tokens(self) -> list[str]:
        tokens, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                self._refuse(f"'{text[at]}' is not expected")
            tokens.append(match.group().strip())
            at = match.end()
        return tokens

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"syntax error in symbolic shape {self.text!r}: {why}")

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.place += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            self._refuse(f"expected '{wanted}' and found '{token or 'the end'}'")

    def shape(self) -> tuple[Any, ...]:
        """The text as a shape."""
        closing = ""
        if self._peek() == "(" and self.tokens[-1] == ")" and self._encloses_all():
            self._next()
            closing = ")"
        dims: list[Any] = []
        while self._peek() != closing:
            if self._peek() == "...":
                self._next()
                dims += self._likes(len(dims))
                break
            dims.append(self._dimension(len(dims)))
            if self._peek() != ",":
                break
            self._next()
        if closing:
            self._expect(closing)
        if self._peek():
            self._refuse(f"'{self._peek()}' is not expected")
        return tuple(dims)

    def _encloses_all(self) -> bool:
        depth = 0
        for i, token in enumerate(self.tokens):
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return i == len(self.tokens) - 1
        return False

    def _likes(self, count: int) -> Sequence[Any]:
        if self.like is None:
            self._refuse("there is '...', and no 'like' shape was given")
        if len(self.like) < count:
            self._too_many("...", count)
        return [self._known(i) for i in range(count, len(self.like))]

    def _too_many(self, found: str, count: int) -> NoReturn:
        assert self.like is not None
        self._refuse(
            f"cannot resolve '{found}' because we parsed {count} already and 'like' shape has only "
            f"{len(self.like)} dimensions"
        )

    def _known(self, i: int) -> Any:
        assert self.like is not None
        size = self.like[i]
        if size is None or (as_integer(size) is None and not is_symbolic_dim(size)):
            self._refuse(f"the dimension {i} of the 'like' shape {self.like} is not known")
        return size

    def _dimension(self, place: int) -> Any:
        if self._peek() == "_":
            self._next()
            if self.like is None:
                self._refuse("there is '_', and no 'like' shape was given")
            if place >= len(self.like):
                self._too_many("_", place)
            return self._known(place)
        size = self._sum()
        like = self.like
        if like is not None and isinstance(size, int) and place < len(like):
            if isinstance(like[place], int) and like[place] != size:
                self._refuse(
                    f"different size {size} for the dimension {place} of the 'like' shape {like}"
                )
        return size

    def expression_only(self) -> Any:
        """The text as one dimension, for constraints."""
        value = self._sum()
        if self._peek():
            self._refuse(f"'{self._peek()}' is not expected")
        return value

    def _sum(self) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            self._refuse("it is nested too deeply")
        sign = self._next() if self._peek() in ("+", "-") else "+"
        total = self._product() if sign == "+" else -self._product()
        while self._peek() in ("+", "-"):
            add = self._next() == "+"
            # A sign may precede a number: `a + -1`.
            negative = self._peek() in ("+", "-") and self._next() == "-"
            total = total + self._product() * (1 if add != negative else -1)
        self.depth -= 1
        return total

    def _product(self) -> Any:
        value = self._power()
        while self._peek() == "*":
            self._next()
            sign = -1 if self._peek() == "-" and self._next() else 1
            value = value * self._power() * sign
        return value

    def _power(self) -> Any:
        base = self._atom()
        if self._peek() != "^":
            return base
        self._next()
        exponent = self._next()
        if not exponent.isdigit() or int(exponent) > 100:
            self._refuse(f"the exponent must be an integer up to 100, found '{exponent}'")
        return base ** int(exponent)

    def _atom(self) -> Any:
        token = self._next()
        if token.isdigit():
            if len(token) > 18:
                self._refuse("an integer is too long")
            return int(token)
        if token in _OPERATIONS and self._peek() == "(":
            self._next()
            x = self._sum()
            self._expect(",")
            y = self._sum()
            self._expect(")")
            if not is_symbolic_dim(x) and not is_symbolic_dim(y):
                return _of_integers(token, x, y)
            return operation(token, x, y)
        if token == "(":
            value = self._sum()
            self._expect(")")
            return value
        if token != "_" and re.fullmatch(r"[A-Za-z_]\w*", token):
            return variable(token, self.scope)
        self._refuse(f"'{token or 'the end'}' is not expected")


def _of_integers(name: str, x: int, y: int) -> int:
    if name in ("floordiv", "mod") and y == 0:
        raise ValueError(f"syntax error in symbolic shape: {name}({x}, 0)")
    return {"floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min}[name](x, y)
