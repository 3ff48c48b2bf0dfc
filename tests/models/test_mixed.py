"""Mixed precision and the training state."""

# Wrong arguments are given on purpose, and classes get methods that a checker does not see.
# pyright: reportArgumentType=false, reportCallIssue=false

import jax
import numpy as np
import optax
import pytest
from flax.training import train_state

import namoo
import namoo.numpy as jnp
from namoo import mixed, nn, optim, struct, tree
from namoo.train import TrainState

KEY = namoo.random.key(0)


def dtypes(of):
    return {str(x.dtype) for x in tree.leaves(of)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("params=f32,compute=bf16,output=f32", ("float32", "bfloat16", "float32")),
        ("compute = float16 , params=f32", ("float32", "float16", "float32")),
        ("output=half", ("float32", "float32", "float16")),
        ("", ("float32", "float32", "float32")),
    ],
)
def test_policies(text, expected):
    policy = mixed.policy(text)
    assert (str(policy.params), str(policy.compute), str(policy.output)) == expected
    assert mixed.policy(str(policy)) == policy


@pytest.mark.parametrize("text", ["f32", "weights=f32", "compute=f33"])
def test_policies_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="policy|dtype"):
        mixed.policy(text)


def test_a_model_computes_in_half_precision():
    model = nn.MLP(4, 2, 8, 2, key=KEY)
    x = namoo.random.normal(KEY, (16, 4))

    def loss(model, x):
        y = namoo.vmap(model)(x)
        assert y.dtype == jnp.bfloat16
        return jnp.mean(y**2)

    policy = mixed.policy("compute=bf16")
    fast = namoo.jit(namoo.value_and_grad(policy(loss)))
    value, grads = fast(model, x)
    full, full_grads = namoo.value_and_grad(lambda m, x: jnp.mean(namoo.vmap(m)(x) ** 2))(model, x)
    assert value.dtype == jnp.float32 and dtypes(grads) == {"float32"}
    np.testing.assert_allclose(value, full, rtol=2e-2)
    assert tree.allclose(grads, full_grads, rtol=0.1, atol=2e-2)
    jaxpr = str(namoo.make_jaxpr(policy(loss))(model, x))
    products = [line for line in jaxpr.splitlines() if "dot_general" in line]
    assert len(products) == 3 and all("bf16" in line for line in products)


def test_some_parameters_are_kept():
    policy = mixed.policy("compute=f16", keep="**/scale")
    seen = {}

    @policy
    def f(params, x, *, y):
        seen.update(tree.map(lambda a: str(a.dtype), params), x=str(x.dtype), y=str(y.dtype))
        return x

    out = f(
        {"scale": jnp.ones(2), "w": jnp.ones(2), "n": jnp.arange(2)}, jnp.ones(2), y=jnp.ones(1)
    )
    assert seen == {
        "scale": "float32",
        "w": "float16",
        "n": "int32",
        "x": "float16",
        "y": "float16",
    }
    assert out.dtype == jnp.float32
    assert dtypes(policy.cast_to_param(jnp.ones(2, jnp.bfloat16))) == {"float32"}


def test_loss_scale_saves_small_gradients():
    w = jnp.array([1e-4, 1.0], jnp.float32)

    def loss(w):
        # The derivative, 1e-9, is smaller than what float16 can hold.
        return jnp.sum(w.astype(jnp.float16) * jnp.float16(1e-4)) * jnp.float16(1e-5)

    lost = namoo.grad(loss)(w)
    assert lost[0] == 0
    _, grads, is_finite, scale = mixed.value_and_grad(loss)(mixed.DynamicLossScale(2.0**15), w)
    np.testing.assert_allclose(grads, [1e-9, 1e-9], rtol=2e-1)
    assert is_finite and scale.counter == 1


def test_dynamic_scale_over_steps():
    flags = [True] * 3 + [False, False] + [True] * 6
    scale, found = mixed.DynamicLossScale(8.0, period=3), []

    @namoo.jit
    def adjust(scale, flag):
        return scale.adjust(flag)

    for flag in flags:
        scale = adjust(scale, flag)
        found.append((float(scale.loss_scale), int(scale.counter)))
    expected, s, n = [], 8.0, 0
    for flag in flags:
        if not flag:
            s, n = max(s / 2, 1.0), 0
        elif n + 1 == 3:
            s, n = s * 2, 0
        else:
            n += 1
        expected.append((s, n))
    assert found == expected


def test_select_and_all_finite():
    a, b = {"x": jnp.ones(2)}, {"x": jnp.zeros(2)}
    assert mixed.select(jnp.array(False), a, b)["x"].tolist() == [0, 0]
    assert mixed.all_finite([jnp.ones(2), jnp.arange(3), {}])
    assert not mixed.all_finite([jnp.array(jnp.nan)])
    assert mixed.StaticLossScale(4.0).adjust(False).unscale(8.0) == 2.0


def test_train_state_as_flax():
    params = {"w": np.array([1.0, -2.0], np.float32), "b": np.float32(0.5)}
    x, y = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32), np.array([1.0, 2.0], np.float32)

    def run(state, grad, numpy):
        def loss(p):
            return numpy.mean((x @ p["w"] + p["b"] - y) ** 2)

        for _ in range(3):
            state = state.apply_gradients(grads=grad(loss)(state.params))
        return state

    theirs = train_state.TrainState.create(
        apply_fn=None, params=jax.tree.map(jax.numpy.asarray, params), tx=optax.adam(0.1)
    )
    ours = TrainState.create(params=tree.map(jnp.asarray, params), tx=optim.adam(0.1))
    theirs, ours = run(theirs, jax.grad, jax.numpy), run(ours, namoo.grad, jnp)
    assert int(ours.step) == int(theirs.step) == 3
    for name in params:
        np.testing.assert_allclose(ours.params[name], theirs.params[name], rtol=1e-5)


def test_train_state_is_a_tree_and_traces_once():
    traces = 0
    model = nn.MLP(3, 1, 8, 1, key=KEY)
    x = namoo.random.normal(KEY, (32, 3))
    y = jnp.sum(x, axis=1, keepdims=True)

    @struct.dataclass
    class State(TrainState):
        best: object = jnp.inf

    # The lessons' "decay the weights and not the biases" in one line.
    tx = optim.adamw(1e-2, weight_decay=1e-2, mask=~namoo.paths("**/bias"))
    state = State.create(params=model, tx=tx)

    @namoo.jit
    def step(state):
        nonlocal traces
        traces += 1
        loss, grads = namoo.value_and_grad(lambda m: jnp.mean((namoo.vmap(m)(x) - y) ** 2))(
            state.params
        )
        return state.apply_gradients(grads, best=jnp.minimum(state.best, loss)), loss

    losses = []
    for _ in range(60):
        state, loss = step(state)
        losses.append(float(loss))
    assert traces <= 2 and losses[-1] < 0.2 * losses[0] and state.step == 60
    assert isinstance(state, State) and float(state.best) == min(losses)


def test_train_state_skips_what_is_not_finite():
    scale = mixed.DynamicLossScale(1024.0)
    state = TrainState.create(params={"w": jnp.ones(2)}, tx=optim.adam(0.1), loss_scale=scale)
    bad = state.apply_gradients({"w": jnp.array([jnp.inf, 1.0])})
    assert tree.allclose(bad.params, state.params) and bad.loss_scale.loss_scale == 512
    assert tree.allclose(bad.opt_state, state.opt_state) and bad.step == 1
    good = state.apply_gradients({"w": jnp.array([1024.0, -1024.0])})
    plain = TrainState.create(params={"w": jnp.ones(2)}, tx=optim.adam(0.1))
    plain = plain.apply_gradients({"w": jnp.array([1.0, -1.0])})
    assert tree.allclose(good.params, plain.params)
