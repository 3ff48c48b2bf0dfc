"""`namoo.test_util`: what JAX's checks accept and refuse, and what a refusal says."""

import functools
import importlib
import inspect
from typing import Any, cast

import hypothesis
import hypothesis.strategies as st
import jax
import jax.test_util
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.test_util import check_grads, check_jvp, check_vjp


def square(lib, factor=2.0, second=True):
    """x², with a rule that is right for a factor of 2 and, if `second`, can be differentiated."""

    @lib.custom_jvp
    def squared(x):
        return x * x

    @squared.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return x * x, factor * (x if second else lib.lax.stop_gradient(x)) * t

    return squared


def complex_product(lib, right):
    """x·y for complex numbers, with the cotangents that are right, or conjugated."""
    conj = (lambda x: x) if right else lib.numpy.conj

    @lib.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, c: (c * conj(r[1]), c * conj(r[0])))
    return product


ONES, Z = np.ones(3, np.float32), np.array([1 + 2j, 0.5 - 1j], np.complex64)

# Of JAX or namoo: the function, its arguments, the other arguments of check_grads.
CASES = {
    "a number": lambda lib: (lib.numpy.sin, (1.0,), dict(order=2)),
    "order nought": lambda lib: (lib.numpy.sin, (1.0,), dict(order=0)),
    "a list": lambda lib: (lib.numpy.sin, [ONES], dict(order=1)),
    "trees": lambda lib: (
        lambda p, x: {"y": p["w"][0] * x, "z": (p["b"] + x,)},
        ({"w": [ONES], "b": 2 * ONES}, 3 * ONES),
        dict(order=2),
    ),
    "complex": lambda lib: (lambda z: z * z, (Z,), dict(order=2)),
    "not holomorphic": lambda lib: (lambda z: lib.numpy.conj(z) * z, (Z,), dict(order=1)),
    "complex to real": lambda lib: (lambda z: lib.numpy.abs(z) ** 2, (Z,), dict(order=1)),
    "complex, own rule": lambda lib: (
        complex_product(lib, True),
        (Z, Z),
        dict(order=1, modes="rev"),
    ),
    "complex, wrong rule": lambda lib: (
        complex_product(lib, False),
        (Z, Z),
        dict(order=1, modes="rev"),
    ),
    "own rule": lambda lib: (square(lib), (ONES,), dict(order=2)),
    "wrong": lambda lib: (square(lib, 2.1), (ONES,), dict(order=1)),
    "wrong, fwd": lambda lib: (square(lib, 2.1), (ONES,), dict(order=1, modes="fwd")),
    "wrong, rev": lambda lib: (square(lib, 2.1), (ONES,), dict(order=1, modes=["rev"])),
    "wrong, lin": lambda lib: (square(lib, 2.1), (ONES,), dict(order=1, modes=("lin",))),
    "wrong, in the second order": lambda lib: (
        square(lib, second=False),
        (ONES,),
        dict(order=2, modes="rev"),
    ),
    "not yet wrong in the first": lambda lib: (square(lib, second=False), (ONES,), dict(order=1)),
    "wrong, but tolerated": lambda lib: (
        square(lib, 2.1),
        (ONES,),
        dict(order=1, atol=0.5, rtol=0.5),
    ),
    "wrong, but tolerated for the dtype": lambda lib: (
        square(lib, 2.1),
        (ONES,),
        dict(order=1, atol={np.float32: 0.5}),
    ),
    "wrong, and tolerated for another": lambda lib: (
        square(lib, 2.1),
        (ONES,),
        dict(order=1, atol={np.float16: 0.5}),
    ),
    "no tolerance": lambda lib: (lib.numpy.exp, (1.0,), dict(order=1, atol=0, rtol=0)),
    "a large array is allowed more": lambda lib: (
        square(lib, 2.1),
        (np.ones(100, np.float32),),
        dict(order=1, modes="fwd"),
    ),
    "a large array is allowed more where there should be nothing": lambda lib: (
        square(lib, 2.1),
        (np.full(100, 1e-1, np.float32),),
        dict(order=1, modes="fwd", rtol=0),
    ),
    "infinite everywhere": lambda lib: (
        lambda x: lib.numpy.where(x > 9, x, np.inf),
        (ONES,),
        dict(order=1),
    ),
    "a step too large": lambda lib: (lib.numpy.exp, (1.0,), dict(order=1, eps=1.0)),
    "half precision": lambda lib: (lib.numpy.sin, (ONES.astype("float16"),), dict(order=1)),
    "bfloat16": lambda lib: (
        lambda x: x * x,
        (lib.numpy.ones(3, "bfloat16"),),
        dict(order=1, eps=0.1),
    ),
    "nan": lambda lib: (lambda x: x * np.nan, (1.0,), dict(order=1)),
    "infinity": lambda lib: (lambda x: x * np.inf, (1.0,), dict(order=1)),
    "nothing in the array": lambda lib: (lambda x: x * 2, (ONES[:0],), dict(order=1)),
    "no tuple": lambda lib: (lib.numpy.sin, 1.0, dict(order=1)),
    "no arguments": lambda lib: (lambda: 2.0, (), dict(order=1)),
}


def verdict(lib, case):
    checks = importlib.import_module(f"{lib.__name__}.test_util")
    f, args, options = case(lib)
    try:
        checks.check_grads(f, args, **options)
    except (AssertionError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_verdict_is_that_of_jax(case):
    assert verdict(namoo, case) is verdict(jax, case)


@pytest.mark.parametrize("name", ["check_grads", "check_jvp", "check_vjp"])
def test_signatures(name):
    ours = inspect.signature(getattr(namoo.test_util, name)).parameters
    theirs = inspect.signature(getattr(jax.test_util, name)).parameters
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


# A function of several arguments, each with a derivative of its own that may be wrong.
def weighted(factors):
    @namoo.custom_jvp
    def f(p, x):
        return {"y": p["w"] * x}

    @f.defjvp
    def rule(primals, tangents):
        (p, x), (dp, dx) = primals, tangents
        return f(p, x), {"y": factors[0] * dp["w"] * x + factors[1] * p["w"] * dx}

    return f


@pytest.mark.parametrize(
    ("f", "args", "options", "words"),
    [
        (
            square(namoo, 3.0),
            (jnp.ones((2, 1)),),
            dict(order=1),
            ["check_grads of squared", 'mode "fwd", order 1', "worst at result, element [0, 0]"],
        ),
        (
            square(namoo, second=False),
            (1.0,),
            dict(order=3),
            ['mode "fwd", order 2 (fwd of fwd)', "worst at result[1] (float32[])"],
        ),
        (
            square(namoo, second=False),
            (1.0,),
            dict(order=3, modes="rev"),
            ['mode "rev", order 2 (rev of rev)', "worst at x (float32[])"],
        ),
        (
            weighted((1.0, 2.0)),
            ({"w": jnp.ones(2)}, jnp.ones(2)),
            dict(order=1, modes="rev"),
            ["worst at x (float32[2])"],
        ),
        (
            weighted((2.0, 1.0)),
            ({"w": jnp.ones(2)}, jnp.ones(2)),
            dict(order=1, modes="rev"),
            ["worst at p['w'] (float32[2])"],
        ),
        (
            weighted((2.0, 1.0)),
            ({"w": jnp.ones(2)}, jnp.ones(2)),
            dict(order=1, modes="fwd", eps=1e-3),
            ["worst at result['y'], element", "2 of 2 elements are wrong", "eps=0.001"],
        ),
    ],
)
def test_a_refusal_says_where(f, args, options, words):
    with pytest.raises(AssertionError) as error:
        check_grads(f, args, **options)
    assert [word for word in words if word not in str(error.value)] == []


def numbers(message: str) -> list[float]:
    """The two numbers of a refusal."""
    return [float(line.split()[-1]) for line in message.splitlines()[2:4]]


def test_a_refusal_has_the_two_numbers():
    tangent, cotangent = np.random.RandomState(0).randn(2)
    with pytest.raises(AssertionError) as error:
        check_grads(square(namoo, 3.0), (1.0,), 1, "fwd")
    assert numbers(str(error.value)) == pytest.approx([3 * tangent, 2 * tangent], 1e-3)
    with pytest.raises(AssertionError) as error:
        check_grads(square(namoo, 3.0), (1.0,), 1, "rev")
    product = tangent * cotangent
    assert numbers(str(error.value)) == pytest.approx([3 * product, 2 * product], 1e-3)


STILL = {
    "an integer": (lambda x, n: x * n, (ONES, 3)),
    "integers": (lambda x, n: x * n, (jnp.ones(3), jnp.arange(3))),
    "booleans": (lambda x, b: jnp.where(b, x, 2 * x), (ONES, np.array([True, False, True]))),
    "a key": (lambda k, x: x * namoo.random.normal(k, (3,)), (namoo.random.key(0), ONES)),
    "a string": (lambda x, how: x * len(how), (ONES, "twice")),
    "None": (lambda x, _: x * 2, (ONES, None)),
    "in a tree": (lambda p: p["w"] ** p["n"], ({"n": 2, "w": jnp.ones(3)},)),
    "an integer result": (lambda x: (x * x, jnp.argmax(x)), (ONES,)),
    "a boolean result": (lambda x: (x * x, x > 0), (ONES,)),
    "a key as result": (lambda x: (x * x, namoo.random.key(0)), (ONES,)),
}


@pytest.mark.parametrize(("f", "args"), STILL.values(), ids=STILL)
def test_what_is_no_float_is_held_still(f, args):
    check_grads(f, args, order=2, modes=("fwd", "rev", "lin"))


@pytest.mark.parametrize("case", [case for case in STILL if case != "a string"])
def test_what_is_no_float_is_held_still_by_each_check(case):
    f, args = STILL[case]
    check_jvp(f, functools.partial(namoo.jvp, f), args)
    check_vjp(f, functools.partial(namoo.vjp, f), args)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: check_grads(jnp.sin, cast(Any, 1.0), 1), TypeError, "args must be a tuple"),
        (lambda: check_grads(jnp.sin, (1,), 1), TypeError, r"no argument .*, got int32\[\]"),
        (lambda: check_grads(jnp.argmax, (ONES,), 1), TypeError, "no result of argmax"),
        (lambda: check_grads(jnp.sin, (1.0,), 1, "forward"), ValueError, "'fwd', 'rev', 'lin'"),
        (lambda: check_grads(jnp.sin, (1.0,), 1, ["fwd", "bwd"]), ValueError, "'bwd'"),
        (
            lambda: check_jvp(jnp.sin, lambda p, t: (jnp.cos(*p), t[0]), (ONES,)),
            AssertionError,
            "the value beside the derivative is not the function's",
        ),
        (
            lambda: check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0][:1]), (ONES,)),
            AssertionError,
            r"tangent at result is float32\[1\]; it should be float32\[3\]",
        ),
        (
            lambda: check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), jnp.bfloat16(1) * p[0]), (1.0,)),
            AssertionError,
            r"tangent at result is bfloat16\[\]",
        ),
        (
            lambda: check_jvp(jnp.sin, lambda p, t: (p, t[0]), (ONES,)),
            ValueError,
            "structure",
        ),
        (
            lambda: check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda c: (None,)), (ONES,)),
            AssertionError,
            r"cotangent at x is None; it should be float32\[3\]",
        ),
        (
            lambda: check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda c: c), (ONES,)),
            ValueError,
            "expected a tuple",
        ),
        (
            lambda: check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0]), (ONES,), err_msg="mine"),
            AssertionError,
            "^mine: the derivative is wrong",
        ),
    ],
)
def test_other_mistakes(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@hypothesis.given(
    factor=st.sampled_from([-2.0, 0.0, 1.0, 1.9, 2.0, 2.1, np.nan]),
    shape=st.sampled_from([(), (1,), (2, 3)]),
    mode=st.sampled_from(["fwd", "rev", "lin"]),
    wide=st.booleans(),
)
def test_a_rule_is_accepted_if_it_is_right(factor, shape, mode, wide):
    with namoo.enable_x64(wide):
        x = np.full(shape, 1.5, np.float64 if wide else np.float32)
        right = factor == 2
        try:
            check_grads(square(namoo, factor), (x,), 1, mode)
        except AssertionError:
            assert not right
        else:
            assert right
