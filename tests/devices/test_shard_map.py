"""`shard_map` on simulated devices, and mapped on one, against JAX."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.config import Setting
from namoo.engines.native.engine import native
from namoo.experimental import checkify, io_callback
from namoo.sharding import AxisType, NamedSharding
from namoo.sharding import PartitionSpec as P
from shard_map_cases import BOTH, CASES, CHECKS, W, X, Y, check, positive

pytest.importorskip("jaxlib")
pytestmark = pytest.mark.usefixtures("eight_devices")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    path = tmp_path_factory.mktemp("jax") / "results.npz"
    script = Path(__file__).parents[1] / "support" / "shard_map_cases.py"
    subprocess.run([sys.executable, script, path], check=True)
    return dict(np.load(path))


def mesh():
    return namoo.make_mesh((4, 2), BOTH, (AxisType.Auto,) * 2)


def compare(case, found, oracle):
    wanted = [v for k, v in oracle.items() if k.rpartition("/")[0] == case.name]
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_on_devices(case, oracle):
    found = case.run(namoo, mesh(), P)
    assert all(x.sharding.num_devices == 8 for x in found)
    compare(case, found, oracle)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_on_one_device(case, oracle):
    def by_native_code(function):
        closed = namoo.make_jaxpr(function)(*case.args)
        return lambda *args: native.compile(closed)(list(args))

    compare(case, case.run(namoo, mesh(), P, by_native_code), oracle)


@pytest.mark.parametrize(
    "name, fun, ins, out, args, message",
    [
        ("differs", lambda a: a, P("x"), P(), (X,), r"same along the mesh axes \['x'\].*lax.psum"),
        ("index", lambda a: a * lax.axis_index("y"), P(), P(), (X,), r"\['y'\].*may differ"),
        ("indivisible", lambda a: a, P(None, ("x", "y")), P(), (X,), "dimension 1 .* Pad it to 8"),
        ("no such axis", lambda a: a, P("z"), P(), (X,), r"names the mesh axes \['z'\]"),
        ("twice", lambda a: a, P("x", "x"), P(), (X,), "names a mesh axis twice"),
        ("rank", lambda a: a, P(None, None, "x"), P(), (X,), "at least 3 dimensions"),
        ("result's rank", lambda a: a.sum(), P("x"), P("x"), (X,), "at least 1 dimensions"),
        ("structure", lambda a: a, (P("x"), P("x")), P("x"), (X,), "2 entries, .* 1 arguments"),
    ],
    ids=lambda x: x if isinstance(x, str) and " " not in x[:3] else "",
)
def test_mistakes(name, fun, ins, out, args, message):
    mapped = namoo.shard_map(fun, mesh=mesh(), in_specs=ins, out_specs=out)
    with pytest.raises(ValueError, match=message):
        mapped(*args)


def test_without_a_mesh():
    with pytest.raises(ValueError, match="context mesh cannot be empty.*set_mesh"):
        namoo.shard_map(lambda a: a, in_specs=P(), out_specs=P())(X)


def test_the_mesh_that_is_set():
    with namoo.set_mesh(mesh()):
        out = namoo.shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())(X)
    np.testing.assert_allclose(out, X.reshape(4, 2, 4).sum(0))


def test_closed_over_values_and_trees():
    def fun(tree):
        return {"sum": lax.psum(tree["a"] * W, "x"), "n": tree["b"] + 1}

    specs = {"a": P("x"), "b": P()}
    mapped = namoo.shard_map(fun, mesh=mesh(), in_specs=(specs,), out_specs={"sum": P(), "n": P()})
    out = namoo.jit(mapped)({"a": X, "b": jnp.int32(1)})
    np.testing.assert_allclose(out["sum"], (X * W).reshape(4, 2, 4).sum(0), rtol=1e-6)
    assert int(out["n"]) == 2


@pytest.mark.parametrize("engine", ["native", "xla"])
def test_pmap(engine):
    def fun(x, y):
        return lax.psum(jnp.sin(x) * y, "i"), lax.axis_index("i"), x

    x = np.arange(16.0, dtype=np.float32).reshape(8, 2)
    with Setting("engine")(engine):
        mapped = namoo.pmap(fun, axis_name="i", in_axes=(0, None), out_axes=(None, 0, 1))
        total, index, same = mapped(x, 2.0)
        np.testing.assert_allclose(total, 2 * np.sin(x).sum(0), rtol=1e-5)
        np.testing.assert_array_equal(index, np.arange(8))
        np.testing.assert_array_equal(same, x.T)
        assert index.sharding.num_devices == (8 if engine == "xla" else 1)
        gradient = namoo.pmap(
            namoo.grad(lambda w, x: lax.pmean((w * x).sum(), "i")), "i", in_axes=(None, 0)
        )
        np.testing.assert_allclose(gradient(np.ones(2, np.float32), x), x)
        with pytest.raises(ValueError, match="only 8 devices"):
            mapped(np.ones((9, 2)), 1.0)


@pytest.mark.parametrize("engine", ["native", "xla"])
def test_pmap_with_one_result_for_all_devices(engine):
    x = np.arange(16.0, dtype=np.float32).reshape(8, 2) + 1
    with Setting("engine")(engine):
        mapped = namoo.pmap(lambda x: (x, {"b": x + 1}, 3.0), out_axes=(None, 0, None))
        first, rest, constant = mapped(x)
        np.testing.assert_array_equal(first, x[0])
        np.testing.assert_array_equal(rest["b"], x + 1)
        assert float(constant) == 3
        total = namoo.pmap(lambda x: lax.psum((x * x).sum(), "i"), "i", out_axes=None)
        np.testing.assert_allclose(namoo.grad(total)(x), 2 * x)


LOOPS = {
    "scan": lambda a, w: lax.scan(
        lambda c, r: (lax.psum(c, "x") * 0.1 + (r * w).sum(), None), jnp.float32(0), a
    )[0],
    "fori_loop": lambda a, w: lax.fori_loop(
        0, 2, lambda i, c: lax.psum(c, "x") * 0.1 + (a[i] * w).sum(), jnp.float32(0)
    ),
    "cond": lambda a, w: lax.cond(
        lax.axis_index("x") > 1, lambda a: (a * w).sum(), lambda a: jnp.float32(0), a
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_carry_that_comes_to_differ(name):
    """The initial carry is the same on all devices; what the body makes of it is not."""
    mapped = namoo.shard_map(
        lambda a, w: lax.psum(LOOPS[name](a, w), "x"),
        mesh=mesh(),
        in_specs=(P("x"), P()),
        out_specs=P(),
    )
    w = np.ones(4, np.float32)
    step = np.array([0, 0, 0, 0], np.float32)
    expected = []
    for i in range(4):
        step[i] = 0.5
        expected.append((mapped(X, w + step) - mapped(X, w - step)).item())
        step[i] = 0
    np.testing.assert_allclose(namoo.grad(lambda w: mapped(X, w))(w), expected, rtol=1e-4)


def test_a_carry_that_ceases_to_differ():
    def fun(a):
        return lax.scan(lambda c, _: (lax.psum(c, "x"), None), a, None, length=2)[0]

    mapped = namoo.shard_map(fun, mesh=mesh(), in_specs=P("x"), out_specs=P())
    with pytest.raises(TypeError, match=r"lax.pcast\(x, \('x',\), to='varying'\)"):
        mapped(X)


def test_some_axes_are_left_to_the_compiler():
    both = namoo.sharding.NamedSharding(mesh(), P("x", "y"))
    part = namoo.shard_map(
        lambda a: a * lax.axis_index("x"),
        mesh=mesh(),
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    out = namoo.jit(part)(namoo.device_put(X, both))
    np.testing.assert_allclose(out, X * np.repeat(np.arange(4), 2)[:, None])
    assert out.sharding == both


def test_one_within_another():
    inner = namoo.shard_map(
        lambda b: lax.psum(b, "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
    )
    outer = namoo.shard_map(
        lambda a: lax.psum(inner(a), "x"),
        mesh=mesh(),
        in_specs=P("x"),
        out_specs=P(),
        axis_names={"x"},
    )
    wanted = X.reshape(4, 2, 2, 2).sum((0, 2))
    np.testing.assert_allclose(namoo.jit(outer)(X), wanted, rtol=1e-6)
    gradient = namoo.jit(namoo.grad(lambda x: (outer(x) ** 2).sum()))(X)
    np.testing.assert_allclose(gradient, np.tile(2 * wanted, (4, 2)), rtol=1e-6)
    with pytest.raises(ValueError, match="must have the same mesh"):
        other = namoo.shard_map(
            lambda b: b, mesh=namoo.make_mesh((8,), ("q",)), in_specs=P(), out_specs=P()
        )
        namoo.shard_map(other, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.parametrize("name", CHECKS)
def test_failed_checks_are_returned(name, oracle):
    text, raised, out = check(namoo, checkify, mesh(), P, name)
    wanted = [oracle[f"check {name}/{i}"] for i in range(3)]
    assert (text, raised) == (str(wanted[0]), str(wanted[1]))
    np.testing.assert_allclose(out, wanted[2])


def _inner(axis):
    return lambda fun: namoo.shard_map(fun, in_specs=P(axis), out_specs=P(axis), axis_names={axis})


def _over(fun, **options):
    specs = {"in_specs": P("x"), "out_specs": P("x")}
    return lambda x: namoo.shard_map(fun, mesh=mesh(), **specs, **options)(x)


def _then_check(x):
    out = _over(positive(namoo, checkify))(x)
    checkify.check(out[0] > 0, "then {}", out[0])
    return out


FAIL = positive(namoo, checkify)
EACH = [f"at mapped index {i}: {v} is not positive" for i, v in enumerate([-3.0, -3.0, -1.0, -1.0])]
# JAX refuses these.
CHECKED_COMPOSITIONS = {
    "scan": (lambda x: lax.scan(lambda c, _: (_over(FAIL)(c), None), x, None, 2)[0], EACH),
    "in scan": (_over(lambda x: lax.scan(lambda c, _: (FAIL(c), None), x, None, 2)[0]), EACH),
    "while": (lambda x: lax.while_loop(lambda c: c[0] > -9, _over(FAIL), x), EACH),
    "cond": (lambda x: lax.cond(x[0] < 0, _over(FAIL), lambda x: x, x), EACH),
    "not taken": (lambda x: lax.cond(x[0] > 0, _over(FAIL), lambda x: x, x), None),
    "grad": (namoo.grad(lambda x: _over(FAIL)(x).sum()), EACH),
    "some axes": (
        _over(FAIL, axis_names={"x"}),
        ["at mapped index 0: -3.0 is not positive", "at mapped index 1: -1.0 is not positive"],
    ),
    "nested": (
        _over(lambda x: _inner("y")(FAIL)(x), axis_names={"x"}),
        [f"at mapped index {i}, {j}: {v}.0 is not positive" for i, j, v in
         [(0, 0, -3), (0, 1, -2), (1, 0, -1), (1, 1, 0)]],
    ),
    "then": (_then_check, EACH + [f"at mapped index {i}: then -6.0" for i in range(4, 8)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED_COMPOSITIONS)
@pytest.mark.parametrize("how", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_failed_checks_of_compositions(name, how):
    fun, wanted = CHECKED_COMPOSITIONS[name]
    error, _ = how(checkify.checkify(fun))(jnp.asarray(Y))
    if wanted is None:
        assert error.get() is None
        error.throw()
        return
    assert error.get().splitlines() == [f"{line} (`check` failed)" for line in wanted]
    last = [line for line in wanted if "then" not in line][-1].partition(": ")[2]
    with pytest.raises(checkify.JaxRuntimeError, match=last):
        error.throw()


@pytest.mark.parametrize("how", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_failed_checks_on_an_explicit_mesh(how):
    """The error is split like any result; JAX refuses to read it."""
    mesh = namoo.make_mesh((4, 2), BOTH)
    over = namoo.shard_map(FAIL, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = namoo.device_put(Y, NamedSharding(mesh, P("x")))
    for fun in (over, lambda x: lax.scan(lambda c, _: (over(c), None), x, None, 2)[0]):
        error, out = how(checkify.checkify(fun))(x)
        assert namoo.typeof(out).sharding.spec == P("x")
        assert error.get().splitlines() == [f"{line} (`check` failed)" for line in EACH]
        with pytest.raises(checkify.JaxRuntimeError, match=EACH[-1].partition(": ")[2]):
            error.throw()
    assert checkify.checkify(over)(x + 4)[0].get() is None


@pytest.mark.parametrize("engine", ["native", "xla"])
def test_failed_checks_of_pmap(engine):
    with Setting("engine")(engine):
        error, out = checkify.checkify(namoo.pmap(FAIL))(jnp.asarray(Y))
        np.testing.assert_array_equal(out, Y * 2)
        with pytest.raises(checkify.JaxRuntimeError, match="0.0 is not positive"):
            error.throw()
        assert checkify.checkify(namoo.pmap(FAIL))(jnp.asarray(Y + 4))[0].get() is None


def test_each_device_of_pmap_has_effects_of_its_own(capsys):
    def until_large(x):
        def body(x):
            namoo.debug.print("{}", x)
            return x + 1

        return lax.while_loop(lambda x: x < 2, body, x)

    x = jnp.arange(3)
    np.testing.assert_array_equal(namoo.pmap(until_large)(x), [2, 2, 2])
    namoo.effects_barrier()
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "1"]

    double = lambda x: namoo.pure_callback(lambda x: x * 2, x, x)  # noqa: E731
    np.testing.assert_array_equal(namoo.pmap(double)(x), [0, 2, 4])
    with pytest.raises(NotImplementedError, match="vmap_method"):
        namoo.vmap(double)(x)
    for ordered in [
        lambda x: namoo.debug.print("{}", x, ordered=True),
        lambda x: io_callback(lambda x: x, x, x, ordered=True),
    ]:
        with pytest.raises(ValueError, match="ordered effects are not supported for more than 1"):
            namoo.pmap(ordered)(x)
        namoo.pmap(ordered)(x[:1])


def test_pmap_keeps_no_arguments():
    with Setting("check_tracer_leaks")(True):
        mapped = namoo.pmap(lambda x: x + 1)
        np.testing.assert_array_equal(namoo.jit(lambda x: mapped(x))(Y), Y + 1)


def test_the_mesh_inside_has_manual_axes():
    seen = []

    def note(x):
        inside = namoo.sharding.get_abstract_mesh()
        seen.append((inside.axis_names, inside.manual_axes))
        return x

    def inner(x):
        return _inner("y")(note)(note(x))

    np.testing.assert_array_equal(_over(note)(Y), Y)
    np.testing.assert_array_equal(_over(inner, axis_names={"x"})(Y), Y)
    assert seen == [(BOTH, BOTH), (BOTH, ("x",)), (BOTH, BOTH)]
    assert namoo.sharding.get_abstract_mesh().empty


def test_constraints_inside():
    x = namoo.device_put(Y, NamedSharding(mesh(), P("x")))
    for spec in (P("y"), NamedSharding(mesh(), P("y"))):
        free = _over(lambda x: lax.with_sharding_constraint(x * 2, spec), axis_names={"x"})  # noqa: B023
        np.testing.assert_array_equal(namoo.jit(free)(x), 2 * Y)
    manual = _over(lambda x: lax.with_sharding_constraint(x, P("x")), axis_names={"x"})
    with pytest.raises(ValueError, match=r"contains a manual axes \['x'\] of mesh"):
        namoo.jit(manual)(x)


def test_functions_without_arguments_or_results():
    options = {"mesh": mesh(), "in_specs": ()}
    assert namoo.jit(namoo.shard_map(lambda: None, out_specs=None, **options))() is None
    ones = namoo.shard_map(lambda: jnp.ones(2), out_specs=P("x"), check_vma=False, **options)
    np.testing.assert_array_equal(namoo.jit(ones)(), np.ones(8))


@pytest.mark.parametrize("how", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_a_mesh_without_devices_is_that_of_the_arguments(how):
    def fun(x):
        return lax.psum(x, "x"), x * 2 + lax.axis_index("x")

    x = namoo.device_put(Y, NamedSharding(mesh(), P("x")))
    names = mesh().abstract_mesh
    mapped = namoo.shard_map(fun, mesh=names, in_specs=P("x"), out_specs=(P(), P("x")))
    total, rest = how(mapped)(x)
    np.testing.assert_array_equal(total, Y.reshape(4, 2).sum(0))
    np.testing.assert_array_equal(rest, 2 * Y + np.repeat(np.arange(4), 2))
    assert rest.sharding == x.sharding


def test_specs_that_are_not_given_are_those_of_the_arguments():
    with namoo.set_mesh(mesh()):
        shapes = []

        def double(x):
            shapes.append(x.shape)
            return x * 2

        both = namoo.shard_map(double, out_specs=P("x", "y"))
        rows = namoo.shard_map(double, out_specs=P("x"), axis_names={"x"})
        whole = namoo.shard_map(double, out_specs=P())
        x = namoo.device_put(X, NamedSharding(mesh(), P("x", "y")))
        for mapped, given in ((both, x), (rows, x), (whole, jnp.asarray(X)), (both, x)):
            np.testing.assert_array_equal(mapped(given), 2 * X)
        assert shapes == [(2, 2), (2, 4), (8, 4)]
        # Types say how a traced argument is divided only along axes of type Explicit.
        with pytest.raises(TypeError, match="in_specs was not specified"):
            namoo.jit(both)(x)


SMAPS = {
    "rows": lambda f: namoo.smap(f, in_axes=0, out_axes=0, axis_name="x"),
    "columns": lambda f: namoo.smap(in_axes=(1,), out_axes=1, axis_name="y")(f),
    "nested": lambda f: SMAPS["rows"](lambda x: SMAPS["columns"](f)(x)),
    "whole": lambda f: namoo.smap(f, in_axes=None, out_axes=None, axis_name="x"),
    "several": lambda f: (
        lambda x: namoo.smap(lambda x, y: f(x) * y, in_axes=(0, None), out_axes=0, axis_name="x")(
            x, jnp.float32(1)
        )
    ),
}


@pytest.mark.parametrize("name", SMAPS)
@pytest.mark.parametrize("how", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_smap(name, how):
    with namoo.set_mesh(mesh()):
        x = namoo.device_put(X, NamedSharding(mesh(), P("x", "y")))
        np.testing.assert_array_equal(how(SMAPS[name](lambda x: x * 2))(x), 2 * X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axis_name": BOTH}, "axis_name should be a `str`"),
        ({"in_axes": [0]}, "in_axes must be an int, None, or a tuple"),
        ({"in_axes": ("x",)}, "in_axes must be an int, None, or .nested. container"),
        ({"out_axes": "x"}, "out_axes must be an int, None, or .nested. container"),
    ],
)
def test_mistakes_of_smap(options, message):
    with pytest.raises(TypeError, match=message):
        namoo.smap(lambda x: x, **{"in_axes": 0, "out_axes": 0, "axis_name": "x", **options})
