"""`namoo.check`: the user's exception, with line, iteration and example, on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.experimental import checkify

ENGINES = ("interpreter", "native", "xla")


class TooLarge(Exception):
    """A user's exception."""


def plain(x):
    namoo.check(x[0] < 2.0, "got {x} of {}", x.shape[0], x=x[0], error=TooLarge)
    return jnp.sin(x)


def elements(x):
    namoo.check(x < 2.0, "too large", error=TooLarge)
    return jnp.sin(x)


def in_scan(x):
    def step(c, a):
        namoo.check(a < 2.0, "got {a:.1f}", a=a, error=TooLarge)
        return c + a, c * a

    return lax.scan(step, 0.0, x)[1]


def in_scan_of_arrays(x):
    def step(c, a):
        namoo.check(jnp.all(a < 2.0), "got {a}", a=a[0], error=TooLarge)
        return c + a @ jnp.ones((300, 300)), c.sum() * a

    return lax.scan(step, jnp.zeros(300), jnp.broadcast_to(x[:, None], (4, 300)))[1]


def in_while(x):
    def step(state):
        i, y = state
        namoo.check(y < 2.0, "got {y}", y=y, error=TooLarge)
        return i + 1, y * 1.5

    return lax.while_loop(lambda s: s[0] < 5, step, (0, x[0]))[1]


def in_bounded_while(x):
    def step(y):
        namoo.check(jnp.all(y < 2.0), "got {y}", y=y, error=TooLarge)
        return y * 1.5

    return lax.while_loop(lambda y: jnp.sum(y) < 9.0, step, x[:1], max_steps=50)


def in_nested_loops(x):
    def inner(c, a):
        namoo.check(a < 2.0, "got {a}", a=a, error=TooLarge)
        return c + a, None

    return lax.fori_loop(0, 3, lambda i, c: lax.scan(inner, c, x * (1 + i))[0], 0.0)


def in_cond(x):
    def strict(y):
        namoo.check(y < 2.0, "got {y}", y=y, error=TooLarge)
        return y

    return lax.cond(x[1] > 0, strict, lambda y: y, x[0])


def under_vmap(x):
    def f(y, z):
        namoo.check(y < 2.0, "got {y} and {z}", y=y, z=z, error=TooLarge)
        return y * z

    return namoo.vmap(f, (0, None))(x, 3.0)


def under_two_vmaps(x):
    def f(y, z):
        namoo.check(y + z < 2.0, "got {y} and {z}", y=y, z=z, error=TooLarge)
        return y * z

    return namoo.vmap(namoo.vmap(f, (None, 0)), (0, None))(x, jnp.array([0.0, 0.5]))


def scan_under_vmap(x):
    def f(y):
        def step(c, a):
            namoo.check(c < 2.0, "got {c}", c=c, error=TooLarge)
            return c * a, None

        return lax.scan(step, y, jnp.full(4, 1.25))[0]

    return namoo.vmap(f)(x)


def while_under_vmap(x):
    return namoo.vmap(lambda y: in_while(y[None]))(x)


def under_grad(x):
    return namoo.grad(lambda x: in_scan(x).sum())(x)


def under_grad_of_vmap(x):
    return namoo.grad(lambda x: under_vmap(x).sum())(x)


# Function, operand that fails, the message.
CASES = {
    plain: ([3.0, 0.0], "got 3.0 of 2"),
    elements: ([1.0, 3.0, 4.0], "too large (at [1] of the condition)"),
    in_scan: ([1.0, 0.5, 3.0, 5.0], "got 3.0, in iteration 2 of scan"),
    in_scan_of_arrays: ([1.0, 0.5, 3.0, 5.0], "got 3.0, in iteration 2 of scan"),
    in_while: ([1.0], "got 2.25, in iteration 2 of while"),
    in_bounded_while: ([1.0], "got [2.25], in iteration 2 of while"),
    in_nested_loops: ([0.5, 0.75], "got 2.25, in iteration 1 of scan, in iteration 2 of scan"),
    in_cond: ([3.0, 1.0], "got 3.0"),
    under_vmap: ([1.0, 3.0, 4.0], "got 3.0 and 3.0, in example 1 of vmap"),
    under_two_vmaps: ([0.0, 1.75], "got 1.75 and 0.5, in example 1 of vmap, in example 1 of vmap"),
    scan_under_vmap: ([1.0, 1.75], "got 2.1875, in example 1 of vmap, in iteration 1 of scan"),
    while_under_vmap: ([0.1, 1.0], "got 2.25, in example 1 of vmap, in iteration 2 of while"),
    under_grad: ([1.0, 0.5, 3.0, 5.0], "got 3.0, in iteration 2 of scan"),
    under_grad_of_vmap: ([1.0, 3.0, 4.0], "got 3.0 and 3.0, in example 1 of vmap"),
}


def message_of(f, x):
    with pytest.raises(TooLarge) as info:
        f(np.array(x, np.float32))
    return str(info.value).splitlines()


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_eagerly(f):
    x, expected = CASES[f]
    first, *rest = message_of(f, x)
    assert first == expected
    assert "test_check.py" in rest[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_compiled(f, engine):
    x, expected = CASES[f]
    first, *rest = message_of(namoo.jit(f, engine=engine), x)
    assert first == expected
    assert "test_check.py" in rest[0] and "namoo.check(" in rest[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_what_holds_changes_nothing(f, engine, monkeypatch):
    x = np.array(CASES[f][0], np.float32) * 0.1
    if f is in_cond:
        x = np.array([3.0, -1.0], np.float32)
    if "while" in f.__name__:
        x = x * 0.1 if f is not in_bounded_while else np.array([10.0], np.float32)
    found = namoo.jit(f, engine=engine)(x)
    monkeypatch.setattr(namoo, "check", lambda *args, **kwargs: None)
    np.testing.assert_allclose(found, f(x), rtol=1e-5)


def test_programs_with_checks_are_found_in_the_cache():
    x = np.array([1.0, 0.5, 3.0, 5.0], np.float32)
    for _ in range(2):
        namoo.clear_caches()
        assert message_of(namoo.jit(in_scan, engine="native"), x)[0] == CASES[in_scan][1]


def test_checks_are_no_host_operations():
    compiled = namoo.jit(in_scan, engine="native").lower(np.ones(4, np.float32)).compile()
    assert not compiled.host_operations()


def test_checks_of_checkify_are_apart():
    def f(x):
        checkify.check(x < 1.0, "one")
        namoo.check(x < 2.0, "two")
        return x

    error, _ = checkify.checkify(f)(1.5)
    assert "one" in str(error.get())
    with pytest.raises(ValueError, match="two"):
        checkify.checkify(f)(2.5)


NOT_A_CLASS: Any = ValueError("an instance")
# How it is called, the exception, part of its message.
MISTAKES = [
    (lambda: namoo.check(1.0, "x"), TypeError, "condition must be boolean"),
    (lambda: namoo.check(True, "x", error=NOT_A_CLASS), TypeError, "class of exceptions"),
    (lambda: namoo.check(True, "{y}", x=1.0), ValueError, "names ['x']"),
    (lambda: namoo.check(True, "{", x=1.0), ValueError, "brace"),
]


@pytest.mark.parametrize("call, error, message", MISTAKES)
def test_mistakes(call, error, message):
    with pytest.raises(error) as info:
        call()
    assert message in str(info.value)
