"""Signals without the C++ part: Ctrl-C stops a compiled program.

Programs call two functions. `namoo_interrupted()` runs the Python handlers of pending signals, and
returns 1 if one of them raised. `namoo_parallel(fn, table, units, least, most)` calls
`fn(table, begin, end)` for all units, in pieces of at most `most`, and checks for signals in
between. `workers.cpp` implements both, with threads.
"""

from __future__ import annotations

import ctypes
from typing import Any

FUNCTIONS = ["namoo_interrupted", "namoo_parallel", "raised"]

# A check needs the GIL, so there are at least 50 milliseconds of processor time between two.
IR = """
@last_check = internal global i64 0
@raised = global [3 x ptr] zeroinitializer

declare i64 @clock()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)

define i32 @namoo_interrupted() {
  %now = call i64 @clock()
  %last = load i64, ptr @last_check
  %since = sub i64 %now, %last
  %early = icmp ult i64 %since, 50000
  br i1 %early, label %no, label %check
check:
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
}

define i32 @namoo_parallel(ptr %fn, ptr %table, i64 %units, i64 %least, i64 %most) {
entry:
  br label %piece
piece:
  %begin = phi i64 [0, %entry], [%end, %more]
  %next = add i64 %begin, %most
  %inside = icmp slt i64 %next, %units
  %end = select i1 %inside, i64 %next, i64 %units
  call void %fn(ptr %table, i64 %begin, i64 %end)
  %stop = call i32 @namoo_interrupted()
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %done, label %more
more:
  br i1 %inside, label %piece, label %done
done:
  %status = phi i32 [1, %piece], [0, %more]
  ret i32 %status
}
"""


def imports() -> dict[str, int]:
    """The addresses of the functions of CPython that the code calls."""
    names = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch",
             "PyErr_NormalizeException")  # fmt: skip
    return {n: ctypes.cast(ctypes.pythonapi[n], ctypes.c_void_p).value or 0 for n in names}


def take_exception(address: int) -> BaseException | None:
    """Take the exception that a handler raised, if any, from the variable at `address`."""
    kept = (ctypes.c_void_p * 3).from_address(address)
    parts: list[Any] = [pointer and ctypes.cast(pointer, ctypes.py_object) for pointer in kept]
    _, value, trace = parts
    if value is None:
        return None
    error = value.value.with_traceback(trace and trace.value)
    for reference in parts:
        if reference is not None:
            ctypes.pythonapi.Py_DecRef(reference)
    kept[:] = [None] * 3
    return error
