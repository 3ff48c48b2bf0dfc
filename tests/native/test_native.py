"""The native engine against eager evaluation: every primitive, threads and memory."""

import ctypes
import functools
import mmap
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import engine_oracle
import guard_pages
import namoo
import namoo.numpy as jnp
from engine_oracle import close_to
from namoo import lax
from namoo.core.array import to_numpy
from namoo.core.primitive import Primitive
from namoo.engines.native import engine, pipeline, tuning
from namoo.engines.native.engine import native
from namoo.engines.native.kernels import access
from namoo.engines.native.link import code as link
from namoo.engines.native.link import loader, threads
from namoo.engines.native.link.jobs import Job

compiled = functools.partial(engine_oracle.compiled, native)


@pytest.fixture(autouse=True)
def wide_types():
    with namoo.enable_x64(True):
        yield


@pytest.mark.parametrize("jobs", engine_oracle.groups(25), ids=lambda jobs: str(jobs[0][0]))
def test_every_primitive_has_the_value_of_eager_mode(jobs):
    engine_oracle.check(native, jobs)


def softmax(x):
    return namoo.nn.softmax(x, axis=1)


def norm(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)


def mixed(x):
    y = jnp.tanh(x @ x.T / 100)
    return y.sum(0), jnp.argmax(y, 1), jnp.cumsum(y, 1)[:, ::2], jnp.sort(y, 0)


def loop(x):
    def body(c, row):
        c = jnp.sin(c) * 0.5 + row
        return c, c.max()

    return lax.scan(body, x[0], x)


PROGRAMS = {f.__name__: f for f in (softmax, norm, mixed, loop)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(3, 5), (40, 17), (300, 257)], ids=str)
def test_programs_agree_with_eager_mode(name, shape):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    run, inputs = compiled(lambda x: namoo.tree.leaves(PROGRAMS[name](x)), x)
    for found, wanted in zip(run(inputs), namoo.tree.leaves(PROGRAMS[name](x)), strict=True):
        close_to(found, np.asarray(wanted), name)


def test_fusion():
    x = jnp.ones((64, 32), jnp.float32)
    counts = {}
    for name, fun in {
        "chain": lambda x: jnp.tanh(x * 2 + 1) - jnp.exp(x),
        "softmax": softmax,
        "norm": norm,
        "layer": lambda x: namoo.nn.relu(x @ x.T + 1.0),
    }.items():
        run, _ = compiled(lambda x, fun=fun: [fun(x)], x)
        counts[name] = run.kernels
    assert counts == {"chain": 1, "softmax": 1, "norm": 1, "layer": 1}


def test_equal_layers_are_one_kernel():
    def layers(n):
        def f(x, *ws):
            for w in ws:
                x = namoo.nn.relu(x @ w)
            return [x]

        ws = [jnp.ones((32, 32), jnp.float32)] * n
        return compiled(f, jnp.ones((8, 32), jnp.float32), *ws)[0].kernels

    assert layers(2) == layers(9)


def test_results_do_not_depend_on_the_number_of_threads():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(700, 900)), jnp.float32)

    def f(x):
        return [x.sum(), x.sum(0), softmax(x), x @ x.T, jnp.cumsum(x), jnp.exp(x).max(1)]

    engine_oracle.require_same_bits(*compiled(f, x))


PIECE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(ctypes.c_int32, PIECE, ctypes.c_void_p, *[ctypes.c_int64] * 3)
PIECES = [
    (1, 1, 1), (7, 1, 9), (100_000, 1, 10**9), (100_000, 60_000, 70_000), (50, 9, 90), (50, 1, 3),
]  # fmt: skip


@pytest.mark.skipif(threads.runtime is None, reason="the C++ part was not built")
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("units, least, most", PIECES)
def test_work_is_shared_in_few_pieces(count, units, least, most):
    """All units once, and no more pieces than a few for each thread, unless they would be long."""
    pieces = []
    note = PIECE(lambda table, begin, end: pieces.append((begin, end)))
    shared = threads.pool()
    try:
        shared.resize(count)
        for _ in range(10):  # threads that were late for the first are there for the last
            pieces.clear()
            assert RUN(shared.functions["namoo_parallel"])(note, None, units, least, most) == 0
            pieces.sort()
            assert [b for b, _ in pieces] == [0, *(e for _, e in pieces[:-1])]
            assert pieces[-1][1] == units and len(pieces) < max(16 * count, units // most + 2)
            assert all(least <= e - b <= most for b, e in pieces[:-1])
    finally:
        shared.resize(threads.get_num_threads())


@pytest.mark.parametrize("units, least, most", PIECES)
def test_without_cpp_one_thread_does_all_work_in_order(units, least, most, monkeypatch):
    monkeypatch.setattr(link, "runtime", None)
    functions = link._support.__wrapped__()
    pieces = []
    note = PIECE(lambda table, begin, end: pieces.append((begin, end)))
    assert RUN(functions["namoo_parallel"])(note, None, units, least, most) == 0
    starts = range(0, units, most)
    assert pieces == [(b, min(b + most, units)) for b in starts]


def test_without_cpp_programs_use_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "runtime", None)
    before = threads.compiling_threads()
    namoo.set_num_threads(3)
    assert namoo.get_num_threads() == 1
    namoo.set_num_threads(before)


def test_many_threads_call_one_function():
    x = jnp.arange(200_000, dtype=jnp.float32)
    run, inputs = compiled(lambda x: [jnp.sin(x) * 2, x.sum()], x)
    wanted = [y.tobytes() for y in run(inputs)]
    wrong = []

    def work():
        for _ in range(20):
            if [y.tobytes() for y in run(inputs)] != wanted:
                wrong.append(1)

    pool = [threading.Thread(target=work) for _ in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not wrong


def test_after_fork():
    code = """
import os, numpy as np, namoo, namoo.numpy as jnp
namoo.set_num_threads(2)
f = namoo.jit(lambda x: jnp.tanh(x).sum())
x = jnp.ones(1_000_000)
first = float(f(x))
child = os.fork()
if child == 0:
    os._exit(0 if float(f(x)) == first and float(namoo.jit(lambda x: x.max())(x)) == 1 else 1)
assert os.waitpid(child, 0)[1] == 0 and float(f(x)) == first
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


GUARDED = {
    "elementwise": lambda x: [jnp.tanh(x) + x],
    "rows": lambda x: [softmax(x)],
    "columns": lambda x: [x.sum(0)],
    "transposed": lambda x: [x.T + 1],
    "product": lambda x: [x @ x.T, x.T @ x],
    "gather": lambda x: [x[jnp.array([0, -1, 2]), :], jnp.take(x, jnp.array([1, 99]), 1)],
    "slices": lambda x: [x[1:, ::-1], jnp.pad(x, 2), lax.dynamic_slice(x, (9, 9), (2, 2))],
    "scans": lambda x: [
        jnp.cumsum(x, 0),
        jnp.cumsum(x, 1),
        lax.scan(lambda c, r: (c + r, c), x[0], x)[1],
    ],
    "booleans": lambda x: [(x > 0).all(1), x > 0],
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
@pytest.mark.parametrize("name", GUARDED)
def test_no_kernel_leaves_its_arrays(name):
    """Inputs and outputs lie against pages that may not be touched: a step beyond is a crash."""
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
import test_native
test_native.run_guarded({name!r})
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr.decode()[-2000:]


def run_guarded(name):
    for shape in [(3, 5), (4, 16), (7, 33)]:
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        run, inputs = compiled(GUARDED[name], jnp.asarray(x))
        wanted = run(inputs)
        for at_end in (False, True):
            for found, value in zip(guard_pages.run(run, inputs, at_end), wanted, strict=True):
                np.testing.assert_array_equal(found, value)


def test_code_is_freed_with_its_function():
    """In a process of its own: a large one gives and takes memory for other reasons."""
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_native; test_native.compile_often()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def compile_often():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    def several(start, count):
        for n in range(start, start + count):
            run, inputs = compiled(lambda x: [x * 2 + 1], jnp.ones(n, jnp.float32))
            run(inputs)

    several(1, 60)
    before = resident()
    several(61, 150)
    assert resident() - before < 20e6


@pytest.mark.parametrize(
    ("setting", "fun", "value", "operation"),
    [
        ("debug_nans", jnp.log, -1.0, "log"),
        (
            "debug_nans",
            lambda x: lax.scan(lambda c, _: (jnp.sqrt(c - 1), c), x, None, 3),
            1.5,
            "sqrt",
        ),
        ("debug_infs", lambda x: 1 / x, 0.0, "div"),
    ],
)
def test_bad_values_are_found_where_they_arise(setting, fun, value, operation):
    wanted = rf"encountered in {operation}.*\n  at .*test_native.py:\d+"
    with getattr(namoo, setting)(True), pytest.raises(FloatingPointError, match=wanted):
        namoo.jit(lambda x: fun(x))(jnp.float32(value))
    namoo.jit(lambda x: fun(x))(jnp.float32(value))


def test_calls_as_numbers_are_the_calls_written_out(monkeypatch):
    def deep(x, w):
        for _ in range(12):
            x = jnp.tanh(x @ w) * 0.5 + jnp.sin(x).mean()
        # What is no kernel comes between two lists; what is one is in them.
        y = lax.dynamic_update_slice(jnp.sort(x, 0), x[:8] * 2, (3, 0))
        for _ in range(12):
            y = y @ w - y.max(0)
        y = jnp.concatenate([y, x], 1)
        return y, x

    monkeypatch.setenv("NAMOO_CACHE", "off")
    args = [to_numpy(namoo.random.uniform(namoo.random.key(i), (64, 64))) for i in range(2)]
    results = []
    for few in (1, 10**6):
        monkeypatch.setattr(tuning, "FEW_CALLS", few)
        program, inputs = compiled(deep, *args)
        assert program.as_text("llvm").count("call i32 @calls(") == (2 if few == 1 else 0)
        results.append(program(inputs))
    assert all(map(np.array_equal, *results))


@pytest.mark.parametrize("loaded_by", ["loader", "LLVM"])
def test_programs_compiled_in_pieces_are_the_same(monkeypatch, loaded_by):
    def several(x):
        y = namoo.nn.softmax(x @ x.T)
        return y.sum(0), jnp.sort(y, 1), jnp.sin(y) @ x, jnp.cumsum(x)

    def unsupported(*_):
        raise loader.Unsupported

    monkeypatch.setenv("NAMOO_CACHE", "off")
    if loaded_by == "LLVM":
        monkeypatch.setattr(loader, "Image", unsupported)
    x = to_numpy(namoo.random.normal(namoo.random.key(0), (96, 64)))
    before, results = namoo.get_num_threads(), []
    for size in (10**9, 1):
        monkeypatch.setattr(tuning, "MODULE_PART", size)
        namoo.set_num_threads(4)
        program, inputs = compiled(several, x)
        namoo.set_num_threads(before)
        assert len(program.made.code.libraries) == (1 if size > 1 else 4)
        results.append(program(inputs))
    assert all(map(np.array_equal, *results))


COLUMNS = {
    "one": (lambda x, b: jnp.exp(b - 0.1 * x.sum(0)), "f4"),
    "several": (lambda x, b: b * x.mean(0) / (1 + jnp.abs(x - b).max(0)), "f4"),
    "pairs": (lambda x, b: b + x.argmax(0) * b, "f4"),
    "complex": (lambda x, b: jnp.abs(x.sum(0) * b), "c8"),
    "conditions": (lambda x, b: jnp.where((x > 0.3).any(0), b, -b), "f4"),
}


@pytest.mark.parametrize("width", [128, 256, 144, 40])
@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_computed_of_sums_of_columns(name, width):
    fun, dtype = COLUMNS[name]
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(300, width)).astype(dtype), rng.normal(size=width).astype(dtype)
    program, inputs = compiled(lambda *args: [fun(*args)], x, b)
    np.testing.assert_allclose(program(inputs)[0], fun(x, b), rtol=2e-5, atol=2e-5)


def test_sums_of_rows_run_along_them():
    """What is read or written once a row does not decide which axis becomes the vector."""

    def scaled(x, low, scale):
        return ((x - low[:, None]) * scale[:, None]).sum(1)

    program, _ = compiled(
        lambda *args: [scaled(*args)], jnp.ones((64, 32)), jnp.ones(64), jnp.ones(64)
    )
    assert "gather" not in program.as_text("llvm")


def test_layers_that_add_to_a_sum_are_one_kernel_each():
    def layers(count):
        def f(weights, x):
            for w in weights:
                x = x + namoo.nn.standardize(x) @ w
            return (x * x).sum()

        weights = [jnp.ones((32, 32), jnp.float32)] * count
        closed = namoo.make_jaxpr(namoo.grad(f))(weights, jnp.ones((8, 32), jnp.float32))
        module = pipeline.result_of("emit", pipeline.Source(closed))
        return len(module.plan.graph.structures), len(module.kernels)

    assert layers(4) == layers(12)


def test_what_a_job_raises_comes_back():
    with pytest.raises(ZeroDivisionError):
        Job(divmod, 1, 0).result()


def test_layers_that_are_alike_are_planned_once(monkeypatch):
    def layers(count):
        def loss(weights, x):
            for w, b in weights:
                x = namoo.nn.relu(x @ w + b)
            return (x * x).mean()

        def step(weights, x):
            gradients = namoo.grad(loss)(weights, x)
            return namoo.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

        weights = [(jnp.ones((32, 32), jnp.float32), jnp.zeros(32, jnp.float32))] * count
        looked.clear()
        closed = namoo.make_jaxpr(step)(weights, jnp.ones((8, 32), jnp.float32))
        module = pipeline.result_of("emit", pipeline.Source(closed))
        code = sum(not line.startswith("@calls") for line in module.text().splitlines())
        return len(module.plan.graph.structures), len(module.kernels), len(looked), code

    looked, probe = [], access.probe
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(access, "probe", lambda *args: looked.append(args) or probe(*args))
    assert layers(8) == layers(24)


RULES = {
    "in order": (lambda x, y: x - y, lambda emit, x, y: emit.map("sub", x, y)),
    "exchanged": (lambda x, y: y - x, lambda emit, x, y: emit.map("sub", y, x)),
    "the last": (lambda x, y: y, lambda emit, x, y: y),
}


class Counted(Primitive):
    """A primitive that counts how often its rule is asked."""

    def __init__(self, name):
        self.name, self.asked = name, 0
        self.evaluate, self.rule = RULES[name]

    def abstract(self, x, y):
        return x

    def native(self, emit, x, y):
        self.asked += 1
        return self.rule(emit, x, y)


@pytest.mark.parametrize(
    "name, pairs, asked",
    [
        ("in order", "ab ca bc ab", 1),
        ("the last", "ab ca bc ab", 1),
        # Only what reads its operands in their order is known to do so with others.
        ("exchanged", "ab ca bc ab", 4),
        # Of one operand twice it is not known which is read where.
        ("in order", "aa ab ba cc", 2),
        ("the last", "aa ab ba cc", 2),
        ("exchanged", "aa ab ba cc", 4),
    ],
)
def test_what_a_rule_made_of_operands_is_made_of_others(name, pairs, asked):
    primitive = Counted(name)

    def f(*xs):
        return [primitive.bind(*(xs["abc".index(x)] for x in pair)) for pair in pairs.split()]

    args = [np.full(3, i, np.float32) for i in (1, 10, 100)]
    closed = namoo.make_jaxpr(f)(*args)
    program = native.compile(closed)
    for out, expected in zip(program(args), f(*args), strict=True):
        assert np.array_equal(out, expected)
    assert primitive.asked == asked


@pytest.mark.parametrize("others", [0, 1, 2])
def test_places_of_extremes_are_in_one_kernel_with_these(others):
    """Also where the kernel has as many results as it may have."""

    def f(x):
        y = jnp.exp(jnp.sin(x)) * jnp.tanh(x)
        first = [y + i for i in range(others)]
        count = tuning.ROOTS_LIMIT // 2 + 1
        return first + [jnp.argmax(y * (i + 1) + i * y * y, 1) for i in range(count)]

    x = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    program, inputs = compiled(f, x)
    for out, expected in zip(program(inputs), f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-6)


def _wide(x, length):
    return jnp.broadcast_to(x[:, None, None], (3, length, length))


def _in_between(x, length):
    return jnp.sort(_wide(x, length), axis=1)[::-1].sum()  # line 1


def _as_a_result(x, length):
    return x.sum(), jnp.sin(_wide(x, length)) + 1  # line 2


def _in_a_loop(x, length):
    return lax.scan(
        lambda c, _: (jnp.sort(_wide(c, length), axis=1)[:, 0, 0], None),  # line 3
        *(x, None, 3),
    )[0]


@pytest.mark.parametrize("cpp", [True, False])
@pytest.mark.parametrize(
    "fun, what, line",
    [
        (_in_between, "for values in between", 1),
        (_as_a_result, "for its result 1", 2),
        (_in_a_loop, "for values in between", 3),
    ],
)
@pytest.mark.parametrize("length", [2**24, 2**31])
def test_a_program_without_memory_says_how_much_and_where(
    monkeypatch, fun, what, line, cpp, length
):
    """More than any machine has; the number of bytes may be more than a word holds."""
    if not cpp:
        monkeypatch.setattr(engine, "runtime", None)
    x = np.ones(3, np.float32)
    program = native.compile(namoo.make_jaxpr(fun, static_argnums=1)(x, length))
    with pytest.raises(MemoryError, match=what) as caught:
        program([x])
    message = str(caught.value)
    wanted, *_ = re.findall(r"\((\d+) bytes\)", message)
    assert int(wanted) >= 12 * length**2
    assert f"# line {line}" in message and len(message.splitlines()) <= 25
    assert fun.__name__ in message
