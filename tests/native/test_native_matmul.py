"""Matrix products of the native engine against NumPy."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import guard_pages
import namoo
import namoo.numpy as jnp
from engine_oracle import require_same_bits
from namoo import lax
from namoo.engines.native import tuning
from namoo.engines.native.engine import native
from namoo.engines.native.kernels.matmul import product, tiles

SIZES = [1, 3, 17, 33, 100]


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.standard_normal(shape)
    return out.astype(dtype)


def compiled(f, *args):
    """The results of a program of the native engine, which must not ask the host for anything."""
    with namoo.enable_x64(True):
        program = native.compile(namoo.make_jaxpr(f)(*args))
    assert not program.host.equations
    return program(list(args))


def close(actual, expected, terms):
    expected = np.asarray(expected)
    scale = np.finfo(expected.dtype).eps * max(1, terms) ** 0.5 * 8
    np.testing.assert_allclose(actual, expected, rtol=scale, atol=scale * np.abs(expected).max())


def exact(x, y):
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return (x.astype(wide) @ y.astype(wide)).astype(x.dtype)


def sides(m, k, n, transposed, dtype, batch=()):
    left, right = transposed
    x = random(batch + ((k, m) if left else (m, k)), dtype, 1)
    y = random(batch + ((n, k) if right else (k, n)), dtype, 2)
    axes = len(batch)
    dims = (((axes + (not left),), (axes + right,)), (tuple(range(axes)),) * 2)
    a = np.swapaxes(x, -1, -2) if left else x
    b = np.swapaxes(y, -1, -2) if right else y
    return x, y, dims, exact(a, b)


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_transpositions_and_odd_sizes(transposed, dtype):
    shapes = [(17, 33, 100), (100, 17, 33), (3, 100, 17), (33, 3, 3), (40, 40, 40)]
    cases = [sides(m, k, n, transposed, dtype) for m, k, n in shapes]
    dims = cases[0][2]

    def f(*xs):
        return [lax.dot_general(x, y, dims) for x, y in zip(xs[::2], xs[1::2], strict=True)]

    outs = compiled(f, *[v for x, y, _, _ in cases for v in (x, y)])
    for (_, k, _), out, (_, _, _, expected) in zip(shapes, outs, cases, strict=True):
        close(out, expected, k)


@pytest.mark.parametrize("m", SIZES)
def test_sizes_of_all_axes(m):
    pairs = [(k, n) for k in SIZES for n in SIZES if (k + n) % 3 == m % 3]
    cases = [sides(m, k, n, (0, (k + n) % 2), "f4") for k, n in pairs]

    def f(*xs):
        return [
            lax.dot_general(x, y, dims)
            for x, y, (_, _, dims, _) in zip(xs[::2], xs[1::2], cases, strict=True)
        ]

    outs = compiled(f, *[v for x, y, _, _ in cases for v in (x, y)])
    for (k, _), out, (_, _, _, expected) in zip(pairs, outs, cases, strict=True):
        close(out, expected, k)


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_batches(transposed, dtype):
    x, y, dims, expected = sides(19, 35, 21, transposed, dtype, batch=(2, 3))
    (out,) = compiled(lambda x, y: lax.dot_general(x, y, dims), x, y)
    close(out, expected, 35)


@pytest.mark.parametrize(
    "text, left, right",
    [
        ("bqhd,bkhd->bhqk", (2, 9, 3, 20), (2, 11, 3, 20)),
        ("bhqk,bkhd->bqhd", (2, 3, 9, 11), (2, 11, 3, 20)),
        ("bshi,hij->bsj", (2, 5, 3, 8), (3, 8, 36)),
        ("ijk,kl->ijl", (4, 30, 20), (20, 18)),
        ("ij,jk->ki", (12, 20), (20, 25)),
        ("aib,bic->ac", (7, 5, 6), (6, 5, 40)),
    ],
)
def test_strides(text, left, right):
    x, y = random(left, "f4", 1), random(right, "f4", 2)
    (out,) = compiled(lambda x, y: jnp.einsum(text, x, y), x, y)
    close(out, np.einsum(text, x.astype("f8"), y.astype("f8")).astype("f4"), 64)


@pytest.mark.parametrize("machine", [(32, 16), (16, 32)])
def test_other_processors(machine, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(product, "machine", lambda: product.Machine(*machine))
    shapes = [(33, 17, 100), (20, 40, 33), (9, 300, 13)]
    cases = [sides(*s, (i % 2, 1 - i % 2), "f4") for i, s in enumerate(shapes)]

    def f(*xs):
        return [
            lax.dot_general(x, y, dims)
            for x, y, (_, _, dims, _) in zip(xs[::2], xs[1::2], cases, strict=True)
        ]

    outs = compiled(f, *[v for x, y, _, _ in cases for v in (x, y)])
    for (_, k, _), out, (_, _, _, expected) in zip(shapes, outs, cases, strict=True):
        close(out, expected, k)


def test_one_operand_on_both_sides():
    x = random((30, 40), "f4")
    (out,) = compiled(lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ()))), x)
    close(out, exact(x, x.T), 40)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_panels_on_the_stack(dtype):
    shapes = [(150, 300, 70), (200, 260, 33)]
    cases = [sides(*s, (i, 1 - i), dtype) for i, s in enumerate(shapes)]

    def f(*xs):
        return [
            lax.dot_general(x, y, dims)
            for x, y, (_, _, dims, _) in zip(xs[::2], xs[1::2], cases, strict=True)
        ]

    outs = compiled(f, *[v for x, y, _, _ in cases for v in (x, y)])
    for (_, k, _), out, (_, _, _, expected) in zip(shapes, outs, cases, strict=True):
        close(out, expected, k)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_blocks_of_large_products(dtype, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "BLAS_WORK", 1)
    monkeypatch.setattr(tuning, "BLAS_WORK_TRANSPOSED", 1)
    monkeypatch.setattr(tuning, "BLAS_BLOCK", 24)
    x, y, dims, expected = sides(70, 20, 101, (1, 1), dtype, batch=(3,))
    program = native.compile(namoo.make_jaxpr(lambda x, y: lax.dot_general(x, y, dims))(x, y))
    assert "gemm" in program.as_text("llvm")
    close(program([x, y])[0], expected, 20)


def test_equal_shapes_are_one_kernel():
    x, y = random((20, 20), "f4", 1), random((20, 20), "f4", 2)

    def f(x, y):
        for _ in range(6):
            x = lax.dot(x, y)
        return x

    program = native.compile(namoo.make_jaxpr(f)(x, y))
    assert program.kernels == 1


def adamw(x, g, w, m, v):
    d = jnp.matmul(x.T, g)
    m = 0.9 * m + 0.1 * d
    v = 0.99 * v + 0.01 * d * d
    return w - 0.1 * (m / (jnp.sqrt(v) + 1e-8) + 0.01 * w), m, v


FUSED = {
    "bias": (lambda x, w, b: x @ w + b, [(33, 20), (20, 50), (50,)], 1),
    "activation": (lambda x, w, b: jnp.tanh(x @ w + b), [(2, 17, 20), (20, 33), (33,)], 1),
    "value kept": (lambda x, w: (x @ w, jnp.exp(x @ w)), [(33, 20), (20, 50)], 1),
    "residual": (lambda x, w: x + jnp.maximum(x @ w, 0), [(30, 30), (30, 30)], 1),
    "update": (adamw, [(32, 40), (32, 70), (40, 70), (40, 70), (40, 70)], 1),
    "reshaped": (lambda x, w: (x @ w).reshape(3, 11, 50) * 2, [(33, 20), (20, 50)], 1),
    "transposed": (lambda x, w: (x @ w).T * 2, [(33, 20), (20, 50)], 1),
    "update of a transposed matrix": (
        lambda x, g, w: w - 0.1 * (x.T @ g).T,
        [(32, 40), (32, 70), (70, 40)],
        1,
    ),
    "also transposed": (lambda x, w: (x @ w, (x @ w).T), [(33, 20), (20, 50)], 2),
    "heads": (
        lambda x, v: jnp.einsum("bhqk,bkhd->bqhd", x, v).reshape(2, 9, 60) + 1,
        [(2, 3, 9, 11), (2, 11, 3, 20)],
        1,
    ),
    "heads of one operand": (
        lambda x, w: jnp.einsum("bsi,ihd->bhsd", x, w) * 2,
        [(2, 9, 12), (12, 3, 20)],
        1,
    ),
    "bool": (lambda x, w: x @ w > 0, [(33, 20), (20, 50)], 1),
    "two products": (
        lambda x, w, h, u: jnp.tanh(x @ w + h @ u),
        [(9, 20), (20, 40), (9, 17), (17, 40)],
        2,
    ),
    "sum": (lambda x, w: jnp.sum(jnp.maximum(x @ w, 0), axis=1), [(33, 20), (20, 50)], 2),
}


@pytest.mark.parametrize("name", FUSED)
def test_what_follows_is_computed_in_the_same_kernel(name):
    f, shapes, kernels = FUSED[name]
    args = [np.abs(random(s, "f4", i)) for i, s in enumerate(shapes)]
    args[0] = random(shapes[0], "f4", 9)
    program = native.compile(namoo.make_jaxpr(f)(*args))
    assert program.kernels == kernels
    for out, expected in zip(program(args), namoo.tree.leaves(f(*args)), strict=True):
        np.testing.assert_allclose(out, np.asarray(expected), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1)])
def test_long_sums_are_cut(transposed):
    x, y, dims, expected = sides(5, 30_000, 20, transposed, "f4")
    (out,) = compiled(lambda x, y: lax.dot_general(x, y, dims), x, y)
    close(out, expected, 30_000)


@pytest.mark.parametrize("least", [0, 1 << 60])
def test_threads_do_not_change_a_bit(least, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "SHARED_SUMS_WORK", least)
    monkeypatch.setattr(tuning, "COPY_IN_TILE_WORK", least)
    monkeypatch.setattr(tuning, "REPEATED_ROWS", 1)
    x, y = random((300, 200), "f4", 1), random((200, 130), "f4", 2)
    z, far = random((130, 9000), "f4", 3), random((1100, 500), "f4", 4)

    def f(x, y, z, far):
        return jnp.tanh(x @ y), x.T @ (x @ y), jnp.matmul(z, z.T), z[:, :1100] @ far

    program = native.compile(namoo.make_jaxpr(f)(x, y, z, far))
    assert (".copied(" in program.as_text("llvm")) == (least == 0)
    require_same_bits(program, [x, y, z, far])


EPILOGUES = {
    "nothing": lambda x, y, z: x @ y,
    "in registers": lambda x, y, z: x @ y + z,
    "in a loop": lambda x, y, z: jnp.tanh(x @ y + z) * jnp.exp(z),
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("columns", [64, 70])
def test_rows_that_are_summed_again_change_nothing(name, columns, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    args = random((79, 65), "f4", 1), random((65, columns), "f4", 2), random((79, columns), "f4", 3)
    results, lengths = [], []
    for again in (0, 1):
        monkeypatch.setattr(tuning, "REPEATED_ROWS", again)
        monkeypatch.setattr(tuning, "REPEATED_ROWS_WITH_LOOP", again)
        program = native.compile(namoo.make_jaxpr(EPILOGUES[name])(*args))
        results += program(list(args))
        lengths.append(len(program.as_text("llvm")))
    assert lengths[1] < lengths[0]
    # The result lies where an operand of the epilogue does, which is to be read once.
    donating = namoo.jit(EPILOGUES[name], donate_argnums=2, keep_unused=True)
    results.append(donating(*map(jnp.array, args)))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    wanted = EPILOGUES[name](*(x.astype("f8") for x in args))
    np.testing.assert_allclose(results[0], wanted, rtol=1e-4, atol=1e-4)


CALLED = {
    "alone": lambda x, y, z: x @ y,
    "what follows": lambda x, y, z: jnp.tanh(x @ y + z),
    "turned": lambda x, y, z: x.T @ z,
    "of transposed columns": lambda x, y, z: z @ y.T,
    "of a batch": lambda x, y, z: jnp.einsum("ij,bkj->bik", z, jnp.stack([y, y * 2])),
}
CALLED_SIZES = [(79, 65, 64), (37, 18, 70), (64, 9, 19), (40, 300, 10), (20, 100, 40)]


def called_case(name, sizes, dtype):
    m, k, n = sizes
    args = [random(shape, dtype, i) for i, shape in enumerate([(m, k), (k, n), (m, n)])]
    with namoo.enable_x64(True):
        return native.compile(namoo.make_jaxpr(CALLED[name])(*args)), args


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_by_functions_are_the_same(name, dtype, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "SHARED_SUMS_TERMS", 0)
    monkeypatch.setattr(tuning, "SHARED_SUMS_COST", 1 << 60)
    for sizes in CALLED_SIZES:
        results = []
        for least in (1 << 60, 0):
            monkeypatch.setattr(tuning, "SHARED_SUMS_WORK", least)
            program, args = called_case(name, sizes, dtype)
            assert ("call void @summed." in program.as_text("llvm")) == (least == 0)
            results.append(program(args)[0])
        np.testing.assert_array_equal(*results)
        with namoo.enable_x64(True):
            wanted = np.asarray(CALLED[name](*(x.astype("f8") for x in args)))
        close(results[0], wanted.astype(dtype), max(sizes))


# Rows, terms and columns of products whose panels are copied.
COPIED_SIZES = [(128, 1024, 512), (131, 1025, 530), (300, 2100, 260), (600, 1200, 450)]


@pytest.mark.parametrize("sizes", COPIED_SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_tile_that_copies_its_panel_is_the_same(sizes, dtype, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "SHARED_SUMS_WORK", 0)
    results = []
    for least in (1 << 60, 0):
        monkeypatch.setattr(tuning, "COPY_IN_TILE_WORK", least)
        program, args = called_case("alone", sizes, dtype)
        assert ("call void @copied." in program.as_text("llvm")) == (least > 0)
        assert (".copied(" in program.as_text("llvm")) == (least == 0)
        results.append(program(args)[0])
    np.testing.assert_array_equal(*results)


def test_functions_with_one_caller_are_parts_of_it(monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(tuning, "SHARED_SUMS_WORK", 0)
    x = random((64, 64), "f4")
    for f, inlined in [(lambda x: x @ x, True), (lambda x: (x @ x, x.T @ x), False)]:
        text = native.compile(namoo.make_jaxpr(f)(x)).as_text("llvm")
        (head,) = [x for x in text.splitlines() if x.startswith("define internal void @summed.")]
        assert ("alwaysinline" in head) == inlined


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
def test_functions_stay_within_arrays():
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_native_matmul as t; t.run_guarded()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def run_guarded():
    tuning.SHARED_SUMS_WORK = tuning.SHARED_SUMS_TERMS = tuning.COPY_IN_TILE_WORK = 0
    cases = [(name, sizes) for name in CALLED for sizes in CALLED_SIZES]
    for name, sizes in [*cases, *(("alone", sizes) for sizes in COPIED_SIZES)]:
        program, args = called_case(name, sizes, "f4")
        for at_end in (False, True):
            (out,) = guard_pages.run(program, args, at_end)
            np.testing.assert_array_equal(out, program(args)[0])


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_squares_are_transposed(lanes):
    # Squares of four side by side, or a smaller one alone; shuffles are done on names.
    class Shuffler:
        def shuffle(self, x, order, y):
            return Row([[*x, *y][i] for i in order])

    class Row(list):
        lanes = property(len)

    n = min(lanes, 4)
    rows: Any = [Row((r, c) for c in range(lanes)) for r in range(n)]
    shuffler: Any = Shuffler()
    woven: Any = tiles._transposed_squares(shuffler, rows)
    wanted = [[(c % n, c // n * n + r) for c in range(lanes)] for r in range(n)]
    assert [list(row) for row in woven] == wanted


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_few_columns(dtype):
    """Rows that are contiguous in the left operand become the lanes of vectors."""
    for k, m, n in [(64, 16, 1), (70, 35, 2), (100, 64, 3), (301, 40, 8), (20000, 17, 3)]:
        x, y, dims, expected = sides(m, k, n, (1, 0), dtype)
        close(compiled(lambda x, y, dims=dims: lax.dot_general(x, y, dims), x, y)[0], expected, k)
    x, y, dims, expected = sides(33, 90, 4, (1, 1), dtype, batch=(3,))
    close(compiled(lambda x, y: lax.dot_general(x, y, dims), x, y)[0], expected, 90)


def test_scaled_transposition_is_not_copied():
    """What is multiplied by a number is transposed after that, where the product reads it."""
    x, y = random((100, 24), "f4", 1), random((100, 4), "f4", 2)
    f = namoo.jit(lambda x, y: 0.5 * x.T @ y)
    close(f(x, y), exact(0.5 * x.T, y), 100)
    text = f.lower(x, y).compile().as_text("fused")
    assert "float32[24, 100]" not in text and "float32[100, 24]" in text
