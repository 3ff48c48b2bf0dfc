"""First and second derivatives of namoo.numpy against those of real JAX, awkward points included.

Each expression is summed with uneven weights; the gradient by all real arrays, and the derivative
of that gradient along a fixed direction, must be JAX's.
"""

import functools

import jax
import numpy as np
import pytest

import namoo
import numpy_oracle as oracle

UNARY = """absolute arccos arcsin arcsinh arctan arctanh cbrt cos cosh deg2rad exp exp2 expm1 i0 log
log10 log1p log2 negative positive rad2deg real reciprocal sin sinc sinh sqrt square tan tanh
conjugate nan_to_num sign floor ceil rint trunc fabs""".split()
# Arguments inside the domain of each function.
DOMAIN = {"log": "p", "log10": "p", "log2": "p", "log1p": "p", "sqrt": "p", "cbrt": "p"}
DOMAIN |= {"arccos": "q", "arcsin": "q", "arctanh": "q", "reciprocal": "p"}

EXPRESSIONS = (
    [f"jnp.{name}({DOMAIN.get(name, 'f')})" for name in UNARY]
    + """
f + g
f - p
f * g
f / p
p ** 2
p ** 3
p ** -2
p ** 0.5
p ** f
2.0 ** f
f % p
jnp.fmod(f, p)
f // p
jnp.float_power(p, f)
jnp.arctan2(f, p)
jnp.hypot(f, p)
jnp.logaddexp(f, p)
jnp.logaddexp2(f, p)
jnp.maximum(f, g)
jnp.minimum(f, 0.3)
jnp.fmax(f, p)
jnp.fmin(f, p)
jnp.heaviside(f, p)
jnp.copysign(f, q)
jnp.frexp(p)[0]
jnp.ldexp(p, j)
jnp.modf(f)[0]
jnp.where(t, f, p)
jnp.where(f > 0, jnp.sqrt(jnp.where(f > 0, f, 1.0)), 0.0)
jnp.select([f > 1, f < 0], [f * 2, p])
jnp.piecewise(f, [f < 0, f > 1], [lambda x: x * x, lambda x: x ** 3])
jnp.clip(f, -0.5, 0.5)
jnp.clip(f, p - 1, p)
jnp.round(f, 1)
jnp.isclose(f, p)
jnp.real(c * f)
jnp.abs(c * f)
jnp.angle(c * f)
jnp.abs(f + 1j * p)
jnp.sum(f, axis=0)
jnp.sum(f, where=t)
jnp.prod(f, axis=1)
jnp.prod(f, where=t, axis=0)
jnp.max(f, axis=1)
jnp.min(f)
jnp.max(f, axis=0, initial=0.3)
jnp.mean(f, axis=1, keepdims=True)
jnp.mean(f, where=t)
jnp.var(f, axis=0)
jnp.var(f, ddof=1)
jnp.std(f, axis=1)
jnp.ptp(f, axis=0)
jnp.average(f, axis=1, weights=p)
jnp.median(f, axis=1)
jnp.quantile(f, 0.3, axis=0)
jnp.quantile(f, 0.3, method='inverted_cdf')
jnp.nanmean(f)
jnp.nansum(f, axis=0)
jnp.nanmax(f, axis=0)
jnp.nanvar(f, axis=1)
jnp.cumsum(f, axis=1)
jnp.cumprod(f, axis=0)
jnp.nancumsum(f)
jnp.cumulative_prod(g)
jnp.logaddexp.reduce(f, axis=1)
jnp.maximum.accumulate(f, axis=1)
jnp.add.at(f, (j % 3, j % 4), g, inplace=False)
jnp.reshape(f, (4, 3), order='F')
jnp.transpose(z, (1, 2, 0))
jnp.moveaxis(z, 0, -1)
jnp.squeeze(f[:, :1])
jnp.flip(f, 0)
jnp.rot90(f)
jnp.roll(f, (1, 2), (0, 1))
jnp.roll(f, j[0], 1)
jnp.concatenate([f, p], axis=1)
jnp.stack([f, p], axis=1)
jnp.block([[f, p], [p, f]])
jnp.split(f, 2, axis=1)
jnp.unstack(f)
jnp.tile(f, (2, 1))
jnp.repeat(f, 2, axis=1)
jnp.repeat(g, j, total_repeat_length=7)
jnp.resize(f, (2, 9))
jnp.pad(f, 1, mode='reflect')
jnp.pad(f, 1, mode='mean')
jnp.pad(f, 2, mode='wrap')
jnp.pad(f, 1, mode='linear_ramp', end_values=2.0)
jnp.pad(f, 1, constant_values=s)
jnp.broadcast_to(g, (2, 4))
jnp.diag(g, 1)
jnp.diag(m)
jnp.diagonal(z, 1, 1, 2)
jnp.tril(m)
jnp.triu(m, 1)
jnp.trace(m)
jnp.vander(g, 3)
jnp.meshgrid(g, f[0])
jnp.linspace(g, f[0], 4)
jnp.logspace(g, f[0], 3)
jnp.geomspace(p, 2 * p, 3)
jnp.diff(f, n=2)
jnp.ediff1d(f)
jnp.delete(f, 1, axis=0)
jnp.insert(f, 1, g, axis=0)
jnp.compress(t[0], f, axis=1, size=3)
jnp.choose(j % 2, [g, g * 10], mode='clip')
jnp.place(f, t, g, inplace=False)
jnp.fill_diagonal(m, s, inplace=False)
jnp.dot(f, m)
jnp.matmul(z, m)
jnp.matmul(z[:, None], f.T)
jnp.matmul(g, z.mT)
jnp.vdot(f, p)
jnp.vecdot(f, p)
jnp.inner(f, m)
jnp.outer(g, f)
jnp.tensordot(z, f, ([1, 2], [0, 1]))
jnp.kron(g, f)
jnp.cross(f[:, :3], p[:, 1:])
jnp.einsum('ij,jk,lk->il', f, m, f)
jnp.einsum('ii->i', m)
jnp.einsum('bij,bkj,bi->bk', z, z, z[:, :, 0])
jnp.vectorize(jnp.vdot, signature='(n),(n)->()')(f, g)
jnp.apply_along_axis(lambda x: x * x[0], 1, f)
f.at[0].set(g)
f[::2, 1:3]
f[j % 3]
""".strip().splitlines()
)

POINTS = """
jnp.sqrt(o)
jnp.abs(o)
jnp.sign(o)
jnp.where(o > 0, jnp.sqrt(jnp.where(o > 0, o, 1.0)), 0.0)
jnp.maximum(o, 0.0)
jnp.maximum(o, o * 2)
jnp.minimum(o, 0.0)
jnp.max(o)
jnp.min(o, axis=0)
jnp.clip(o, 0.0, 1.0)
o ** 2
o ** 1
o ** 0
o ** 3.0
o ** 1.0
jnp.power(o, 2.0)
jnp.cbrt(o)
jnp.sinc(o)
jnp.logaddexp(o, -jnp.inf)
jnp.logaddexp(-jnp.inf, o)
jnp.logaddexp(o, jnp.inf)
jnp.logaddexp.reduce(o)
jnp.hypot(o, 3.0)
jnp.hypot(o, o)
jnp.arctan2(o, 1.0)
jnp.prod(o)
jnp.cumprod(o)
jnp.std(o * 0 + 1.0)
jnp.abs(o * 1j)
jnp.median(o)
jnp.ptp(o)
jnp.log1p(o)
jnp.tanh(o)
jnp.nan_to_num(1 / o)
jnp.exp(o)
""".strip().splitlines()

FLOATS = {
    name: x for name, x in oracle.ARRAYS.items() if x.dtype == np.float32 and name not in "ne"
}
ZEROS = {"o": np.array([0.0, 1.0, 0.0, -1.0, 1.0], np.float32)}


def weighted_sum(jnp, out):
    """One real number from any results, in which every element counts differently."""
    total = 0.0
    for leaf in out if isinstance(out, (tuple, list)) else [out]:
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            weights = np.cos(np.arange(leaf.size, dtype=np.float32)).reshape(leaf.shape)
            total = total + jnp.sum(jnp.real(leaf) * weights)
    return total


def derivatives(package, expressions, arrays):
    """The gradients, and the gradients' derivatives along a direction, of a table."""
    jnp = package.numpy
    others = {k: v for k, v in oracle.ARRAYS.items() if k not in arrays}

    def gradient(text):
        def fun(arrays):
            return weighted_sum(jnp, eval(text, {"jnp": jnp, "np": np, **others, **arrays}))

        return package.grad(fun)

    def fun(arrays):
        direction = {k: jnp.asarray(np.sin(1 + np.asarray(v))) for k, v in START.items()}
        direction = {k: direction[k] for k in arrays}
        return [package.jvp(gradient(text), (arrays,), (direction,)) for text in expressions]

    START = arrays
    compiled = jax.jit(fun, compiler_options=oracle.QUICK) if package is jax else fun
    return dict(zip(expressions, compiled(arrays), strict=True))


@functools.cache
def wanted(table):
    expressions, arrays = TABLES[table]
    return derivatives(jax, expressions, arrays)


TABLES = {
    **{f"ordinary {n}": (tuple(EXPRESSIONS[n::3]), FLOATS) for n in range(3)},
    "awkward": (tuple(POINTS), ZEROS),
}
CASES = [(name, text) for name, (texts, _) in TABLES.items() for text in texts]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    _, arrays = TABLES[table]
    found = derivatives(namoo, [expression], arrays)[expression]
    for order, a, b in zip(("first", "second"), found, wanted(table)[expression], strict=True):
        for name in arrays:
            x, y = np.asarray(a[name]), np.asarray(b[name])
            np.testing.assert_allclose(x, y, 2e-4, 2e-4, err_msg=f"{order} derivative by {name}")
