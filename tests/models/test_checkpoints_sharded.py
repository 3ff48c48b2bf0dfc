"""Checkpoints of arrays over many devices and processes, restored onto other numbers of them."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import checkpoints, random
from namoo.sharding import NamedSharding
from namoo.sharding import PartitionSpec as P

pytest.importorskip("jaxlib")
pytestmark = pytest.mark.usefixtures("eight_devices")

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def over(count, spec):
    return NamedSharding(namoo.make_mesh((count,), ("i",)), spec)


@pytest.mark.parametrize("count, spec", [(8, P("i")), (2, P(None, "i")), (4, P()), (1, P())])
def test_onto_another_number_of_devices(tmp_path, count, spec):
    tree = {
        "x": namoo.device_put(X, over(8, P("i"))),
        "keys": namoo.device_put(random.split(random.key(1), 8), over(8, P("i"))),
        "step": 3,
    }
    checkpoints.save(tmp_path / "c", tree)
    template = {
        "x": namoo.device_put(jnp.zeros((8, 4)), over(count, spec)),
        "keys": random.split(random.key(0), 8),
        "step": 0,
    }
    found = checkpoints.load(tmp_path / "c", template)
    np.testing.assert_array_equal(found["x"], X)
    assert found["x"].sharding == template["x"].sharding and found["step"] == 3
    np.testing.assert_array_equal(random.key_data(found["keys"]), random.key_data(tree["keys"]))
    # Shapes with shardings are a template, too.
    shapes = {**template, "x": namoo.ShapeDtypeStruct((8, 4), jnp.float32, sharding=over(2, P()))}
    assert checkpoints.load(tmp_path / "c", shapes)["x"].sharding.num_devices == 2
    np.testing.assert_array_equal(checkpoints.load(tmp_path / "c")["x"], X)


SAVE = """
    import sys
    import numpy as np
    import namoo
    from namoo import checkpoints
    from namoo.sharding import NamedSharding, PartitionSpec as P

    namoo.distributed.initialize()
    mesh = namoo.make_mesh((namoo.device_count(),), ("i",))
    rows = NamedSharding(mesh, P("i"))
    X = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = namoo.make_array_from_callback(X.shape, rows, lambda index: X[index])
    for step in range(2):
        x = namoo.jit(lambda x: x + 1)(x)
        checkpoints.save(sys.argv[1], {"x": x, "step": step, "host": np.ones(3)})
    found = checkpoints.load(sys.argv[1], {"x": x, "step": 0, "host": np.zeros(3)})
    for shard in found["x"].addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), X[shard.index] + 2)
    print("saved", namoo.process_index(), flush=True)
"""


def test_by_all_processes(tmp_path):
    script = tmp_path / "save.py"
    script.write_text(textwrap.dedent(SAVE))
    folder = tmp_path / "c"
    command = [sys.executable, "-m", "namoo.launch", "-n", "4", script, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "saved" in line) == [
        f"[{i}] saved {i}" for i in range(4)
    ]
    names = sorted(p.name for p in folder.iterdir())
    assert len([n for n in names if n.endswith(".safetensors")]) == 4
    assert not [n for n in names if n.startswith("part-")]
    # One process reads what four wrote.
    found = checkpoints.load(folder)
    np.testing.assert_array_equal(found["x"], X + 2)
    assert found["step"] == 1 and checkpoints.info(folder).leaves["x"].shape == (8, 4)
    template = {"x": namoo.device_put(X, over(2, P("i"))), "step": 0, "host": np.ones(3)}
    assert checkpoints.load(folder, template)["x"].sharding.num_devices == 2


@pytest.mark.parametrize(
    "entry",
    [
        ["parts", [4], []],
        ["parts", [4], [[[2], ["array", "x", "float32", [3], False]]]],
        ["parts", [4], [[[0, 0], ["array", "x", "float32", [4], False]]]],
        ["parts", [4], [[[-1], ["array", "x", "float32", [4], False]]]],
        ["parts", [4], [[[0], ["value", 3]]]],
        ["parts", "4", []],
    ],
)
def test_hostile_parts(entry):
    from namoo.checkpoints.leaves import read_leaf

    with pytest.raises(checkpoints.CheckpointError):
        read_leaf(entry)
