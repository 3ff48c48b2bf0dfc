"""Derivatives of functions of trees: options, structures and refusals, as in JAX."""

import types
from collections import namedtuple

import jax
import jax.numpy as jaxnp
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp

Pair = namedtuple("Pair", "a b")
NAMOO, JAX = (namoo, jnp), (jax, jaxnp)


def _to_numpy(tree):
    if isinstance(tree, dict):
        return {k: _to_numpy(v) for k, v in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(_to_numpy, tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map(_to_numpy, tree))
    return np.asarray(tree)


def assert_same(found, expected):
    """Equal structures, shapes and dtypes, close values."""
    a, b = _to_numpy(found), _to_numpy(expected)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        if x.dtype != jax.float0:
            np.testing.assert_allclose(
                np.asarray(x, np.complex128), np.asarray(y, np.complex128), rtol=1e-4, atol=1e-6
            )


def mlp(J, np_):
    def loss(params, x, scale=1.0):
        h = np_.tanh(x @ params["w"] + params["rest"].b)
        return (h**2).sum() * scale * params["rest"].a[0]

    params = {
        "w": np.ones((3, 2), "float32") * 0.3,
        "rest": Pair([np.float32(2.0)], np.zeros(2, "f4")),
    }
    params = J.tree.map(np_.asarray, params)
    return loss, params, np_.asarray(np.arange(6, dtype="float32").reshape(2, 3))


def vector(np_):
    return np_.asarray(np.array([0.5, -1.0, 2.0], "float32"))


CASES = {
    "grad": lambda J, n: J.grad(mlp(J, n)[0])(*mlp(J, n)[1:]),
    "grad keyword": lambda J, n: J.grad(mlp(J, n)[0])(*mlp(J, n)[1:], scale=3.0),
    "grad argnums": lambda J, n: J.grad(mlp(J, n)[0], argnums=(1, 0))(*mlp(J, n)[1:]),
    "grad argnums one": lambda J, n: J.grad(mlp(J, n)[0], argnums=(1,))(*mlp(J, n)[1:]),
    "grad negative": lambda J, n: J.grad(lambda x, y: x * y**2, argnums=-1)(2.0, 3.0),
    "value_and_grad aux": lambda J, n: J.value_and_grad(
        lambda x: ((x**2).sum(), {"n": x.size, "x": x}), has_aux=True
    )(vector(n)),
    "grad aux": lambda J, n: J.grad(lambda x: ((x**2).sum(), x + 1), has_aux=True)(vector(n)),
    "allow_int": lambda J, n: J.grad(lambda p: p["x"] ** 2 * p["n"], allow_int=True)(
        {"x": 3.0, "n": 2}
    ),
    "holomorphic": lambda J, n: J.grad(lambda z: n.sin(z) ** 2, holomorphic=True)(1.0 + 2.0j),
    "complex to real": lambda J, n: J.grad(lambda z: n.abs(z) ** 2)(n.asarray(1.0 + 2.0j)),
    "jvp": lambda J, n: J.jvp(
        lambda p, x: {"y": p[0] * x, "z": p[1]}, ((2.0, 3.0), vector(n)), ((1.0, 0.5), vector(n))
    ),
    "jvp aux": lambda J, n: J.jvp(lambda x: (x**3, x), (2.0,), (1.0,), has_aux=True),
    "jvp integers": lambda J, n: J.jvp(
        lambda x, i: x * i, (2.0, 3), (1.0, np.zeros((), jax.float0))
    ),
    "vjp": lambda J, n: J.vjp(lambda x, y: (x * y, {"s": x.sum()}), vector(n), vector(n))[1](
        (vector(n), {"s": n.asarray(2.0)})
    ),
    "vjp aux": lambda J, n: J.vjp(lambda x: (x**2, x), 3.0, has_aux=True)[2],
    "linearize": lambda J, n: J.linearize(lambda x: n.sin(x) * x, vector(n))[1](vector(n)),
    "linear_transpose": lambda J, n: J.linear_transpose(
        lambda x, y: x[1:] * 2 + y, vector(n), vector(n)[:2]
    )(vector(n)[:2]),
    "jacfwd": lambda J, n: J.jacfwd(lambda x: {"a": x**2, "b": x[0]})(vector(n)),
    "jacrev": lambda J, n: J.jacrev(lambda x: {"a": x**2, "b": x[0]})(vector(n)),
    "jacfwd argnums": lambda J, n: J.jacfwd(lambda x, y: x * y, argnums=(0, 1))(
        vector(n), vector(n)
    ),
    "jacrev argnums": lambda J, n: J.jacrev(lambda x, y: (x * y, x), argnums=(0, 1))(
        vector(n), vector(n)
    ),
    "jacrev tree": lambda J, n: J.jacrev(lambda p: p["a"][:, None] * p["b"])(
        {"a": vector(n), "b": vector(n)}
    ),
    "jacfwd aux": lambda J, n: J.jacfwd(lambda x: (x**2, x.sum()), has_aux=True)(vector(n)),
    "jacrev aux": lambda J, n: J.jacrev(lambda x: (x**2, x.sum()), has_aux=True)(vector(n)),
    "jacfwd holomorphic": lambda J, n: J.jacfwd(lambda z: z**2, holomorphic=True)(
        n.asarray([1.0 + 1.0j, 2.0])
    ),
    "hessian": lambda J, n: J.hessian(lambda x: (x**3).sum() + x[0] * x[1])(vector(n)),
    "hessian tree": lambda J, n: J.hessian(lambda p: (p["a"] * p["b"] ** 2).sum())(
        {"a": vector(n), "b": vector(n)}
    ),
    "third": lambda J, n: J.grad(J.grad(J.grad(lambda x: n.sin(x) * x**3)))(1.5),
    "stop_gradient": lambda J, n: J.grad(lambda x: (x * J.lax.stop_gradient(x)).sum())(vector(n)),
    "abs at zero": lambda J, n: J.grad(n.abs)(0.0),
    "max ties": lambda J, n: J.grad(lambda x: n.maximum(x, 2.0 * x))(0.0),
    "sqrt in where": lambda J, n: J.grad(
        lambda x: n.where(x > 0, n.sqrt(n.where(x > 0, x, 1.0)), 0.0)
    )(0.0),
    "unused": lambda J, n: J.grad(lambda x, y: x * 1.0, argnums=(0, 1))(1.0, vector(n)),
    "closure": lambda J, n: J.grad(lambda x: J.grad(lambda y: x * y**2)(3.0))(2.0),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_jax(case):
    assert_same(CASES[case](*NAMOO), CASES[case](*JAX))


REFUSED = {
    "not a function": lambda J, n: J.grad(3),
    "not scalar": lambda J, n: J.grad(lambda x: x)(vector(n)),
    "not a number": lambda J, n: J.grad(lambda x: (x, x))(1.0),
    "integer input": lambda J, n: J.grad(lambda x: x * 1.0)(3),
    "integer output": lambda J, n: J.grad(lambda x: 3)(1.0),
    "complex output": lambda J, n: J.grad(lambda x: x * 1j)(1.0),
    "argnums out of range": lambda J, n: J.grad(lambda x: x, argnums=1)(1.0),
    "argnums of a wrong type": lambda J, n: J.grad(lambda x: x, argnums="x")(1.0),
    "aux without a pair": lambda J, n: J.grad(lambda x: x, has_aux=True)(1.0),
    "jvp without tuples": lambda J, n: J.jvp(n.sin, 1.0, 1.0),
    "jvp structures": lambda J, n: J.jvp(lambda x: x, ({"a": 1.0},), ({"b": 1.0},)),
    "jvp dtypes": lambda J, n: J.jvp(n.sin, (1.0,), (1,)),
    "jvp shapes": lambda J, n: J.jvp(n.sin, (1.0,), (vector(n),)),
    "vjp cotangent structure": lambda J, n: J.vjp(lambda x: (x, x), 1.0)[1](1.0),
    "vjp cotangent shape": lambda J, n: J.vjp(lambda x: x, vector(n))[1](1.0),
    "jacrev complex": lambda J, n: J.jacrev(lambda x: x * 1j)(vector(n)),
    "jacfwd integer": lambda J, n: J.jacfwd(lambda x: x * 1.0)(3),
    "holomorphic with real input": lambda J, n: J.grad(lambda x: x, holomorphic=True)(1.0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_have_the_type_of_jax(case):
    with pytest.raises(Exception) as expected:  # noqa: B017
        REFUSED[case](*JAX)
    with pytest.raises(Exception) as found:  # noqa: B017
        REFUSED[case](*NAMOO)
    assert isinstance(found.value, expected.type), (found.value, expected.value)


def test_static_leaves_pass_through_grad_unchanged():
    layer = {"w": jnp.array([1.0, 2.0]), "act": jnp.tanh, "name": "dense"}
    grads = namoo.grad(lambda p: p["act"](p["w"]).sum())(layer)
    assert grads["act"] is jnp.tanh and grads["name"] == "dense"
    np.testing.assert_allclose(grads["w"], 1 - np.tanh([1.0, 2.0]) ** 2, rtol=1e-6)


def test_linearize_runs_the_function_once():
    runs = []

    def f(x):
        runs.append(1)
        return jnp.sin(x)

    _, tangent = namoo.linearize(f, 1.0)
    assert [float(tangent(t)) for t in (1.0, 2.0)] == pytest.approx([np.cos(1), 2 * np.cos(1)])
    assert len(runs) == 1


def test_a_vjp_function_is_a_tree_that_can_leave_jit():
    out, pull = namoo.jit(lambda x: namoo.vjp(jnp.sin, x))(1.0)
    assert float(pull(2.0)[0]) == pytest.approx(2 * np.cos(1))


def test_concrete_values_decide_python_branches_under_grad():
    def f(x):
        return x**2 if x > 0 else -x

    assert float(namoo.grad(f)(3.0)) == 6.0
    assert float(namoo.grad(f)(-3.0)) == -1.0


def test_fwd_and_bwd():
    fwd, bwd = namoo.fwd_and_bwd(lambda x, y: x * y**2, argnums=(0, 1))
    out, residuals = fwd(2.0, 3.0)
    assert float(out) == 18.0
    assert [float(g) for g in bwd(residuals, 1.0)] == [9.0, 12.0]


def test_derivatives_of_factorisations_have_full_precision():
    a = jnp.eye(3)
    for f in (jnp.linalg.cholesky, jnp.linalg.eigh, jnp.linalg.qr, jnp.linalg.svd):
        text = str(namoo.make_jaxpr(lambda x, t, f=f: namoo.jvp(f, (x,), (t,)))(a, a))
        assert text.count("dot_general") == text.count("precision=(Precision.HIGHEST") > 0


def test_disable_bwd_checks_accepts_cotangents_of_other_shapes():
    @namoo.custom_vjp
    def f(x):
        return x.sum()

    f.defvjp(lambda x: (x.sum(), None), lambda _, ct: (jnp.full(3, ct),))
    with pytest.raises(ValueError, match="must produce cotangents"):
        namoo.grad(f)(jnp.ones(4))
    namoo.config.update("jax_disable_bwd_checks", True)
    try:
        assert namoo.grad(f)(jnp.ones(4)).shape == (3,)
    finally:
        namoo.config.update("jax_disable_bwd_checks", False)


def test_linear_transpose_takes_integers_and_anything_with_a_shape_and_a_dtype():
    assert namoo.linear_transpose(lambda x: 2 * x, 1)(3)[0] == 6
    like = types.SimpleNamespace(shape=(3,), dtype=np.dtype(np.float32))
    assert namoo.linear_transpose(lambda x: 2 * x, like)(jnp.arange(3.0))[0].tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        namoo.linear_transpose(lambda x: 2.0 * x, 1)


@pytest.mark.parametrize("operation", ["gather", "slice", "update", "two products", "sum"])
def test_cotangents_of_other_types(operation):
    """The rule of a `custom_vjp` may return another type than that of its operand."""

    def gradients(lib):
        jnp = lib.numpy

        def of_type(dtype):
            f = lib.custom_vjp(lambda x: x)
            f.defvjp(lambda x: (x, ()), lambda _, g: (g.astype(dtype),))
            operate = {
                "gather": lambda x: x[jnp.arange(3)],
                "slice": lambda x: lib.lax.dynamic_slice(x, (1,), (2,)),
                "update": lambda x: lib.lax.dynamic_update_slice(x, x[:2], (1,)),
                "two products": lambda x: x * 2,
                "sum": lambda x: x + x,
            }[operation]
            out, vjp = lib.vjp(lambda x: f(operate(x)), jnp.arange(3.0))
            try:
                return str(vjp(jnp.ones_like(out))[0].dtype)
            except TypeError:
                return "refused"

        return [of_type(t) for t in ("float32", "bfloat16", "float16", "float8_e5m2") * 2]

    assert gradients(namoo) == gradients(jax)


def test_stop_gradient_of_integers_is_not_traced():
    for lib in (namoo, jax):

        @lib.custom_gradient
        def f(x, lib=lib):
            return (x, lib.numpy.round(x).astype("int32")), lambda g: g[0]

        def loss(x, f=f, lib=lib):
            for value in lib.lax.stop_gradient(f(x)):
                assert not isinstance(value, lib.core.Tracer)
            return f(x)[0]

        assert lib.grad(loss)(2.0) == 1.0
