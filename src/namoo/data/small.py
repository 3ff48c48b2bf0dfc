"""Two small sets that were made for this package: a table and a text.

Both belong to namoo and have its licence, Apache-2.0. The table is computed, with the same numbers
on every machine; the text in `tales.txt` was written for it.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np


class Table(NamedTuple):
    """Rows of features, and the values to predict.

    Attributes:
        features: float32 of shape (n, 5).
        target: float32 of shape (n,).
        names: the names of the columns of `features`.
    """

    features: np.ndarray
    target: np.ndarray
    names: tuple[str, ...]


def houses() -> Table:
    """Make a table of 600 invented houses with their prices, to fit models to.

    With the area a in m², the number of rooms r, the age t in years, the distance d to the next
    station in km and the floor f, the price in thousands is

        40 + 3.2 a + 6 r - 1.1 t + 0.006 t² - 14 √d + 2 f

    and an error, the sum of three uniform numbers, with a mean of 0 and a standard deviation of 12.

    Returns:
        The table.

    Example:
        >>> table = houses()
        >>> table.features.shape, table.target.shape
        ((600, 5), (600,))
        >>> dict(zip(table.names, table.features[0].tolist()))
        {'area': 116.0, 'rooms': 5.0, 'age': 27.0, 'distance': 0.5, 'floor': 4.0}
    """
    count = 600
    # A hash of the position: the same numbers with every version of NumPy.
    seeds = np.arange(1, 8 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    seeds ^= seeds >> np.uint64(29)
    seeds *= np.uint64(0xBF58476D1CE4E5B9)
    seeds ^= seeds >> np.uint64(32)
    uniform = (seeds >> np.uint64(40)).astype(np.float64).reshape(8, count) / 2**24
    area = np.floor(30 + 110 * uniform[0])
    rooms = np.clip(np.round(area / 28 + 2 * uniform[1] - 0.5), 1, 7)
    age = np.floor(70 * uniform[2] ** 1.5)
    distance = np.round(0.1 + 4 * uniform[3] ** 2, 1)
    floor = np.floor(12 * uniform[4])
    noise = 24 * (uniform[5] + uniform[6] + uniform[7] - 1.5)
    price = 40 + 3.2 * area + 6 * rooms - 1.1 * age + 0.006 * age**2 - 14 * np.sqrt(distance)
    features = np.stack([area, rooms, age, distance, floor], axis=1).astype(np.float32)
    target = np.round(price + 2 * floor + noise, 1).astype(np.float32)
    return Table(features, target, ("area", "rooms", "age", "distance", "floor"))


def tales() -> str:
    """Load a short text about an oak and its neighbours, to train language models with.

    Returns:
        The text: about 2,600 characters of plain English.

    Example:
        >>> text = tales()
        >>> text.splitlines()[0]
        'The young pine asked the old oak how to grow tall.'
        >>> len(set(text))
        40
    """
    return resources.files("namoo.data").joinpath("tales.txt").read_text(encoding="utf-8")
