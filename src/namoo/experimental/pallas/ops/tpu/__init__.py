"""Kernels of Pallas that can be imported, but not called."""

__all__: list[str] = []
__dir__ = __all__.copy
