"""Threads or processes that make batches; results arrive in the order of the tasks."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

_UNSENDABLE = (
    "a worker process cannot receive {what}: {error}. Functions and datasets must be importable by "
    "name (no lambdas, nothing defined inside a function or at a prompt); or use threads: "
    "Loader(..., worker_kind='thread')."
)
_DIED = (
    "a worker process ended before its work was done: it was killed (often for lack of memory), or "
    "it could not start. A program that starts processes needs `if __name__ == '__main__':` "
    "around what it runs."
)

_work: Callable[[Any], Any]


def _begin(pickled: bytes) -> None:
    # Ctrl-C is handled by the main process, which stops its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _work
    _work = pickle.loads(pickled)


def _end_with_parent() -> None:
    """Exit when the main process does: if it was killed, it cannot tell its workers."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(task: Any) -> Any:
    try:
        return _work(task)
    except Exception as error:
        # An exception that cannot be pickled would break the pool and hide the cause.
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            text = "".join(traceback.format_exception(error))
            raise RuntimeError(f"{type(error).__name__} in a worker process:\n{text}") from None
        raise


class _AtOnce(Executor):
    """An executor that runs each task before `submit` returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        done: Future = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class Workers:
    """A pool that applies one function to tasks.

    Args:
        work: the function of a task.
        count: how many threads or processes.
        kind: "thread" or "process".
    """

    def __init__(self, work: Callable[[Any], Any], count: int, kind: str):
        self.pool: Executor
        if sys.platform == "emscripten":  # neither threads nor processes
            self.pool, self.function = _AtOnce(), work
        elif kind == "thread":
            self.pool, self.function = ThreadPoolExecutor(count, "namoo-data"), work
        else:
            try:
                pickled = pickle.dumps(work)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise TypeError(_UNSENDABLE.format(what="what it works on", error=error)) from error
            # Forking a process with threads can hang, so a new one is started.
            # Browsers have no processes: importing these fails there.
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            context = get_context("spawn")
            self.pool = ProcessPoolExecutor(count, context, _begin, (pickled,))
            self.function = _run
        self.close = weakref.finalize(self, _close, self.pool)

    def in_order(self, tasks: Iterator[Any], ahead: int, takes_time: bool) -> Iterator[Any]:
        """Yield the results of tasks in order, with at most `ahead` of them in flight.

        Args:
            tasks: the tasks.
            ahead: how many tasks are started before their results are needed.
            takes_time: whether getting a task takes time; then a separate thread does it.
        """
        end: Any = object()

        def submit() -> Future | None:
            task = next(tasks, end)
            return None if task is end else self.pool.submit(self.function, task)

        reader: Executor = _AtOnce()
        if takes_time and sys.platform != "emscripten":
            reader = ThreadPoolExecutor(1, "namoo-data-reader")
        waiting: deque[Future] = deque()
        try:
            waiting.extend(reader.submit(submit) for _ in range(ahead))
            while (made := waiting.popleft().result()) is not None:
                waiting.append(reader.submit(submit))
                try:
                    yield made.result()
                except BrokenExecutor as error:
                    raise RuntimeError(_DIED) from error
        except BrokenExecutor as error:
            raise RuntimeError(_DIED) from error
        finally:
            reader.shutdown(wait=False, cancel_futures=True)
            for read in waiting:
                read.cancel()
                read.add_done_callback(_cancel)


def _cancel(read: Future) -> None:
    """Cancel a task whose result is no longer needed."""
    if not read.cancelled() and read.exception() is None and (made := read.result()) is not None:
        made.cancel()


def _close(pool: Executor) -> None:
    pool.shutdown(wait=True, cancel_futures=True)
