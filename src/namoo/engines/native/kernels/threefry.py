"""The block function of the default random keys as vector code."""

from __future__ import annotations

from namoo.engines.native.ir.function import Function, Value, constant

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(
    f: Function, key0: Value, key1: Value, x0: Value, x1: Value
) -> tuple[Value, Value]:
    """Threefry-2x32 with 20 rounds: two words of a key and two of a counter, to two random words.

    All are u32, scalars or vectors; scalars among vectors are repeated.
    """
    schedule = (key0, key1, f.xor(f.xor(key0, key1), constant("u32", _PARITY)))
    x0, x1 = f.add(x0, key0), f.add(x1, key1)
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            x0 = f.add(x0, x1)
            x1 = f.xor(f.intrinsic("fshl", x1, x1, constant("u32", by)), x0)
        x0 = f.add(x0, schedule[(group + 1) % 3])
        # The round's number joins the key first: the sum is hoisted with it.
        x1 = f.add(x1, f.add(schedule[(group + 2) % 3], constant("u32", group + 1)))
    return x0, x1
