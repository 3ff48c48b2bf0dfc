"""Native code for places that depend on data: gathers, scatters, scans, sorts, keys, windows.

Each test writes several functions into one program, compiles it once, and compares its results with
what eager mode computes; nothing may be left to the host.
"""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from conformance.harness import assert_close
from engine_oracle import require_same_bits
from namoo import lax, nn, random
from namoo.core.array import EagerArray, to_numpy
from namoo.engines.native import tuning
from namoo.engines.native.engine import native

RNG = np.random.default_rng(0)
F32, I32 = np.float32, np.int32


def normal(*shape):
    return RNG.standard_normal(shape).astype(F32)


def run(fun, *args, host=()):
    """Results of a program in native code, and in eager mode."""
    arrays = [EagerArray(x) if isinstance(x, np.ndarray) else x for x in args]
    program = native.compile(namoo.make_jaxpr(fun)(*arrays))
    assert {primitive.name for primitive, *_ in program.host.equations} == set(host)
    found = program([to_numpy(x) for x in arrays])
    wanted = [to_numpy(x) for x in namoo.tree.leaves(fun(*arrays))]
    assert len(found) == len(wanted)
    return program, found, wanted


def check(fun, *args, ulps=0, host=()):
    """Native and eager results are equal: to the last bit, or within units in the last place."""
    program, found, wanted = run(fun, *args, host=host)
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), i
        inexact = y.dtype.names is None and jnp.issubdtype(y.dtype, jnp.inexact)
        if inexact:
            rtol = ulps * float(jnp.finfo(y.dtype).eps)
            if y.dtype.kind == "V":
                x, y = x.astype(F32), y.astype(F32)
            assert_close(x, y, rtol, f"result {i}")
        else:
            assert (x == y).all(), f"result {i}"
    return program


LEFT_TO_THE_HOST = {
    "gather": set(),
    "cumulative": {"cumlogsumexp"},  # of complex numbers
    "prng": {"rng_bit_generator", "random_bits", "random_split", "random_fold_in"},  # of unsafe_rbg
    "sorting": {"sort"},  # of int4
    "window": set(),
}


@pytest.mark.parametrize("module", LEFT_TO_THE_HOST)
def test_rows_of_the_table(module):
    samples = importlib.import_module(f"conformance.samples_{module}").SAMPLES
    operands = [s.operands() for s in samples]
    starts = np.cumsum([0, *map(len, operands)])

    def all_rows(*xs):
        return [
            y for s, a, b in zip(samples, starts, starts[1:], strict=False) for y in s.run(*xs[a:b])
        ]

    flat = [x for row in operands for x in row]
    _, found, wanted = run(all_rows, *flat, host=LEFT_TO_THE_HOST[module])
    names = [str(s) for s in samples for _ in s.run(*s.operands())]
    for name, x, y in zip(names, found, wanted, strict=True):
        assert_close(x, y, 1e-13, name)


INDICES = RNG.integers(-9, 12, (5, 3))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_gather_modes(dtype):
    x = normal(7, 4, 5)
    points = lax.GatherDimensionNumbers((1,), (0, 2), (0, 2))
    columns = lax.GatherDimensionNumbers((0, 1), (2,), (2,))

    def reads(x, i):
        out = []
        for mode, value in [("clip", None), ("fill", None), ("fill", -2.5), ("one_hot", None)]:
            for numbers, used, sizes in [
                (points, i[:, :2], (1, 4, 1)),
                (columns, i[:, :1], (7, 4, 1)),
            ]:
                out.append(lax.gather(x, used, numbers, sizes, mode=mode, fill_value=value))
        return out

    check(reads, x, INDICES.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64"])
def test_rows_of_a_large_table_are_asked_for_ahead(dtype):
    """Rows beyond the last, the first ones of a thread's, and those out of bounds included."""
    table = jnp.asarray(normal(9000, 37)).astype(dtype)
    i = RNG.integers(-9500, 9500, (3, 11)).astype(I32)

    def reads(table, i):
        return [table[i], table.at[i].get(mode="clip"), jnp.where(i[..., None] > 0, table[i], 1)]

    program = check(reads, table, i)
    assert ("llvm.prefetch" in program.as_text("llvm")) == (table.dtype.kind != "c")


def test_a_small_table_needs_no_asking():
    program, _, _ = run(lambda x, i: x[i], normal(90, 37), np.arange(5, dtype=I32))
    assert "llvm.prefetch" not in program.as_text("llvm")


def test_gather_of_types_and_windows():
    x = normal(6, 17, 33)
    i = RNG.integers(-6, 6, (4, 3)).astype(I32)
    keys = random.split(random.key(1), 6)

    def reads(x, i, keys):
        table = lax.GatherDimensionNumbers((1, 2, 3), (), (0, 2))
        starts = jnp.stack([i[:, 0], i[:, 1] * 7], 1)
        return [
            x[i],
            x[:, i + 6, 1:],
            x[..., i],
            x[i, 2, i * 3],
            (x > 0)[i],
            (x + 1j * x)[i, 3],
            x.astype(jnp.bfloat16)[i],
            jnp.take_along_axis(x, jnp.broadcast_to(i[:1, :, None] + 6, (6, 3, 33)), 1),
            lax.gather(x, starts, table, (2, 17, 5), mode="fill"),
            lax.gather(x, starts, table, (2, 17, 5), mode="clip"),
            keys[i],
            jnp.take(keys, i + 3, mode="fill"),
            x[jnp.array([1, 2])],
            jnp.tanh(x)[i[0], :2].sum(0),
        ]

    check(reads, x, i, keys, ulps=4)


@pytest.mark.parametrize("n", [1, 3, 14, 16, 28, 33, 47, 100])
def test_strides_and_repeats(n):
    x = normal(3, n)

    def reads(x):
        return [
            *(x[:, start::step] for start in (0, 1) for step in (1, 2, 3, -1, -2)),
            *(jnp.repeat(x, times, 1) for times in (2, 3, 4, 16)),
            (x > 0)[:, ::2],
            x.astype(jnp.bfloat16)[:, ::2],
            (x + 1j * x)[:, ::2],
            x[:, ::2].sum(1),
            (jnp.repeat(x, 2, 1) * jnp.arange(2.0 * n)).sum(1),
        ]

    check(reads, x, ulps=16)


@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_scatter_operations(mode):
    x, u = normal(9, 5, 40), normal(6, 2, 5, 40)
    i = RNG.integers(-12, 12, (6, 2)).astype(I32)

    def writes(x, i, u):
        out = []
        for name in ("set", "add", "subtract", "multiply", "min", "max"):
            at = getattr(x.at[i], name)
            out += [at(u, mode=mode), getattr(x.at[i, 2, i * 4], name)(u[..., 0, 0], mode=mode)]
            out += [getattr(x.at[:, 3, i * 3], name)(u[:, :, 0, 0], mode=mode)]
            out += [getattr(x.at[i[0, 0], 1], name)(u[0, 0, 0], mode=mode)]
        return out

    check(writes, x, i, u)


def test_scatter_into_constants():
    u = normal(300, 70)
    i = RNG.integers(-5, 60, 300).astype(I32)

    def writes(i, u):
        return [
            jnp.zeros((50, 70)).at[i].add(u),
            jnp.full((50, 70), 1.5).at[i].multiply(u),
            jnp.zeros(50).at[i].add(u[:, 0]),
            jnp.zeros(50, jnp.int32).at[i].add(1),
            jnp.ones((50, 7)).at[i[:8], 2:5].set(u[:8, :3]),
        ]

    check(writes, i, u)


def test_scatter_of_types():
    i = np.array([3, 1, 3, 9, 0], I32)
    u = normal(5, 6)
    keys = random.split(random.key(0), 5)

    def writes(i, u, keys):
        out = []
        for dtype in ("bfloat16", "float16", "int8", "uint16", "complex64"):
            v = (u * 5).astype(dtype)
            zero = jnp.ones((8, 6), dtype)
            out += [zero.at[i].set(v), zero.at[i].add(v), zero.at[i].multiply(v)]
        out += [jnp.zeros((8, 6), bool).at[i].set(u > 0), jnp.zeros((8, 6), bool).at[i].max(u > 0)]
        out.append(jnp.broadcast_to(keys[0], (8,)).at[i].set(keys))
        return out

    check(writes, i, u, keys)


def test_scatter_in_batches():
    x, u = normal(6, 11, 20), normal(6, 4, 20)
    i = RNG.integers(-13, 13, (6, 4)).astype(I32)

    def writes(x, i, u):
        return [
            namoo.vmap(lambda x, i, u: x.at[i].add(u))(x, i, u),
            namoo.vmap(lambda x, i, u: x.at[i, i].set(u[:, 0]))(x, i, u),
            namoo.vmap(lambda x, i, u: x.at[i[0]].add(u[0]))(x, i, u),
            namoo.vmap(lambda x, i, u: x.at[i[0], 3:7].set(u[0, :4]))(x, i, u),
            namoo.vmap(lambda x: x.at[i].max(u), 1, 1)(x.transpose(1, 0, 2)),
        ]

    check(writes, x, i, u)


def test_loops_write_in_place():
    x = normal(80, 3)

    def loops(x):
        def set_one(i, x):
            return x.at[i, 1].set(x[i, 0] + i)

        def from_itself(i, x):
            # The windows are those of the array as it was before.
            return x.at[jnp.array([1, 0, 2])].set(x[:3]).at[i].add(x[i + 1])

        def running(i, x):
            return jnp.cumsum(x, 0) / 80 + x[i]

        return [
            lax.fori_loop(0, 70, set_one, x),
            lax.fori_loop(0, 70, from_itself, x),
            lax.fori_loop(0, 5, lambda i, x: x.at[::-1].set(x), x),
            lax.fori_loop(0, 5, running, x),
            x,
        ]

    check(loops, x, ulps=4)


def test_fills_of_other_values():
    i, u = RNG.integers(0, 5, 40).astype(I32), normal(40, 37)

    def writes(i, u):
        return [
            jnp.full((5, 37), -jnp.inf).at[i].max(u),
            jnp.full(5, -jnp.inf).at[i].max(u[:, 0]),
            jnp.full((5, 37), 2 + 1j).at[i].multiply(u + 1j),
            jnp.ones((5, 37), bool).at[i].min(u > 0),
        ]

    check(writes, i, u, ulps=16)


def test_cross_entropy_reads_and_writes_no_array_for_its_labels():
    logits, labels = normal(33, 50), RNG.integers(0, 50, 33).astype(I32)

    def loss(logits, labels):
        chosen = jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1)
        return -jnp.mean(chosen)

    program = check(namoo.value_and_grad(loss), logits, labels, ulps=16)
    # The scatter of the gradient is part of a kernel that computes the rest of it.
    assert program.kernels <= 5


@pytest.mark.parametrize("n", [1, 7, 16, 37, 150])
def test_cumulative_lengths(n):
    x = normal(3, n)
    numbers = (x * 100).astype(I32)

    def scans(x, numbers):
        out = []
        for reverse in (False, True):
            for axis in (0, 1):
                exact = [numbers, numbers.astype(jnp.uint8), numbers.astype(jnp.int16)]
                out += [lax.cumsum(v, axis, reverse) for v in (*exact, x)]
                out += [lax.cumprod(v, axis, reverse) for v in (x, numbers)]
                out += [lax.cummax(x, axis, reverse), lax.cummin(numbers, axis, reverse)]
        return out

    check(scans, x, numbers, ulps=1)


def test_cumulative_of_types_and_special_values():
    x = normal(2, 40, 19)
    special = RNG.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, 1e-38], F32), (40, 5))

    def scans(x, special):
        out = []
        for axis in (0, 1, 2):
            out += [lax.cumlogsumexp(x * 30, axis), lax.cumsum(x + 1j * x, axis, True)]
            out += [lax.cumsum(x.astype(jnp.bfloat16), axis), lax.cumprod(x + 2j, axis)]
        for axis in (0, 1):
            out += [
                lax.cumprod(special, axis),
                lax.cummax(special, axis),
                lax.cumsum(special, axis),
            ]
            out += [lax.cumlogsumexp(special, axis)]
        return out

    check(scans, x, special, ulps=8)


def test_random_programs():
    def draws(key):
        first, second = random.split(key)
        return [
            random.bits(first, (5, 7)),
            random.uniform(second, (33,)),
            random.normal(first, (3, 50)),
            random.normal(first, (20,), jnp.bfloat16),
            random.randint(second, (40,), -3, 17),
            random.bernoulli(second, 0.3, (4, 30)),
            random.fold_in(key, 7),
            random.key_data(random.split(second, (2, 3))),
            random.categorical(first, jnp.arange(12.0).reshape(2, 6)),
            random.permutation(first, 20),
            namoo.vmap(lambda k: random.uniform(k, (3,)))(random.split(key, 5)),
            jnp.where(jnp.array([True, False]), random.split(key), random.split(second)),
            random.PRNGKey(first.shape == ()),
        ]

    check(draws, random.key(42), ulps=4)


def test_normal_is_one_kernel():
    assert check(lambda key: random.normal(key, (64, 64)), random.key(0), ulps=4).kernels == 1


SPECIAL = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1, 2, 3, -1.5], F32)


@pytest.mark.parametrize("n", [1, 2, 16, 31, 40, 300])
def test_sort_lengths(n):
    x = RNG.choice(SPECIAL, (2, n, 9))
    y = RNG.integers(-4, 4, (2, n, 9)).astype(I32)
    z = RNG.integers(0, 3, (2, n, 9)).astype(np.uint8)

    def sorts(x, y, z):
        return [
            *(lax.sort(v, 1) for v in (x, y, z, y > 0, y.astype(jnp.uint32))),
            lax.sort((y * 31).astype(jnp.int8), 1),
            lax.sort(x[:, :, 0]),
            *lax.sort((x, y), 1),
            *lax.sort((z, x, y), 1, num_keys=2),
            jnp.argsort(y, 1),
            *lax.top_k(x, min(n, 3), axis=1),
            *lax.top_k(z, n, axis=1),
            *lax.top_k(y > 0, n, axis=1),
        ]

    check(sorts, x, y, z)


@pytest.mark.parametrize("rows, n", [(700, 3), (128, 16), (131, 16), (100, 25), (37, 70)])
def test_sort_of_rows_in_memory(rows, n):
    plain, special = normal(rows, n), normal(rows, n)
    special[3, 1] = np.nan
    special[rows // 2, :2] = 0.0, -0.0
    whole = RNG.integers(-(2**31), 2**31, (rows, n)).astype(I32)

    def sorts(*xs):
        return [lax.sort(x) for x in xs]

    check(sorts, plain, special, whole, whole.view(np.uint32))


@pytest.mark.parametrize("rows, n, inner", [(1, 1000, 1), (3, 801, 1), (1, 777, 2)])
def test_threads_share_long_rows(rows, n, inner, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "PARALLEL_ROW", 700)
    monkeypatch.setattr(tuning, "PARALLEL_WORK", 0)
    x = np.where(RNG.random((rows, n, inner)) < 0.5, normal(rows, n, inner), 0).astype(F32)
    x[:, 5::7] = RNG.choice(SPECIAL, x[:, 5::7].shape)
    y = RNG.integers(-(2**31), 2**31, x.shape).astype(I32)

    def sorts(x, y):
        narrow, half = y.astype(jnp.int8), x.astype(jnp.float16)
        return [
            *(lax.sort(v, 1) for v in (x, y, y.astype(jnp.uint32), narrow, half, y > 0)),
            *lax.sort((narrow, x, y), 1),
            jnp.argsort(x, 1),
            *lax.top_k(half, 3, axis=1),
            *lax.top_k(narrow, 600, axis=1),
            # Two keys are sorted by one thread.
            *lax.sort((narrow, x), 1, num_keys=2),
        ]

    program = check(sorts, x, y)
    alone, (found,), _ = run(lambda x: lax.sort(x, 1), x)
    assert alone.kernels == 6  # for three digits: they are counted, and moved
    signs = np.signbit(found), np.signbit(np.sort(x, 1, kind="stable"))
    np.testing.assert_array_equal(*(s & (found == 0) for s in signs))
    require_same_bits(program, [x, y])


def test_sort_keeps_the_signs_of_zeros_in_order():
    for n in (20, 500):
        x = RNG.choice(np.array([0.0, -0.0, 1.0, -1.0], F32), n)
        _, (found,), _ = run(lambda x: lax.sort(x), x)
        wanted = np.sort(x, kind="stable")
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("k", [1, 2, 5, 64])
@pytest.mark.parametrize("n", [260, 1000])
def test_few_greatest_of_many(n, k):
    x = RNG.choice(np.append(SPECIAL, normal(20)), (3, n))
    up = np.arange(3 * n, dtype=F32).reshape(3, n)

    def tops(x, up):
        half = (x * 3).astype(jnp.float16)
        whole = (up % 37).astype(jnp.uint8)
        return [y for v in (x, up, -up, half, whole, whole > 3) for y in lax.top_k(v, k)]

    check(tops, x, up)


def test_sort_of_wide_types():
    x = RNG.standard_normal((3, 90))
    big = RNG.integers(-(2**62), 2**62, (3, 90))

    def sorts(x, big):
        pairs = jnp.round(x) + 1j * jnp.round(3 * x)
        return [
            lax.sort(x),
            lax.sort(big),
            *lax.sort((jnp.round(x), big), num_keys=2),
            *lax.sort((pairs, x)),
            *lax.top_k(x, 4),
            lax.sort(x.astype(jnp.bfloat16)),
            lax.sort((x * 9).astype(jnp.float16), 0),
        ]

    with namoo.enable_x64():
        check(sorts, x, big)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size, stride", [(2, 2), (3, 2), (3, 1), (7, 3)])
def test_pooling_and_its_derivatives(size, stride, padding):
    x = normal(2, 13, 11, 5)
    window, strides = (1, size, size, 1), (1, stride, stride, 1)

    def pools(x):
        def largest(x):
            return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)

        def total(x):
            return lax.reduce_window(x, 0.0, lax.add, window, strides, padding)

        weights = jnp.cos(jnp.arange(x.size, dtype=F32)).reshape(x.shape)
        return [
            largest(x),
            total(x),
            namoo.grad(lambda x: (total(x) ** 2).sum())(x),
            namoo.grad(lambda x: (largest(x) ** 2).sum())(x),
            namoo.jvp(largest, (x,), (weights,))[1],
        ]

    large = size * size > 32
    host = ("select_and_gather_add", "select_and_scatter_add") if large else ()
    check(pools, x, ulps=64, host=host)


def test_bits_and_rounding():
    x = normal(6, 8) * F32(1e5)
    x[0] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 1e38, -1e-30]

    def casts(x):
        half = x.astype(jnp.float16)
        return [
            lax.bitcast_convert_type(x, jnp.uint8),
            lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint16), jnp.int32),
            lax.bitcast_convert_type(half[1:], jnp.uint16),
            lax.bitcast_convert_type(x.astype(jnp.bfloat16)[1:], jnp.int16),
            lax.bitcast_convert_type(jnp.arange(40, dtype=jnp.uint16) * 400, jnp.bfloat16),
            *(lax.reduce_precision(x, e, m) for e, m in [(5, 10), (8, 7), (8, 23), (2, 0), (4, 3)]),
            lax.reduce_precision(x.astype(jnp.bfloat16), 5, 3),
        ]

    check(casts, x)


def test_nothing_outside_of_arrays_is_touched():
    script = Path(__file__).parents[1] / "support" / "guard_pages.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_results_do_not_depend_on_threads():
    x, i = normal(400, 300), RNG.integers(0, 400, 9000).astype(I32)
    u = normal(9000, 300)

    def work(x, i, u):
        return [
            x.at[i].add(u),
            jnp.cumsum(x, 1),
            jnp.cumsum(x, 0),
            jnp.sort(x),
            jnp.argsort(x, 0),
            *lax.top_k(x, 7),
            random.normal(random.key(0), (1000, 300)),
        ]

    program = native.compile(namoo.make_jaxpr(work)(x, i, u))
    require_same_bits(program, [x, i, u])


def test_one_narrow_element_is_left_over():
    """Of 16·k + 1 elements the last is stored alone."""
    x = (normal(17) * 1000).astype(I32)
    check(lambda x: [x.astype(t) for t in ("int8", "uint8", "int16", "bfloat16", bool)], x)
