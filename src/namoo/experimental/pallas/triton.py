"""Names of Pallas's Triton kernels for GPUs, which can be imported, but not called."""

from namoo._base.stand_in import stand_in

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "dot",
    "load",
    "store",
]
__dir__ = __all__.copy

_PLACE = "jax.experimental.pallas.triton."
_WHY = "It is part of kernels for GPUs; write the function with jax.numpy."

CompilerParams = stand_in(_PLACE + "CompilerParams", _WHY)
approx_tanh = stand_in(_PLACE + "approx_tanh", _WHY)
atomic_add = stand_in(_PLACE + "atomic_add", _WHY)
atomic_and = stand_in(_PLACE + "atomic_and", _WHY)
atomic_cas = stand_in(_PLACE + "atomic_cas", _WHY)
atomic_max = stand_in(_PLACE + "atomic_max", _WHY)
atomic_min = stand_in(_PLACE + "atomic_min", _WHY)
atomic_or = stand_in(_PLACE + "atomic_or", _WHY)
atomic_xchg = stand_in(_PLACE + "atomic_xchg", _WHY)
atomic_xor = stand_in(_PLACE + "atomic_xor", _WHY)
dot = stand_in(_PLACE + "dot", _WHY)
load = stand_in(_PLACE + "load", _WHY)
store = stand_in(_PLACE + "store", _WHY)
