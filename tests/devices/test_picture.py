"""Pictures of shardings: JAX's where it draws them, and what it does not draw."""

import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import debug
from namoo._base.terminal import colors_wanted
from namoo.engines.base import Device
from namoo.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec

CASES: list[tuple[tuple, tuple, dict]] = [
    (("x", "y"), (8, 4), {}),
    (("x",), (16,), {}),
    (("y",), (8, 8), {}),
    ((), (8, 2), {}),
    ((), (4,), {}),
    ((("x", "y"),), (8, 8), {}),
    ((("y", "x"),), (8,), {}),
    (("x", "y"), (100, 200), {}),
    (("y", "x"), (8, 8), {"scale": 2.0}),
    (("x", "y"), (8, 8), {"min_width": 15}),
    ((None, "y"), (8, 8), {"scale": 0.5}),
]

SCRIPT = """
import json, sys
import contextlib, io
import jax, numpy as np
from jax.sharding import *
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
for spec, shape, options in json.load(sys.stdin):
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        jax.debug.visualize_sharding(tuple(shape), sharding, use_color=False, **options)
    print(json.dumps(out.getvalue()))
"""


@cache
def theirs() -> list[str]:
    pytest.importorskip("rich")
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


@cache
def mesh() -> Mesh:
    return Mesh(np.array([Device(i) for i in range(8)]).reshape(4, 2), ("x", "y"))


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_picture_is_that_of_jax(case, capsys):
    spec, shape, options = CASES[case]
    debug.visualize_sharding(shape, NamedSharding(mesh(), P(*spec)), **options)
    assert capsys.readouterr().out.strip() == theirs()[case].strip()


def test_wide_arrays_keep_their_labels_and_fit(capsys):
    debug.visualize_sharding((4, 32), NamedSharding(mesh(), P(None, "x")), max_width=40)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    assert all(f"CPU {i},{i + 1}" in out for i in range(0, 8, 2))


def test_labels_of_even_length_are_left_of_the_centre_as_in_jax(capsys):
    many = Mesh(np.array([Device(i) for i in range(12)]).reshape(6, 2), ("x", "y"))
    debug.visualize_sharding((6, 2), NamedSharding(many, P("x", "y")))
    assert "│CPU 10 │CPU 11 │" in capsys.readouterr().out


def test_long_lists_of_devices_are_wrapped(capsys):
    many = Mesh([Device(i) for i in range(100)], "x")
    debug.visualize_sharding((3,), NamedSharding(many, P()), max_width=40)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    assert "99" in out and "50" in out


def test_dimensions_that_are_not_split_are_left_out(capsys):
    sharding = NamedSharding(mesh(), P(None, "y", None, "x"))
    debug.visualize_sharding((3, 4, 5, 8), sharding)
    first = capsys.readouterr().out
    debug.visualize_sharding((4, 8), NamedSharding(mesh(), P("y", "x")))
    assert capsys.readouterr().out == first
    debug.visualize_sharding((), NamedSharding(mesh(), P()))
    assert "CPU 0,1,2,3,4,5,6,7" in capsys.readouterr().out


def test_more_than_two_split_dimensions_are_refused():
    cube = Mesh(np.array([Device(i) for i in range(8)]).reshape(2, 2, 2), ("x", "y", "z"))
    with pytest.raises(ValueError, match=r"splits 3 .* dimensions \[0, 1, 2\]"):
        debug.visualize_sharding((2, 2, 2), NamedSharding(cube, P("x", "y", "z")))
    with pytest.raises(ValueError, match="cannot be split evenly"):
        debug.visualize_sharding((3,), NamedSharding(cube, P("x")))


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (object(), {}, False),
    ],
)
def test_colours_are_for_terminals(stream, environment, wanted, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colors_wanted(stream) is wanted


def test_colours(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    seen = []
    sharding = NamedSharding(mesh(), P("x", "y"))
    debug.visualize_sharding((8, 8), sharding, color_map=lambda at: seen.append(at) or (1, 0, 0, 1))
    assert "\x1b[97;48;2;255;0;0m" in capsys.readouterr().out
    assert set(seen) == {i / 8 for i in range(8)}
    debug.visualize_sharding((8, 8), sharding, use_color=False)
    assert "\x1b" not in capsys.readouterr().out


def test_of_an_array(capsys):
    debug.visualize_array_sharding(jnp.ones((2, 2)))
    namoo.jit(debug.visualize_array_sharding)(jnp.ones((2, 2)))
    first, second = capsys.readouterr().out.split("┌")[1:]
    assert first == second and "CPU 0" in first
