"""Record when each part of a program runs and how much memory arrays use, like `jax.profiler`.

Example:
    >>> import tempfile
    >>> import namoo, namoo.numpy as jnp
    >>> with trace(tempfile.mkdtemp()):
    ...     for step in range(2):
    ...         with StepTraceAnnotation("train", step_num=step):
    ...             loss = namoo.jit(jnp.sum)(jnp.ones(3))
"""

from namoo.profiler.annotations import StepTraceAnnotation as StepTraceAnnotation
from namoo.profiler.annotations import TraceAnnotation as TraceAnnotation
from namoo.profiler.annotations import annotate_function as annotate_function
from namoo.profiler.memory import device_memory_profile as device_memory_profile
from namoo.profiler.memory import save_device_memory_profile as save_device_memory_profile
from namoo.profiler.options import ProfileOptions as ProfileOptions
from namoo.profiler.tracing import start_trace as start_trace
from namoo.profiler.tracing import stop_trace as stop_trace
from namoo.profiler.tracing import trace as trace
