"""Record when each part of a program runs and how much memory arrays use, like `jax.profiler`.

Example:
    >>> import tempfile
    >>> import namoo, namoo.numpy as jnp
    >>> with trace(tempfile.mkdtemp()):
    ...     for step in range(2):
    ...         with StepTraceAnnotation("train", step_num=step):
    ...             loss = namoo.jit(jnp.sum)(jnp.ones(3))
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.profiler.annotations import StepTraceAnnotation, TraceAnnotation, annotate_function
from namoo.profiler.memory import device_memory_profile, save_device_memory_profile
from namoo.profiler.options import ProfileOptions
from namoo.profiler.tracing import start_trace, stop_trace, trace

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_trace",
    "stop_trace",
    "trace",
]
__dir__ = __all__.copy

_guard(globals())
