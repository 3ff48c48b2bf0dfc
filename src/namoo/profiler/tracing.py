"""Traces: when each part of a program ran, in files that trace viewers open."""

from __future__ import annotations

import functools
import gzip
import http.server
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from time import perf_counter_ns as now
from typing import Any, BinaryIO

from namoo._base import instrument
from namoo._base.atomic_files import replace_file
from namoo._base.source_context import hide_internal_frames
from namoo.api.jit import Jitted
from namoo.api.stages import Compiled
from namoo.devices.available import process_count, process_index
from namoo.profiler import xplane
from namoo.profiler.options import ProfileOptions
from namoo.profiler.session import Session

# The only local port that Perfetto's page reads files from.
_PERFETTO_PORT = 9001

_lock = threading.Lock()
# What to do with the running trace when it is stopped.
_finish: Callable[[Session], None] | None = None
# Classes whose calls are recorded, with their original methods.
_replaced: dict[type, Any] = {}


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Start recording what the program does and when, until `stop_trace`.

    A trace contains calls of functions under `jit`, the time it took to trace and compile each of
    them, the kernels of their native code (named by the user's source line), the spans of
    `TraceAnnotation` and its relatives, and calls of Python functions. Before Python 3.12, Python
    functions are only recorded in the current thread and in threads started later. A trace holds
    at most a million spans and a million calls of Python functions.

    While a trace is running, native programs have a timer for each kernel, so each program is
    compiled once more at its first call. All runs of a kernel in a loop are one event.

    Args:
        log_dir: the directory in which `stop_trace` creates `plugins/profile/<time>`. It contains
            `<host>.trace.json.gz`, which https://ui.perfetto.dev and chrome://tracing open, and
            `<host>.xplane.pb`, for TensorBoard.
        create_perfetto_link: have `stop_trace` print a link that shows the trace in a browser, and
            wait until it has been opened.
        create_perfetto_trace: also write `perfetto_trace.json.gz`.
        profiler_options: what to record.

    Raises:
        RuntimeError: a trace is already running.

    Example:
        >>> import tempfile
        >>> start_trace(tempfile.mkdtemp())
        >>> stop_trace()
    """
    global _finish
    options = ProfileOptions() if profiler_options is None else profiler_options
    if not isinstance(options, ProfileOptions):
        raise TypeError(
            "start_trace: profiler_options must be a namoo.profiler.ProfileOptions, got "
            f"{options!r} of type {type(options).__name__}."
        )
    with _lock:
        if instrument.session is not None:
            raise RuntimeError(
                "Profile has already been started. Only one profile may be run at a time: call "
                "namoo.profiler.stop_trace() first."
            )
        runs = Path(log_dir).absolute() / "plugins" / "profile"
        runs.mkdir(
            parents=True, exist_ok=True
        )  # fail now rather than after everything is collected
        perfetto = create_perfetto_trace or create_perfetto_link
        _finish = functools.partial(
            _export, runs, options.session_id, perfetto, create_perfetto_link
        )
        instrument.session = Session(options.host_tracer_level, options.python_tracer_level)
        if options.host_tracer_level > 1:
            # Only while a trace runs, so that calls need not check whether one does.
            for kind in (Jitted, Compiled):
                _replaced[kind] = vars(kind).get("__call__")
            # The C++ fast path calls programs directly, which records no kernels.
            Jitted.__call__ = _recorded(_general, attrgetter("_name"))
            Compiled.__call__ = _recorded(Compiled.__call__, attrgetter("_traced.fun_name"))


def stop_trace() -> None:
    """Stop the running trace, and write it to the `log_dir` of `start_trace`.

    Raises:
        RuntimeError: no trace is running.
    """
    with _lock:
        session, finish = instrument.session, _finish
        if session is None or finish is None:
            raise RuntimeError(
                "No profile started: call namoo.profiler.start_trace(log_dir) before stop_trace()."
            )
        _end()
        finish(session)


def _end() -> None:
    global _finish
    session, instrument.session, _finish = instrument.session, None, None
    while _replaced:
        kind, own = _replaced.popitem()
        if own is None:
            del kind.__call__
        else:
            kind.__call__ = own
    session.stop()


@contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Context manager: trace the block, like `start_trace` and `stop_trace`.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with trace(folder):
        ...     total = sum(range(10))
        >>> len(list(pathlib.Path(folder).glob("plugins/profile/*/*.trace.json.gz")))
        1
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def _general(function: Jitted, /, *args: Any, **kwargs: Any) -> Any:
    return function.general(args, kwargs)


def _recorded(call: Callable, name: Callable[[Any], str]) -> Callable:
    """Wrap the `__call__` of compiled functions in a span of the running trace."""

    def recorded(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        session, start = instrument.session, now()
        try:
            return call(function, *args, **kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise
        finally:
            if session is not None:
                session.add(f"PjitFunction({name(function)})", start)

    return recorded


def _drop_after_fork() -> None:
    """Drop the parent's trace in a forked process."""
    global _lock
    _lock = threading.Lock()
    if instrument.session is not None:
        _end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_after_fork)


def _export(runs: Path, name: str, perfetto: bool, link: bool, session: Session) -> None:
    host = socket.gethostname()
    if process_count() > 1:  # several processes may share a machine
        host += f"_{process_index()}"
    file = _file(runs, name, f"{host}.trace.json.gz")
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, lambda target: _write_chrome_trace(target, session))
    planes = xplane.space(session.threads, session.collected())
    replace_file(file.parent / f"{host}.xplane.pb", lambda target: target.write(planes))
    if perfetto:
        copy = file.parent / "perfetto_trace.json.gz"
        replace_file(copy, lambda target: target.write(file.read_bytes()))
        if link:
            _serve_once(copy)


def _file(runs: Path, name: str, file: str) -> Path:
    if name:
        return runs / name / file
    stamp = time.strftime("%Y_%m_%d_%H_%M_%S")
    # Two traces may start in the same second.
    names = itertools.chain([stamp], (f"{stamp}_{i}" for i in itertools.count(2)))
    return next(runs / n / file for n in names if not (runs / n / file).exists())


def _write_chrome_trace(target: BinaryIO, session: Session) -> None:
    """Write a trace in Chrome's format."""
    with gzip.open(target, "wt", compresslevel=6, encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        separator = ""
        for event in _events(session):
            file.write(separator + event)
            separator = ",\n"
        file.write("\n]}\n")


def _events(session: Session) -> Iterator[str]:
    pid = os.getpid()
    quoted = functools.cache(json.dumps)

    def label(kind: str, tid: int | None = None, **args: Any) -> str:
        thread = {} if tid is None else {"tid": tid}
        return json.dumps({"ph": "M", "pid": pid, **thread, "name": kind, "args": args})

    yield label("process_name", name="/host:CPU")
    for what in session.full:
        yield label("process_labels", labels=f"only the first {session.limit} {what}")
    for number, (tid, name) in enumerate(list(session.threads.items()), 1):
        yield label("thread_name", tid, name=name)
        yield label("thread_sort_index", tid, sort_index=number)
    for tid, start, end, name, args in session.collected():
        shown = {key: text for key, text in args.items() if key != "_r"} if args else {}
        more = f',"args":{json.dumps(shown)}' if shown else ""
        yield (
            f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{start / 1000},"dur":{(end - start) / 1000},'
            f'"name":{quoted(name)}{more}}}'
        )


def _serve_once(file: Path) -> None:
    """Print a link to Perfetto's page, and serve the file to it once."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal served
            served = self.path == f"/{file.name}"
            if not served:
                self.send_error(404)
                return
            content = file.read_bytes()
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "application/gzip")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: only the link is printed."""

    served = False
    with http.server.HTTPServer(("127.0.0.1", _PERFETTO_PORT), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/{file.name}"
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url={address}", flush=True)
        while not served:
            server.handle_request()
