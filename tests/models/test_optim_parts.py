"""Schedules, losses, projections and tree functions against Optax; masks, states, wrappers."""

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jjnp
import numpy as np
import optax
import pytest

import namoo
import namoo.numpy as jnp
from namoo import optim, paths

RNG = np.random.default_rng(1)

# Compiling the oracle takes most of the time.


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def assert_trees_close(got, want, rtol=2e-6, atol=2e-6):
    got, want = namoo.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=atol)


CYCLE = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 4, "decay_steps": 12}
SCHEDULES = {
    "constant": lambda o: o.constant_schedule(0.1),
    "polynomial": lambda o: o.polynomial_schedule(1.0, 0.1, 2, 10, 3),
    "polynomial never": lambda o: o.polynomial_schedule(1.0, 0.1, 2, 0),
    "polynomial early": lambda o: o.polynomial_schedule(1.0, 0.1, 2, 10, -3),
    "linear": lambda o: o.linear_schedule(0.1, 1.0, 10, 3),
    "piecewise_constant": lambda o: o.piecewise_constant_schedule(1.0, {5: 0.5, 20: 2.0}),
    "piecewise_constant none": lambda o: o.piecewise_constant_schedule(1.0),
    "exponential": lambda o: o.exponential_decay(1.0, 10, 0.5, 3),
    "exponential stairs": lambda o: o.exponential_decay(1.0, 10, 0.5, staircase=True),
    "exponential end": lambda o: o.exponential_decay(1.0, 10, 0.5, end_value=0.4),
    "exponential growth": lambda o: o.exponential_decay(1.0, 10, 2.0, end_value=3.0),
    "exponential zero": lambda o: o.exponential_decay(1.0, 10, 0.0),
    "cosine": lambda o: o.cosine_decay_schedule(1.0, 25, 0.1, 2.0),
    "interpolate linear": lambda o: o.piecewise_interpolate_schedule(
        "linear", 1.0, {5: 0.5, 20: 4.0}
    ),
    "interpolate cosine": lambda o: o.piecewise_interpolate_schedule(
        "cosine", 1.0, {5: 0.5, 20: 4.0}
    ),
    "linear_onecycle": lambda o: o.linear_onecycle_schedule(30, 2.0),
    "cosine_onecycle": lambda o: o.cosine_onecycle_schedule(30, 2.0),
    "warmup_constant": lambda o: o.warmup_constant_schedule(0.1, 1.0, 10),
    "warmup_cosine": lambda o: o.warmup_cosine_decay_schedule(0.1, 1.0, 10, 30, 0.2),
    "warmup_cosine zero": lambda o: o.warmup_cosine_decay_schedule(0.1, 0.0, 10, 30),
    "warmup_exponential": lambda o: o.warmup_exponential_decay_schedule(
        0.1, 1.0, 10, 5, 0.5, 2, end_value=0.3
    ),
    "sgdr": lambda o: o.sgdr_schedule([CYCLE, CYCLE | {"peak_value": 0.5}, CYCLE]),
    "join": lambda o: o.join_schedules(
        [o.linear_schedule(0.0, 1.0, 5), o.constant_schedule(0.3)], [7]
    ),
}


STEPS = range(0, 40, 3)


@functools.cache
def schedules_of_optax():
    def values(t):
        return {name: jjnp.float32(make(optax)(t)) for name, make in SCHEDULES.items()}

    return jax.jit(jax.vmap(values))(np.array(STEPS))


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    want = schedules_of_optax()[name]
    schedule = SCHEDULES[name](optim)
    eager = [float(schedule(t)) for t in STEPS]
    np.testing.assert_allclose(eager, want, rtol=5e-6, atol=1e-7)
    traced = namoo.jit(namoo.vmap(schedule))(np.array(STEPS))
    np.testing.assert_allclose(np.broadcast_to(traced, len(STEPS)), want, rtol=5e-6, atol=1e-7)


A, B = normal(4, 5), normal(4, 5)
P = np.abs(normal(4, 5)) + 0.1
P /= P.sum(-1, keepdims=True)
Q = np.abs(normal(4, 5)) + 0.1
Q /= Q.sum(-1, keepdims=True)
INTS = np.array([0, 3, 2, 4])
BITS = (normal(4, 5) > 0).astype(np.float32)
WHERE = normal(4, 5) > -1.0
IMAGE = normal(2, 3, 3, 4)
SEGMENTS = np.eye(4, dtype=np.float32)[RNG.integers(4, size=(2, 3, 3))]
SPEECH = normal(2, 7, 5)
WORDS = np.array([[1, 1, 3], [2, 4, 0]])
TIME_PADS = np.array([[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1]], np.float32)
WORD_PADS = np.array([[0, 0, 0], [0, 0, 1]], np.float32)

LOSSES = {
    "squared_error": lambda o, a: o.squared_error(a, B),
    "squared_error to zero": lambda o, a: o.squared_error(a),
    "l2_loss": lambda o, a: o.l2_loss(a, B),
    "huber_loss": lambda o, a: o.huber_loss(a, B, delta=0.7),
    "log_cosh": lambda o, a: o.log_cosh(a, B),
    "cosine_similarity": lambda o, a: o.cosine_similarity(a, B, epsilon=1e-3),
    "cosine_distance": lambda o, a: o.cosine_distance(a, B, axis=0, where=WHERE),
    "sigmoid_binary_cross_entropy": lambda o, a: o.sigmoid_binary_cross_entropy(a, BITS),
    "sigmoid_focal_loss": lambda o, a: o.sigmoid_focal_loss(a, BITS),
    "sigmoid_focal_loss alpha": lambda o, a: o.sigmoid_focal_loss(a, P, alpha=0.3, gamma=1.5),
    "hinge_loss": lambda o, a: o.hinge_loss(a, 2 * BITS - 1),
    "perceptron_loss": lambda o, a: o.losses.perceptron_loss(a, 2 * BITS - 1),
    "sparsemax_loss": lambda o, a: o.losses.sparsemax_loss(a, BITS),
    "softmax_cross_entropy": lambda o, a: o.softmax_cross_entropy(a, P),
    "softmax_cross_entropy where": lambda o, a: o.softmax_cross_entropy(a, P, 0, WHERE),
    "softmax_cross_entropy_with_integer_labels": (
        lambda o, a: o.softmax_cross_entropy_with_integer_labels(a, INTS)
    ),
    "softmax_cross_entropy_with_integer_labels axes": (
        lambda o, a: o.softmax_cross_entropy_with_integer_labels(
            a.reshape(2, 2, 5), INTS[:2], axis=(0, 2), where=WHERE.reshape(2, 2, 5)
        )
    ),
    "safe_softmax_cross_entropy": lambda o, a: o.safe_softmax_cross_entropy(a, P * BITS),
    "poly_loss_cross_entropy": lambda o, a: o.losses.poly_loss_cross_entropy(a, P, epsilon=1.5),
    "multiclass_hinge_loss": lambda o, a: o.losses.multiclass_hinge_loss(a, INTS),
    "multiclass_perceptron_loss": lambda o, a: o.losses.multiclass_perceptron_loss(a, INTS),
    "multiclass_sparsemax_loss": lambda o, a: o.losses.multiclass_sparsemax_loss(a, INTS),
    "kl_divergence": lambda o, a: o.kl_divergence(a, P * BITS),
    "kl_divergence_with_log_targets": (
        lambda o, a: o.losses.kl_divergence_with_log_targets(a, np.log(P), where=WHERE)
    ),
    "generalized_kl_divergence": lambda o, a: o.generalized_kl_divergence(a, P),
    "smooth_labels": lambda o, a: o.smooth_labels(a, 0.1),
    "smooth_labels where": lambda o, a: o.smooth_labels(a, 0.1, where=WHERE),
    "ctc_loss": lambda o, a: o.ctc_loss(
        SPEECH + a[:2, None, :], TIME_PADS, WORDS, WORD_PADS, blank_id=0
    ),
    "ntxent": lambda o, a: o.ntxent(a, np.array([0, 1, 0, 1]), 0.5),
    "triplet_margin_loss": lambda o, a: o.losses.triplet_margin_loss(a, B, P, margin=2.0),
    "ranking_softmax_loss": lambda o, a: o.losses.ranking_softmax_loss(a, P, weights=Q),
    "ranking_softmax_loss where": (
        lambda o, a: o.losses.ranking_softmax_loss(a, P, where=WHERE, reduce_fn=None)
    ),
    "dice_loss": lambda o, a: o.losses.dice_loss(IMAGE + a[0, :4], SEGMENTS, alpha=0.3),
    "dice_loss options": lambda o, a: o.losses.dice_loss(
        IMAGE + a[0, :4],
        SEGMENTS,
        class_weights=P[0, :4],
        ignore_background=True,
        reduction="sum",
        smooth=0.5,
    ),
    "multiclass_generalized_dice_loss": (
        lambda o, a: o.losses.multiclass_generalized_dice_loss(IMAGE + a[0, :4], SEGMENTS)
    ),
    "binary_dice_loss": lambda o, a: o.losses.binary_dice_loss(a, BITS),
}


def value_and_gradient(lib, o, name, a):
    def total(a):
        value = LOSSES[name](o, a)
        return (value * value + value).sum(), value

    (_, value), gradient = lib.value_and_grad(total, has_aux=True)(a)
    return value, gradient


@functools.cache
def losses_of_optax():
    """All of them in one program, which compiles faster than many small ones."""
    run = jax.jit(
        lambda a: {name: value_and_gradient(jax, optax, name, a) for name in LOSSES},
    )
    return run(A)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(name):
    got = value_and_gradient(namoo, optim, name, jnp.asarray(A))
    assert_trees_close(got, losses_of_optax()[name], 2e-5, 2e-5)


def test_losses_with_arguments_that_are_functions():
    def both(o, logsumexp):
        def run(a):
            forward = o.ctc_loss_with_forward_probs(SPEECH, TIME_PADS, WORDS, WORD_PADS)
            return o.losses.make_fenchel_young_loss(logsumexp)(a, P), forward

        return run

    want = jax.jit(both(optax, jax.nn.logsumexp))(A)
    assert_trees_close(both(optim, namoo.nn.logsumexp)(jnp.asarray(A)), want, 1e-5, 1e-5)


TREE = {"a": normal(3), "b": [normal(2, 2)]}
OTHER = {"a": normal(3), "b": [normal(2, 2)]}
COMPLEX = {"a": normal(3) + 1j * normal(3)}

PROJECTIONS = {
    "non_negative": (),
    "box": (-0.3, 0.4),
    "hypercube": (0.7,),
    "simplex": (2.0,),
    "l1_sphere": (2.0,),
    "l1_ball": (2.0,),
    "l2_sphere": (2.0,),
    "l2_ball": (0.5,),
    "linf_ball": (0.5,),
    "vector": (OTHER,),
    "hyperplane": (OTHER, 0.3),
    "halfspace": (OTHER, 0.3),
}


@functools.cache
def projections_of_optax():
    def one(name, tree):
        args = PROJECTIONS[name]
        if name == "box":  # Optax wants whole trees of bounds.
            args = [jax.tree.map(lambda x, b=b: jjnp.full_like(x, b), tree) for b in args]
        if name == "hypercube":
            return jax.tree.map(lambda x: jjnp.clip(x, 0, args[0]), tree)
        return getattr(optax.projections, f"projection_{name}")(tree, *args)

    run = jax.jit(lambda t: {name: one(name, t) for name in PROJECTIONS})
    return run(TREE)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections(name):
    project = getattr(optim.projections, f"projection_{name}")
    got = project(namoo.tree.map(jnp.asarray, TREE), *PROJECTIONS[name])
    assert_trees_close(got, projections_of_optax()[name])


TREE_FUNCTIONS = {
    "add": (TREE, OTHER, OTHER),
    "sub": (TREE, OTHER),
    "mul": (TREE, OTHER),
    "div": (TREE, OTHER),
    "scale": (0.3, TREE),
    "add_scale": (TREE, 0.3, OTHER),
    "vdot": (COMPLEX, COMPLEX),
    "sum": (TREE,),
    "max": (TREE,),
    "min": (TREE,),
    "size": (TREE,),
    "conj": (COMPLEX,),
    "real": (COMPLEX,),
    "norm": (COMPLEX,),
    "batch_shape": (TREE, (2,)),
    "zeros_like": (TREE,),
    "ones_like": (TREE,),
    "full_like": (TREE, 0.3),
    "clip": (TREE, -0.1, 0.2),
    "update_moment": (TREE, OTHER, 0.9, 2),
    "update_infinity_moment": (TREE, OTHER, 0.9, 0.1),
    "update_moment_per_elem_norm": (COMPLEX, {"a": OTHER["a"]}, 0.9, 2),
    "bias_correction": (TREE, 0.9, 3),
    "where": (True, TREE, OTHER),
    "allclose": (TREE, TREE),
    "cast": (TREE, "float16"),
    "cast_like": (TREE, {"a": np.zeros(3, "float16"), "b": [np.zeros((2, 2), "int32")]}),
}


@pytest.mark.parametrize("name", TREE_FUNCTIONS)
def test_tree_functions(name):
    def arrays(lib):
        def array(x):
            return lib.numpy.asarray(x) if isinstance(x, np.ndarray) else x

        return [lib.tree.map(array, x) for x in TREE_FUNCTIONS[name]]

    want = getattr(optax.tree, name)(*arrays(jax))
    got = getattr(optim.tree, name)(*arrays(namoo))
    assert_trees_close(got, want, 1e-5, 1e-5)
    assert getattr(optim.tree_utils, f"tree_{name}") is getattr(optim.tree, name)


@pytest.mark.parametrize("ord", [1, 2, "inf"])
def test_norms_of_trees(ord):
    for squared in (False, True):
        want = optax.tree.norm(TREE, ord, squared)
        assert_trees_close(optim.tree.norm(TREE, ord, squared), want)


def test_random_trees_are_those_of_optax():
    want = optax.tree.random_like(jax.random.key(3), jax.tree.map(jjnp.asarray, TREE))
    assert_trees_close(optim.tree.random_like(namoo.random.key(3), TREE), want)


@pytest.mark.parametrize("handler", ["promote", "highest", "lowest"])
def test_types_of_trees(handler):
    mixed = [np.zeros(1, "float16"), np.zeros(1, "float32")]
    assert optim.tree.dtype(mixed, handler) == optax.tree.dtype(mixed, handler)
    with pytest.raises(ValueError, match=r"\[1\] has float32"):
        optim.tree.dtype(mixed)


PARAMS = {"dense": {"W": jnp.array([1.0, 2.0]), "b": jnp.array([3.0])}}
GRADS = {"dense": {"W": jnp.array([0.5, 0.5]), "b": jnp.array([0.5])}}


def test_states_are_read_and_written_by_name():
    opt = optim.chain(optim.clip(1.0), optim.adam(optim.constant_schedule(0.1)))
    _, state = opt.update(GRADS, opt.init(PARAMS), PARAMS)
    assert optim.tree.get(state, "mu")["dense"]["b"] == pytest.approx(0.05)
    assert optim.tree.get(state, "ScaleByAdamState").count == 1
    assert optim.tree.get(state, "nothing", default=7) == 7
    with pytest.raises(KeyError, match="2 values called 'count'.*ScaleByAdamState.count"):
        optim.tree.get(state, "count")
    changed = optim.tree.set(state, count=jnp.array(5))
    assert [int(v) for _, v in optim.tree.get_all_with_path(changed, "count")] == [5, 5]

    def of_adam(path, value):
        return path[-1].tuple_name == "ScaleByAdamState"

    one = optim.tree.set(state, of_adam, count=jnp.array(5))
    assert [int(v) for _, v in optim.tree.get_all_with_path(one, "count")] == [5, 1]
    with pytest.raises(KeyError, match="no value called 'cuont'.*count"):
        optim.tree.set(state, cuont=0)
    assert namoo.tree.structure(changed) == namoo.tree.structure(state)


WRAPPED = [
    optim.adam(0.1),
    optim.adamw(optim.constant_schedule(0.1), mask=paths("**/W")),
    optim.partition({"a": optim.adam(0.1), "b": optim.sgd(0.1, 0.9)}, lambda p: {"dense": "a"}),
    optim.MultiSteps(optim.sgd(0.1, 0.9), 2).gradient_transformation(),
]


@pytest.mark.parametrize("tx", WRAPPED)
def test_parts_of_a_state_that_follow_the_parameters(tx):
    """Leaves of the shape of a parameter are visited, the others are not."""
    state = tx.init(PARAMS)
    seen = []
    marked = optim.tree_map_params(
        tx, lambda x: seen.append(x) or x + 1, state, transform_non_params=lambda x: x
    )
    assert namoo.tree.structure(marked) == namoo.tree.structure(state)
    arrays = [x for x in namoo.tree.leaves(state) if x.shape]
    assert len(seen) == len(arrays)


def test_weight_decay_on_w_but_not_b_in_one_line():
    opt = optim.adamw(0.1, weight_decay=0.5, mask=~paths("**/b"))
    plain = optim.adam(0.1)
    decayed, _ = opt.update(GRADS, opt.init(PARAMS), PARAMS)
    bare, _ = plain.update(GRADS, plain.init(PARAMS), PARAMS)
    difference = namoo.tree.map(lambda a, b: a - b, decayed, bare)["dense"]
    np.testing.assert_allclose(difference["W"], -0.05 * PARAMS["dense"]["W"], rtol=1e-5)
    np.testing.assert_array_equal(difference["b"], 0.0)


def test_patterns_freeze_and_group():
    frozen = optim.chain(optim.sgd(1.0), optim.freeze(paths("**/W")))
    updates, _ = frozen.update(GRADS, frozen.init(PARAMS), PARAMS)
    np.testing.assert_array_equal(updates["dense"]["W"], 0.0)
    np.testing.assert_array_equal(updates["dense"]["b"], -0.5)
    rest = optim.selective_transform(optim.adam(1.0), freeze_mask=paths("**/W"))
    state = rest.init(PARAMS)
    assert [x.shape for x in namoo.tree.leaves(optim.tree.get(state, "mu"))] == [(1,)]


def test_gradients_of_none_are_parameters_that_rest():
    """`None` in the place of a gradient, as a filtered derivative gives it."""
    grads = {"dense": {"W": GRADS["dense"]["W"], "b": None}}
    for opt in (optim.sgd(0.1, 0.9), optim.adam(0.1), optim.lion(0.1), optim.rmsprop(0.1)):
        updates, _ = opt.update(grads, opt.init(PARAMS), PARAMS)
        params = optim.apply_updates(PARAMS, updates)
        np.testing.assert_array_equal(params["dense"]["b"], PARAMS["dense"]["b"])
        assert (params["dense"]["W"] < PARAMS["dense"]["W"]).all()


def test_hyperparameters_are_in_the_state():
    opt = optim.inject_hyperparams(optim.adamw)(learning_rate=0.1, mask=paths("**/W"))
    state = opt.init(PARAMS)
    assert float(state.hyperparams["learning_rate"]) == pytest.approx(0.1)
    step = namoo.jit(lambda s: opt.update(GRADS, s, PARAMS)[0])
    before = step(state)
    state.hyperparams["learning_rate"] = jnp.array(0.2)
    twice = namoo.tree.map(lambda a, b: a / b, step(state), before)
    assert_trees_close(twice, [np.full(2, 2.0), np.full(1, 2.0)])
    with pytest.raises(ValueError, match="names \\['lr'\\]"):
        optim.inject_hyperparams(optim.adam, static_args="lr")


class Halving:
    """A learning rate with a state of its own: it halves when it is told to."""

    def init(self):
        return jnp.array(1.0)

    def update(self, state, *, halve, **extra):
        return jnp.where(halve, state / 2, state)

    def __call__(self, state, **extra):
        return state


def test_schedules_with_states():
    opt = optim.inject_hyperparams(optim.sgd)(learning_rate=Halving())
    state, rates = opt.init(PARAMS), []
    for halve in (False, True, False):
        updates, state = opt.update(GRADS, state, PARAMS, halve=halve)
        rates.append(float(-updates["dense"]["b"][0] / 0.5))
    assert rates == [1.0, 1.0, 0.5]


def test_steps_that_are_not_finite_are_left_out():
    opt = optim.apply_if_finite(optim.adam(0.1), max_consecutive_errors=2)
    update = namoo.jit(opt.update)
    state, bad = opt.init(PARAMS), namoo.tree.map(lambda g: g * jnp.nan, GRADS)
    for grads, count, moves in [
        (bad, 1, False),
        (GRADS, 0, True),
        (bad, 1, False),
        (bad, 2, False),
    ]:
        updates, state = update(grads, state, PARAMS)
        assert int(state.notfinite_count) == count
        assert bool((updates["dense"]["W"] != 0).all()) == moves
    updates, state = update(bad, state, PARAMS)
    assert jnp.isnan(updates["dense"]["W"]).all()
    assert int(state.total_notfinite) == 4


def test_gradients_add_up():
    """k small batches are one large one."""
    many = optim.MultiSteps(optim.adam(0.1), 4)
    state, params = many.init(PARAMS), PARAMS
    parts = [namoo.tree.map(lambda g, i=i: g * i, GRADS) for i in (1.0, 2.0, 3.0, 4.0)]
    for grads in parts:
        assert not many.has_updated(state)
        updates, state = namoo.jit(many.update)(grads, state, params)
        params = optim.apply_updates(params, updates)
    one = optim.adam(0.1)
    mean = namoo.tree.map(lambda g: g * 2.5, GRADS)
    updates, _ = one.update(mean, one.init(PARAMS), PARAMS)
    assert many.has_updated(state)
    assert_trees_close(params, optim.apply_updates(PARAMS, updates))


def test_not_finite_gradients_are_not_added_up():
    opt = optim.MultiSteps(optim.sgd(1.0), 2, should_skip_update_fn=optim.skip_not_finite)
    state = opt.init(PARAMS)
    bad = namoo.tree.map(lambda g: g * jnp.inf, GRADS)
    for grads, step in [(GRADS, 1), (bad, 1), (GRADS, 0)]:
        updates, state = opt.update(grads, state, PARAMS)
        assert int(state.mini_step) == step
    assert_trees_close(updates, namoo.tree.map(lambda g: -g, GRADS))


def test_clipping_by_example():
    grads = {"a": normal(4, 3), "b": normal(4, 2, 2)}
    for ours, theirs in [
        (optim.per_example_global_norm_clip, optax.per_example_global_norm_clip),
        (optim.per_example_layer_norm_clip, optax.per_example_layer_norm_clip),
        (
            functools.partial(optim.per_example_layer_norm_clip, uniform=False),
            functools.partial(optax.per_example_layer_norm_clip, uniform=False),
        ),
    ]:
        assert_trees_close(ours(namoo.tree.map(jnp.asarray, grads), 1.0), theirs(grads, 1.0))


def test_complex_parameters():
    z = normal(3) + 1j * normal(3)
    for make in (
        lambda o: o.adam(0.1),
        lambda o: o.rmsprop(0.1, centered=True),
    ):
        theirs, ours = make(optax), make(optim)
        want, _ = theirs.update(jjnp.asarray(z), theirs.init(jjnp.asarray(z)), jjnp.asarray(z))
        got, _ = ours.update(jnp.asarray(z), ours.init(jnp.asarray(z)), jnp.asarray(z))
        assert_trees_close(got, want, 1e-5, 1e-6)


def test_lbfgs_finds_the_minimum_with_loss_and_gradient_from_its_state():
    def rosenbrock(p):
        return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2

    opt = optim.lbfgs()

    def step(carry, _):
        params, state = carry
        value, grad = optim.value_and_grad_from_state(rosenbrock)(params, state=state)
        updates, state = opt.update(
            grad, state, params, value=value, grad=grad, value_fn=rosenbrock
        )
        return (optim.apply_updates(params, updates), state), value

    with namoo.enable_x64(True):
        start = jnp.array([-1.0, 2.0])
        run = namoo.jit(lambda c: namoo.lax.scan(step, c, length=60)[0])
        params, _ = run((start, opt.init(start)))
        np.testing.assert_allclose(params, [1.0, 1.0], rtol=1e-6)
    start = jnp.ones(2)
    with pytest.raises(TypeError, match="\\['bacth'\\], which value_fn does not take"):
        opt.update(
            start, opt.init(start), start, value=1.0, grad=start, value_fn=rosenbrock, bacth=1
        )
    with pytest.raises(ValueError, match="holds no `value`"):
        optim.value_and_grad_from_state(rosenbrock)(start, state=optim.adam(0.1).init(start))


def test_linear_algebra():
    m = normal(4, 4)
    m = m @ m.T + np.eye(4, dtype=np.float32)
    value, vector = optim.power_iteration(jnp.asarray(m), num_iters=300)
    want, want_vector = optax.power_iteration(jjnp.asarray(m), num_iters=300)
    assert_trees_close((value, vector), (want, want_vector), 1e-4, 1e-4)
    for p in (2, 4):
        got, _ = optim.matrix_inverse_pth_root(jnp.asarray(m), p)
        want, _ = optax.matrix_inverse_pth_root(jjnp.asarray(m), p)
        assert_trees_close(got, want, 1e-3, 1e-3)
    a, b = normal(6, 3), normal(6)
    got = optim.nnls(jnp.asarray(a), jnp.asarray(b), iters=200)
    assert_trees_close(got, optax.nnls(jjnp.asarray(a), jjnp.asarray(b), iters=200), 1e-4, 1e-4)


def test_perturbed_functions():
    def gradient(lib, o, x):
        hard = lambda x: (x > 0).astype("float32")  # noqa: E731
        soft = o.perturbations.make_perturbed_fun(hard, 50, 0.5, o.perturbations.Normal())
        run = lib.value_and_grad(lambda x: (soft(lib.random.key(0), x) ** 2).sum())
        return run(x)

    want = jax.jit(lambda x: gradient(jax, optax, x))(A[0])
    assert_trees_close(gradient(namoo, optim, jnp.asarray(A[0])), want, 1e-5, 1e-5)


def test_independent_normal_variables():
    ours, theirs = (o.multi_normal(A[0], B[0]) for o in (optim, optax))
    assert_trees_close(ours.log_prob(jnp.asarray(A)), theirs.log_prob(A), 1e-5)
    got = ours.sample((2,), namoo.random.key(0))
    assert_trees_close(got, theirs.sample((2,), jax.random.key(0)), 1e-5)


def test_scaled_gradients():
    for scale in (0.0, 0.5, 1.0):
        assert (
            float(namoo.grad(lambda x, s=scale: optim.scale_gradient(x, s) ** 2)(3.0)) == 6 * scale
        )


def test_optax_inside_our_chain():
    """Values cross as NumPy arrays: eagerly, and inside a compiled step."""
    ours = optim.chain(optim.clip(0.3), optim.from_optax(optax.scale_by_adam()), optim.scale(-0.1))
    theirs = optax.chain(optax.clip(0.3), optax.scale_by_adam(), optax.scale(-0.1))
    state, jstate = ours.init(PARAMS), theirs.init(jax.tree.map(np.asarray, TREE_OF_NUMPY))
    assert type(state[1]).__name__ == "ScaleByAdamState"
    update = namoo.jit(ours.update)
    grads = jax.tree.map(np.asarray, namoo.tree.map(np.asarray, GRADS))
    for step in (ours.update, update, update):
        updates, state = step(GRADS, state, PARAMS)
        jupdates, jstate = theirs.update(grads, jstate)
    assert_trees_close(updates, jupdates)
    assert int(state[1].count) == 3
    with pytest.raises(TypeError, match="call init outside of jit"):
        namoo.jit(ours.init)(PARAMS)


TREE_OF_NUMPY = {"dense": {"W": np.array([1.0, 2.0], "f4"), "b": np.array([3.0], "f4")}}


def test_extra_arguments_reach_optax_inside_our_chain():
    tx = optim.chain(optim.sgd(1.0), optim.from_optax(optax.scale_by_polyak()))
    params = jnp.array([1.0, 2.0])
    updates, _ = tx.update(2 * params, tx.init(params), params, value=5.0)
    want = optim.polyak_sgd().update(2 * params, optim.polyak_sgd().init(params), params, value=5.0)
    assert_trees_close(updates, want[0])


def test_ours_inside_a_chain_of_optax():
    """The pair is the same, so Optax runs ours outside of `jax.jit`."""
    ours: Any = optim.to_optax(optim.scale_by_adam())
    mixed = optax.chain(ours, optax.scale(-0.1))
    plain = optax.adam(0.1)
    x = jjnp.asarray(A[0])
    state, jstate = mixed.init(x), plain.init(x)
    for _ in range(3):
        updates, state = mixed.update(x, state, x)
        jupdates, jstate = plain.update(x, jstate, x)
    assert_trees_close(updates, jupdates, 1e-6)


def test_operators_alone_need_no_bridge():
    """A pair of Optax that only multiplies works on our arrays as it is."""
    tx = optim.chain(optax.scale(0.5), optax.trace(0.9)._replace(init=optim.trace(0.9).init))
    updates, state = tx.update(GRADS, tx.init(PARAMS), PARAMS)
    assert isinstance(updates["dense"]["W"], namoo.Array)
    assert_trees_close(updates, namoo.tree.map(lambda g: g / 2, GRADS))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: optim.lamb(0.1).update(GRADS, optim.lamb(0.1).init(PARAMS)), "needs the current"),
        (lambda: optim.chain(optim.clip(1.0)).update(GRADS, ()), "state has 0 parts"),
        (lambda: optim.named_chain(("a", optim.clip(1)), ("a", optim.clip(1))), "only once"),
        (lambda: optim.partition({"a": optim.sgd(1)}, {"dense": "c"}).init(PARAMS), "'c'"),
        (lambda: optim.cosine_decay_schedule(1.0, 0), "must be positive"),
        (lambda: optim.piecewise_constant_schedule(1.0, {3: -1.0}), "must not be negative"),
        (lambda: optim.scale_by_lion(mode="soft"), "'hard', 'smooth', 'refined'"),
        (lambda: optim.lookahead(optim.sgd(1), 0, 0.5), "at least 1"),
        (lambda: optim.losses.dice_loss(A, P, reduction="max"), "'mean', 'sum', 'none'"),
        (lambda: optim.adaptive_grad_clip(0.1, axis=None) and optim.unitwise_norm(
            jnp.ones([2] * 6)), "axis=(...)"),
        (lambda: optim.add_noise(1.0, 1.0, key=1, seed=2), "either `key` or `seed`"),
    ],
)  # fmt: skip
def test_messages(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert message in str(error.value)


def test_types_that_losses_refuse():
    with pytest.raises(TypeError, match="logits must be of a floating type, got int32"):
        optim.softmax_cross_entropy(jnp.array([1, 2]), jnp.array([0.0, 1.0]))
    with pytest.raises(TypeError, match="labels must be of an integer type"):
        optim.softmax_cross_entropy_with_integer_labels(jnp.ones(2), jnp.array(0.0))


def test_a_training_step_as_in_the_lessons():
    """The explicit loop: value_and_grad, update, apply_updates; compiled once."""
    x = jnp.asarray(A)
    y = x @ jnp.arange(5.0)
    opt = optim.adam(0.3)
    traces = []

    @namoo.jit
    def train_step(params, opt_state):
        traces.append(1)

        def loss_fn(params):
            return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)

        loss, grads = namoo.value_and_grad(loss_fn)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optim.apply_updates(params, updates), opt_state, loss

    params = {"w": jnp.zeros(5), "b": jnp.zeros(())}
    opt_state = opt.init(params)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(100):
            params, opt_state, loss = train_step(params, opt_state)
            losses.append(float(loss))
    assert losses[-1] < 1e-2 * losses[0]
    assert len(traces) == 1
    assert int(opt_state[0].count) == 100


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.adam(0.1),
        lambda: optim.sgd(0.1, momentum=0.9),
        lambda: optim.adafactor(0.1),
        lambda: optim.lion(0.1),
        lambda: optim.rmsprop(0.1),
        lambda: optim.chain(optim.clip(1.0), optim.scale_by_adam()),
        lambda: optim.MultiSteps(optim.sgd(0.1), 2),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_state_of_other_shapes_is_refused_by_its_path(make, compiled):
    tx = make()
    gradients = {"b": jnp.ones(2), "w": jnp.ones(4)}
    update = namoo.jit(tx.update) if compiled else tx.update
    with pytest.raises(ValueError, match=r"\['w'\].* has shape \(1,\).* \(4,\)"):
        update(gradients, tx.init({"b": jnp.ones(2), "w": jnp.ones(1)}), gradients)
    update(gradients, tx.init(gradients), gradients)


def test_updates_do_not_change_the_shapes_of_parameters():
    with pytest.raises(ValueError, match=r"the parameter at \['w'\] has shape \(1,\).* \(4,\)"):
        optim.apply_updates({"w": jnp.ones(1)}, {"w": jnp.ones(4)})
    assert optim.apply_updates({"w": jnp.ones(4)}, {"w": 2.0})["w"].shape == (4,)
