"""Meshes, specs and shardings, compared with JAX on eight simulated devices.

JAX runs in a process of its own, since the number of its devices is fixed when it starts; it
answers all expressions of the tables at once.
"""

import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import namoo
import namoo.numpy as jnp
from namoo.devices.sharding.hlo_text import sdy_mesh
from namoo.devices.sharding.read_hlo import from_hlo_text
from namoo.devices.sharding.shardings import DuplicateSpecError, IndivisibleError, require_divisible
from namoo.engines.base import Device
from namoo.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)

P = PartitionSpec
devices = [Device(i) for i in range(8)]

# What both sides evaluate expressions in, after their own imports.
COMMON = """
auto, explicit, manual = AxisType.Auto, AxisType.Explicit, AxisType.Manual
line = Mesh(devices, "x")
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
cube = Mesh(np.array(devices).reshape(2, 2, 2), ("a", "b", "c"))
turned = Mesh(np.array(devices).reshape(2, 4).T, ("x", "y"))
ones = Mesh(np.array(devices).reshape(1, 8, 1), ("i", "x", "j"))
typed = make_mesh((4, 2), ("x", "y"), devices=devices)
abstract = mesh.abstract_mesh
one = SingleDeviceSharding(devices[3])

def N(*parts, on=mesh, **more):
    return NamedSharding(on, P(*parts), **more)

def show(value):
    if isinstance(value, dict):
        return [[show(k), show(v)] for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(show, value))
    if isinstance(value, np.ndarray):
        return show(value.tolist())
    return repr(value)

def ask(expression):
    try:
        return show(eval(expression))
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]
        return ["raised", kinds[0]]
"""

JAX = """
import json, sys
import jax
import numpy as np
from jax import make_mesh
from jax.sharding import *
P, devices = PartitionSpec, jax.devices()
"""

SAME = """
P()
P(None)
P('a', None)
P(('a', 'b'))
P(('a',))
P(())
P(['a', 'b'], [])
P((None,))
P('a', P.UNCONSTRAINED)
P(('a', ('b',)))
P('a', 'a')
P() == P(None)
P('a') == P(['a'])
P('a') == ('a',)
hash(P('a', ('b', 'c'))) == hash(P('a', ['b', 'c']))
P('a') + ('b',)
('b',) + P('a')
P('a') + P('b', None)
P('a', 'b')[0]
P('a', 'b')[-1:]
len(P('a', None))
list(P('a', None))
P('a', 'b').index('b')
P('a').index('b')
P('a', None, None).count(None)
P('a').partitions
P('a').update(partitions=('b', 'c'))
P('a', unreduced={'b'})
P(unreduced={'b'}, reduced={'c'})
P('a', unreduced={'a'})
P(unreduced={None})
P('a', unreduced='b')
P(unreduced={'b'}, reduced={'b'})
P('a', unreduced={'b'})[0]
list(P('a', unreduced={'b'}))
P('a').update(unreduced={'b'})
isinstance(P('a'), tuple)
mesh
str(mesh)
mesh.shape
mesh.shape_tuple
mesh.size
mesh.axis_names
mesh.axis_sizes
mesh.axis_types
mesh.device_ids
mesh.devices
mesh.empty
mesh.is_multi_process
mesh.is_scalar
mesh.local_mesh
mesh.local_devices
mesh.auto_axes
mesh.explicit_axes
mesh.manual_axes
mesh.are_all_axes_auto
mesh.are_all_axes_explicit
mesh.are_all_axes_manual
mesh.abstract_mesh
mesh.update(axis_names=('u', 'v'))
mesh.update(axis_types=(auto, explicit))
mesh == Mesh(np.array(devices).reshape(4, 2), ('x', 'y'))
mesh == turned
mesh == typed
mesh == 3
hash(mesh) == hash(Mesh(np.array(devices).reshape(4, 2), ('x', 'y')))
typed
typed.auto_axes
typed.explicit_axes
Mesh(devices, 'x', axis_types=(manual,)).manual_axes
Mesh(devices, ('x',), axis_types=3)
Mesh(devices, ('x',), axis_types=(auto, auto))
Mesh(devices, ('x', 'y'))
Mesh(devices, (None,))
Mesh(devices[0], 'x')
Mesh(np.array(devices[0]), ()).is_scalar
Mesh(np.empty((), dtype=object), ())
str(Mesh(np.empty((), dtype=object), ()))
Mesh(np.empty((), dtype=object), ()).empty
Mesh(np.empty((), dtype=object), ()).abstract_mesh
make_mesh((2, 2), ('x', 'y'), devices=devices).device_ids
make_mesh((2, 2), ('x', 'y'), (auto, auto), devices=devices)
make_mesh((8,), 'x', devices=devices)
make_mesh((4, 4), ('x', 'y'), devices=devices)
make_mesh((8,), ('x', 'y'), devices=devices)
make_mesh(8, 'x', devices=devices)
AbstractMesh((4, 2), ('x', 'y'))
AbstractMesh((), ())
AbstractMesh((4,), ('x',), axis_types=explicit).explicit_axes
AbstractMesh((4, 2), ('x', 'y')).shape
AbstractMesh((4, 2), ('x', 'y')).size
AbstractMesh((4, 2), ('x', 'y')) == AbstractMesh((4, 2), ('x', 'y'))
AbstractMesh((4, 2), ('x', 'y')) == abstract
abstract.update(axis_sizes=(2, 2))
abstract.update_axis_types({'x': manual})
abstract.abstract_device
abstract.abstract_mesh is abstract
abstract.devices
abstract.device_ids
abstract.local_mesh
N('x')
N('x', memory_kind='pinned_host')
N('x', memory_kind='lost')
N('x').memory_kind
N('x').with_memory_kind('unpinned_host')
N('x', on=abstract)
N('x', on=abstract).memory_kind
N('x', on=abstract).num_devices
N('x', on=abstract).device_set
N('x', on=abstract).shard_shape((8, 3))
N('x', on=abstract).devices_indices_map((8, 3))
N('x', on=abstract).is_fully_addressable
N('z')
N(3)
N(P.UNCONSTRAINED, on=typed)
NamedSharding(mesh, P('x', unreduced={'y'}))
NamedSharding(typed, P('x', unreduced={'y'}))
NamedSharding(typed, P('x', unreduced={'z'}))
NamedSharding(typed, P('x', reduced={'y'})).replicated_axes
NamedSharding(typed, P(unreduced={'y'})).is_fully_replicated
N('x').device_set
N('x').addressable_devices
N('x').num_devices
N('x').is_fully_addressable
N('x').has_addressable_devices
N('x').replicated_axes
N('x').update(spec=P('y'))
N('x').update(spec=('y', None))
N('x').update(mesh=turned).mesh.device_ids
N('x') == N('x')
N('x') == N('x', None)
N('x') == N('x', memory_kind='pinned_host')
N('x') == N('x', memory_kind='device')
N('x') == N('x', on=turned)
N('x') == 3
hash(N('x')) == hash(N('x'))
N('x', 'y').check_compatible_aval((8,))
N('x', 'y').check_compatible_aval((8, 3))
N('x').check_compatible_aval(())
N('x').shard_shape((5,))
N(None, ('x', 'y')).shard_shape((5, 12))
N('x').devices_indices_map((6,))
N('x').devices_indices_map((0, 4))
N().devices_indices_map(())
N('x', on=Mesh(devices[:1], 'x')).is_fully_replicated
one
one.memory_kind
one.device_set
one.num_devices
one.is_fully_replicated
one.is_fully_addressable
one.shard_shape((5, 3))
one.devices_indices_map((5, 3))
one.with_memory_kind('pinned_host')
one == SingleDeviceSharding(devices[3])
one == SingleDeviceSharding(devices[4])
one == one.with_memory_kind('pinned_host')
SingleDeviceSharding(devices[0], memory_kind='lost')
make_single_device_sharding(devices[2])
one.is_equivalent_to(N('x', on=Mesh(devices[3:4], 'x')), 1)
one.is_equivalent_to(N('x', on=Mesh(devices[4:5], 'x')), 1)
one.is_equivalent_to(N(), 1)
one.is_equivalent_to(one.with_memory_kind('pinned_host'), 1)
isinstance(one, Sharding), isinstance(N(), Sharding)
set_mesh(abstract)
set_mesh(3)
set_mesh(Mesh(devices, 'x', axis_types=(manual,)))
use_abstract_mesh(mesh)
get_mesh()
get_abstract_mesh()
""".strip().splitlines()

# Meshes, specs and shapes that fit one another: the heart of the matter.
SPECS = [
    *(("mesh", text, (8, 8, 8)) for text in (
        "", "'x'", "'y'", "None, 'x'", "'y', 'x'", "'x', None, 'y'", "('x', 'y')", "('y', 'x')",
        "None, ('y', 'x')", "P.UNCONSTRAINED, 'y'",
    )),
    *(("cube", text, (8, 16)) for text in (
        "'a'", "'b'", "('c', 'a')", "('b', 'a'), 'c'", "'c', ('b', 'a')", "None, ('c', 'b', 'a')",
        "('a', 'b', 'c')", "'b', 'a'",
    )),
    *(("turned", text, (8, 4)) for text in ("'x'", "'y'", "('x', 'y')", "('y', 'x')", "'y', 'x'")),
    *(("ones", text, (8, 3)) for text in ("'i'", "'x', 'j'", "('j', 'x', 'i')", "")),
    ("line", "'x'", (16,)),
]  # fmt: skip
QUESTIONS = [
    "N({spec}, on={mesh}).devices_indices_map({shape})",
    "N({spec}, on={mesh}).addressable_devices_indices_map({shape})",
    "N({spec}, on={mesh}).shard_shape({shape})",
    "N({spec}, on={mesh}).is_fully_replicated",
    "N({spec}, on={mesh})",
]
QUESTIONS_OF_SPECS = [
    question.format(mesh=mesh, spec=spec + "," * bool(spec), shape=shape).replace(",,", ",")
    for mesh, spec, shape in SPECS
    for question in QUESTIONS
]
PAIRS = [
    f"N({a}{',' if a else ''} on={m}).is_equivalent_to(N({b}{',' if b else ''} on={n}), 2)"
    for (m, a, _), (n, b, _) in itertools.product(
        [case for case in SPECS if case[2] != (16,) and case[1].count(",") < 2], repeat=2
    )
]
HLO = [
    f"str(N({spec}{',' if spec else ''} on={mesh})._to_xla_hlo_sharding({len(shape)}))"
    for mesh, spec, shape in SPECS
]


@cache
def answers() -> dict[str, Any]:
    """What JAX says to all expressions."""
    everything = [*SAME, *QUESTIONS_OF_SPECS, *PAIRS, *HLO]
    script = f"{JAX}{COMMON}\nprint(json.dumps([ask(e) for e in json.load(sys.stdin)]))"
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(everything),
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(everything, json.loads(done.stdout), strict=True))


@cache
def ours() -> dict:
    names = {
        "np": np,
        "devices": devices,
        "P": P,
        "make_mesh": namoo.make_mesh,
        **{name: getattr(namoo.sharding, name) for name in dir(namoo.sharding)},
    }
    exec(COMMON, names)
    return names


def ask(expression: str) -> object:
    return json.loads(json.dumps(ours()["ask"](expression)))


@pytest.mark.parametrize("expression", SAME)
def test_as_in_jax(expression):
    theirs, own = answers()[expression], ask(expression)
    if theirs[:1] == ["raised"] and theirs != own:
        # Where JAX fails with Python's own words, ours says what is wrong.
        assert (theirs[1], own) in [
            ("IndexError", ["raised", "ValueError"]),
            ("NotImplementedError", ["raised", "TypeError"]),
        ]
    else:
        assert own == theirs


@pytest.mark.parametrize("expression", QUESTIONS_OF_SPECS)
def test_parts_of_arrays_as_in_jax(expression):
    assert ask(expression) == answers()[expression]


def test_equivalent_shardings_put_the_same_parts_on_the_same_devices():
    space = ours()
    differ = 0
    for pair in PAIRS:
        own = ask(pair)
        one, other = pair.removesuffix(", 2)").split(".is_equivalent_to(")
        maps = [eval(each, space).devices_indices_map((64, 64)) for each in (one, other)]
        assert own == repr(maps[0] == maps[1]), pair
        # JAX also wants the devices in the same order, which says nothing about the array.
        if own != answers()[pair]:
            differ += 1
            assert own == "True" and ("turned" in pair), pair
    assert differ


def test_duplicates_are_named():
    with pytest.raises(DuplicateSpecError, match=r"P\('x', 'x'\) has duplicate entries for 'x'"):
        NamedSharding(ours()["mesh"], P("x", "x"))


@pytest.mark.parametrize(
    ("spec", "shape", "message"),
    [
        (P("x"), (6, 3), r"dimension 0 .*\(6, 3\) has size 6.* mesh axis 'x' \(size 4\). "
         r"Pad it to 8, or do not split it: P\(None,\)"),
        (P(None, ("x", "y")), (3, 12), r"dimension 1 .* mesh axes 'x' \(size 4\) and 'y' "
         r"\(size 2\), 8 tiles in all. Pad it to 16, or do not split it: P\(None, None\)"),
        (P("x", None), (8,), r"at least 2 dimensions.*\(8,\) has 1. A spec for it is P\('x',\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_explained(spec, shape, message):
    sharding = NamedSharding(ours()["mesh"], spec)
    with pytest.raises(ValueError, match=message):
        sharding.shard_shape(shape)
    with pytest.raises(ValueError, match=message):
        require_divisible("argument x['w'] of step", sharding, shape)


def test_the_argument_is_named():
    with pytest.raises(IndivisibleError, match=r"^argument x\['w'\] of step: dimension 0"):
        require_divisible("argument x['w'] of step", NamedSharding(ours()["mesh"], P("x")), (3,))


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("NamedSharding(mesh, ('x', None))", TypeError, r"write P\('x', None\)"),
        ("NamedSharding(mesh, 'x')", TypeError, r"write P\('x',\)"),
        ("NamedSharding(devices, P())", TypeError, "mesh must be a Mesh"),
        (
            "NamedSharding(mesh, P('z'))",
            ValueError,
            r"Resource axis: z of P\('z',\) is not found in mesh: \('x', 'y'\)",
        ),
        ("Mesh([1, 2], 'x')", TypeError, "devices must be devices.*got 1 of type int"),
        ("Mesh(mesh.devices, ('x', 'x'))", ValueError, "its own name"),
        ("AbstractMesh((2, 2), ('x',))", ValueError, "one name for each size"),
        ("make_mesh((64,), 'x')", ValueError, r"needs 64 .* there are 1\. .*64"),
        ("make_mesh((2.5,), 'x')", TypeError, "sequence of integers"),
        ("make_mesh((-1, 2), 'xy')", ValueError, "at least 1"),
    ],
)
def test_errors_say_what_to_write(expression, error, message):
    with pytest.raises(error, match=message):
        eval(expression, ours())


def test_names_are_those_of_jax():
    script = "import jax; print(*[n for n in dir(jax.sharding) if n[0] != '_'])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    # It is about types of traced arrays that carry shardings.
    assert set(found.split()) - {"ManualAxisType"} <= set(dir(namoo.sharding))
    assert namoo.P is namoo.sharding.PartitionSpec
    assert namoo.NamedSharding is NamedSharding and namoo.set_mesh is set_mesh


@pytest.mark.parametrize(
    "value", ["P('x', P.UNCONSTRAINED, unreduced={'y'})", "mesh", "abstract", "N('x')", "one"]
)
def test_pickle(value):
    thing = eval(value, ours())
    copy = pickle.loads(pickle.dumps(thing))
    assert copy == thing and hash(copy) == hash(thing) and copy is not thing


def test_specs_cannot_be_changed():
    with pytest.raises(AttributeError, match=r"spec.update\(unreduced="):
        P("x").unreduced = frozenset()  # type: ignore[misc]
    with pytest.raises(ValueError):
        ours()["mesh"].devices[0, 0] = devices[1]


class Remote(Device):
    process_index = 1
    is_addressable = False


def test_devices_of_other_processes():
    mesh = Mesh(np.array([*devices[:4], *map(Remote, range(4, 8))]).reshape(2, 4), ("x", "y"))
    sharding = NamedSharding(mesh, P("x", "y"))
    assert mesh.is_multi_process and mesh.local_devices == devices[:4]
    assert mesh.local_mesh.shape == {"x": 1, "y": 4}
    assert not sharding.is_fully_addressable and sharding.has_addressable_devices
    assert sharding.addressable_devices == set(devices[:4])
    assert list(sharding.addressable_devices_indices_map((2, 4))) == devices[:4]
    assert len(sharding.devices_indices_map((2, 4))) == 8
    scattered = Mesh([devices[0], Remote(4), devices[1]], "x")
    with pytest.raises(ValueError, match=r"contiguous box.*\[\[0\], \[2\]\]"):
        scattered.local_mesh  # noqa: B018
    with pytest.raises(ValueError, match="no devices of this process"):
        Mesh([Remote(4)], "x").local_mesh  # noqa: B018


def test_the_current_mesh():
    mesh, typed = ours()["mesh"], ours()["typed"]
    seen = []
    with set_mesh(mesh):
        assert get_mesh() == mesh and get_abstract_mesh() == mesh.abstract_mesh
        with set_mesh(typed):
            assert get_mesh() == typed
            with use_abstract_mesh(AbstractMesh((8,), ("z",))):
                assert get_abstract_mesh().axis_names == ("z",) and get_mesh() == typed
                with pytest.raises(ValueError, match="cannot change the number of devices"):
                    with use_abstract_mesh(AbstractMesh((4,), ("z",))):
                        pass
            assert get_abstract_mesh() == typed.abstract_mesh
        assert get_mesh() == mesh
        with set_mesh(None):
            assert get_mesh().empty and get_abstract_mesh().empty
        thread = threading.Thread(target=lambda: seen.append(get_mesh().empty))
        thread.start()
        thread.join()
    assert seen == [True]
    assert get_mesh().empty
    setting = set_mesh(mesh)
    assert get_mesh() == mesh
    setting.__exit__()
    assert get_mesh().empty


def test_a_mesh_as_context_is_deprecated_as_in_jax():
    mesh = ours()["mesh"]
    with pytest.warns(DeprecationWarning, match=r"with namoo.set_mesh\(mesh\)"), mesh:
        assert get_mesh() == mesh
    assert get_mesh().empty
    with warnings.catch_warnings(), pytest.raises(DeprecationWarning):
        warnings.simplefilter("error")
        with mesh:
            pass


def test_programs_are_traced_anew_under_another_mesh():
    meshes = []

    @namoo.jit
    def f(x):
        meshes.append(get_abstract_mesh())
        with pytest.raises(ValueError, match=r"write get_abstract_mesh\(\) there"):
            get_mesh()
        with pytest.raises(ValueError, match="around the call"):
            set_mesh(None)
        return x

    mesh = namoo.make_mesh((1,), ("x",))  # of actual devices: programs run on those of the mesh
    for _ in range(2):
        f(jnp.ones(2))
        with set_mesh(mesh):
            f(jnp.ones(2))
    assert [each.empty for each in meshes] == [True, False]


def test_arrays_have_a_sharding():
    sharding = jnp.ones(3).sharding
    assert isinstance(sharding, Sharding) and sharding == SingleDeviceSharding(namoo.devices()[0])
    assert sharding.shard_shape((3,)) == (3,)


def test_sharding_is_loaded_when_it_is_asked_for():
    code = """
import sys
import namoo.numpy as jnp
x = jnp.ones(3) + 1
assert "namoo.devices.sharding" not in sys.modules
x.sharding
assert "namoo.devices.sharding" in sys.modules and "jaxlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("mesh", "text"),
    [
        ("mesh", '<["x"=4, "y"=2]>'),
        ("abstract", '<["x"=4, "y"=2]>'),
        ("turned", '<["x"=4, "y"=2], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>'),
        ("Mesh(devices[3:4], 'x')", '<["x"=1], device_ids=[3]>'),
        ("Mesh(np.array(devices[3]), ())", "<[], device_ids=[3]>"),
        ("Mesh(devices[:2], ['a\"b'])", '<["a\\"b"=2]>'),
    ],
)
def test_meshes_for_shardy(mesh, text):
    assert sdy_mesh(eval(mesh, ours())) == text


def test_meshes_for_shardy_by_the_order_of_a_program():
    turned = ours()["turned"]
    assert sdy_mesh(turned, turned.flat_devices) == '<["x"=4, "y"=2]>'
    assert sdy_mesh(Mesh(devices[4:6], "x"), devices[4:6][::-1]) == '<["x"=2], device_ids=[1, 0]>'


@pytest.mark.parametrize(
    ("sharding", "ndim", "text"),
    [
        ("N('x')", 2, '<@mesh, [{"x"}, {}]>'),
        ("N(None, ('y', 'x'))", 2, '<@mesh, [{}, {"y", "x"}]>'),
        ("N(P.UNCONSTRAINED, 'x')", 3, '<@mesh, [{?}, {"x"}, {}]>'),
        ("N()", 0, "<@mesh, []>"),
        ("one", 2, "<@mesh, [{}, {}]>"),
        (
            "NamedSharding(typed, P('x', unreduced={'y'}))",
            1,
            '<@mesh, [{"x"}], unreduced={"y"}>',
        ),
    ],
)
def test_shardings_for_shardy(sharding, ndim, text):
    assert f"<@mesh, {eval(sharding, ours()).shardy_dims(ndim)}>" == text


@pytest.mark.parametrize(("mesh", "spec", "shape"), SPECS)
def test_texts_of_hlo_both_ways(mesh, spec, shape):
    space = ours()
    sharding = eval(f"N({spec}{',' if spec else ''} on={mesh})", space)
    question = f"str(N({spec}{',' if spec else ''} on={mesh})._to_xla_hlo_sharding({len(shape)}))"
    theirs = str(answers()[question]).strip("'")
    for text in (theirs, sharding.hlo_text(len(shape))):
        back = from_hlo_text(text, sharding.mesh, len(shape))
        assert isinstance(back, NamedSharding) and back.mesh is sharding.mesh
        assert back.devices_indices_map(shape) == sharding.devices_indices_map(shape)
        assert len(back.spec) <= len(sharding.spec)


@settings(max_examples=200)
@given(data=st.data())
def test_any_tiling_is_told_by_some_sharding(data):
    sizes = data.draw(st.sampled_from([(8,), (4, 2), (2, 2, 2), (1, 8), (2, 1, 4)]))
    mesh = Mesh(np.array(devices).reshape(sizes), tuple("abc"[: len(sizes)]))
    parts = data.draw(st.sampled_from([(2, 2), (4, 1), (1, 8), (2, 4), (1, 1), (8, 1)]))
    order = data.draw(st.one_of(st.just(list(range(8))), st.permutations(range(8))))
    replicas = 8 // (parts[0] * parts[1])
    listed = ",".join(map(str, order))
    text = f"{{devices=[{parts[0]},{parts[1]},{replicas}]{listed} last_tile_dim_replicate}}"
    found = from_hlo_text(text, mesh, 2).devices_indices_map((8, 8))
    for place, device in enumerate(order):
        tile = np.unravel_index(place // replicas, parts)
        for cut, i, count in zip(found[devices[device]], tile, parts, strict=True):
            assert cut.indices(8) == (i * 8 // count, (i + 1) * 8 // count, 1)


@pytest.mark.parametrize(
    ("text", "ndim", "spec"),
    [
        ("{replicated}", 2, P()),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", 2, None),
        ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2, P("x")),
        ("{devices=[4,1,2]<=[8] last_tile_dims={replicated}}", 2, P("x")),
        ("{devices=[8]<=[4,2]T(1,0)}", 1, P(("y", "x"))),
        ("{devices=[8]<=[2,4]T(1,0)}", 1, None),
        ("{devices=[1,8]0,1,2,3,4,5,6,7}", 2, P(None, ("x", "y"))),
        ("{devices=[8]7,6,5,4,3,2,1,0}", 1, None),
        ("{replicated metadata={op_name=\"a\"}}", 1, P()),
    ],
)  # fmt: skip
def test_specs_from_texts_of_hlo(text, ndim, spec):
    mesh = ours()["mesh"]
    found = from_hlo_text(text, mesh, ndim)
    assert isinstance(found, NamedSharding)
    assert (found.spec if found.mesh is mesh else None) == spec
    assert found.device_set == set(devices)


def test_maximal_is_one_device():
    found = from_hlo_text("{maximal device=3}", ours()["mesh"], 2)
    assert found == SingleDeviceSharding(devices[3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{manual}", "does not say"),
        ("{devices=[2,4]<=[8] last_tile_dims={manual}}", "inside a shard_map"),
        ("{devices=[2,4]<=[8]}", "1 dimensions"),
    ],
)
def test_texts_of_hlo_that_are_no_sharding_of_an_array(text, message):
    with pytest.raises(ValueError, match=message):
        from_hlo_text(text, ours()["mesh"], 1)


def test_abstract_devices():
    kind = AbstractDevice("cpu", None, "cpu")
    assert ours()["mesh"].abstract_mesh.abstract_device == kind
    assert AxisType.Auto in ours()["mesh"].axis_types


def test_memories_of_a_device():
    device = namoo.devices()[0]
    kinds = [memory.kind for memory in device.addressable_memories()]
    assert kinds == ["device", "pinned_host", "unpinned_host"]
    assert device.default_memory().kind == "device"
    for kind in kinds:
        sharding = namoo.sharding.SingleDeviceSharding(device, memory_kind=kind)
        assert pickle.loads(pickle.dumps(sharding)) == sharding
