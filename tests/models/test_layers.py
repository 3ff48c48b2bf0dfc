"""Layers against Equinox's: the same key gives the same parameters, results and gradients."""

# Wrong arguments are given on purpose, and classes get methods that a checker does not see.
# pyright: reportArgumentType=false, reportCallIssue=false

import equinox as eqx
import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import nn, tree

rng = np.random.default_rng(0)


def data(*shape):
    return rng.normal(size=shape).astype(np.float32)


# Name, arguments, keyword arguments, shapes of the inputs.
LAYERS = [
    ("Linear", (3, 2), {}, [(3,)]),
    ("Linear", (3, 2), {"use_bias": False}, [(3,)]),
    ("Linear", ("scalar", 2), {}, [()]),
    ("Linear", (3, "scalar"), {}, [(3,)]),
    ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1}, [(2, 9)]),
    ("Conv1d", (2, 4, 3), {"padding": "SAME", "padding_mode": "CIRCULAR"}, [(2, 9)]),
    ("Conv1d", (2, 4, 4), {"padding": "SAME_LOWER", "padding_mode": "REFLECT"}, [(2, 9)]),
    ("Conv2d", (4, 6, 3), {"groups": 2, "dilation": 2}, [(4, 7, 8)]),
    ("Conv2d", (2, 3, (2, 3)), {"padding": ((1, 0), (2, 1)), "use_bias": False}, [(2, 5, 6)]),
    ("Conv2d", (2, 3, 3), {"padding": 2, "padding_mode": "REPLICATE", "stride": 2}, [(2, 5, 6)]),
    ("Conv3d", (1, 2, 2), {"padding": "SAME"}, [(1, 3, 4, 3)]),
    ("ConvTranspose1d", (2, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}, [(2, 5)]),
    ("ConvTranspose1d", (2, 3, 3), {"padding": "SAME", "padding_mode": "CIRCULAR"}, [(2, 5)]),
    ("ConvTranspose2d", (2, 4, 3), {"stride": 2, "padding": "SAME", "groups": 2}, [(2, 4, 5)]),
    ("ConvTranspose2d", (2, 4, 3), {"stride": 2, "padding": "VALID", "dilation": 2}, [(2, 4, 5)]),
    ("ConvTranspose3d", (2, 1, 2), {"stride": 2}, [(2, 2, 2, 2)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 8)]),
    ("MaxPool2d", (2,), {"stride": 2, "use_ceil": True}, [(2, 5, 7)]),
    ("MaxPool3d", (2,), {}, [(2, 3, 3, 3)]),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 8)]),
    ("AvgPool2d", ((2, 3),), {"stride": (1, 2), "padding": ((0, 1), (1, 0))}, [(2, 5, 7)]),
    ("AvgPool3d", (2,), {"stride": 2}, [(2, 4, 4, 4)]),
    ("AdaptiveAvgPool1d", (3,), {}, [(2, 8)]),
    ("AdaptiveAvgPool2d", ((3, 4),), {}, [(2, 7, 8)]),
    ("AdaptiveMaxPool2d", (2,), {}, [(2, 5, 6)]),
    ("AdaptiveMaxPool3d", (2,), {}, [(2, 3, 4, 5)]),
    ("LayerNorm", ((3, 4),), {}, [(3, 4)]),
    ("LayerNorm", (4,), {"use_bias": False, "eps": 0.1}, [(4,)]),
    ("RMSNorm", (4,), {}, [(4,)]),
    ("RMSNorm", (4,), {"use_weight": False, "use_bias": False}, [(4,)]),
    ("GroupNorm", (2, 4), {}, [(4, 3, 2)]),
    ("GroupNorm", (2,), {"channelwise_affine": False}, [(4, 3)]),
    ("RotaryPositionalEmbedding", (6,), {}, [(5, 6)]),
    ("RotaryPositionalEmbedding", (4,), {"theta": 100.0}, [(3, 4)]),
    ("MultiheadAttention", (2, 6), {}, [(4, 6), (5, 6), (5, 6)]),
    (
        "MultiheadAttention",
        (2, 6),
        {
            "key_size": 3,
            "value_size": 4,
            "output_size": 5,
            "qk_size": 4,
            "vo_size": 2,
            "use_query_bias": True,
            "use_key_bias": True,
            "use_value_bias": True,
            "use_output_bias": True,
        },
        [(4, 6), (5, 3), (5, 4)],
    ),
    ("GRUCell", (3, 4), {}, [(3,), (4,)]),
    ("GRUCell", (3, 4), {"use_bias": False}, [(3,), (4,)]),
    ("MLP", (3, 2), {"width_size": 5, "depth": 2}, [(3,)]),
    ("MLP", (3, "scalar"), {"width_size": 5, "depth": 1, "use_bias": False}, [(3,)]),
    ("MLP", (3, 2), {"width_size": 5, "depth": 0, "use_final_bias": False}, [(3,)]),
    ("PReLU", (0.3,), {}, [(5,)]),
    ("Identity", (1, 2), {"a": 3}, [(5,)]),
]
KEYLESS = ("Pool", "Norm", "PReLU", "Rotary", "Identity")


def pair(name, args, kwargs):
    """The same layer twice: Equinox's and ours."""
    if any(word in name for word in KEYLESS):
        return getattr(eqx.nn, name)(*args, **kwargs), getattr(nn, name)(*args, **kwargs)
    return (
        getattr(eqx.nn, name)(*args, **kwargs, key=jax.random.PRNGKey(1)),
        getattr(nn, name)(*args, **kwargs, key=namoo.random.PRNGKey(1)),
    )


def assert_same(ours, theirs, rtol=2e-5, atol=2e-5):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "shapes"), LAYERS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_layer(name, args, kwargs, shapes):
    theirs, ours = pair(name, args, kwargs)
    inputs = [data(*shape) for shape in shapes]

    @eqx.filter_jit
    def oracle(layer, inputs):
        out, back = eqx.filter_vjp(lambda layer, xs: layer(*xs), layer, inputs)
        return out, back(jax.numpy.cos(out))

    expected, (layer_grad, input_grads) = oracle(theirs, [jax.numpy.asarray(x) for x in inputs])

    @namoo.jit
    def result(layer, inputs):
        out, back = namoo.vjp(lambda layer, xs: layer(*xs), layer, inputs)
        return out, back(jnp.cos(out))

    found, (our_grad, our_input_grads) = result(ours, [jnp.asarray(x) for x in inputs])
    assert found.dtype == expected.dtype
    assert_same(found, expected)
    assert_same(ours(*map(jnp.asarray, inputs)), expected)
    for a, b in zip(our_input_grads, input_grads, strict=True):
        assert_same(a, b)
    grads = {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(layer_grad)
    }
    parameters = tree.leaves_with_path(our_grad)
    for path, leaf in parameters:
        assert_same(leaf, grads[namoo.tree_util.keystr(path)])
    assert len(parameters) == len(jax.tree.leaves(eqx.filter(theirs, eqx.is_inexact_array)))


def test_lstm():
    theirs = eqx.nn.LSTMCell(3, 4, key=jax.random.PRNGKey(0))
    ours = nn.LSTMCell(3, 4, key=namoo.random.PRNGKey(0))
    x, h, c = data(3), data(4), data(4)
    for a, b in zip(ours(x, (h, c)), theirs(x, (h, c)), strict=True):
        assert_same(a, b)


def test_rnn_is_its_formula():
    cell = nn.RNNCell(3, 4, activation=jnp.sin, key=namoo.random.key(0))
    x, h = data(3), data(4)
    weights = [np.asarray(w) for w in (cell.weight_ih, cell.weight_hh, cell.bias)]
    assert_same(cell(x, h), np.sin(weights[0] @ x + weights[1] @ h + weights[2]))
    assert nn.RNNCell(3, 4, use_bias=False, key=namoo.random.key(0)).bias is None


def test_embedding():
    theirs = eqx.nn.Embedding(5, 3, key=jax.random.PRNGKey(0))
    ours = nn.Embedding(5, 3, key=namoo.random.PRNGKey(0))
    assert_same(namoo.vmap(ours)(jnp.array([0, 4, 4])), jax.vmap(theirs)(np.array([0, 4, 4])))


@pytest.mark.parametrize("inference", [False, True])
def test_dropout(inference):
    x = data(4, 5)
    theirs = eqx.nn.Dropout(0.3)(x, key=jax.random.PRNGKey(2), inference=inference)
    ours = nn.Dropout(0.3)(jnp.asarray(x), key=namoo.random.PRNGKey(2), inference=inference)
    assert_same(ours, theirs)


@pytest.mark.parametrize("rank", [2, 3])
def test_masks_of_attention(rank):
    theirs, ours = pair("MultiheadAttention", (2, 6), {"dropout_p": 0.4})
    x, mask = data(4, 6), rng.random((2, 4, 4)[-rank:]) < 0.7
    expected = theirs(x, x, x, mask, key=jax.random.PRNGKey(3))
    assert_same(ours(x, x, x, jnp.asarray(mask), key=namoo.random.PRNGKey(3)), expected)


def test_causal_attention_is_a_mask():
    attention = nn.MultiheadAttention(2, 6, key=namoo.random.key(0))
    x = jnp.asarray(data(4, 6))
    mask = jnp.tril(jnp.ones((4, 4), bool))
    assert_same(attention(x, x, x, is_causal=True), attention(x, x, x, mask))
    head = attention(x[:2], x[:2], x[:2], is_causal=True)
    assert_same(attention(x, x, x, is_causal=True)[:2], head)


def test_rotary_attention():
    theirs, ours = pair("MultiheadAttention", (2, 8), {})
    rope = eqx.nn.RotaryPositionalEmbedding(4)

    def rotate(q, k, v):
        return jax.vmap(rope, 1, 1)(q), jax.vmap(rope, 1, 1)(k), v

    x = data(5, 8)
    turning = nn.MultiheadAttention(2, 8, rotary=True, key=namoo.random.PRNGKey(1))
    assert turning.rotary is not None
    turn = turning.rotary
    assert_same(turning(x, x, x), theirs(x, x, x, process_heads=rotate))
    by_hand = ours(x, x, x, process_heads=lambda q, k, v: (turn(q), turn(k), v))
    assert_same(turning(x, x, x), by_hand)
    part = turn(jnp.asarray(x[2:, :4]), offset=2)
    assert_same(part, turn(jnp.asarray(x[:, :4]))[2:])


def test_grouped_queries_are_repeated_heads():
    grouped = nn.MultiheadAttention(4, 8, num_kv_heads=2, key=namoo.random.key(0))
    full = nn.MultiheadAttention(4, 8, key=namoo.random.key(0))

    def repeat(weight):
        return jnp.repeat(weight.reshape(2, 2, 8), 2, axis=0).reshape(8, 8)

    full = full.at[
        lambda m: (m.query_proj, m.key_proj.weight, m.value_proj.weight, m.output_proj)
    ].set(
        (
            grouped.query_proj,
            repeat(grouped.key_proj.weight),
            repeat(grouped.value_proj.weight),
            grouped.output_proj,
        )
    )
    x = jnp.asarray(data(3, 8))
    assert_same(grouped(x, x, x), full(x, x, x))


@pytest.mark.parametrize("mode", ["batch", "ema"])
def test_batch_norm(mode):
    make = dict(eps=1e-3, momentum=0.8, mode=mode)
    theirs, their_state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", **make)
    ours, state = nn.make_with_state(nn.BatchNorm)(3, "batch", **make)
    scale = data(3)
    theirs = eqx.tree_at(lambda m: m.weight, theirs, scale)
    ours = ours.at[lambda m: m.weight].set(jnp.asarray(scale))
    run = dict(axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    expected_of = eqx.filter_jit(jax.vmap(theirs, **run))
    found_of = namoo.jit(namoo.vmap(ours, **run))
    for _ in range(3):
        x = data(4, 3, 2)
        expected, their_state = expected_of(x, their_state)
        found, state = found_of(x, state)
        assert_same(found, expected)
    x = data(4, 3, 2)
    still = jax.vmap(eqx.nn.inference_mode(theirs), **run)(x, their_state)[0]
    assert_same(namoo.vmap(nn.inference_mode(ours), **run)(x, state)[0], still)


def test_spectral_norm():
    inner = eqx.nn.Conv2d(2, 3, 2, key=jax.random.PRNGKey(0))
    theirs, their_state = eqx.nn.make_with_state(eqx.nn.SpectralNorm)(
        inner, "weight", num_power_iterations=2, key=jax.random.PRNGKey(1)
    )
    ours, state = nn.make_with_state(nn.SpectralNorm)(
        nn.Conv2d(2, 3, 2, key=namoo.random.PRNGKey(0)),
        num_power_iterations=2,
        key=namoo.random.PRNGKey(1),
    )
    for _ in range(2):
        x = data(2, 4, 4)
        expected, their_state = theirs(x, their_state)
        found, state = ours(jnp.asarray(x), state)
        assert_same(found, expected)
    grad = namoo.grad(lambda m: jnp.sum(m(jnp.asarray(x), state)[0] ** 2))(ours)
    expected = eqx.filter_grad(lambda m: jax.numpy.sum(m(x, their_state)[0] ** 2))(theirs)
    assert_same(grad.layer.weight, expected.layer.weight, 1e-3, 1e-4)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_weight_norm(axis):
    theirs = eqx.nn.WeightNorm(eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0)), axis=axis)
    ours = nn.WeightNorm(nn.Linear(3, 2, key=namoo.random.PRNGKey(0)), axis=axis)
    theirs = eqx.tree_at(lambda m: m.g, theirs, theirs.g * 2)
    ours = ours.at[lambda m: m.g].apply(lambda g: g * 2)
    x = data(3)
    assert_same(ours(jnp.asarray(x)), theirs(x))


def test_sequential_with_state_keys_and_functions():
    def build(lib, relu, key):
        a, b = key
        wrap = lib.Lambda if lib is eqx.nn else lambda f: f
        kwargs = dict(axis_name="batch", mode="batch")
        return lib.Sequential(
            [
                lib.Linear(3, 4, key=a),
                lib.BatchNorm(4, **kwargs),
                wrap(relu),
                lib.Dropout(0.5),
                lib.Linear(4, 2, key=b),
            ]
        )

    theirs, their_state = eqx.nn.make_with_state(build)(
        eqx.nn, jax.nn.relu, jax.random.split(jax.random.PRNGKey(0))
    )
    ours, state = nn.make_with_state(build)(
        nn, nn.relu, namoo.random.split(namoo.random.PRNGKey(0))
    )
    x = data(6, 3)
    run = dict(axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
    expected, _ = jax.vmap(lambda x, s, k: theirs(x, s, key=k), **run)(
        x, their_state, jax.random.split(jax.random.PRNGKey(5), 6)
    )
    found, new = namoo.vmap(lambda x, s, k: ours(x, s, key=k), **run)(
        jnp.asarray(x), state, namoo.random.split(namoo.random.PRNGKey(5), 6)
    )
    assert_same(found, expected)
    assert tree.structure(new) == tree.structure(state)
    assert len(ours) == 5 and isinstance(ours[1:3], nn.Sequential)
    with pytest.raises(ValueError, match="layer 1, a BatchNorm, needs a state"):
        ours(jnp.ones(3))


def test_one_layer_in_two_places_has_one_state():
    class Twice(namoo.Module):
        first: nn.BatchNorm
        second: nn.BatchNorm

        def __init__(self):
            self.first = nn.BatchNorm(2, "batch")
            self.second = self.first

        def __call__(self, x, state):
            x, state = self.first(x, state)
            return self.second(x, state)

    model, state = nn.make_with_state(Twice)()
    assert len(tree.leaves(model)) == 2 and len(tree.leaves(state)) == 3
    run = dict(axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    _, state = namoo.vmap(model, **run)(jnp.asarray(data(5, 2)), state)
    assert state.get(model.second.statistics)[0] == 2


def test_state_is_checked():
    norm = nn.BatchNorm(2, "batch")
    _, state = nn.make_with_state(nn.BatchNorm)(2, "batch")
    with pytest.raises(ValueError, match="make_with_state"):
        state.get(norm.statistics)
    with pytest.raises(ValueError, match="belongs to another model"):
        state.get(nn.StateIndex(None, "elsewhere"))
    index = nn.StateIndex(None, "statistics")
    with pytest.raises(ValueError, match=r"expected f32\[2\], found f32\[3\]"):
        state.set(index, (jnp.array(0), jnp.ones(3), jnp.ones(2)))


X = jnp.ones


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: nn.Linear(3, 2, key=k)(X((5, 3))), r"shape \(3,\).*vmap"),
        (lambda k: nn.Conv2d(1, 2, 3, key=k)(X((5, 1, 8, 8))), "vmap"),
        (lambda k: nn.Conv2d(3, 2, 3, groups=2, key=k), "groups"),
        (lambda k: nn.Conv2d(2, 2, (3, 3, 3), key=k), "kernel_size"),
        (lambda k: nn.Conv1d(2, 2, 3, padding="FULL", key=k), "padding"),
        (lambda k: nn.Conv1d(2, 2, 3, padding_mode="none", key=k), "padding_mode"),
        (lambda k: nn.ConvTranspose1d(2, 2, 3, output_padding=1, key=k), "less than the stride"),
        (lambda k: nn.LayerNorm(3)(X((5, 3))), r"vmap\(layernorm\)"),
        (lambda k: nn.GroupNorm(2, 3), "do not divide"),
        (lambda k: nn.GroupNorm(2, 4)(X((3, 4))), "channels come first"),
        (lambda k: nn.Embedding(3, 2), "key"),
        (lambda k: nn.Embedding(3, 2, key=k)(X(2, int)), "vmap"),
        (lambda k: nn.Embedding(3, 2, weight=X((2, 2))), "num_embeddings"),
        (lambda k: nn.Dropout()(X(2)), "needs a key"),
        (lambda k: nn.Dropout(1.5), "probability"),
        (lambda k: nn.MultiheadAttention(4, 8, num_kv_heads=3, key=k), "divide"),
        (lambda k: nn.RotaryPositionalEmbedding(3), "even"),
        (lambda k: nn.MaxPool1d(2, padding=3), "larger than the window"),
        (lambda k: nn.LSTMCell(3, 4, key=k)(X(2), (X(4), X(4))), "one step"),
        (lambda k: nn.BatchNorm(3, "b", mode="legacy"), "mode"),
        (lambda k: nn.SpectralNorm(nn.LayerNorm(3), key=k), "two axes"),
    ],
)
def test_wrong_use_is_told(call, message):
    with pytest.raises(ValueError, match=message):
        call(namoo.random.key(0))


def test_complex_parameters():
    theirs = eqx.nn.Linear(3, 2, dtype=np.complex64, key=jax.random.PRNGKey(0))
    ours = nn.Linear(3, 2, dtype=jnp.complex64, key=namoo.random.PRNGKey(0))
    assert_same(ours.weight, theirs.weight)


def test_half_precision_sums_in_single():
    theirs = eqx.nn.LayerNorm(64, dtype=jax.numpy.bfloat16)
    ours = nn.LayerNorm(64, dtype=jnp.bfloat16)
    x = data(64) * 100
    expected = np.asarray(theirs(jax.numpy.asarray(x, "bfloat16")), np.float32)
    found = ours(jnp.asarray(x, jnp.bfloat16))
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, rtol=1e-2)
