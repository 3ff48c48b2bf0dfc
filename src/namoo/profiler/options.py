"""Options of a trace."""

from __future__ import annotations

from typing import Any

_DEFAULTS: dict[str, Any] = {
    "advanced_configuration": {},
    "duration_ms": 0,
    "enable_hlo_proto": True,
    "host_tracer_level": 2,
    "include_dataset_ops": True,
    "python_tracer_level": 1,
    "raise_error_on_start_failure": False,
    "repository_path": "",
    "session_id": "",
    "start_timestamp_ns": 0,
}


class ProfileOptions:
    """What a trace records, and where it is written.

    - `host_tracer_level`: 0 for no spans, 1 for annotations only, 2 (the default) also for calls
      of functions under `jit`, tracing and compiling.
    - `python_tracer_level`: 1 (the default) records calls of Python functions; 0 does not, which
      makes the trace smaller and slows the program down less.
    - `session_id`: the name of the trace's folder, instead of the time.

    The other options control JAX's accelerators and server, and have no effect here.

    Example:
        >>> options = ProfileOptions()
        >>> options.python_tracer_level = 0
    """

    advanced_configuration: dict[str, Any]
    duration_ms: int
    enable_hlo_proto: bool
    host_tracer_level: int
    include_dataset_ops: bool
    python_tracer_level: int
    raise_error_on_start_failure: bool
    repository_path: str
    session_id: str
    start_timestamp_ns: int

    def __init__(self) -> None:
        vars(self).update(_DEFAULTS, advanced_configuration={})

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(_DEFAULTS.get(name, value))
        if not isinstance(value, kind) or (kind is int and value < 0):
            wanted = "a non-negative int" if kind is int else f"a {kind.__name__}"
            raise TypeError(f"ProfileOptions.{name} must be {wanted}, got {value!r}.")
        super().__setattr__(name, value)
