"""The stages between a function and an executable: traced, lowered, compiled."""

from typing import Any, NamedTuple

from namoo.api.jit import Compiled as Compiled
from namoo.api.jit import Jitted as Wrapped
from namoo.api.jit import Lowered as Lowered
from namoo.api.jit import Traced as Traced

CompilerOptions = dict[str, Any]


class ArgInfo(NamedTuple):
    """The type of an argument, and whether its memory may be reused."""

    aval: Any
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype


__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
