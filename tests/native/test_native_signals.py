"""Signals stop compiled programs: Ctrl-C in loops and long kernels, and other handlers."""

import os
import subprocess
import sys

import pytest

# What every child process begins with.  `stopped` runs a call that would take for ever and is
# stopped by a signal of another thread; the test itself waits for no longer than `LIMIT` seconds.
HEAD = """
import os, signal, threading, time, traceback
import numpy as np
import namoo
import namoo.numpy as jnp
from namoo import lax

namoo.config.update("engine", "native")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

def send(number, delay=0.3):
    threading.Timer(delay, os.kill, (os.getpid(), number)).start()

def stopped(call, *args):
    send(signal.SIGINT)
    try:
        call(*args)
    except KeyboardInterrupt as error:
        return error
    raise AssertionError("the call was not stopped")

FOREVER = 2**31 - 1
"""
LIMIT = 120

LOOPS = """
@namoo.jit
def registers(n, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, x))[1]

@namoo.jit
def kernels(n, x):
    step = lambda c: (c[0] + 1, jnp.sin(c[1]) * 0.5 + 1)
    return lax.while_loop(lambda c: c[0] < n, step, (0, x))[1]

@namoo.jit
def nested(n, x):
    step = lambda i, x: lax.fori_loop(0, n, lambda j, y: jnp.cos(y) + x, x)
    return lax.fori_loop(0, n, step, x)

@namoo.jit
def scanned(n, x):
    def step(x, _):
        y = lax.cond(n > 5, lambda: lax.fori_loop(0, n, lambda i, y: y @ y * 0.01, x), lambda: x)
        return y, y.sum()
    return lax.scan(step, x, None, length=4)[1]

for function, x in [
    (registers, np.float32(3)),
    (kernels, np.ones(50, np.float32)),
    (kernels, np.ones(10**6, np.float32)),
    (nested, np.float32(3)),
    (scanned, np.ones((30, 30), np.float32)),
]:
    right = np.asarray(function(3, x))
    error = stopped(function, FOREVER, x)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "stopped", names
    (note,) = error.__notes__
    # the innermost loop that ran, at its line
    assert function.__name__ in note and "lax." in note, note
    np.testing.assert_array_equal(function(3, x), right)
"""

KERNELS = """
pieces = jnp.arange(3000, dtype=jnp.float32)
product = namoo.jit(lambda x: x @ x)
total = namoo.jit(lambda x: jnp.sin(x[:, None, None] * x[:, None] + x).sum())
for function, x in [(product, jnp.ones((9000, 9000))), (total, pieces)]:
    small = x[:50, :50] if x.ndim == 2 else x[:50]
    right = np.asarray(function(small))
    function.lower(x).compile()
    stopped(function, x)
    np.testing.assert_array_equal(function(small), right)
"""

# A handler runs while the program does, and the program goes on unless the handler raises.
HANDLERS = """
@namoo.jit
def count(n, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, x))[1]

right, seen = count(3, 1.0), []

def handler(number, frame):
    seen.append(float(count(3, 1.0)))  # a program may run in between
    if len(seen) == 2:
        raise TimeoutError("enough")

signal.signal(signal.SIGUSR1, handler)
send(signal.SIGUSR1)
send(signal.SIGUSR1, 0.9)
try:
    while True:
        count(FOREVER, 1.0)
except TimeoutError as error:
    assert str(error) == "enough"
assert seen == [right, right], seen
"""

# A loop in another thread goes on: Python's handlers run in the main thread alone.
THREADS = """
@namoo.jit
def count(n, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, x))[1]

right, results = count(10, 1.0), []
other = threading.Thread(target=lambda: results.append(count(10**8, 1.0)))
other.start()
stopped(time.sleep, 60)
stopped(count, FOREVER, 1.0)
while not results:
    time.sleep(0.01)
np.testing.assert_allclose(results, [2.0])
assert count(10, 1.0) == right
"""

# What was donated to a program that did not finish is gone, and says so.
DONATED = """
from functools import partial

@partial(namoo.jit, donate_argnums=1)
def grow(n, x):
    return lax.fori_loop(0, n, lambda i, x: x + 1, x)

x = grow(2, jnp.zeros(1000))
other = x[:]
stopped(grow, FOREVER, x)
assert x.is_deleted()
np.testing.assert_array_equal(grow(2, jnp.zeros(1000)), np.full(1000, 2))
"""

HOST = """
@namoo.jit
def calls_back(x):
    add_one = lambda y: np.asarray(y) + 1
    step = lambda c: namoo.pure_callback(add_one, namoo.ShapeDtypeStruct((), "float32"), c)
    return lax.while_loop(lambda c: c >= 0, step, x)

for _ in range(5):
    stopped(calls_back, jnp.float32(0))
"""


PROGRAMS = {
    "loops": LOOPS,
    "kernels": KERNELS,
    "handlers": HANDLERS,
    "threads": THREADS,
    "donated": DONATED,
    "host": HOST,
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
@pytest.mark.parametrize("runtime", ["", "python"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_signals_stop_a_program(name, runtime, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HEAD + PROGRAMS[name])
    environment = {**os.environ, "NAMOO_RUNTIME": runtime, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr[-3000:]
