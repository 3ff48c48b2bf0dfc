"""JAX's key phrases are in the messages: programs, tests and tutorials look for them."""

import logging
from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax


class Nameless:
    """A callable without a signature."""

    @property
    def __signature__(self):
        raise TypeError("none")

    def __call__(self, *args):
        return args[0]


class Unprintable:
    def __call__(self, x):
        return x

    def __repr__(self):
        raise ValueError("no text")


def numbers():
    yield 1


def compiled(x):
    return namoo.jit(lambda y: y + 1).lower(x).compile()


NUMBER: Any = 3
x2, x3 = jnp.ones(2), jnp.ones(3)
float0 = np.zeros((), namoo.dtypes.float0)

CASES = {
    "jit of a number": (lambda: namoo.jit(NUMBER), TypeError, "Expected a callable value"),
    "jit of a generator": (
        lambda: namoo.jit(numbers),
        TypeError,
        "Expected a function, got a generator function",
    ),
    "jit of a staticmethod": (
        lambda: namoo.jit(staticmethod(jnp.sin)),
        TypeError,
        "staticmethod arguments are not supported",
    ),
    "static list": (
        lambda: namoo.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
        "Non-hashable static arguments are not supported",
    ),
    "static and donated name": (
        lambda: namoo.jit(lambda x: x, static_argnames="x", donate_argnames="x"),
        ValueError,
        "static_argnames and donate_argnames cannot intersect",
    ),
    "names without a signature": (
        lambda: namoo.jit(Nameless(), static_argnames="n"),
        ValueError,
        "Pass static_argnums instead of static_argnames.",
    ),
    "name of a positional-only argument": (
        lambda: namoo.jit(lambda x, /, y: x, static_argnames="x"),
        ValueError,
        "given by position only",
    ),
    "name of the star argument": (
        lambda: namoo.jit(lambda *rest, y=0: y, donate_argnames="rest"),
        ValueError,
        "given by position only",
    ),
    "compiled, other structure": (
        lambda: compiled(x2)([x2]),
        TypeError,
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "compiled, other type": (
        lambda: compiled(x2)(jnp.arange(2)),
        TypeError,
        "The mismatches are:\nArgument 'y' compiled with float32[2] and called with int32[2]",
    ),
    "compiled under vmap": (
        lambda: namoo.vmap(compiled(1.0))(x2),
        TypeError,
        "lowered and compiled for a particular signature. Detected argument of type BatchTracer",
    ),
    "jvp of a number": (
        lambda: namoo.jvp(jnp.sin, NUMBER, (1.0,)),
        TypeError,
        "arguments to jax.jvp must be tuples or lists; found int and tuple.",
    ),
    "jvp, structure": (
        lambda: namoo.jvp(jnp.sin, (1.0,), ()),
        TypeError,
        "primal and tangent arguments to jax.jvp must have the same tree structure",
    ),
    "jvp, dtype": (
        lambda: namoo.jvp(jnp.sin, (np.float16(1),), (np.float32(1),)),
        TypeError,
        "primal and tangent arguments to jax.jvp do not match.",
    ),
    "jvp, shape": (
        lambda: namoo.jvp(jnp.sin, (x2,), (x3,)),
        ValueError,
        "jvp called with different primal and tangent shapes",
    ),
    "vjp, structure": (
        lambda: namoo.vjp(jnp.sin, 1.0)[1]((1.0, 1.0)),
        ValueError,
        "unexpected tree structure",
    ),
    "vjp, two arguments": (
        lambda: namoo.vjp(jnp.sin, 1.0)[1](1.0, 1.0),
        TypeError,
        "applied to sin was called with 2 arguments",
    ),
    "linear_transpose, structure": (
        lambda: namoo.linear_transpose(lambda x: [x, x], 1.0)(1.0),
        TypeError,
        "cotangent tree does not match",
    ),
    "grad of an integer": (
        lambda: namoo.grad(lambda x: x)(3),
        TypeError,
        "(input dtype that is a sub-dtype of np.inexact), but got int32",
    ),
    "holomorphic grad of a real number": (
        lambda: namoo.grad(lambda x: x, holomorphic=True)(1.0),
        TypeError,
        "grad with holomorphic=True requires inputs with complex dtype, but got float32",
    ),
    "jacfwd of a complex number": (
        lambda: namoo.jacfwd(lambda x: x)(1j),
        TypeError,
        "(input dtype that is a sub-dtype of np.floating), but got complex64",
    ),
    "has_aux": (
        lambda: namoo.grad(lambda x: x, has_aux=True)(1.0),
        TypeError,
        "two-element tuple",
    ),
    "vmap, two sizes": (
        lambda: namoo.vmap(lambda x, y: x)(x2, y=x3),
        ValueError,
        "  * one axis had size 2: axis 0 of argument x of type float32[2];\n"
        "  * one axis had size 3: axis 0 of kwargs['y'] of type float32[3]",
    ),
    "vmap, most axes": (
        lambda: namoo.vmap(lambda x, y, z: x)(x2, x3, x2),
        ValueError,
        "  * most axes (2 of them) had size 2, e.g. axis 0 of argument x of type float32[2];\n"
        "  * one axis had size 3: axis 0 of argument y of type float32[3]",
    ),
    "vmap, axis_size": (
        lambda: namoo.vmap(lambda x: x, axis_size=2)(x3),
        ValueError,
        "  * the `axis_size` argument was 2;\n  * one axis had size 3: axis 0 of argument x",
    ),
    "vmap, too few axes": (
        lambda: namoo.vmap(lambda x: x, in_axes=1)(x2),
        ValueError,
        "should be at least 2, but is only 1 (its shape is (2,))",
    ),
    "vmap of nothing": (
        lambda: namoo.vmap(lambda x: x)({}),
        ValueError,
        "must be passed at least one argument containing an array or axis_size must be specified, "
        "got empty *args=({},) and **kwargs={}",
    ),
    "vmap, out_axes=None": (
        lambda: namoo.vmap(lambda x: x, out_axes=None, axis_name="rows")(x2),
        ValueError,
        "vmap has mapped output (axis_name=rows) but out_axes is None",
    ),
    "vmap, no prefix": (
        lambda: namoo.vmap(lambda x: x, in_axes=([0],))(x2),
        ValueError,
        "must be a tree prefix of the corresponding value; ",
    ),
    "device_put, no prefix": (
        lambda: namoo.device_put({"a": x2, "b": x2}, {"a": [None, None], "b": (None, None)}),
        ValueError,
        "Mismatch details (2 found)",
    ),
    "device_put on a string": (
        lambda: namoo.device_put(x2, "here"),
        ValueError,
        "Received invalid value",
    ),
    "pmap of nothing": (
        lambda: namoo.pmap(lambda x: x)({}),
        ValueError,
        "pmap requires at least one argument with a mapped axis.",
    ),
    "pmap, static argument by name": (
        lambda: namoo.pmap(lambda a, b: a, static_broadcasted_argnums=(1,))(x2, b=1),
        ValueError,
        "has static_broadcasted_argnums=(1,) but was called with only 1 positional argument.",
    ),
    "mesh": (
        lambda: namoo.sharding.Mesh(namoo.devices()[:1], ("x", "y")),
        ValueError,
        "ndim of its first argument",
    ),
    "float of a traced value": (
        lambda: namoo.jit(lambda x: float(x))(1.0),
        TypeError,
        "try using `x.astype(float)`",
    ),
    "float of a traced vector": (
        lambda: namoo.jit(lambda x: float(x))(x2),
        TypeError,
        "Only scalar arrays can be converted to Python scalars.",
    ),
    "index of a traced vector": (
        lambda: namoo.jit(lambda x: range(x))(jnp.arange(2)),
        TypeError,
        "Only integer scalar arrays can be converted to a scalar index.",
    ),
    "float0": (
        lambda: lax.add(float0, jnp.ones(())),
        TypeError,
        "float0s do not support any operations by design",
    ),
    "text": (lambda: lax.add(1.0, np.array("text")), TypeError, "is not a valid JAX type"),
    "product": (
        lambda: jnp.dot(x2, x3),
        TypeError,
        "dot_general requires contracting dimensions to have the same shape, got (2,) and (3,).",
    ),
    "shape": (
        lambda: namoo.ShapeDtypeStruct(4, "float32"),
        TypeError,
        "'int' object is not iterable",
    ),
    "integer that does not fit": (
        lambda: namoo.jit(lambda x: x["a"])({"a": 2**40}),
        OverflowError,
        "An overflow was encountered while parsing an argument to a jitted computation, whose "
        "argument path is x['a'].",
    ),
    "axis of a result": (
        lambda: namoo.vmap(lambda x: x, out_axes=-3)(x2),
        ValueError,
        "axis -3 is out of bounds",
    ),
    "shape that is traced": (
        lambda: namoo.jit(lambda n: jnp.zeros((2, n)))(3),
        TypeError,
        "This concrete value was not available in Python because it depends on the value of the "
        "argument n",
    ),
    "carry": (
        lambda: lax.scan(lambda x, _: (x.astype("float32"), None), jnp.arange(2), None, length=1),
        TypeError,
        "has type int32[2] but the corresponding output carry component has type float32[2], so "
        "the dtypes do not match",
    ),
    "predicate": (
        lambda: lax.cond("yes", jnp.sin, jnp.cos, 1.0),
        TypeError,
        "Pred must be a scalar, got yes of type <class 'str'>",
    ),
    "branches of other structures": (
        lambda: lax.cond(True, lambda: (1.0, 2.0), lambda: 1.0),
        TypeError,
        "cond branch outputs must have the same pytree structure, but they differ",
    ),
    "branches of other types": (
        lambda: lax.switch(0, [lambda: 1.0, lambda: x2]),
        TypeError,
        "switch branches must have equal output types but they differ",
    ),
    "condition of a loop": (
        lambda: lax.while_loop(lambda x: x, lambda x: x, jnp.float32(1)),
        TypeError,
        "cond_fun must return a boolean scalar, but got output type(s) [ShapedArray(float32[])].",
    ),
    "index of a branch": (
        lambda: lax.switch("two", [jnp.sin, jnp.cos], 1.0),
        TypeError,
        "Index type must be an integer, got two.",
    ),
    "platform": (
        lambda: lax.platform_dependent(1.0, tpu=jnp.sin),
        NotImplementedError,
        "not found for platform",
    ),
    "string as an index": (lambda: x2["a"], TypeError, "JAX does not support string indexing"),
    "generator of keys": (
        lambda: namoo.random.key(0, impl=NUMBER),
        TypeError,
        "unrecognized type <class 'int'> of a PRNG",
    ),
    "key and number": (
        lambda: jnp.add(namoo.random.key(0), 1),
        TypeError,
        "add does not accept dtypes key<fry>, int32",
    ),
    "length": (
        lambda: len(namoo.ShapeDtypeStruct((), "float32")),
        TypeError,
        "len() of unsized object",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_messages_have_the_phrases_of_jax(case):
    run, error, phrase = CASES[case]
    with pytest.raises(error) as raised:
        run()
    assert phrase in str(raised.value)


def test_a_value_that_escaped_is_told_with_its_type_and_line():
    kept = []

    def keep(x):
        kept.append(x + 1)
        return x

    namoo.jit(keep)(jnp.ones((4, 3), "int32"))
    with pytest.raises(namoo.errors.UnexpectedTracerError) as raised:
        _ = kept[0] + 1
    assert "int32[4,3]" in str(raised.value)
    assert "was created on line" in str(raised.value)


def test_a_jitted_function_can_always_be_printed():
    assert repr(namoo.jit(jnp.sin)) == f"<PjitFunction of {jnp.sin!r}>"
    assert repr(namoo.jit(Unprintable())) == "<PjitFunction>"


def test_retraces_are_logged_in_the_words_of_jax(caplog):
    f = namoo.jit(lambda x, y: x)
    f.clear_cache()
    with namoo.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(1.0, x2)
        f(1.0, x2)
        f(1.0, x3)
        f(1.0, [x3])
        with namoo.numpy_rank_promotion("warn"):
            f(1.0, [x3])
    texts = [record.getMessage() for record in caplog.records]
    assert all("TRACING CACHE MISS" in text for text in texts)
    first, types, tree, context = texts
    assert "never seen function" in first
    assert "different input types" in types and "at y, now f32[3] and before f32[2]" in types
    assert "different input pytree" in tree
    assert "different tracing context" in context and "now warn and before" in context


@pytest.mark.parametrize("asked", [True, False])
def test_traces_and_compilations_are_logged(caplog, asked):
    f = namoo.jit(lambda x: jnp.cos(x) * 7)
    f.clear_cache()
    level = logging.WARNING if asked else logging.DEBUG
    with namoo.log_compiles(asked), caplog.at_level(level):
        f(x2)
        f(x2)
    texts = [record.getMessage() for record in caplog.records if record.name == "namoo"]
    starts = ["Finished tracing <lambda>", "Compiling jit(", "Finished compilation of jit("]
    assert len(texts) == 3
    assert all(map(str.startswith, texts, starts))
    assert {record.levelno for record in caplog.records if record.name == "namoo"} == {level}


def test_static_values_that_cannot_be_compared_are_traced():
    class Incomparable:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise NotImplementedError

    f = namoo.jit(lambda x, how: x, static_argnums=1)
    assert f(1.0, 1) == f(1.0, Incomparable()) == 1.0
    with pytest.raises(ValueError, match="static arguments should be comparable using __eq__"):
        f(1.0, Incomparable())


def test_types_and_traced_values_are_printed_as_jax_prints_them():
    shown = []

    def f(x):
        shown.append(repr(x))
        return x.sum()

    namoo.jit(f)(x2)
    namoo.vmap(f)(jnp.arange(3))
    namoo.grad(f)(jnp.float16(1.0))
    namoo.jacfwd(f)(jnp.arange(3.0))
    assert shown == [
        "JitTracer(float32[2])",
        "VmapTracer(aval=int32[], batched=int32[3])",
        "GradTracer(primal=1.0, typeof(tangent)=f16[])",
        "JVPTracer(primal=[0. 1. 2.], tangent=VmapTracer(aval=float32[3], batched=float32[3,3]))",
    ]
    assert str(namoo.typeof(1.0)) == "~float32[]" and str(namoo.typeof(x2)) == "float32[2]"


def test_what_is_no_key_is_refused_before_what_is_a_legacy_key():
    with namoo.legacy_prng_key("error"):
        with pytest.raises(TypeError, match="JAX encountered invalid PRNG key data"):
            namoo.random.uniform(jnp.zeros(1))
        with pytest.raises(ValueError, match="Legacy uint32 key array"):
            namoo.random.uniform(jnp.zeros(2, "uint32"))
