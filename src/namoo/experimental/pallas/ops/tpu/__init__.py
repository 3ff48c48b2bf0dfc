"""Kernels of Pallas that can be imported, but not called."""
