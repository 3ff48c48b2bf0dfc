"""`example_libraries` against JAX's: the same keys, the same steps, the same numbers."""

import jax
import jax.example_libraries.optimizers as jax_optimizers
import jax.example_libraries.stax as jax_stax
import numpy as np
import pytest

import namoo
from namoo.example_libraries import optimizers, stax

OPTIMIZERS = [
    ("sgd", (0.1,)),
    ("sgd", ("exponential_decay", 0.1, 3, 0.5)),
    ("momentum", (0.1, 0.9)),
    ("momentum", (("piecewise_constant", [1, 2], [0.1, 0.2, 0.3]), 0.9)),
    ("nesterov", (0.1, 0.9)),
    ("adagrad", (0.1,)),
    ("rmsprop", (0.1,)),
    ("rmsprop_momentum", (0.1, 0.8, 1e-6, 0.7)),
    ("adam", (0.1,)),
    ("adam", (("polynomial_decay", 0.1, 3, 0.01, 2.0),)),
    ("adamax", (0.1,)),
    ("sm3", (0.1,)),
]


def arguments(library, args):
    """Schedules are written as tuples: the name, then its arguments."""
    if args and isinstance(args[0], str):
        return (getattr(library, args[0])(*args[1:]),)
    return [getattr(library, a[0])(*a[1:]) if isinstance(a, tuple) else a for a in args]


def close(ours, theirs, tolerance=1e-5):
    ours, tree = namoo.tree.flatten(ours)
    theirs, other = jax.tree.flatten(theirs)
    assert str(tree) == str(other)
    for a, b in zip(ours, theirs, strict=True):
        assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "args"), OPTIMIZERS)
def test_steps(name, args):
    rng = np.random.default_rng(0)
    shapes = {"w": (3, 2), "b": [(2,), (4, 1, 2)]}
    is_shape = lambda x: isinstance(x, tuple)  # noqa: E731
    draw = lambda: jax.tree.map(  # noqa: E731
        lambda s: rng.normal(size=s).astype(np.float32), shapes, is_leaf=is_shape
    )
    params, grads = draw(), [draw() for _ in range(4)]
    grads[1]["w"][:] = 0

    def run(module, library, jitted=True):
        init, update, get_params = getattr(library, name)(*arguments(library, args))
        if jitted and name != "sm3":  # its state holds the shape as numbers
            update = module.jit(update)
        state = init(module.tree.map(module.numpy.asarray, params))
        for i, g in enumerate(grads):
            state = update(i, module.tree.map(module.numpy.asarray, g), state)
        return get_params(state), module.tree.leaves(state)

    theirs = run(jax, jax_optimizers)
    for jitted in (False, True):
        ours = run(namoo, optimizers, jitted)
        close(ours[0], theirs[0])
        assert len(ours[1]) == len(theirs[1])


@pytest.mark.parametrize(
    "args",
    [
        ("constant", 0.3),
        ("exponential_decay", 0.3, 4, 0.7),
        ("inverse_time_decay", 0.3, 4, 0.7),
        ("inverse_time_decay", 0.3, 4, 0.7, True),
        ("polynomial_decay", 0.3, 4, 0.1),
        ("piecewise_constant", [2, 4], [3.0, 2.0, 1.0]),
    ],
)
def test_schedules(args):
    (ours,), (theirs,) = (arguments(m, args) for m in (optimizers, jax_optimizers))
    for i in range(7):
        np.testing.assert_allclose(ours(i), theirs(i), rtol=1e-6)
        np.testing.assert_allclose(namoo.jit(lambda i: ours(i))(i), theirs(i), rtol=1e-5)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_norm_and_clipping(limit):
    tree = {"a": np.arange(3, dtype=np.float32), "b": np.float32(2)}
    np.testing.assert_allclose(optimizers.l2_norm(tree), jax_optimizers.l2_norm(tree))
    close(optimizers.clip_grads(tree, limit), jax_optimizers.clip_grads(tree, limit))


def test_state_is_a_tree_and_survives_packing():
    init, _, get_params = optimizers.adam(0.1)
    state = init({"w": namoo.numpy.ones(2), "b": namoo.numpy.zeros(())})
    assert len(namoo.tree.leaves(state)) == 6
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["w"], optimizers.JoinPoint) and len(list(marked["w"])) == 1
    again = optimizers.pack_optimizer_state(marked)
    assert namoo.tree.structure(again) == namoo.tree.structure(state)
    np.testing.assert_array_equal(get_params(again)["w"], np.ones(2))


def both_raise(error, make, message):
    """Both libraries raise the same type; ours says what is expected of it."""
    with pytest.raises(error):
        make(jax_optimizers, jax_stax, jax)
    with pytest.raises(error, match=message):
        make(optimizers, stax, namoo)


def step_with(grads):
    def make(opt, _, module):
        init, update, _ = opt.sgd(0.1)
        update(0, grads, init({"w": module.numpy.ones(2)}))

    return make


def changing_state(opt, _, module):
    maker = opt.optimizer(lambda: ((lambda x: x), (lambda i, g, x: (x, x)), (lambda x: x)))
    init, update, _ = maker()
    update(0, 1.0, init(1.0))


@pytest.mark.parametrize(
    ("error", "make", "message"),
    [
        (TypeError, step_with({"v": 1.0}), "gradient tree"),
        (TypeError, step_with([1.0]), "gradient tree"),
        (TypeError, changing_state, "structure"),
        (TypeError, lambda o, s, m: o.sgd(np.ones(2)), "scalar"),
        (ValueError, lambda o, s, m: o.piecewise_constant(1.0, [1.0]), "sequences"),
        (ValueError, lambda o, s, m: o.piecewise_constant([1.0], [1.0]), "one shorter"),
        (AssertionError, lambda o, s, m: o.pack_optimizer_state([1.0]), "JoinPoint"),
        (ValueError, lambda o, s, m: s.Dropout(0.5)[1]((), m.numpy.ones(2)), "rng=key"),
    ],
)
def test_errors(error, make, message):
    both_raise(error, make, message)


IMAGE = (2, 6, 5, 3)
LAYERS = {
    "dense": (lambda s: s.Dense(4), (3, 2)),
    "conv": (lambda s: s.Conv(4, (3, 2)), IMAGE),
    "conv same": (lambda s: s.Conv(4, (3, 3), (2, 1), "SAME"), IMAGE),
    "conv first": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NHWC"), 2, (3, 3)), (1, 3, 5, 6)),
    "conv transpose": (lambda s: s.ConvTranspose(2, (3, 3), (2, 2), "SAME"), IMAGE),
    "conv 1d transpose": (lambda s: s.Conv1DTranspose(2, (3,), (2,)), (2, 5, 3)),
    "batch norm": (lambda s: s.BatchNorm(), IMAGE),
    "batch norm axis": (lambda s: s.BatchNorm(0, center=False), (4, 3)),
    "batch norm bare": (lambda s: s.BatchNorm((0,), center=False, scale=False), (4, 3)),
    "batch norm offset": (lambda s: s.BatchNorm((0,), scale=False), (4, 3)),
    "max pool": (lambda s: s.MaxPool((2, 2), (2, 1)), IMAGE),
    "sum pool": (lambda s: s.SumPool((2, 3), padding="SAME"), IMAGE),
    "avg pool": (lambda s: s.AvgPool((3, 2), (2, 2), "SAME"), IMAGE),
    "avg pool spec": (lambda s: s.AvgPool((3, 2), padding="SAME", spec="NCHW"), (2, 3, 6, 5)),
    "flatten": (lambda s: s.Flatten, IMAGE),
    "dropout": (lambda s: s.Dropout(0.7), (5, 4)),
    "no dropout": (lambda s: s.Dropout(0.7, mode="test"), (5, 4)),
    "serial": (
        lambda s: s.serial(s.Dense(5), s.Dropout(0.5), s.Tanh, s.Dense(2), s.Softmax),
        (3, 4),
    ),
    "sum of two": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Identity, s.Dense(4)), s.FanInSum),
        (3, 4),
    ),
    "beside": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dropout(0.5), s.Dense(2)), s.FanInConcat()),
        (3, 4),
    ),
    "by shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(2 * shape[-1])), (3, 2)),
} | {
    name: (lambda s, name=name: getattr(s, name), (3, 4))
    for name in "Tanh Relu Exp LogSoftmax Softmax Softplus Sigmoid Elu LeakyRelu Selu Gelu".split()
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    inputs = np.random.default_rng(1).normal(size=shape).astype(np.float32)

    def run(module, library):
        init, apply = make(library)
        key = module.random.key(3)
        out_shape, params = init(key, shape)
        run_apply = module.jit(lambda p, x, k: apply(p, x, rng=k))
        return tuple(out_shape), params, run_apply(params, inputs, key)

    ours, theirs = run(namoo, stax), run(jax, jax_stax)
    assert ours[0] == theirs[0] == ours[2].shape
    close(ours[1], theirs[1])
    close(ours[2], theirs[2])


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    start, update, get_params = optimizers.adam(0.05)
    x = namoo.numpy.linspace(-1, 1, 32)[:, None]
    loss = lambda p: namoo.numpy.mean((apply(p, x) - x**2) ** 2)  # noqa: E731
    state = start(init(namoo.random.key(0), (-1, 1))[1])
    step = namoo.jit(lambda i, s: update(i, namoo.grad(loss)(get_params(s)), s))
    first = loss(get_params(state))
    for i in range(60):
        state = step(i, state)
    assert loss(get_params(state)) < first / 10


@pytest.mark.parametrize("module", ["optimizers", "stax"])
def test_all_names_are_there(module):
    theirs = {"optimizers": jax_optimizers, "stax": jax_stax}[module]
    ours = {"optimizers": optimizers, "stax": stax}[module]
    here = [n for n, v in vars(theirs).items() if getattr(v, "__module__", "") == theirs.__name__]
    assert not [n for n in here if not n.startswith("_") and not hasattr(ours, n)]
