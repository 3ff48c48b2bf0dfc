"""Products summed over shared axes against JAX: values, types, derivatives, errors, programs."""

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.primitives.ragged
from jax_oracle import OURS, THEIRS, agree, agree_with_vjp, fail_alike, outcome
from namoo.primitives.contract import dot_general
from namoo.primitives.precision import DotAlgorithmPreset, canonicalize_precision

rng = np.random.default_rng(0)


def array(*shape):
    return rng.normal(size=shape).astype(np.float32)


@st.composite
def products(draw):
    """Shapes and dimension numbers that fit together, with the axes in any order."""
    size = st.integers(1, 3)
    batch, inner, left, right = (draw(st.lists(size, max_size=2)) for _ in range(4))
    xs, ys = [*batch, *inner, *left], [*batch, *inner, *right]
    x_order, y_order = draw(st.permutations(range(len(xs)))), draw(st.permutations(range(len(ys))))

    def placed(sizes, order):
        shape = [0] * len(sizes)
        for size, place in zip(sizes, order, strict=True):
            shape[place] = size
        return shape

    b, k = len(batch), len(batch) + len(inner)
    numbers = ((x_order[b:k], y_order[b:k]), (x_order[:b], y_order[:b]))
    return placed(xs, x_order), placed(ys, y_order), numbers


def by_einsum(x, y, numbers):
    """The oracle: each axis gets a letter, and shared axes share it."""
    (xc, yc), (xb, yb) = numbers
    left = list(range(x.ndim))
    right = list(range(x.ndim, x.ndim + y.ndim))
    for i, j in zip((*xc, *xb), (*yc, *yb), strict=True):
        right[j] = left[i]
    free = [i for i in left if i not in (*xc, *xb)], [j for j in right if j >= x.ndim]
    return np.einsum(x, left, y, right, [*(left[i] for i in xb), *free[0], *free[1]])


@given(products())
@settings(max_examples=150)
def test_any_axes(case):
    x, y, numbers = case
    x, y = array(*x), array(*y)
    out = np.asarray(dot_general(x, y, numbers))
    np.testing.assert_allclose(out, by_einsum(x, y, numbers), rtol=1e-4, atol=1e-5)


@given(products())
@settings(max_examples=8)
def test_derivatives_along_any_axes(case):
    x, y, numbers = case
    agree_with_vjp(lambda lib, x, y: lib.lax.dot_general(x, y, numbers), array(*x), array(*y))


@given(products(), st.sampled_from([(0, None), (None, 0), (0, 0), (-1, 0), (None, -1)]))
@settings(max_examples=100)
def test_batched(case, axes):
    x, y, numbers = case
    x = array(*x) if axes[0] is None else np.stack([array(*x) for _ in range(2)], axes[0])
    y = array(*y) if axes[1] is None else np.stack([array(*y) for _ in range(2)], axes[1])
    out = np.asarray(namoo.vmap(lambda x, y: dot_general(x, y, numbers), axes)(x, y))
    for i in range(2):
        xs = x if axes[0] is None else x.take(i, axes[0])
        ys = y if axes[1] is None else y.take(i, axes[1])
        np.testing.assert_allclose(out[i], by_einsum(xs, ys, numbers), rtol=1e-4, atol=1e-5)


TYPES = """bool int4 int8 uint8 int16 int32 uint32 float8_e4m3fn float16 bfloat16 float32
    complex64""".split()
MATRICES = (((1,), (0,)), ((), ()))


def values(dtype, *shape):
    """Small integers, which all types hold, and whose products they hold, too."""
    return rng.integers(0, 3, shape).astype(np.int8).astype(np.dtype(dtype))


def run_matrices(x, y, **options):
    return lambda lib: lib.lax.dot_general(x, y, MATRICES, **options)


def result_type(program):
    """The type of the result, or of the error, without computing it."""

    def run(lib):
        out = outcome(lambda lib: lib.eval_shape(lambda: program(lib)), lib)
        return type(out) if isinstance(out, Exception) else out.dtype

    return run


@pytest.mark.parametrize("left", TYPES)
def test_types_of_operands(left):
    for right in TYPES:
        kind = result_type(run_matrices(values(left, 2, 3), values(right, 3, 2)))
        assert kind(OURS) == kind(THEIRS), right
    for right in {left, "float32"}:
        agree(run_matrices(values(left, 2, 3), values(right, 3, 2)), rtol=0.05)


@pytest.mark.parametrize("dtype", TYPES)
def test_preferred_types(dtype):
    x, y = values(dtype, 2, 3), values(dtype, 3, 2)
    for preferred in TYPES:
        kind = result_type(run_matrices(x, y, preferred_element_type=preferred))
        assert kind(OURS) == kind(THEIRS), preferred
    if dtype != "int4":  # which XLA does not multiply into others
        preferred = "complex64" if dtype == "complex64" else "float32"
        agree(run_matrices(x, y, preferred_element_type=preferred), rtol=0.05)


def test_integers_wrap_around():
    for dtype in ("int8", "uint8", "int16", "int32", "uint32"):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (4, 50), dtype=dtype)
        out = dot_general(x, x.T, MATRICES)
        exact = x.astype(object) @ x.astype(object).T
        wrapped = np.asarray(out).astype(object) % 2**info.bits
        np.testing.assert_array_equal(wrapped, exact % 2**info.bits)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_summed_in_float32(dtype):
    x, y = array(3, 1000).astype(dtype), array(1000, 2).astype(dtype)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    out = np.asarray(dot_general(x, y, MATRICES)).astype(np.float64)
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(out, exact, rtol=eps, atol=1e-4)


def test_memory_layouts():
    """Transposed, strided, reversed and repeated operands."""
    base = array(6, 8)
    views = [base, base.T, base[::2, ::2], base[::-1], np.broadcast_to(base[:1], (6, 8))]
    for x, y in itertools.product(views, views):
        if x.shape[1] == y.shape[0]:
            np.testing.assert_allclose(dot_general(x, y, MATRICES), x @ y, rtol=1e-5, atol=1e-5)
        batched = (((1,), (1,)), ((0,), (0,)))
        if x.shape == y.shape:
            np.testing.assert_allclose(
                dot_general(x, y, batched), (x * y).sum(1), rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize(
    "x, y", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((0, 3), (3, 2))]
)
def test_dot(x, y):
    agree_with_vjp(lambda lib, x, y: lib.lax.dot(x, y), array(*x), array(*y))


def test_batch_matmul():
    agree(lambda lib: lib.lax.batch_matmul(array(2, 3, 4), np.ones((2, 4, 5), np.float32)) * 0)
    for x, y in [((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4))]:
        x, y = array(*x), array(*y)
        agree(lambda lib, x=x, y=y: lib.lax.batch_matmul(x, y, precision="highest"))


ERRORS = {
    "contracted sizes": lambda lib: lib.lax.dot_general(array(2, 3), array(4, 2), MATRICES),
    "sizes that fit by accident": lambda lib: lib.lax.dot_general(
        array(2, 3), array(3, 2), (((0, 1), (0, 1)), ((), ()))
    ),
    "batch sizes": lambda lib: lib.lax.dot_general(
        array(1, 3), array(2, 3), (((1,), (1,)), ((0,), (0,)))
    ),
    "batch counts": lambda lib: lib.lax.dot_general(
        array(2, 3), array(3, 2), (((1,), (0,)), ((0,), ()))
    ),
    "contracting counts": lambda lib: lib.lax.dot_general(
        array(2, 3), array(3, 1), (((1,), (0, 1)), ((), ()))
    ),
    "negative axis": lambda lib: lib.lax.dot_general(
        array(2, 3), array(3, 2), (((-1,), (0,)), ((), ()))
    ),
    "axis out of range": lambda lib: lib.lax.dot_general(
        array(2, 3), array(3, 2), (((1,), (2,)), ((), ()))
    ),
    "an axis twice": lambda lib: lib.lax.dot_general(
        array(3, 3), array(3, 3), (((1, 1), (0, 1)), ((), ()))
    ),
    "an axis of both kinds": lambda lib: lib.lax.dot_general(
        array(3, 3), array(3, 3), (((1,), (0,)), ((1,), (1,)))
    ),
    "narrow result": run_matrices(
        values("int32", 2, 3), values("int32", 3, 2), preferred_element_type="int8"
    ),
    "unknown type": run_matrices(array(2, 3), array(3, 2), preferred_element_type="float"[:2]),
    "no array": lambda lib: lib.lax.dot([1.0], array(1)),
    "dot of wrong ranks": lambda lib: lib.lax.dot(array(2, 3, 4), array(4)),
    "dot of wrong sizes": lambda lib: lib.lax.dot(array(2, 3), array(2, 3)),
    "dot of scalars": lambda lib: lib.lax.dot(1.0, 2.0),
    "batch_matmul of vectors": lambda lib: lib.lax.batch_matmul(array(3), array(3)),
    "batch_matmul of ranks": lambda lib: lib.lax.batch_matmul(array(2, 3, 4), array(4, 5)),
    "precision": lambda lib: lib.lax.dot(array(3), array(3), precision="exact"),
    "precision pair": lambda lib: lib.lax.dot(
        array(3), array(3), precision=(lib.lax.Precision.HIGH, "float32")
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])
    # The program that is only traced fails in the same way.
    fail_alike(lambda lib: lib.eval_shape(lambda: ERRORS[name](lib)))


def test_error_shows_the_shapes():
    message = fail_alike(ERRORS["contracted sizes"])
    assert all(text in message for text in ("(2, 3)", "(4, 2)", "(3,)", "(4,)"))


PRECISIONS = [
    "highest",
    "float32",
    "tensorfloat32",
    "bfloat16_3x",
    "default",
    "fastest",
    "F32_F32_F32",
]


@pytest.mark.parametrize("precision", [*PRECISIONS, ("high", "default"), None])
def test_precision_is_kept_in_the_program(precision):
    def program(lib):
        return lib.make_jaxpr(lambda x: lib.lax.dot(x, x, precision=precision))(array(3))

    found, wanted = (program(lib).eqns[0].params["precision"] for lib in (OURS, THEIRS))
    assert str(found) == str(wanted)


def test_default_precision():
    with namoo.default_matmul_precision("highest"):
        assert str(canonicalize_precision(None)) == "(Precision.HIGHEST, Precision.HIGHEST)"
    with namoo.default_matmul_precision("BF16_BF16_F32"):
        assert canonicalize_precision(None) is DotAlgorithmPreset.BF16_BF16_F32
    assert canonicalize_precision(None) is None


def test_algorithms_are_those_of_jax():
    theirs = THEIRS.lax.DotAlgorithmPreset
    assert [p.name for p in DotAlgorithmPreset] == [p.name for p in theirs]
    for ours in DotAlgorithmPreset:
        other = theirs[ours.name]
        assert ours.value == other.value
        for field in ("supported_lhs_types", "supported_rhs_types", "accumulation_type"):
            found, wanted = (
                np.dtype(v).name if isinstance(v, type) else v and [np.dtype(t).name for t in v]
                for v in (getattr(ours, field), getattr(other, field))
            )
            assert found == wanted, (ours, field)


@pytest.mark.parametrize(
    "preset, rounded",
    [
        ("BF16_BF16_F32", lambda x: x.astype(ml_dtypes.bfloat16)),
        ("F16_F16_F32", lambda x: x.astype(np.float16)),
        ("TF32_TF32_F32", lambda x: THEIRS.lax.reduce_precision(x, 8, 10)),
        ("BF16_BF16_F32_X3", lambda x: x),
        ("F32_F32_F32", lambda x: x),
    ],
)
def test_algorithms_round_their_operands(preset, rounded):
    x, y = array(4, 30), array(30, 3)
    exact = np.asarray(rounded(x), np.float64) @ np.asarray(rounded(y), np.float64)
    out = dot_general(x, y, MATRICES, precision=DotAlgorithmPreset[preset])
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)


def test_programs_read_as_in_jax():
    for numbers in [MATRICES, (((0,), (1,)), ((), ())), (((1,), (1,)), ((0,), (0,)))]:

        def program(lib, numbers=numbers):
            fun = lambda x, y: lib.lax.dot_general(x, y, numbers)  # noqa: E731
            return str(lib.make_jaxpr(fun)(np.ones((3, 3)), np.ones((3, 3))))

        assert program(OURS) == program(THEIRS)


def test_one_batched_operand_is_not_copied():
    """The mapped axis becomes a free one: no transposition of operands, no repetition."""
    program = namoo.make_jaxpr(namoo.vmap(lambda x, y: namoo.lax.dot(x, y), (0, None)))
    jaxpr = program(array(5, 2, 3), array(3, 4))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dot_general"]


def test_gradient_of_a_matrix_product_needs_no_transposition():
    grad = namoo.grad(lambda x, y: namoo.lax.dot(x, y).sum(), (0, 1))
    names = [e.primitive.name for e in namoo.make_jaxpr(grad)(array(2, 3), array(3, 4)).eqns]
    assert "transpose" not in names


def grouped(lib):
    """The module of products in groups."""
    return namoo.primitives.ragged if lib is OURS else lib.lax


def groups(contracting, batch, ragged, group):
    return lambda lib: grouped(lib).RaggedDotDimensionNumbers((contracting, batch), ragged, group)


SIZES = np.array([2, 0, 3, 1], np.int32)
SIZES_2 = np.array([[2, 0, 3, 1], [1, 1, 1, 4]], np.int32)
RAGGED = {
    "free": (groups(((1,), (1,)), ((), ()), [0], [0]), (7, 3), (4, 3, 5), SIZES),
    "contracting": (groups(((0,), (0,)), ((), ()), [0], []), (7, 3), (7, 5), SIZES),
    "batch": (groups(((2,), (1,)), ((0,), (0,)), [0], []), (7, 2, 3), (7, 3, 5), SIZES),
    "free in a batch": (
        groups(((2,), (2,)), ((0,), (0,)), [1], [1]),
        (2, 7, 3),
        (2, 4, 3, 5),
        SIZES_2,
    ),
    "one size for all": (
        groups(((2,), (2,)), ((0,), (0,)), [1], [1]),
        (2, 7, 3),
        (2, 4, 3, 5),
        SIZES,
    ),
    "contracting in a batch": (
        groups(((1,), (1,)), ((0,), (0,)), [1], []),
        (2, 7, 3),
        (2, 7, 5),
        SIZES_2,
    ),
    "outer free axis": (groups(((2,), (1,)), ((), ()), [1], [0]), (2, 7, 3), (4, 3, 5), SIZES_2),
    "outer contracted axis": (
        groups(((0, 1), (0, 1)), ((), ()), [1], []),
        (2, 7, 3),
        (2, 7, 5),
        SIZES_2,
    ),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_dot_general(name):
    numbers, x, y, sizes = RAGGED[name]
    x, y = array(*x), array(*y)
    agree(lambda lib: grouped(lib).ragged_dot_general(x, y, sizes, numbers(lib)))


def test_ragged_dot():
    agree_with_vjp(
        lambda lib, x, y: grouped(lib).ragged_dot(x, y, SIZES), array(7, 3), array(4, 3, 5)
    )
    x, y = array(6, 3), array(4, 3, 5)
    out = grouped(OURS).ragged_dot(x, y, SIZES, group_offset=np.array([2]))
    wanted = np.concatenate([np.zeros((2, 5)), x[2:5] @ y[2], x[5:] @ y[3]])
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: grouped(lib).ragged_dot(array(7, 3), array(4, 3, 5), SIZES[:3]),
        lambda lib: grouped(lib).ragged_dot(array(7, 3), array(4, 2, 5), SIZES),
        lambda lib: grouped(lib).ragged_dot(array(7, 3), array(4, 3, 5), SIZES.astype(np.float32)),
        *(
            lambda lib, r=r, g=g: grouped(lib).ragged_dot_general(
                array(7, 3), array(4, 3, 5), SIZES, groups(((1,), (1,)), ((), ()), r, g)(lib)
            )
            for r, g in [([0, 1], [0]), ([0], []), ([0], [1]), ([1], [0])]
        ),
    ],
)
def test_ragged_errors(program):
    fail_alike(program)


def test_scaled_dot():
    x, y, scale = values("float32", 2, 8), values("float32", 8, 3), values("float32", 2, 4)
    for options in [
        {"lhs_scale": scale},
        {"lhs_scale": scale, "rhs_scale": scale.T[:, :1] + 0 * y[:4]},
    ]:
        for preferred in (None, "float32"):
            agree(
                lambda lib, o=options, p=preferred: grouped(lib).scaled_dot(
                    lib.jnp.asarray(x),
                    lib.jnp.asarray(y),
                    preferred_element_type=p,
                    **{k: lib.jnp.asarray(v) for k, v in o.items()},
                )
            )
    for bad in [scale[:, :3], scale[:1], np.ones((2, 8), np.float32)]:
        fail_alike(
            lambda lib, bad=bad: grouped(lib).scaled_dot(
                lib.jnp.asarray(x), lib.jnp.asarray(y), lhs_scale=lib.jnp.asarray(bad)
            )
        )


SCALED = {
    "number": lambda lib, x, zero: lib.jnp.dot(x, zero[0, 0]),
    "vector": lambda lib, x, zero: lib.jnp.dot(x, zero[0]),
    "matrix": lambda lib, x, zero: lib.jnp.dot(x, zero),
    "from the left": lambda lib, x, zero: lib.jnp.dot(zero[0], x.T),
    "matmul": lambda lib, x, zero: lib.jnp.matmul(x, zero),
    "operator": lambda lib, x, zero: x @ zero[0],
    "tensordot": lambda lib, x, zero: lib.jnp.tensordot(x, zero, 1),
    "einsum": lambda lib, x, zero: lib.jnp.einsum("ij,jk->ik", x, zero),
    "convolve": lambda lib, x, zero: lib.jnp.convolve(x[:, 0], zero[0]),
}


@pytest.mark.parametrize("name", SCALED)
def test_a_single_zero_times_infinity_is_nan(name):
    """NumPy's `dot` scales an array by one element with `axpy`, which skips zeros."""
    x, zero = np.full((3, 1), -np.inf, np.float32), np.zeros((1, 1), np.float32)

    def program(lib, x, zero):
        run = functools.partial(SCALED[name], lib)
        x, zero = lib.jnp.asarray(x), lib.jnp.asarray(zero)
        return [run(x, zero), lib.jit(run)(x, zero), lib.vmap(run)(x[None], zero[None])]

    outs = agree(program, x, zero)
    assert all(np.isnan(out).all() for out in outs)
