"""A pool of threads for kernels: work is taken in pieces of equal size, by whoever is free.

`namoo_parallel(fn, table, units, least, most)` calls `fn(table, begin, end)` for all units, in
pieces of `least` to `most`, and returns when they are done.  `namoo_interrupted()` runs the Python
handlers of signals that arrived, and is 1 if one of them raised (Ctrl-C): loops and
`namoo_parallel` ask it now and then, and return early if so.  Which thread runs which piece changes
nothing in what is computed, so results are equal in every bit for any number of threads.  While one
caller uses the pool, another runs its own pieces alone.  Threads that find nothing to do look again
for a while, then sleep.  The C++ part has the same in `workers.cpp`, which spares LLVM the work.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import threading
from _thread import allocate_lock, get_ident, start_new_thread
from typing import Any

_LOOKS = 20000
# How many pieces there are for each thread: enough to end together, and few, so that each thread
# goes through memory in long runs and seldom asks for the next.
_PIECES = 8
# Processor time between two checks for signals, each of which needs the GIL: in microseconds.
_BETWEEN_CHECKS = 200_000

# The kernel's number of the call `futex`, by which threads sleep and are woken.
_FUTEX = {("Linux", "x86_64"): 202, ("Linux", "aarch64"): 98}

_POOL = """
@job_fn = internal global ptr null
@job_table = internal global ptr null
@job_units = internal global i64 0
@job_grain = internal global i64 0
@next = internal global i64 0, align 64
@finished = internal global i64 0, align 64
@generation = internal global i32 0, align 64
@open = internal global i32 0, align 64
@active = internal global i32 0
@busy = internal global i32 0
@sleepers = internal global i32 0
@limit = internal global i32 0
@main_thread = internal global i64 0
@last_check = internal global i64 0
@raised = global [3 x ptr] zeroinitializer

{declarations}
declare i64 @PyThread_get_thread_ident()
declare i64 @clock()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)

define i32 @namoo_interrupted() {{
entry:
  %me = call i64 @PyThread_get_thread_ident()
  %main = load atomic i64, ptr @main_thread monotonic, align 8
  %handles = icmp eq i64 %me, %main
  br i1 %handles, label %time, label %no
time:
  %now = call i64 @clock()
  %last = load i64, ptr @last_check
  %since = sub i64 %now, %last
  %early = icmp ult i64 %since, {between}
  br i1 %early, label %no, label %look
look:
  store i64 %now, ptr @last_check
  %state = call i32 @PyGILState_Ensure()
  %status = call i32 @PyErr_CheckSignals()
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %keep, label %release
keep:
  %value = getelementptr ptr, ptr @raised, i64 1
  %trace = getelementptr ptr, ptr @raised, i64 2
  call void @PyErr_Fetch(ptr @raised, ptr %value, ptr %trace)
  call void @PyErr_NormalizeException(ptr @raised, ptr %value, ptr %trace)
  br label %release
release:
  call void @PyGILState_Release(i32 %state)
  %result = zext i1 %failed to i32
  ret i32 %result
no:
  ret i32 0
}}

define internal i32 @take(ptr %fn, ptr %table, i64 %units, i64 %grain, i1 %checks) {{
entry:
  br label %more
more:
  %b = atomicrmw add ptr @next, i64 %grain monotonic
  %left = icmp slt i64 %b, %units
  br i1 %left, label %run, label %done
run:
  %far = add i64 %b, %grain
  %inside = icmp slt i64 %far, %units
  %e = select i1 %inside, i64 %far, i64 %units
  call void %fn(ptr %table, i64 %b, i64 %e)
  %n = sub i64 %e, %b
  %old = atomicrmw add ptr @finished, i64 %n release
  br i1 %checks, label %check, label %more
check:
  %stop = call i32 @namoo_interrupted()
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %more
leave:
  ; The work that nobody began is done.
  %reached = atomicrmw xchg ptr @next, i64 %units monotonic
  %within = icmp slt i64 %reached, %units
  %first = select i1 %within, i64 %reached, i64 %units
  %rest = sub i64 %units, %first
  %before = atomicrmw add ptr @finished, i64 %rest release
  ret i32 1
done:
  ret i32 0
}}

define i32 @namoo_parallel(ptr %fn, ptr %table, i64 %units, i64 %least, i64 %most) {{
entry:
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %alone = icmp eq i32 %limit, 0
  %small = icmp sle i64 %units, %least
  %either = or i1 %alone, %small
  br i1 %either, label %serial, label %try
try:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %shared, label %serial
serial:
  br label %piece
piece:
  %b = phi i64 [0, %serial], [%e, %continue]
  %far = add i64 %b, %most
  %inside = icmp slt i64 %far, %units
  %e = select i1 %inside, i64 %far, i64 %units
  call void %fn(ptr %table, i64 %b, i64 %e)
  %stop = call i32 @namoo_interrupted()
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %continue
continue:
  br i1 %inside, label %piece, label %out
out:
  ret i32 %stop
shared:
  %threads = add i32 %limit, 1
  %wanted = mul i32 %threads, {pieces}
  %pieces = zext i32 %wanted to i64
  %share = udiv i64 %units, %pieces
  %huge = icmp ugt i64 %share, %most
  %even = select i1 %huge, i64 %most, i64 %share
  %long = icmp ugt i64 %even, %least
  %grain = select i1 %long, i64 %even, i64 %least
  store ptr %fn, ptr @job_fn
  store ptr %table, ptr @job_table
  store i64 %units, ptr @job_units
  store i64 %grain, ptr @job_grain
  store atomic i64 0, ptr @next monotonic, align 8
  store atomic i64 0, ptr @finished monotonic, align 8
  store atomic i32 1, ptr @open seq_cst, align 4
  %g = atomicrmw add ptr @generation, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %work
wake:
  {wake}
  br label %work
work:
  %status = call i32 @take(ptr %fn, ptr %table, i64 %units, i64 %grain, i1 1)
  br label %wait
wait:
  %looks = phi i32 [0, %work], [%looked, %look], [%looked, %yield]
  %f = load atomic i64, ptr @finished acquire, align 8
  %complete = icmp eq i64 %f, %units
  br i1 %complete, label %close, label %look
look:
  {pause}
  %looked = add i32 %looks, 1
  %late = icmp ugt i32 %looked, 2000
  br i1 %late, label %yield, label %wait
yield:
  ; Somebody else may need this processor to finish.
  %y = call i32 @sched_yield()
  br label %wait
close:
  ; A thread that came late must be gone before the next job is written down.
  store atomic i32 0, ptr @open seq_cst, align 4
  br label %leave
leave:
  %a = load atomic i32, ptr @active seq_cst, align 4
  %gone = icmp eq i32 %a, 0
  br i1 %gone, label %end, label %again
again:
  {pause}
  br label %leave
end:
  store atomic i32 0, ptr @busy release, align 4
  ret i32 %status
}}

define void @worker(i32 %id) {{
entry:
  %first = load atomic i32, ptr @generation acquire, align 4
  br label %rest
rest:
  %seen = phi i32 [%first, %entry], [%now, %out], [%now, %awake], [%seen, %slept]
  br label %look
look:
  %count = phi i32 [0, %rest], [%following, %same]
  %now = load atomic i32, ptr @generation acquire, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %awake, label %same
same:
  {pause}
  %following = add i32 %count, 1
  %tired = icmp ugt i32 %following, {looks}
  br i1 %tired, label %sleep, label %look
sleep:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  {sleep}
  %t = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %slept
slept:
  br label %rest
awake:
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %wanted = icmp slt i32 %id, %limit
  br i1 %wanted, label %enter, label %rest
enter:
  %x = atomicrmw add ptr @active, i32 1 seq_cst
  %is_open = load atomic i32, ptr @open seq_cst, align 4
  %go = icmp ne i32 %is_open, 0
  br i1 %go, label %run, label %out
run:
  %fn = load ptr, ptr @job_fn
  %table = load ptr, ptr @job_table
  %units = load i64, ptr @job_units
  %grain = load i64, ptr @job_grain
  %status = call i32 @take(ptr %fn, ptr %table, i64 %units, i64 %grain, i1 0)
  br label %out
out:
  %y = atomicrmw sub ptr @active, i32 1 seq_cst
  br label %rest
}}

define void @set_main_thread(i64 %id) {{
  store atomic i64 %id, ptr @main_thread seq_cst, align 8
  ret void
}}

define void @set_limit(i32 %n) {{
  store atomic i32 %n, ptr @limit seq_cst, align 4
  ret void
}}

define void @reset() {{
  store i32 0, ptr @active
  store i32 0, ptr @busy
  store i32 0, ptr @open
  store i32 0, ptr @sleepers
  ret void
}}
"""


def pool_text() -> str:
    """The pool as LLVM reads it, for this system."""
    declarations, pause = ["declare i32 @sched_yield()"], ""
    if platform.machine() in ("x86_64", "AMD64"):
        declarations.append("declare void @llvm.x86.sse2.pause()")
        pause = "call void @llvm.x86.sse2.pause()"
    number = _FUTEX.get((platform.system(), platform.machine()))
    if number is not None:
        declarations.append("declare i64 @syscall(i64, ...)")
        # 128 + 0 waits while the word is as it was seen, 128 + 1 wakes all who wait.
        call = f"call i64 (i64, ...) @syscall(i64 {number}, ptr @generation, "
        sleep = f"{call} i32 128, i32 %seen, ptr null)"
        wake = f"{call} i32 129, i32 2147483647, ptr null)"
    else:
        declarations.append("declare i32 @usleep(i32)")
        sleep, wake = "call i32 @usleep(i32 50)", ""
    return _POOL.format(
        declarations="\n".join(declarations),
        pause=pause,
        sleep=sleep.replace("call", "%r1 = call", 1),
        wake=wake.replace("call", "%r2 = call", 1),
        looks=_LOOKS,
        pieces=_PIECES,
        between=_BETWEEN_CHECKS,
    )


def imports() -> dict[str, int]:
    """The functions of Python's that the pool's text calls."""
    names = ("PyThread_get_thread_ident", "PyGILState_Ensure", "PyGILState_Release",
             "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_NormalizeException")  # fmt: skip
    return {name: _address(ctypes.pythonapi[name]) for name in names}


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class Pool:
    """The threads of this process."""

    def __init__(self, functions: dict[str, int], library: object):
        self._library = library  # the code lives as long as this object
        self.functions = functions
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_int32)(functions["worker"])
        self._set_limit = ctypes.CFUNCTYPE(None, ctypes.c_int32)(functions["set_limit"])
        set_main_thread = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(functions["set_main_thread"])
        self._set_main_thread = set_main_thread
        self._reset = ctypes.CFUNCTYPE(None)(functions["reset"])
        self._set_main_thread(threading.main_thread().ident or 0)
        self._started = 0
        self._lock = allocate_lock()
        os.register_at_fork(after_in_child=self._forked)

    def resize(self, count: int) -> None:
        """Use `count` threads, the caller's included."""
        with self._lock:
            while self._started < count - 1:
                # Unlike `threading.Thread`, it does not wait until the thread has begun.
                start_new_thread(self._worker, (self._started,))
                self._started += 1
            self._set_limit(count - 1)

    def raised(self) -> BaseException | None:
        """The exception that a signal's handler raised, where the pool is LLVM's."""
        kept = (ctypes.c_void_p * 3).from_address(self.functions["raised"])
        kind, value, trace = (
            pointer and ctypes.cast(pointer, ctypes.py_object) for pointer in kept
        )
        if value is None:
            return None
        error = value.value.with_traceback(trace and trace.value)
        for reference in (kind, value, trace):
            if reference is not None:
                ctypes.pythonapi.Py_DecRef(reference)
        kept[:] = [None] * 3
        return error

    def _forked(self) -> None:
        """A child has none of its parent's threads; it starts its own with its next program."""
        self._lock = allocate_lock()
        self._reset()
        self._set_main_thread(get_ident())
        self._started = 0
        self._set_limit(0)


@functools.cache
def _count() -> list[int]:
    """The number of threads that is wanted, in a list so that it can be changed."""
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.strip().isdigit() and int(text) > 0:
        return [int(text)]
    if hasattr(os, "sched_getaffinity"):
        return [len(os.sched_getaffinity(0))]
    return [os.cpu_count() or 1]


def get_num_threads() -> int:
    """How many threads compiled programs use.

    >>> get_num_threads() >= 1
    True
    """
    return _count()[0]


def set_num_threads(count: int) -> None:
    """Let compiled programs use `count` threads; results do not depend on it.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"set_num_threads needs a positive integer, got {count!r}.")
    _count()[0] = count
    from namoo.engines.native import link

    if link.pool.cache_info().currsize:
        link.pool().resize(count)
