"""Reductions, running reductions and sliding windows against JAX."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
from jax_oracle import AS_USERS_HAVE_IT, OURS, THEIRS, agree, agree_with_vjp, fail_alike, outcome

rng = np.random.default_rng(0)
plain = rng.normal(size=(3, 4, 5)).astype(np.float32)
ties = np.round(plain * 2)
zeros = plain.copy()
zeros[0], zeros[1, 2, 3], zeros[2, 1] = 0, 0, 0
special = np.array([[1.0, np.nan, -np.inf], [np.inf, 2.0, -0.0], [0.0, -0.0, -1.0]], np.float32)

CHOOSING, LOGICAL = ("reduce_max", "reduce_min"), ("reduce_and", "reduce_or", "reduce_xor")
NUMERIC = (*CHOOSING, "reduce_prod")
RUNNING = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
TYPES = "bool int4 int8 uint8 int32 float8_e4m3fn float16 bfloat16 float32 complex64".split()


def converted(x, dtype):
    """Numbers in any type; integers become small, booleans signs."""
    if dtype == "bool":
        return x > 0
    if "int" in dtype:
        x = np.abs(np.round(x)) if dtype[0] == "u" else np.round(x)
        return x.astype(np.int8).astype(dtype)
    return x.astype(np.dtype(dtype))


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod"])
@pytest.mark.parametrize("case", ["plain", "ties", "zeros"])
def test_reductions_and_their_derivatives(name, case):
    """Ties share the derivative; products have one at zeros, even at several."""
    x = {"plain": plain, "ties": ties, "zeros": zeros}[case]
    for axes in [(0,), (1, 2), (2, 0), ()]:
        agree_with_vjp(lambda lib, x, axes=axes: getattr(lib.lax, name)(x, axes), x)


@pytest.mark.parametrize("name", [*NUMERIC, *LOGICAL])
def test_reductions_of_every_type(name):
    for dtype in TYPES:
        if (name, dtype) in {("reduce_and", "int4"), ("reduce_or", "int4"), ("reduce_xor", "int4")}:
            continue  # which JAX refuses, unlike other integers

        for x in (ties[0], ties[:0, 0])[: 2 if dtype in ("bool", "int8", "float32") else 1]:
            x = converted(x, dtype)
            program = lambda lib, x=x: getattr(lib.lax, name)(x, (0,))  # noqa: E731
            if isinstance(outcome(program, THEIRS), Exception):
                fail_alike(program)
            else:
                agree(program, rtol=0.02)


@pytest.mark.parametrize("name", NUMERIC)
def test_reductions_of_special_numbers(name):
    agree(lambda lib: getattr(lib.lax, name)(special, (1,)))


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("axes", [(-1,), (3,), (0, 0), 1, ("x",)])
def test_wrong_axes(name, axes):
    fail_alike(lambda lib: getattr(lib.lax, name)(plain, axes))
    fail_alike(lambda lib: getattr(lib.lax, name)(np.float32(1), (0,)))
    fail_alike(lambda lib: lib.eval_shape(lambda x: getattr(lib.lax, name)(x, axes), plain))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=60)
def test_reductions_against_numpy(shape, data):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    x = rng.normal(size=shape)
    oracles = {"reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod}
    empty = {"reduce_max": -np.inf, "reduce_min": np.inf, "reduce_prod": 1}
    with namoo.enable_x64(True):
        for name, oracle in oracles.items():
            found = getattr(namoo.lax, name)(x, tuple(axes))
            wanted = oracle(x, axis=tuple(axes), initial=empty[name])
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    for dtype in TYPES[:-1]:
        x = converted(ties[0], dtype)
        index = "uint8" if dtype == "int32" else "int32"
        agree(lambda lib, x=x, i=index: getattr(lib.lax, name)(x, 0, i))
    for x in (special, special.astype(np.float16), special.astype(ml_dtypes.bfloat16)):
        for axis in (0, 1):
            agree(lambda lib, x=x, axis=axis: getattr(lib.lax, name)(x, axis, np.int32))


@pytest.mark.parametrize(
    "args",
    [
        (plain, 3, np.int32),
        (plain, -1, np.int32),
        (plain, 0, np.float32),
        (plain[:0], 0, np.int32),
        (plain.astype(np.complex64), 0, np.int32),
        (np.float32(1), 0, np.int32),
        (plain, 0, "number"),
    ],
)
def test_places_refused(args):
    fail_alike(lambda lib: lib.lax.argmax(*args))


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("case", ["plain", "ties", "zeros"])
def test_running_reductions_and_their_derivatives(name, case):
    x = {"plain": plain, "ties": ties, "zeros": zeros}[case]
    for axis, reverse in [(0, False), (2, True)]:
        agree_with_vjp(lambda lib, x, a=axis, r=reverse: getattr(lib.lax, name)(x, a, r), x)


@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_running_products_of_any_length(length):
    x = np.repeat(ties[0, :1], 2, axis=1)[:, :length]
    for name in ("cumprod", "cummax", "cumlogsumexp"):
        agree_with_vjp(lambda lib, x, name=name: getattr(lib.lax, name)(x, 1), x)


def test_running_products_of_infinite_complex_numbers():
    x = np.array([[np.inf + 0.5j, 1.5 - 1j], [-1 + 1j, np.nan + 2j]], np.complex64)
    for axis in (0, 1):
        agree(lambda lib, axis=axis: lib.lax.cumprod(x, axis))
        agree(lambda lib, axis=axis: lib.jit(lambda x: lib.lax.cumprod(x, axis))(x))


@pytest.mark.parametrize("name", RUNNING)
def test_running_reductions_of_every_type(name):
    for dtype in TYPES:
        x = converted(ties[0], dtype)
        program = lambda lib, x=x: getattr(lib.lax, name)(x, 1)  # noqa: E731
        if isinstance(outcome(program, THEIRS), Exception):
            # JAX fails on log-sums of integers inside; they are no sensible type for them.
            error = TypeError if name == "cumlogsumexp" else None
            fail_alike(program, error)
        elif not (name == "cumlogsumexp" and dtype == "float8_e4m3fn"):  # NaN, for want of ∞
            agree(program, rtol=0.06)


@pytest.mark.parametrize("name", RUNNING)
def test_running_reductions_of_special_numbers(name):
    x = np.array([1.0, -np.inf, 2.0, np.inf, 3.0], np.float32)
    for reverse in (False, True):
        agree(lambda lib, r=reverse: getattr(lib.lax, name)(x, 0, r))
        agree(lambda lib, r=reverse: getattr(lib.lax, name)(special, 1, r))


@pytest.mark.parametrize("axis", [-1, 3])
def test_running_reductions_refuse_axes(axis):
    for name in RUNNING:
        fail_alike(lambda lib, name=name: getattr(lib.lax, name)(plain, axis))


def test_long_sums_keep_their_digits():
    x = rng.uniform(size=100_000).astype(np.float32)
    exact = np.cumsum(x.astype(np.float64))
    np.testing.assert_allclose(namoo.lax.cumsum(x), exact, rtol=2e-7)


def test_log_sums_of_nothing_have_a_derivative():
    """JAX gives NaN where all terms are exp(-∞); half of nothing is nothing."""
    x = np.array([-np.inf, -np.inf, 0.0], np.float32)
    _, pullback = namoo.vjp(lambda x: namoo.lax.cumlogsumexp(x), x)
    (ct,) = pullback(np.array([0, 0, 1], np.float32))
    np.testing.assert_array_equal(ct, [0, 0, 1])


NUMBERS = np.concatenate(
    [
        (rng.normal(size=300) * 10.0 ** rng.integers(-42, 38, 300)).astype(np.float32),
        np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1.1754942e-38, 3.4e38], np.float32),
        np.array([65519, 65520, 1.5, 2.5, 1 + 2.0**-11, 1 + 3 * 2.0**-11], np.float32),
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("widths", [(5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (1, 0), (8, 0)])
def test_reduce_precision(dtype, widths):
    with np.errstate(all="ignore"):
        x = NUMBERS.astype(dtype)
    theirs = THEIRS.jit(
        THEIRS.lax.reduce_precision, static_argnums=(1, 2), compiler_options=AS_USERS_HAVE_IT
    )
    ours, theirs = (np.asarray(f(x, *widths)) for f in (OURS.lax.reduce_precision, theirs))
    bits = f"u{x.itemsize}"
    same = (ours.view(bits) == theirs.view(bits)) | (np.isnan(ours) & np.isnan(theirs))
    assert same.all(), (x[~same], ours[~same], theirs[~same])


def test_reduce_precision_has_a_derivative_and_checks():
    agree_with_vjp(lambda lib, x: lib.lax.reduce_precision(x, 5, 3), plain)
    agree(lambda lib: lib.lax.reduce_precision(1.1, 5, 10))
    for args in [(plain, 0, 1), (plain, 1, -1), (plain.astype(np.int32), 5, 5)]:
        fail_alike(lambda lib, args=args: lib.lax.reduce_precision(*args))


def joined(lib):
    """a + b + ab: associative, with identity 0."""
    return lambda a, b: lib.lax.add(lib.lax.add(a, b), lib.lax.mul(a, b))


FUNCTIONS = {
    "add": (lambda lib: lib.lax.add, 0.0),
    "mul": (lambda lib: lib.lax.mul, 1.0),
    "max": (lambda lib: lib.lax.max, -np.inf),
    "min": (lambda lib: lib.lax.min, np.inf),
    "other start": (lambda lib: lib.lax.add, 2.0),
    "other floor": (lambda lib: lib.lax.max, 0.3),
    "python": (lambda lib: lambda a, b: a + b, 0.0),
    "ufunc": (lambda lib: lib.jnp.maximum, -np.inf),
    "joined": (joined, 0.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reduce(name):
    fun, init = FUNCTIONS[name]
    for axes in [(0,), (2, 0), ()]:
        agree_with_vjp(lambda lib, x, a=axes: lib.lax.reduce(x, init, fun(lib), a), plain)


def test_reduce_of_trees():
    def affine(lib):
        return lambda f, g: {"a": f["a"] * g["a"], "b": f["a"] * g["b"] + f["b"]}

    def program(lib, a, b):
        return lib.lax.reduce({"a": a, "b": b}, {"a": 1.0, "b": 0.0}, affine(lib), (1,))

    agree(program, plain, ties)
    found = program(OURS, plain, ties)["b"]
    a, b = np.ones((3, 5)), np.zeros((3, 5))
    for i in range(4):
        a, b = a * plain[:, i], a * ties[:, i] + b
    np.testing.assert_allclose(found, b, rtol=1e-4, atol=1e-4)


def test_reduce_of_integers_and_booleans():
    for name, init in [("bitwise_and", True), ("bitwise_or", False), ("bitwise_xor", False)]:
        agree(
            lambda lib, n=name, i=init: lib.lax.reduce(plain > 0, i, getattr(lib.lax, n), (1,)),
        )
    agree(lambda lib: lib.lax.reduce(ties.astype(np.int32), 0, lib.lax.add, (0, 1)))


@pytest.mark.parametrize("weak_init", [False, True])
@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("name", ["add", "mul", "max", "bitwise_and", "bitwise_or"])
def test_a_reduction_is_weak_where_all_operands_are(name, weak, weak_init):
    """Whether or not the initial value is known to change nothing."""

    def is_weak(lib, init):
        x = lib.numpy.asarray(6).reshape(1) if weak else lib.numpy.arange(3)
        init = init if weak_init else lib.numpy.int32(init)
        return lib.lax.reduce(x, init, getattr(lib.lax, name), (0,)).weak_type

    for init in (0, 1, -1):
        assert is_weak(OURS, init) == is_weak(THEIRS, init)


def test_reduce_uses_the_primitive_made_for_it():
    def names(fun, init):
        program = namoo.make_jaxpr(lambda x: namoo.lax.reduce(x, init, fun, (0,)))(plain)
        return [eqn.primitive.name for eqn in program.eqns]

    assert names(namoo.lax.add, 0.0) == ["reduce_sum"]
    assert names(lambda a, b: namoo.numpy.maximum(a, b), -np.inf) == ["reduce_max"]
    assert names(namoo.lax.mul, 3.0) == ["reduce_prod", "mul"]
    assert names(joined(OURS), 0.0) == ["reduce"]


def test_reduce_may_close_over_traced_values():
    def total(k):
        return namoo.lax.reduce(plain[0], 0.0, lambda a, b: a + b + k * a * b, (0,)).sum()

    def by_hand(k):
        out = np.zeros(5)
        for row in plain[0].astype(np.float64):
            out = out + row + k * out * row
        return out.sum()

    k, step = 0.3, 1e-4
    slope = (by_hand(k + step) - by_hand(k - step)) / (2 * step)
    np.testing.assert_allclose(namoo.grad(total)(k), slope, rtol=1e-3)
    ks = np.array([0.1, 0.5], np.float32)
    np.testing.assert_allclose(namoo.vmap(total)(ks), [by_hand(k) for k in ks], rtol=1e-4)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.lax.reduce(plain, np.zeros(2, np.float32), lib.lax.add, (0,)),
        lambda lib: lib.lax.reduce(plain, 0.0, lib.lax.add, (3,)),
        lambda lib: lib.lax.reduce(plain, 0.0, lib.lax.add, (-1,)),
        lambda lib: lib.lax.reduce(plain, 0.0, lambda a, b: (a, b), (0,)),
        lambda lib: lib.lax.reduce(plain, 0.0, lambda a, b: a.astype(int), (0,)),
        lambda lib: lib.lax.reduce((plain, plain[:2]), (0.0, 0.0), lambda a, b: a, (0,)),
        lambda lib: lib.lax.reduce((plain, plain), (0.0,), lambda a, b: a, (0,)),
        lambda lib: lib.lax.reduce((), (), lambda a, b: a, (0,)),
    ],
)
def test_reduce_errors(program):
    fail_alike(program)


WINDOWS = {
    "plain": ((1, 2, 3), None, "VALID"),
    "same": ((2, 2, 2), (1, 2, 1), "SAME"),
    "same lower": ((2, 2, 2), (1, 1, 2), "SAME_LOWER"),
    "padded": ((1, 3, 2), (1, 1, 2), [(0, 1), (2, 0), (1, 1)]),
    "cut": ((1, 2, 2), (1, 1, 1), [(0, 0), (-1, 1), (1, -2)]),
    "too large": ((1, 9, 1), None, "VALID"),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_windows_and_their_derivatives(name, window):
    fun, init = FUNCTIONS[name]

    def program(lib, x):
        return lib.lax.reduce_window(x, init, fun(lib), *WINDOWS[window])

    if window == "cut" and name != "add":  # which JAX cannot transpose
        agree(lambda lib: program(lib, ties))
    else:
        agree_with_vjp(program, ties)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_of_any_function(name):
    fun, init = FUNCTIONS[name]
    for window, strides, padding, gaps, steps in [
        ((1, 2, 3), (1, 1, 2), "SAME", None, None),
        ((1, 2, 2), (1, 2, 1), [(1, 0), (0, 2), (1, 1)], (1, 2, 1), (1, 1, 2)),
        ((1, 2, 3), (1, 2, 1), "SAME", (1, 2, 3), (1, 1, 2)),
        ((2, 1, 2), (1, 2, 2), "SAME_LOWER", (2, 1, 2), None),
    ]:
        agree(
            lambda lib, w=window, s=strides, p=padding, g=gaps, d=steps: lib.lax.reduce_window(
                plain, init, fun(lib), w, s, p, g, d
            )
        )


def test_windows_of_trees_and_types():
    def both(lib):
        return lambda a, b: (lib.lax.add(a[0], b[0]), lib.lax.mul(a[1], b[1]))

    agree(
        lambda lib: lib.lax.reduce_window(
            (plain, ties), (0.0, 1.0), both(lib), (2, 2, 1), (1, 1, 1), "SAME"
        )
    )
    for dtype in ("int8", "int32", "float16", "bfloat16"):
        x = converted(ties, dtype)
        agree(
            lambda lib, x=x: lib.lax.reduce_window(
                x, lib.jnp.zeros((), x.dtype), lib.lax.add, (2, 2, 2)
            ),
            rtol=0.01,
        )


def test_derivative_of_a_maximum_goes_to_the_first():
    x = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 0.0], np.float32)

    def pooled(lib):
        return lambda x: lib.lax.reduce_window(x, -np.inf, lib.lax.max, (3,))

    agree_with_vjp(lambda lib, x: pooled(lib)(x), x)
    agree(lambda lib: lib.jvp(pooled(lib), (x,), (np.arange(6, dtype=np.float32),)))
    nan = np.array([1.0, 2.0, np.nan, 0.0], np.float32)
    agree(lambda lib: pooled(lib)(nan))


def test_pooling_by_hand():
    """Windows with gaps in them, whose derivative JAX does not have."""
    x = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0], np.float32)

    def pooled(x):
        return namoo.lax.reduce_window(x, -np.inf, namoo.lax.max, (2,), window_dilation=(2,))

    out, pullback = namoo.vjp(pooled, x)
    np.testing.assert_array_equal(out, [4, 1.5, 5, 9])
    (ct,) = pullback(np.array([1, 10, 100, 1000], np.float32))
    np.testing.assert_array_equal(ct, [0, 0, 1, 10, 100, 1000])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_batched_windows(axis):
    x = np.stack([plain, ties], axis)
    for fun in (joined, lambda lib: lib.lax.max):
        agree(
            lambda lib, fun=fun: lib.vmap(
                lambda x: lib.lax.reduce_window(x, 0.0, fun(lib), (1, 2, 2)), in_axes=axis
            )(x)
        )


WRONG = {
    "window rank": ((2,), (1, 1, 1), "VALID"),
    "stride rank": ((2, 2, 2), (1,), "VALID"),
    "no stride": ((2, 2, 2), (0, 1, 1), "VALID"),
    "no window": ((0, 2, 2), (1, 1, 1), "VALID"),
    "padding word": ((2, 2, 2), (1, 1, 1), "FULL"),
    "padding rank": ((2, 2, 2), (1, 1, 1), [(0, 1)]),
    "dilation": ((2, 2, 2), (1, 1, 1), "SAME", (0, 1, 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_window_errors(name):
    fail_alike(lambda lib: lib.lax.reduce_window(plain, 0.0, lib.lax.add, *WRONG[name]))


def test_window_arguments():
    zero = np.zeros(2, np.float32)
    fail_alike(lambda lib: lib.lax.reduce_window(plain, zero, lib.lax.add, (2, 2, 2)))
    fail_alike(lambda lib: lib.lax.reduce_window((plain,), 0.0, lambda a, b: a, (2, 2, 2)))
    for args in [
        ((4, 5), (2, 2), (1, 2), [(0, 1), (1, 1)], None, (2, 1)),
        ((7,), (3,), (2,), "SAME"),
    ]:
        found, wanted = (
            lib.lax.reduce_window_shape_tuple(*args) if args[3] != "SAME" or lib is OURS else (4,)
            for lib in (OURS, THEIRS)
        )
        assert found == tuple(wanted)
