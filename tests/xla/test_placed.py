"""Arrays on devices of their own: computation follows data, and `jit` says where it lies."""

import gc
import inspect

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax, random
from namoo.core.array import EagerArray, PlacedArray
from namoo.devices import buffers
from namoo.engines import disk_cache
from namoo.sharding import Mesh, NamedSharding, SingleDeviceSharding, auto_axes, explicit_axes
from namoo.sharding import PartitionSpec as P

pytest.importorskip("jaxlib")
pytestmark = pytest.mark.usefixtures("eight_devices")

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def mesh():
    return namoo.make_mesh((4, 2), ("x", "y"), (namoo.sharding.AxisType.Auto,) * 2)


@pytest.fixture
def explicit_mesh():
    return namoo.make_mesh((4, 2), ("x", "y"))


SPECS = [P(), P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y",))]
VALUES = [
    X,
    X.astype(np.int32),
    X > 7,
    X.astype(np.float16),
    X.astype(jnp.bfloat16),
    X + 1j,
    X[:, :0],
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{list(v.shape)}")
def test_arrays_go_and_come_back(spec, value, mesh):
    sharding = NamedSharding(mesh, spec)
    x = namoo.device_put(value, sharding)
    assert (type(x), x.shape, x.dtype) == (PlacedArray, value.shape, value.dtype)
    assert x.sharding is sharding and x.devices() == set(namoo.devices())
    np.testing.assert_array_equal(np.asarray(x), value)
    for shard in x.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
    back = namoo.device_put(x, NamedSharding(mesh, P("y")))
    np.testing.assert_array_equal(np.asarray(back), value)
    np.testing.assert_array_equal(np.asarray(namoo.device_put(x, namoo.devices()[5])), value)


def test_random_keys_lie_on_devices(mesh):
    keys = random.split(random.key(3), 8)
    placed = namoo.device_put(keys, NamedSharding(mesh, P("x")))
    assert placed.dtype == keys.dtype
    draw = namoo.vmap(lambda k: random.normal(k, (3,)))
    np.testing.assert_allclose(namoo.jit(draw)(placed), draw(keys), rtol=1e-6)


OPERATIONS = {
    "add": lambda x: x + 1,
    "method": lambda x: x.sum(axis=0),
    "index": lambda x: x[2, 1:],
    "at": lambda x: x.at[0].set(7.0),
    "matmul": lambda x: x @ x.T,
    "with the host's": lambda x: x * jnp.ones(4),
    "compare": lambda x: x > 3,
    "vmap": lambda x: namoo.vmap(jnp.dot, (0, None))(x, jnp.ones(4)),
    "grad": lambda x: namoo.grad(lambda y: (jnp.sin(y) ** 2).sum())(x),
    "jit": lambda x: namoo.jit(lambda y: jnp.tanh(y) @ y.T)(x),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x)[1],
    "sort": lambda x: jnp.sort(-x, axis=0),
    "tree": lambda x: namoo.tree.map(lambda y: y * 2, {"a": x})["a"],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("where", ["mesh", "device"])
def test_computation_follows_data(name, where, mesh):
    place = NamedSharding(mesh, P("x")) if where == "mesh" else namoo.devices()[3]
    x = namoo.device_put(X, place)
    out = OPERATIONS[name](x)
    assert out.devices() == x.devices()
    np.testing.assert_allclose(np.asarray(out), OPERATIONS[name](jnp.asarray(X)), rtol=2e-5)


def test_elementwise_work_stays_divided(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x", "y")))
    assert (jnp.sin(x) + 1).sharding.spec == P("x", "y")


def test_devices_must_agree():
    x, y = (namoo.device_put(X, namoo.devices()[i]) for i in (1, 2))
    message = r"incompatible devices .* ids \[1\] .* ids \[2\]"
    with pytest.raises(ValueError, match=message):
        jnp.add(x, y)
    with pytest.raises(ValueError, match=message):
        namoo.jit(lambda a, b: a * b)(x, y)


def test_values_as_python_numbers(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x")))
    assert float(x.sum()) == X.sum() and bool((x >= 0).all()) and int(x[1, 1]) == 5
    assert x.tolist() == X.tolist() and len(x) == 8
    assert str(x[0]) == str(jnp.asarray(X)[0])
    assert repr(x[0]) == repr(jnp.asarray(X)[0])


def test_in_and_out_shardings(mesh):
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = namoo.jit(
        lambda tree, x: {"y": x @ tree["w"], "z": x.sum()},
        in_shardings=({"w": None}, rows),
        out_shardings={"y": rows, "z": whole},
    )
    out = f({"w": jnp.ones((4, 2))}, X)
    assert out["y"].sharding == rows and out["z"].sharding == whole
    np.testing.assert_allclose(out["y"], X @ np.ones((4, 2)))
    # What lies as it should is taken as it is; the program is the same.
    again = f({"w": jnp.ones((4, 2))}, namoo.device_put(X, rows))
    np.testing.assert_allclose(again["y"], out["y"])
    assert f._cache_size() == 1
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg: x"):
        f({"w": jnp.ones((4, 2))}, namoo.device_put(X, NamedSharding(mesh, P("y"))))
    with pytest.raises(ValueError, match="x: dimension 0 .* Pad it to 8"):
        f({"w": jnp.ones((4, 2))}, X[:7])
    with pytest.raises(ValueError, match="out_shardings specification must be a tree prefix"):
        namoo.jit(lambda x: x, out_shardings=(rows, rows))(X)


jit = namoo.jit
# what is wrong with a sharding, and what the error says; on one device as on many
UNFIT = {
    "rank of an argument": (lambda s: jit(lambda x: x, in_shardings=s)(X[0]), "arguments.* x is"),
    "rank of a result": (lambda s: jit(lambda x: {"a": x[0]}, out_shardings=s)(X), "result.'a'"),
    "rank of a scalar": (lambda s: jit(lambda x: x.sum(), out_shardings=s)(X), "result is incomp"),
    "device_put, rank": (lambda s: namoo.device_put(X[0], s), "device_put args is incompatible"),
    "put in jit": (lambda s: jit(lambda x: namoo.device_put(x[0], s))(X), "device_put args"),
    "tree of arguments": (lambda s: jit(lambda x: x, in_shardings=(s, s))(X), "different lengths"),
    "keys": (lambda s: jit(lambda x: {"a": x}, out_shardings={"b": s})(X), "pytree metadata"),
    "keyword": (lambda s: jit(lambda x, k: x, in_shardings=(s,))(X, k=X), "keyword arguments"),
    "within jit": (
        lambda s: jit(lambda x: jit(lambda y: y, out_shardings=s)(x[0]))(X),
        "result is incompatible",
    ),
    "lower": (lambda s: jit(lambda x: x, in_shardings=s).lower(X[0]), "arguments"),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("devices", [1, 4])
def test_shardings_that_do_not_fit_are_refused(case, devices):
    call, words = UNFIT[case]
    namoo.cpu_devices(devices)
    sharding = NamedSharding(namoo.make_mesh((devices,), ("x",)), P("x", None))
    with pytest.raises(ValueError, match=words):
        call(sharding)


@pytest.mark.parametrize(
    "call",
    [
        lambda s, x: jit(lambda x: x, out_shardings=s)(x),
        lambda s, x: jit(lambda x: x, in_shardings=s)(x),
        lambda s, x: jit(lambda x: jit(lambda y: y, out_shardings=s)(x))(x),
        lambda s, x: namoo.vmap(jit(lambda y: y, out_shardings=s))(x[None]),
        lambda s, x: jit(lambda x: x, out_shardings=s).lower(x),
        lambda s, x: namoo.eval_shape(jit(lambda x: x, out_shardings=s), x),
        lambda s, x: jit(lambda x: namoo.device_put(x, s))(x),
    ],
)
def test_rows_that_devices_cannot_share_are_refused(call, mesh):
    """Of 5 rows over 4 devices, wherever the sharding is asked for."""
    words = "axis 0 is partitioned 4 times, but the dimension size is 5"
    with pytest.raises(ValueError, match=words):
        call(NamedSharding(mesh, P("x")), jnp.ones(5))


def test_specs_take_the_mesh_that_is_set(mesh):
    with namoo.set_mesh(mesh):
        f = namoo.jit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P("y"))
        assert f(X).sharding.spec == P("y")
    later = namoo.jit(lambda x: x, in_shardings=P("x"))
    with pytest.raises(RuntimeError, match="set_mesh"):
        later(X)


def test_constraints(mesh):
    rows = NamedSharding(mesh, P("x"))

    @namoo.jit
    def f(x):
        y = lax.with_sharding_constraint(x * 2, rows)
        return y

    assert f(X).sharding == rows
    batched = namoo.jit(namoo.vmap(f))(X.reshape(2, 4, 4))
    np.testing.assert_allclose(batched, X.reshape(2, 4, 4) * 2)
    gradient = namoo.jit(namoo.grad(lambda x: (f(x) ** 2).sum()))(X)
    np.testing.assert_allclose(gradient, 8 * X)
    assert lax.with_sharding_constraint(X, rows).sharding == rows
    with pytest.raises(ValueError, match="dimension 0"):
        lax.with_sharding_constraint(X[:3], rows)
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        namoo.jit(
            lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", "y", None)))
        )(X)
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context"):
        namoo.jit(lambda x: lax.with_sharding_constraint(x, P("x")))(X)


UNEVEN = {
    "inside": lambda x, s: jnp.pad(lax.with_sharding_constraint(x[:3], s) * 2, ((0, 1), (0, 0))),
    "sum": lambda x, s: lax.with_sharding_constraint(x[:7], s).sum(),
    "result": lambda x, s: lax.with_sharding_constraint(x[:7], s),
    "grad": lambda x, s: namoo.grad(lambda x: (lax.with_sharding_constraint(x[:7], s) ** 2).sum())(
        x
    ),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_constraints_within_a_program_may_be_uneven(name, mesh):
    rows = NamedSharding(mesh, P("x"))
    found = namoo.jit(lambda x: UNEVEN[name](x, rows))(namoo.device_put(X, rows))
    np.testing.assert_allclose(found, UNEVEN[name](jnp.asarray(X), NamedSharding(mesh, P())))


@pytest.mark.parametrize("wrap", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_functions_between_kinds_of_axes(explicit_mesh, wrap):
    double = lambda x, by=2: {"y": x * by}  # noqa: E731
    with namoo.set_mesh(explicit_mesh):
        rows = NamedSharding(explicit_mesh, P("x"))
        for f in (
            auto_axes(double, out_sharding=P("x")),
            auto_axes(out_sharding={"y": P("x")}, axes=("x", "y"))(double),
            lambda x: auto_axes(double, axes="y")(x, out_sharding=P("x")),
            explicit_axes(double, in_sharding=P("x")),
            lambda x: explicit_axes(double)(x, in_sharding=(P("x"),), by=2),
        ):
            out = wrap(f)(X)["y"]
            np.testing.assert_array_equal(out, 2 * X)
            assert out.sharding.is_equivalent_to(rows, 2)
        for maker, name in [(auto_axes, "out_sharding"), (explicit_axes, "in_sharding")]:
            with pytest.raises(TypeError, match=f"Missing required keyword argument: '{name}'"):
                wrap(maker(double))(X)
        with pytest.raises(ValueError, match=r"the axes \('x', 'y'\), and not 'z'"):
            wrap(auto_axes(double, axes="z", out_sharding=P()))(X)
    np.testing.assert_array_equal(wrap(auto_axes(double, out_sharding=P("x")))(X)["y"], 2 * X)


def test_donated_arrays_are_deleted(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = namoo.jit(lambda x: x + 1, donate_argnums=0)
    x = f(namoo.device_put(X, rows))
    pointers = {s.data.unsafe_buffer_pointer() for s in x.addressable_shards}
    y = f(x)
    assert x.is_deleted() and not y.is_deleted()
    assert {s.data.unsafe_buffer_pointer() for s in y.addressable_shards} == pointers
    with pytest.raises(RuntimeError, match="has been deleted"):
        np.asarray(x)
    np.testing.assert_array_equal(y, X + 2)
    # What was looked at stays as it was seen.
    seen, part = np.asarray(y), np.asarray(y.addressable_shards[0].data)
    f(y)
    np.testing.assert_array_equal(seen, X + 2)
    np.testing.assert_array_equal(part, X[:2] + 2)
    y = f(f(namoo.device_put(X, rows)))
    part = np.asarray(y.addressable_shards[0].data)
    f(y).block_until_ready()
    np.testing.assert_array_equal(part, X[:2] + 2)


def test_a_donated_array_comes_once(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x")))
    with pytest.raises(namoo.errors.JaxRuntimeError, match="inputs 0 and 1, float32"):
        namoo.jit(lambda a, b: a + b, donate_argnums=0)(x, x)
    np.testing.assert_array_equal(namoo.jit(lambda a, b: a + 1, donate_argnums=0)(x, x), X + 1)
    assert x.is_deleted()


def test_strings_beside_arrays_on_devices(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x")))
    for _ in range(2):
        np.testing.assert_array_equal(namoo.jit(lambda name, a: a + len(name))("abc", x), X + 3)


def test_arrays_from_their_parts(mesh):
    sharding = NamedSharding(mesh, P("x", "y"))
    calls = []

    def part(index):
        calls.append(index)
        return X[index]

    x = namoo.make_array_from_callback(X.shape, sharding, part)
    np.testing.assert_array_equal(x, X)
    assert len(calls) == 8
    parts = [s.data for s in x.addressable_shards]
    y = namoo.make_array_from_single_device_arrays(X.shape, sharding, parts)
    np.testing.assert_array_equal(y, X)
    z = namoo.make_array_from_process_local_data(sharding, X)
    np.testing.assert_array_equal(z, X)
    assert x.sharding == y.sharding == z.sharding
    with pytest.raises(ValueError, match=r"Expected shard shape \(2, 2\) .* shape \(1, 2\)"):
        namoo.make_array_from_callback(X.shape, sharding, lambda index: X[index][:1])
    with pytest.raises(ValueError, match="8 devices of this process, but 1 arrays"):
        namoo.make_array_from_single_device_arrays(X.shape, sharding, parts[:1])


def test_one_device_needs_no_placing():
    namoo.cpu_devices(1)
    assert type(namoo.device_put(X, namoo.devices()[0])) is EagerArray
    sharding = NamedSharding(Mesh(namoo.devices(), ("x",)), P("x"))
    assert type(namoo.device_put(X, sharding)) is EagerArray


def test_the_number_of_devices_changes_in_one_process(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x")))
    namoo.cpu_devices(16)
    wide = namoo.make_mesh((16,), ("i",))
    y = namoo.device_put(np.arange(16.0), NamedSharding(wide, P("i")))
    assert float(namoo.jit(jnp.sum)(y)) == 120
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(namoo.device_put(x, NamedSharding(wide, P())), X)
    # Arrays that were there before work together with new ones.
    new = namoo.device_put(X, x.sharding)
    np.testing.assert_array_equal(x + 1, X + 1)
    np.testing.assert_array_equal(x * new, X * X)
    np.testing.assert_array_equal(namoo.jit(lambda a, b: a - b)(new, x), X * 0)
    by_xla = namoo.jit(lambda a: a + 1, engine="xla")
    one = by_xla(X)
    namoo.cpu_devices(24)
    namoo.jit(jnp.sin, device=namoo.devices()[23])(X)
    np.testing.assert_array_equal(by_xla(namoo.jit(lambda a: a * 2, engine="xla")(one)), 2 * X + 3)
    namoo.cpu_devices(2)
    assert len(namoo.devices()) == 2


def test_a_named_device_for_jit():
    f = namoo.jit(lambda x: x + 1, device=namoo.devices()[2])
    assert f(X).sharding == SingleDeviceSharding(namoo.devices()[2])


@pytest.mark.parametrize("count", [0, -1, True, 2.0])
def test_a_wrong_number_of_devices(count):
    with pytest.raises(ValueError, match="positive integer"):
        namoo.cpu_devices(count)


def test_calls_of_the_xla_engine_stay_on_the_device(monkeypatch):
    f = namoo.jit(lambda tree: namoo.tree.map(lambda x: x + 1, tree), engine="xla")
    tree = {"a": jnp.ones(3), "b": jnp.zeros((2, 2))}
    for _ in range(3):
        tree = f(tree)
    assert type(tree["a"]) is PlacedArray and not tree["a"].committed
    if f.calls is not None:
        monkeypatch.setattr(type(f), "general", None)
    tree = f(f(tree))
    np.testing.assert_array_equal(tree["a"], np.full(3, 6.0))
    # On the host's own memory, eager mode computes with NumPy.
    assert type(tree["a"] * 2) is EagerArray


def test_arrays_of_other_programs_are_recognised(monkeypatch, mesh):
    sharding = NamedSharding(mesh, P("x"))
    f = namoo.jit(lambda x: x + 3)
    xs = [namoo.jit(lambda x, c=c: x * c)(namoo.device_put(X, sharding)) for c in range(12)]
    xs += [namoo.device_put(X * c, sharding) for c in range(12)]
    f(xs[0])
    f(xs[12])
    if f.calls is not None:
        monkeypatch.setattr(type(f), "general", None)
    for i, x in enumerate(xs):
        np.testing.assert_array_equal(f(x), X * (i % 12) + 3)


def test_recognised_calls_meet_buffers_of_a_larger_client():
    from namoo.engines.xla import clients

    clients._were_others = False  # as in a new process
    f = namoo.jit(lambda x: x + 17, engine="xla")
    f(jnp.asarray(X))
    namoo.cpu_devices(40)
    f(jnp.asarray(X))
    x = jnp.asarray(X)
    new = namoo.jit(lambda x: x * 2, engine="xla")(x)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), X + 17)
        np.testing.assert_array_equal(f(new), 2 * X + 17)


@pytest.fixture
def puts(monkeypatch):
    """The arrays that go to devices."""
    from namoo.engines.xla import pjrt

    found = []
    put = pjrt.put
    monkeypatch.setattr(pjrt, "put", lambda kind, *rest: found.append(kind) or put(kind, *rest))
    return found


def test_arrays_of_the_host_that_come_again_have_their_buffer(puts):
    f = namoo.jit(lambda tree: [x + 1 for x in tree], engine="xla")
    xs, others = [jnp.asarray(X), jnp.zeros(3)], [jnp.asarray(2 * X), jnp.ones(3)]
    before = buffers.count_kept()
    for tree in (xs, others) * 3:
        for x, y in zip(tree, f(tree), strict=True):
            np.testing.assert_array_equal(y, np.asarray(x) + 1)
    assert len(puts) == buffers.count_kept() - before == 4
    del tree, x, others
    assert buffers.count_kept() - before == 2
    xs[0].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(xs)


def test_numbers_that_come_again_have_their_buffer(puts):
    f = namoo.jit(lambda x, s: x * s, engine="xla")
    x = jnp.ones(())
    for s in (2.0, -0.0, 0.0, float("nan"), 2.5, 1e9):
        for _ in range(3):
            np.testing.assert_array_equal(np.signbit(f(x, s)), np.signbit(np.float32(s)))
            np.testing.assert_array_equal(f(x, s), np.float32(s))
    if f.calls is not None:
        # The array, the number of the first call, which taught the rest, and each number once.
        assert len(puts) == 2 + 6


def test_engines_can_be_mixed():
    x = jnp.arange(4.0)
    y = namoo.jit(jnp.sin, engine="xla")(x)
    z = namoo.jit(lambda a, b: a * b, engine="native")(x, y)
    assert type(z) is EagerArray
    np.testing.assert_allclose(namoo.jit(jnp.cos, engine="xla")(z), np.cos(x * np.sin(x)), 1e-6)
    with pytest.raises(ValueError, match="engine must be"):
        namoo.jit(jnp.sin, engine="tpu")


def test_donation_to_the_xla_engine():
    f = namoo.jit(lambda x: x * 2, donate_argnums=0, engine="xla")
    x = f(jnp.ones(1000))
    pointer = x._buffer.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted() and y._buffer.unsafe_buffer_pointer() == pointer
    np.testing.assert_array_equal(y, np.full(1000, 4.0))
    # What was looked at stays as it was seen.
    seen = np.asarray(y)
    f(y).block_until_ready()
    np.testing.assert_array_equal(seen, np.full(1000, 4.0))


@pytest.mark.parametrize("harm", [None, "flip", "truncate"])
def test_programs_come_from_the_disk(tmp_path, monkeypatch, harm):
    monkeypatch.setenv("NAMOO_CACHE", "on")
    monkeypatch.setenv("NAMOO_CACHE_DIR", str(tmp_path / "cache"))
    found = []
    load = disk_cache.load
    monkeypatch.setattr(disk_cache, "load", lambda name: found.append(load(name)) or found[-1])
    sharding = NamedSharding(namoo.make_mesh((8,), ("i",), (namoo.sharding.AxisType.Auto,)), P("i"))

    def run():
        namoo.clear_caches()
        one = namoo.jit(lambda x: jnp.tanh(x) * 3, engine="xla")(X)
        several = namoo.jit(lambda x: jnp.tanh(x) * 3)(namoo.device_put(X, sharding))
        np.testing.assert_allclose(one, np.tanh(X) * 3, rtol=1e-6)
        np.testing.assert_allclose(several, np.tanh(X) * 3, rtol=1e-6)
        assert several.sharding.spec == P("i")

    run()
    assert found == [None, None]
    for entry in (tmp_path / "cache").iterdir():
        content = bytearray(entry.read_bytes())
        if harm == "flip":
            content[len(content) // 2] ^= 1
        entry.write_bytes(content[:-7] if harm == "truncate" else content)
    run()
    assert len(found) == 4
    assert [x is None for x in found[2:]] == [harm is not None] * 2


def test_calls_over_several_devices_are_recognised(mesh, monkeypatch):
    rows = NamedSharding(mesh, P("x"))
    f = namoo.jit(lambda state, x: (state + x.sum(), x * 2), in_shardings=(None, rows))
    x = namoo.device_put(X, rows)
    state = jnp.float32(0)
    for _ in range(3):
        state, _ = f(state, x)
    if f.calls is not None:
        monkeypatch.setattr(type(f), "general", None)
    state, double = f(state, x)
    assert float(state) == 4 * X.sum() and double.sharding == rows
    np.testing.assert_array_equal(double, X * 2)


def test_the_same_devices_in_another_order(mesh):
    turned = Mesh(mesh.devices.T, ("y", "x"))
    x = namoo.device_put(X, NamedSharding(mesh, P("x", "y")))
    y = namoo.device_put(x, NamedSharding(turned, P("x", "y")))
    np.testing.assert_array_equal(y, X)
    np.testing.assert_allclose(namoo.jit(lambda a, b: a @ b.T + a.sum())(x, y), X @ X.T + X.sum())
    for spec in SPECS:
        f = namoo.jit(lambda a: a + 1, out_shardings=NamedSharding(turned, spec))
        out = f(x)
        np.testing.assert_array_equal(out, X + 1)
        np.testing.assert_array_equal(namoo.jit(lambda a, b: a * b)(x, out), X * (X + 1))


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was(on):
    f = namoo.jit(lambda x: [x + i for i in range(3)], engine="xla")
    x = jnp.asarray(X)
    was_on = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        for _ in range(3):
            outs = f(x)
            assert gc.isenabled() == on
    finally:
        (gc.enable if was_on else gc.disable)()
    assert not any(map(gc.is_tracked, outs)) or f.calls is None


def halves():
    """Shardings over the first and over the last four devices."""
    devices = namoo.devices()
    return [NamedSharding(Mesh(devices[i : i + 4], ("x",)), P("x")) for i in (0, 4)]


def in_two_stages(x, there, **options):
    y = namoo.jit(lambda x: x**2)(x)
    y = namoo.device_put(y, there, **options)
    return jnp.sum(jnp.sin(namoo.jit(lambda y: y * 3)(y)))


@pytest.mark.parametrize(
    "derive",
    [
        lambda f: namoo.grad(f),
        lambda f: namoo.grad(lambda x: namoo.grad(f)(x).sum()),
        lambda f: lambda x: namoo.vjp(f, x)[1](jnp.float32(1))[0],
        lambda f: lambda x: namoo.linearize(f, x)[1](x),
    ],
    ids=["grad", "second", "vjp", "linearize"],
)
def test_derivatives_cross_from_devices_to_others(derive):
    here, there = halves()
    x = np.arange(4, dtype=np.float32)
    placed = namoo.device_put(x, here)
    found = derive(lambda x: in_two_stages(x, there))(placed)
    wanted = derive(lambda x: jnp.sum(jnp.sin(x**2 * 3)))(jnp.asarray(x))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    if found.ndim:
        assert found.sharding.device_set == here.device_set
    else:
        assert found.sharding.device_set == there.device_set
    assert in_two_stages(placed, there).sharding.device_set == there.device_set


def test_a_cotangent_goes_back_where_it_is_told():
    here, there = halves()
    x = namoo.device_put(np.arange(4, dtype=np.float32), here)
    slope = namoo.grad(lambda x: in_two_stages(x, there, src=here))(x)
    assert slope.sharding.device_set == here.device_set


def test_options_of_device_put_are_trees():
    here, there = halves()
    x, y = (namoo.device_put(X[:4, i].copy(), here) for i in range(2))
    moved = namoo.device_put({"x": x, "y": y}, there, donate={"x": True, "y": False})
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(moved["x"], X[:4, 0])
    same, other = namoo.device_put((y, y), here, may_alias=(None, False))
    assert same is y and other is not y
    namoo.jit(lambda y: y * 2, donate_argnums=0)(y)
    assert y.is_deleted()
    np.testing.assert_array_equal(other, X[:4, 1])
    for name in ("device", "src", "donate", "may_alias"):
        wanted = f"device_put {name} specification must be a tree prefix"
        with pytest.raises(ValueError, match=wanted):
            namoo.device_put((x, x), **{"device": there, name: (there,) * 3})


def test_arrays_from_the_data_of_a_process(mesh):
    from namoo import make_array_from_process_local_data as make

    sharding = NamedSharding(mesh, P("x"))
    data = {"a": X, "b": [X + 1, X[:, 0]]}
    shapes = [None, {"a": (8, 4), "b": None}, {"a": (8, None), "b": [(8, 4), (8,)]}]
    for shape in shapes:
        made = make(sharding, data, shape)
        assert namoo.tree.structure(made) == namoo.tree.structure(data)
        for found, wanted in zip(namoo.tree.leaves(made), namoo.tree.leaves(data), strict=True):
            assert found.sharding == sharding
            np.testing.assert_array_equal(found, wanted)
    with namoo.set_mesh(mesh):
        made = make({"a": P("x", "y"), "b": P("y")}, data)
        assert made["a"].sharding.spec == P("x", "y") and made["b"][1].sharding.spec == P("y")
    assert make(namoo.devices()[3], X).sharding == SingleDeviceSharding(namoo.devices()[3])
    for wrong in ((8, 5), {"a": (8, 4), "b": None, "c": None}, {"a": (8, 4, 1), "b": None}):
        with pytest.raises(ValueError):
            make(sharding, data, wrong)


@pytest.mark.parametrize(
    ("parts", "options", "error", "message"),
    [
        (lambda own: own[0], {}, TypeError, "`arrays` argument must be a list or a tuple"),
        (lambda own: own[:3], {}, ValueError, "4 devices of this process, but 3 arrays"),
        (lambda own: [], {}, ValueError, "`dtype` must be provided via the `dtype` argument"),
        (lambda own: [x[:1] for x in own], {}, ValueError, "Expected shard shape .2,. doesn't"),
        (lambda own: [*own[:3], own[3][:1]], {}, ValueError, "array shape .1,. of the part"),
        (lambda own: [*own[:3], own[3] > 0], {}, ValueError, "different types: float32, bool"),
        (lambda own: own, {"dtype": np.int32}, ValueError, "it must match the dtype"),
        (
            lambda own: [spread()] * 4,
            {},
            ValueError,
            r"one shard each. An argument array had 4 shard\(s\)",
        ),
    ],
)
def test_parts_that_do_not_fit(parts, options, error, message):
    sharding = halves()[0]
    own = [namoo.device_put(X[:2, 0], d) for d in namoo.devices()[:4]]
    whole = namoo.make_array_from_single_device_arrays((8,), sharding, own)
    np.testing.assert_array_equal(whole, np.tile(X[:2, 0], 4))
    with pytest.raises(error, match=message):
        namoo.make_array_from_single_device_arrays((8,), sharding, parts(own), **options)


def spread():
    return namoo.device_put(X[:4, 0], halves()[0])


def test_arrays_are_not_made_of_parts_in_a_trace():
    sharding = halves()[0]
    with pytest.raises(namoo.errors.UnexpectedTracerError, match="within a traced context"):
        namoo.jit(lambda x: namoo.make_array_from_callback((4,), sharding, lambda i: x[i]))(
            X[:4, 0]
        )
    with pytest.raises(ValueError, match="requires a list of concrete arrays"):
        namoo.jit(lambda x: namoo.make_array_from_single_device_arrays((4,), sharding, [x]))(
            X[:4, 0]
        )


def test_operations_while_jit_is_disabled(mesh):
    x = namoo.device_put(X, NamedSharding(mesh, P("x", "y")))
    with namoo.disable_jit():
        for out in (
            x + x,
            namoo.jit(lambda x: x * 2)(x),
            lax.cond(True, jnp.add, jnp.subtract, x, x),
        ):
            assert out.sharding == x.sharding
            np.testing.assert_array_equal(out, 2 * X)
        mapped = namoo.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        np.testing.assert_array_equal(mapped(x), 2 * X)
        np.testing.assert_array_equal(namoo.grad(lambda x: (x * x).sum())(x), 2 * X)


SHAPE = (8, 4)
# What samplers take after the key.
SAMPLERS = {
    **dict.fromkeys(
        "bits cauchy exponential gumbel laplace logistic maxwell normal rademacher uniform".split(),
        (SHAPE,),
    ),
    **dict.fromkeys(
        "chisquare gamma generalized_normal loggamma pareto poisson rayleigh t wald".split(),
        (2.0, SHAPE),
    ),
    "ball": (4, 2, (8,)),
    "bernoulli": (0.5, SHAPE),
    "beta": (2.0, 3.0, SHAPE),
    "categorical": (np.zeros(3, np.float32), -1, SHAPE),
    "dirichlet": (np.ones(4, np.float32), (8,)),
    "f": (2.0, 3.0, SHAPE),
    "geometric": (0.5, SHAPE),
    "lognormal": (1.0, SHAPE),
    "multivariate_normal": (np.zeros(4, np.float32), np.eye(4, dtype=np.float32), (8,)),
    "orthogonal": (4, (8,)),
    "permutation": (X,),
    "randint": (SHAPE, 0, 9),
    "triangular": (0.0, 0.5, 1.0, SHAPE),
    "truncated_normal": (-1.0, 1.0, SHAPE),
}


def test_all_samplers_with_out_sharding_are_listed():
    found = {
        name
        for name in dir(random)
        if inspect.isfunction(fun := getattr(random, name))
        and "out_sharding" in inspect.signature(fun).parameters
    }
    assert found == set(SAMPLERS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samples_are_divided_as_asked_for(name, explicit_mesh):
    sample, args = getattr(random, name), SAMPLERS[name]
    wanted = NamedSharding(explicit_mesh, P("x", "y"))
    plain = sample(random.key(0), *args)
    with namoo.set_mesh(explicit_mesh):
        for given in (wanted, P("x", "y")):
            for how in (lambda f: f, namoo.jit):
                run = how(lambda key: sample(key, *args, out_sharding=given))  # noqa: B023
                out = run(random.key(0))
                # The spec of a result has an entry for each dimension, as in JAX.
                whole = P("x", "y", *[None] * (plain.ndim - 2))
                assert out.sharding == wanted.with_spec(whole) and out.dtype == plain.dtype
                np.testing.assert_allclose(out, plain, rtol=2e-5, atol=1e-6)


INITIALIZERS = {
    "zeros": lambda init: init.zeros,
    "ones": lambda init: init.ones,
    "constant": lambda init: init.constant(2.0),
    "uniform": lambda init: init.uniform(),
    "normal": lambda init: init.normal(),
    "truncated_normal": lambda init: init.truncated_normal(),
    "glorot_uniform": lambda init: init.glorot_uniform(),
    "he_normal": lambda init: init.he_normal(),
    "variance_scaling": lambda init: init.variance_scaling(1.0, "fan_in", "normal"),
    "orthogonal": lambda init: init.orthogonal(),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initial_values_are_divided_as_asked_for(name, explicit_mesh):
    init = INITIALIZERS[name](namoo.nn.initializers)
    wanted = NamedSharding(explicit_mesh, P("x", "y"))
    plain = init(KEY, SHAPE)
    for how in (lambda f: f, namoo.jit):
        out = how(lambda key: init(key, SHAPE, out_sharding=wanted))(KEY)
        assert out.sharding == wanted and out.dtype == plain.dtype
        np.testing.assert_allclose(out, plain, rtol=2e-5, atol=1e-6)
    with pytest.raises(ValueError, match="axis names that are of type Auto"):
        init(KEY, SHAPE, np.float32, NamedSharding(auto(explicit_mesh), P("x")))


def test_a_sample_within_a_program_is_constrained(explicit_mesh):
    wanted = NamedSharding(explicit_mesh, P("x"))
    text = str(namoo.make_jaxpr(lambda k: random.normal(k, SHAPE, out_sharding=wanted))(KEY))
    assert "f32[8@x,4] = reshard" in text
    doubled = namoo.jit(lambda k: random.normal(k, SHAPE, out_sharding=wanted) * 2)(KEY)
    assert doubled.sharding == wanted.with_spec(P("x", None))
    both = namoo.vmap(lambda k: random.normal(k, (8,), out_sharding=wanted))(random.split(KEY))
    assert both.shape == (2, 8)


KEY = random.key(1)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("x", TypeError, "`out_sharding` argument of normal only supports instances of"),
        (lambda m: namoo.devices()[1], TypeError, "`NamedSharding` or `PartitionSpec`. Got cpu:1"),
        (lambda m: SingleDeviceSharding(namoo.devices()[1]), TypeError, "only supports"),
        (P("x"), ValueError, "Using PartitionSpec when you are not under a mesh context"),
        (lambda m: NamedSharding(m, P(None, None, "x")), ValueError, "at least 3 dimensions"),
        (lambda m: NamedSharding(m, P("y", "x")), ValueError, "normal: dimension 1.*size 6"),
        (lambda m: NamedSharding(auto(m), P("x")), ValueError, "axis names that are of type Auto"),
    ],
)
@pytest.mark.parametrize("how", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_shardings_that_do_not_fit_a_sample(given, error, message, how, explicit_mesh):
    sharding = given(explicit_mesh) if callable(given) else given
    with pytest.raises(error, match=message):
        how(lambda key: random.normal(key, (8, 6), out_sharding=sharding))(KEY)


def auto(mesh):
    return namoo.make_mesh((4, 2), mesh.axis_names, (namoo.sharding.AxisType.Auto,) * 2)


def test_a_sample_inside_shard_map_is_not_divided_again(explicit_mesh):
    def part(key):
        return random.normal(key, SHAPE, out_sharding=P("x"))

    mapped = namoo.shard_map(part, mesh=explicit_mesh, in_specs=P(), out_specs=P())
    with namoo.set_mesh(explicit_mesh), pytest.raises(ValueError, match="of type AxisType.Manual"):
        mapped(KEY)
