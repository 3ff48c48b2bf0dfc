"""Pallas, JAX's kernel language, is not part of namoo. Libraries that name some of its kernels for
TPUs at their top can be imported; see `namoo.experimental.pallas.ops`."""
