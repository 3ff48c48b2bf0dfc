"""Trees on disk: what comes back, what is refused, what a crash leaves."""

import dataclasses
import json
import os
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import namoo
import namoo.numpy as jnp
from namoo import checkpoints, nn, optim, struct, tree
from namoo.checkpoints import CheckpointError, Checkpoints, files, saving, structure
from namoo.tree_util import TreeMismatchError, register_dataclass, register_pytree_node_class

SCRIPTS = Path(__file__).parents[1] / "support"


class Point(NamedTuple):
    x: Any
    y: Any = 0


@struct.dataclass
class State:
    params: Any
    step: Any
    mode: str = struct.field(pytree_node=False, default="train")
    apply: Any = struct.field(pytree_node=False, default=None)


class Affine(namoo.Module):
    w: namoo.Array
    parts: list
    rate: float = 0.5
    activation: Any = None


@register_dataclass
@dataclasses.dataclass
class Plain:
    data: Any
    name: str = tree.static(default="")


@register_pytree_node_class
class Pair:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag

    def tree_flatten(self):
        return (self.a, self.b), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        a, b = children
        return cls(a, b, tag)


def assert_same(found, expected):
    """The same structure, and leaves of the same class, type, weakness and bits."""
    assert tree.structure(found) == tree.structure(expected)
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert type(a) is type(b)
        if hasattr(b, "dtype"):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert getattr(a, "weak_type", None) == getattr(b, "weak_type", None)
            if isinstance(b, namoo.Array) and namoo.dtypes.issubdtype(
                b.dtype, namoo.dtypes.prng_key
            ):
                a, b = namoo.random.key_data(a), namoo.random.key_data(b)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        else:
            assert repr(a) == repr(b)


SHARED = jnp.arange(4.0)
TREES = {
    "leaf": jnp.float32(3),
    "none": None,
    "empty": {"a": [], "b": (), "c": {}},
    "numbers": [True, 1, -(2**80), 1.5, float("nan"), float("-inf"), -0.0, 2 - 3j, "텍스트\ud800"],
    "bytes": {"b": b"\x00\xff"},
    "weak": [jnp.array(1.0), jnp.asarray(1, jnp.float32), jnp.array(2)],
    "numpy": [np.arange(6).reshape(2, 3).T, np.float64(0.1), np.zeros((0, 3)), np.bool_(True)],
    "types": [np.ones(3, t) for t in ("c16", "f2", "u1", "i8", ml_dtypes.bfloat16)]
    + [np.ones((2, 2), t) for t in (ml_dtypes.int4, ml_dtypes.float8_e4m3fnuz, "bool")],
    "keys": [namoo.random.key(3), namoo.random.split(namoo.random.key(0, impl="rbg"), 2)],
    "dicts": OrderedDict(z=1, a=defaultdict(list, {3: "x", 1: "y"})),
    "paths": {
        "a/b": 1.0,
        "a": {"b": jnp.ones(1)},
        "x*": 2,
        "__metadata__": jnp.zeros(1),
        "": 3,
    },
    "reserved": {"__metadata__": jnp.zeros(2), "..": jnp.ones(1)},
    "namedtuple": Point(jnp.ones(2), Point(1)),
    "struct": State({"w": jnp.ones(2)}, 3, mode="eval"),
    "dataclass": Plain([jnp.ones(2)], "x"),
    "custom": Pair(jnp.ones(1), 2, ("tag", 1, 2.5, frozenset([1, 2]), jnp.float32, np.int8)),
    "module": Affine(jnp.ones(2), [jnp.zeros(1), "text", 3], 0.25, None),
    "tied": Affine(SHARED, [SHARED, {"again": SHARED}]),
    "layer": nn.Linear(3, 2, key=namoo.random.key(0)),
    "activations": [nn.relu, nn.MLP(2, 1, 3, 2, key=namoo.random.key(0), activation=nn.gelu)],
    "deep": reduce(lambda x, _: [x], range(300), 1),
}


@pytest.mark.parametrize("name", TREES)
def test_types_come_back(name, tmp_path):
    checkpoints.save(tmp_path / "c", TREES[name])
    assert_same(checkpoints.load(tmp_path / "c"), TREES[name])
    assert_same(checkpoints.load(tmp_path / "c", like=TREES[name]), TREES[name])


def test_one_array_in_two_places_is_one(tmp_path):
    checkpoints.save(tmp_path, {"a": SHARED, "b": [SHARED]})
    loaded = checkpoints.load(tmp_path)
    assert loaded["a"] is loaded["b"][0]
    [file] = tmp_path.glob("*.safetensors")
    assert list(safetensors.numpy.load_file(file)) == ["a"]


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.complex_numbers()
)
arrays = hnp.arrays(
    st.sampled_from(["f4", "f8", "i1", "u2", "?", "c8", "c16", ml_dtypes.bfloat16]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=st.sampled_from([0, 1]),
)
trees = st.recursive(
    scalars | arrays | arrays.map(lambda a: jnp.asarray(np.real(a).astype(np.float32))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(State, inner, inner, st.text(max_size=3))
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(value=trees, limit=st.sampled_from([1, 20, 10**6]))
def test_round_trip(value, limit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trip")
    checkpoints.save(folder, value, max_file_bytes=limit)
    assert_same(checkpoints.load(folder), value)


def test_functions_come_from_the_template(tmp_path):
    state = State({"w": jnp.ones(2), "f": jnp.tanh}, jnp.array(1), apply=jnp.sin)
    checkpoints.save(tmp_path, state)
    template = State({"w": jnp.zeros(2), "f": jnp.cos}, jnp.array(0), apply=jnp.exp)
    loaded = checkpoints.load(tmp_path, like=template)
    assert loaded.params["f"] is jnp.cos and loaded.apply is jnp.exp
    assert loaded.params["w"].tolist() == [1, 1] and loaded.step == 1
    with pytest.raises(CheckpointError, match="cannot hold: 'function namoo.*sin'.*like=tree"):
        checkpoints.load(tmp_path)
    checkpoints.save(tmp_path, {"f": jnp.tanh})
    with pytest.raises(CheckpointError, match="'f'.*functions are not saved"):
        checkpoints.load(tmp_path)


def test_shapes_are_a_template(tmp_path):
    model = nn.Linear(3, 2, key=namoo.random.key(0))
    checkpoints.save(tmp_path, model)
    shapes = namoo.eval_shape(lambda: nn.Linear(3, 2, key=namoo.random.key(1)))
    assert_same(checkpoints.load(tmp_path, like=shapes), model)


class Local(NamedTuple):
    x: Any


def test_classes_that_are_not_there(tmp_path, monkeypatch):
    Hidden = namedtuple("Hidden", "x")
    Hidden.__qualname__ = "nowhere.<locals>.Hidden"
    checkpoints.save(tmp_path, Hidden(1))
    with pytest.raises(CheckpointError, match="has not imported.*types="):
        checkpoints.load(tmp_path)
    assert checkpoints.load(tmp_path, types=[Hidden]) == Hidden(1)
    checkpoints.save(tmp_path, Local(1))
    monkeypatch.setattr(sys.modules[__name__], "Local", print)
    with pytest.raises(CheckpointError, match="has not imported"):
        checkpoints.load(tmp_path)


@pytest.mark.parametrize(
    "old",
    """
    accumulation:MultiStepsState adams:ScaleByAdamState adding:AddNoiseState
    backtracking:ScaleByBacktrackingLinesearchState
    combine:PartitionState conditional:ApplyIfFiniteState constraining:ZeroNansState
    masking:MaskedState momentum:TraceState monitoring:MonitorState quasi_newton:ScaleByLBFGSState
    scaling:ScaleByScheduleState second_moments:ScaleByRmsState sign_steps:ScaleByRpropState
    slow_weights:LookaheadState zoom:ScaleByZoomLinesearchState
    """.split(),
)
def test_classes_that_have_moved(old):
    """Files of older versions name the modules that the classes were in."""
    cls = getattr(optim, old.partition(":")[2])
    treedef = tree.structure(cls(*range(len(cls._fields))))
    [kind, _, *rest], *leaves = structure.write_structure(treedef)
    node = [kind, f"namoo.optim.{old}", *rest]
    assert structure.read_structure([node, *leaves]) == treedef


@pytest.mark.parametrize(
    ("leaf", "message"),
    [
        (object(), r"\['a'\]\[0\] is of type builtins.object"),
        (np.array(["x"]), r"\['a'\]\[0\] is a ndarray of <U1"),
        (np.array([None]), "ndarray of object"),
        ({1, 2}, "type builtins.set"),
        (range(3), "builtins.range"),
    ],
)
def test_leaves_that_are_refused(leaf, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        checkpoints.save(tmp_path / "c", {"a": [leaf]})
    assert not (tmp_path / "c").exists()


def test_traced_values_are_refused(tmp_path):
    with pytest.raises(TypeError, match="traced"):
        namoo.jit(lambda x: checkpoints.save(tmp_path, [x]))(1.0)


SAVED = {"enc": {"w": jnp.ones(2), "b": jnp.zeros(1)}, "head": {"w": jnp.ones(3)}, "step": 4}
ZERO = jnp.zeros
FITS: list[tuple[Any, dict[str, Any], Any]] = [
    # template, options, the leaves of the result or what the error says
    (
        {"enc": {"w": ZERO(2), "b": ZERO(1)}, "head": {"w": ZERO(3)}, "step": 0},
        {},
        {"enc/b": [0], "enc/w": [1, 1], "head/w": [1, 1, 1], "step": 4},
    ),
    ({"enc": {"w": ZERO(2), "b": ZERO(1)}, "step": 0}, {}, "unexpected key 'head'"),
    ({"enc": {"w": ZERO(2)}, "step": 0}, {"extra": "ignore"}, {"enc/w": [1, 1], "step": 4}),
    ({"new": ZERO(1), **SAVED}, {}, "missing key 'new'"),
    (
        {"enc": {"w": ZERO(2), "c": ZERO(1)}},
        {"missing": "keep", "extra": "ignore"},
        {"enc/c": [0], "enc/w": [1, 1]},
    ),
    ({"enc": {"W": ZERO(2)}}, {"extra": "ignore"}, r"missing key 'W'"),
    ({"enc": {"wt": ZERO(2), "b": ZERO(1)}, "head": {"w": ZERO(3)}, "step": 0}, {}, "'wt'"),
    (
        {"head": {"w": ZERO(4)}},
        {"extra": "ignore"},
        r"\['head'\]\['w'\]: .*float32\[4\].*float32\[3\]",
    ),
    ({"step": 0.5}, {"extra": "ignore"}, r"\['step'\]: expected a leaf of type float.*int"),
    ({"step": ZERO(2)}, {"extra": "ignore"}, r"\['step'\]: expected float32\[2\].*type int"),
    ({"head": {"w": ZERO(3, "int8")}}, {"extra": "ignore"}, "int8.*cast=True"),
    ({"head": {"w": ZERO(3, "int8")}}, {"extra": "ignore", "cast": True}, {"head/w": [1, 1, 1]}),
    ({"head": ZERO(3)}, {"extra": "ignore"}, r"\['head'\]"),
    (
        {"a": {"encoder": {"w": ZERO(2), "b": ZERO(1)}}, "last": ZERO(3), "step": 0},
        {"rename": {"enc": "a/encoder", "head/w": "last"}},
        {"a/encoder/b": [0], "a/encoder/w": [1, 1], "last": [1, 1, 1], "step": 4},
    ),
    (
        {"ENC": {"W": ZERO(2)}},
        {"rename": str.upper, "extra": "ignore"},
        {"ENC/W": [1, 1]},
    ),
    ({"w": ZERO(2)}, {"rename": lambda p: "w"}, "rename gives 'enc/b' and 'enc/w'"),
    (
        {"enc": {"w": ZERO(2), "b": ZERO(1) + 5}, "step": 0},
        {"only": "enc/w"},
        {"enc/b": [5], "enc/w": [1, 1], "step": 0},
    ),
    ({"enc": {"w": ZERO(2)}}, {"only": "encoder/**"}, "'encoder/\\*\\*' matches no leaf"),
    ({"step": 0}, {"missing": "ignore"}, "missing is one of"),
]


@pytest.mark.parametrize(("template", "options", "expected"), FITS)
def test_fitting_a_template(template, options, expected, tmp_path):
    checkpoints.save(tmp_path, SAVED)
    load = partial(checkpoints.load, tmp_path, like=template, **options)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected) as info:
            load()
        assert len(str(info.value).splitlines()) <= 25
    else:
        found = namoo.paths("**").select(load())
        assert {k: getattr(v, "tolist", lambda v=v: v)() for k, v in found.items()} == expected


def test_the_differences_are_listed(tmp_path):
    checkpoints.save(tmp_path, SAVED)
    with pytest.raises(TreeMismatchError) as info:
        checkpoints.load(tmp_path, like={"enc": {"w": ZERO(3)}, "other": 1})
    kinds = sorted(d.kind for d in info.value.differences)
    assert kinds == ["leaf", "missing", "unexpected", "unexpected", "unexpected"]


def test_only_what_is_chosen_is_read(tmp_path):
    checkpoints.save(tmp_path, SAVED, max_file_bytes=1)
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    for file in tmp_path.glob("*.safetensors"):
        if "head/w" not in safetensors.numpy.load_file(file):
            file.unlink()
    loaded = checkpoints.load(tmp_path, only="head/**")
    assert loaded["enc"] == {"w": None, "b": None} and loaded["head"]["w"].tolist() == [1, 1, 1]
    with pytest.raises(CheckpointError, match="is missing"):
        checkpoints.load(tmp_path)


def test_info(tmp_path):
    checkpoints.save(tmp_path, SAVED, metadata={"loss": 0.5})
    leaves, metadata = checkpoints.info(tmp_path)
    assert list(leaves) == ["enc/b", "enc/w", "head/w", "step"] and metadata == {"loss": 0.5}
    assert leaves["enc/w"].shape == (2,) and leaves["step"] == 4
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        checkpoints.info(tmp_path / "absent")


# Files of other programs.


def test_the_library_reads_what_we_write_and_we_what_it_writes(tmp_path):
    arrays = {"a.b": np.arange(6.0).reshape(2, 3), "a.c": np.ones(2, bool), "d": np.zeros((0, 2))}
    safetensors.numpy.save_file(arrays, tmp_path / "theirs.safetensors", {"format": "pt"})
    theirs = checkpoints.load_safetensors(tmp_path / "theirs.safetensors")
    assert all(type(v) is type(jnp.ones(1)) for v in theirs.values())
    assert {k: v.tolist() for k, v in theirs.items()} == {k: v.tolist() for k, v in arrays.items()}
    checkpoints.save_safetensors(tmp_path / "ours.safetensors", theirs, metadata={"format": "pt"})
    ours = safetensors.numpy.load_file(tmp_path / "ours.safetensors")
    assert {k: (v.dtype, v.tolist()) for k, v in ours.items()} == {
        k: (v.dtype, v.tolist()) for k, v in arrays.items()
    }
    nested = checkpoints.load_safetensors(tmp_path / "ours.safetensors", separator=".")
    assert set(nested) == {"a", "d"} and set(nested["a"]) == {"b", "c"}


# As both PyTorch and the format call them; those that PyTorch writes and NumPy does not have too.
OF_PYTORCH = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 complex64 bool "
    "int64 int32 int16 int8 uint64 uint32 uint16 uint8"
).split()


def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    theirs = {n: (torch.arange(6).view(2, 3) % 2).to(getattr(torch, n)) for n in OF_PYTORCH}
    theirs |= {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4)}
    library.save_file(theirs, tmp_path / "a.safetensors", metadata={"format": "pt"})
    ours = checkpoints.load_safetensors(tmp_path / "a.safetensors")
    for name, tensor in theirs.items():
        assert ours[name].dtype.name == str(tensor.dtype).removeprefix("torch.")
        assert (
            np.asarray(ours[name]).astype(complex).tolist() == tensor.to(torch.complex64).tolist()
        )
    checkpoints.save_safetensors(tmp_path / "b.safetensors", ours)
    for name, tensor in library.load_file(tmp_path / "b.safetensors").items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name])


def test_a_model_of_pytorch_in_several_files(tmp_path):
    torch = pytest.importorskip("torch")
    hub = pytest.importorskip("huggingface_hub")
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    hub.save_torch_state_dict(theirs.state_dict(), tmp_path, max_shard_size=100)
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    key = namoo.random.key(0)
    ours = nn.Sequential([nn.Linear(4, 5, key=key), nn.relu, nn.Linear(5, 2, key=key)])
    ours = checkpoints.load_safetensors(tmp_path, like=ours, rename={"": "layers"})
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(ours(x), theirs(torch.tensor(x)).detach(), rtol=1e-5)


def test_a_hugging_face_folder_into_a_template(tmp_path):
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    parts = {
        "model-00001-of-00002.safetensors": {"model.layers.0.weight": np.ones((2, 2), np.float16)},
        "model-00002-of-00002.safetensors": {"model.layers.1.weight": np.zeros(3, np.float16)},
    }
    table = {}
    for file, arrays in parts.items():
        safetensors.numpy.save_file(arrays, blobs / file)
        # A download cache has links in the places of files.
        (tmp_path / file).symlink_to(blobs / file)
        table.update(dict.fromkeys(arrays, file))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    template = {"layers": [{"weight": jnp.zeros((2, 2))}, {"weight": jnp.ones(3)}]}
    loaded = checkpoints.load_safetensors(tmp_path, template, rename={"model": ""}, cast=True)
    assert_same(loaded, {"layers": [{"weight": jnp.ones((2, 2))}, {"weight": jnp.zeros(3)}]})


@pytest.mark.parametrize("separator", [".", None])
def test_names_that_are_no_tree(separator, tmp_path):
    file = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"a": np.ones(1), "a.b": np.ones(1)}, file)
    if separator:
        with pytest.raises(CheckpointError, match="not a tree"):
            checkpoints.load_safetensors(file, separator=separator)
    else:
        assert set(checkpoints.load_safetensors(file)) == {"a", "a.b"}


# Hostile files.


def raw(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype: Any = "U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "empty": (b"", "truncated"),
    "short": (b"\x01\x00", "truncated"),
    "huge header": (raw(b"{}", length=2**63), "truncated"),
    "of PyTorch": (b"PK\x03\x04\x00\x00\x08\x08 archive/data.pkl", "torch.save"),
    "of old PyTorch": (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "torch.save"),
    "header beyond file": (raw(b"{}", length=10**7), "truncated"),
    "not json": (raw(b"{]"), "JSON"),
    "not utf-8": (raw(b'{"\xff": 1}'), "JSON"),
    "not an object": (raw(b"[1]"), "not a JSON object"),
    "deep": (raw(b"[" * 200_000), "deeply"),
    "deep objects": (raw(b'{"a":' * 100_000), "deeply"),
    "many parts": (raw(b"[" + b"[]," * (4 * 10**6) + b"0]"), "more than 8000000 parts"),
    "repeated": (raw(b'{"a": 1, "a": 2}'), "'a' occurs twice"),
    "long number": (raw(b'{"a": ' + b"9" * 10_000 + b"}"), "JSON"),
    "infinite": (raw(b'{"a": Infinity}'), "not JSON"),
    "no entry": (raw({"a": 3}), "not described"),
    "unknown field": (raw({"a": {**entry(), "code": "x"}}, b"1234"), "not described"),
    "dtype": (raw({"a": entry("O")}, b"1234"), "has elements 'O'"),
    "dtype list": (raw({"a": entry(["F32"])}, b"1234"), "has elements"),
    "negative shape": (raw({"a": entry(shape=(-4,))}, b"1234"), "impossible shape"),
    "float shape": (raw({"a": entry(shape=(4.0,))}, b"1234"), "impossible shape"),
    "bool shape": (raw({"a": entry(shape=(True,))}, b"1234"), "impossible shape"),
    "rank": (raw({"a": entry(shape=(1,) * 65 + (4,))}, b"1234"), "impossible shape"),
    "overflow": (raw({"a": entry(shape=(2**33, 2**33))}, b"1234"), "needs"),
    "too large": (raw({"a": entry(shape=(2**40,), offsets=(0, 2**40))}, b"1234"), "truncated"),
    "zero of huge": (
        raw({"a": entry(shape=(0, 2**61, 2**61, 2**61), offsets=(0, 0))}),
        "cannot be made",
    ),
    "wrong size": (raw({"a": entry(shape=(3,))}, b"1234"), "needs 3 bytes"),
    "reversed": (raw({"a": entry(offsets=(4, 0))}, b"1234"), "impossible data_offsets"),
    "overlap": (
        raw({"a": entry(), "b": entry(offsets=(2, 6))}, b"123456"),
        "'b' overlaps 'a'",
    ),
    "same range": (raw({"a": entry(), "b": entry()}, b"1234"), "overlaps"),
    "gap": (raw({"a": entry(), "b": entry(offsets=(6, 10))}, b"1234567890"), "leaves a gap"),
    "tail": (raw({"a": entry()}, b"12345"), "has"),
    "metadata": (raw({"__metadata__": {"a": 1}}), "__metadata__ must hold strings"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    data, message = HOSTILE[name]
    file = tmp_path / "x.safetensors"
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=message) as info:
        checkpoints.load_safetensors(file)
    assert len(str(info.value)) < 1000


def test_a_name_with_too_many_keys(tmp_path):
    file = tmp_path / "x.safetensors"
    file.write_bytes(raw({"a" + ".a" * 5000: entry()}, b"1234"))
    with pytest.raises(CheckpointError, match="5001 keys"):
        checkpoints.load_safetensors(file, separator=".")


@pytest.mark.parametrize(
    "name",
    ["../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", "a\\b.safetensors", "x.py", 3],
)
def test_an_index_names_files_beside_it(name, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(CheckpointError, match="may only name"):
        checkpoints.load_safetensors(tmp_path)


@pytest.mark.parametrize("index", ['{"weight_map": {}}', '{"weight_map": 3}', "{}", "[]"])
def test_an_index_that_names_nothing(index, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match="no weight_map"):
        checkpoints.load_safetensors(tmp_path)


# What somebody may put in the place of anything in a description.
JUNK = st.one_of(
    st.sampled_from([None, True, -1, 2**62, 2**64, 1.5, "", "__metadata__", "../x", "os:system"]),
    st.sampled_from([[], {}, ["tuple"], ["int", "ff"], ["form", [], [], [], None], [2**31] * 3]),
    st.sampled_from(["*", ["dict", None, ["tuple", "a"], 1], ["class", "dict"], ["dtype", "O"]]),
)


def places(value):
    """Every container in a description, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys if isinstance(value, (dict, list)) else ():
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_description_with_anything_anywhere(data, tmp_path_factory):
    """Either it is refused in words, or it is a tree; the checksum is right each time."""
    folder = tmp_path_factory.getbasetemp() / "anything"
    if not folder.exists():
        saved = {name: TREES[name] for name in ("struct", "tied", "keys", "dicts", "custom")}
        checkpoints.save(folder / "model", saved)
        (folder / "good.json").write_bytes((folder / "model" / "tree.json").read_bytes())
    body = json.loads((folder / "good.json").read_bytes())["checkpoint"]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(body))))
        container[key] = data.draw(JUNK)
    text = json.dumps({"checkpoint": body, "sha256": saving._digest(body)})
    (folder / "model" / "tree.json").write_text(text)
    tries: list[Any] = [{}, {"only": "struct/**"}, {"like": {"struct": TREES["struct"]}}]
    for options in tries:
        try:
            checkpoints.load(folder / "model", **options)
        except (CheckpointError, TreeMismatchError) as error:
            assert len(str(error)) < 3000


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_file_with_any_bytes_changed(data, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "changed.safetensors"
    good = file.with_name("good.safetensors")
    arrays = {"a": {"w": jnp.ones((4, 5)), "b": jnp.zeros(3, jnp.int8)}, "c": jnp.ones(2)}
    if not good.exists():
        checkpoints.save_safetensors(good, arrays)
    raw = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(start, min(start + 8, len(raw))))
        raw[start:end] = data.draw(st.binary(max_size=8))
    file.write_bytes(raw[: data.draw(st.integers(len(raw) * 3 // 4, len(raw)))])
    tries: list[Any] = [{}, {"separator": "."}, {"like": arrays}]
    for options in tries:
        try:
            checkpoints.load_safetensors(file, **options)
        except (CheckpointError, TreeMismatchError) as error:
            assert len(str(error)) < 3000


def test_a_file_of_holes_takes_no_memory(tmp_path):
    file = tmp_path / "x.safetensors"
    size = 2**42
    data = raw({"a": entry(shape=(size,), offsets=(0, size)), "b": entry(offsets=(size, size + 4))})
    file.write_bytes(data)
    os.truncate(file, len(data) + size + 4)
    with pytest.raises(CheckpointError, match="bytes of memory.*only="):
        checkpoints.load_safetensors(file)
    assert checkpoints.load_safetensors(file, only="b")["b"].tolist() == [0] * 4


@pytest.mark.parametrize("target", ["/dev/zero", "fifo", "folder"])
def test_what_is_no_file(target, tmp_path):
    file = tmp_path / "x.safetensors"
    if target == "fifo":
        os.mkfifo(file)
    elif target == "folder":
        (tmp_path / "f").mkdir()
        file = tmp_path / "f"
        (file / "model.safetensors").symlink_to(tmp_path)
    else:
        file.symlink_to(target)
    with pytest.raises(CheckpointError, match="not a regular file"):
        checkpoints.load_safetensors(file)


def rewrite(folder, change):
    """Changes the description of a checkpoint, with a checksum that is right."""
    body = json.loads((folder / "tree.json").read_bytes())["checkpoint"]
    change(body)
    text = saving._canonical({"checkpoint": body, "sha256": saving._digest(body)})
    (folder / "tree.json").write_bytes(text)


def nodes(*structure):
    return lambda body: body.update(structure=list(structure))


def leaf(*value):
    return lambda body: body["leaves"][0].__setitem__(1, list(value))


HALF = ["array", "a", "float32", [2], False]


def parts(shape, *found):
    return leaf("parts", shape, list(found))


def other_file(name):
    return lambda body: body.update(files={name: ["a"]})


NODE = "test_checkpoints:Point"
DESCRIPTIONS = {
    "traversal": (other_file("../data-00000000-00000.safetensors"), "no checkpoint can have"),
    "absolute": (other_file("/etc/passwd"), "no checkpoint can have"),
    "newline": (other_file("data-00000000-00000.safetensors\n"), "no checkpoint can have"),
    "version": (lambda body: body.update(version=2), "has version 2"),
    "format": (lambda body: body.update(format="other"), "not the description"),
    "no files": (lambda body: body.pop("files"), "has no files"),
    "no such array": (leaf("array", "zzz", "float32", [1], False), "no file has"),
    "other type": (leaf("array", "a", "float64", [2], False), "should have 'a'"),
    "other shape": (leaf("array", "a", "float32", [2**40], False), "should have 'a'"),
    "leaf": (leaf("pickle", "a"), "does not describe a leaf"),
    "huge by a part": (parts([2**31, 2**31], [[0, 0], HALF[1]]), "not describe a part"),
    "huge by its parts": (parts([2**40], [[0], HALF]), "does not describe a leaf"),
    "parts beyond": (parts([2], [[1], HALF]), "not describe a part"),
    "parts of two types": (
        parts([4], [[0], HALF], [[2], ["key", "a", "threefry2x32", [2]]]),
        "does not describe a leaf",
    ),
    "parts of scalars": (parts([2], [[0], ["scalar", *HALF[1:]]]), "not describe a part"),
    "parts of parts": (parts([2], [[0], ["parts", [2], [[[0], HALF]]]]), "not describe a part"),
    "no parts": (parts([0]), "does not describe a leaf"),
    "activation": (leaf("value", ["activation", "os"]), "no such function"),
    "private activation": (leaf("value", ["activation", "_inexact"]), "no such function"),
    "key": (leaf("key", "a", "evil", []), "no random generator"),
    "leaf as class": (leaf("value", ["class", "list"]), "does not describe a leaf"),
    "value": (leaf("value", ["eval", "1"]), "is not a static value"),
    "no structure": (nodes(), "0 roots"),
    "two roots": (nodes("*", "*"), "2 roots"),
    "too few": (nodes(["list", None, None, 2], "*"), "no node"),
    "negative": (nodes(["list", None, None, -1], "*"), "no node"),
    "other leaves": (nodes(["list", None, None, 2], "*", "*"), "other leaves"),
    "deep": (nodes(*[["list", None, None, 1]] * 100_000, "*"), "900 nodes deep"),
    "deep value": (
        lambda body: body.update(structure=[["custom", NODE, nested(400), 1], "*"]),
        "deeply|leaf|namedtuple",
    ),
    "unknown kind": (nodes(["set", None, None, 1], "*"), "kind 'set'"),
    "dict without keys": (nodes(["dict", None, None, 1], "*"), "metadata None"),
    "unhashable key": (nodes(["dict", None, ["tuple", ["list"]], 1], "*"), "invalid key"),
    "function": (nodes(["custom", "os:system", None, 1], "*"), "has not imported"),
    "class": (nodes(["custom", "subprocess:Popen", None, 1], "*"), "a leaf"),
    "not imported": (nodes(["custom", "antigravity:x", None, 1], "*"), "has not imported"),
    "no such module": (nodes(["custom", "namoo.nn.nothing:x", None, 1], "*"), "has not imported"),
    "no model": (
        nodes(["custom", "namoo.compat.__main__:main", None, 1], "*"),
        "has not imported",
    ),
    "odd module": (nodes(["custom", "namoo.nn..os:x", None, 1], "*"), "has not imported"),
    "builtin": (nodes(["custom", "builtins:eval", None, 1], "*"), "has not imported"),
    "partial": (
        nodes(["custom", "namoo.tree.classes:Partial", ["opaque", "os.system"], 1], "*"),
        "cannot hold",
    ),
    "partial of text": (
        nodes(["custom", "namoo.tree.classes:Partial", "os.system", 1], "*"),
        "cannot be rebuilt",
    ),
    "fields": (nodes(["namedtuple", NODE, ["tuple", "x"], 1], "*"), "had the fields"),
    "other kind": (nodes(["custom", NODE, None, 1], "*"), "it is a namedtuple"),
    "static": (
        nodes(["dataclass", "test_checkpoints:State", ["dict", ["evil", 1]], 1], "*"),
        "other static fields",
    ),
    "form": (
        nodes(["dataclass", "test_checkpoints:Affine", ["dict"], 1], "*"),
        "saved with the fields",
    ),
}


def nested(depth):
    value: Any = None
    for _ in range(depth):
        value = ["tuple", value]
    return value


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_hostile_descriptions(name, tmp_path):
    change, message = DESCRIPTIONS[name]
    checkpoints.save(tmp_path, {"a": jnp.ones(2)})
    before = set(sys.modules)
    rewrite(tmp_path, change)
    with pytest.raises(CheckpointError, match=message) as info:
        checkpoints.load(tmp_path)
    assert len(str(info.value)) < 1500
    assert "antigravity" not in set(sys.modules) - before


@pytest.mark.parametrize("name", ["tree.json", "data"])
def test_links_are_refused(name, tmp_path):
    checkpoints.save(tmp_path / "c", {"a": jnp.ones(2)})
    [file] = (tmp_path / "c").glob(f"{name}*")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="symbolic link"):
        checkpoints.load(tmp_path / "c")


def test_every_changed_byte_is_noticed(tmp_path):
    value = {"a": jnp.arange(3.0), "b": [1, "x"]}
    checkpoints.save(tmp_path, value)
    for file in sorted(tmp_path.iterdir()):
        good = file.read_bytes()
        for i in range(0, len(good), 5):
            file.write_bytes(good[:i] + bytes([good[i] ^ 4]) + good[i + 1 :])
            with pytest.raises(CheckpointError):
                checkpoints.load(tmp_path)
        for i in (0, 7, len(good) // 2, len(good) - 1):
            file.write_bytes(good[:i])
            with pytest.raises(CheckpointError):
                checkpoints.load(tmp_path)
        file.write_bytes(good)
    assert_same(checkpoints.load(tmp_path), value)


# Background, rotation, crashes.


def test_background_saves_what_was_there(tmp_path):
    array = np.zeros(1000)
    pending = checkpoints.save(tmp_path, {"a": array}, background=True)
    array[:] = 1
    assert pending is not None
    pending.wait()
    assert pending.done
    assert (checkpoints.load(tmp_path)["a"] == 0).all()


@pytest.mark.parametrize("report", ["wait", "save", "load", "manager"])
def test_errors_in_the_background_are_told(report, tmp_path, monkeypatch):
    manager = Checkpoints(tmp_path, background=True)
    path = manager.path(1)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_synced", full)
        manager.save(1, {"a": jnp.ones(1)})
        pending = manager._saving
        assert pending is not None
        pending._thread.join()
    with pytest.raises(OSError, match="No space left") as info:
        match report:
            case "wait":
                pending.wait()
            case "save":
                checkpoints.save(path, 1)
            case "load":
                checkpoints.load(path)
            case "manager":
                manager.save(2, {"a": jnp.ones(1)})
    assert "in the background" in info.value.__notes__[0]
    manager.save(2, {"a": jnp.ones(1)})
    assert manager.steps == [2]


def test_a_failed_save_keeps_the_old(tmp_path, monkeypatch):
    checkpoints.save(tmp_path, {"a": 1})

    def fail(*args):
        raise OSError("disk")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk"):
            checkpoints.save(tmp_path, {"a": jnp.ones(3)})
    assert checkpoints.load(tmp_path) == {"a": 1}
    checkpoints.save(tmp_path, {"a": 2})
    assert os.listdir(tmp_path) == ["tree.json"]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(
    ("options", "kept", "best"),
    [
        ({"keep": 2}, [4, 5], None),
        ({"keep": None}, [0, 1, 2, 3, 4, 5], None),
        ({"keep": 1, "best": "min"}, [2, 5], 2),
        ({"keep": 1, "best": "max"}, [3, 5], 3),
        ({"keep": 2, "best": "min", "keep_best": 2}, [2, 4, 5], 2),
    ],
)
def test_rotation(options, kept, best, background, tmp_path):
    metrics = [0.5, float("nan"), 0.1, float("inf"), 0.1 + 1e-9, None]
    with Checkpoints(tmp_path, background=background, **options) as run:
        for step, metric in enumerate(metrics):
            run.save(step, {"step": step}, metric=metric)
    for manager in (run, Checkpoints(tmp_path, **options)):
        assert manager.steps == kept
        assert manager.latest == 5 and manager.load() == {"step": 5}
        if best is not None:
            assert manager.best == best and manager.load(best) == {"step": best}
    with pytest.raises(FileNotFoundError, match="of step 77; there are"):
        run.load(77)


def test_writers_of_one_folder_take_turns(tmp_path):
    """Each thread has a lock of its own, as processes do; what is there is never a mixture."""

    def write(version):
        manifest, arrays = saving._describe([np.full(50, version), version], None, copy=False)
        saving._write(tmp_path, manifest, arrays, 1)

    write(0)
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, version) for version in range(1, 9)]
        for _ in range(8):
            array, version = checkpoints.load(tmp_path)
            assert (array == version).all()
        for done in writes:
            done.result()
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    "script", [("kill_saves.py", "20", "19"), ("kill_training.py", "2", "arrays", "stream")]
)
def test_kills_lose_nothing(script):
    """A short run; with 200 and 20 kills the scripts take about half a minute each."""
    name, *arguments = script
    run = subprocess.run(
        [sys.executable, SCRIPTS / name, *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "none lost" in run.stdout or "all the same" in run.stdout
