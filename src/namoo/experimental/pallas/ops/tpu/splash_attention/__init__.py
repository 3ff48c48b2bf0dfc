"""Attention kernels for TPUs, which can be imported, but not called."""

from namoo.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel as splash_attention_kernel,
)
from namoo.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_mask as splash_attention_mask,
)
