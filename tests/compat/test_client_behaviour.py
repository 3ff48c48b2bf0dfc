"""Behaviour that libraries on top of JAX rely on: each case gives the same in namoo and in JAX."""

import contextlib
import functools
import importlib
import inspect
import subprocess
import sys
import warnings

import jax as real_jax
import numpy as np
import pytest

import namoo
from namoo._base.config import Scope

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


@case
def the_sharding_of_a_type(jax):
    x = jax.numpy.ones((2, 3))
    sharding = jax.typeof(x).sharding
    made = (
        jax.numpy.zeros((2, 3), device=sharding),
        jax.random.normal(jax.random.key(0), (2, 3), out_sharding=sharding),
        jax.jit(lambda y: jax.numpy.full_like(y, 2, device=sharding))(x),
    )
    return str(sharding), [y.shape for y in made], str(jax.typeof(x).at_least_vspace())


@case
def the_parts_of_a_type(jax):
    struct = jax.core.ShapedArray((2,), np.dtype("int32"), sharding=jax.typeof(1.0).sharding)
    return struct.shape, str(struct.to_ct_aval().dtype), struct.ndim


@case
def conj_is_one_operation(jax):
    z = jax.numpy.array([1 + 2j, 3 - 1j])
    [eqn] = jax.make_jaxpr(jax.lax.conj)(z).eqns

    def f(z):
        return jax.numpy.sum(jax.lax.conj(z) * (2 + 1j)).real

    same = eqn.primitive is jax.lax.conj_p
    return same, jax.jit(jax.lax.conj)(z), jax.grad(f)(z), jax.vmap(jax.lax.conj)(z)


@case
def an_operation_with_rules_as_methods(jax):
    from importlib import import_module

    hijax = import_module(f"{jax.__name__}.experimental.hijax")

    class Cube(hijax.HiPrimitive):
        def abstract_eval(self, aval):
            return aval, set()

        def to_lojax(self, x):
            return x * x * x

        def jvp(self, primals, tangents):
            return self.bind(*primals), 5 * primals[0] ** 2 * tangents[0]

    cube = Cube("cube").bind
    return jax.jit(cube)(2.0), jax.jvp(cube, (2.0,), (1.0,)), cube(jax.numpy.arange(3.0))


@case
def a_call_of_python_in_a_lowering(jax):
    from importlib import import_module

    core = import_module(f"{jax.__name__}.extend.core")
    mlir = import_module(f"{jax.__name__}.interpreters.mlir")
    twice_p = core.Primitive("twice")
    twice_p.multiple_results = True
    twice_p.def_abstract_eval(lambda x: [x])

    def lowering(ctx, x):
        out, _, keepalive = mlir.emit_python_callback(
            ctx,
            lambda v: (np.asarray(2 * v),),
            None,
            [x],
            ctx.avals_in,
            ctx.avals_out,
            has_side_effect=False,
        )
        ctx.module_context.add_keepalive(keepalive)
        return out

    mlir.register_lowering(twice_p, lowering)
    return jax.jit(lambda x: twice_p.bind(x)[0] + 1)(jax.numpy.arange(3.0))


@case
def a_traced_value_on_the_host(jax):
    return jax.grad(lambda x: jax.device_get({"x": x})["x"] * 2)(3.0)


@case
def the_platform_of_a_device(jax):
    device = jax.devices()[0]
    return device.client.platform, device.memory_stats(), device.memory("device").kind


@case
def putting_arrays_in_a_format(jax):
    from importlib import import_module

    layout = import_module(f"{jax.__name__}.experimental.layout")
    sharding = jax.numpy.ones(3).sharding
    return jax.device_put(np.arange(3), layout.Format(None, sharding))


@case
def the_signature_without_following_what_is_wrapped(jax):
    return str(inspect.signature(jax.jit(lambda x, *, y: x), follow_wrapped=False))


@case
def the_program_as_the_compilers_object(jax):
    lowered = jax.jit(jax.numpy.sin).lower(1.0)
    hlo = lowered.compiler_ir("hlo").as_hlo_text()
    return "sine(" in hlo, "stablehlo.sine" in str(lowered.compiler_ir())


@case
def modules_as_attributes(jax):
    return [hasattr(jax, name) for name in ("api_util", "lib", "extend", "interpreters")]


@case
def sizes_that_are_constants(jax):
    from importlib import import_module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        is_constant = import_module(f"{jax.__name__}.core").is_constant_dim
    (n,) = import_module(f"{jax.__name__}.export").symbolic_shape("n")
    found = []
    sizes = (3, np.int32(3), np.array(3), jax.numpy.array(3), True, 2.0, "3", None, n, n - n + 2)
    found += [is_constant(size) for size in sizes]
    jax.jit(lambda x: found.append(is_constant(x)) or x)(1)
    jax.vmap(lambda x: found.append(is_constant(x)) or x)(np.arange(2))
    return found


@case
def never_stopped_alone(jax):
    from importlib import import_module

    multihost_utils = import_module(f"{jax.__name__}.experimental.multihost_utils")
    return multihost_utils.reached_preemption_sync_point(1)


@case
def the_arrays_of_a_failed_check(jax):
    from importlib import import_module

    checkify = import_module(f"{jax.__name__}.experimental.checkify")
    message = ""
    try:
        checkify.check(jax.numpy.array(False), "{tree}", tree={"a": jax.numpy.float32(1.5)})
    except Exception as error:
        message = str(error)
    return "Array(1.5" in message


@case
def a_zero_tangent_is_a_tree_without_leaves(jax):
    from importlib import import_module

    zero = import_module(f"{jax.__name__}.interpreters.ad").Zero(jax.typeof(1.0))
    leaves, structure = jax.tree.flatten((1.0, zero))
    again = jax.tree.unflatten(structure, leaves)
    return len(leaves), type(again[1]) is type(zero)


@case
def a_tangent_of_what_has_none(jax):
    try:
        jax.jvp(lambda x, _: x, (1.0, "name"), (1.0, "another"))
    except TypeError as error:
        return "is not a valid JAX type" in str(error)


@case
def the_place_of_a_result_that_needs_an_axis(jax):
    texts = []
    for fun, out_axes in (
        (lambda x: x, None),
        (lambda x: {"a": x, "b": (1.0, x)}, {"a": 0, "b": (None, None)}),
        (lambda x: {"a": x, "b": (x, x)}, {"a": 0, "b": None}),
    ):
        try:
            jax.vmap(fun, out_axes=out_axes)(np.ones(3))
        except ValueError as error:
            texts.append(str(error).partition("axis 0")[0])
    return texts


@case
def names_of_scopes(jax):
    def f(x):
        with jax.named_scope("outer"):
            y = jax.numpy.sin(x)
            with jax.named_scope("inner"):
                y = jax.numpy.cos(y)
        return jax.numpy.tan(y)

    return [str(eqn.source_info.name_stack) for eqn in jax.make_jaxpr(f)(1.0).eqns]


@case
def a_closed_program_shows_its_variables(jax):
    constant = jax.numpy.arange(3)
    closed = jax.make_jaxpr(lambda x: x * constant)(1.0)
    return [len(variables) for variables in (closed.constvars, closed.invars, closed.outvars)]


@case
def a_tracer_of_another_library(jax):
    class Counted(jax.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))

    core = jax.extend.core
    with core.take_current_trace() as trace:
        return Counted(trace, np.ones(3, np.float32)).shape


@case
def a_constraint_over_the_abstract_mesh_of_the_current_one(jax):
    auto = (jax.sharding.AxisType.Auto,)
    with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=auto)):
        abstract = jax.sharding.get_abstract_mesh()
        sharding = jax.sharding.NamedSharding(abstract, jax.P("x"))
        return jax.lax.with_sharding_constraint(np.arange(3.0, dtype=np.float32), sharding)


@case
def known_values_by_the_name_in_core(jax):
    def f(x):
        with jax.core.ensure_compile_time_eval():
            return x + int(jax.numpy.arange(3).sum())

    return jax.jit(f)(1)


@case
def associated_legendre_functions(jax):
    z = jax.numpy.array([-0.7, 0.2, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        special = jax.scipy.special
        values = [special.lpmn_values(2, 2, z, normal) for normal in (False, True)]
        return [np.asarray(x, float).round(4) for x in (*values, *special.lpmn(2, 2, z))]


@case
def a_sparse_array_with_other_batch_and_dense_axes(jax):
    dense = np.arange(24.0).reshape(2, 3, 4) * (np.arange(24).reshape(2, 3, 4) % 3 == 0)
    sparse = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    out = []
    for before, after in [((0, 0), (1, 1)), ((1, 0), (0, 1)), ((2, 0), (1, 0)), ((0, 2), (1, 0))]:
        mat = sparse.BCOO.fromdense(dense, n_batch=before[0], n_dense=before[1])
        sizes = dict(zip(("n_batch", "n_dense"), after, strict=True))
        mat = sparse.bcoo_update_layout(mat, **sizes, on_inefficient=None)
        out.append((mat.n_batch, mat.n_dense, mat.todense()))
    return out


@case
def the_largest_eigenvalues_of_a_sparse_operator(jax):
    lobpcg = importlib.import_module(f"{jax.__name__}.experimental.sparse.linalg").lobpcg_standard
    d = jax.numpy.arange(1.0, 31.0)
    values, vectors, _ = lobpcg(lambda x: d[:, None] * x, jax.numpy.eye(30, 3) + 0.1)
    return np.asarray(values).round(3), np.abs(np.asarray(vectors[-4:])).round(2)


@case
def the_format_of_an_array(jax):
    return jax.numpy.ones((2, 3)).format.layout.major_to_minor


@case
def devices_of_several_groups(jax):
    mesh_utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
    make = functools.partial(
        mesh_utils.create_hybrid_device_mesh, (1, 1), (1, 1), jax.devices()[:1]
    )
    with pytest.raises(ValueError, match="process_is_granule"):
        make()
    return make(process_is_granule=True).shape


@pytest.mark.parametrize("name", CASES)
def test_same_as_in_jax(name):
    ours, theirs = CASES[name](namoo), CASES[name](real_jax)
    assert namoo.tree.structure(ours) == namoo.tree.structure(theirs)
    for a, b in zip(namoo.tree.leaves(ours), namoo.tree.leaves(theirs), strict=True):
        if hasattr(b, "shape"):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        else:
            assert a == b


NEW_ARRAYS = {
    "array": lambda jnp: jnp.array(1.0),
    "asarray": lambda jnp: jnp.asarray([1, 2]),
    "of NumPy": lambda jnp: jnp.array(np.ones(3)),
    "type": lambda jnp: jnp.float32(2.0),
}


@pytest.mark.parametrize("make", NEW_ARRAYS.values(), ids=NEW_ARRAYS)
@pytest.mark.parametrize("known", [False, True])
def test_new_arrays_are_traced_as_in_jax(make, known):
    def scalar(jax):
        kinds = []

        def f(x):
            with jax.ensure_compile_time_eval() if known else contextlib.nullcontext():
                value = make(jax.numpy)
                kinds.append(isinstance(value, jax.core.Tracer))
            return jax.numpy.sum(x * value)

        out, slope = jax.jit(jax.value_and_grad(f))(1.5)
        return kinds, np.asarray(out), np.asarray(slope)

    with Scope("trace_new_arrays", True):
        ours = scalar(namoo)
    theirs = scalar(real_jax)
    assert ours == theirs


def test_a_traced_constant_is_a_literal_of_the_program():
    def f(x):
        return x * namoo.numpy.array(2.0)

    expected = str(namoo.make_jaxpr(f)(1.0))
    with Scope("trace_new_arrays", True):
        assert str(namoo.make_jaxpr(f)(1.0)) == expected


def test_no_array_is_alive_after_import():
    code = "import namoo.numpy as jnp; jnp.var; import namoo; print(len(namoo.live_arrays()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"


@pytest.mark.parametrize(
    ("argnums", "argnames"),
    [(0, None), (None, "b"), (None, ("b", "c")), ((0, 1), "c"), (None, None), (-1, None)],
)
def test_parameters_by_position_and_by_name(argnums, argnames):
    from jax._src.api_util import infer_argnums_and_argnames as theirs

    from namoo.compat.private.api_util import infer_argnums_and_argnames as ours

    signature = inspect.signature(lambda a, b, *, c=1: None)
    assert ours(signature, argnums, argnames) == theirs(signature, argnums, argnames)
