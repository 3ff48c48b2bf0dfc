"""Measure what small eager operations cost beyond NumPy's: one line per call, the worst first.

    python bench/eager_calls.py                  # all calls on arrays of 16, 256 and 1,000 elements
    python bench/eager_calls.py --only 'linalg'  # the calls whose names match
    python bench/eager_calls.py --framework jax  # the same calls in JAX

A call is the same expression in both libraries: `np` is NumPy or `jnp`, and the operands are the
arrays of the library. Where NumPy has no function of that name, a second expression says what a
user of NumPy would write. Both run alternately in one process, and the best of many repetitions
counts. Last come the sums: how many calls are within the goal, and the mean.
"""

import argparse
import importlib
import re
import time
from types import SimpleNamespace

import numpy

GOAL = 1.5  # microseconds over NumPy
WARM = 20  # calls before the clock starts: what is called repeatedly is remembered


def operands(convert):
    """The arrays that the calls work on, of 16 to 1,000 elements."""
    g = numpy.random.default_rng(0)
    f = numpy.float32
    square = g.standard_normal((10, 10)).astype(f)
    values = dict(
        x=g.uniform(0.1, 0.9, 256).astype(f),
        y=g.uniform(0.1, 0.9, 256).astype(f),
        v=g.standard_normal(16).astype(f),
        w=g.standard_normal(1000).astype(f),
        a=square,
        b=g.standard_normal((10, 10)).astype(f),
        spd=(square @ square.T + 10 * numpy.eye(10)).astype(f),
        m=g.standard_normal((16, 16)).astype(f),
        t=g.standard_normal((4, 8, 8)).astype(f),
        k=g.integers(0, 10, 100).astype(numpy.int32),
        j=g.integers(1, 10, 100).astype(numpy.int32),
        i=numpy.array([3, 1, 7, 2], numpy.int32),
        c=g.uniform(size=256) > 0.5,
        d=g.uniform(size=256) > 0.5,
        z=(g.standard_normal(64) + 1j * g.standard_normal(64)).astype(numpy.complex64),
        s=numpy.float32(2.5),
        sorted=numpy.sort(g.standard_normal(100).astype(f)),
        row=g.standard_normal((1, 16)).astype(f),
    )
    return SimpleNamespace(**{name: convert(value) for name, value in values.items()})


# Functions of jnp that have NumPy's name, by their arguments.
ONE = """
exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal negative positive absolute
abs fabs sign sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh
deg2rad rad2deg degrees radians sinc
floor ceil trunc rint round isnan isinf isfinite isposinf isneginf signbit
real imag conjugate angle nan_to_num i0
sum prod max min mean std var median any all argmax argmin ptp
nansum nanmax nanmin nanmean nanstd nanprod nanargmax nanargmin nanmedian nancumsum
cumsum cumprod sort argsort flip ravel squeeze copy unique diff ediff1d gradient
count_nonzero nonzero flatnonzero argwhere atleast_1d atleast_2d atleast_3d
zeros_like ones_like empty_like array asarray isreal iscomplex isrealobj iscomplexobj
ndim shape size frexp modf spacing trapezoid average
"""
TWO = """
add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power
maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign nextafter heaviside divmod
equal not_equal less less_equal greater greater_equal array_equal allclose isclose
dot inner outer vdot correlate convolve
hstack vstack dstack column_stack concatenate_ append
"""
CALLS = {}
for _name in ONE.split():
    CALLS[_name] = lambda np, o, name=_name: getattr(np, name)(o.x)
for _name in TWO.split():
    if _name.endswith("stack"):
        CALLS[_name] = lambda np, o, name=_name: getattr(np, name)((o.x, o.y))
    elif not _name.endswith("_"):
        CALLS[_name] = lambda np, o, name=_name: getattr(np, name)(o.x, o.y)

CALLS |= {
    # operators and methods
    "x + y": lambda np, o: o.x + o.y,
    "x + 1.0": lambda np, o: o.x + 1.0,
    "2 * x": lambda np, o: 2 * o.x,
    "x ** 2": lambda np, o: o.x**2,
    "x ** 3": lambda np, o: o.x**3,
    "x ** 0.5": lambda np, o: o.x**0.5,
    "x / y": lambda np, o: o.x / o.y,
    "x // y": lambda np, o: o.x // o.y,
    "x % y": lambda np, o: o.x % o.y,
    "-x": lambda np, o: -o.x,
    "abs(x)": lambda np, o: abs(o.x),
    "x < 0.5": lambda np, o: o.x < 0.5,
    "x == y": lambda np, o: o.x == o.y,
    "c & d": lambda np, o: o.c & o.d,
    "~c": lambda np, o: ~o.c,
    "k + 1": lambda np, o: o.k + 1,
    "k // 3": lambda np, o: o.k // 3,
    "k % 3": lambda np, o: o.k % 3,
    "k << 1": lambda np, o: o.k << 1,
    "x * s (array of rank 0)": lambda np, o: o.x * o.s,
    "k + x (mixed types)": lambda np, o: o.k[:16] + o.v,
    "k * 0.5": lambda np, o: o.k * 0.5,
    "m + row": lambda np, o: o.m + o.row,
    "a @ b": lambda np, o: o.a @ o.b,
    "x.sum()": lambda np, o: o.x.sum(),
    "m.sum(0)": lambda np, o: o.m.sum(0),
    "m.mean(axis=1)": lambda np, o: o.m.mean(axis=1),
    "x.max()": lambda np, o: o.x.max(),
    "x.std()": lambda np, o: o.x.std(),
    "x.reshape(16, 16)": lambda np, o: o.x.reshape(16, 16),
    "x.reshape(-1)": lambda np, o: o.x.reshape(-1),
    "m.ravel()": lambda np, o: o.m.ravel(),
    "m.flatten()": lambda np, o: o.m.flatten(),
    "m.T": lambda np, o: o.m.T,
    "x.astype(int32)": lambda np, o: o.x.astype("int32"),
    "k.astype(float32)": lambda np, o: o.k.astype(np.float32),
    "t.transpose(2, 0, 1)": lambda np, o: o.t.transpose(2, 0, 1),
    "x.clip(0, 1)": lambda np, o: o.x.clip(0, 1),
    "x.argmax()": lambda np, o: o.x.argmax(),
    "x.item()": lambda np, o: o.s.item(),
    "float(s)": lambda np, o: float(o.s),
    "len(x)": lambda np, o: len(o.x),
    "x.shape": lambda np, o: o.x.shape,
    "x.cumsum()": lambda np, o: o.x.cumsum(),
    "x.dot(y)": lambda np, o: o.x.dot(o.y),
    "x.copy()": lambda np, o: o.x.copy(),
    # indexing
    "x[3]": lambda np, o: o.x[3],
    "x[2:9]": lambda np, o: o.x[2:9],
    "x[::-1]": lambda np, o: o.x[::-1],
    "m[1, 2]": lambda np, o: o.m[1, 2],
    "m[:, 1]": lambda np, o: o.m[:, 1],
    "m[..., None]": lambda np, o: o.m[..., None],
    "x[i]": lambda np, o: o.x[o.i],
    "m[i]": lambda np, o: o.m[o.i],
    "m[i, i]": lambda np, o: o.m[o.i, o.i],
    "x[c]": lambda np, o: o.x[o.c],
    "x[s_int]": lambda np, o: o.x[o.i[0]],
    "for e in v": lambda np, o: [e for e in o.v],
    "x.at[3].set(1.0)": (
        lambda np, o: o.x.at[3].set(1.0),
        lambda np, o: _assigned(o.x.copy(), 3, 1.0),
    ),
    "m.at[1].add(v)": (lambda np, o: o.m.at[1].add(o.v), lambda np, o: _added(o.m.copy(), 1, o.v)),
    "x.at[i].add(1.0)": (
        lambda np, o: o.x.at[o.i].add(1.0),
        lambda np, o: np.add.at(o.x.copy(), o.i, 1.0),
    ),
    "x.at[2:5].mul(2.0)": (
        lambda np, o: o.x.at[2:5].mul(2.0),
        lambda np, o: np.multiply(o.x.copy()[2:5], 2.0),
    ),
    # reductions with axes
    "sum(m, axis=0)": lambda np, o: np.sum(o.m, axis=0),
    "sum(t, axis=(0, 2))": lambda np, o: np.sum(o.t, axis=(0, 2)),
    "sum(m, keepdims)": lambda np, o: np.sum(o.m, axis=1, keepdims=True),
    "max(t, axis=-1)": lambda np, o: np.max(o.t, axis=-1),
    "mean(t, axis=(1, 2))": lambda np, o: np.mean(o.t, axis=(1, 2)),
    "std(m, axis=0)": lambda np, o: np.std(o.m, axis=0),
    "var(m, axis=1, ddof=1)": lambda np, o: np.var(o.m, axis=1, ddof=1),
    "prod(m, axis=1)": lambda np, o: np.prod(o.m, axis=1),
    "argmax(m, axis=1)": lambda np, o: np.argmax(o.m, axis=1),
    "any(c)": lambda np, o: np.any(o.c),
    "all(c, axis)": lambda np, o: np.all(o.c, axis=0),
    "cumsum(m, axis=1)": lambda np, o: np.cumsum(o.m, axis=1),
    "median(m, axis=0)": lambda np, o: np.median(o.m, axis=0),
    "quantile": lambda np, o: np.quantile(o.x, 0.3),
    "percentile": lambda np, o: np.percentile(o.x, 30.0),
    "sum(k)": lambda np, o: np.sum(o.k),
    "mean(k)": lambda np, o: np.mean(o.k),
    "sum(c)": lambda np, o: np.sum(o.c),
    "average(weights)": lambda np, o: np.average(o.x, weights=o.y),
    "cov": lambda np, o: np.cov(o.a),
    "corrcoef": lambda np, o: np.corrcoef(o.a),
    # selection
    "where": lambda np, o: np.where(o.c, o.x, o.y),
    "where(c, x, 0)": lambda np, o: np.where(o.c, o.x, 0),
    "where(x > 0.5, x, 0.0)": lambda np, o: np.where(o.x > 0.5, o.x, 0.0),
    "where(c)": lambda np, o: np.where(o.c),
    "clip": lambda np, o: np.clip(o.x, 0.2, 0.8),
    "select": lambda np, o: np.select([o.c, o.d], [o.x, o.y], 0.0),
    "choose": lambda np, o: np.choose(o.i % 2, [o.v[:4], o.v[4:8]]),
    "compress": lambda np, o: np.compress(o.c, o.x),
    "extract": lambda np, o: np.extract(o.c, o.x),
    "take": lambda np, o: np.take(o.x, o.i),
    "take(m, axis=1)": lambda np, o: np.take(o.m, o.i, axis=1),
    "take(mode=wrap)": lambda np, o: np.take(o.x, o.i, mode="wrap"),
    "take(mode=clip)": lambda np, o: np.take(o.x, o.i, mode="clip"),
    "take_along_axis": lambda np, o: np.take_along_axis(o.x, o.i, axis=0),
    "searchsorted": lambda np, o: np.searchsorted(o.sorted, o.v),
    "digitize": lambda np, o: np.digitize(o.v, o.sorted),
    "interp": lambda np, o: np.interp(o.v, o.sorted, o.sorted),
    "histogram": lambda np, o: np.histogram(o.x, bins=10),
    "bincount": (
        lambda np, o: np.bincount(o.k, length=10),
        lambda np, o: np.bincount(o.k, minlength=10),
    ),
    "logical_and": lambda np, o: np.logical_and(o.c, o.d),
    "logical_not": lambda np, o: np.logical_not(o.c),
    "bitwise_and": lambda np, o: np.bitwise_and(o.k, o.j),
    "bitwise_xor": lambda np, o: np.bitwise_xor(o.k, o.j),
    "left_shift": lambda np, o: np.left_shift(o.k, 2),
    "gcd": lambda np, o: np.gcd(o.k, o.j),
    "lcm": lambda np, o: np.lcm(o.k, o.j),
    "isin": lambda np, o: np.isin(o.k, o.i),
    "union1d": lambda np, o: np.union1d(o.k, o.j),
    "intersect1d": lambda np, o: np.intersect1d(o.k, o.j),
    "setdiff1d": lambda np, o: np.setdiff1d(o.k, o.i),
    "unique(k)": lambda np, o: np.unique(o.k),
    "power(x, 2)": lambda np, o: np.power(o.x, 2),
    "maximum(x, 0)": lambda np, o: np.maximum(o.x, 0),
    "maximum(x, 0.0)": lambda np, o: np.maximum(o.x, 0.0),
    "polyval": lambda np, o: np.polyval(o.i * 1.0, o.x),
    "exp(z)": lambda np, o: np.exp(o.z),
    "abs(z)": lambda np, o: np.abs(o.z),
    "real(z)": lambda np, o: np.real(o.z),
    "angle(z)": lambda np, o: np.angle(o.z),
    # shapes
    "reshape": lambda np, o: np.reshape(o.x, (16, 16)),
    "transpose": lambda np, o: np.transpose(o.m),
    "transpose(axes)": lambda np, o: np.transpose(o.t, (2, 0, 1)),
    "swapaxes": lambda np, o: np.swapaxes(o.t, 0, 1),
    "moveaxis": lambda np, o: np.moveaxis(o.t, 0, -1),
    "expand_dims": lambda np, o: np.expand_dims(o.x, 0),
    "squeeze(axis)": lambda np, o: np.squeeze(o.row, axis=0),
    "broadcast_to": lambda np, o: np.broadcast_to(o.row, (16, 16)),
    "broadcast_arrays": lambda np, o: np.broadcast_arrays(o.m, o.row),
    "concatenate": lambda np, o: np.concatenate([o.x, o.y]),
    "concatenate(axis=1)": lambda np, o: np.concatenate([o.m, o.m], axis=1),
    "stack": lambda np, o: np.stack([o.x, o.y]),
    "split": lambda np, o: np.split(o.x, 4),
    "array_split": lambda np, o: np.array_split(o.x, 3),
    "hsplit": lambda np, o: np.hsplit(o.m, 2),
    "tile": lambda np, o: np.tile(o.v, 3),
    "repeat": lambda np, o: np.repeat(o.v, 3),
    "roll": lambda np, o: np.roll(o.x, 3),
    "pad": lambda np, o: np.pad(o.x, 2),
    "pad(m)": lambda np, o: np.pad(o.m, ((1, 1), (0, 2))),
    "flip(axis)": lambda np, o: np.flip(o.m, 0),
    "fliplr": lambda np, o: np.fliplr(o.m),
    "rot90": lambda np, o: np.rot90(o.m),
    "delete": lambda np, o: np.delete(o.x, 3),
    "insert": lambda np, o: np.insert(o.x, 3, 1.0),
    "resize": lambda np, o: np.resize(o.v, (4, 8)),
    "diag": lambda np, o: np.diag(o.m),
    "diag(v)": lambda np, o: np.diag(o.v),
    "diagonal": lambda np, o: np.diagonal(o.m),
    "tril": lambda np, o: np.tril(o.m),
    "triu": lambda np, o: np.triu(o.m, 1),
    "trace": lambda np, o: np.trace(o.m),
    "sort(m, axis=0)": lambda np, o: np.sort(o.m, axis=0),
    "argsort(k)": lambda np, o: np.argsort(o.k),
    "lexsort": lambda np, o: np.lexsort((o.k, o.j)),
    "partition": lambda np, o: np.partition(o.x, 10),
    # creation
    "zeros": lambda np, o: np.zeros(100),
    "zeros((4, 5))": lambda np, o: np.zeros((4, 5)),
    "ones": lambda np, o: np.ones((4, 5)),
    "full": lambda np, o: np.full((4, 5), 2.0),
    "full_like": lambda np, o: np.full_like(o.x, 2.0),
    "empty": lambda np, o: np.empty(100),
    "eye": lambda np, o: np.eye(10),
    "identity": lambda np, o: np.identity(10),
    "arange(100)": lambda np, o: np.arange(100),
    "arange(0., 1., .1)": lambda np, o: np.arange(0.0, 1.0, 0.1),
    "linspace": lambda np, o: np.linspace(0.0, 1.0, 100),
    "logspace": lambda np, o: np.logspace(0.0, 1.0, 100),
    "geomspace": lambda np, o: np.geomspace(1.0, 10.0, 100),
    "meshgrid": lambda np, o: np.meshgrid(o.v, o.v),
    "indices": lambda np, o: np.indices((4, 5)),
    "tri": lambda np, o: np.tri(10),
    "array([1., 2., 3.])": lambda np, o: np.array([1.0, 2.0, 3.0]),
    "array([[1, 2], [3, 4]])": lambda np, o: np.array([[1, 2], [3, 4]]),
    "asarray(1.0)": lambda np, o: np.asarray(1.0),
    "float32(1.0)": lambda np, o: np.float32(1.0),
    "vander": lambda np, o: np.vander(o.v, 4),
    # products
    "matmul": lambda np, o: np.matmul(o.a, o.b),
    "matmul(t, t)": lambda np, o: np.matmul(o.t, o.t),
    "dot(a, b)": lambda np, o: np.dot(o.a, o.b),
    "dot(m, v)": lambda np, o: np.dot(o.m, o.v),
    "tensordot": lambda np, o: np.tensordot(o.a, o.b, 1),
    "einsum ij,jk->ik": lambda np, o: np.einsum("ij,jk->ik", o.a, o.b),
    "einsum ij->i": lambda np, o: np.einsum("ij->i", o.m),
    "einsum i,i->": lambda np, o: np.einsum("i,i->", o.x, o.y),
    "einsum bij,bjk": lambda np, o: np.einsum("bij,bjk->bik", o.t, o.t),
    "kron": lambda np, o: np.kron(o.v, o.v),
    "cross": lambda np, o: np.cross(o.v[:3], o.v[3:6]),
    # linalg
    "linalg.norm": lambda np, o: np.linalg.norm(o.x),
    "linalg.norm(axis)": lambda np, o: np.linalg.norm(o.m, axis=1),
    "linalg.det": lambda np, o: np.linalg.det(o.a),
    "linalg.slogdet": lambda np, o: np.linalg.slogdet(o.a),
    "linalg.inv": lambda np, o: np.linalg.inv(o.a),
    "linalg.solve": lambda np, o: np.linalg.solve(o.a, o.b),
    "linalg.solve(vector)": lambda np, o: np.linalg.solve(o.a, o.v[:10]),
    "linalg.cholesky": lambda np, o: np.linalg.cholesky(o.spd),
    "linalg.qr": lambda np, o: np.linalg.qr(o.a),
    "linalg.svd": lambda np, o: np.linalg.svd(o.a),
    "linalg.eigh": lambda np, o: np.linalg.eigh(o.spd),
    "linalg.eigvalsh": lambda np, o: np.linalg.eigvalsh(o.spd),
    "linalg.eig": lambda np, o: np.linalg.eig(o.a),
    "linalg.pinv": lambda np, o: np.linalg.pinv(o.a),
    "linalg.lstsq": lambda np, o: np.linalg.lstsq(o.a, o.b),
    "linalg.matrix_rank": lambda np, o: np.linalg.matrix_rank(o.a),
    "linalg.matrix_power": lambda np, o: np.linalg.matrix_power(o.a, 3),
    "linalg.cond": lambda np, o: np.linalg.cond(o.a),
    "linalg.multi_dot": lambda np, o: np.linalg.multi_dot([o.a, o.b, o.a]),
    # fft
    "fft.fft": lambda np, o: np.fft.fft(o.x),
    "fft.ifft": lambda np, o: np.fft.ifft(o.z),
    "fft.rfft": lambda np, o: np.fft.rfft(o.x),
    "fft.fft2": lambda np, o: np.fft.fft2(o.m),
    "fft.fftshift": lambda np, o: np.fft.fftshift(o.x),
    "fft.fftfreq": lambda np, o: np.fft.fftfreq(100),
}

_stable = numpy.random.default_rng(0)


def _assigned(x, i, value):
    x[i] = value
    return x


def _added(x, i, value):
    x[i] += value
    return x


def _softmax(x):
    e = numpy.exp(x - x.max())
    return e / e.sum()


def _logsumexp(x):
    top = x.max()
    return numpy.log(numpy.exp(x - top).sum()) + top


# Functions outside of jnp: `jax`'s expression, and NumPy's.
OTHERS = {
    "lax.add": (lambda jax, o: jax.lax.add(o.x, o.y), lambda np, o: np.add(o.x, o.y)),
    "lax.mul": (lambda jax, o: jax.lax.mul(o.x, o.y), lambda np, o: np.multiply(o.x, o.y)),
    "lax.exp": (lambda jax, o: jax.lax.exp(o.x), lambda np, o: np.exp(o.x)),
    "lax.rsqrt": (lambda jax, o: jax.lax.rsqrt(o.x), lambda np, o: 1 / np.sqrt(o.x)),
    "lax.select": (
        lambda jax, o: jax.lax.select(o.c, o.x, o.y),
        lambda np, o: np.where(o.c, o.x, o.y),
    ),
    "lax.dynamic_slice": (
        lambda jax, o: jax.lax.dynamic_slice(o.x, (3,), (5,)),
        lambda np, o: o.x[3:8],
    ),
    "lax.dynamic_update_slice": (
        lambda jax, o: jax.lax.dynamic_update_slice(o.x, o.v, (3,)),
        lambda np, o: _assigned(o.x.copy(), slice(3, 19), o.v),
    ),
    "lax.slice": (lambda jax, o: jax.lax.slice(o.x, (3,), (8,)), lambda np, o: o.x[3:8]),
    "lax.reshape": (
        lambda jax, o: jax.lax.reshape(o.x, (16, 16)),
        lambda np, o: o.x.reshape(16, 16),
    ),
    "lax.transpose": (
        lambda jax, o: jax.lax.transpose(o.m, (1, 0)),
        lambda np, o: o.m.transpose(1, 0),
    ),
    "lax.broadcast_in_dim": (
        lambda jax, o: jax.lax.broadcast_in_dim(o.v, (4, 16), (1,)),
        lambda np, o: np.broadcast_to(o.v, (4, 16)).copy(),
    ),
    "lax.dot": (lambda jax, o: jax.lax.dot(o.a, o.b), lambda np, o: np.dot(o.a, o.b)),
    "lax.dot_general": (
        lambda jax, o: jax.lax.dot_general(o.a, o.b, (((1,), (0,)), ((), ()))),
        lambda np, o: np.dot(o.a, o.b),
    ),
    "lax.reduce_sum": (
        lambda jax, o: jax.lax.reduce_sum(o.m, (0,)),
        lambda np, o: np.sum(o.m, 0),
    ),
    "lax.convert_element_type": (
        lambda jax, o: jax.lax.convert_element_type(o.k, "float32"),
        lambda np, o: o.k.astype("float32"),
    ),
    "lax.concatenate": (
        lambda jax, o: jax.lax.concatenate([o.x, o.y], 0),
        lambda np, o: np.concatenate([o.x, o.y]),
    ),
    "lax.iota": (lambda jax, o: jax.lax.iota("int32", 100), lambda np, o: np.arange(100)),
    "lax.cumsum": (lambda jax, o: jax.lax.cumsum(o.x), lambda np, o: np.cumsum(o.x)),
    "lax.top_k": (
        lambda jax, o: jax.lax.top_k(o.x, 5),
        lambda np, o: np.argpartition(-o.x, 5),
    ),
    "lax.stop_gradient": (lambda jax, o: jax.lax.stop_gradient(o.x), lambda np, o: o.x),
    "lax.clamp": (
        lambda jax, o: jax.lax.clamp(0.2, o.x, 0.8),
        lambda np, o: np.clip(o.x, 0.2, 0.8),
    ),
    "lax.fori_loop": (
        lambda jax, o: jax.lax.fori_loop(0, 5, lambda i, x: x + 1.0, o.x),
        lambda np, o: o.x + 1.0 + 1.0 + 1.0 + 1.0 + 1.0,
    ),
    "lax.cond": (
        lambda jax, o: jax.lax.cond(True, lambda x: x + 1.0, lambda x: x, o.x),
        lambda np, o: o.x + 1.0,
    ),
    "random.key": (lambda jax, o: jax.random.key(0), lambda np, o: np.random.default_rng(0)),
    "random.split": (
        lambda jax, o: jax.random.split(o.key),
        lambda np, o: _stable.integers(0, 2**32, 4),
    ),
    "random.fold_in": (
        lambda jax, o: jax.random.fold_in(o.key, 3),
        lambda np, o: _stable.integers(0, 2**32, 2),
    ),
    "random.uniform": (
        lambda jax, o: jax.random.uniform(o.key, (100,)),
        lambda np, o: _stable.uniform(size=100),
    ),
    "random.normal": (
        lambda jax, o: jax.random.normal(o.key, (100,)),
        lambda np, o: _stable.standard_normal(100),
    ),
    "random.bits": (
        lambda jax, o: jax.random.bits(o.key, (100,)),
        lambda np, o: _stable.integers(0, 2**32, 100),
    ),
    "random.randint": (
        lambda jax, o: jax.random.randint(o.key, (100,), 0, 10),
        lambda np, o: _stable.integers(0, 10, 100),
    ),
    "random.bernoulli": (
        lambda jax, o: jax.random.bernoulli(o.key, 0.3, (100,)),
        lambda np, o: _stable.uniform(size=100) < 0.3,
    ),
    "random.permutation": (
        lambda jax, o: jax.random.permutation(o.key, 100),
        lambda np, o: _stable.permutation(100),
    ),
    "random.choice": (
        lambda jax, o: jax.random.choice(o.key, o.x),
        lambda np, o: _stable.choice(o.x),
    ),
    "random.categorical": (
        lambda jax, o: jax.random.categorical(o.key, o.v),
        lambda np, o: np.argmax(_stable.gumbel(size=16) + o.v),
    ),
    "random.exponential": (
        lambda jax, o: jax.random.exponential(o.key, (100,)),
        lambda np, o: _stable.exponential(size=100),
    ),
    "random.truncated_normal": (
        lambda jax, o: jax.random.truncated_normal(o.key, -1.0, 1.0, (100,)),
        lambda np, o: np.clip(_stable.standard_normal(100), -1, 1),
    ),
    "nn.relu": (lambda jax, o: jax.nn.relu(o.x), lambda np, o: np.maximum(o.x, 0)),
    "nn.sigmoid": (lambda jax, o: jax.nn.sigmoid(o.x), lambda np, o: 1 / (1 + np.exp(-o.x))),
    "nn.softmax": (lambda jax, o: jax.nn.softmax(o.x), lambda np, o: _softmax(o.x)),
    "nn.log_softmax": (
        lambda jax, o: jax.nn.log_softmax(o.x),
        lambda np, o: o.x - _logsumexp(o.x),
    ),
    "nn.logsumexp": (lambda jax, o: jax.nn.logsumexp(o.x), lambda np, o: _logsumexp(o.x)),
    "nn.gelu": (
        lambda jax, o: jax.nn.gelu(o.x),
        lambda np, o: o.x * (1 + np.tanh(0.8 * (o.x + 0.04 * o.x * o.x * o.x))) * 0.5,
    ),
    "nn.silu": (lambda jax, o: jax.nn.silu(o.x), lambda np, o: o.x / (1 + np.exp(-o.x))),
    "nn.softplus": (lambda jax, o: jax.nn.softplus(o.x), lambda np, o: np.logaddexp(o.x, 0)),
    "nn.one_hot": (
        lambda jax, o: jax.nn.one_hot(o.k, 10),
        lambda np, o: (o.k[:, None] == np.arange(10)).astype("float32"),
    ),
}


def best_of(functions, seconds):
    """The best time of a call of each function, in seconds; they take turns."""
    counts, best = [], []
    for function in functions:
        for _ in range(WARM):
            function()
        start = time.perf_counter()
        function()
        counts.append(max(1, min(1000, int(3e-4 / (time.perf_counter() - start + 1e-9)))))
        best.append(float("inf"))
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        rounds += 1
        for position, function in enumerate(functions):
            numbers = range(counts[position])
            start = time.perf_counter()
            for _ in numbers:
                function()
            best[position] = min(best[position], (time.perf_counter() - start) / counts[position])
    return best


def pairs(framework):
    """Yield the name of each call, and it in the framework and in NumPy, both without arguments."""
    jax = importlib.import_module(framework)
    jnp = importlib.import_module(f"{framework}.numpy")
    for name in ("lax", "random", "nn"):
        importlib.import_module(f"{framework}.{name}")
    ours, theirs = operands(jnp.asarray), operands(lambda x: x)
    ours.key = jax.random.PRNGKey(0)
    tables = [(CALLS, jnp), (OTHERS, jax)]
    for table, namespace in tables:
        for name, call in table.items():
            mine, its = call if type(call) is tuple else (call, call)
            if framework == "jax":
                yield (
                    name,
                    lambda c=mine, n=namespace: jax.block_until_ready(c(n, ours)),
                    (lambda c=its: c(numpy, theirs)),
                )
            else:
                yield name, lambda c=mine, n=namespace: c(n, ours), lambda c=its: c(numpy, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", default="namoo")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.03, help="for each pair of calls")
    options = parser.parse_args()
    rows, missing = [], []
    numpy.seterr(all="ignore")
    for name, mine, its in pairs(options.framework):
        if not re.search(options.only, name):
            continue
        try:
            rows.append((name, *best_of([mine, its], options.seconds)))
        except (AttributeError, TypeError, ValueError, NotImplementedError) as error:
            missing.append(f"{name}: {str(error).splitlines()[0][:80]}")
    for name, mine, its in sorted(rows, key=lambda row: row[2] - row[1]):
        print(f"{name:28} {mine * 1e6:8.2f} {its * 1e6:8.2f} {(mine - its) * 1e6:+8.2f}")
    over = [(mine - its) * 1e6 for _, mine, its in rows]
    ratio = numpy.exp(numpy.mean([numpy.log(its / mine) for _, mine, its in rows]))
    print(
        f"{len(rows)} calls: {sum(x <= GOAL for x in over)} within {GOAL} µs of NumPy's;", end=" "
    )
    print(f"median {numpy.median(over):+.2f} µs, mean {numpy.mean(over):+.2f} µs;", end=" ")
    print(f"geometric mean {ratio:.2f} of NumPy's speed")
    for line in missing:
        print("not measured:", line)


if __name__ == "__main__":
    main()
