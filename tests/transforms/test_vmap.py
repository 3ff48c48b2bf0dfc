"""`vmap` and `pmap`: axes, names, structures and refusals, as in JAX."""

import dataclasses

import jax
import jax.numpy as jaxnp
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.interpreters import batching

NAMOO, JAX = (namoo, jnp), (jax, jaxnp)


def a(n, *shape):
    return n.asarray(np.arange(np.prod(shape), dtype="float32").reshape(shape) + 1)


CASES = {
    "default": lambda J, n: J.vmap(lambda x: x.sum())(a(n, 3, 2)),
    "in_axes": lambda J, n: J.vmap(n.dot, in_axes=(1, None))(a(n, 2, 3), a(n, 2)),
    "negative axes": lambda J, n: J.vmap(lambda x: x[0], in_axes=-1, out_axes=-1)(a(n, 2, 3, 4)),
    "out_axes": lambda J, n: J.vmap(lambda x: x, out_axes=2)(a(n, 2, 3, 4)),
    "out_axes tree": lambda J, n: J.vmap(
        lambda x: {"a": x, "b": (x, x)}, out_axes={"a": 0, "b": 1}
    )(a(n, 2, 3)),
    "in_axes tree": lambda J, n: J.vmap(
        lambda p, x: p["w"] @ x + p["b"], in_axes=({"w": None, "b": 0}, 1)
    )({"w": a(n, 2, 3), "b": a(n, 4, 2)}, a(n, 3, 4)),
    "unmapped result": lambda J, n: J.vmap(lambda x, y: y, in_axes=(0, None))(a(n, 3), a(n, 2)),
    "unmapped result kept": lambda J, n: J.vmap(
        lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None)
    )(a(n, 3), a(n, 2)),
    "keywords": lambda J, n: J.vmap(lambda x, y: x * y)(a(n, 3), y=a(n, 3)),
    "axis_size": lambda J, n: J.vmap(lambda: n.zeros(2), axis_size=3)(),
    "axis_index": lambda J, n: J.vmap(lambda: J.lax.axis_index("i"), axis_name="i", axis_size=3)(),
    "psum": lambda J, n: J.vmap(lambda x: x / J.lax.psum(x, "i"), axis_name="i")(a(n, 3)),
    "nested": lambda J, n: J.vmap(J.vmap(lambda x, y: x * y, (None, 0)), (0, None))(
        a(n, 3), a(n, 2)
    ),
    "nested names": lambda J, n: J.vmap(
        J.vmap(lambda x: J.lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i"
    )(a(n, 2, 3)),
    **{
        f"{fun} over names": lambda J, n, fun=fun: J.vmap(
            lambda x: (getattr(n, fun)(x, "i"), getattr(n, fun)(x, ("i", 0), keepdims=True)),
            axis_name="i",
        )(a(n, 2, 3))
        for fun in ("sum", "mean", "max", "min")
    },
    "mean over names where": lambda J, n: J.vmap(
        lambda x: n.mean(x, "i", where=x > 1), axis_name="i"
    )(a(n, 2, 3)),
    "scalars": lambda J, n: J.vmap(lambda x, y: x + y, in_axes=(0, None))(a(n, 3), 2),
    "closure": lambda J, n: J.vmap(lambda x: J.vmap(lambda y: x * y)(a(n, 2)))(a(n, 3)),
    "grad": lambda J, n: J.vmap(J.grad(lambda w, x: (w @ x) ** 2), (None, 0))(a(n, 2), a(n, 3, 2)),
    "lists": lambda J, n: J.vmap(lambda xs: xs[0] + xs[1], in_axes=([0, None],))([a(n, 3), a(n)]),
    "integers": lambda J, n: J.vmap(lambda x: x[::-1] // 2)(n.arange(6).reshape(2, 3)),
    "pmap": lambda J, n: J.pmap(lambda x: x * J.lax.psum(1, "d"), axis_name="d")(a(n, 1, 2)),
    "pmap static": lambda J, n: J.pmap(lambda x, k: x * k, static_broadcasted_argnums=1)(
        a(n, 1), 3
    ),
    "pmap of one result": lambda J, n: J.pmap(
        lambda x: {"a": x + 1, "b": (x * 2, x[None])}, out_axes={"a": None, "b": (0, None)}
    )(a(n, 1, 3)),
    "pmap without axis": lambda J, n: J.pmap(
        lambda x: J.lax.psum(x, "d"), axis_name="d", out_axes=None
    )(a(n, 1, 2)),
    "pmap axes": lambda J, n: J.pmap(lambda x, y: x + y, in_axes=(0, None))(a(n, 1, 2), a(n, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_mapped_functions_are_those_of_jax(case):
    found, expected = CASES[case](*NAMOO), CASES[case](*JAX)
    assert namoo.tree.structure(found).num_leaves == jax.tree.structure(expected).num_leaves
    for x, y in zip(namoo.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


REFUSED = {
    "sizes": lambda J, n: J.vmap(lambda x, y: x)(a(n, 3), a(n, 4)),
    "rank": lambda J, n: J.vmap(lambda x: x, in_axes=1)(a(n, 3)),
    "scalar": lambda J, n: J.vmap(lambda x: x)(1.0),
    "nothing mapped": lambda J, n: J.vmap(lambda x: x, in_axes=None)(a(n, 3)),
    "length of in_axes": lambda J, n: J.vmap(lambda x, y: x, in_axes=(0,))(a(n, 3), a(n, 3)),
    "type of in_axes": lambda J, n: J.vmap(lambda x: x, in_axes="0")(a(n, 3)),
    "leaf of in_axes": lambda J, n: J.vmap(lambda x: x, in_axes=({"a": 1.5},))({"a": a(n, 3)}),
    "structure of in_axes": lambda J, n: J.vmap(lambda x: x, in_axes=({"b": 0},))({"a": a(n, 3)}),
    "out_axes None": lambda J, n: J.vmap(lambda x: x, out_axes=None)(a(n, 3)),
    "out_axes too large": lambda J, n: J.vmap(lambda x: x, out_axes=3)(a(n, 3)),
    "out_axes structure": lambda J, n: J.vmap(lambda x: x, out_axes=(0, 0))(a(n, 3)),
    "name": lambda J, n: J.vmap(lambda x: J.lax.psum(x, "j"), axis_name="i")(a(n, 3)),
    "pmap devices": lambda J, n: J.pmap(lambda x: x)(a(n, 3)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_have_the_type_of_jax(case):
    with pytest.raises(Exception) as expected:  # noqa: B017
        REFUSED[case](*JAX)
    with pytest.raises(Exception) as found:  # noqa: B017
        REFUSED[case](*NAMOO)
    assert isinstance(found.value, expected.type), (found.value, expected.value)


def test_static_leaves_are_the_same_for_all_examples():
    layer = {"w": jnp.arange(3.0), "act": jnp.negative, "name": "dense"}
    out = namoo.vmap(lambda p: {**p, "y": p["act"](p["w"])})(layer)
    assert out["act"] is jnp.negative and out["name"] == "dense"
    assert out["y"].tolist() == [0.0, -1.0, -2.0]


def test_the_mistaken_argument_is_named_by_its_path():
    with pytest.raises(ValueError) as caught:
        namoo.vmap(lambda params, x: x)({"w": [jnp.zeros(3)]}, jnp.zeros(4))
    assert "params['w'][0] of type float32[3]" in str(caught.value)
    assert "x of type float32[4]" in str(caught.value)


def test_vmap_refuses_in_axes_that_are_no_tuple_and_describes_itself():
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None, or a tuple"):
        namoo.vmap(lambda x: x["a"], in_axes={"a": 0})

    def double(x):
        """Twice the value."""
        return 2 * x

    doc = namoo.vmap(double).__doc__ or ""
    assert doc.startswith("Vectorized version of double.") and doc.endswith("Twice the value.")


class Rows:
    """A table, mapped over by the name of an axis; it is no tree."""

    def __init__(self, data, *names):
        self.data, self.names = data, names


@dataclasses.dataclass(frozen=True)
class Along:
    name: str


@pytest.fixture
def rows():
    def to_example(cont, index, x, along):
        place = x.names.index(along.name)
        names = x.names[:place] + x.names[place + 1 :]
        return Rows(cont(x.data, place) + 10 * index(), *names)

    def from_example(cont, size, x, along):
        return Rows(cont(size, x.data, len(x.names)), *x.names, along.name)

    batching.register_vmappable(Rows, Along, int, to_example, from_example, None)
    yield Rows(jnp.arange(6.0).reshape(2, 3), "i", "j")
    batching.unregister_vmappable(Rows)


@pytest.mark.parametrize("transform", [lambda f: f, namoo.jit])
def test_objects_of_registered_classes_are_mapped_over_by_their_own_functions(rows, transform):
    def double(x, y, *, z):
        return Rows(2 * x.data + z, *x.names), y.sum()

    def run(data, y, z):
        f = namoo.vmap(double, in_axes=(Along("i"), 1), out_axes=(Along("k"), 0), axis_size=2)
        out, sums = f(Rows(data, *rows.names), y, z=z)
        assert out.names == ("j", "k")
        return out.data, sums

    y, z = jnp.arange(8.0).reshape(4, 2), jnp.array([0.5, 0.25])
    data, sums = transform(run)(rows.data, y, z)
    expected = 2 * (rows.data + jnp.array([[0.0], [10.0]])) + z[:, None]
    np.testing.assert_array_equal(data, expected.T)
    np.testing.assert_array_equal(sums, y.sum(0))
    # Other functions are mapped as ever.
    np.testing.assert_array_equal(namoo.vmap(jnp.sum)(y), y.sum(1))
    with pytest.raises(ValueError, match=r"argument y of type float32\[3\]"):
        namoo.vmap(lambda x, y: x)(jnp.ones(2), jnp.ones(3))


def test_a_class_that_is_no_longer_registered_is_refused():
    with pytest.raises(TypeError, match="in_axes must be an int, None, or a tuple"):
        namoo.vmap(jnp.sum, in_axes=Along("i"))
    with pytest.raises(TypeError, match="must be integers"):
        batching.register_vmappable(Rows, Along, float, lambda *_: 0, lambda *_: 0, None)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_custom_rule_gets_the_cotangent_of_each_example(compiled):
    """Even if the function does not use the example: its derivative is what the rule says."""
    f = namoo.custom_vjp(lambda x: jnp.ones(3))
    f.defvjp(lambda x: (jnp.ones(3), x), lambda _, ct: (ct * 0.5,))
    gradient = namoo.grad(lambda x: namoo.vmap(f)(x).sum())
    x = jnp.arange(6.0).reshape(2, 3)
    found = namoo.jit(gradient)(x) if compiled else gradient(x)
    np.testing.assert_array_equal(found, np.stack([namoo.grad(lambda r: f(r).sum())(r) for r in x]))
