"""Behaviour that libraries on top of JAX rely on: each case gives the same in namoo and in JAX."""

import functools

import jax as real_jax
import numpy as np
import pytest

import namoo

CASES = {}


def case(fun):
    CASES[fun.__name__] = fun
    return fun


@case
def operations_on_tracers_within_ensure_compile_time_eval(jax):
    def f(x):
        with jax.ensure_compile_time_eval():
            known = jax.numpy.arange(3).sum()
            return x + 1, isinstance(known, jax.core.Tracer)

    return (
        f(1.0),
        jax.jit(lambda x: f(x)[0])(1.0),
        jax.make_jaxpr(lambda x: f(x)[0])(1.0).eqns != [],
    )


@case
def named_call_is_no_jit(jax):
    box = []

    def f(x):
        jax.named_call(lambda y: box.append(y * 2), name="f")(x)
        return box[0] + 1

    return jax.jit(f)(1.0)


@case
def custom_vjp_primal_is_a_leaf(jax):
    return len(jax.tree.leaves(jax.custom_derivatives.CustomVJPPrimal(1.0, True)))


@case
def python_values_in_residuals_stay_python_values(jax):
    seen = []

    @jax.custom_vjp
    def h(x):
        return x

    def backward(residuals, g):
        seen.append([isinstance(r, t) for r, t in zip(residuals, (bool, int, float), strict=True)])
        return (g,)

    h.defvjp(lambda x: (x, (True, 3, 2.5)), backward)
    jax.grad(h)(1.0)
    jax.jit(jax.grad(h))(1.0)
    return seen


@case
def types_as_results_and_arguments(jax):
    struct = jax.ShapeDtypeStruct((2,), "float32")
    shape = jax.core.ShapedArray((2,), np.dtype("float32"))
    out = jax.eval_shape(lambda: struct), jax.eval_shape(jax.numpy.sin, shape)
    return [(x.shape, str(x.dtype)) for x in out]


@case
def treedef_with_unhashable_metadata(jax):
    class Node:
        pass

    jax.tree_util.register_pytree_node(
        Node, lambda n: ((), {"a": 1}), lambda meta, children: Node()
    )
    first, second = jax.tree.structure(Node()), jax.tree.structure(Node())
    return first == second, hash(first) == hash(second)


@case
def zero_from_primal_of_a_tree(jax):
    zeros = jax.custom_derivatives.zero_from_primal((1.0, jax.numpy.ones(2)))
    return zeros


@case
def name_that_is_no_string(jax):
    class F:
        __name__ = jax.numpy.ones(1)

        def __call__(self, x):
            return x

    f, x = F(), jax.numpy.ones(2)
    return jax.vmap(f)(x), jax.linearize(f, x)[0]


@case
def einsum_with_a_product_of_ones_own(jax):
    ones = jax.numpy.ones((2, 2))
    calls = []

    def product(*args, **kwargs):
        calls.append(1)
        return jax.lax.dot_general(*args, **kwargs)

    return jax.numpy.einsum("ij,jk", ones, ones, _dot_general=product), len(calls)


@case
def callable_operands_of_cond(jax):
    class V:
        def __call__(self):
            return 0

    jax.tree_util.register_pytree_node(V, lambda v: ((), None), lambda meta, children: V())
    return jax.lax.cond(True, lambda a, b: 1.0, lambda a, b: 2.0, V(), V())


@case
def cond_forwards_what_all_branches_return(jax):
    def f(p, x):
        return jax.lax.cond(p, lambda x: (x, 1.0), lambda x: (x, 2.0), x)

    flags = jax.numpy.array([True, False])
    return jax.vmap(f, in_axes=(0, None), out_axes=(None, 0))(flags, 3.0)


@case
def a_branch_is_traced_once(jax):
    traces = []

    def branch(x):
        traces.append(1)
        return x

    jax.jit(lambda p, x: jax.lax.cond(p, branch, branch, x))(True, 1.0)
    return len(traces)


@case
def static_names_do_not_imply_positions_where_positions_are_given(jax):
    @functools.wraps(lambda self, a, b: 0)
    def k(q, x, y, b=None):
        return y

    jitted = jax.jit(k, static_argnums=(0,), static_argnames=["b"])
    return jitted("q", 1.0, {"u": 2.0}, b="hi")


@case
def nodes_that_look_at_their_leaves_under_vmap(jax):
    class J:
        def __init__(self, a):
            self.a = a

    jax.tree_util.register_pytree_node(
        J,
        lambda j: ((j.a,), None) if hasattr(j.a, "shape") else ((), j.a),
        lambda meta, children: J(children[0] if children else meta),
    )
    return jax.vmap(lambda x: J(x))(jax.numpy.ones(3)).a.shape


@case
def parts_of_a_primitive(jax):
    sin_p = jax.lax.sin_p
    return sin_p.call_primitive, sin_p.multiple_results, callable(sin_p.impl)


@pytest.mark.parametrize("name", CASES)
def test_same_as_in_jax(name):
    ours, theirs = CASES[name](namoo), CASES[name](real_jax)
    assert namoo.tree.structure(ours) == namoo.tree.structure(theirs)
    for a, b in zip(namoo.tree.leaves(ours), namoo.tree.leaves(theirs), strict=True):
        if hasattr(b, "shape"):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        else:
            assert a == b
