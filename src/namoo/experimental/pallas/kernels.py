"""Names of Pallas's kernel language, which can be imported, but not called."""

from namoo._base.stand_in import stand_in

__all__ = [
    "BlockSpec",
    "CompilerParams",
    "CostEstimate",
    "GridSpec",
    "ds",
    "dslice",
    "num_programs",
    "pallas_call",
    "program_id",
    "when",
]
__dir__ = __all__.copy

_PLACE = "jax.experimental.pallas."
_WHY = "Write the function with jax.numpy: native programs fuse and block their loops themselves."

BlockSpec = stand_in(_PLACE + "BlockSpec", _WHY)
CompilerParams = stand_in(_PLACE + "CompilerParams", _WHY)
CostEstimate = stand_in(_PLACE + "CostEstimate", _WHY)
GridSpec = stand_in(_PLACE + "GridSpec", _WHY)
ds = stand_in(_PLACE + "ds", _WHY)
dslice = stand_in(_PLACE + "dslice", _WHY)
num_programs = stand_in(_PLACE + "num_programs", _WHY)
pallas_call = stand_in(_PLACE + "pallas_call", _WHY)
program_id = stand_in(_PLACE + "program_id", _WHY)
when = stand_in(_PLACE + "when", _WHY)
