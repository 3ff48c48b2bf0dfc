"""Pallas, JAX's kernel language, is not part of namoo. Libraries that import some of its kernels
for TPUs can still be loaded; see `namoo.experimental.pallas.ops`."""
