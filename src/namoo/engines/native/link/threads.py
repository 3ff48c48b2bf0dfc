"""The threads that share the work of kernels.

The pool is in the C++ part (`workers.cpp`); without it programs run on one thread. Results do not
depend on which thread runs which piece of work: they are bitwise equal for any number of threads.
"""

from __future__ import annotations

import ctypes
import os
import threading
from _thread import allocate_lock, get_ident, start_new_thread

from namoo._base.caches import cached
from namoo._base.runtime import native as runtime


class Pool:
    """The worker threads of this process."""

    def __init__(self, functions: dict[str, int]):
        self.functions = functions
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_int32)(functions["worker"])
        self._set_limit = ctypes.CFUNCTYPE(None, ctypes.c_int32)(functions["set_limit"])
        set_main_thread = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(functions["set_main_thread"])
        self._set_main_thread = set_main_thread
        self._reset = ctypes.CFUNCTYPE(None)(functions["reset"])
        self._set_main_thread(threading.main_thread().ident or 0)
        self._started = 0
        self._lock = allocate_lock()
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(after_in_child=self._forked)

    def resize(self, count: int) -> None:
        """Use `count` threads, the caller's included."""
        with self._lock:
            while self._started < count - 1:
                # Unlike `threading.Thread`, this does not wait for the thread to start.
                start_new_thread(self._worker, (self._started,))
                self._started += 1
            self._set_limit(count - 1)

    def _forked(self) -> None:
        """Forget the threads, which a forked child does not have; new ones start on demand."""
        self._lock = allocate_lock()
        self._reset()
        self._set_main_thread(get_ident())
        self._started = 0
        self._set_limit(0)


@cached("native link: thread pool", bound=1, keyed_by="nothing", kept=True)
def pool() -> Pool:
    """The pool of this process."""
    return Pool(runtime.workers)


@cached("native threads: wanted number", bound=1, keyed_by="nothing", kept=True)
def _count() -> list[int]:
    """The number of threads that the user wants, in a list so that it can be changed."""
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.strip().isdigit() and int(text) > 0:
        return [int(text)]
    if hasattr(os, "sched_getaffinity"):
        return [len(os.sched_getaffinity(0))]
    return [os.cpu_count() or 1]


def compiling_threads() -> int:
    """How many threads may compile at the same time."""
    return _count()[0]


def get_num_threads() -> int:
    """How many threads compiled programs use: one, where the C++ part was not built.

    Example:
        >>> get_num_threads() >= 1
        True
    """
    return 1 if runtime is None else _count()[0]


def set_num_threads(count: int) -> None:
    """Let compiled programs use `count` threads; results do not depend on it.

    Without the C++ part they run on one thread, whatever the count.

    Example:
        >>> before = get_num_threads()
        >>> set_num_threads(1)
        >>> get_num_threads()
        1
        >>> set_num_threads(before)
    """
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"set_num_threads needs a positive integer, got {count!r}.")
    _count()[0] = count
    if runtime is not None and pool.cache_info().currsize:
        pool().resize(count)
