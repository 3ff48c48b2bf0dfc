"""Names of masks of attention kernels for TPUs, which can be imported, but not used."""

from namoo._base.stand_in import stand_in

_PLACE = "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask."
_WHY = "It is for a kernel for TPUs; pass a mask to namoo.nn.dot_product_attention."

CausalMask = stand_in(_PLACE + "CausalMask", _WHY)
FullMask = stand_in(_PLACE + "FullMask", _WHY)
LocalMask = stand_in(_PLACE + "LocalMask", _WHY)
Mask = stand_in(_PLACE + "Mask", _WHY)
MultiHeadMask = stand_in(_PLACE + "MultiHeadMask", _WHY)
NumpyMask = stand_in(_PLACE + "NumpyMask", _WHY)
