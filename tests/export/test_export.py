"""`export`: exported functions compute, and fail, as JAX's do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict, namedtuple
from types import SimpleNamespace
from typing import Any

import jax
import jax.export
import jax.numpy
import numpy as np
import pytest

import namoo
import namoo.export
import namoo.numpy

OURS = SimpleNamespace(J=namoo, jnp=namoo.numpy, lax=namoo.lax, nn=namoo.nn)
THEIRS = SimpleNamespace(J=jax, jnp=jax.numpy, lax=jax.lax, nn=jax.nn)
rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def functions(lib: Any) -> dict[str, tuple]:
    """A function, the symbolic shapes of its arguments (None: as they are), and arguments."""
    J, jnp, lax, nn = lib.J, lib.jnp, lib.lax, lib.nn

    def euler(x):
        return lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 0.9, s[1] + 1), (x, 0))[0]

    @J.custom_jvp
    def twice(x):
        return 2 * x

    @twice.defjvp
    def _(primals, tangents):
        return twice(primals[0]), 20 * tangents[0]

    def attention(q, k):
        return nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])) @ k

    def total(x):
        return lax.scan(lambda c, row: (c + row, jnp.sum(c)), jnp.zeros(x.shape[1:]), x)

    return {
        "sin": (jnp.sin, None, normal(4)),
        "tuple": (lambda x, y: (x @ y, {"a": x + 1}), None, normal(2, 3), normal(3)),
        "dict argument": (lambda d: d["w"] * d["b"], None, {"w": normal(3), "b": normal(3)}),
        "rows": (lambda x: x.sum(0) / x.shape[0], ["b, 2"], normal(5, 2)),
        "mlp": (lambda x, w: nn.relu(x @ w), ["b, _", None], normal(5, 2), normal(2, 3)),
        "softmax": (nn.softmax, ["b, n"], normal(5, 3)),
        "attention": (attention, ["n, 4", "n, 4"], normal(6, 4), normal(6, 4)),
        "twice a size": (lambda x: x.reshape((x.shape[0] // 2, 2)), ["2*b"], normal(6)),
        "sum of sizes": (
            lambda x, y: jnp.concatenate([x, y]),
            ["a", "a + b"],
            normal(2),
            normal(5),
        ),
        "custom rule": (twice, None, normal(3)),
        "custom rule, symbolic": (lambda x: twice(x).sum(), ["n"], normal(3)),
        "while": (euler, None, normal(3)),
        "scan": (total, ["n, 3"], normal(4, 3)),
        "cond": (lambda i, x: lax.cond(i > 0, jnp.sin, jnp.cos, x), None, np.int32(1), normal(3)),
        "integers": (lambda i, x: (i + 1, x * i), None, np.arange(3, dtype=np.int32), normal(3)),
        "symbolic integers": (
            lambda i, x: (x * i, i + x.shape[0]),
            ["n", "n"],
            np.arange(3, dtype=np.int32),
            normal(3),
        ),
        "keys": (lambda x: J.random.normal(J.random.key(3), x.shape) + x, None, normal(3)),
        "iota": (lambda x: x + jnp.arange(x.shape[0]), ["n"], normal(4)),
        "solve": (lambda a, b: jnp.linalg.solve(a, b), None, normal(3, 3), normal(3)),
        "checkpoint": (J.checkpoint(lambda x: jnp.sin(jnp.sin(x))), None, normal(3)),
        "conv": (
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
            ["b, ...", None],
            normal(2, 1, 5, 5),
            normal(2, 1, 3, 3),
        ),
    }  # fmt: skip


NAMES = [*functions(OURS)]


def exported(lib: Any, name: str) -> tuple[Any, list[Any]]:
    rng.bit_generator.state = np.random.default_rng(1).bit_generator.state
    fun, shapes, *args = functions(lib)[name]
    specs = args
    if shapes is not None:
        specs = lib.J.export.symbolic_args_specs(tuple(args), tuple(shapes))
    return lib.J.export.export(lib.J.jit(fun))(*specs), args


def sums(f: Any, lib: Any) -> Any:
    """The sum of all floats that a function returns."""

    def summed(*args):
        leaves = lib.J.tree.leaves(f(*args))
        return sum(x.astype("float32").sum() for x in leaves if x.dtype == "float32")

    return summed


def types(avals: Any) -> list[str]:
    return [f"{np.dtype(a.dtype)}{a.shape}" for a in avals]


def shown(treedef: Any) -> str:
    return str(treedef.unflatten(range(treedef.num_leaves)))


def check(found: Any, wanted: Any) -> None:
    assert shown(namoo.tree.structure(found)) == shown(jax.tree.structure(wanted))
    for x, y in zip(namoo.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if y.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_exported_function_is_jaxs(name):
    ours, args = exported(OURS, name)
    theirs, _ = exported(THEIRS, name)
    read = namoo.export.deserialize(ours.serialize())
    for e in (ours, read):
        assert types(e.in_avals) == types(theirs.in_avals)
        assert types(e.out_avals) == types(theirs.out_avals)
        assert [a.weak_type for a in e.out_avals] == [a.weak_type for a in theirs.out_avals]
        assert shown(e.in_tree) == shown(theirs.in_tree)
        for field in (
            "fun_name", "platforms", "nr_devices", "calling_convention_version",
            "module_kept_var_idx", "uses_global_constants",
        ):  # fmt: skip
            assert getattr(e, field) == getattr(theirs, field), field
        check(e.call(*args), theirs.call(*args))
        check(namoo.jit(e.call)(*args), theirs.call(*args))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "while"])
def test_derivative_is_jaxs(name):
    ours, args = exported(OURS, name)
    theirs, _ = exported(THEIRS, name)
    read = namoo.export.deserialize(ours.serialize(vjp_order=1))
    assert read.has_vjp() and not read.vjp().has_vjp()
    assert types(read.vjp().out_avals) == types(theirs.vjp().out_avals)
    chosen = tuple(i for i, x in enumerate(args) if getattr(x, "dtype", None) == "float32")
    for e in (ours, read):
        found = namoo.grad(sums(e.call, OURS), chosen)(*args) if chosen else None
        wanted = jax.grad(sums(theirs.call, THEIRS), chosen)(*args) if chosen else None
        check(found, wanted)


def test_second_derivative_and_vmap():
    f = namoo.export.export(namoo.jit(lambda x: namoo.numpy.sin(x) ** 2))(np.float32(1))
    read = namoo.export.deserialize(f.serialize(vjp_order=2))
    x = np.float32(0.3)
    np.testing.assert_allclose(namoo.grad(namoo.grad(read.call))(x), 2 * np.cos(0.6), rtol=1e-5)
    xs = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(namoo.vmap(read.call)(xs), np.sin(xs) ** 2, rtol=1e-5)
    np.testing.assert_allclose(namoo.vmap(namoo.grad(read.call))(xs), np.sin(2 * xs), rtol=1e-5)


@pytest.mark.parametrize("engine", ["interpreter", "native", "xla"])
def test_engines(engine):
    f, args = exported(OURS, "attention")
    read = namoo.export.deserialize(f.serialize())
    expected = functions(OURS)["attention"][0](*args)
    before = namoo.config.engine
    namoo.config.update("engine", engine)
    try:
        np.testing.assert_allclose(read.call(*args), expected, rtol=1e-5)
    finally:
        namoo.config.update("engine", before)


@pytest.mark.parametrize("lib", [OURS, THEIRS], ids=["namoo", "jax"])
def test_exported_function_in_an_exported_function(lib):
    E = lib.J.export
    (a,) = E.symbolic_shape("a")
    inner = E.export(lib.J.jit(lambda x: lib.jnp.concatenate([x, x])))(
        lib.J.ShapeDtypeStruct((a,), "float32")
    )
    b, _ = E.symbolic_shape("b, c")
    outer = E.export(lib.J.jit(lambda x: inner.call(x[1:]) * 2))(
        lib.J.ShapeDtypeStruct((b + 1,), "float32")
    )
    assert str(outer.out_avals[0].shape) == "(2*b,)"
    if lib is OURS:  # JAX needs another library to write files
        outer = E.deserialize(outer.serialize())
    np.testing.assert_array_equal(outer.call(np.arange(3, dtype=np.float32)), [2, 4, 2, 4])


# Symbolic shapes of one argument of a function, constraints, and the shape of a call that fails.
MISFITS = {
    "constant": ("3, a", [], (2, 2)),
    "rank": ("a", [], (2, 2)),
    "equal": ("a, a", [], (2, 3)),
    "division": ("2*a", [], (5,)),
    "zero": ("a", [], (0,)),
    "negative": ("a, a + b", [], (3, 2)),
    "inconsistent": ("a, 2*a", [], (3, 5)),
    "at least": ("a", ["a >= 4"], (3,)),
    "at most": ("a", ["a <= 4"], (5,)),
    "equation": ("a, b", ["a == 2*b"], (4, 3)),
    "fixed": ("a, b", ["a == 4"], (5, 3)),
    "multiple": ("a, b", ["a + b >= 7", "a >= b"], (4, 2)),
    "unsolvable": ("a*b", [], (4,)),
    "product": ("a, a*b", [], (4, 6)),
}


@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_refused_as_in_jax(name):
    spec, constraints, shape = MISFITS[name]
    errors = []
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError) as caught:
            sizes = lib.J.export.symbolic_shape(spec, constraints=constraints)
            e = lib.J.export.export(lib.J.jit(lambda x: x * 2))(
                lib.J.ShapeDtypeStruct(sizes, "float32")
            )
            e.call(np.zeros(shape, np.float32))
        errors.append(" ".join(str(caught.value).split()))
    assert errors[0] == errors[1]


def bad_calls(lib: Any) -> dict[str, Any]:
    E, jnp = lib.J.export, lib.jnp
    f = E.export(lib.J.jit(lambda x, b: x + b))
    x = np.zeros(4, np.float32)
    e = f(x, b=x)
    elsewhere = E.export(lib.J.jit(jnp.sin), platforms=["tpu"])
    (a,), (c,) = E.symbolic_shape("a"), E.symbolic_shape("c")
    spec = lambda n: lib.J.ShapeDtypeStruct((n,), "float32")  # noqa: E731
    Unknown = namedtuple("Unknown", "x")
    return {
        "not jit": lambda: E.export(lambda x: x),
        "structure": lambda: e.call(x, x),
        "shape": lambda: e.call(np.zeros(6, np.float32), b=x),
        "keyword": lambda: e.call(x, b=np.zeros(6, np.float32)),
        "rank": lambda: e.call(x.reshape(1, 4), b=x),
        "dtype": lambda: e.call(x.astype(np.float16), b=x),
        "platform": lambda: elsewhere(x).call(x),
        "scopes": lambda: f(spec(a), b=spec(c)),
        "registered twice": lambda: E.register_namedtuple_serialization(
            E.register_namedtuple_serialization(Unknown, serialized_name=f"T{id(lib)}"),
            serialized_name="another",
        ),
        "no named tuple": lambda: E.register_namedtuple_serialization(str, serialized_name="s"),
        "no node": lambda: E.register_pytree_node_serialization(
            type("Leaf", (), {}),
            serialized_name="leaf",
            serialize_auxdata=bytes,
            deserialize_auxdata=bytes,
        ),
    }


@pytest.mark.parametrize("name", bad_calls(OURS))
def test_errors_are_jaxs(name):
    kinds = []
    for lib in (OURS, THEIRS):
        with pytest.raises((ValueError, TypeError)) as caught:
            bad_calls(lib)[name]()
        words = str(caught.value).replace("`jax.", "`").split()[:3]
        kinds.append((isinstance(caught.value, ValueError), words))
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    "tree, kind, message",
    [
        (namedtuple("Unknown", "x")(np.float32(1)), ValueError, "unregistered type .*Unknown"),
        ({1: np.float32(1)}, TypeError, "only for dictionaries with string keys. Found key 1"),
    ],
)
def test_trees_that_files_do_not_have(tree, kind, message):
    e = namoo.export.export(namoo.jit(lambda t: t))(tree)
    with pytest.raises(kind, match=message):
        e.serialize()


def test_functions_of_namoo_are_taken_as_under_jit():
    for lib in (OURS, THEIRS):
        e = lib.J.export.export(lib.jnp.sin)(np.float32(0))
        assert e.fun_name == "sin" and float(e.call(np.float32(0))) == 0


@pytest.mark.parametrize("lib", [OURS, THEIRS], ids=["namoo", "jax"])
def test_constraint_on_a_variable_of_no_argument(lib):
    sizes = lib.J.export.symbolic_shape("n", constraints=["n >= m1"])
    with pytest.raises(Exception, match="Encountered dimension variable 'm1'"):
        lib.J.export.export(lib.J.jit(lambda x: x))(lib.J.ShapeDtypeStruct(sizes, "float32"))


def test_file_without_derivative():
    e = namoo.export.export(namoo.jit(namoo.numpy.sin))(np.float32(1))
    read = namoo.export.deserialize(e.serialize())
    with pytest.raises(ValueError, match=r"No VJP is available.*serialize\(vjp_order=1\)"):
        namoo.grad(read.call)(np.float32(1))


def test_platform_check_can_be_turned_off():
    E = namoo.export
    off = [E.DisabledSafetyCheck.platform()]
    e = E.export(namoo.jit(namoo.numpy.sin), platforms=["tpu"], disabled_checks=off)(np.float32(1))
    assert E.deserialize(e.serialize()).disabled_safety_checks == (off[0],)
    np.testing.assert_allclose(e.call(np.float32(0)), 0)
    assert E.export(namoo.jit(namoo.numpy.sin))(np.float32(1)).platforms == ("cpu",)


def test_what_stays_in_the_process_is_refused_with_its_line():
    def f(x):
        y = x + 1
        return namoo.pure_callback(np.sin, y, y)

    with pytest.raises(ValueError, match=r"operation 'pure_callback'(.|\n)*pure_callback\(np.sin"):
        namoo.export.export(namoo.jit(f))(np.float32(1))
    allowed = [namoo.export.DisabledSafetyCheck.custom_call("pure_callback")]
    e = namoo.export.export(namoo.jit(f), disabled_checks=allowed)(np.float32(1))
    np.testing.assert_allclose(e.call(np.float32(1)), np.sin(2), rtol=1e-6)
    with pytest.raises(ValueError, match="pure_callback"):
        e.serialize()


def test_shardings_over_several_devices_are_refused():
    program = """
import numpy as np, namoo
from namoo.sharding import Mesh, NamedSharding, PartitionSpec as P
rows = NamedSharding(Mesh(np.array(namoo.devices()), ("x",)), P("x"))
for options in ({"in_shardings": rows}, {"out_shardings": rows}):
    try:
        namoo.export.export(namoo.jit(lambda x: x * 2, **options))(np.ones(8, np.float32))
    except ValueError as error:
        print(error)
"""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "NAMOO_ENGINE": "xla"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.count("has shardings over several devices") == 2


class Pair:
    def __init__(self, a, b, name):
        self.a, self.b, self.name = a, b, name


namoo.tree_util.register_pytree_node(
    Pair, lambda p: ((p.a, p.b), p.name), lambda name, ab: Pair(ab[0], ab[1], name)
)
namoo.export.register_pytree_node_serialization(
    Pair,
    serialized_name="test_export.Pair",
    serialize_auxdata=str.encode,
    deserialize_auxdata=bytes.decode,
)
Point = namedtuple("Point", "x y")
namoo.export.register_namedtuple_serialization(Point, serialized_name="test_export.Point")


def test_trees():
    x = np.float32(2)
    tree = [Pair(x, (x, None), "p"), Point(x, {"k": x, "j": []}), OrderedDict(b=x, a=x)]
    e = namoo.export.export(namoo.jit(lambda t: namoo.tree.map(lambda v: v * 2, t)))(tree)
    read = namoo.export.deserialize(e.serialize())
    assert (read.in_tree, read.out_tree) == (e.in_tree, e.out_tree)
    out = read.call(tree)
    assert type(out[0]) is Pair and out[0].name == "p" and float(out[1].y["k"]) == 4


def test_x64_is_that_of_the_export():
    (n,) = namoo.export.symbolic_shape("n")
    with namoo.enable_x64(True):
        spec = namoo.ShapeDtypeStruct((n,), "float64")
        blob = namoo.export.export(namoo.jit(lambda x: x * x.shape[0]))(spec).serialize()
        x = namoo.numpy.arange(3.0)
        assert namoo.export.deserialize(blob).call(x).dtype == "float64"
    read = namoo.export.deserialize(blob)
    assert read.out_avals[0].dtype == "float64"
    assert read.call(x).dtype == "float64"
    np.testing.assert_array_equal(read.call(x), [0, 3, 6])


def test_references_of_the_function_become_values():
    def doubled(x):
        ref = namoo.new_ref(x)

        def step(i, carry):
            ref[...] = ref[...] * 2
            return carry

        namoo.lax.fori_loop(0, 3, step, 0)
        return ref[...]

    spec = namoo.ShapeDtypeStruct((3,), "float32")
    blob = namoo.export.export(namoo.jit(doubled))(spec).serialize()
    np.testing.assert_array_equal(namoo.export.deserialize(blob).call(np.ones(3, "f4")), [8, 8, 8])
