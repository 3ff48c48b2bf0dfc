"""Files that are damaged or made to harm: a ValueError, or a program that is well typed."""

from __future__ import annotations

import json
import random
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.export import deserialize, export, symbolic_args_specs


def _programs() -> dict[str, Any]:
    x, w = np.ones((4, 3), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)

    def loop(x):
        def step(c, row):
            return c + row, lax.cond(row[0] > 0, jnp.sin, jnp.cos, row)

        return lax.scan(step, jnp.zeros(3), x)

    def newton(x):
        return lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    def reads(x, i):
        return x.at[i].add(1.0)[::2], jnp.take(x, i, axis=0), jnp.sort(x, axis=0)

    def model(x, w):
        return namoo.nn.softmax(namoo.nn.relu(x @ w) @ w.T)

    specs = symbolic_args_specs((x, w), ("b, _", None), constraints=["b >= 2"])
    return {
        "loop": (loop, [x], [x]),
        "while": (newton, [x], [x]),
        "reads": (reads, [x, np.array([1, 2])], [x, np.array([1, 2])]),
        "model": (model, specs, [x, w]),
        "closure": (lambda x: x @ jnp.asarray(w), [x], [x]),
    }


PROGRAMS = _programs()


def file_of(name: str) -> bytes:
    fun, specs, _ = PROGRAMS[name]
    order = 0 if name == "while" else 1
    return bytes(export(namoo.jit(fun))(*specs).serialize(vjp_order=order))


def sealed(blob: bytes, text: bytes, data: bytes) -> bytes:
    """A file with another text and a checksum that is right."""
    body = len(text).to_bytes(8, "little") + text + data
    return blob[:12] + zlib.crc32(body).to_bytes(4, "little") + body


def parts(blob: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(blob[16:24], "little")
    return blob[24 : 24 + length], blob[24 + length :]


@pytest.mark.parametrize("name", PROGRAMS)
def test_truncated(name):
    blob = file_of(name)
    for end in [*range(64), *range(64, len(blob), max(1, len(blob) // 50))]:
        with pytest.raises(ValueError):
            deserialize(blob[:end])
        with pytest.raises(ValueError):
            text, data = parts(blob)
            deserialize(sealed(blob, text[: min(end, len(text) - 1)], data))
    with pytest.raises(ValueError, match="truncated|after its last array"):
        deserialize(sealed(blob, parts(blob)[0], parts(blob)[1] + b"0"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_flipped_bits(name):
    blob, rng = file_of(name), random.Random(1)
    for _ in range(200):
        place = rng.randrange(len(blob))
        damaged = bytearray(blob)
        damaged[place] ^= 1 << rng.randrange(8)
        with pytest.raises(ValueError):
            deserialize(damaged)


POOL = [
    None, True, False, 0, 1, 2, 3, -1, 10**6, 2**31, 2**62, 10**30, "", "b", "b*c^9", "*", "sin",
    "scan", "float32", "int32", [], [0], [1, 0], [[0]], {}, {"dim": "b"}, {"dim": "a^9 + b^9"},
    {"dtype": "float64"}, {"dtype": "key:rbg"}, {"program": 0}, {"list": [1]}, {"float": "nan"},
    {"enum": ["FftType", "RFFT"]}, {"operation": "ge"}, ["float32", "00000000", False],
]  # fmt: skip


def _places(value: Any, out: list[Any]) -> list[Any]:
    """All places of a JSON value, as containers with keys."""
    keys = value if isinstance(value, dict) else range(len(value)) if type(value) is list else ()
    for key in list(keys):
        out.append((value, key))
        _places(value[key], out)
    return out


def _mutate(document: Any, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(document, [])
        container, key = rng.choice(places)
        match rng.randrange(5):
            case 0:
                del container[key]
            case 1 if type(container) is list:
                container.insert(key, container[key])
            case 2:
                other, place = rng.choice(places)
                container[key] = json.loads(json.dumps(other[place]))
            case 3 if type(container[key]) is int:
                container[key] += rng.choice((-2, -1, 1, 2))
            case _:
                container[key] = json.loads(json.dumps(rng.choice(POOL)))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(2))
def test_mutated(name, seed):
    blob = file_of(name)
    args = PROGRAMS[name][2]
    text, data = parts(blob)
    rng = random.Random(seed)
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(50):
            document = json.loads(text)
            _mutate(document, rng)
            try:
                read = deserialize(sealed(blob, json.dumps(document).encode(), data))
            except ValueError:
                refused += 1
                continue
            try:
                read.call(*args)
            except (ValueError, TypeError, IndexError, MemoryError):
                refused += 1  # a well-typed program of other arguments
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()
    assert refused > 10


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"NAMOOEXP",
        b"\x80\x04\x95" + b"\0" * 40,
        sealed(b"NAMOOEXP\x01\0\0\0", b"[" * 100_000, b""),
        sealed(b"NAMOOEXP\x01\0\0\0", b"[]", b""),
        sealed(b"NAMOOEXP\x01\0\0\0", b"1e999", b""),
        sealed(b"NAMOOEXP\x01\0\0\0", b'{"arrays":[["float32",[4611686018427387903],false]]}', b""),
        sealed(b"NAMOOEXP\x01\0\0\0", b'{"arrays":[["float0",[99999999,99999999],false]]}', b""),
        sealed(b"NAMOOEXP\x02\0\0\0", b"{}", b""),
    ],
    ids=range(9),
)
def test_no_export_at_all(blob):
    with pytest.raises(ValueError):
        deserialize(blob)


def test_version_of_the_future():
    with pytest.raises(ValueError, match="version 2 of the format.*reads versions up to 1"):
        deserialize(sealed(b"NAMOOEXP\x02\0\0\0", b"{}", b""))
