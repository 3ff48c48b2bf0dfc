"""Names of attention kernels for TPUs, which can be imported, but not called."""

from namoo._base.stand_in import stand_in

_PLACE = "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel."
_WHY = "It is a kernel for TPUs; use namoo.nn.dot_product_attention."

BlockSizes = stand_in(_PLACE + "BlockSizes", _WHY)
QKVLayout = stand_in(_PLACE + "QKVLayout", _WHY)
SegmentIds = stand_in(_PLACE + "SegmentIds", _WHY)
SplashAttentionKernel = stand_in(_PLACE + "SplashAttentionKernel", _WHY)
make_splash_mha = stand_in(_PLACE + "make_splash_mha", _WHY)
make_splash_mha_single_device = stand_in(_PLACE + "make_splash_mha_single_device", _WHY)
make_splash_mqa = stand_in(_PLACE + "make_splash_mqa", _WHY)
make_splash_mqa_single_device = stand_in(_PLACE + "make_splash_mqa_single_device", _WHY)
