"""The option `check_tracer_leaks`: nobody keeps a value of a transformation that is over."""

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.errors import UnexpectedTracerError

ONES = np.ones(2, np.float32)
KEPT: list = []


def keeps(x):
    KEPT.append(x * 2)
    return x


def scan(lib, f):
    return lib.lax.scan(lambda carry, x: (f(carry), x), 1.0, ONES)


USES = {
    "jit": lambda lib, f: lib.jit(f)(1.0),
    "vmap": lambda lib, f: lib.vmap(f)(ONES),
    "make_jaxpr": lambda lib, f: lib.make_jaxpr(f)(1.0),
    "eval_shape": lambda lib, f: lib.eval_shape(f, 1.0),
    "scan": scan,
    "cond": lambda lib, f: lib.lax.cond(True, f, f, 1.0),
    "while_loop": lambda lib, f: lib.lax.while_loop(lambda x: x < 3, lambda x: f(x) + 1, 1.0),
    "grad of checkpoint": lambda lib, f: lib.grad(lib.checkpoint(f))(1.0),
    "jit of grad": lambda lib, f: lib.jit(lib.grad(f))(1.0),
    "grad": lambda lib, f: lib.grad(f)(1.0),
    "jvp": lambda lib, f: lib.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda lib, f: lib.vjp(f, 1.0),
    "linearize": lambda lib, f: lib.linearize(f, 1.0),
}


def leaks(lib, use, f) -> bool:
    KEPT.clear()
    try:
        with lib.check_tracer_leaks(True):
            use(lib, f)
    except Exception as error:
        assert "Leaked trace" in str(error)
        return True
    finally:
        KEPT.clear()
    return False


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_leak_is_found_where_jax_finds_one(use):
    assert leaks(namoo, use, lambda x: keeps(x)) == leaks(jax, use, lambda x: keeps(x))


@namoo.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, x), lambda x, ct: (2 * ct,))


def in_a_cycle(x):
    """Keeps its argument in something that only refers to itself."""
    loop = [x]
    loop.append(loop)  # type: ignore[arg-type]
    return x


CLEAN = {
    **{f"{name}, a cycle": (use, in_a_cycle) for name, use in USES.items()},
    "nested jit": (lambda lib, f: lib.jit(lambda x: lib.jit(f)(x) + 1)(1.0), jnp.sin),
    "a constant of an outer trace": (
        lambda lib, f: lib.jit(lambda x: lib.vmap(lambda y: f(x) * y)(ONES))(1.0),
        jnp.sin,
    ),
    "gradient of a scan": (
        lambda lib, f: lib.jit(lib.grad(lambda x: scan(lib, lambda c: f(c) * x)[0]))(1.0),
        jnp.sin,
    ),
    "vmap of a scan": (lambda lib, f: lib.vmap(lambda x: scan(lib, lambda c: c * x))(ONES), None),
    "custom_vjp": (lambda lib, f: lib.jit(lib.grad(f))(1.0), doubled),
    "hessian": (lambda lib, f: lib.jit(lib.hessian(f))(1.0), jnp.sin),
    "vmap of jit": (lambda lib, f: lib.vmap(lib.jit(f))(ONES), jnp.sin),
}


@pytest.mark.parametrize(("use", "f"), CLEAN.values(), ids=CLEAN)
def test_what_is_no_leak_is_not_found(use, f):
    assert not leaks(namoo, use, f)


class Holder:
    value = None


HOLDER = Holder()
TABLE: dict = {}


def in_a_closure():
    kept = None

    def f(x):
        nonlocal kept
        kept = x * 2
        return x

    return f


@pytest.mark.parametrize(
    ("f", "where"),
    [
        (keeps, "test_leaks.KEPT[0]"),
        (lambda x: (setattr(HOLDER, "value", x * 2), x)[1], "test_leaks.HOLDER.value"),
        (lambda x: (TABLE.update(h=(x * 2,)), x)[1], "test_leaks.TABLE['h'][0]"),
        (in_a_closure(), "a closure"),
    ],
)
def test_the_error_says_what_is_kept_and_where(f, where):
    try:
        with namoo.checking_leaks(), pytest.raises(UnexpectedTracerError) as error:
            namoo.jit(f)(1.0)
    finally:
        KEPT.clear()
        TABLE.clear()
        HOLDER.value = None
    text = str(error.value)
    assert f"JitTracer(~float32[]), kept in {where}\n" in text
    assert "it was computed by 'mul', and was created on line" in text and "test_leaks.py" in text


def test_nothing_is_looked_for_while_the_option_is_off():
    namoo.jit(lambda x: keeps(x))(1.0)
    KEPT.clear()
