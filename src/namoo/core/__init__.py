"""The whole idea: abstract values, arrays, traces, primitives and programs.

Read in this order: `avals`, `array`, `trace`, `primitive`, `jaxpr`, `pretty`.
"""
