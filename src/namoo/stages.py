"""The stages between a function and an executable: traced, lowered, compiled."""

from typing import Any

from namoo.api.donation import ArgInfo as ArgInfo
from namoo.api.jit import Jitted as Wrapped
from namoo.api.stages import Compiled as Compiled
from namoo.api.stages import Lowered as Lowered
from namoo.api.stages import Traced as Traced

CompilerOptions = dict[str, Any]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
__dir__ = __all__.copy
