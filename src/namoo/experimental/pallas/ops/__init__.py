"""Kernels of Pallas that can be imported and not called."""
