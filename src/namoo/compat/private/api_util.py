"""Flatten functions of trees to functions of lists of leaves."""

import inspect
from collections.abc import Iterable

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.api_util")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Find the names of parameters from their positions, or the positions from the names."""
    names = [name for name, p in sig.parameters.items() if p.kind in _POSITIONAL]
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    chosen = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    if argnums is None:
        numbers = tuple(i for i, name in enumerate(names) if name in chosen)
    elif argnames is None:
        chosen = tuple(names[i] for i in numbers if 0 <= i < len(names))
    return numbers, chosen
