"""Messages of `debug_nans`: the direction, the operands, and the gradient of `where`."""

import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax


def roots(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)  # where


def others(x):
    return jnp.where(x == 0, 0.0, 1.0 / x)  # where


def logs(x):
    y = jnp.log(x)
    z = y * 2.0
    return jnp.where(x > 0, z, 0.0)  # where


def safe(x):
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)


def plain(x):
    return (x / x) * 2.0


def scanned(x):
    return lax.scan(lambda c, y: (c + roots(y), None), 0.0, x)[0]


X = jnp.array([1.0, 0.0, 4.0])


@pytest.fixture(autouse=True)
def watched():
    with namoo.debug_nans(True):
        yield


def summed(fun):
    return lambda x: jnp.sum(fun(x))


MODES = {"eager": lambda f: f, "jit": namoo.jit}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fun", "branch"), [(roots, "true"), (others, "false"), (logs, "true"), (scanned, "true")]
)
def test_the_gradient_of_where(fun, branch, mode):
    with pytest.raises(FloatingPointError, match="in the backward pass") as caught:
        MODES[mode](namoo.grad(summed(fun)))(X)
    (note,) = caught.value.__notes__
    assert f"whose condition is {branch}," in note
    assert "# where" in note
    assert "safe = jnp.where(condition, x, 1.0)" in note


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fun", "x", "message"),
    [
        (
            plain,
            X,
            "encountered in div: 1 of 3 .* first at [1], where its operands are 0.0 and 0.0.",
        ),
        (jnp.log, -X, "in log: 2 of 3 .* first at [0], where its operand is -1.0."),
        (
            jnp.log,
            -1.0,
            "in log: 1 of 1 elements of its result float32[], where its operand is -1.0.",
        ),
        (jnp.sin, jnp.array([0.0, jnp.inf]), "first at [1]; its operand 0 has inf at [1] already."),
        (lambda x: x @ x, jnp.array([1.0, jnp.nan]), "its operand 0 has nan at [1] already."),
        (
            jnp.sum,
            jnp.array([[1.0, jnp.inf, -jnp.inf]]),
            "its operand 0 has inf at [0, 1] already.",
        ),
    ],
)
def test_operands_in_the_forward_pass(fun, x, message, mode):
    with pytest.raises(FloatingPointError) as caught:
        MODES[mode](fun)(x)
    text = str(caught.value)
    assert all(part in text for part in message.split(" .* ")), text
    assert "backward" not in text and not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("mode", MODES)
def test_a_safe_operand_has_a_gradient(mode):
    assert jnp.isfinite(MODES[mode](namoo.grad(summed(safe)))(X)).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_nan_of_a_backward_pass_without_where(mode):
    with pytest.raises(FloatingPointError, match="in the backward pass") as caught:
        MODES[mode](namoo.grad(lambda x: jnp.sum(jnp.sqrt(x) * x * 0.0)))(X)
    assert not hasattr(caught.value, "__notes__")
