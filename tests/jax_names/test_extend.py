"""Operations that a user defines mean the same in namoo and in JAX, on every engine."""

import importlib
from functools import partial
from types import SimpleNamespace

import jax.extend.core
import numpy as np
import pytest

import namoo
from jax_oracle import OURS, THEIRS, agree, assert_same

ENGINES = ["interpreter", "native", "xla"]


def parts(lib):
    """The modules that a library of operations imports."""
    name = "namoo" if lib is OURS else "jax"
    ad, batching, mlir = (
        importlib.import_module(f"{name}.interpreters.{part}")
        for part in ("ad", "batching", "mlir")
    )
    core = importlib.import_module(f"{name}.extend.core")
    return SimpleNamespace(ad=ad, batching=batching, mlir=mlir, core=core)


def multiply_add(lib, impl=True, lowering=True):
    """x·y + z as one operation, with all rules, as in JAX's tutorial on primitives."""
    its, shaped = parts(lib), lib.core.ShapedArray
    prim = its.core.Primitive("multiply_add")
    bind = prim.bind
    if impl:
        prim.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    prim.def_abstract_eval(lambda x, y, z: shaped(x.shape, x.dtype))
    if lowering:
        rule = its.mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False)
        its.mlir.register_lowering(prim, rule)

    def jvp(primals, tangents):
        x, y, z = primals
        xt, yt, zt = map(its.ad.instantiate_zeros, tangents)
        return bind(x, y, z), bind(xt, y, bind(x, yt, zt))

    its.ad.primitive_jvps[prim] = jvp

    def transpose(ct, x, y, z):
        wanted = [its.ad.is_undefined_primal(operand) for operand in (x, y, z)]
        zero = lib.jnp.zeros_like(ct)
        assert not (wanted[0] and wanted[1])
        return [
            bind(ct, y, zero) if wanted[0] else None,
            bind(x, ct, zero) if wanted[1] else None,
            ct if wanted[2] else None,
        ]

    its.ad.primitive_transposes[prim] = transpose

    def batch(operands, dims):
        size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
        return bind(*map(lambda x, d: its.batching.bdim_at_front(x, d, size), operands, dims)), 0

    its.batching.primitive_batchers[prim] = batch
    return bind


def sincos(lib):
    """An operation with two results and a parameter."""
    its, shaped = parts(lib), lib.core.ShapedArray
    prim = its.core.Primitive("sincos")
    prim.multiple_results = True

    def values(x, *, scale):
        return [lib.jnp.sin(scale * x), lib.jnp.cos(scale * x)]

    prim.def_impl(values)
    prim.def_abstract_eval(lambda x, *, scale: [shaped(x.shape, x.dtype)] * 2)
    its.mlir.register_lowering(prim, its.mlir.lower_fun(values, multiple_results=True))

    def jvp(primals, tangents, *, scale):
        [t] = tangents
        s, c = prim.bind(*primals, scale=scale)
        if type(t) is its.ad.Zero:
            return [s, c], [its.ad.Zero(t.aval)] * 2
        return [s, c], [scale * t * c, -scale * t * s]

    its.ad.primitive_jvps[prim] = jvp

    def batch(operands, dims, *, scale):
        return prim.bind(*operands, scale=scale), [dims[0]] * 2

    its.batching.primitive_batchers[prim] = batch
    return lambda x: prim.bind(x, scale=2.0)


X, Y, Z = (np.asarray(v, np.float32) for v in ([1.0, 2.0, 3.0], [0.5, -1.0, 4.0], [3.0, 1.0, 2.0]))
XS = np.arange(6, dtype=np.float32).reshape(2, 3)


def square_add(lib):
    f = multiply_add(lib)
    return lambda a, b: f(a, f(a, b, b), b).sum()


USES = {
    "eager": lambda lib: multiply_add(lib)(X, Y, Z) * lib.jnp.ones(3),
    "jit": lambda lib: lib.jit(multiply_add(lib))(X, Y, Z),
    "numbers": lambda lib: lib.jit(lambda x: multiply_add(lib)(x, x, np.float32(2.0)))(X[0]),
    "nested jit": lambda lib: lib.jit(lambda x: lib.jit(multiply_add(lib))(x, x, x) + 1)(X),
    "jvp": lambda lib: lib.jvp(square_add(lib), (X, Y), (Y, Z)),
    "grad": lambda lib: lib.grad(square_add(lib), argnums=(0, 1))(X, Y),
    "jit grad": lambda lib: lib.jit(lib.grad(square_add(lib), argnums=(0, 1)))(X, Y),
    "grad jit": lambda lib: lib.grad(lib.jit(square_add(lib)))(X, Y),
    "grad grad": lambda lib: lib.grad(lambda x: lib.grad(square_add(lib))(x, Y).sum())(X),
    "vmap": lambda lib: lib.vmap(multiply_add(lib))(XS, XS, XS),
    "vmap axes": lambda lib: lib.vmap(multiply_add(lib), in_axes=(1, None, 0))(XS.T, Y, XS),
    "jit vmap": lambda lib: lib.jit(lib.vmap(multiply_add(lib), (0, None, None)))(XS, Y, Z),
    "vmap grad": lambda lib: lib.vmap(lib.grad(square_add(lib)), in_axes=(0, None))(XS, Y),
    "scan": lambda lib: lib.lax.scan(lambda c, x: (multiply_add(lib)(c, x, x), c), X, XS),
    "grad scan": lambda lib: lib.grad(
        lambda x: lib.lax.scan(lambda c, r: (multiply_add(lib)(c, r, x), None), x, XS)[0].sum()
    )(X),
    "cond": lambda lib: lib.jit(
        lambda x: lib.lax.cond(x[0] > 0, lambda x: multiply_add(lib)(x, x, x), lambda x: x, x)
    )(X),
    "jacobian": lambda lib: lib.jacfwd(lambda x: multiply_add(lib)(x, x, Y))(X),
    "remat": lambda lib: lib.grad(lambda x: lib.checkpoint(square_add(lib))(x, Y))(X),
    "two results": lambda lib: lib.jit(lambda x: sincos(lib)(x))(X),
    "two results, grad": lambda lib: lib.grad(lambda x: (sincos(lib)(x)[0] * x).sum())(X),
    "two results, vmap": lambda lib: lib.vmap(lambda x: sincos(lib)(x))(XS),
    "two results, all": lambda lib: lib.jit(
        lib.vmap(lib.grad(lambda x: lib.jnp.stack(sincos(lib)(x)).sum()))
    )(XS),
}
COMPILED = {use for use in USES if any(word in use for word in ("jit", "scan", "cond", "results"))}
THEIR_RESULTS = {}


@pytest.mark.parametrize(
    ("use", "engine"), [(u, e) for u in USES for e in (ENGINES if u in COMPILED else ENGINES[:1])]
)
def test_an_operation_in_all_transformations(use, engine):
    if use not in THEIR_RESULTS:
        THEIR_RESULTS[use] = USES[use](THEIRS)
    namoo.config.update("engine", engine)
    ours = USES[use](OURS)
    assert_same(ours, THEIR_RESULTS[use], weak=False)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("use", ["jit", "grad", "vmap", "scan"])
def test_without_a_lowering_the_host_evaluates(use, engine):
    """In JAX this is an error; what it means is not in doubt."""
    namoo.config.update("engine", engine)
    f = multiply_add(OURS, lowering=False)
    out = {
        "jit": lambda: namoo.jit(f)(X, Y, Z),
        "grad": lambda: namoo.jit(namoo.grad(lambda x: f(x, Y, Z).sum()))(X),
        "vmap": lambda: namoo.jit(namoo.vmap(f))(XS, XS, XS),
        "scan": lambda: namoo.jit(lambda x: namoo.lax.scan(lambda c, r: (f(c, r, r), c), x, XS))(X),
    }[use]()
    last, wanted = [X], X
    for row in XS:
        wanted = wanted * row + row
        last.append(wanted)
    wanted = {
        "jit": X * Y + Z, "grad": Y, "vmap": XS * XS + XS, "scan": (wanted, np.stack(last[:-1])),
    }[use]  # fmt: skip
    namoo.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), out, wanted)


@pytest.mark.parametrize("engine", ["native", "xla"])
@pytest.mark.parametrize("platform", [None, "cpu", "cuda"])
def test_a_lowering_becomes_part_of_the_program(platform, engine):
    its, traced = parts(OURS), []
    prim = its.core.Primitive("counted")
    prim.def_impl(lambda x: traced.append(isinstance(x, namoo.core.Tracer)) or x + 1)
    prim.def_abstract_eval(lambda x: x)

    def lowered(x):
        traced.append(isinstance(x, namoo.core.Tracer))
        return x + 1

    its.mlir.register_lowering(prim, its.mlir.lower_fun(lowered, False), platform=platform)
    namoo.config.update("engine", engine)
    f = namoo.jit(prim.bind)
    for _ in range(3):
        np.testing.assert_allclose(f(X), X + 1)
    on_host = platform == "cuda"
    assert traced == ([False] * 3 if on_host else [True])
    operations = f.lower(X).compile().host_operations()
    assert [operation.name for operation in operations] == (["counted"] if on_host else [])


def test_a_lowering_alone_is_enough_without_jit():
    np.testing.assert_allclose(multiply_add(OURS, impl=False)(X, Y, Z), X * Y + Z)


@pytest.mark.parametrize(
    ("rule", "run"),
    [
        ("Evaluation", lambda lib, p: p.bind(X)),
        ("Abstract evaluation", lambda lib, p: lib.jit(p.bind)(X)),
        ("Differentiation", lambda lib, p: lib.jvp(p.bind, (X,), (X,))),
        ("Differentiation", lambda lib, p: lib.grad(lambda x: p.bind(x).sum())(X)),
        ("Batching", lambda lib, p: lib.vmap(p.bind)(X)),
    ],
)
def test_a_rule_that_is_missing(rule, run):
    with pytest.raises(NotImplementedError, match=rule):
        run(THEIRS, parts(THEIRS).core.Primitive("lonely"))
    with pytest.raises(
        NotImplementedError, match=f"{rule}( rule)? for 'lonely'.*lonely_p"
    ) as caught:
        run(OURS, parts(OURS).core.Primitive("lonely"))
    assert "namoo.interpreters" in str(caught.value) or ".def_" in str(caught.value)


def test_a_transpose_rule_that_is_missing():
    for lib in (OURS, THEIRS):
        its = parts(lib)
        prim = its.core.Primitive("lonely")
        prim.def_impl(lambda x: x)
        prim.def_abstract_eval(lambda x: x)
        its.ad.primitive_jvps[prim] = lambda xs, ts, p=prim: (p.bind(*xs), p.bind(*ts))
        with pytest.raises(NotImplementedError, match="Transpose rule.*'lonely'"):
            lib.grad(lambda x, p=prim: p.bind(x).sum())(X)
        with pytest.raises(NotImplementedError, match="Transpose rule.*'lonely'"):
            its.ad.get_primitive_transpose(prim)


def with_rules(lib, define, impl):
    its = parts(lib)
    prim = its.core.Primitive("defined")
    prim.def_impl(impl)
    prim.def_abstract_eval(lambda x, *rest: lib.core.ShapedArray(x.shape, x.dtype))
    its.mlir.register_lowering(prim, its.mlir.lower_fun(impl, multiple_results=False))
    define(its, prim)
    return prim.bind


DEFINITIONS = {
    "defjvp": (
        lambda its, p: its.ad.defjvp(p, lambda t, x, y: t * y, None),
        lambda x, y: x * y,
    ),
    "defjvp, all": (
        lambda its, p: its.ad.defjvp(p, lambda t, x, y: t * y, lambda t, x, y: t * x),
        lambda x, y: x * y,
    ),
    "defjvp2": (
        lambda its, p: its.ad.defjvp2(p, lambda t, out, x, y: t * out, lambda t, out, x, y: t * x),
        lambda x, y: x * y,
    ),
    "deflinear": (
        lambda its, p: its.ad.deflinear(p, lambda ct: [2.0 * ct, 3.0 * ct]),
        lambda x, y: 2.0 * x + 3.0 * y,
    ),
    "deflinear2": (
        lambda its, p: its.ad.deflinear2(p, lambda ct, x, y: [2.0 * ct, 3.0 * ct]),
        lambda x, y: 2.0 * x + 3.0 * y,
    ),
    "defbilinear": (
        lambda its, p: its.ad.defbilinear(
            p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct)
        ),
        lambda x, y: x * y,
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_derivatives_by_definitions(name):
    define, impl = DEFINITIONS[name]

    def program(lib):
        f = with_rules(lib, define, impl)
        return (
            lib.jvp(f, (X, Y), (Y, Z)),
            lib.grad(lambda x, y: (f(x, y) * Z).sum(), argnums=(0, 1))(X, Y),
            lib.jit(lib.grad(lambda x: f(x, Y).sum()))(X),
        )

    agree(program, weak=False)


@pytest.mark.parametrize("axes", [(0, 0), (1, 1)])
@pytest.mark.parametrize("define", ["defvectorized", "defbroadcasting"])
def test_batching_by_definitions(define, axes):
    def program(lib):
        f = with_rules(lib, lambda its, p: getattr(its.batching, define)(p), lambda x, y: x * y)
        return lib.vmap(f, in_axes=axes)(XS, XS + 1)

    agree(program, weak=False)


@pytest.mark.parametrize("axes", [(0, None), (None, 1), (0, 1)])
def test_batching_by_broadcasting(axes):
    def program(lib):
        f = with_rules(lib, lambda its, p: its.batching.defbroadcasting(p), lambda x, y: x * y)
        batches = {None: X, 0: XS, 1: XS.T}
        return lib.vmap(f, in_axes=axes)(*(batches[axis] for axis in axes))

    agree(program, weak=False)


def test_tables_show_the_rules_that_operations_have():
    for lib in (OURS, THEIRS):
        its = parts(lib)
        prim = its.core.Primitive("listed")
        assert prim not in its.ad.primitive_jvps and lib.lax.sin_p in its.ad.primitive_jvps
        assert lib.lax.neg_p in its.ad.primitive_transposes
        assert lib.lax.sin_p not in its.ad.primitive_transposes
        its.ad.primitive_jvps[prim] = rule = lambda xs, ts: (xs[0], ts[0])
        assert its.ad.primitive_jvps[prim] is rule
        assert prim in list(its.ad.primitive_jvps) and lib.lax.sin_p in list(its.ad.primitive_jvps)
        x = lib.jnp.asarray(X)
        out = its.ad.primitive_jvps[lib.lax.mul_p]([x, x], [x, its.ad.Zero(lib.typeof(x))])
        np.testing.assert_allclose(out, [X * X, X * X])
        del its.ad.primitive_jvps[prim]
        assert prim not in its.ad.primitive_jvps
        with pytest.raises(KeyError):
            its.ad.primitive_jvps[prim]


def test_a_rule_of_the_librarys_own_may_be_replaced():
    ad = parts(OURS).ad
    x = namoo.numpy.asarray(X)
    for _ in range(3):  # until it is remembered
        before = namoo.grad(lambda x: namoo.lax.sin(x).sum())(x)
    ad.primitive_jvps[namoo.lax.sin_p] = lambda xs, ts: (namoo.lax.sin(*xs), 10.0 * ts[0])
    try:
        for _ in range(3):
            out = namoo.grad(lambda x: namoo.lax.sin(x).sum())(x)
            np.testing.assert_allclose(out, [10.0] * 3)
    finally:
        del ad.primitive_jvps[namoo.lax.sin_p]
    after = namoo.grad(lambda x: namoo.lax.sin(x).sum())(x)
    np.testing.assert_array_equal(before, after)


def test_all_operations_are_primitives():
    for lib in (OURS, THEIRS):
        its = parts(lib)
        [eqn] = lib.make_jaxpr(lib.lax.sin)(1.0).eqns
        assert isinstance(eqn.primitive, its.core.Primitive)
        assert eqn.primitive is its.core.primitives.sin_p is lib.lax.sin_p
        prim = its.core.Primitive("mine")
        prim.def_abstract_eval(lambda x: x)
        [eqn] = lib.make_jaxpr(prim.bind)(X).eqns
        assert eqn.primitive is prim and str(prim) == "mine" and not eqn.params
        assert not isinstance(3, its.core.Primitive)


def test_operations_have_the_names_that_programs_show():
    def program(lib):
        p = parts(lib).core.primitives

        @lib.custom_jvp
        def f(x):
            return x

        f.defjvp(lambda xs, ts: (xs[0], ts[0]))

        def g(x):
            x = f(lib.jit(lib.jnp.cos)(x))
            x, _ = lib.lax.scan(lambda c, _: (c, None), x, None, length=2)
            x = lib.lax.while_loop(lambda c: c < 0, lambda c: c + 1, x)
            return lib.lax.cond(x > 0, lambda x: x, lambda x: -x, x)

        found = {eqn.primitive for eqn in lib.make_jaxpr(g)(1.0).eqns}
        return [
            prim in found for prim in (p.jit_p, p.scan_p, p.while_p, p.cond_p, p.custom_jvp_call_p)
        ]

    assert program(OURS) == program(THEIRS) == [True] * 5


def test_the_operations_of_jax_that_are_not_here():
    theirs = {n for n in dir(jax.extend.core.primitives) if n.endswith("_p")}
    ours = {n for n in dir(namoo.extend.core.primitives) if n.endswith("_p")}
    # Beyond JAX's: primitives that are public in `lax` or `lax.linalg`.
    assert ours - theirs <= {*dir(namoo.lax), *dir(namoo.lax.linalg)}
    # References, approximate ones, and orders that are total.
    assert theirs - ours == {
        "approx_top_k_p", "empty2_p",
        "eq_to_p", "get_p", "le_to_p", "lt_to_p", "ragged_all_to_all_p", "select_and_scatter_p",
        "swap_p", "threefry2x32_p",
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "xla"])
def test_rules_in_mlir_are_refused(engine):
    mlir = parts(OURS).mlir
    with pytest.raises(AttributeError, match="lower_fun.*def_impl"):
        mlir.ir_constant  # noqa: B018
    prim = parts(OURS).core.Primitive("written")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: [object()])
    namoo.config.update("engine", engine)
    with pytest.raises(NotImplementedError, match="MLIR cannot be used.*lower_fun.*def_impl"):
        namoo.jit(prim.bind)(X)
    with pytest.raises(TypeError, match="not an operation of your own"):
        mlir.register_lowering(namoo.lax.sin_p, mlir.lower_fun(lambda x: x))


def test_a_lowering_may_call_lower_fun_itself():
    def program(lib):
        its = parts(lib)
        prim = its.core.Primitive("power")
        prim.def_abstract_eval(lambda x, *, n: lib.core.ShapedArray(x.shape, x.dtype))

        def rule(ctx, x, *, n):
            assert ctx.avals_in[0].shape == (3,) and len(ctx.avals_out) == 1
            return its.mlir.lower_fun(lambda x: x**n, multiple_results=False)(ctx, x)

        its.mlir.register_lowering(prim, rule, platform="cpu")
        return lib.jit(lambda x: prim.bind(x, n=3))(X)

    namoo.config.update("engine", "native")
    agree(program, weak=False)


def pick(lib):
    """x[i]: one operand is not differentiable, and its tangent is `Zero`."""
    its, shaped = parts(lib), lib.core.ShapedArray
    prim = its.core.Primitive("pick")
    prim.def_impl(lambda x, i: x[i])
    prim.def_abstract_eval(lambda x, i: shaped(i.shape, x.dtype))
    its.mlir.register_lowering(prim, its.mlir.lower_fun(lambda x, i: x[i], False))

    def jvp(primals, tangents):
        assert type(tangents[1]) is its.ad.Zero and tangents[1].aval.dtype == lib.dtypes.float0
        return prim.bind(*primals), prim.bind(tangents[0], primals[1])

    its.ad.primitive_jvps[prim] = jvp
    its.ad.primitive_transposes[prim] = lambda ct, x, i: [
        lib.jnp.zeros(x.aval.shape, x.aval.dtype).at[i].add(ct),
        None,
    ]
    return prim.bind


def draw(lib):
    """An operation on a random key."""
    its = parts(lib)
    prim = its.core.Primitive("draw")
    prim.def_impl(lambda key: lib.random.uniform(key, (2,)))
    prim.def_abstract_eval(lambda key: lib.core.ShapedArray((2,), np.dtype("float32")))
    its.mlir.register_lowering(prim, its.mlir.lower_fun(prim.impl, multiple_results=False))
    return prim.bind


PLACES = np.array([1, 1, 2])
KINDS = {
    "integers": lambda lib: lib.jit(lib.grad(lambda x: (pick(lib)(x, PLACES) ** 2).sum()))(X),
    "integers, vjp": lambda lib: lib.vjp(lambda x: pick(lib)(x, PLACES), X)[1](lib.jnp.ones(3)),
    "keys, eager": lambda lib: draw(lib)(lib.random.key(0)),
    "keys": lambda lib: lib.jit(draw(lib))(lib.random.key(0)),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_operands_that_are_not_floats(kind, engine):
    namoo.config.update("engine", engine)
    agree(KINDS[kind], weak=False)


@pytest.mark.parametrize(
    ("abstract", "error"),
    [
        (lambda x: namoo.core.ShapedArray((4,), x.dtype), "f32.3., but .* says f32.4."),
        (lambda x: namoo.core.ShapedArray(x.shape, int), "f32.3., but .* says i32.3."),
        (lambda x: 3, "return .*ShapedArray"),
    ],
)
def test_types_that_are_not_true(abstract, error):
    prim = parts(OURS).core.Primitive("wrong")
    prim.def_impl(lambda x: x)
    prim.def_abstract_eval(abstract)
    for run in (prim.bind, namoo.jit(prim.bind)):
        with pytest.raises(TypeError, match=error):
            run(X)


def test_numpys_wide_results_are_made_narrow():
    prim = parts(OURS).core.Primitive("wide")
    prim.def_impl(lambda x: np.float64(np.argmax(x)))
    prim.def_abstract_eval(lambda x: namoo.core.ShapedArray((), np.float64))
    for engine in ENGINES:
        namoo.config.update("engine", engine)
        for run in (prim.bind, namoo.jit(prim.bind)):
            out = run(X)
            assert out == 2.0 and out.dtype == np.float32


def test_keys_may_be_results():
    def program(lib):
        its = parts(lib)
        prim = its.core.Primitive("folded")
        prim.def_impl(lambda key: lib.random.fold_in(key, 1))
        prim.def_abstract_eval(lambda key: key)
        its.mlir.register_lowering(prim, its.mlir.lower_fun(prim.impl, multiple_results=False))
        key = lib.random.key(0)
        return [lib.random.key_data(run(key)) for run in (prim.bind, lib.jit(prim.bind))]

    for engine in ENGINES:
        namoo.config.update("engine", engine)
        agree(program)


def test_a_mistake_within_an_implementation_is_told_as_it_is():
    prim = parts(OURS).core.Primitive("failing")

    @prim.def_impl
    def impl(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        prim.bind(X)


def test_equal_names_are_not_equal_operations():
    """Nor are programs with them found again in the cache of another process."""
    from namoo.engines.native.cache.fingerprint import Fingerprint, Unknown

    def program(lib, scale):
        its = parts(lib)
        prim = its.core.Primitive("scaled")
        prim.def_abstract_eval(lambda x: lib.core.ShapedArray(x.shape, x.dtype))
        its.mlir.register_lowering(prim, its.mlir.lower_fun(lambda x: scale * x, False))
        return prim.bind

    namoo.config.update("engine", "native")
    outs = [namoo.jit(program(OURS, scale))(X) for scale in (2.0, 3.0)]
    np.testing.assert_allclose(outs, [2 * X, 3 * X])
    with pytest.raises(Unknown):
        Fingerprint(namoo.make_jaxpr(program(OURS, 2.0))(X), {}).digest  # noqa: B018


def test_rules_that_are_missing_or_wrong_are_told_in_the_words_of_jax():
    p = namoo.extend.core.Primitive("halve")
    with pytest.raises(NotImplementedError, match="^Abstract evaluation for 'halve' not impl"):
        namoo.jit(p.bind)(1.0)
    p.def_abstract_eval(lambda x: [x])
    with pytest.raises(ValueError, match=r"^halve.abstract_eval\(\) method should return a tuple"):
        namoo.jit(p.bind)(1.0)
    p.multiple_results = True
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(ValueError, match=r"^halve.abstract_eval\(\) method should return a tuple"):
        namoo.jit(p.bind)(1.0)
