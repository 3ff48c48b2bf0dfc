"""Arrays and programs on devices as their users meet them: JAX's rules of where things lie."""

import copy
import pickle

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.config import Setting
from namoo.core.array import EagerArray
from namoo.sharding import AxisType, NamedSharding, SingleDeviceSharding
from namoo.sharding import PartitionSpec as P

pytest.importorskip("jaxlib")

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def mesh():
    namoo.cpu_devices(8)
    yield namoo.make_mesh((4, 2), ("x", "y"), (AxisType.Auto, AxisType.Auto))
    namoo.cpu_devices(1)


@pytest.fixture
def rows(mesh):
    return NamedSharding(mesh, P("x"))


NEW = {
    "zeros": lambda place: jnp.zeros((8, 4), device=place),
    "ones": lambda place: jnp.ones((8, 4), device=place),
    "empty": lambda place: jnp.empty(8, device=place),
    "full": lambda place: jnp.full((8, 2), 3, device=place),
    "arange": lambda place: jnp.arange(8, device=place),
    "array": lambda place: jnp.array(X, device=place),
    "asarray": lambda place: jnp.asarray(X, device=place),
    "linspace": lambda place: jnp.linspace(0, 1, 8, device=place),
    "eye": lambda place: jnp.eye(8, device=place),
    "fftfreq": lambda place: jnp.fft.fftfreq(8, device=place),
    "astype": lambda place: jnp.astype(X, int, device=place),
    "to_device": lambda place: jnp.asarray(X).to_device(place),
    "zeros_like": lambda place: jnp.zeros_like(namoo.device_put(X, place)),
    "ones_like": lambda place: jnp.ones_like(X, device=place),
    "full_like": lambda place: jnp.full_like(namoo.device_put(X, place), 2),
    "empty_like": lambda place: jnp.empty_like(X, device=place),
    "copy": lambda place: copy.deepcopy(namoo.device_put(X, place)),
}


@pytest.mark.parametrize("name", NEW)
def test_new_arrays_lie_where_asked(name, rows):
    for place in (rows, namoo.devices()[3]):
        found = NEW[name](place)
        assert found.committed
        assert found.sharding == place or found.devices() == {place}


def test_a_spec_means_the_mesh_that_is_set(mesh, rows):
    with namoo.set_mesh(mesh):
        assert namoo.device_put(X, P("x")).sharding == rows
        assert jnp.zeros(8, out_sharding=P("x")).sharding.spec == P("x")
    with pytest.raises(ValueError, match="set_mesh"):
        namoo.device_put(X, P("x"))


def test_what_arrays_tell(rows):
    x = namoo.device_put(X, rows)
    assert namoo.device_put(x, rows) is x
    assert any(x is y for y in namoo.live_arrays())
    assert x.on_device_size_in_bytes() == 2 * X.nbytes
    plain = jnp.asarray(X)
    (shard,) = plain.addressable_shards
    assert shard.index == (slice(None), slice(None)) and shard.data is plain
    assert str(plain.device) == "cpu:0" and plain.global_shards[0].replica_id == 0
    first, *_ = namoo.device_put(X, namoo.devices()[3])
    assert first.devices() == {namoo.devices()[3]}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)


@pytest.mark.parametrize("use", [jnp.sin, namoo.jit(jnp.cos), lambda x: x + 1, lambda x: x.sum()])
@pytest.mark.parametrize("where", ["mesh", "device"])
def test_deleted_arrays_say_so(use, where, rows):
    x = namoo.device_put(X, rows if where == "mesh" else namoo.devices()[3])
    use(x)
    use(x)
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        use(x)
    with pytest.raises(RuntimeError, match="has been deleted"):
        namoo.device_put(x, namoo.devices()[1])


@pytest.mark.parametrize("kind", ["shardings", "array", "type"])
def test_programs_ahead_of_time(kind, mesh, rows):
    columns = NamedSharding(mesh, P(None, "y"))
    argument = {
        "shardings": X,
        "array": namoo.device_put(X, rows),
        "type": namoo.ShapeDtypeStruct(X.shape, X.dtype, sharding=rows),
    }[kind]
    lowered = namoo.jit(
        lambda x: {"a": jnp.sin(x) * 2},
        in_shardings=rows if kind == "shardings" else None,
        out_shardings={"a": columns},
    ).lower(argument)
    assert "sdy.mesh" in lowered.as_text("stablehlo")
    assert "HloModule" in lowered.as_text("hlo") and "sin" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.input_shardings == ((rows,), {})
    assert compiled.output_shardings == {"a": columns}
    assert "HloModule" in compiled.as_text("hlo") and "sdy.mesh" in compiled.as_text("stablehlo")
    assert (compiled.cost_analysis() or {})["flops"] > 0 and compiled.memory_analysis() is not None
    assert compiled.host_operations() == []
    for x in (X, namoo.device_put(X, rows)):
        out = compiled(x)["a"]
        assert out.sharding == columns
        np.testing.assert_allclose(out, np.sin(X) * 2, rtol=1e-6)
    with pytest.raises(ValueError, match="compiled for input shardings that disagree"):
        compiled(namoo.device_put(X, namoo.devices()[3]))


def test_the_engine_of_a_function_ahead_of_time():
    compiled = namoo.jit(jnp.sin, engine="xla").lower(X).compile()
    assert "stablehlo.sine" in compiled.as_text("stablehlo")
    home = SingleDeviceSharding(namoo.devices()[0])
    assert compiled.input_shardings == ((home,), {}) and compiled.output_shardings == home
    called = namoo.jit(
        lambda x: namoo.pure_callback(np.sin, x, x, vmap_method="sequential"), engine="xla"
    )
    (operation,) = called.lower(X).compile().host_operations()
    assert operation.name == "pure_callback"


def test_shardings_of_nested_functions_hold(mesh, rows):
    square = namoo.jit(lambda x: (x**2).sum(), in_shardings=rows)
    double = namoo.jit(lambda x: x * 2, in_shardings=rows, out_shardings=rows)
    assert namoo.jit(lambda x: double(x) + 1)(X).sharding == rows
    for gradient in (namoo.grad(square)(X), namoo.jit(namoo.grad(square))(X)):
        assert gradient.sharding == rows
        np.testing.assert_allclose(gradient, 2 * X)
    mapped = namoo.vmap(double)(np.stack([X, X + 1]))
    assert mapped.sharding.spec == P(None, "x")
    np.testing.assert_allclose(mapped[1], 2 * X + 2)
    with pytest.raises(ValueError, match="incompatible devices"):
        namoo.jit(lambda x: double(x))(namoo.device_put(X, namoo.devices()[3]))
    with pytest.raises(ValueError, match="keyword arguments .* pass x by position"):
        double(x=X)


def test_gradients_of_shard_map_are_computed_on_its_devices(mesh):
    total = namoo.shard_map(
        lambda a: lax.psum((a**2).sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    gradient = namoo.grad(total)(X)
    assert gradient.sharding.num_devices == 8
    np.testing.assert_allclose(gradient, 2 * X)


def test_one_device_calls_back_for_all(mesh, rows):
    calls = []

    def seen(x):
        calls.append(x.shape)
        return np.sin(x)

    x = namoo.device_put(X, rows)
    out = namoo.jit(lambda x: namoo.pure_callback(seen, x, x).sum())(x)
    np.testing.assert_allclose(out, np.sin(X).sum(), rtol=1e-4)
    assert calls == [X.shape]
    # In a shard_map each device has its own part, and calls for itself.
    calls.clear()
    own = namoo.shard_map(
        lambda a: namoo.pure_callback(seen, a, a), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    np.testing.assert_allclose(namoo.jit(own)(x), np.sin(X), rtol=1e-6)
    assert calls == [(2, 4)] * 8


@pytest.mark.parametrize("where", ["mesh", "device"])
def test_effects_have_the_order_of_the_program(where, rows):
    seen = []

    def body(c, _):
        lax.cond(c % 2 == 0, tell, lambda c: None, c)
        return c + 1, None

    def tell(c):
        namoo.experimental.io_callback(lambda v: seen.append(int(v)), None, c, ordered=True)

    x = namoo.device_put(X, rows if where == "mesh" else namoo.devices()[2])
    out = namoo.jit(lambda x: lax.scan(body, 0, None, length=6)[0] + x.sum())(x)
    assert seen == [0, 2, 4] and float(out) == X.sum() + 6


@pytest.mark.parametrize("where", ["mesh", "device", "shard_map"])
def test_what_a_callback_raises_is_raised(where, mesh, rows):
    """The other devices, which would wait for the one that failed, come to their end."""

    def bad(x):
        raise KeyError("mine")

    def run(x):
        y = namoo.pure_callback(bad, x, x).sum()
        return lax.psum(y, "x") if where == "shard_map" else y

    if where == "shard_map":
        run = namoo.shard_map(run, mesh=mesh, in_specs=P("x"), out_specs=P())
    x = namoo.device_put(X, namoo.devices()[2] if where == "device" else rows)
    run = namoo.jit(run)
    for _ in range(2):
        with pytest.raises(namoo.errors.JaxRuntimeError, match="mine") as caught:
            run(x)
        assert isinstance(caught.value.__cause__, KeyError)


def test_a_named_device_takes_what_lies_elsewhere():
    two, three = namoo.devices()[2:4]
    f = namoo.jit(lambda x, y=1.0: x + y, device=two)
    for out in (f(namoo.device_put(X, three)), f(x=X), f(X, y=namoo.device_put(2.0, three))):
        assert out.devices() == {two} and out.committed
    assert namoo.jit(lambda: jnp.ones(3), device=two)().devices() == {two}


def test_the_mapped_axis_is_divided_over_mesh_axes(mesh):
    def f(x):
        return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("x")))

    out = namoo.jit(namoo.vmap(f, spmd_axis_name="y"))(X.T.reshape(4, 8))
    assert out.sharding.spec == P("y", "x")
    np.testing.assert_allclose(out, 2 * X.T.reshape(4, 8))


def test_devices_of_pmap():
    double = namoo.pmap(lambda x: x * 2, devices=namoo.devices()[4:6])
    out = double(X[:2])
    assert {d.id for d in out.devices()} == {4, 5}
    np.testing.assert_allclose(out, X[:2] * 2)
    np.testing.assert_allclose(double.lower(X[:2]).compile()(X[:2]), X[:2] * 2)


def test_the_default_device():
    two = namoo.devices()[2]
    f = namoo.jit(lambda x: x * 2)
    with Setting("engine")("native"):
        with namoo.default_device(two):
            y = f(X)
            assert y.devices() == {two} and not y.committed
            assert f(namoo.device_put(X, namoo.devices()[3])).devices() == {namoo.devices()[3]}
        np.testing.assert_array_equal(y, 2 * X)
        assert f(y).devices() == {namoo.devices()[0]}
        with namoo.default_device(namoo.devices()[0]):
            assert type(f(X)) is EagerArray


LINALG = {
    "cholesky": jnp.linalg.cholesky,
    "solve": lambda a: jnp.linalg.solve(a, a[..., :2]),
    "singular values": lambda a: jnp.linalg.svd(a, compute_uv=False),
}


@pytest.mark.parametrize("name", LINALG)
def test_batches_of_matrices_stay_divided(name, mesh):
    a = np.random.default_rng(0).normal(size=(8, 2, 4, 4)).astype(np.float32)
    a = a @ a.swapaxes(-1, -2) + np.eye(4, dtype=np.float32)
    f = namoo.jit(LINALG[name])
    placed = namoo.device_put(a, NamedSharding(mesh, P("x", "y")))
    out = f(placed)
    assert out.sharding.spec == P("x", "y")
    assert "all-gather" not in f.lower(placed).compile().as_text("hlo")
    np.testing.assert_allclose(out, LINALG[name](a), rtol=1e-3, atol=1e-4)


def look_at(found):
    """The identity, which tells a list how its argument lies."""

    def look(x):
        namoo.debug.inspect_array_sharding(x, callback=found.append)
        return x

    return look


LOOKS = {
    "an array": (lambda look, mesh: look, P("x")),
    "an argument": (lambda look, mesh: namoo.jit(look), P("x")),
    "a value between": (lambda look, mesh: namoo.jit(lambda x: look(x.T) * 2), P(None, "x")),
    "a value nobody needs": (lambda look, mesh: namoo.jit(lambda x: (look(x + 1), 1)), P("x")),
    "a value with a constraint": (
        lambda look, mesh: namoo.jit(
            lambda x: look(lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "y"))))
        ),
        P(None, "y"),
    ),
    "jit in jit": (lambda look, mesh: namoo.jit(lambda x: namoo.jit(look)(x) + 1), P("x")),
    "vmap": (lambda look, mesh: namoo.jit(namoo.vmap(look)), P("x")),
    "vmap without jit": (lambda look, mesh: namoo.vmap(look), P("x")),
    "grad": (lambda look, mesh: namoo.jit(namoo.grad(lambda x: look(x).sum())), P("x")),
    "grad without jit": (lambda look, mesh: namoo.grad(lambda x: look(x).sum()), P("x")),
    "in a loop": (
        lambda look, mesh: namoo.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: look(x), x)),
        P("x"),
    ),
    "in a branch": (
        lambda look, mesh: namoo.jit(lambda x: lax.cond(x[0, 0] > 0, look, lambda x: x, x)),
        P("x"),
    ),
    "in shard_map": (
        lambda look, mesh: namoo.jit(
            namoo.shard_map(look, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        ),
        P(),
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_how_a_value_lies_is_told_when_the_program_is_compiled(name, mesh, rows):
    make, spec = LOOKS[name]
    found = []
    f = make(look_at(found), mesh)
    x = namoo.device_put(X, rows)
    f(x)
    assert found == [NamedSharding(mesh, spec)]
    f(x)
    assert len(found) == (1 if hasattr(f, "lower") else 2)


@pytest.mark.parametrize("engine", ["native", "xla"])
def test_how_a_value_lies_on_one_device_is_told(engine):
    found = []
    f = namoo.jit(look_at(found), engine=engine)
    for _ in range(3):
        f(X)
    assert found == [SingleDeviceSharding(namoo.devices()[0])]
    f(namoo.device_put(X, namoo.devices()[3]))
    assert found[1:] == [SingleDeviceSharding(namoo.devices()[3])]
    namoo.vmap(look_at(found))(X)
    assert found[2:] == [SingleDeviceSharding(namoo.devices()[0])]


def test_a_picture_of_a_value_that_is_traced(rows, capsys):
    namoo.jit(namoo.debug.visualize_array_sharding)(namoo.device_put(X, rows))
    assert "CPU 6,7" in capsys.readouterr().out


def test_shardings_of_the_only_device_say_nothing():
    namoo.cpu_devices(1)
    sharding = NamedSharding(namoo.make_mesh((1,), ("x",)), P("x"))
    with Setting("engine")("native"):
        out = namoo.jit(lambda x: x * 2, in_shardings=sharding, out_shardings=sharding)(X)
    assert type(out) is EagerArray
    np.testing.assert_array_equal(out, 2 * X)


def test_prints_where_some_axes_are_left_to_the_compiler(mesh, capfd):
    def f(x):
        namoo.debug.print("sum {}", x.sum())
        return x * 2

    mapped = namoo.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    np.testing.assert_allclose(namoo.jit(mapped)(X), 2 * X)
    wanted = sorted(f"sum {part.sum()}" for part in X.reshape(4, 2, 4))
    assert sorted(capfd.readouterr().out.split("\n"))[1:] == wanted


def test_types_of_results_tell_the_shardings_that_were_asked_for(mesh, rows):
    whole = NamedSharding(mesh, P())
    x = namoo.device_put(X, rows)
    outs = {"a": rows, "b": None, "c": whole}
    f = namoo.jit(lambda x: {"a": x + 1, "b": x.sum(), "c": x}, out_shardings=outs)
    both = (namoo.eval_shape(f, x), f.eval_shape(x), f.trace(x).out_info, f.lower(x).out_info)
    for types in both:
        assert {name: t.sharding for name, t in types.items()} == outs
    compiled = f.lower(x).compile().out_info
    assert {name: t.sharding for name, t in compiled.items()} == {**outs, "b": whole}
    # Of what is left to the compiler, and of functions within others, nothing is known before.
    assert namoo.eval_shape(namoo.jit(lambda x: x + 1), x).sharding is None
    assert namoo.eval_shape(lambda x: f(x), x)["a"].sharding is None
    # Static arguments stay what they are.
    scaled = namoo.jit(lambda x, n: x[:n], static_argnums=1)
    assert namoo.eval_shape(scaled, x, 3).shape == (3, 4)
