"""The bottom trace of eager mode, while a setting checks operands or values."""

from __future__ import annotations

from namoo._base.config import config
from namoo._base.lazy import later
from namoo.core.trace import EvalTrace, bottom_trace, context

checks = later("namoo.analysis.checks")


class CheckingTrace(EvalTrace):
    """Computes as `EvalTrace` does, and checks each operation.

    Eager shortcuts are used under `eval_trace` only, so every operation is bound and comes here.
    """

    eager = False

    def process(self, prim, args, params):
        if context.trace is self and (bottom := bottom_trace(config)) is not self:
            context.trace = bottom  # another thread switched the checks off
        out = super().process(prim, args, params)
        checks.check_operation(prim, args, params, out)
        return out


checking_trace = CheckingTrace()
