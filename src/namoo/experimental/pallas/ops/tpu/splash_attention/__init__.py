"""Attention kernels for TPUs, which can be imported, but not called."""

from namoo.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
)

__all__ = ["splash_attention_kernel", "splash_attention_mask"]
__dir__ = __all__.copy
