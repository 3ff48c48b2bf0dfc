"""Every optimiser, wrapper and piece against real Optax: one table, the same code run by both.

A case is a function of a module, `optax` or `namoo.optim`, that makes a transformation. Each of
them makes twenty steps in one compiled scan; parameters, states and the states' layout must agree.
"""

import functools
from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np
import optax
import pytest

import namoo
import namoo.lax
import namoo.numpy
import namoo.random
import namoo.tree_util
from namoo import optim

THEIRS = SimpleNamespace(jax=jax, optim=optax)
OURS = SimpleNamespace(jax=namoo, optim=optim)
STEPS = 20

RNG = np.random.default_rng(0)
PARAMS = {
    "layer": {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3)},
    "stack": [RNG.normal(size=(2, 3, 2)), None],
}
TARGETS = jax.tree.map(lambda p: RNG.normal(size=p.shape), PARAMS)


LABELS = {"layer": {"w": "fast", "b": "slow"}, "stack": "fast"}
MASK = {"layer": {"w": True, "b": False}, "stack": True}


def warm(o):
    return o.warmup_cosine_decay_schedule(0.0, 0.1, 5, 15, 0.01)


OPTIMISERS = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd momentum": lambda o: o.sgd(0.1, momentum=0.9),
    "sgd nesterov": lambda o: o.sgd(0.1, momentum=0.9, nesterov=True),
    "sgd schedule": lambda o: o.sgd(warm(o), 0.9, accumulator_dtype="float64"),
    "adam": lambda o: o.adam(0.1),
    "adam eps_root": lambda o: o.adam(0.1, 0.8, 0.99, 1e-3, 1e-2),
    "nadam": lambda o: o.nadam(0.1),
    "adamw": lambda o: o.adamw(0.1, weight_decay=0.1),
    "adamw mask": lambda o: o.adamw(0.1, weight_decay=0.1, mask=MASK),
    "nadamw": lambda o: o.nadamw(warm(o), weight_decay=0.1),
    "adamax": lambda o: o.adamax(0.1),
    "adamaxw": lambda o: o.adamaxw(0.1, weight_decay=0.1, mask=MASK),
    "amsgrad": lambda o: o.amsgrad(0.1),
    "amsgrad biased": lambda o: o.amsgrad(
        0.1, bias_correction_mu=False, bias_correction_nu=False, eps=1e-3
    ),
    "adan": lambda o: o.adan(0.1, weight_decay=0.1),
    "adabelief": lambda o: o.adabelief(0.1),
    "adabelief nesterov": lambda o: o.adabelief(0.1, nesterov=True),
    "adagrad": lambda o: o.adagrad(0.1),
    "adadelta": lambda o: o.adadelta(0.5, weight_decay=0.1, weight_decay_mask=MASK),
    "adafactor": lambda o: o.adafactor(0.1, min_dim_size_to_factor=2, momentum=0.9),
    "adafactor whole": lambda o: o.adafactor(warm(o), weight_decay_rate=0.1, factored=False),
    "yogi": lambda o: o.yogi(0.1),
    "radam": lambda o: o.radam(0.1),
    "radam nesterov": lambda o: o.radam(0.1, threshold=2.0, nesterov=True),
    "novograd": lambda o: o.novograd(0.1, weight_decay=0.1),
    "lion": lambda o: o.lion(0.1, weight_decay=0.1, mask=MASK),
    "rmsprop": lambda o: o.rmsprop(0.1),
    "rmsprop outside": lambda o: o.rmsprop(0.1, eps_in_sqrt=False, bias_correction=True),
    "rmsprop centered": lambda o: o.rmsprop(0.1, centered=True, momentum=0.9, nesterov=True),
    "rmsprop centered corrected": lambda o: o.rmsprop(
        0.1, centered=True, eps_in_sqrt=False, bias_correction=True, initial_scale=0.1, eps=1e-2
    ),
    "lamb": lambda o: o.lamb(0.1, weight_decay=0.1, mask=MASK),
    "lars": lambda o: o.lars(10.0, weight_decay=0.1, trust_ratio_mask=MASK),
    "fromage": lambda o: o.fromage(0.1),
    "fromage schedule": lambda o: o.fromage(warm(o)),
    "noisy_sgd": lambda o: o.noisy_sgd(0.1, key=3),
    "sign_sgd": lambda o: o.sign_sgd(0.1),
    "signum": lambda o: o.signum(0.1),
    "rprop": lambda o: o.rprop(0.1),
    "optimistic_gradient_descent": lambda o: o.optimistic_gradient_descent(0.1, 0.7, 0.3),
    "optimistic_adam_v2": lambda o: o.optimistic_adam_v2(0.1, alpha=0.9, beta=0.5),
    "polyak_sgd": lambda o: o.polyak_sgd(0.5, f_min=-5.0),
    "polyak_sgd +": lambda o: o.polyak_sgd(0.5, f_min=1.0, variant="sps+"),
    "lbfgs": lambda o: o.lbfgs(memory_size=3),
    "lbfgs backtracking": lambda o: o.lbfgs(
        linesearch=o.scale_by_backtracking_linesearch(10, store_grad=True)
    ),
    "fixed lbfgs": lambda o: o.lbfgs(0.1, scale_init_precond=False, linesearch=None),
    "zoom": lambda o: o.chain(o.sgd(1.0), o.scale_by_zoom_linesearch(15)),
    "zoom strict": lambda o: o.chain(
        o.sgd(3.0),
        o.scale_by_zoom_linesearch(4, 2.0, curv_rtol=0.1, approx_dec_rtol=None, tol=1e-3),
    ),
    "backtracking": lambda o: o.chain(
        o.sgd(9.0), o.scale_by_backtracking_linesearch(15, rtol=1e-3, decrease_factor=0.5)
    ),
}

PIECES = {
    "clip": lambda o: o.chain(o.clip(0.3), o.sgd(0.1)),
    "clip_by_global_norm": lambda o: o.chain(o.clip_by_global_norm(1.0), o.sgd(0.1)),
    "clip_by_block_rms": lambda o: o.chain(o.clip_by_block_rms(0.3), o.sgd(0.1)),
    "adaptive_grad_clip": lambda o: o.chain(o.adaptive_grad_clip(0.1), o.sgd(0.1)),
    "adaptive_grad_clip axis": lambda o: o.masked(
        o.chain(o.adaptive_grad_clip(0.1, axis=(0, 1)), o.sgd(0.1)), MASK
    ),
    "add_decayed_weights": lambda o: o.chain(o.add_decayed_weights(warm(o), MASK), o.sgd(0.1)),
    "centralize": lambda o: o.chain(o.centralize(), o.sgd(0.1)),
    "ema": lambda o: o.chain(o.ema(0.9), o.sgd(0.1)),
    "ema biased": lambda o: o.chain(o.ema(0.9, debias=False), o.sgd(0.1)),
    "scale_by_lion smooth": lambda o: o.chain(o.scale_by_lion(mode="smooth"), o.sgd(0.1)),
    "scale_by_lion refined": lambda o: o.chain(o.scale_by_lion(mode="refined"), o.sgd(0.1)),
    "scale_by_sm3": lambda o: o.masked(o.chain(o.scale_by_sm3(b2=0.9), o.scale(-0.1)), MASK),
    "sm3": lambda o: o.masked(o.sm3(0.1), MASK),
    "scale_by_param_block_norm": lambda o: o.chain(o.scale_by_param_block_norm(), o.sgd(0.1)),
    "scale_by_param_block_rms": lambda o: o.chain(o.scale_by_param_block_rms(), o.sgd(0.1)),
    "normalize_by_update_norm": lambda o: o.chain(o.normalize_by_update_norm(2.0), o.sgd(0.1)),
    "scale_by_distance_over_gradients": lambda o: o.masked(
        o.chain(o.scale_by_distance_over_gradients(0.1), o.scale(-1.0)), MASK
    ),
    "keep_params_nonnegative": lambda o: o.chain(o.sgd(0.1), o.keep_params_nonnegative()),
    "zero_nans": lambda o: o.chain(o.zero_nans(), o.sgd(0.1)),
    "set_to_zero": lambda o: o.chain(o.sgd(0.1), o.masked(o.set_to_zero(), MASK)),
    "freeze": lambda o: o.chain(o.adam(0.1), o.freeze(MASK)),
    "selective_transform": lambda o: o.selective_transform(o.adam(0.1), freeze_mask=MASK),
    "partition": lambda o: o.partition({"fast": o.adam(0.1), "slow": o.sgd(0.01, 0.9)}, LABELS),
    "multi_transform": lambda o: o.multi_transform(
        {"fast": o.adam(0.1), "slow": o.set_to_zero()}, lambda tree: LABELS
    ),
    "masked function": lambda o: o.masked(o.adam(0.1), lambda tree: MASK),
    "named_chain": lambda o: o.named_chain(("z", o.clip(0.3)), ("a", o.adam(0.1))),
    "flatten": lambda o: o.flatten(o.lamb(0.1)),
    "apply_every": lambda o: o.chain(o.sgd(0.1), o.apply_every(3)),
    "MultiSteps": lambda o: o.MultiSteps(
        o.adam(0.1), 3, accumulator_dtype="float64"
    ).gradient_transformation(),
    "MultiSteps sum": lambda o: o.MultiSteps(
        o.adam(0.1),
        lambda step: 1 + step % 3,
        use_grad_mean=False,
        accumulator_dtype="float64",
        should_skip_update_fn=functools.partial(o.skip_large_updates, max_squared_norm=9.0),
    ).gradient_transformation(),
    "apply_if_finite": lambda o: o.apply_if_finite(o.adam(0.1), 2),
    "conditionally_transform": lambda o: o.chain(
        o.conditionally_transform(o.scale_by_adam(), lambda step: step % 3 != 0), o.scale(-0.1)
    ),
    "conditionally_mask": lambda o: o.conditionally_mask(o.adam(0.1), lambda step: step % 3 != 0),
    "inject_hyperparams": lambda o: o.inject_hyperparams(o.adamw)(
        warm(o), b1=0.8, weight_decay=0.1
    ),
    "lookahead": lambda o: o.lookahead(o.adam(0.1), 4, 0.5),
    "lookahead reset": lambda o: o.lookahead(o.sgd(0.1, 0.9), 4, 0.5, reset_state=True),
    "snapshot": lambda o: o.chain(o.snapshot("norm", o.tree.norm), o.sgd(0.1)),
    "stateless": lambda o: o.chain(
        o.stateless_with_tree_map(lambda g, p: g + 0.1 * p), o.identity(), o.sgd(0.1)
    ),
}

# Cases whose steps need the loss, or a loss that is the same at every step.
NEEDS_VALUE = ("polyak", "lbfgs", "zoom", "backtracking")
FIXED_LOSS = ("lbfgs", "zoom", "backtracking")


# After more steps there is nothing left to do but rounding.
FEWER_STEPS = {"lbfgs": 6, "lbfgs backtracking": 8, "zoom": 10}

# Schedules, and Adafactor's decay, are computed in single precision from the step's number.
SINGLE = {"adafactor", "adafactor whole", "sgd schedule", "nadamw", "fromage schedule"}
SINGLE |= {
    "scale_by_distance_over_gradients",
    "inject_hyperparams",
    "add_decayed_weights",
}


def run(lib, make, name, dtype, compiled=True):
    """Parameters and state after some steps, made by a library."""
    jnp, tree = lib.jax.numpy, lib.jax.tree
    tx = make(lib.optim)
    targets = tree.map(lambda x: jnp.asarray(x, dtype), TARGETS)
    has_value = name.startswith(NEEDS_VALUE)
    fixed = name.startswith(FIXED_LOSS)
    two = name.startswith("lookahead")

    def loss(params, t):
        errors = tree.map(lambda p, q: p - q, params, targets)
        terms = [jnp.sum(0.5 * e**2 + 0.2 * jnp.sin(3 * e)) for e in tree.leaves(errors)]
        return (1 + 0.3 * jnp.sin(t).astype(dtype)) * sum(terms)

    def gradient(params, t):
        factor = 1 + 0.3 * jnp.sin(t).astype(dtype)
        slope = lambda p, q: factor * (p - q + 0.6 * jnp.cos(3 * (p - q)))  # noqa: E731
        return tree.map(slope, params, targets)

    def step(carry, t):
        params, state = carry
        t = 0 * t if fixed else t
        grads = gradient(params.fast if two else params, t)
        extra = {"value": loss(params, t)} if has_value else {}
        if fixed:
            extra |= {"grad": grads, "value_fn": loss, "t": t}
        updates, state = tx.update(grads, state, params, **extra)
        return (lib.optim.apply_updates(params, updates), state), None

    params = tree.map(lambda x: jnp.asarray(x, dtype), PARAMS)
    if two:
        params = lib.optim.LookaheadParams.init_synced(params)
    start = (params, tx.init(params))
    steps = FEWER_STEPS.get(name, STEPS)
    times = jnp.arange(steps, dtype=dtype)
    if not compiled:
        for i in range(steps):
            start, _ = step(start, times[i])
        return start
    (params, state), _ = lib.jax.jit(lambda c: lib.jax.lax.scan(step, c, times))(start)
    return params, state


def flat(lib, tree):
    """Paths and values, with the bits of keys."""
    leaves = lib.jax.tree_util.tree_flatten_with_path(tree)[0]

    def value(x):
        if lib.jax.numpy.issubdtype(x.dtype, lib.jax.dtypes.prng_key):
            x = lib.jax.random.key_data(x)
        return np.asarray(x)

    return {lib.jax.tree_util.keystr(path): value(x) for path, x in leaves}


def assert_alike(got, want, tolerance):
    assert list(got) == list(want)
    for path, w in want.items():
        g = got[path]
        assert (g.shape, g.dtype) == (w.shape, w.dtype), path
        if w.dtype.kind == "f":
            size = max(np.max(np.abs(w[np.isfinite(w)]), initial=0.0), 1e-3)
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * size, err_msg=path)
        else:
            np.testing.assert_array_equal(g, w, err_msg=path)


CASES = OPTIMISERS | PIECES


@pytest.mark.parametrize("name", CASES)
def test_like_optax_in_double_precision(name):
    """Twenty compiled steps, far closer than 1e-6: each ε has to stand in the right place."""
    with jax.enable_x64(True):
        want = flat(THEIRS, run(THEIRS, CASES[name], name, "float64"))
    with namoo.enable_x64(True):
        got = flat(OURS, run(OURS, CASES[name], name, "float64"))
    assert_alike(got, want, 1e-6 if name in SINGLE else 1e-9)


def shapes_of(lib, name, dtype):
    """The updates and the state of one step, as types only."""
    jnp, tree = lib.jax.numpy, lib.jax.tree

    def step(params):
        tx = CASES[name](lib.optim)
        if name.startswith("lookahead"):
            params = lib.optim.LookaheadParams.init_synced(params)
        state = tx.init(params)
        extra = {"value": jnp.zeros([], dtype)} if name.startswith(NEEDS_VALUE) else {}
        grads = params.fast if name.startswith("lookahead") else params
        if name.startswith(FIXED_LOSS):

            def value_fn(params):
                return sum(jnp.sum(p**2) for p in tree.leaves(params))

            extra |= {"grad": grads, "value_fn": value_fn}
        updates, new_state = tx.update(grads, state, params, **extra)
        return lib.optim.apply_updates(params, updates), state, new_state

    example = tree.map(lambda p: lib.jax.ShapeDtypeStruct(p.shape, jnp.dtype(dtype)), PARAMS)
    leaves = lib.jax.tree_util.tree_flatten_with_path(lib.jax.eval_shape(step, example))[0]
    return {lib.jax.tree_util.keystr(k): (x.shape, str(x.dtype)) for k, x in leaves}


# Where Optax's own types change from step to step, or do not fit each other, and ours do not.
STEADIER = {"zoom", "zoom strict", "lbfgs", "lbfgs backtracking", "backtracking"}


@pytest.mark.parametrize("name", CASES)
def test_types_are_kept(name):
    """Half precision stays half precision, in parameters and state, as it does in Optax."""
    got = shapes_of(OURS, name, "bfloat16")
    params = {k: v for k, v in got.items() if k.startswith("[0]")}
    assert {dtype for _, dtype in params.values()} == {"bfloat16"}
    if name not in STEADIER:
        assert got == shapes_of(THEIRS, name, "bfloat16")


@pytest.mark.parametrize("name", ["adam", "adamw mask", "partition", "lbfgs", "MultiSteps"])
def test_without_compiling(name):
    """A Python loop over eager steps is the compiled scan."""
    with namoo.enable_x64(True):
        eager = flat(OURS, run(OURS, CASES[name], name, "float64", compiled=False))
        assert_alike(eager, flat(OURS, run(OURS, CASES[name], name, "float64")), 1e-9)


SINGLE_PRECISION = [
    "sgd momentum",
    "adam",
    "adamw",
    "adagrad",
    "lion",
    "lamb",
    "adafactor",
]


@pytest.mark.parametrize("name", SINGLE_PRECISION)
def test_like_optax_in_single_precision(name):
    """Twenty steps in the type people train in, to 1e-6 of the parameters' size."""
    want = flat(THEIRS, run(THEIRS, CASES[name], name, "float32")[0])
    got = flat(OURS, run(OURS, CASES[name], name, "float32")[0])
    for path, w in want.items():
        assert np.max(np.abs(got[path] - w)) <= 2e-6 * np.max(np.abs(w)), path


def test_every_name_of_optax_is_there():
    """Only what Optax itself has given up, or keeps as modules of their own, is left out."""
    left_out = {"assignment", "contrib", "experimental", "microbatch", "microbatching"}
    left_out |= {"second_order"}

    def public(module):
        return {name for name in dir(module) if not name.startswith("_")}

    assert public(optax) - set(dir(optim)) <= left_out
    assert public(optax.losses) <= set(dir(optim.losses))
    assert public(optax.tree) <= set(dir(optim.tree))
    assert public(optax.projections) <= set(dir(optim.projections))
    modules = {"functools", "typing"}
    assert public(optax.tree_utils) - modules <= set(dir(optim.tree_utils))
    assert public(optax.transforms) <= set(dir(optim.transforms))
    assert public(optax.perturbations) <= set(dir(optim.perturbations))
    assert public(optax.schedules) - set(dir(optim)) == set()
