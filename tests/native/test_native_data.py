"""Native code of data processing: integer arithmetic, counting, sorting, moving.

Each compares compiled programs with NumPy or with eager mode, over types, odd sizes and edges.
"""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4"])
def test_integers_are_divided_exactly(dtype):
    """Quotients and remainders of all extremes, by arrays and by constants, as in eager mode."""
    kind = np.iinfo(dtype)
    edges = np.array([kind.min, kind.min + 1, 0, 1, 2, 3, 7, kind.max - 1, kind.max], dtype)
    edges = np.concatenate([edges, RNG.integers(kind.min, kind.max, 40, dtype, endpoint=True)])
    if kind.min < 0:
        edges = np.append(edges, [-1, -2, -3]).astype(dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))

    def by_arrays(x, y):
        return lax.div(x, y), lax.rem(x, y), x // y, x % y

    def by_constants(x):
        return [f(x, jnp.asarray(d)) for d in edges[-14:] for f in (lax.div, lax.rem)]

    for function, arguments in ((by_arrays, (x, y)), (by_constants, (x,))):
        arguments = [jnp.asarray(a) for a in arguments]
        for found, wanted in zip(
            namoo.jit(function)(*arguments), function(*arguments), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


def counted(x, edges):
    """How many values are in each bin, by NumPy, with edges as they are."""
    place = np.searchsorted(edges, x, side="right")
    place = np.where(x == edges[-1], len(edges) - 1, place)
    return np.bincount(place, minlength=len(edges) + 1)[1 : len(edges)]


def test_histograms_agree_with_their_edges():
    """Values on edges, outside, NaN, and bins so narrow that rounded edges hardly differ."""
    n = 3001
    normal = RNG.normal(size=n)
    for x in (
        normal,
        normal.round(1),
        np.where(RNG.random(n) < 0.1, np.nan, normal),
        1000 + normal / 1000,
        np.full(n, 2.0),
    ):
        x = x.astype(np.float32)
        for bins in (2, 7, 100):
            for ends in ((-1, 1), (0, 3.3), (999.99, 1000.02), None):
                if ends is None and np.isnan(x).any():
                    continue

                def f(x, bins=bins, ends=ends):
                    return jnp.histogram(x, bins=bins, range=ends)

                for function in (f, namoo.jit(f)):
                    counts, edges = map(np.asarray, function(jnp.asarray(x)))
                    if (np.diff(edges) > 0).all():
                        np.testing.assert_array_equal(counts, counted(x, edges), f"{bins} {ends}")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "c8"])
def test_many_updates_of_few_elements(dtype):
    """Parts of the updates are combined in copies of the result, equally at any thread count."""
    n, before = (1 << 16) + 3, namoo.get_num_threads()
    combine = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}
    with namoo.enable_x64(True):
        for shape in ((50,), (7, 3), (1,), (9, 40)):
            x = (RNG.normal(size=shape) * 4).astype(dtype)
            v = (RNG.normal(size=(n, *shape[1:])) * 4).astype(dtype)
            i = RNG.integers(-1, shape[0] + 2, n)  # some are out of bounds, and dropped

            kind = np.dtype(dtype).kind
            names = {"f": ("add", "max", "min"), "c": ("add",)}.get(kind, tuple(combine))
            names = dict.fromkeys(sorted(names))  # in the order of a tree's leaves

            def f(x, i, v, names=names):
                zero = jnp.zeros_like(x)
                out = {name: getattr(zero.at[i], METHODS[name])(v) for name in names}
                return out, x.at[i].add(v), x.at[i].add(1)

            found = []
            try:
                for count in (1, 3):
                    namoo.set_num_threads(count)
                    found.append([np.asarray(y) for y in namoo.tree.leaves(namoo.jit(f)(x, i, v))])
            finally:
                namoo.set_num_threads(before)
            for y, z in zip(*found, strict=True):
                np.testing.assert_array_equal(y.view("u1"), z.view("u1"))
            inside, i = (i >= -1) & (i < shape[0]), np.where(i < 0, i + shape[0], i)
            wide = {"f": "f8", "c": "c16"}.get(kind, dtype)
            wanted = []
            for name, start, value in (
                *((name, np.zeros_like(x), v) for name in names),
                ("add", x, v),
                ("add", x, np.ones_like(v)),
            ):
                wanted.append(start.astype(wide))
                combine[name].at(wanted[-1], i[inside], value[inside].astype(wide))
            for y, z in zip(found[0], wanted, strict=True):
                # The rounding of sums grows with their terms.
                scale = 0 if dtype in ("i4", "u1") else {"f8": 1e-9}.get(dtype, 0.02)
                np.testing.assert_allclose(y, z, rtol=0, atol=scale * np.sqrt(n) / shape[0])


METHODS = {"add": "add", "max": "max", "min": "min", "mul": "multiply"}


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "?", "f2"])
def test_axes_are_exchanged(dtype):
    """Squares in registers, strips where rows of the result are pages apart, and what is left."""
    before = namoo.get_num_threads()
    with namoo.enable_x64(True):
        for shape in ((17, 33), (70, 1024), (64, 16))[: 3 if dtype == "f4" else 2]:
            x, y = ((RNG.normal(size=s) * 9).astype(dtype) for s in (shape, shape[::-1]))

            def f(x, y):
                three = x[:, None, :] if x.shape[0] > 64 else jnp.stack([x, x[::-1], x], 1)
                out = [
                    x.T,
                    x[::-1].T,
                    x.T[::-1],
                    three.transpose(2, 1, 0),
                    three.transpose(1, 2, 0),
                ]
                out += [x[1:].T, jnp.pad(x, 1).T, jnp.where(x.T == y, y, x.T)]
                if x.dtype.kind in "fc":
                    out += [x.T * y + x.T, jnp.sin(x).T]
                return out

            found = []
            try:
                for count in (1, 3):
                    namoo.set_num_threads(count)
                    found.append([np.asarray(v) for v in namoo.jit(f)(x, y)])
            finally:
                namoo.set_num_threads(before)
            for one, other, wanted in zip(*found, f(jnp.asarray(x), jnp.asarray(y)), strict=True):
                np.testing.assert_array_equal(one, other)
                exact = np.array_equal(one, wanted)
                assert exact or np.allclose(one, wanted, rtol=1e-2 if dtype == "f2" else 1e-6)


def test_axes_that_reshaping_cuts():
    """Loops run over the pieces of an axis where that is cheaper: values as in eager mode."""
    x = jnp.asarray(RNG.normal(size=(6, 20, 48)).astype(np.float32))
    functions = [
        lambda x: jnp.repeat(x, 2, 2) + 1,
        lambda x: jnp.repeat(x, 5, 1) * 2,
        lambda x: jnp.tile(x, (1, 2, 3)) * 2,
        lambda x: x.reshape(30, 192).T + 1,
        lambda x: x.reshape(6, 2, 10, 48).transpose(0, 2, 1, 3).reshape(6, 960) * 3,
        lambda x: x.reshape(6, 20, 4, 4, 3).transpose(0, 1, 3, 2, 4).reshape(6, 20, 48) - x,
        lambda x: x.reshape(-1)[:5755].reshape(5, 1151).T,
        lambda x: x.reshape(-1)[:5740].reshape(7, 820).T.reshape(-1) * 2,
        lambda x: jnp.stack([x, 2 * x], -1).reshape(6, 20, 96),
    ]
    found = namoo.jit(lambda x: [f(x) for f in functions])(x)
    for y, f in zip(found, functions, strict=True):
        np.testing.assert_array_equal(y, f(x))


@pytest.mark.parametrize("source", ["f4", "f8", "f2"])
def test_floats_are_converted_to_the_nearest_integer_of_the_type(source):
    """Vectors saturate as scalars do; NaN becomes 0."""
    with namoo.enable_x64(True):
        for target in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            kind = np.iinfo(target)
            x = [kind.min, kind.max, kind.min - 0.5, kind.max + 0.5, kind.min - 1.0, 1e30, -1e30]
            x += [-0.5, 0.5, -0.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, np.nan, np.inf, -np.inf]
            with np.errstate(all="ignore"):
                x = np.concatenate([x, RNG.normal(size=60) * 300]).astype(source)
            found = namoo.jit(lambda x, to=target: x.astype(to))(x)
            fits = np.nan_to_num(x.astype("f8"), nan=0, posinf=1e300, neginf=-1e300)
            wanted = [min(max(int(v), kind.min), kind.max) for v in fits]
            np.testing.assert_array_equal(found, np.array(wanted, target))
