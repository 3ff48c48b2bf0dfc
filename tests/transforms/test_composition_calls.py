"""Single uses of the transformations, with all their options, against JAX.

Each case is a function of the modules `(J, jnp, lax)`: it returns a tree of results, or raises.
"""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
import zlib

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

from both_libraries import JAX, NAMOO, assert_agree, jax_compiles_quickly  # noqa: F401

CASES, ERRORS = {}, {}

x3 = np.array([0.3, -1.2, 0.8], np.float32)
x23 = np.arange(6, dtype=np.float32).reshape(2, 3) / 4 - 0.5
X3, X23 = x3, x23
x234 = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 12 - 1


def case(fun):
    CASES[fun.__name__] = fun
    return fun


def error(fun):
    ERRORS[fun.__name__] = fun
    return fun


@pytest.mark.parametrize("name", CASES)
def test_results(name):
    wanted = CASES[name](*JAX)
    assert_agree(CASES[name](*NAMOO), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    raised = []
    for modules in (JAX, NAMOO):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = ERRORS[name](*modules)
                raised.append(f"no error, but {result!r}")
            except Exception as found:  # noqa: BLE001 - its type is what is compared
                raised.append(found)
    wanted, found = raised
    assert isinstance(wanted, Exception), wanted
    # What is caught in programs for JAX must be caught here, so a subclass will do.
    kinds = [kind.__name__ for kind in type(found).__mro__]
    assert type(wanted).__name__ in kinds, f"{found!r}; JAX: {wanted!r}"


@case
def vmap_axes_of_trees(J, jnp, lax):
    tree = {"a": x23, "b": (x234, 2.0)}

    def f(t, c):
        return {"s": t["a"].sum() + t["b"][0].sum(0) * t["b"][1] * c, "c": c}

    axes = ({"a": 1, "b": (-2, None)}, None)
    return [
        J.vmap(f, in_axes=axes)(tree, 3.0),
        J.vmap(f, in_axes=axes, out_axes={"s": -1, "c": None})(tree, 3.0),
        J.vmap(f, in_axes=axes, out_axes={"s": 1, "c": 0})(tree, x3[0]),
    ]


@case
def vmap_prefix_axes(J, jnp, lax):
    def f(pair, y):
        return (pair[0] + pair[1]["k"], y)

    return J.vmap(f, in_axes=(1, None), out_axes=(1, None))((x23, {"k": x23}), 5)


@case
def vmap_keywords(J, jnp, lax):
    def f(x, *, scale, shift):
        return x * scale + shift

    return J.vmap(f)(x23, scale=x3[:2], shift=x23)


@case
def vmap_axis_size(J, jnp, lax):
    return J.vmap(lambda: jnp.arange(3.0), axis_size=2)(), J.vmap(
        lambda x: x, in_axes=None, axis_size=4
    )(1.5)


@case
def vmap_of_constants(J, jnp, lax):
    return J.vmap(lambda x: (1.0, jnp.zeros(2), x * 0 + 1, None))(x3)


@case
def vmap_three_deep(J, jnp, lax):
    def f(a, b):
        return jnp.dot(a, b)

    inner = J.vmap(f, in_axes=(None, 0))
    return J.vmap(J.vmap(inner, in_axes=(0, None)), in_axes=(0, None))(x234, x234[0])


@case
def vmap_of_integers(J, jnp, lax):
    return J.vmap(lambda i, x: (x[i], i + 1, i > 0))(jnp.array([0, 2]), x23)


@error
def vmap_sizes_differ(J, jnp, lax):
    return J.vmap(lambda x, y: x)(x3, x23)


@error
def vmap_axis_out_of_range(J, jnp, lax):
    return J.vmap(lambda x: x, in_axes=2)(x23)


@error
def vmap_of_a_scalar(J, jnp, lax):
    return J.vmap(lambda x: x)(1.0)


@error
def vmap_nothing_mapped(J, jnp, lax):
    return J.vmap(lambda x: x, in_axes=None)(x3)


@error
def vmap_axes_do_not_fit_the_tree(J, jnp, lax):
    return J.vmap(lambda t: t, in_axes=({"a": 0, "c": 0},))({"a": x3, "b": x3})


@error
def vmap_axes_are_a_list(J, jnp, lax):
    return J.vmap(lambda x, y: x, in_axes=[0, 0])(x3)


@error
def vmap_out_axis_none_of_a_batch(J, jnp, lax):
    return J.vmap(lambda x: x, out_axes=None)(x3)


@error
def vmap_out_axes_do_not_fit(J, jnp, lax):
    return J.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(x3)


@error
def vmap_axes_of_floats(J, jnp, lax):
    return J.vmap(lambda x: x, in_axes=0.5)(x3)


@case
def psum_and_friends(J, jnp, lax):
    def f(x):
        return {
            "sum": lax.psum(x, "i"),
            "mean": lax.pmean(x, "i"),
            "max": lax.pmax(x, "i"),
            "min": lax.pmin(x, "i"),
            "count": lax.psum(1, "i"),
            "size": lax.axis_size("i"),
            "index": lax.axis_index("i"),
            "share": x / lax.psum(x, axis_name="i"),
        }

    return J.vmap(f, axis_name="i")(x23), J.jit(J.vmap(f, axis_name="i", in_axes=1))(x23)


@case
def collectives_of_two_axes(J, jnp, lax):
    def f(x):
        both = lax.psum(x, ("i", "j"))
        return both, lax.psum(x, "i") - lax.pmean(x, "j"), lax.axis_index("j"), lax.psum(2.0, "i")

    mapped = J.vmap(J.vmap(f, axis_name="j"), axis_name="i")
    return mapped(x23), J.jit(mapped)(x23), J.vmap(J.vmap(f, axis_name="i"), axis_name="j")(x23)


@case
def exchanges(J, jnp, lax):
    def f(x):
        n = 3
        return (
            lax.all_gather(x, "i"),
            lax.all_gather(x, "i", axis=1),
            lax.ppermute(x, "i", [(k, (k + 1) % n) for k in range(n)]),
            lax.all_to_all(x[:3], "i", 0, 0),
            lax.psum_scatter(x[:3], "i"),
        )

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return J.vmap(f, axis_name="i")(x), J.vmap(J.jit(f), axis_name="i")(x)


@case
def gradients_through_collectives(J, jnp, lax):
    def f(x):
        return jnp.sin(lax.psum(x**2, "i")) * lax.axis_index("i") + lax.all_gather(x, "i")[0]

    mapped = J.vmap(f, axis_name="i")

    def loss(x):
        return jnp.sum(mapped(x) * x)

    inner = J.vmap(J.grad(lambda x: f(x).sum()), axis_name="i")
    return J.grad(loss)(x23), J.jit(J.grad(loss))(x23), J.hessian(loss)(x3), inner(x23)


@case
def collectives_in_loops(J, jnp, lax):
    def f(x):
        def body(c, _):
            return c * 0.5 + lax.pmean(c, "i"), lax.psum(c, "i")

        last, sums = lax.scan(body, x, None, length=3)
        return lax.cond(lax.axis_index("i") > 0, lambda v: v, lambda v: v * 2, last), sums

    return J.vmap(f, axis_name="i")(x23), J.jit(J.vmap(f, axis_name="i"))(x23)


@error
def unbound_axis(J, jnp, lax):
    return lax.psum(1.0, "i")


@error
def unbound_axis_in_jit(J, jnp, lax):
    return J.jit(lambda x: lax.psum(x, "nowhere"))(1.0)


@case
def grad_options(J, jnp, lax):
    def f(x, y, scale=2.0):
        return jnp.sum(x * y**2) * scale

    def with_aux(x, y):
        return (f(x, y), {"y": y, "n": 3})

    return [
        J.grad(f)(x3, x3),
        J.grad(f, argnums=1)(x3, 2.0),
        J.grad(f, argnums=(1, 0))(x3, 2.0),
        J.grad(f, argnums=-1)(x3, 2.0),
        J.grad(f)(x3, 2.0, scale=5.0),
        J.value_and_grad(f, argnums=(0, 1))(x3, x3),
        J.value_and_grad(with_aux, has_aux=True)(x3, x3),
        J.grad(with_aux, has_aux=True)(x3, x3),
    ]


@case
def grad_of_scalars_is_weak(J, jnp, lax):
    return [
        J.grad(f)(1.5)
        for f in (
            jnp.sin,
            jnp.tanh,
            lambda x: x**3,
            lambda x: x**2.5,
            lambda x: x * 2,
            lambda x: jnp.sum(x * jnp.ones(3)),
            jnp.log1p,
            lambda x: jnp.where(x > 0, x, 0.0),
            lambda x: jnp.maximum(x, 1.0),
            lambda x: 1 / x,
            abs,
            jnp.sqrt,
            lambda x: lax.cond(x > 1, jnp.sin, jnp.cos, x),
            J.jit(jnp.exp),
        )
    ]


@case
def grad_of_trees(J, jnp, lax):
    tree = {"a": (x3, 2.0), "b": None, "c": [x23]}

    def f(t):
        return jnp.sum(t["a"][0]) * t["a"][1] + jnp.sum(t["c"][0] ** 2)

    return J.grad(f)(tree), J.jacrev(f)(tree), J.jit(J.value_and_grad(f))(tree)


@case
def grad_with_integers_allowed(J, jnp, lax):
    def f(t):
        return jnp.sum(t["x"] * t["n"])

    return J.grad(f, allow_int=True)({"x": x3, "n": np.arange(3)})


@case
def grad_holomorphic(J, jnp, lax):
    z = np.array(0.5 + 0.25j, np.complex64)
    return [
        J.grad(lambda z: jnp.sin(z) * z**2, holomorphic=True)(z),
        J.grad(lambda z: jnp.real(jnp.sin(z)))(z),
        J.grad(lambda z: jnp.abs(z) ** 2)(z),
        J.jacfwd(lambda z: z**2, holomorphic=True)(z),
        J.jacrev(lambda z: z**2, holomorphic=True)(z),
    ]


@case
def vjp_and_jvp_options(J, jnp, lax):
    out, pull, aux = J.vjp(lambda x, y: (x * y, {"sum": x + y}), x3, 2.0, has_aux=True)

    def f(x, n):
        return x * n

    zero = np.zeros((), jax.dtypes.float0)
    return [
        out,
        pull(x3),
        aux,
        J.jvp(f, (x3, 3), (x3, zero)),
        J.jvp(lambda x: (x**2, x), (x3,), (x3,), has_aux=True),
        J.linearize(lambda x: jnp.sin(x) * 2, x3)[1](x3),
        J.linear_transpose(lambda x: jnp.dot(x23, x) * 2, x3)(x3[:2]),
    ]


@case
def jacobians(J, jnp, lax):
    def f(x, y):
        return {"a": x * y.sum(), "b": jnp.sin(y)}

    return [
        J.jacfwd(f)(x3, x3),
        J.jacrev(f, argnums=(0, 1))(x3, x3),
        J.jacobian(lambda x: (x**2, x[0]))(x3),
        J.hessian(lambda t: jnp.sum(t["u"] ** 2 * t["v"]))({"u": x3, "v": 2.0}),
        J.jacfwd(J.jacrev(J.jacfwd(lambda x: x**3)))(0.5),
        J.jacrev(lambda x: (x, x * 2), has_aux=True)(x3),
        J.vmap(J.hessian(lambda x: jnp.prod(x)))(x23),
    ]


@case
def derivatives_of_integers(J, jnp, lax):
    return J.jacfwd(lambda x: jnp.round(x) * 2)(x3), J.grad(lambda x: (x > 0) * x)(2.0)


@case
def gradient_of_unused(J, jnp, lax):
    return J.grad(lambda x, y: jnp.sum(x), argnums=1)(x3, x23), J.grad(lambda x: 3.0)(x3)


@error
def grad_of_a_vector(J, jnp, lax):
    return J.grad(lambda x: x)(x3)


@error
def grad_of_an_integer(J, jnp, lax):
    return J.grad(lambda x: x * 2.0)(3)


@error
def grad_of_a_complex_loss(J, jnp, lax):
    return J.grad(lambda x: x * 1j)(2.0)


@error
def grad_of_an_integer_loss(J, jnp, lax):
    return J.grad(lambda x: 3)(2.0)


@error
def grad_of_a_tuple(J, jnp, lax):
    return J.grad(lambda x: (x, x))(2.0)


@error
def grad_argnums_out_of_range(J, jnp, lax):
    return J.grad(lambda x: x, argnums=3)(2.0)


@error
def grad_without_aux(J, jnp, lax):
    return J.grad(lambda x: x, has_aux=True)(2.0)


@error
def jvp_trees_differ(J, jnp, lax):
    return J.jvp(lambda x: x, (x3,), ((x3, x3),))


@error
def jvp_shapes_differ(J, jnp, lax):
    return J.jvp(lambda x: x, (x3,), (x3[:2],))


@error
def jvp_dtypes_differ(J, jnp, lax):
    return J.jvp(lambda x: x, (x3,), (np.arange(3),))


@error
def jvp_of_lists(J, jnp, lax):
    return J.jvp(lambda x: x, [x3], (x3,))


@error
def vjp_wrong_cotangent(J, jnp, lax):
    return J.vjp(lambda x: (x, x), x3)[1](x3)


@error
def vjp_wrong_shape(J, jnp, lax):
    return J.vjp(lambda x: x, x3)[1](x3[:2])


@error
def linearize_wrong_shape(J, jnp, lax):
    return J.linearize(lambda x: x, x3)[1](x3[:2])


@error
def jacfwd_of_integers(J, jnp, lax):
    return J.jacfwd(lambda x: x)(3)


@case
def custom_jvp_options(J, jnp, lax):
    @functools.partial(J.custom_jvp, nondiff_argnums=(0,))
    def apply(fun, x, y=2.0):
        return {"out": fun(x) * y}

    @apply.defjvp
    def rule(fun, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return apply(fun, x, y), {"out": 10 * dx * y + dy}

    @J.custom_jvp
    def separate(x, y):
        return x * y

    separate.defjvps(lambda t, out, x, y: t * 2, None)

    def f(x):
        return apply(jnp.sin, x, x)["out"].sum()

    return [
        J.grad(f)(x3),
        J.vmap(J.grad(f))(x23),
        J.jit(J.grad(f))(x3),
        J.jacfwd(lambda x: apply(jnp.cos, x, y=3.0))(x3),
        J.grad(separate, (0, 1))(2.0, 3.0),
        J.vmap(J.grad(separate), in_axes=(0, None))(x3, 3.0),
        J.hessian(f)(x3),
    ]


@case
def custom_vjp_options(J, jnp, lax):
    @functools.partial(J.custom_vjp, nondiff_argnums=(1,))
    def clip(x, bound):
        return jnp.clip(x["v"], -bound, bound), x["n"]

    def forward(x, bound):
        return clip(x, bound), {"kept": jnp.abs(x["v"]) < bound}

    def backward(bound, res, cts):
        return ({"v": cts[0] * res["kept"] * bound, "n": None},)

    clip.defvjp(forward, backward)
    tree = {"v": x3, "n": 4.0}

    def f(t):
        return clip(t, 1.0)[0].sum() ** 2

    batch = {"v": x23, "n": 4.0}
    return [
        J.value_and_grad(f)(tree),
        J.jit(J.grad(f))(tree),
        J.vmap(J.grad(f), in_axes=({"v": 0, "n": None},))(batch),
        J.vmap(lambda v: clip({"v": v, "n": 1.0}, 0.5))(x23),
        J.jacrev(lambda v: clip({"v": v, "n": 1.0}, 1.0)[0])(x3),
    ]


@case
def custom_vjp_shared_argument(J, jnp, lax):
    """Under vmap the cotangent of an argument that is not mapped is summed."""

    @J.custom_vjp
    def f(w, x):
        return jnp.dot(w, x)

    f.defvjp(lambda w, x: (f(w, x), (w, x)), lambda r, ct: (r[1] * ct * 2, r[0] * ct * 3))
    x3, x23 = jnp.array(X3), jnp.array(X23)

    def loss(w):
        return jnp.sum(J.vmap(f, in_axes=(None, 0))(w, x23) ** 2)

    def scanned(w):
        return lax.scan(lambda c, x: (c + f(w, x), c), 0.0, x23)[0]

    return [
        J.grad(loss)(x3),
        J.jit(J.grad(loss))(x3),
        J.grad(scanned)(x3),
        J.grad(lambda w: J.grad(lambda v: f(v, v) ** 2)(w).sum())(x3),
        J.vmap(J.vmap(J.grad(f, (0, 1)), in_axes=(None, 0)), in_axes=(0, None))(x23, x23),
    ]


@case
def custom_rules_with_symbolic_zeros(J, jnp, lax):
    @J.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        kinds = [type(t).__name__ == "SymbolicZero" for t in tangents]
        out = f(x, y)
        return out, (0.0 if kinds[0] else dx * 2) + (1.0 if kinds[1] else dy * 3) + 0 * out

    f.defjvp(rule, symbolic_zeros=True)
    return J.grad(f)(2.0, 5.0), J.grad(f, 1)(2.0, 5.0), J.grad(f, (0, 1))(2.0, 5.0)


@case
def custom_vjp_with_a_wider_cotangent(J, jnp, lax):
    f = J.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct.astype("float32"),))
    return J.grad(lambda x: f(x).sum())(jnp.ones(2, "bfloat16"))


@case
def custom_gradient(J, jnp, lax):
    @J.custom_gradient
    def f(x, y):
        return x * y, lambda g: (g * 2, g * y * 3)

    return J.grad(f, (0, 1))(2.0, 5.0), J.vmap(J.grad(f))(x3, x3), J.jit(f)(2.0, 3.0)


@case
def derivatives_by_integers_are_numpy_arrays(J, jnp, lax):
    f = lambda i, x: x * 2.0  # noqa: E731
    zero = np.zeros((), jax.dtypes.float0)
    found = [
        J.grad(f, allow_int=True)(3, 2.0),
        J.jit(J.grad(f, allow_int=True))(3, 2.0),
        J.vmap(J.grad(f, allow_int=True))(np.arange(3), x3),
        J.vjp(f, 3, 2.0)[1](1.0)[0],
        J.jvp(lambda i: i * 2, (3,), (zero,))[1],
        J.jit(lambda x: x)(np.zeros(2, jax.dtypes.float0)),
        jnp.zeros(2, jax.dtypes.float0),
        jnp.asarray(zero),
    ]
    assert all(hasattr(x, "__array__") and not isinstance(x, J.Array) for x in found)
    return [np.shape(x) for x in found], [bool(np.all(x == zero)) for x in found]


@case
def types_like_those_of_values(J, jnp, lax):
    like = J.ShapeDtypeStruct.like
    found = [like(x) for x in (1.5, 2, np.ones(3), jnp.ones((2, 3)), like(1.5))]
    return [(repr(x.dtype), x.shape, x.weak_type, x.sharding is None) for x in found]


@case
def formats_of_compiled_programs(J, jnp, lax):
    compiled = J.jit(lambda x, y: {"a": x}).lower(x23, 1.0).compile()
    (x, y), _ = compiled.input_formats
    out = compiled.output_formats["a"]
    return [x.layout.major_to_minor, out.layout.major_to_minor, y.layout is y.sharding is None]


@case
def residuals_that_are_saved(J, jnp, lax):
    if J is jax:
        from jax.ad_checkpoint import checkpoint_name, print_saved_residuals
    else:
        from namoo.ad_checkpoint import checkpoint_name, print_saved_residuals
    policies = J.checkpoint_policies

    def f(x, *rest, y):
        z = checkpoint_name(jnp.sin(3.0), "z")
        return z * ((x[0] * x[1]) * y["k"]) * np.array([3.0], np.float32) * rest[0]

    def products(x):
        y, z = (checkpoint_name(jnp.multiply(2.0, 2.0), name) for name in "yz")
        return x * y * z * jnp.multiply(2.0, 2.0)

    def branch(x):
        return lax.cond(x > 0, lambda x: (jnp.sin(x), x * 2), lambda x: (x, x), x)

    def linear(x):
        return jnp.zeros_like(x) * x

    calls = [(f, ((2.0, 3.0), 1.5), {"y": {"k": 4.0}}), (products, (1.0,), {}), (linear, (x3,), {})]
    wrappers = [
        lambda f: f,
        J.jit,
        J.checkpoint,
        functools.partial(J.checkpoint, policy=policies.save_only_these_names("z")),
        functools.partial(J.checkpoint, policy=policies.save_any_names_but_these("z")),
    ]
    shown = []
    for fun, args, kwargs in calls:
        for wrap in wrappers:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                print_saved_residuals(wrap(fun), *args, **kwargs)
            lines = [
                line.split(" from /")[0].removesuffix(" from ")
                for line in out.getvalue().splitlines()
            ]
            shown.append(zlib.crc32("\n".join(lines).encode()))
    again = str(J.make_jaxpr(J.linearize(J.checkpoint(branch), 4.0)[1])(1.0))
    return shown, [again.count(" sin "), again.count(" cos ")]


def _closing_over(J, jnp, lax, x, mode):
    """A function with rules that close over `x`, at a point that does not depend on it."""
    if mode == "jvp":
        f = J.custom_jvp(lambda y: x * y)
        f.defjvp(lambda primals, tangents: (x * primals[0], jnp.cos(x) * tangents[0]))
    else:
        f = J.custom_vjp(lambda y: x * y)
        f.defvjp(lambda y: (x * y, (x, y)), lambda saved, ct: (jnp.cos(saved[0]) * ct,))
    return f


@case
def custom_rules_close_over_a_mapped_value(J, jnp, lax):
    out = []
    for mode in ("jvp", "vjp"):
        close = functools.partial(_closing_over, J, jnp, lax, mode=mode)
        over = lambda z: J.vmap(lambda x: close(x)(z))(x3)  # noqa: B023, E731
        out += [over(2.0), J.vmap(lambda x: J.grad(close(x))(3.0))(x3)]  # noqa: B023
        out += [J.grad(lambda z: (over(z) * x3).sum())(2.0), J.jit(over)(2.0)]  # noqa: B023
        nested = lambda a: J.vmap(lambda b: close(a)(b) + close(b)(2.0))(x3)  # noqa: B023, E731
        slopes = lambda a: J.vmap(lambda b: J.grad(close(a))(b))(x3)  # noqa: B023, E731
        out += [J.vmap(nested)(x3), J.vmap(slopes)(x3)]
        if mode == "jvp":
            out += J.jvp(over, (2.0,), (1.5,))
    return out


@case
def custom_jvp_of_a_mapped_static_argument(J, jnp, lax):
    @functools.partial(J.custom_jvp, nondiff_argnums=(0,))
    def f(x, y):
        return x * y

    f.defjvp(lambda x, primals, tangents: (f(x, *primals), 5 * tangents[0]))
    return J.jvp(lambda y: J.vmap(f)(x3, y), (x3 + 1,), (x3,))


@case
def custom_functions_that_do_not_depend_on_the_mapped_value(J, jnp, lax):
    f = J.custom_jvp(lambda x: lax.psum(x, "i"))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    g = J.custom_vjp(lambda x, y: (x, y))
    g.defvjp(lambda x, y: ((x, y), None), lambda _, cts: cts)
    shared = J.vmap(lambda _, x: f(x), axis_name="i", in_axes=(0, None), out_axes=None)
    both = J.vmap(g, in_axes=(0, None), out_axes=(0, None))
    return shared(x3, 2.0), both(x3, 2.0), J.vmap(J.grad(lambda y: g(y, 1.0)[0]))(x3)


@case
def custom_rules_see_symbolic_zeros_under_vmap(J, jnp, lax):
    seen = []
    kind = lambda t: -1 if "SymbolicZero" in type(t).__name__ else t.ndim  # noqa: E731
    f = J.custom_jvp(lambda x, y: (x * y, y))

    def rule(primals, tangents):
        seen.append([*map(kind, tangents)])
        return f(*primals), (tangents[0] * primals[1], tangents[1])

    f.defjvp(rule, symbolic_zeros=True)
    g = J.custom_vjp(lambda x, y: (x * y, y))

    def fwd(x, y):
        seen.append([x.perturbed, y.perturbed])
        return g(x.value, y.value), y.value

    def bwd(y, cts):
        seen.append([*map(kind, cts)])
        return cts[0] * y, None

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    out = []
    for fun in (f, g):
        loss = lambda x, fun=fun: fun(x, x * 0 + 2.0)[0].sum()  # noqa: E731
        rows = lambda x, fun=fun: J.vmap(lambda r: fun(r, x3)[0])(x).sum()  # noqa: E731
        out += [J.vmap(J.grad(loss))(x23), J.grad(rows)(x23), J.jit(J.grad(rows))(x23)]
    return out, np.array(seen, int)


@case
def custom_jvp_rule_that_differentiates_a_loop(J, jnp, lax):
    def loop(x):
        step = lambda c, _: (jnp.sin(c) * x, c)  # noqa: E731
        return lax.scan(step, x, None, length=3)[0]

    def choice(x):
        return lax.cond(x > 1, loop, lambda x: x * x, x)

    out = []
    for g in (loop, choice, J.jit(loop), J.checkpoint(loop)):
        f = J.custom_jvp(g)
        f.defjvp(lambda primals, tangents, g=g: J.jvp(g, primals, tangents))
        square = lambda x, f=f: f(x) ** 2  # noqa: E731
        out += [J.value_and_grad(f)(2.0), J.value_and_grad(square)(0.7), J.hessian(square)(2.0)]
        out += [J.jit(J.value_and_grad(square))(2.0), J.vmap(J.grad(square))(x3)]
    return out


@case
def custom_rules_of_a_partial_function(J, jnp, lax):
    g = functools.partial(lambda x, y, a: x + y * a, a=0.1)
    f = J.custom_jvp(g)
    f.defjvp(lambda primals, tangents: J.jvp(g, primals, tangents))
    return J.grad(lambda args: f(*args))((1.0, 2.0))


@case
def custom_vmap_of_a_derivative_in_which_only_one_half_is_mapped(J, jnp, lax):
    seen = []
    f = J.custom_batching.custom_vmap(lambda x, y: jnp.sin(x) * y)

    @f.def_vmap
    def rule(size, batched, xs, ys):
        seen.append(list(batched))
        return jnp.cos(xs) * ys, batched[0] or batched[1]

    derivative = lambda x, t: J.jvp(f, (x, 2.0 * x), (t, t))  # noqa: E731
    out = [J.vmap(derivative)(x3, x3 + 1), J.jacfwd(f)(x3, x3 + 2)]
    out += [J.vmap(derivative, (None, 0))(0.5, x3), J.vmap(derivative, (0, None))(x3, 0.5)]
    return out, [np.array(seen)]


@case
def custom_decorators_forward_the_definition_of_rules(J, jnp, lax):
    f = J.custom_batching.custom_vmap(J.custom_jvp(lambda x: 2.0 * x))
    f.def_vmap(lambda size, batched, xs: (3.0 * xs, batched[0]))
    f.defjvp(lambda primals, tangents: (f(*primals), 5.0 * tangents[0]))
    return f(1.0), J.vmap(f)(x3), J.jvp(f, (1.0,), (1.0,))


@error
def custom_vjp_symbolic_zero_of_another_argument(J, jnp, lax):
    f = J.custom_vjp(lambda x, y, z: (x, y, z))
    fwd = lambda x, y, z: (f(x.value, y.value, z.value), None)  # noqa: E731
    f.defvjp(fwd, lambda _, cts: (cts[1], cts[0], cts[2]), symbolic_zeros=True)
    ones = [jnp.ones(n) for n in (1, 2, 3)]
    return J.grad(lambda x, y, z: f(x, y, z)[2].sum())(*ones)


@error
def custom_jvp_closes_over_a_differentiated_value(J, jnp, lax):
    return J.grad(lambda x: _closing_over(J, jnp, lax, x, "jvp")(2.0))(3.0)


@error
def custom_jvp_without_a_rule(J, jnp, lax):
    return J.grad(J.custom_jvp(lambda x: x))(1.0)


@error
def custom_vjp_without_a_rule(J, jnp, lax):
    return J.custom_vjp(lambda x: x)(1.0)


@error
def custom_vjp_forward_mode(J, jnp, lax):
    f = J.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (ct,))
    return J.jvp(f, (1.0,), (1.0,))


@error
def custom_vjp_wrong_number_of_cotangents(J, jnp, lax):
    f = J.custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda r, ct: (ct,))
    return J.grad(f)(1.0, 2.0)


@error
def custom_vjp_wrong_shape(J, jnp, lax):
    f = J.custom_vjp(lambda x: x.sum())
    f.defvjp(lambda x: (x.sum(), None), lambda r, ct: (ct,))
    return J.grad(f)(x3)


def _once(lax, f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


@error
def custom_vjp_fwd_of_another_type(J, jnp, lax):
    f = J.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (jnp.stack([x, x]), None), lambda r, ct: (ct.sum(),))
    return J.jacrev(J.jit(f))(1.0)


@error
def custom_vjp_fwd_of_another_structure(J, jnp, lax):
    f = J.custom_vjp(lambda x: x)
    f.defvjp(lambda x: ((x, x), None), lambda r, ct: (ct[0],))
    return J.grad(_once(lax, f))(1.0)


@error
def custom_jvp_rule_of_another_type(J, jnp, lax):
    f = J.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (jnp.stack(p * 2), jnp.stack(t * 2)))
    return J.jvp(J.jit(f), (1.0,), (1.0,))


@error
def custom_jvp_of_a_keyword_only_argument(J, jnp, lax):
    @J.custom_jvp
    def f(x, *, scale=1.0):
        return x * scale

    f.defjvp(lambda p, t: (p[0], t[0]))
    return f(1.0, scale=2.0)


@error
def custom_jvp_wrong_tangent(J, jnp, lax):
    f = J.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], x3))
    return J.jvp(f, (1.0,), (1.0,))


@case
def types_of_programs_with_constants_that_have_no_value(J, jnp, lax):
    constant = J.ShapeDtypeStruct((2, 3), jnp.float32)
    types = [
        J.eval_shape(lambda: J.jit(lambda x: x + 1)(constant)),
        J.eval_shape(lambda x: jnp.dot(x, constant), np.ones((4, 2), np.float32)),
        J.eval_shape(J.grad(lambda x: jnp.sum(jnp.sin(constant) * x)), 1.0),
        J.eval_shape(J.vmap(lambda x: jnp.dot(x, constant)), np.ones((4, 2), np.float32)),
        J.eval_shape(lambda: lax.sin(constant)),
    ]
    return [np.zeros(x.shape, x.dtype) for x in types]


@error
def program_with_a_constant_that_has_no_value(J, jnp, lax):
    return J.jit(lambda: jnp.sin(J.ShapeDtypeStruct((2, 3), jnp.float32)))()


@error
def operation_on_a_type(J, jnp, lax):
    return J.vmap(lambda x: x + jnp.sin(J.ShapeDtypeStruct((), jnp.float32)))(x3)


class _Incomparable:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise NotImplementedError


@error
def static_arguments_that_cannot_be_compared(J, jnp, lax):
    f = J.jit(lambda x, static: x, static_argnums=1)
    f(1.0, 2)
    return [f(1.0, _Incomparable()) for _ in range(2)]


@case
def derivatives_of_numbers_with_64_bit_types_inside(J, jnp, lax):
    def f(x):
        with J.enable_x64(True):
            return jnp.sin(x) * jnp.float64(3) + jnp.exp(x)

    def g(x):
        with J.enable_x64(True):
            return jnp.sin(x)

    return [J.value_and_grad(h)(0.5) for h in (f, g)], J.grad(J.jit(g))(0.5), J.vjp(g, 0.5)[0]


@case
def loops_of_all_kinds(J, jnp, lax):
    return [
        lax.scan(lambda c, x: (c + x, {"c": c, "n": None}), 0.0, x3),
        lax.scan(lambda c, _: (c * 2, c), 1, None, length=4),
        lax.scan(lambda c, x: (c, x["a"] * x["b"]), (), {"a": x3, "b": x3}),
        lax.scan(lambda c, x: (c + x, c), np.float32(0), x3, reverse=True),
        lax.scan(lambda c, x: (c + 1, c * x), jnp.int32(0), np.zeros((0, 2), np.float32)),
        lax.fori_loop(2, 6, lambda i, v: v + i, 0),
        lax.fori_loop(0, 3, lambda i, v: v.at[i].set(v[i] * i), x3),
        lax.fori_loop(5, 2, lambda i, v: v + 1.0, 7.0),
        lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * 2, s[1] + 1), (1, 0)),
        lax.map(lambda x: x.sum(), x23),
        J.jit(lambda n: lax.fori_loop(0, n, lambda i, v: v * 2.0, 1.0))(5),
    ]


@case
def branches_of_all_kinds(J, jnp, lax):
    return [
        lax.cond(True, lambda x: x, lambda x: -x, x3),
        lax.cond(jnp.array(0), lambda: 1.0, lambda: 2.0),
        lax.cond(x3[0] > 0, lambda t: {"a": t["a"] * 2}, lambda t: t, {"a": x3}),
        [lax.switch(i, [lambda x: x, lambda x: x * 2, lambda x: x * 3], 1.5) for i in (-1, 1, 7)],
        J.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(jnp.array([True, False]), x23),
        J.vmap(lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0]))(jnp.arange(2)),
        J.vmap(lambda x: lax.cond(True, jnp.sin, jnp.cos, x))(x23),
        lax.cond(True, lambda: 1, lambda: jnp.int32(2)),
    ]


@case
def loops_batched_and_differentiated(J, jnp, lax):
    def halve(x):
        return lax.while_loop(lambda v: v > 0.1, lambda v: v * 0.5, x)

    def power(n, x):
        return lax.fori_loop(0, n, lambda i, v: v * x, 1.0)

    def nested(xs):
        def inner(c, x):
            return (jnp.sin(c + x), c * x)

        def outer(c, row):
            return lax.scan(inner, c, row)

        return lax.scan(outer, 0.5, xs)

    return [
        J.vmap(halve)(x3),
        J.jvp(halve, (0.9,), (1.0,)),
        J.vmap(power, in_axes=(0, None))(np.array([1, 3, 2]), 2.0),
        J.jvp(lambda x: power(jnp.array(3), x), (2.0,), (1.0,)),
        J.grad(lambda x: power(3, x))(2.0),
        J.grad(lambda xs: nested(xs)[0])(x23),
        J.jit(J.vmap(J.grad(lambda xs: nested(xs)[1].sum())))(x234),
        J.hessian(lambda xs: nested(xs)[0])(x23[:1, :2]),
    ]


@case
def loops_close_over_traced_values(J, jnp, lax):
    def f(w, x):
        def step(c, v):
            return (c * w + v, lax.cond(c.sum() > 0, lambda: w * c, lambda: c - w))

        last, ys = lax.scan(step, x, jnp.stack([x, -x]))
        n = lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2 + w**2 + 1, x**2)
        return jnp.sum(last) + jnp.sum(ys), lax.stop_gradient(n)

    def loss(w, x):
        return f(w, x)[0]

    return [
        J.grad(loss, (0, 1))(1.5, x3),
        J.vmap(f, in_axes=(0, None))(x3, x3),
        J.vmap(J.grad(loss, (0, 1)), in_axes=(None, 0))(1.5, x23),
        J.jit(J.vmap(J.value_and_grad(loss)))(x3[:2], x23),
        J.jvp(lambda w: J.vmap(f, (None, 0))(w, x23)[1], (1.5,), (1.0,)),
    ]


@case
def weak_carries(J, jnp, lax):
    half = np.ones(3, np.float16)
    return [
        lax.scan(lambda c, x: (c + x, c), 0.0, half),
        lax.fori_loop(0, 3, lambda i, c: c + half[0], 0.0),
        lax.while_loop(lambda c: c < 5, lambda c: c + jnp.float16(1.5), 0.0),
        lax.scan(lambda c, x: (c * x, c), 2, x3),
    ]


@error
def scan_carry_changes_shape(J, jnp, lax):
    return lax.scan(lambda c, x: (jnp.stack([c, c]), x), 0.0, x3)


@error
def scan_carry_changes_dtype(J, jnp, lax):
    return lax.scan(lambda c, x: (c.astype(jnp.int32), x), jnp.float32(0), x3)


@error
def scan_carry_changes_tree(J, jnp, lax):
    return lax.scan(lambda c, x: ((c, c), x), 0.0, x3)


@error
def scan_body_is_no_pair(J, jnp, lax):
    return lax.scan(lambda c, x: c, 0.0, x3)


@error
def scan_lengths_differ(J, jnp, lax):
    return lax.scan(lambda c, x: (c, x), 0.0, (x3, x23))


@error
def scan_without_a_length(J, jnp, lax):
    return lax.scan(lambda c, x: (c, x), 0.0)


@error
def scan_over_a_scalar(J, jnp, lax):
    return lax.scan(lambda c, x: (c, x), 0.0, 1.0)


@error
def while_condition_is_no_boolean(J, jnp, lax):
    return lax.while_loop(lambda c: c, lambda c: c, 1.0)


@error
def while_carry_changes(J, jnp, lax):
    return lax.while_loop(lambda c: True, lambda c: (c, c), 1.0)


@error
def grad_of_while(J, jnp, lax):
    return J.grad(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * x, x))(2.0)


@error
def cond_branches_differ(J, jnp, lax):
    return lax.cond(True, lambda: 1.0, lambda: (1.0, 2.0))


@error
def cond_dtypes_differ(J, jnp, lax):
    return lax.cond(True, lambda: jnp.float32(1), lambda: jnp.int32(2))


@error
def cond_shapes_differ(J, jnp, lax):
    return lax.cond(True, lambda: jnp.ones(2), lambda: jnp.ones(3))


@error
def cond_of_a_vector(J, jnp, lax):
    return lax.cond(jnp.array([True, False]), lambda: 1, lambda: 2)


@error
def cond_of_what_is_no_function(J, jnp, lax):
    return lax.cond(True, 1, 2)


@error
def switch_of_a_float(J, jnp, lax):
    return lax.switch(1.5, [lambda: 1, lambda: 2])


@error
def switch_without_branches(J, jnp, lax):
    return lax.switch(0, [])


@case
def jit_options(J, jnp, lax):
    @functools.partial(J.jit, static_argnames=("n", "flag"))
    def f(x, n, *, flag=True):
        return x**n if flag else -x

    @functools.partial(J.jit, static_argnums=(0,))
    def g(name, x):
        return x[name]

    return [
        f(x3, 2),
        f(x3, n=3, flag=False),
        g("a", {"a": x3, "b": 1}),
        J.jit(lambda *args, **kwargs: (args, kwargs))(1, 2.5, k=True, z=x3),
        J.jit(lambda: 3.0)(),
        J.jit(lambda x: {"same": x, "none": None})(2),
        J.vmap(f, in_axes=(0, None))(x23, 2),
        J.grad(lambda x: f(x, 3).sum())(x3),
    ]


@case
def jit_closes_over_traced_values(J, jnp, lax):
    def f(x):
        g = J.jit(lambda y: x * y + jnp.sin(x))
        return g(x**2) + J.jit(lambda: x)()

    return J.grad(f)(1.5), J.vmap(f)(x3), J.jit(J.vmap(J.grad(f)))(x3), J.hessian(f)(0.5)


@case
def eval_shape(J, jnp, lax):
    out = J.eval_shape(lambda x, y: {"a": x @ y, "n": jnp.argmax(x)}, x23, x3)
    return J.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), out)


@case
def checkpoint_names(J, jnp, lax):
    from_name = J.checkpoint_policies.save_only_these_names("hidden")

    def f(x):
        h = J.ad_checkpoint.checkpoint_name(jnp.sin(x), "hidden")
        return jnp.sum(jnp.cos(h) * x)

    every = J.checkpoint_policies.everything_saveable
    return [
        J.grad(J.checkpoint(f, policy=from_name))(x3),
        J.jit(J.grad(J.checkpoint(f, policy=every)))(x3),
        J.vmap(J.grad(J.checkpoint(f)))(x23),
        J.hessian(J.checkpoint(f, policy=from_name))(x3),
    ]


@case
def closure_convert(J, jnp, lax):
    def outer(w):
        fun, consts = J.closure_convert(lambda x: jnp.sin(x) * w, 1.0)
        return fun(2.0, *consts) * len(consts)

    return outer(1.5), J.grad(outer)(1.5)


@error
def bool_of_a_traced_value(J, jnp, lax):
    return J.jit(lambda x: 1 if x else 2)(1.0)


@error
def int_of_a_traced_value(J, jnp, lax):
    return J.jit(lambda x: list(range(x)))(3)


@error
def float_of_a_traced_value(J, jnp, lax):
    return J.jit(lambda x: float(x))(3.0)


@error
def numpy_of_a_traced_value(J, jnp, lax):
    return J.jit(lambda x: np.sin(x))(x3)


@error
def shape_from_a_traced_value(J, jnp, lax):
    return J.jit(lambda n: jnp.zeros(n))(3)


@error
def index_by_a_traced_mask(J, jnp, lax):
    return J.jit(lambda x: x[x > 0])(x3)


@error
def bool_under_vmap(J, jnp, lax):
    return J.vmap(lambda x: x if x > 0 else -x)(x3)


@error
def unhashable_static(J, jnp, lax):
    return J.jit(lambda x, n: x, static_argnums=1)(1.0, [1])


@error
def text_as_an_argument(J, jnp, lax):
    return J.jit(lambda x: x["a"])(object)


@error
def escaped_tracer(J, jnp, lax):
    kept = []
    J.jit(lambda x: kept.append(x))(1.0)
    return kept[0] + 1


@error
def iterating_over_a_traced_scalar(J, jnp, lax):
    return J.jit(lambda x: [y for y in x])(1.0)


@error
def assignment(J, jnp, lax):
    def f(x):
        x[0] = 1.0
        return x

    return J.jit(f)(jnp.ones(3))


@case
def derivative_functions_leave_jit(J, jnp, lax):
    out, pull = J.jit(lambda x: J.vjp(lambda y: (jnp.sin(y) * y, y[0]), x))(x3)
    _, line = J.jit(lambda x: J.linearize(jnp.tanh, x))(x3)
    return out, pull((x3, 1.0)), J.vmap(line)(x23), J.jit(lambda p, ct: p(ct))(pull, (x3, 2.0))


@case
def one_function_many_types(J, jnp, lax):
    f = J.jit(lambda x, y=1.0: (x * y, x + 1))
    half = np.ones(2, np.float16)
    calls = [
        (1,),
        (1.0,),
        (True,),
        (x3,),
        (x23,),
        (half,),
        (half, 2),
        (x3, half[0]),
        (np.arange(3),),
    ]
    return [f(*args) for args in calls + calls]


@case
def one_function_many_derivatives(J, jnp, lax):
    @J.jit
    def f(x, y):
        return jnp.sin(x) * y, x

    ways = [
        J.jvp(f, (x3, x3), (x3, x3)),
        J.jvp(lambda x: f(x, x3), (x3,), (x3,)),
        J.jvp(lambda y: f(x3, y), (x3,), (x3,)),
        J.grad(lambda x: f(x, 2.0)[0].sum())(x3),
        J.grad(lambda y: f(x3, y)[0].sum())(2.0),
        J.grad(lambda y: f(x3, y)[1].sum())(2.0),
        J.vmap(f, in_axes=(None, 0))(x3, x23),
        J.vmap(f, in_axes=(0, None))(x23, x3),
    ]
    return ways, J.grad(lambda x: J.grad(lambda v: f(v, v)[0])(x))(0.5)


@case
def without_jit(J, jnp, lax):
    def f(xs):
        step = lambda c, x: (lax.cond(c.sum() > 0, jnp.sin, jnp.cos, c) * x, c)  # noqa: E731
        last, rows = lax.scan(step, xs[0], xs)
        return lax.fori_loop(0, 3, lambda i, v: v + i, last), J.jit(jnp.tanh)(rows)

    with J.disable_jit():
        loss = lambda xs: sum(jnp.sum(v) for v in f(xs))  # noqa: E731
        return f(x23), J.grad(loss)(x23), J.vmap(f)(x234), J.jvp(f, (x23,), (x23,))


@case
def results_that_are_arguments(J, jnp, lax):
    f = lambda x, y: (x, (y, x), None, y + 0)  # noqa: E731
    return [
        J.jit(f)(x3, 2.0),
        J.vmap(f, in_axes=(0, None))(x3, 2.0),
        J.jvp(f, (x3, 2.0), (x3, 1.0)),
        J.vjp(f, x3, 2.0)[1]((x3, (1.0, x3), None, 3.0)),
        J.checkpoint(f)(x3, 2.0),
        lax.scan(lambda c, x: (c, (c, x)), 1.5, x3),
    ]


@case
def custom_rules_of_integers(J, jnp, lax):
    @J.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def rule(primals, tangents):
        (x, n), (dx, _) = primals, tangents
        return f(x, n), (dx * n * 2, np.zeros(jnp.shape(n), jax.dtypes.float0))

    g = J.custom_vjp(lambda x, n: x * n)
    g.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n * 2, None))
    return [
        J.grad(lambda x: f(x, 3)[0])(2.0),
        J.jit(J.grad(lambda x: f(x, 3)[0]))(2.0),
        J.vmap(J.grad(lambda x, n: f(x, n)[0]))(x3, jnp.arange(3)),
        J.grad(g)(2.0, 3),
        J.vmap(J.grad(g))(x3, jnp.arange(3)),
    ]


@case
def derivatives_four_deep(J, jnp, lax):
    f = lambda x: jnp.sin(x) * jnp.exp(-x)  # noqa: E731
    d = f
    orders = []
    for transform in (J.grad, J.jacfwd, J.grad, J.jacrev):
        d = transform(d)
        orders.append(J.jit(d)(0.5))
    third = lambda x: J.jvp(J.grad(J.grad(f)), (x,), (1.0,))[1]  # noqa: E731
    return orders, J.vmap(third)(x3)
