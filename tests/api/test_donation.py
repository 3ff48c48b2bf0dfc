"""Donation: which arrays a compiled function takes, what it warns of, and what is left of them."""

import pickle
import warnings

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, fail_alike
from namoo.engines.base import sole_owner

# (function, arguments' shapes, options): arguments are float32 arrays of ones.
DIRECT = {
    "one": (lambda L, a: a + 1, [3], dict(donate_argnums=0)),
    "by name": (lambda L, a: a + 1, [3], dict(donate_argnames="a")),
    "smaller result": (lambda L, a: a.sum(), [3], dict(donate_argnums=0)),
    "two for one": (lambda L, a, b: a + b, [3, 3], dict(donate_argnums=(0, 1))),
    "two for two": (lambda L, a, b: (a + b, a * b), [3, 3], dict(donate_argnums=(0, 1))),
    "two, none used": (lambda L, a, b: (a + b).sum(), [3, 3], dict(donate_argnums=(0, 1))),
    "second of two": (lambda L, a, b: a * b, [3, 3], dict(donate_argnums=1)),
    "other type": (lambda L, a: a.astype("int32"), [3], dict(donate_argnums=0)),
    "other shape": (lambda L, a: a.T, [(3, 2)], dict(donate_argnums=0)),
    "fewer bytes": (lambda L, a: a.astype("int16"), [4], dict(donate_argnums=0)),
    "more elements": (lambda L, a: a.astype("int16").repeat(2), [4], dict(donate_argnums=0)),
    "part": (lambda L, a, b: (a[:2], b), [4, 8], dict(donate_argnums=0)),
    "itself": (lambda L, a: (a, a + 1), [3], dict(donate_argnums=0)),
    "empty": (lambda L, a: a + 1, [0], dict(donate_argnums=0)),
    "unused": (lambda L, a, b: a + 1, [3, 3], dict(donate_argnums=(0, 1))),
    "unused kept": (
        lambda L, a, b: b + 1,
        [3, 3],
        dict(donate_argnums=(0, 1), keep_unused=True),
    ),
    "static before": (
        lambda L, s, a: a + s,
        [2, 3],
        dict(static_argnums=0, donate_argnums=1),
    ),
    "loop": (
        lambda L, a: L.lax.fori_loop(0, 3, lambda i, c: c * 2, a),
        [3],
        dict(donate_argnums=0),
    ),
    "variadic": (lambda L, *a: a[1] + 1, [3, 3], dict(donate_argnums=1)),
}


def arrays(L, shapes, options):
    static = options.get("static_argnums")
    return [s if i == static else L.jnp.ones(s) for i, s in enumerate(shapes)]


def called(L, fun, shapes, options, ahead):
    """Which arguments are gone, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        args = arrays(L, shapes, options)
        f = L.jit(lambda *a: fun(L, *a), **options) if "donate_argnames" not in options else None
        f = f or L.jit(lambda a: fun(L, a), **options)
        if ahead:
            infos = f.lower(*args).args_info
            f, args = f.lower(*args).compile(), [x for x in args if not isinstance(x, int)]
            donated = [i.donated for i in infos[0]]
        else:
            donated = None
        f(*args)
        gone = [x.is_deleted() for x in args if not isinstance(x, int)]
    texts = {str(w.message).split(".")[0] for w in caught if w.category is UserWarning}
    return gone, donated, texts


@pytest.mark.parametrize("ahead", [False, True], ids=["called", "ahead of time"])
@pytest.mark.parametrize("name", DIRECT)
def test_what_is_taken_and_what_is_warned_of(name, ahead):
    fun, shapes, options = DIRECT[name]
    assert called(OURS, fun, shapes, options, ahead) == called(THEIRS, fun, shapes, options, ahead)


def gone(x):
    return [leaf.is_deleted() for leaf in namoo.tree_util.tree_leaves(x)]


def tree(L):
    x = {"a": L.jnp.ones(3), "b": [L.jnp.ones(2)]}
    L.jit(lambda t: L.tree.map(lambda a: a + 1, t), donate_argnums=0)(x)
    return [x["a"].is_deleted(), x["b"][0].is_deleted()]


def keyword(L):
    x, y = L.jnp.ones(3), L.jnp.ones(3)
    L.jit(lambda a: a + 1, donate_argnums=0)(a=x)
    L.jit(lambda *, a: a + 1, donate_argnames="a")(a=y)
    return [x.is_deleted(), y.is_deleted()]


def any_keyword(L):
    x = L.jnp.ones(3)
    L.jit(lambda **kw: kw["q"] + 1, donate_argnames="q")(q=x)
    return x.is_deleted()


def inner(L):
    x, f = L.jnp.ones(3), L.jit(lambda a: a + 1, donate_argnums=0)
    L.jit(lambda a: f(a))(x)
    return x.is_deleted()


def not_compiled(L):
    x = L.jnp.ones(3)
    with L.disable_jit():
        L.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x.is_deleted()


def failed_trace(L):
    x = L.jnp.ones(3)
    try:
        L.jit(lambda a: a.no_such_thing, donate_argnums=0)(x)
    except AttributeError:
        return x.is_deleted()


def numpy_argument(L):
    x = np.ones(3, np.float32)
    y = L.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x.tolist(), y.tolist()


def keys(L):
    k = L.random.key(0)
    L.jit(lambda k: k, donate_argnums=0)(k)
    return k.is_deleted()


def mapped(L):
    x, y = L.jnp.ones((1, 3)), L.jnp.ones((1, 3))
    L.pmap(lambda a: a + 1, donate_argnums=0)(x)
    L.pmap(lambda n, a: a + n, static_broadcasted_argnums=0, donate_argnums=1)(1, y)
    return [x.is_deleted(), y.is_deleted()]


def put(L):
    x = L.jnp.ones(3)
    L.device_put(x, donate=True)
    return x.is_deleted()


def warned_once(L):
    f = L.jit(lambda a: a.sum(), donate_argnums=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (3, 3, 4):
            f(L.jnp.ones(n))
    return len(caught)


@pytest.mark.parametrize(
    "program",
    [
        tree,
        keyword,
        any_keyword,
        inner,
        not_compiled,
        failed_trace,
        numpy_argument,
        keys,
        mapped,
        put,
        warned_once,
    ],
    ids=lambda f: f.__name__,
)
def test_donation_in_its_surroundings(program):
    assert program(OURS) == program(THEIRS)


REFUSED = {
    "static and donated": lambda L: L.jit(lambda a, b: a, static_argnums=0, donate_argnums=0),
    "static by name": lambda L: L.jit(lambda a, b: a, static_argnames="a", donate_argnums=0),
    "number": lambda L: L.jit(lambda a, b: a, donate_argnums=5),
    "negative number": lambda L: L.jit(lambda a, b: a, donate_argnums=-5),
    "name": lambda L: L.jit(lambda a, b: a, donate_argnames="c"),
    "type of name": lambda L: L.jit(lambda a, b: a, donate_argnames=3),
    "type of number": lambda L: L.jit(lambda a, b: a, donate_argnums="a"),
    "pmap": lambda L: L.pmap(lambda a: a, static_broadcasted_argnums=0, donate_argnums=0),
    "given twice": lambda L: (
        lambda x: L.jit(lambda a, b: (a * b, a + b), donate_argnums=(0, 1))(x, x)
    )(L.jnp.ones(3)),
    "given and used": lambda L: (lambda x: L.jit(lambda a, b: a * b, donate_argnums=0)(x, x))(
        L.jnp.ones(3)
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    # JAX's error of the runtime is namoo's class of that name.
    own = namoo.errors.JaxRuntimeError if name.startswith("given") else None
    assert fail_alike(REFUSED[name], own)


def deleted(L):
    x = L.jnp.ones(3)
    x.delete()
    return x


USES = {
    "add": lambda L, x: x + 1,
    "from the right": lambda L, x: 1 + x,
    "function": lambda L, x: L.jnp.exp(x),
    "matmul": lambda L, x: x @ x,
    "sum": lambda L, x: x.sum(),
    "index": lambda L, x: x[0],
    "update": lambda L, x: x.at[0].set(1),
    "iterate": lambda L, x: list(x),
    "repr": lambda L, x: repr(x),
    "str": lambda L, x: str(x),
    "format": lambda L, x: f"{x}",
    "numpy": lambda L, x: np.asarray(x),
    "numpy function": lambda L, x: np.exp(x),
    "tolist": lambda L, x: x.tolist(),
    "item": lambda L, x: x.item(),
    "copy": lambda L, x: x.copy(),
    "pickle": lambda L, x: pickle.dumps(x),
    "dlpack": lambda L, x: np.from_dlpack(x),
    "device_get": lambda L, x: L.device_get(x),
    "jit": lambda L, x: L.jit(lambda a: a * 2)(x),
    "closure": lambda L, x: L.jit(lambda a: a + x)(1.0),
    "grad": lambda L, x: L.grad(lambda a: (a * a).sum())(x),
    "vmap": lambda L, x: L.vmap(lambda a: a * 2)(x),
}


@pytest.mark.parametrize("name", USES)
def test_uses_of_a_deleted_array_say_so(name):
    message = fail_alike(lambda L: USES[name](L, deleted(L)), RuntimeError)
    assert message.startswith("Array has been deleted with shape=float32[3]")


@pytest.mark.parametrize("L", [OURS, THEIRS], ids=["namoo", "jax"])
def test_a_deleted_array_keeps_its_type(L):
    x = deleted(L)
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)) == ((3,), "float32", 1, 3, 12, 3)
    assert not x.weak_type
    x.delete()
    assert x.is_deleted()
    assert L.jit(lambda a: 2)(x) == 2


def test_a_function_that_donates_serves_many_calls():
    step = namoo.jit(lambda w, x: (w - 0.5 * x, w.sum()), donate_argnums=0)
    w = jnp.ones(4)
    for _ in range(3):
        w, total = step(w, jnp.ones(4))
    assert w.tolist() == [-0.5] * 4 and float(total) == 0.0
    assert step._cache_size() == 1


def test_the_engine_is_told_and_owns_what_it_is_given(monkeypatch):
    from namoo.transforms.program import ProgramPrimitive

    seen = []
    compiler = ProgramPrimitive.compiler

    def recording(closed, options=None):
        run = compiler(closed, options)

        def call(values):
            seen.append((options, [sole_owner(values, i) for i in range(len(values))]))
            return run(values)

        return call

    monkeypatch.setattr(ProgramPrimitive, "compiler", staticmethod(recording))
    f = namoo.jit(lambda a, b, c: (a.sum(), b * 2, c + 1), donate_argnums=(1, 2))
    x, y, z = jnp.arange(2.0) + 1, jnp.arange(3.0) + 1, jnp.arange(4.0) + 1
    view = np.asarray(z)
    f(x, y, z)
    assert seen == [({"aliases": {1: 1, 2: 2}}, [False, True, False])]
    assert view.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_the_same_function_without_donation_is_another():
    def f(x):
        return x * 3

    x = jnp.ones(3)
    namoo.jit(f, donate_argnums=0)(jnp.ones(3))
    namoo.jit(f)(x)
    assert not x.is_deleted()


def test_negative_numbers_count_from_the_end():
    x, y = jnp.ones(3), jnp.ones(3)
    namoo.jit(lambda a, b: a * b, donate_argnums=-1)(x, y)
    assert [x.is_deleted(), y.is_deleted()] == [False, True]
