"""What a trace collects while it runs: spans of time, each with its thread."""

from __future__ import annotations

import functools
import itertools
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns as now
from types import CodeType, FrameType
from typing import Any

# The thread, start and end (from `time.perf_counter_ns`), a name or a function's code, and values
# to show with it.
Span = tuple[int, int, int, str | CodeType, dict[str, str] | None]

# The profiler's own functions are not part of the program.
_OWN = frozenset(str(path) for path in Path(__file__).parent.glob("*.py"))


class Session:
    """A running trace.

    Spans are appended to lists that all threads share; appending needs no lock.
    """

    limit = 1_000_000
    """The maximum number of spans, and of calls of Python functions, so that a trace that is never
    stopped does not use up all memory. Either takes about a hundred megabytes."""

    def __init__(self, host_level: int, python_level: int):
        self.level = host_level
        self.spans: list[Span] = []
        self.functions: list[Span] = []
        self.threads: dict[int, str] = {}
        self.full: list[str] = []
        self.over = False
        self.start = now()
        self._own = threading.local()
        self._timed: dict[Any, Any] = {}
        """Native programs, each with its version that has timers."""
        # For each thread, the functions that were called and have not returned.
        self._listeners: dict[Any, tuple[int, list[tuple[CodeType | None, int]]]] = {}
        self._listens = bool(python_level) and self._listen()

    def thread(self) -> int:
        """Return the number of the current thread, recording its name when it is first seen."""
        try:
            return self._own.number
        except AttributeError:
            # Unlike Python's thread identifier, the system's is not reused at once.
            number = self._own.number = threading.get_native_id()
            self.threads[number] = threading.current_thread().name
            return number

    def add(self, name: str, start: int, args: dict[str, str] | None = None) -> None:
        """Record a span from `start` until now, unless the trace has ended."""
        self.add_between(name, start, now(), args)

    def add_between(
        self, name: str, start: int, end: int, args: dict[str, str] | None = None
    ) -> None:
        """Record a span with a given start and end, unless the trace has ended."""
        if self.over:
            return
        if len(self.spans) < self.limit:
            self.spans.append((self.thread(), start, end, name, args))
        else:
            self._warn_full("spans")

    @contextmanager
    def span(self, what: str, name: str) -> Iterator[None]:
        """Context manager: record work of the library, such as tracing or compiling a function."""
        start = now()
        listener = sys.getprofile()
        # The compiler makes hundreds of thousands of calls, which do not concern the user.
        pauses = what == "compile" and listener in self._listeners
        if pauses:
            sys.setprofile(None)
        try:
            yield
        finally:
            if pauses:
                sys.setprofile(listener)
            if self.level > 1:
                self.add(f"{what}({name})", start)

    def run(self, program: Any, values: Any) -> Any:
        """Run a native program with timers, and record each of its kernels."""
        timed = self._timed.get(program)
        if timed is None:
            from namoo.engines.native.timed import TimedProgram

            with self.span("compile", f"{program.closed.jaxpr.name} with timers"):
                timed = self._timed[program] = TimedProgram(program.closed)
        outs, found = timed.measure(values)
        for start, end, name, args in found.events():
            self.add_between(name, start, end, args)
        return outs

    def stop(self) -> None:
        """Stop recording, and end the open spans."""
        self.over = True  # each thread's listener removes itself
        if self._listens:
            threading.setprofile(None)  # type: ignore[arg-type]
        end = now()
        for thread, stack in list(self._listeners.values()):
            for code, start in list(stack):
                if code is not None and start < end:
                    self.functions.append((thread, start, end, code, None))

    def collected(self) -> Iterator[tuple[int, int, int, str, dict[str, str] | None]]:
        """Yield all spans with their names, and times relative to the start of the trace."""
        name = functools.cache(_name)
        for thread, start, end, what, args in itertools.chain(self.spans, self.functions):
            yield thread, start - self.start, end - self.start, name(what), args

    def _warn_full(self, what: str) -> None:
        if what not in self.full:
            self.full.append(what)
            logging.getLogger("namoo").warning(
                "namoo.profiler: the trace has reached its limit of %d %s and records no more of "
                "them. Call stop_trace() sooner%s.",
                self.limit,
                what,
                ", or set ProfileOptions.python_tracer_level = 0" if what != "spans" else "",
            )

    def _listen(self) -> bool:
        """Register with `sys.setprofile` unless another profiler has; return whether it did."""
        if sys.getprofile() is not None or threading.getprofile() is not None:
            warnings.warn(
                "namoo.profiler: another profiler is already active (sys.setprofile), so the "
                "trace has no Python functions. Set ProfileOptions.python_tracer_level = 0 if you "
                "do not need them.",
                stacklevel=4,
            )
            return False

        def first(frame: FrameType, event: str, arg: Any) -> None:
            record = self._listener()
            sys.setprofile(record)
            record(frame, event, arg)

        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(first)
        else:
            threading.setprofile(first)
            sys.setprofile(first)
        return True

    def _listener(self) -> Callable[[FrameType, str, Any], None]:
        """Return a function for `sys.setprofile` that records the calls of the current thread."""
        thread, done, limit = self.thread(), self.functions, self.limit
        # The code of functions that were called and have not returned, None for C functions.
        stack: list[tuple[CodeType | None, int]] = []

        def record(frame: FrameType, event: str, arg: Any) -> None:
            if self.over or len(done) >= limit:
                sys.setprofile(None)
                if not self.over:
                    self._warn_full("calls of Python functions")
                return
            if frame.f_code.co_filename in _OWN:
                return
            if event == "call":
                stack.append((frame.f_code, now()))
                return
            if event == "c_call":
                stack.append((None, now()))
                return
            end = now()
            code = frame.f_code if event == "return" else None
            # Nearly always the last entry; others remain if the listener was paused and missed a
            # return.
            depth = len(stack) - 1
            while depth >= 0 and stack[depth][0] is not code:
                depth -= 1
            if depth >= 0:
                start = stack[depth][1]
                del stack[depth:]
                # A bound method would keep its object alive, so only the name is stored.
                done.append((thread, start, end, code or _c_function_name(arg), None))

        self._listeners[record] = thread, stack
        return record


def _name(what: str | CodeType) -> str:
    if isinstance(what, str):
        return what
    return f"${os.path.basename(what.co_filename)}:{what.co_firstlineno} {what.co_name}"


def _c_function_name(function: Any) -> str:
    module, name = getattr(function, "__module__", None), function.__qualname__
    return f"${module} {name}" if module else f"${name}"
