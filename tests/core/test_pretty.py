"""Programs print as JAX prints them."""

import jax
import jax.numpy
import pytest

import namoo
import namoo.numpy

PROGRAMS = {
    "one line": lambda L, x: L.lax.sin(x[0]),
    "two equations in a line": lambda L, x: L.lax.mul(L.lax.sin(x), x),
    "many": lambda L, x: L.lax.mul(L.lax.sin(L.lax.cos(x)), L.lax.exp(x)),
    "nothing": lambda L, x: x,
    "scan": lambda L, x: L.lax.scan(lambda c, a: (c + a, c * a), 0.0, x),
    "cond": lambda L, x: L.lax.cond(x[0] > 0, lambda y: y, lambda y: L.lax.mul(L.lax.sin(y), y), x),
    "while": lambda L, x: L.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 1),
    "call": lambda L, x: L.jit(lambda y: L.lax.mul(L.lax.sin(y), y))(x),
    "short call": lambda L, x: L.jit(lambda y: L.lax.sin(y))(x),
    "call in a call": lambda L, x: L.jit(lambda y: L.jit(lambda z: L.lax.neg(L.lax.exp(z)))(y))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    texts = [
        str(L.make_jaxpr(lambda x, L=L: PROGRAMS[name](L, x))(L.numpy.ones(3)))
        for L in (namoo, jax)
    ]
    assert texts[0] == texts[1]
