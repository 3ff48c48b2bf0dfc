"""What `checkpoint` keeps and what it computes again, inside of loops and branches too."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import checkpoint_policies as policies
from namoo import lax

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
