"""What `checkpoint` keeps and what it computes again, inside of loops and branches too."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import checkpoint_policies as policies
from namoo import lax
from namoo.interpreters import partial_eval

W = jnp.asarray(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
X = jnp.asarray(np.linspace(0.1, 0.9, 4, dtype=np.float32))


def two_layers(w, x):
    return jnp.sin(jnp.sin(x @ w) @ w)


PROGRAMS = {
    "cond": lambda w: lax.cond(w.sum() < 5, lambda x: two_layers(w, x), lambda x: 2 * x, X),
    "switch": lambda w: lax.switch(
        1, [lambda x: jnp.cos(x @ w), lambda x: two_layers(w, x), lambda x: x], X
    ),
    "scan": lambda w: lax.scan(lambda x, _: (two_layers(w, x), x.sum()), X, None, length=3),
    "jit": lambda w: namoo.jit(two_layers)(w, X),
    "scan of cond": lambda w: lax.scan(
        lambda x, i: (lax.cond(i > 0, lambda x: two_layers(w, x), lambda x: x, x), x[0]),
        X,
        jnp.arange(3),
    ),
}


def count(program, name):
    return str(program).count(f" {name}")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "policy", [None, policies.dots_saveable, lambda prim, *_, **__: prim.name == "cos"]
)
def test_derivatives_do_not_depend_on_what_is_kept(name, policy):
    loss = lambda f: lambda w: sum(x.sum() for x in namoo.tree.leaves(f(w)))  # noqa: E731
    plain, kept = PROGRAMS[name], namoo.checkpoint(PROGRAMS[name], policy=policy)
    for transform in (lambda f: f, namoo.jit):
        expected = transform(namoo.grad(loss(plain)))(W)
        np.testing.assert_allclose(transform(namoo.grad(loss(kept)))(W), expected, rtol=1e-5)
    second = lambda f: namoo.grad(lambda w: (namoo.grad(loss(f))(w) ** 2).sum())(W)  # noqa: E731
    np.testing.assert_allclose(second(kept), second(plain), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["cond", "switch", "scan", "jit"])
def test_products_that_are_kept_are_not_computed_again(name):
    out, pull = namoo.vjp(namoo.checkpoint(PROGRAMS[name]), W)
    ct = namoo.tree.map(jnp.ones_like, out)
    again = count(namoo.make_jaxpr(pull)(ct), "dot_general")
    pull = namoo.vjp(namoo.checkpoint(PROGRAMS[name], policy=policies.dots_saveable), W)[1]
    program = namoo.make_jaxpr(pull)(ct)
    # Each product has a transposed one by each operand that varies. The input of the first does so
    # only in the loop, where it is the carry; one branch of the switch has a third product.
    assert count(program, "dot_general") == (3 if name in ("cond", "jit") else 4)
    assert again > count(program, "dot_general")


def test_only_what_is_read_is_kept():
    def twice(x):
        return lax.cond(x > 0, lambda x: (jnp.sin(x), jnp.exp(x)), lambda x: (x, x), x)[0]

    kept = namoo.checkpoint(twice, policy=lambda prim, *_, **__: prim.name in ("cos", "exp"))
    names = [str(aval) for aval, _ in namoo.ad_checkpoint.saved_residuals(kept, 3.0)]
    assert len(names) <= 2
    program = namoo.make_jaxpr(namoo.linearize(kept, 3.0)[1])(1.0)
    assert count(program, "cos ") == 0 and count(program, "exp ") == 0


def test_branches_share_the_memory_of_residuals_of_one_type():
    branches = [jnp.sin, jnp.cos, jnp.tanh, lambda x: jnp.sin(x) + jnp.exp(x) * jnp.cos(x)]

    def saved(count):
        f = lambda x, i: lax.switch(i, branches[:count], x)  # noqa: E731
        return len(namoo.ad_checkpoint.saved_residuals(f, X, 0))

    assert saved(2) == saved(3) < saved(4)
    for i, branch in enumerate(branches):
        expected = namoo.jacobian(branch)(X)
        found = namoo.jacobian(lambda x, i=i: lax.switch(i, branches, x))(X)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_function_is_traced_once_for_the_same_types():
    traced = []

    @namoo.checkpoint
    def f(x, *, y):
        traced.append(1)
        return jnp.sin(x) * y

    for _ in range(3):
        assert f(2.0, y=3.0).shape == ()
        assert namoo.grad(lambda x: f(x, y=3.0))(2.0).shape == ()
    assert len(traced) == 1
    f(jnp.ones(3), y=2.0)
    assert len(traced) == 2


def test_another_static_value_is_another_trace():
    traced = []

    def power(n, x):
        traced.append(n)
        return x**n

    f = namoo.checkpoint(power, static_argnums=0)
    for n, expected in [(2, 4.0), (3, 12.0), (2, 4.0), (3, 12.0), (2.0, 4.0), (True, 1.0)]:
        assert namoo.grad(f, argnums=1)(n, 2.0) == expected
    assert traced == [2, 3, 2.0, True]


def test_messages_name_the_arguments_of_the_function():
    def f(scale, params):
        return params["w"] if params["w"] > 0 else scale

    for static in ((), 0):
        with pytest.raises(namoo.errors.TracerBoolConversionError, match=r"params\['w'\]"):
            namoo.checkpoint(f, static_argnums=static)(1.0, {"w": 2.0})


def made_of_parts(optimize_remat):
    """A function whose parts print their names in the program: tan, or sin with residuals."""

    @namoo.custom_vjp
    def f(x):
        return jnp.tan(x)

    def fwd(x):
        return jnp.sin(x), (jnp.exp(x),)

    f.defvjp(fwd, lambda residuals, ct: (residuals[0] * ct,), optimize_remat=optimize_remat)
    return f


FORWARD = {
    "plain": lambda f: lambda x: namoo.value_and_grad(f)(x),
    "checkpoint": lambda f: lambda x: namoo.value_and_grad(namoo.checkpoint(f))(x),
    "jit": lambda f: namoo.jit(lambda x: namoo.value_and_grad(namoo.checkpoint(f))(x)),
    "vmap inside": lambda f: (
        lambda x: namoo.value_and_grad(namoo.checkpoint(lambda x: namoo.vmap(f)(x[None]).sum()))(x)
    ),
    "vmap outside": lambda f: (
        lambda x: namoo.tree.map(
            lambda leaf: leaf[0], namoo.vmap(namoo.value_and_grad(namoo.checkpoint(f)))(x[None])
        )
    ),
    "a constant of its own": lambda f: (
        lambda x: namoo.value_and_grad(lambda x: namoo.checkpoint(lambda y: f(y * x / x))(x))(x)
    ),
}


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("optimize_remat", [False, True])
def test_optimize_remat_runs_the_function_where_no_residuals_are_kept(name, optimize_remat):
    x = jnp.float32(0.75)
    value, grad = FORWARD[name](made_of_parts(optimize_remat))(x)
    runs_function = optimize_remat and name != "plain"
    np.testing.assert_allclose(value, np.tan(0.75) if runs_function else np.sin(0.75), rtol=1e-6)
    np.testing.assert_allclose(grad, np.exp(0.75), rtol=1e-6)


@pytest.mark.parametrize("kind", ["jvp", "vjp", "vjp with symbolic zeros"])
def test_results_of_custom_functions_that_nothing_reads_are_not_computed(kind):
    def fun(x, y):
        return jnp.sin(x), x + jnp.cos(y)

    if kind == "jvp":
        f = namoo.custom_jvp(fun)
        f.defjvp(lambda xs, ts: (f(*xs), (3.0 * ts[0], 5.0 * ts[0] + 7.0 * ts[1])))
    else:
        f = namoo.custom_vjp(fun)
        symbolic = kind.endswith("zeros")

        def fwd(x, y):
            return f(x.value, y.value) if symbolic else f(x, y), ()

        def bwd(_, cts):
            a, b = (0.0 if type(ct) is namoo.custom_derivatives.SymbolicZero else ct for ct in cts)
            return 3.0 * a + 5.0 * b, 7.0 * b

        f.defvjp(fwd, bwd, symbolic_zeros=symbolic)

    cases = [((0,), "cos", (3.0, 0.0)), ((1,), "sin", (5.0, 7.0)), ((0, 1), "tan", (8.0, 7.0))]
    for read, gone, expected in cases:
        program = narrow(lambda x, y, read=read: sum(f(x, y)[i] for i in read))
        assert count(program, gone) == 0
        g = lambda x, y, program=program: namoo.core.eval_jaxpr(program, (), x, y)[0]  # noqa: E731
        for transform in (namoo.jit, namoo.checkpoint):
            np.testing.assert_allclose(
                namoo.grad(transform(g), argnums=(0, 1))(0.5, 0.25), expected, rtol=1e-6
            )
        batched = namoo.grad(lambda x, y, g=g: namoo.vmap(g)(x, y).sum(), argnums=(0, 1))
        grads = batched(jnp.full(2, 0.5), jnp.full(2, 0.25))
        np.testing.assert_allclose(grads, np.array([expected] * 2).T, rtol=1e-6)


def narrow(f):
    """The program of a function of two numbers, without what its result does not need."""
    closed = namoo.make_jaxpr(f)(0.5, 0.25)
    return partial_eval.dce_jaxpr(closed.jaxpr, [True])[0]
