"""Rows for `primitives/prng.py`: keys, and the bits drawn with them."""

from functools import partial

import numpy as np

from conformance.harness import Sample
from namoo._base.dtypes import KeyDType
from namoo.primitives.random import prng


def keys(impl="threefry2x32", shape=()):
    """Keys whose words are all different."""
    dtype = KeyDType(impl)
    words = np.arange(np.prod((*shape, *dtype.key_shape), dtype=int), dtype=np.uint32) * 2654435769
    return dtype.from_words(words.astype(np.uint32).reshape(*shape, *dtype.key_shape))


GENERATORS = ["threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"]
# Keys of a batch share one stream in these, as in XLA.
SHARED = {"bits": ("rbg", "unsafe_rbg"), "split": ("unsafe_rbg",), "fold_in": ("unsafe_rbg",)}
STATE = np.array([11, 22, 33, 44], np.uint32)

# Bits do not depend on the types of floats, and must be equal.
row = partial(Sample, dtypes=(), exact=True)

SAMPLES = [
    row(prng.random_seed_p, [np.array(-7, np.int64)], {"impl": "threefry2x32"}),
    row(prng.random_seed_p, [np.array([3, -1], np.int32)], {"impl": "threefry4x32"}),
    row(prng.random_seed_p, [np.array([3, 200], np.uint8)], {"impl": "philox4x32"}),
    row(prng.random_clone_p, [keys(shape=(3,))]),
    row(prng.random_unwrap_p, [keys(shape=(2, 3))]),
    row(prng.random_unwrap_p, [keys("rbg")]),
    row(prng.random_wrap_p, [STATE.reshape(2, 2)], {"impl": "threefry2x32"}),
    row(prng.random_wrap_p, [STATE], {"impl": "rbg"}),
    row(prng.random_bits_p, [keys(shape=(3,))], {"bit_width": 8, "shape": (5,)}),
    row(prng.random_bits_p, [keys()], {"bit_width": 64, "shape": (2, 3)}),
    row(prng.random_bits_p, [keys()], {"bit_width": 16, "shape": ()}),
    row(prng.random_bits_p, [keys()], {"bit_width": 32, "shape": (0,)}, name="nothing"),
    row(
        prng.rng_bit_generator_p,
        [STATE],
        {"shape": (3, 5), "dtype": np.dtype(np.uint32), "algorithm": 0},
        batchable=False,
    ),
    row(
        prng.rng_bit_generator_p,
        [STATE],
        {"shape": (3, 5), "dtype": np.dtype(np.uint64), "algorithm": 1},
        batchable=False,
        name="threefry",
    ),
]
for impl in GENERATORS:
    SAMPLES += [
        row(
            prng.random_bits_p,
            [keys(impl)],
            {"bit_width": 32, "shape": (7,)},
            name=impl,
            batchable=impl not in SHARED["bits"],
        ),
        row(
            prng.random_split_p,
            [keys(impl)],
            {"shape": (2, 3)},
            name=impl,
            batchable=impl not in SHARED["split"],
        ),
        row(
            prng.random_fold_in_p,
            [keys(impl), np.array(9, np.uint32)],
            name=impl,
            batchable=impl not in SHARED["fold_in"],
        ),
    ]
