"""`experimental` against JAX's: checks and their messages, sparse arrays, odeint."""

import functools
import re

import jax
import jax.experimental.ode
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse
from jax.experimental import checkify as jax_checkify
from jax.experimental import sparse as jax_sparse

import namoo
from namoo import experimental
from namoo.experimental import checkify, ode, sparse

F32 = np.float32
BOTH = [(namoo, checkify), (jax, jax_checkify)]

# Programs as functions of the two libraries, `m` and `c`; arguments; which errors to look for.


def user_check(m, c):
    def f(x):
        c.check(x > 0, "{x} is not positive, nor is {}", x * 2, x=x)
        return m.numpy.log(x)

    return f


def two_checks(m, c):
    def f(x):
        y = x / m.numpy.sum(x - x)
        c.check(m.numpy.all(x > 100), "never")
        return y

    return f


def check_in_scan(m, c):
    def step(total, x):
        c.check(x < 3, "x was {}", x)
        return total / (x - 1), total

    return lambda xs: m.lax.scan(step, F32(1), xs)


def check_in_while(m, c):
    def body(s):
        c.check(s != 3, "reached {}", s)
        return s + 1

    return lambda n: m.lax.while_loop(lambda s: s < n, body, m.numpy.zeros((), np.int32))


def check_in_while_condition(m, c):
    def condition(s):
        c.check(s < 3, "condition saw {}", s)
        return s < 5

    return lambda n: m.lax.while_loop(condition, lambda s: s + 1, n)


def check_in_branches(m, c):
    def negative(x):
        c.check(x < -5, "{} is not below -5", x)
        return m.numpy.sqrt(x)

    def positive(x):
        c.check(x > 5, "{} is not above 5, in {}", x, m.numpy.arange(2))
        return x / 0

    return lambda x: m.lax.cond(x < 0, negative, positive, x)


def check_in_switch(m, c):
    branches = [lambda x: x, lambda x: m.numpy.log(x), lambda x: x / 0]
    return lambda i, x: m.lax.switch(i, branches, x)


def check_in_jit(m, c):
    return m.jit(user_check(m, c))


def check_in_remat(m, c):
    return m.checkpoint(user_check(m, c))


def check_in_vmap(m, c):
    return m.vmap(user_check(m, c))


def check_in_fori(m, c):
    def body(i, x):
        return x.at[i].set(x[i - 1] / i)

    return lambda x: m.lax.fori_loop(0, 3, body, x)


def custom_rule(m, c):
    @m.custom_jvp
    def f(x):
        c.check(x < 1, "{} too large", x)
        return x / 0

    f.defjvp(lambda p, t: (p[0], t[0]))
    return f


def debug_only(m, c):
    def f(x):
        c.debug_check(x > 0, "{} is not positive", x)
        return x

    return f


def rethrown(m, c):
    def f(x):
        error, out = m.jit(c.checkify(user_check(m, c)))(x)
        c.check(x < 10, "too large")
        c.check_error(error)
        return out

    return f


x3 = np.arange(3, dtype=F32)
PROGRAMS = [
    ("user_checks", user_check, [(F32(-1),), (F32(2),)]),
    ("nan_checks", user_check, [(F32(-1),)]),
    ("all_checks", user_check, [(F32(-1),), (F32(2),)]),
    ("float_checks", two_checks, [(x3,)]),
    ("user_checks", two_checks, [(x3,)]),
    ("all_checks", two_checks, [(x3 + 101,)]),
    ("all_checks", check_in_scan, [(x3 + 1,), (x3 + 2,), (x3 * 0 + 2,)]),
    ("user_checks", check_in_while, [(np.int32(3),), (np.int32(6),)]),
    ("user_checks", check_in_while_condition, [(np.int32(0),), (np.int32(7),)]),
    ("all_checks", check_in_branches, [(F32(-1),), (F32(-9),), (F32(1),), (F32(9),)]),
    ("all_checks", check_in_switch, [(np.int32(i), F32(-1)) for i in range(3)]),
    ("user_checks", check_in_jit, [(F32(-1),), (F32(1),)]),
    ("all_checks", check_in_remat, [(F32(-1),)]),
    ("user_checks", check_in_vmap, [(x3 + 1,), (1 - x3,)]),
    ("div_checks", check_in_fori, [(x3,)]),
    ("all_checks", custom_rule, [(F32(2),), (F32(0.5),)]),
    ("user_checks", debug_only, [(F32(-1),), (F32(1),)]),
    ("user_checks", rethrown, [(F32(-1),), (F32(11),), (F32(1),)]),
    ("nan_checks", lambda m, c: lambda x: m.numpy.sin(x), [(F32(np.inf),), (F32(1),)]),
    ("nan_checks", lambda m, c: lambda x: m.numpy.exp(x) @ x, [(x3 * np.nan,)]),
    ("div_checks", lambda m, c: lambda x, y: m.lax.div(x, y), [(np.int32(3), np.int32(0))]),
]


def message(m, c, program, errors, args):
    checked = m.jit(c.checkify(program(m, c), errors=getattr(c, errors)))
    error, out = checked(*map(m.numpy.asarray, args))
    return error.get(), out


@pytest.mark.parametrize(("errors", "program", "arguments"), PROGRAMS)
def test_messages_and_results(errors, program, arguments):
    for args in arguments:
        ours = message(namoo, checkify, program, errors, args)
        theirs = message(jax, jax_checkify, program, errors, args)
        assert ours[0] == theirs[0]
        namoo.tree.map(
            functools.partial(np.testing.assert_allclose, rtol=1e-5),
            ours[1],
            jax.tree.map(np.asarray, theirs[1]),
        )
        eager, _ = checkify.checkify(program(namoo, checkify), getattr(checkify, errors))(
            *map(namoo.numpy.asarray, args)
        )
        assert eager.get() == ours[0]


MATRIX = np.arange(12, dtype=F32).reshape(4, 3)
INDEXING = {
    "one": (lambda m: lambda x, i: x[i], [0, 3, 4, 9, -1, -4]),
    "column": (lambda m: lambda x, i: x[:, i], [2, 3]),
    "many": (lambda m: lambda x, i: x[i], [[0, 3], [1, 7], [9, 8]]),
    "pairs": (lambda m: lambda x, i: x[i, i + 1], [[0, 1], [1, 2], [5, 1]]),
    "set": (lambda m: lambda x, i: x.at[i].set(1.0), [0, 4, [1, 6]]),
    "add": (lambda m: lambda x, i: x.at[i, 1].add(1.0), [3, 4]),
    "slice": (lambda m: lambda x, i: m.lax.dynamic_slice(x, (i, 1), (2, 2)), [0, 2, 3, 5]),
    "update": (
        lambda m: lambda x, i: m.lax.dynamic_update_slice(x, x[:2, :2], (0, i)),
        [1, 2],
    ),
}


@pytest.mark.parametrize("name", INDEXING)
def test_index_checks(name):
    make, indices = INDEXING[name]
    for i in indices:
        found = []
        for m, c in BOTH:
            f = m.jit(c.checkify(make(m), c.index_checks))
            found.append(f(m.numpy.asarray(MATRIX), m.numpy.asarray(i, np.int32))[0].get())
        ours, theirs = found
        assert (ours is None) == (theirs is None), i
        if ours is not None:
            assert ours == theirs.rstrip()


def test_vmap_of_checkify_names_the_examples():
    x = np.array([-1, 1, -2], F32)
    texts = [m.vmap(c.checkify(user_check(m, c)))(m.numpy.asarray(x))[0].get() for m, c in BOTH]
    assert texts[0] == texts[1] and "at mapped index 2" in texts[0]
    error, _ = namoo.vmap(checkify.checkify(user_check(namoo, checkify)))(x)
    with pytest.raises(checkify.JaxRuntimeError, match="-2.0 is not positive"):
        error.throw()


def test_the_first_failure_is_reported():
    # JAX prefers users' checks to automatic ones; the order of the program says more.
    error, _ = checkify.checkify(two_checks(namoo, checkify), checkify.all_checks)(x3)
    assert error.get() == "division by zero"


def test_checks_of_traced_batches_of_loops():
    def loop(n):
        def body(s):
            checkify.check(s < 10, "{}", s)
            return s + 1

        return namoo.lax.while_loop(lambda s: s < n, body, 0)

    error, out = checkify.checkify(namoo.vmap(loop))(namoo.numpy.arange(4))
    assert error.get() is None
    np.testing.assert_array_equal(out, np.arange(4))
    error, _ = checkify.checkify(namoo.vmap(loop))(namoo.numpy.asarray([1, 20]))
    assert error.get() == "10 (`check` failed)"


def check_of_a_loop_condition(x):
    def condition(x):
        checkify.check(x < 7, "{} is too large", x)
        return x < 5

    return namoo.lax.while_loop(condition, lambda x: x + 3, x)


def check_in_a_loop(x):
    def body(x):
        checkify.check(x < 5, "{} has stopped", x)
        return x + 1

    return namoo.lax.while_loop(lambda x: x < 5, body, x)


def check_in_one_branch(x):
    def small(x):
        checkify.check(x < 5, "{} is not small", x)
        return x

    return namoo.lax.cond(x < 5, small, lambda x: x, x)


@pytest.mark.parametrize("f", [check_of_a_loop_condition, check_in_a_loop, check_in_one_branch])
@pytest.mark.parametrize("compiled", [False, True])
def test_checks_do_not_run_for_examples_that_do_not_ask_for_them(f, compiled):
    x = namoo.numpy.asarray([2, 3, 0, 6])
    checked = checkify.checkify(namoo.vmap(f))
    error, out = (namoo.jit(checked) if compiled else checked)(x)
    assert error.get() is None
    np.testing.assert_array_equal(out, [f(v) for v in x])
    np.testing.assert_array_equal(out, namoo.vmap(f)(x))


def test_automatic_checks_of_loops_whose_examples_stop_apart_are_refused():
    def loop(m):
        return lambda x: m.lax.while_loop(lambda s: s > 0, lambda s: s - 1 / s, x)

    for m, c in BOTH:
        with pytest.raises(ValueError, match="checkify-of-vmap-of-while"):
            c.checkify(m.vmap(loop(m)), c.div_checks)(m.numpy.asarray([1.0, 2.0]))
    error, _ = namoo.vmap(checkify.checkify(loop(namoo), checkify.div_checks))(x3)
    assert error.get() is None


def test_python_integers_out_of_bounds_are_errors_under_index_checks():
    x = np.arange(3, dtype=F32)
    found = [
        c.checkify(f, errors)(m.numpy.asarray(x))[0].get()
        for m, c in BOTH
        for f in (lambda x: x[5], lambda x: x[-7], lambda x: x.at[4].set(1.0))
        for errors in (c.index_checks, c.all_checks)
    ]
    assert found[:6] == [text.rstrip() for text in found[6:]]
    with pytest.raises(IndexError):
        checkify.checkify(lambda x: x[5])(namoo.numpy.asarray(x))


def test_derivatives_go_through():
    def checked(m, c):
        def f(x):
            c.check(m.numpy.all(x > 0), "negative")
            return m.numpy.sum(m.nn.relu(x) * m.numpy.log(x))

        return m.value_and_grad(lambda x: c.checkify(f, c.all_checks)(x)[::-1], has_aux=True)

    (value, error), slope = checked(namoo, checkify)(namoo.numpy.asarray(x3 + 1))
    (their_value, _), their_slope = checked(jax, jax_checkify)(x3 + 1)
    assert error.get() is None
    np.testing.assert_allclose(np.asarray(value), their_value, rtol=1e-6)
    np.testing.assert_allclose(slope, their_slope, rtol=1e-6)


def test_custom_vjp_keeps_its_rule_under_checkify():
    @namoo.custom_vjp
    def f(x, n):
        checkify.check(n > 0, "n is {}", n)
        return x * n

    f.defvjp(lambda x, n: (x * n, x), lambda x, ct: (ct * 100.0, None))
    loss = lambda x, n: checkify.checkify(f)(x, n)[::-1]  # noqa: E731
    n = namoo.numpy.asarray(-2)
    (_, error), slope = namoo.value_and_grad(loss, has_aux=True)(1.0, n)
    assert slope == 100.0
    assert checkify.checkify(f)(1.0, n)[0].get() == "n is -2 (`check` failed)"
    assert error.get() is None  # as in JAX, the rule for derivatives is not checked


@pytest.mark.parametrize("transform", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_unchecked_failures_raise_with_the_line(transform):
    run = transform(user_check(namoo, checkify))
    with pytest.raises(checkify.JaxRuntimeError, match="-1.0 is not positive") as caught:
        run(namoo.numpy.asarray(F32(-1)))
    assert isinstance(caught.value, ValueError)
    assert re.search(r"at .*test_experimental\.py:\d+ \(user_check", str(caught.value))
    assert run(namoo.numpy.asarray(F32(1))) == 0
    transform(debug_only(namoo, checkify))(namoo.numpy.asarray(F32(-1)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda c: c.check(np.ones(2, bool), "no"), TypeError, "jnp.all"),
        (lambda c: c.check(1, "no"), TypeError, "scalar boolean"),
        (lambda c: c.debug_check(1, "no"), TypeError, "debug_check"),
        (lambda c: c.check(True, "{}", "text"), TypeError, "f-string"),
        (lambda c: c.check_error(1), TypeError, "Error"),
        (lambda c: c.check(False, "no"), ValueError, "no"),
        (lambda c: c.checkify(lambda: c.check(False, "no"))()[0].throw(), ValueError, "no"),
    ],
)
def test_misuse(call, error, text):
    with pytest.raises(error):
        call(jax_checkify)
    with pytest.raises(error, match=text):
        call(checkify)


def test_an_error_is_a_tree_and_what_is_no_array_stays():
    run = checkify.checkify(lambda x, how: getattr(namoo.numpy, how)(x), checkify.all_checks)
    error, out = run(namoo.numpy.asarray(F32(-1)), "sqrt")
    assert error.get() == "nan generated by primitive: sqrt."
    same = namoo.tree.map(lambda x: x, error)
    assert same.get() == error.get()
    assert namoo.jit(lambda e: e)(error).get() == error.get()
    assert checkify.init_error.get() is None


def test_everything_can_be_checked():
    def network(key, x):
        keys = namoo.random.split(key, 3).at[0].set(key)
        noise = namoo.random.gamma(keys[1], 2.0, (4,)) + namoo.random.normal(keys[2], (4,))
        half = (x + noise).astype(namoo.numpy.bfloat16)
        wave = namoo.numpy.fft.fft(half.astype(namoo.numpy.float32))
        solved = namoo.numpy.linalg.solve(namoo.numpy.eye(4) * 2, namoo.numpy.sort(wave.real))
        return namoo.numpy.cumsum(namoo.nn.softmax(solved)), half

    args = namoo.random.key(0), namoo.numpy.ones(4)
    error, out = namoo.jit(checkify.checkify(network, checkify.float_checks))(*args)
    assert error.get() is None
    for a, b in zip(out, network(*args), strict=True):
        np.testing.assert_allclose(a.astype(F32), b.astype(F32), rtol=1e-6)


def test_settings_and_callbacks():
    with experimental.enable_x64():
        assert namoo.numpy.ones(1).dtype == np.float64
        with experimental.disable_x64():
            assert namoo.numpy.ones(1).dtype == np.float32
    seen = []
    namoo.jit(lambda x: experimental.io_callback(seen.append, None, x))(3)
    assert [int(x) for x in seen] == [3]
    assert {"checkify", "ode", "sparse"} <= set(dir(experimental))


# Sparse arrays.

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(3, 4, 2)).astype(F32) * (RNG.random((3, 4, 2)) < 0.5)
DENSE[1] = 0
LAYOUTS = [(b, d) for b in range(4) for d in range(4) if b + d <= 3]


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_conversion(n_batch, n_dense):
    options = dict(n_batch=n_batch, n_dense=n_dense)
    ours = sparse.BCOO.fromdense(DENSE, **options)
    theirs = jax_sparse.BCOO.fromdense(jax.numpy.asarray(DENSE), **options)
    assert repr(ours) == repr(theirs)
    assert (ours.n_sparse, ours.nse, ours.ndim, ours.size) == (
        theirs.n_sparse, theirs.nse, theirs.ndim, theirs.size,
    )  # fmt: skip
    np.testing.assert_array_equal(ours.todense(), DENSE)
    dense = namoo.jit(lambda m: m.todense())(ours)
    np.testing.assert_array_equal(dense, DENSE)
    fixed = namoo.jit(lambda x: sparse.bcoo_fromdense(x, nse=ours.nse + 1, **options))(DENSE)
    np.testing.assert_array_equal(fixed.todense(), DENSE)
    assert fixed.nse == ours.nse + 1
    other = ours + sparse.BCOO.fromdense(DENSE)
    np.testing.assert_allclose(other.todense(), 2 * DENSE)
    np.testing.assert_allclose(sparse.bcoo_extract(ours, DENSE * 3).todense(), DENSE * 3)
    for axis in [0, 1, 2, (0, 2), None]:
        total = ours.sum(axis)
        np.testing.assert_allclose(sparse.todense(total), DENSE.sum(axis), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours.reshape(6, -1).todense(), DENSE.reshape(6, 4))
    doubled = (ours + ours).sum_duplicates()
    np.testing.assert_allclose(doubled.todense(), 2 * DENSE)
    assert doubled.nse == max(ours.nse, 0) and doubled.unique_indices
    np.testing.assert_allclose((ours + ours).sort_indices().todense(), 2 * DENSE)


@pytest.mark.parametrize("options", [{}, {"nse": 5}, {"nse": 1}, {"remove_zeros": False}])
def test_sum_duplicates(options):
    data, indices = (
        np.array([1, 2, 0, 4], F32),
        np.array([[1, 1], [1, 1], [0, 0], [0, 1]], np.int32),
    )
    ours, theirs = (
        s.BCOO((m.numpy.asarray(data), m.numpy.asarray(indices)), shape=(2, 2)).sum_duplicates(
            **options
        )
        for m, s in ((namoo, sparse), (jax, jax_sparse))
    )
    assert ours.nse == theirs.nse
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.data, theirs.data)


@pytest.mark.parametrize(
    ("n_batch", "n_dense", "axes"),
    [(0, 0, (2, 0, 1)), (1, 0, (0, 2, 1)), (0, 2, (0, 2, 1)), (2, 1, (1, 0, 2))],
)
def test_transpose(n_batch, n_dense, axes):
    m = sparse.BCOO.fromdense(DENSE, n_batch=n_batch, n_dense=n_dense)
    np.testing.assert_array_equal(m.transpose(axes).todense(), DENSE.transpose(axes))


PRODUCTS = [
    ((3, 4), (4, 2), (((1,), (0,)), ((), ()))),
    ((3, 4), (3, 2), (((0,), (0,)), ((), ()))),
    ((3, 4), (4, 3), (((0, 1), (1, 0)), ((), ()))),
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 4), (4, 2), (((2,), (0,)), ((0,), (1,)))),
    ((3,), (4,), (((), ()), ((), ()))),
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((3, 4), (4, 3), (((), ()), ((1, 0), (0, 1)))),
]


@pytest.mark.parametrize(("left", "right", "dims"), PRODUCTS)
def test_products(left, right, dims):
    rng = np.random.default_rng(len(left) + sum(right))
    a, b = ((rng.integers(-3, 4, s) * (rng.random(s) < 0.6)).astype(F32) for s in (left, right))
    expected = jax.lax.dot_general(a, b, dims)
    dot = functools.partial(sparse.bcoo_dot_general, dimension_numbers=dims)
    layouts = [(n, 0) for n in range(len(left))] + [(0, len(left) - 1)]
    for n_batch, n_dense in layouts:
        sparse_a = sparse.BCOO.fromdense(a, n_batch=n_batch, n_dense=n_dense)
        np.testing.assert_array_equal(dot(sparse_a, b), expected)
        np.testing.assert_array_equal(namoo.jit(dot)(sparse_a, b), expected)
    sparse_b = sparse.BCOO.fromdense(b, nse=int(np.count_nonzero(b)) + 2)
    np.testing.assert_array_equal(dot(a, sparse_b), expected)
    both = dot(sparse.BCOO.fromdense(a), sparse_b)
    np.testing.assert_array_equal(both.todense(), expected)
    jitted = namoo.jit(dot)(sparse.BCOO.fromdense(a), sparse_b)
    np.testing.assert_array_equal(jitted.todense(), expected)
    np.testing.assert_array_equal(dot(a, b), expected)


def test_operators():
    a = DENSE[:, :, 0]
    m, v = sparse.BCOO.fromdense(a), RNG.normal(size=4).astype(F32)
    cases = [
        (m @ v, a @ v),
        (a.T @ m, a.T @ a),
        (m @ m.T, a @ a.T),
        (m * 2, a * 2),
        (3 * m, a * 3),
        (m / 2, a / 2),
        (m * v, a * v),
        (v * m, a * v),
        (m * m, a * a),
        (-m, -a),
        (m - m, a - a),
        (m + a, a + a),
        (a - m, a - a),
        (m.astype(np.int32), a.astype(np.int32)),
        (sparse.eye(3, 4, 1), np.eye(3, 4, 1)),
        (sparse.eye(3, k=-5), np.eye(3, k=-5)),
        (sparse.empty((2, 3), nse=2), np.zeros((2, 3))),
        (sparse.BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(a)), a),
        (sparse.BCOO.fromdense(DENSE) @ np.ones((3, 2, 5), F32), DENSE @ np.ones((3, 2, 5))),
        (m @ DENSE.transpose(2, 1, 0), a @ DENSE.transpose(2, 1, 0)),
    ]
    for ours, expected in cases:
        np.testing.assert_allclose(sparse.todense(ours), expected, rtol=1e-5, atol=1e-6)
    assert len(m) == 3


def test_sparse_derivatives():
    a, v = DENSE[:, :, 0], RNG.normal(size=4).astype(F32)
    m = sparse.BCOO.fromdense(a)

    def loss(data, v):
        product = sparse.BCOO((data, m.indices), shape=m.shape) @ v
        return namoo.numpy.sum(product**2)

    by_data, by_v = namoo.grad(loss, (0, 1))(m.data, v)
    residual = 2 * (a @ v)
    np.testing.assert_allclose(by_v, residual @ a, rtol=1e-5)
    expected = np.outer(residual, v)[tuple(np.asarray(m.indices).T)]
    np.testing.assert_allclose(by_data, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s, m: s.BCOO((m.ones(2), m.zeros((3, 2), int)), shape=(2, 3)), ValueError),
        (lambda s, m: s.BCOO((m.ones(2), m.zeros((2, 1), int)), shape=(2, 3)), ValueError),
        (lambda s, m: s.BCOO.fromdense(m.eye(3)) @ m.ones(4), TypeError),
        (lambda s, m: s.BCOO.fromdense(m.eye(3)).transpose((0, 0)), TypeError),
        (lambda s, m: s.BCOO.fromdense(m.eye(3), n_batch=1).T, NotImplementedError),
    ],
)
def test_sparse_errors(call, error):
    with pytest.raises(error):
        call(jax_sparse, jax.numpy)
    with pytest.raises(error):
        call(sparse, namoo.numpy)


def test_counts_need_values():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="nse=n"):
        namoo.jit(sparse.BCOO.fromdense)(np.eye(2))
    with pytest.raises(ValueError, match="nse must be specified"):
        namoo.jit(lambda m: m.sum_duplicates())(sparse.eye(2))


# Differential equations.


def pendulum(np_):
    def slope(state, t, friction, gravity):
        angle, speed = state["angle"], state["speed"]
        force = -friction["c"] * speed - gravity * np_.sin(angle) + 0.1 * np_.cos(t)
        return {"angle": speed, "speed": force}

    return slope


START = {"angle": F32(1.0), "speed": F32(0.5)}
TIMES = np.linspace(0, 2, 4, dtype=F32)
TOLERANCES = dict(rtol=1e-5, atol=1e-5)


def test_solution_and_its_derivatives():
    def loss(m, solve):
        def f(y, t, c, g):
            out = solve(pendulum(m.numpy), y, t, {"c": c}, g, **TOLERANCES)
            return m.numpy.sum(m.numpy.sin(out["angle"]) + out["speed"]), out

        return m.value_and_grad(f, (0, 1, 2, 3), has_aux=True)

    (value, out), slopes = loss(namoo, ode.odeint)(START, TIMES, 0.1, 9.8)
    theirs = jax.jit(loss(jax, jax.experimental.ode.odeint))(START, TIMES, 0.1, 9.8)
    (their_value, their_out), their_slopes = theirs
    np.testing.assert_allclose(value, their_value, rtol=1e-4)
    ours, theirs = namoo.tree.leaves((out, slopes)), jax.tree.leaves((their_out, their_slopes))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)
    reference = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -0.1 * y[1] - 9.8 * np.sin(y[0]) + 0.1 * np.cos(t)],
        (0, 2), [1.0, 0.5], t_eval=TIMES, rtol=1e-8, atol=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(out["angle"], reference.y[0], atol=2e-4)


def test_precision_grows_with_x64():
    with experimental.enable_x64():
        t = namoo.numpy.linspace(0.0, 3.0, 4)
        y = namoo.jit(lambda y: ode.odeint(lambda y, t: -y, y, t))(namoo.numpy.ones(2))
        np.testing.assert_allclose(y, np.exp(-np.asarray(t))[:, None] * np.ones(2), rtol=1e-7)


def test_limits_integers_and_closures():
    rate = namoo.numpy.asarray(F32(0.5))
    solve = lambda r, n: ode.odeint(  # noqa: E731
        lambda y, t, n: -r * n * y, namoo.numpy.ones(1), TIMES, n, **TOLERANCES
    )
    slope = namoo.grad(lambda r: solve(r, np.int32(2))[-1, 0])(rate)
    np.testing.assert_allclose(slope, -4 * np.exp(-2.0), rtol=1e-3)
    batch = namoo.vmap(lambda r: solve(r, np.int32(1))[-1, 0])(
        namoo.numpy.asarray(np.array([0.5, 1], F32))
    )
    np.testing.assert_allclose(batch, np.exp([-1.0, -2.0]), rtol=1e-4)
    stopped = ode.odeint(lambda y, t: -y, namoo.numpy.ones(1), TIMES, mxstep=1, hmax=1e-3)
    assert stopped.shape == (4, 1)


@pytest.mark.parametrize(
    ("t", "args", "text"),
    [(np.arange(3), (), "array of floats"), (TIMES, ("text",), r"args\[0\]")],
)
def test_odeint_refuses(t, args, text):
    with pytest.raises(TypeError):
        jax.experimental.ode.odeint(lambda y, t, *a: y, np.ones(1), t, *args)
    with pytest.raises(TypeError, match=text):
        ode.odeint(lambda y, t, *a: y, np.ones(1), t, *args)
