"""`namoo.nn` against `jax.nn`: values, types, derivatives, refusals."""

import jax
import jax.numpy as jaxnp
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import nn

X = np.array([-7, -2.5, -1, -0.3, 0, 0.2, 1, 2.5, 7, 50, -60], np.float32)
ELEMENTWISE = [
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid",
    "mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus",
    "swish tanh",
]
ELEMENTWISE = " ".join(ELEMENTWISE).split()
TOLERANCE = {"float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2, "int32": 2e-6}


def same(found, expected, rtol):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(expected, np.float32), rtol=rtol, atol=3e-6
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activations(name, dtype):
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    if dtype == "int32" and name in ("sigmoid", "silu", "swish"):
        for fun, x in ((ours, jnp.arange(3)), (theirs, jaxnp.arange(3))):
            with pytest.raises(TypeError):
                fun(x)
        return
    x = X.astype(int) if dtype == "int32" else X
    same(ours(jnp.asarray(x, dtype)), theirs(jaxnp.asarray(x, dtype)), TOLERANCE[dtype])


@pytest.mark.parametrize("name", [*ELEMENTWISE, "log1mexp"])
def test_derivatives_of_activations(name):
    x = np.abs(X) + 0.1 if name == "log1mexp" else X
    ours = namoo.vmap(namoo.grad(getattr(nn, name)))(jnp.asarray(x))
    # In float32, XLA's 1 - tanh(x)² keeps few digits where tanh(x) is nearly 1.
    with jax.enable_x64(True):
        theirs = jax.vmap(jax.grad(getattr(jax.nn, name)))(jaxnp.asarray(x, float))
    same(ours, np.asarray(theirs, np.float32), 1e-5)


WHERE = np.array([[True, False, True], [True, True, True]])
TABLES = {
    "softmax": lambda n, np_, x: n.softmax(x),
    "softmax axis": lambda n, np_, x: n.softmax(x, axis=0),
    "softmax axes": lambda n, np_, x: n.softmax(x, axis=(0, 1)),
    "softmax where": lambda n, np_, x: n.softmax(x, where=np_.asarray(WHERE)),
    "log_softmax": lambda n, np_, x: n.log_softmax(x),
    "log_softmax axis": lambda n, np_, x: n.log_softmax(x, axis=0),
    "logsumexp": lambda n, np_, x: n.logsumexp(x),
    "logsumexp axis": lambda n, np_, x: n.logsumexp(x, axis=1, keepdims=True),
    "logsumexp b": lambda n, np_, x: n.logsumexp(x, axis=1, b=np_.asarray([1.0, 2.0, 0.0])),
    "logsumexp where": lambda n, np_, x: n.logsumexp(x, axis=1, where=np_.asarray(WHERE)),
    "logmeanexp": lambda n, np_, x: n.logmeanexp(x, axis=0),
    "standardize": lambda n, np_, x: n.standardize(x),
    "standardize stable": lambda n, np_, x: n.standardize(x, axis=0, algorithm="stable"),
    "standardize where": lambda n, np_, x: n.standardize(x, where=np_.asarray(WHERE)),
    "standardize given": lambda n, np_, x: n.standardize(x, mean=0.5, variance=2.0),
    "glu": lambda n, np_, x: n.glu(x, axis=0),
    "gelu exact": lambda n, np_, x: n.gelu(x, approximate=False),
    "elu alpha": lambda n, np_, x: n.elu(x, 0.3),
    "celu alpha": lambda n, np_, x: n.celu(x, 0.3),
    "leaky slope": lambda n, np_, x: n.leaky_relu(x, 0.3),
}


@pytest.mark.parametrize("case", TABLES)
def test_normalisation_and_its_derivatives(case):
    f = TABLES[case]
    x = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]], np.float32)
    same(f(nn, jnp, jnp.asarray(x)), f(jax.nn, jaxnp, jaxnp.asarray(x)), 1e-5)
    if "where" not in case:
        weights = np.arange(1.0, 7.0, dtype=np.float32)

        def total(n, np_):
            return lambda x: (np_.ravel(f(n, np_, x)) * weights[: f(n, np_, x).size]).sum()

        ours = namoo.grad(total(nn, jnp))(jnp.asarray(x))
        same(ours, jax.grad(total(jax.nn, jaxnp))(jaxnp.asarray(x)), 1e-4)


def test_logsumexp_signs_and_extremes():
    for values in ([1.0, -2.0], [-np.inf, -np.inf], [np.inf, 1.0], [1000.0, 999.0]):
        x = np.array(values, np.float32)
        ours = nn.logsumexp(jnp.asarray(x), b=jnp.asarray([1.0, -1.0]), return_sign=True)
        theirs = jax.nn.logsumexp(jaxnp.asarray(x), b=jaxnp.asarray([1.0, -1.0]), return_sign=True)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_what_logsumexp_leaves_out_has_no_derivative():
    x, where = np.array([1.0, 2e30, -3.0, np.inf], "f"), np.array([True, False, True, False])
    ours = namoo.grad(lambda x: nn.logsumexp(x, where=where))(jnp.asarray(x))
    same(ours, jax.grad(lambda x: jax.nn.logsumexp(x, where=where))(jaxnp.asarray(x)), 1e-6)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis):
    x = np.array([[0, 2], [5, -1]])
    same(nn.one_hot(x, 3, axis=axis), jax.nn.one_hot(x, 3, axis=axis), 0)
    same(
        nn.one_hot(x, 3, dtype="int8", axis=axis), jax.nn.one_hot(x, 3, dtype="int8", axis=axis), 0
    )


def test_one_hot_wants_integers_and_a_known_length():
    with pytest.warns(DeprecationWarning, match="integer-typed"):
        nn.one_hot(jnp.array([1.0]), 3)
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="argument `num_classes`"):
        namoo.jit(nn.one_hot)(3, 5)


INITIALIZERS = [
    "glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform lecun_normal",
    "lecun_uniform xavier_normal xavier_uniform orthogonal delta_orthogonal normal uniform",
    "truncated_normal",
]


@pytest.mark.parametrize("name", " ".join(INITIALIZERS).split())
def test_initializers_draw_what_jax_draws(name):
    shape = (3, 3, 4, 5) if name == "delta_orthogonal" else (3, 4, 5)
    ours = getattr(nn.initializers, name)()(namoo.random.key(7), shape)
    theirs = getattr(jax.nn.initializers, name)()(jax.random.key(7), shape)
    same(ours, theirs, 2e-4 if "orthogonal" in name else 3e-6)


ODD_SHAPES = [
    ("lecun_uniform", (3, 4), "complex64", {}),
    ("glorot_normal", (3, 4), "complex64", {}),
    ("he_uniform", (5,), "float32", {"in_axis": 0, "out_axis": 0}),
    ("lecun_normal", (5,), "float32", {"in_axis": (), "out_axis": 0}),
    ("orthogonal", (3, 3), "float32", {}),
    ("orthogonal", (4, 3), "complex64", {"column_axis": 0}),
    ("orthogonal", (0, 3), "float32", {}),
    ("orthogonal", (3, 0), "float32", {}),
    ("delta_orthogonal", (2, 3, 3, 3), "float32", {}),
]


@pytest.mark.parametrize("name, shape, dtype, options", ODD_SHAPES)
def test_initializers_of_odd_shapes_and_complex_types(name, shape, dtype, options):
    ours = getattr(nn.initializers, name)(**options)(namoo.random.key(7), shape, dtype)
    theirs = getattr(jax.nn.initializers, name)(**options)(jax.random.key(7), shape, dtype)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-4, atol=1e-5)


def test_variance_scaling_counts_axes_as_jax_does():
    options = dict(in_axis=(0, 1), out_axis=2, batch_axis=3)
    for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        args = (2.0, mode, "uniform")
        ours = nn.initializers.variance_scaling(*args, **options)(namoo.random.key(1), (2, 3, 4, 5))
        theirs = jax.nn.initializers.variance_scaling(*args, **options)(
            jax.random.key(1), (2, 3, 4, 5)
        )
        same(ours, theirs, 1e-6)
    with pytest.raises(ValueError):
        nn.initializers.he_normal()(namoo.random.key(0), (3,))


RNG = np.random.default_rng(0)
Q, K, V = (RNG.normal(size=(2, length, 4, 8)).astype("float32") for length in (5, 6, 6))
ATTENTION = {
    "plain": {},
    "scale": dict(scale=0.3),
    "causal": dict(is_causal=True),
    "bias": dict(bias=RNG.normal(size=(1, 4, 5, 6)).astype("float32")),
    "mask": dict(mask=RNG.random((2, 1, 5, 6)) > 0.3),
    "window": dict(local_window_size=(1, 2)),
    "one window": dict(local_window_size=1),
    "lengths": dict(
        query_seq_lengths=np.array([3, 5], "int32"), key_value_seq_lengths=np.array([2, 6], "int32")
    ),
    "causal mask": dict(is_causal=True, mask=RNG.random((2, 4, 5, 6)) > 0.2),
    "mask of keys": dict(mask=np.arange(6) < 4),
}


@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("case", ATTENTION)
def test_attention(case, heads):
    options, k, v = ATTENTION[case], K[:, :, :heads], V[:, :, :heads]
    ours = nn.dot_product_attention(Q, k, v, **options)
    same(ours, jax.nn.dot_product_attention(Q, k, v, **options), 1e-5)


def test_attention_without_batch_and_its_gradient():
    same(
        nn.dot_product_attention(Q[0], K[0], V[0]),
        jax.nn.dot_product_attention(Q[0], K[0], V[0]),
        1e-5,
    )
    ours = namoo.grad(lambda q: nn.dot_product_attention(q, K, V, is_causal=True).sum())(Q)
    theirs = jax.grad(lambda q: jax.nn.dot_product_attention(q, K, V, is_causal=True).sum())(Q)
    same(ours, theirs, 1e-4)
    ours = nn.dot_product_attention(Q, K, V, return_residual=True)
    theirs = jax.nn.dot_product_attention(Q, K, V, return_residual=True)
    for a, b in zip(ours, theirs, strict=True):
        same(a, b, 1e-5)


@pytest.mark.parametrize(
    "args, options",
    [
        ((Q[0, 0], K[0, 0], V[0, 0]), {}),
        ((Q, K[..., :4], V[..., :4]), {}),
        ((Q, K[:, :, :3], V[:, :, :3]), {}),
        ((Q, K, V), dict(mask=np.ones((2, 4, 5, 6), "float32"))),
        ((Q, K, V), dict(bias=np.ones((7, 1, 5, 6), "float32"))),
    ],
)
def test_attention_refuses_shapes_that_do_not_fit(args, options):
    with pytest.raises(ValueError):
        nn.dot_product_attention(*args, **options)


def test_scaled_products_follow_their_definition():
    a, b = (RNG.normal(size=(2, m, 64)).astype("float32") for m in (3, 5))
    scales = RNG.random((2, 3, 2)).astype("float32"), RNG.random((2, 5, 4)).astype("float32")
    expected = np.einsum(
        "bmk,bnk->bmn", a * np.repeat(scales[0], 32, 2), b * np.repeat(scales[1], 16, 2)
    )
    np.testing.assert_allclose(nn.scaled_matmul(a, b, *scales), expected, rtol=1e-5, atol=1e-5)
    axes = (((2,), (2,)), ((0,), (0,)))
    exact = np.einsum("bmk,bnk->bmn", a, b)
    np.testing.assert_allclose(nn.scaled_dot_general(a, b, axes), exact, rtol=1e-5, atol=1e-5)
    makers = nn.get_scaled_dot_general_config
    for config, error in ((makers("mxfp8"), 0.05), (makers("nvfp4"), 0.25)):
        configs = [config] * 3
        rounded = nn.scaled_dot_general(a, b, axes, configs=configs)
        assert (
            0 < np.abs(np.asarray(rounded) - exact).max() < error * np.abs(exact).max() + error * 8
        )

        def f(x, configs=configs):
            return nn.scaled_dot_general(x, b, axes, configs=configs).sum()

        grad = np.asarray(namoo.grad(f)(jnp.asarray(a)))
        target = np.broadcast_to(b.sum(1, keepdims=True), a.shape)
        assert np.abs(grad - target).max() < 1.5
