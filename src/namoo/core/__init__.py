"""The whole idea: abstract values, arrays, traces, primitives and programs.

Read in this order: `avals`, `array`, `trace`, `primitive`, `jaxpr`, `pretty`.
"""

import time

LOADED_AT = time.time_ns()
"""When this process began to load the package: a file that is newer is not what runs."""
