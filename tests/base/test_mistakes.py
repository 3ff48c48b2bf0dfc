"""Mistakes that users make, each as a program of its own: the traceback that they read.

The programs are in `support/mistakes`, what they print in `data/mistakes.txt`, which
`NAMOO_UPDATE_SNAPSHOTS=1` writes anew.
"""

import builtins
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import namoo
from mistakes.arrays import ARRAYS
from mistakes.models import MODELS
from mistakes.traced import TRACED
from mistakes.transforms import TRANSFORMS
from namoo._base.hints import near
from namoo._base.short import short

TESTS = Path(__file__).parents[1]
SNAPSHOTS = TESTS / "data" / "mistakes.txt"
MISTAKES = {
    f"{group}: {name}": row
    for group, rows in (
        ("traced", TRACED),
        ("transforms", TRANSFORMS),
        ("arrays", ARRAYS),
        ("models", MODELS),
    )
    for name, row in rows.items()
}
START = {
    "namoo": "import math\nimport numpy as np\nimport namoo as jax\nimport namoo.numpy as jnp\n"
    "from namoo import checkpoints, data, lax, nn, optim, random, train\n\n",
    "jax": "import math\nimport numpy as np\nimport jax\nimport jax.numpy as jnp\n"
    "from jax import lax, nn, random\n\n",
}
# What is to be shown as the first operation of a process, before operators are loaded.
FIRST = ["arrays: add shapes", "arrays: assignment", "arrays: numpy", "arrays: misspelt jnp"]
# JAX's error for these says less than the type of ours, which is NumPy's.
OTHER_TYPES = ["arrays: delete an element", "arrays: memory"]


def stem(name):
    return re.sub(r"\W+", "_", name)


def run(library, names):
    """What the users of some programs read, and the classes of the errors."""
    with TemporaryDirectory() as folder:
        for name in names:
            program = START[library] + MISTAKES[name][0].strip("\n") + "\n"
            Path(folder, f"{stem(name)}.py").write_text(program, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(TESTS / "support" / "mistakes" / "run_mistakes.py"), folder],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NAMOO_CACHE": "off", "JAX_PLATFORMS": "cpu"},
        )
        found = json.loads(done.stdout.replace(os.path.realpath(folder), "FOLDER"))
        return {name: found[stem(name)] for name in names}


@cache
def outcomes(library):
    models = library != "namoo"  # JAX has none of them
    return run(library, [n for n in MISTAKES if not (models and n.startswith("models"))])


def message_of(text):
    """What is read, without the lines of the program."""
    lines = text.splitlines()
    shown = {i + 1 for i, line in enumerate(lines) if line.startswith("  File ")}
    return "\n".join(x for i, x in enumerate(lines) if i not in shown and i + 1 not in shown)


def built_in(kinds):
    return next((kind for kind in kinds if hasattr(builtins, kind)), None)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name):
    _, names, remedy = MISTAKES[name]
    text = outcomes("namoo")[name]["text"]
    files = set(re.findall(r'^ +File "(.*?)"', text, re.M))
    assert files <= {f"{stem(name)}.py"} and f"{stem(name)}.py" in text
    assert len(text.splitlines()) <= 25
    assert "During handling" not in text
    assert names in message_of(text)
    assert remedy in message_of(text)
    assert not re.search(r"\b(an traced|a (in|ar)\w+|(Stage|Batch|JVP)Trace)", message_of(text))


@pytest.mark.parametrize("name", [n for n in MISTAKES if not n.startswith("models")])
def test_the_type_of_the_error_is_jaxs(name):
    theirs, own = outcomes("jax")[name]["kinds"], outcomes("namoo")[name]["kinds"]
    assert not theirs or name in OTHER_TYPES or built_in(theirs) == built_in(own)


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_read_is_what_was_recorded(name):
    parts = re.split(r"^=== (.*)$", SNAPSHOTS.read_text(encoding="utf-8"), flags=re.M)
    recorded = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert outcomes("namoo")[name]["text"].strip() == recorded[name].strip()


@pytest.mark.parametrize("name", FIRST)
def test_the_first_operation_of_a_process_shows_no_internal_frame(name):
    assert run("namoo", [name])[name] == outcomes("namoo")[name]


def test_there_are_many_mistakes():
    assert len(MISTAKES) >= 150


def test_values_that_only_look_like_arrays():
    class Broken:
        @property
        def shape(self):
            raise RuntimeError("not now")

    assert short(namoo.numpy) == "a module"
    assert short(Broken()) == "a Broken"
    table = namoo.numpy
    assert namoo.jit(lambda x: table.sin(x))(0.0) == 0.0


def test_values_in_messages_are_short():
    tree = {f"layer{i}": {"w": [1.0] * 1000} for i in range(1000)}
    for value in (tree, [tree] * 1000, (tree, tree), "x" * 10**6, lambda x: x, object(), dict):
        assert len(short(value)) <= 80
        assert "\n" not in short(value)


def test_near_names_are_found_whatever_their_case():
    assert near("adamW", ["adam", "adamw"]) == "adamw"
    assert near("qwerty", ["adam", "adamw"]) == ""


def write_snapshots():
    parts = [f"=== {name}\n{found['text'].strip()}\n" for name, found in outcomes("namoo").items()]
    SNAPSHOTS.write_text("\n".join(parts), encoding="utf-8")


if os.environ.get("NAMOO_UPDATE_SNAPSHOTS"):
    write_snapshots()
