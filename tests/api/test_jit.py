"""`jit`: how often functions are traced, why, and what counts as the same function."""

import dataclasses
import dis
import enum
import functools
import gc
import inspect
import operator
import pathlib
import re
import threading
import types
import weakref
from typing import Any

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.api import jit as jit_module
from namoo.memo.identity import _global_names


class Counter:
    """Counts how often a function's Python code runs."""

    def __init__(self):
        self.count = 0

    def __call__(self, fun):
        @functools.wraps(fun)
        def counted(*args, **kwargs):
            self.count += 1
            return fun(*args, **kwargs)

        return counted


@pytest.fixture
def traces():
    return Counter()


def test_a_function_is_traced_once_for_a_kind_of_arguments(traces):
    f = namoo.jit(traces(lambda x, y: x * y))
    for i in range(5):
        assert f(jnp.full(3, i), jnp.arange(3)).tolist() == [0, i, 2 * i]
    assert traces.count == 1


CAUSES = {
    "shape": (
        lambda: [(jnp.zeros(2),), (jnp.zeros(3),)],
        "different input types: at x, now f32[3] and before f32[2]",
    ),
    "dtype": (
        lambda: [(jnp.zeros(2),), (jnp.zeros(2, "int32"),)],
        "different input types: at x, now i32[2] and before f32[2]",
    ),
    "weak type": (
        lambda: [(1.0,), (jnp.float32(1.0),)],
        "different input types: at x, now f32[]{weak_type=False} and before f32[]{weak_type=True} "
        "(a Python number is weak, an array is not)",
    ),
    "tree": (
        lambda: [({"a": 1.0},), ({"a": 1.0, "b": 2.0},)],
        "different input pytree, at x: unexpected key 'b'",
    ),
    "static leaf": (
        lambda: [({"a": 1.0, "act": "relu"},), ({"a": 1.0, "act": "tanh"},)],
        "different input types: at x['act'], now the static value 'tanh' and before the static "
        "value 'relu'",
    ),
    "path": (
        lambda: [({"enc": [jnp.zeros((8, 4))]},), ({"enc": [jnp.zeros((9, 4))]},)],
        "different input types: at x['enc'][0], now f32[9,4] and before f32[8,4]",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_explain_names_the_argument_and_what_changed(cause):
    calls, reason = CAUSES[cause]
    f = namoo.jit(lambda x: namoo.tree.leaves(x)[0])
    f.clear_cache()
    for args in calls():
        f(*args)
    first, second = f.explain()
    assert first.reasons == ()
    assert second.reasons == (reason,)
    assert second.source.file == __file__
    assert "traced 2 times" in str(f.explain())


def test_explain_names_static_arguments_and_settings():
    f = namoo.jit(lambda x, n: x * n, static_argnames="n")
    f(1.0, n=2)
    f(1.0, n=3)
    with namoo.numpy_rank_promotion("warn"):
        f(1.0, n=3)
    assert [r.reasons for r in f.explain()] == [
        (),
        ("different value of static args: at n, now 3 and before 2",),
        ("different tracing context: at numpy_rank_promotion, now warn and before allow",),
    ]


def test_explain_compares_with_the_nearest_earlier_call():
    f = namoo.jit(lambda x, y: (x, y))
    f(jnp.zeros(2), jnp.zeros(2))
    f(jnp.zeros((5, 5)), jnp.zeros((6, 6)))
    f(jnp.zeros((5, 5)), jnp.zeros(2))
    assert len(f.explain()[2].reasons) == 1
    assert ", because\n  different input types: at y, now f32[2] and before f32[6,6]" in repr(
        f.explain()[2]
    )


def test_explain_compares_with_few_earlier_calls_however_many_there_were():
    f = namoo.jit(lambda x: x + 1)
    for n in range(40):
        f.trace(jnp.zeros(n))
    assert len(f._cache.signatures) == 16
    assert [len(r.reasons) for r in f.explain()] == [0, *[1] * 39]


SCALE = 3.0
NOT_A_FUNCTION: Any = "f"


class Model:
    def __init__(self, scale):
        self.scale = scale

    def apply(self, x):
        Model.traces += 1
        return self.scale * x

    traces = 0


def test_bound_methods_are_the_same_function_while_the_object_is():
    Model.traces = 0
    model = Model(2.0)
    assert float(namoo.jit(model.apply)(3.0)) == 6.0
    assert float(namoo.jit(model.apply)(3.0)) == 6.0
    assert Model.traces == 1
    model.scale = 5.0
    assert float(namoo.jit(model.apply)(3.0)) == 15.0
    assert float(namoo.jit(Model(5.0).apply)(3.0)) == 15.0


def test_partials_are_the_same_function_by_their_parts():
    make = lambda factor: namoo.jit(functools.partial(_plain, factor=factor))  # noqa: E731
    a, b, c = make(2.0), make(2.0), make(3.0)
    assert [float(f(1.0)) for f in (a, b, c)] == [2.0, 2.0, 3.0]
    assert a._cache is b._cache and a._cache is not c._cache


def _plain(x, factor):
    return factor * x


def test_equal_lambdas_share_their_programs_and_others_do_not():
    equal = [namoo.jit(lambda x: x + 1) for _ in range(3)]
    assert [int(f(1)) for f in equal] == [2, 2, 2]
    assert len({id(f._cache) for f in equal}) == 1
    closures = [namoo.jit(lambda x, n=n: x + n) for n in range(3)]
    assert [int(f(1)) for f in closures] == [1, 2, 3]


def with_jvp(k):
    f = namoo.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda xs, ts: (f(*xs), k * ts[0]))
    return namoo.grad(f)


def with_vjp(k):
    f = namoo.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (f(x), ()), lambda _, ct: (k * ct,))
    return namoo.grad(f)


def with_vmap_rule(k):
    f = namoo.custom_batching.custom_vmap(lambda x: jnp.sin(x))
    f.def_vmap(lambda size, batched, x: (k * jnp.ones_like(x), True))
    return lambda x: namoo.vmap(f)(x[None])[0]


def with_static_argument(k):
    f = namoo.jit(lambda x, k: k * jnp.ones_like(x), static_argnums=1 if k == 2.0 else ())
    return lambda x: f(x, k)


@pytest.mark.parametrize("make", [with_jvp, with_vjp, with_vmap_rule, with_static_argument])
def test_functions_with_other_rules_or_options_are_other_functions(make):
    def run(f):
        return namoo.jit(lambda x: f(x))(jnp.float32(0.5))

    assert [run(make(k)) for k in (2.0, 3.0, 2.0, 3.0)] == [2.0, 3.0, 2.0, 3.0]


def test_a_rule_that_is_set_later_is_the_one_that_counts():
    def run(k):
        f = namoo.custom_jvp(lambda x: jnp.sin(x))
        g = namoo.jit(lambda x: namoo.jvp(f, (x,), (x,))[1])
        f.defjvp(lambda xs, ts: (f(*xs), k * ts[0]))
        return g(1.0)

    assert (run(2.0), run(3.0)) == (2.0, 3.0)


def test_functions_that_read_what_may_change_are_traced_anew():
    settings = {"n": 1}
    results = []
    for n in (1, 2):
        settings["n"] = n
        results.append(int(namoo.jit(lambda x: x * settings["n"])(10)))
    assert results == [10, 20]


def _codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


MANY_NAMES = "def f():\n    return [" + ", ".join(f"name{i}, x.y{i}()" for i in range(700)) + "]"


@pytest.mark.parametrize("text", [inspect.getsource(inspect), inspect.getsource(dis), MANY_NAMES])
def test_the_globals_of_a_function_are_those_that_its_code_reads(text):
    for code in _codes(compile(text, "text", "exec")):
        read = {
            i.argval
            for inner in _codes(code)
            for i in dis.get_instructions(inner)
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
        assert _global_names(code) == tuple(sorted(read))


def test_a_changed_global_gives_a_new_function():
    global SCALE
    first = float(namoo.jit(lambda x: SCALE * x)(1.0))
    SCALE = 4.0
    second = float(namoo.jit(lambda x: SCALE * x)(1.0))
    SCALE = 3.0
    assert (first, second) == (3.0, 4.0)


def test_static_arguments_by_number_and_by_name_are_one():
    calls = []

    @functools.partial(namoo.jit, static_argnums=1)
    def f(x, n):
        calls.append(n)
        return sum(x for _ in range(n))

    assert float(f(2.0, 3)) == float(f(2.0, n=3)) == 6.0
    assert calls[0] == 3
    g = namoo.jit(lambda x, n: x * n, static_argnames=["n"])
    assert float(g(2.0, 3)) == 6.0


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: namoo.jit(NOT_A_FUNCTION), TypeError, "expects a function"),
        (lambda: namoo.jit(lambda x: x, static_argnames="y"), ValueError, "invalid argname 'y'"),
        (lambda: namoo.jit(lambda x: x, static_argnums=4), ValueError, "static_argnums=(4,)"),
        (
            lambda: namoo.jit(lambda x, n: x, static_argnums=1)(1, [2]),
            ValueError,
            "Non-hashable static arguments",
        ),
        (
            lambda: namoo.jit(lambda x, n: x, static_argnums=1)(1, jnp.zeros(2)),
            ValueError,
            "is an array",
        ),
        (lambda: namoo.jit(lambda x: x)({"cfg": {1, 2}}), TypeError, "at path x['cfg']"),
        (lambda: namoo.jit(lambda x: x)(2**40), OverflowError, "1099511627776"),
    ],
)
def test_bad_use_is_refused_with_the_reason(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_trees_may_hold_functions_and_strings():
    traced = []

    @namoo.jit
    def apply(layer, x):
        traced.append(1)
        return layer["act"](layer["w"] * x), layer

    for w in (1.0, 2.0):
        y, layer = apply({"w": jnp.float32(w), "act": jnp.tanh, "name": "dense"}, 0.5)
        assert np.isclose(y, np.tanh(w * 0.5))
    assert layer["name"] == "dense" and layer["act"] is jnp.tanh
    assert len(traced) == 1


class Settings:
    """Mutable, and no registered tree."""

    def __init__(self, scale):
        self.scale = scale

    def times(self, x):
        return x * self.scale

    @namoo.jit
    def compiled_times(self, x):
        return x * self.scale


@dataclasses.dataclass
class Comparable:
    """Equal by value, so that it has no hash."""

    scale: float


@dataclasses.dataclass(frozen=True, eq=False)
class FrozenHolder:
    value: object


class Valued:
    """Mutable, but its hash and its equality say what it is."""

    def __init__(self, scale):
        self.scale = scale

    def __hash__(self):
        return hash(self.scale)

    def __eq__(self, other):
        return isinstance(other, Valued) and self.scale == other.scale


class NoState:
    __slots__ = ()


class Mode(enum.Enum):
    FAST = 1


X = jnp.ones(3)
# what refuses an object, and where the message says that it is
REFUSALS = {
    "jit": (lambda o: namoo.jit(lambda x, cfg: x)(X, {"a": o}), "at path cfg['a']"),
    "jit, by name": (lambda o: namoo.jit(lambda x, *, cfg: x)(X, cfg=[o]), "at path cfg[0]"),
    "jit, result": (lambda o: namoo.jit(lambda x: {"y": x, "o": o})(X), "component ['o']"),
    "lower": (lambda o: namoo.jit(lambda x, cfg: x).lower(X, o), "at path cfg"),
    "grad": (lambda o: namoo.grad(lambda x, p: 1.0, argnums=1)(X, [X, o]), "at path p[1]"),
    "grad, result": (lambda o: namoo.grad(lambda x: o)(X), "component root"),
    "vjp": (lambda o: namoo.vjp(lambda x, p: x, X, o), "at path p"),
    "vjp, result": (lambda o: namoo.vjp(lambda x: (x, o), X), "component [1]"),
    "jvp": (lambda o: namoo.jvp(lambda p: X, (o,), (o,)), "at path p"),
    "linearize": (lambda o: namoo.linearize(lambda p: X, o), "at path p"),
    "vmap": (lambda o: namoo.vmap(lambda x, p: x)(X, o), "at path p"),
    "vmap, result": (lambda o: namoo.vmap(lambda x: (x, o), out_axes=(0, None))(X), "[1]"),
    "eval_shape": (lambda o: namoo.eval_shape(lambda x, p: x, X, o), "at path p"),
    "make_jaxpr": (lambda o: namoo.make_jaxpr(lambda x: (x, o))(X), "component [1]"),
    "pmap": (lambda o: namoo.pmap(lambda x, p: x)(X[:1], o), "at path p"),
    "remat": (lambda o: namoo.jit(namoo.checkpoint(lambda x, p: x))(X, o), "at path p"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_an_object_that_can_change_is_refused_by_its_path(case):
    call, where = REFUSALS[case]
    with pytest.raises(TypeError) as caught:
        call(Settings(2.0))
    message = str(caught.value)
    assert where in message and "test_jit.Settings'>" in message, message
    assert "not a valid JAX type" in message and len(message.splitlines()) <= 25
    for remedy in ("namoo.struct.dataclass", "namoo.Module", "register_dataclass(Settings)"):
        assert remedy in message
    assert ("result" in case or case == "make_jaxpr") != ("static_argnames=" in message)


class Labelled:
    """What pandas and xarray have; both are looked at by hand, as they are not installed here."""

    def to_numpy(self):
        return np.ones(2, np.float32)


class LabelledArrays:
    def to_dataarray(self):
        return Labelled()


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
@pytest.mark.parametrize("cls", [Labelled, LabelledArrays])
def test_labelled_arrays_are_refused_with_the_way_to_their_values(cls, transform):
    with pytest.raises(TypeError, match=f"{cls.__name__} is not a valid .*to_numpy()") as caught:
        getattr(namoo, transform)(lambda d: d)(cls())
    assert "at path d" in str(caught.value) and "struct.dataclass" not in str(caught.value)


CHANGEABLE = {
    "an object": Settings(2.0),
    "its method": Settings(2.0).times,
    "a partial of it": functools.partial(lambda o, x: x, Settings(2.0)),
    "a partial of an array": functools.partial(jnp.add, jnp.ones(2)),
    "without a hash": Comparable(2.0),
    "frozen around it": FrozenHolder(Settings(2.0)),
    "frozen around an array": FrozenHolder(jnp.ones(2)),
    "a set": {1, 2},
    "bytes that change": bytearray(b"a"),
    "a method of a list": [].append,
    "NumPy's generator": np.random.default_rng(0),
    "an iterator": iter([1, 2]),
    "a generator": (x for x in [1]),
}


@pytest.mark.parametrize("name", CHANGEABLE)
@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
def test_values_that_can_change_are_no_static_leaves(name, transform):
    value = CHANGEABLE[name]
    with pytest.raises(TypeError, match="not a valid JAX type|tree_util.Partial"):
        getattr(namoo, transform)(lambda p: p[0].sum())([X, value])


CONSTANTS = {
    "function": lambda x: x,
    "builtin": len,
    "ufunc": np.sin,
    "jitted": namoo.jit(lambda x: x),
    "custom rule": namoo.custom_jvp(lambda x: x),
    "method of a value": Valued(1.0).__eq__,
    "method of a text": "a".join,
    "partial": functools.partial(jnp.sum, axis=0),
    "cached": functools.lru_cache(lambda x: x),
    "class": Settings,
    "module": np,
    "text": "relu",
    "bytes": b"a",
    "enum": Mode.FAST,
    "dtype": np.dtype("int8"),
    "scalar type": jnp.float32,
    "key type": namoo.random.key(0).dtype,
    "slice": slice(0, 2),
    "range": range(3),
    "ellipsis": ...,
    "frozenset": frozenset([1]),
    "object": object(),
    "no state": NoState(),
    "hash of its own": Valued(1.0),
    "frozen": FrozenHolder("a"),
    "itemgetter": operator.itemgetter(0),
    "pattern": re.compile("a"),
    "path": pathlib.Path("a"),
    "structure": namoo.tree.structure([1]),
    "sharding": namoo.sharding.PartitionSpec("a"),
    "unconstrained": namoo.sharding.PartitionSpec.UNCONSTRAINED,
    "device": namoo.devices()[0],
    "mesh": namoo.make_mesh((1,), ("a",)),
    "program": namoo.make_jaxpr(lambda x: x)(1.0),
    "compiled": namoo.jit(lambda x: x).lower(1.0).compile(),
    "primitive": namoo.lax.sin_p,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_values_that_cannot_change_are_static_leaves(name):
    value, seen = CONSTANTS[name], []

    def f(p):
        seen.append(p[1])
        return p[0].sum()

    compiled = namoo.jit(lambda p: (f(p), p[1]))
    for _ in range(3):
        total, same = compiled([X, value])
        assert float(total) == 3.0 and same is value
    assert len(seen) == 1
    assert namoo.grad(f)([X, value])[1] is value
    assert namoo.vmap(lambda p: (p[0], p[1]))([X, value])[1] is value
    assert all(v is value for v in seen)


def test_objects_that_no_program_depends_on_pass_through():
    o = Settings(2.0)
    assert namoo.grad(lambda x, o: (x * o.scale).sum())(X, o).tolist() == [2.0] * 3
    assert namoo.grad(lambda x: (x.sum(), o), has_aux=True)(X)[1] is o
    assert namoo.vmap(lambda x, o: x * o.scale, in_axes=(0, None))(X, o).tolist() == [2.0] * 3
    assert namoo.jit(lambda x, o: x * o.scale, static_argnums=1)(X, o).tolist() == [2.0] * 3


def test_a_compiled_method_does_not_use_old_attributes():
    with pytest.raises(TypeError, match="at path self"):
        Settings(2.0).compiled_times(X)


@pytest.mark.parametrize("how", [{}, {"static_argnums": 0}, {"static_argnames": "o"}])
def test_a_change_of_an_object_with_a_hash_is_noticed(how):
    f = namoo.jit(lambda o, x: x * o.scale, **how)
    call = (lambda: f(o=o, x=X)) if "static_argnames" in how else (lambda: f(o, X))
    o = Valued(2.0)
    found = []
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        o.scale = scale
        found.append(float(call()[0]))
    assert found == [2.0, 2.0, 3.0, 3.0, 2.0]


def test_closures_over_tracers_are_not_remembered():
    def f(x):
        return namoo.jit(lambda y: x * y)(2.0)

    assert [float(namoo.grad(f)(v)) for v in (1.0, 5.0)] == [2.0, 2.0]
    assert namoo.vmap(f)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_nested_jit_is_one_equation_that_holds_a_program():
    inner = namoo.jit(lambda x: jnp.sin(x) + 1)
    jaxpr = namoo.make_jaxpr(lambda x: inner(x) * inner(x))(1.0)
    calls = [e for e in jaxpr.eqns if e.primitive.name == "jit"]
    assert len(calls) == 2
    assert calls[0].params["jaxpr"] is calls[1].params["jaxpr"]


def test_inline_writes_the_program_into_its_caller():
    inner = namoo.jit(lambda x: jnp.sin(x), inline=True)
    jaxpr = namoo.make_jaxpr(lambda x: inner(x))(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin"]


def test_decorated_methods_and_keyword_arguments():
    class Layer:
        def __init__(self, w):
            self.w = w

        @functools.partial(namoo.jit, static_argnums=0)
        def apply(self, x, *, bias=0.0):
            return self.w * x + bias

    assert float(Layer(2.0).apply(3.0, bias=1.0)) == 7.0


def test_ahead_of_time_stages():
    f = namoo.jit(lambda x, flag: {"y": x * 2 if flag else x}, static_argnames="flag")
    lowered = f.lower(namoo.ShapeDtypeStruct((3,), "float32"), flag=True)
    assert lowered.out_info == {"y": namoo.ShapeDtypeStruct((3,), "float32")}
    assert "mul" in lowered.as_text()
    compiled = f.lower(jnp.ones(3), flag=True).compile()
    assert compiled(jnp.arange(3.0))["y"].tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError, match="compiled with float32"):
        compiled(jnp.arange(4.0))
    with pytest.raises(TypeError, match="structure"):
        compiled(jnp.arange(3.0), jnp.arange(3.0))
    assert f.eval_shape(jnp.ones(3), flag=False)["y"].shape == (3,)
    assert f.trace(jnp.ones(3), flag=True).jaxpr.eqns[0].primitive.name == "mul"


def test_disable_jit_runs_python():
    seen = []

    @namoo.jit
    def f(x):
        seen.append(type(x).__name__)
        return lax.scan(lambda c, _: (c + x, seen.append(float(c))), 0.0, None, length=2)[0]

    with namoo.disable_jit():
        assert float(f(2.0)) == 4.0
    assert seen[1:] == [0.0, 2.0]


def test_clear_caches_traces_again(traces):
    f = namoo.jit(traces(lambda x: x))
    f(1.0)
    namoo.clear_caches()
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert traces.count == 3


def test_many_threads_may_call_one_function():
    f = namoo.jit(lambda x: jnp.sum(namoo.vmap(jnp.sin)(x)) * 2)
    x = jnp.arange(8.0)
    expected = float(f(x))
    results = []

    def work():
        for _ in range(20):
            results.append(float(f(x)))
            results.append(float(namoo.grad(lambda y: y**2)(3.0)) - 6.0 + expected)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [expected] * 320


def test_programs_of_all_functions_are_bounded(monkeypatch):
    """Those that were used last are kept."""
    monkeypatch.setattr("namoo.api.jit._PROGRAMS_LIMIT", 6)
    f, g = namoo.jit(lambda x: x), namoo.jit(lambda x: x + 1)
    g(np.zeros(3))
    for n in range(12):
        f(jnp.zeros(n))
        assert g._cache_size() == 1
        g.lower(np.zeros(3))  # a use that C++ does not see
    assert f._cache_size() == 5
    for n in range(8):
        g(jnp.zeros(n))
    assert (f._cache_size(), g._cache_size()) == (0, 6)


@pytest.mark.parametrize("fun", [jnp.add, jnp.maximum, jnp.logaddexp])
def test_a_callable_object_keeps_its_attributes_to_itself(fun):
    x = jnp.arange(3.0)
    assert (namoo.jit(fun)(x, x) == fun(x, x)).all()


def test_attributes_of_a_function_are_there_but_hide_no_method():
    def double(x):
        return 2 * x

    double.note, double._call = "twice", None
    assert namoo.jit(double).note == "twice" and namoo.jit(double)(3) == 6


@pytest.mark.parametrize("number", [1, 2.5, 1j, True], ids=repr)
def test_a_number_and_an_array_of_its_weak_type_are_one_trace(number):
    count = 0

    @namoo.jit
    def f(x):
        nonlocal count
        count += 1
        return x

    results = [f(x) for x in (number, jnp.asarray(number), number, jnp.asarray(number))]
    assert count == 1 and all(r.weak_type is (number is not True) for r in results)
    f(jnp.asarray(number)[None])
    assert count == 2


def test_static_arguments_of_another_type_are_other_programs():
    f = namoo.jit(lambda n: n, static_argnums=0)
    for _ in range(2):
        for n in (1, True, 1.0):
            assert f(n).dtype == jnp.asarray(n).dtype


def test_no_tracing_and_no_execution_are_obeyed():
    f = namoo.jit(lambda x: x + 1)
    f(jnp.ones(2))
    with namoo.no_tracing():
        f(jnp.ones(2))
        with pytest.raises(RuntimeError, match="re-tracing function <lambda>.*'no_tracing' is set"):
            f(jnp.ones(3))
    with namoo.no_execution():
        with pytest.raises(RuntimeError, match=r"execute function jit\(<lambda>\).*no_execution"):
            f(jnp.ones(2))
        assert f.lower(jnp.ones(2)).out_info.shape == (2,)
    assert f(jnp.ones(2)).tolist() == [2, 2]


def test_user_contexts_are_part_of_the_cache_key(traces):
    mode, other = namoo.make_user_context("a"), namoo.make_user_context()
    f = namoo.jit(traces(lambda x: x))
    for _ in range(2):
        f(1.0)
        with mode("b"):
            f(1.0)
            with other(1):
                f(1.0)
                assert (mode.value, other.value) == ("b", 1)
            f(1.0)
    assert traces.count == 3
    assert (mode.value, other.value) == ("a", None)
    mode.set_global("c")
    f(1.0)
    assert traces.count == 4 and mode.get_global() == mode.value == "c"


def test_stages_of_jax_are_accepted():
    lowered = namoo.jit(lambda x: x + 4).trace(1.0).lower(lowering_platforms=("tpu",))
    assert lowered.cost_analysis() == lowered.compile().cost_analysis()


def test_a_traced_value_has_no_sharding():
    def f(x):
        assert not hasattr(x, "sharding")
        return x

    namoo.jit(f)(1.0)
    assert hasattr(jnp.ones(2), "sharding")


def test_print_environment_info(capsys):
    text = namoo.print_environment_info(return_string=True)
    assert text is not None and f"numpy:  {np.__version__}" in text
    assert not capsys.readouterr().out
    assert namoo.print_environment_info() is None
    assert "process_count: 1" in capsys.readouterr().out


def test_unknown_compiler_options_are_refused():
    f = namoo.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": True})
    assert f(1.0) == 1
    for make in (
        lambda options: namoo.jit(lambda x: x, compiler_options=options),
        lambda options: f.lower(1.0).compile(compiler_options=options),
    ):
        with pytest.raises(namoo.errors.JaxRuntimeError, match="No such compile option: 'fast'"):
            make({"fast": True})


def test_functions_that_are_gone_keep_few_bytes_of_arrays_alive(monkeypatch):
    monkeypatch.setattr(jit_module, "_SHARED_BYTES", 4000)
    alive = []

    def call(i):
        captured = jnp.full(250, float(i))
        alive.append(weakref.ref(captured))
        return namoo.jit(lambda x: x + captured)(1.0)

    for i in range(20):
        assert call(i)[0] == i + 1
    gc.collect()
    assert sum(ref() is not None for ref in alive) <= 4


def test_make_jaxpr_is_part_of_the_name():
    def f(x):
        return x

    assert namoo.make_jaxpr(f).__name__ == "make_jaxpr(f)"
    assert namoo.make_jaxpr(f).__qualname__ == f"make_jaxpr({f.__qualname__})"
    assert namoo.make_jaxpr(functools.partial(f)).__name__ == "make_jaxpr(f)"


def test_a_function_over_a_deleted_array_does_not_disturb_others():
    gone, kept = jnp.ones(3), jnp.arange(3.0)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        namoo.jit(lambda x: x + gone)(1.0)
    assert namoo.jit(lambda x: x + kept)(1.0).tolist() == [1.0, 2.0, 3.0]


def test_attributes_of_functions_are_part_of_what_they_do():
    def f(x):
        return x * f.scale

    for lib in (namoo, jax):
        for scale in (1.0, 2.0):
            f.scale = scale
            assert lib.jit(lambda x: f(x))(3.0) == 3 * scale
