"""Types of results for symbolic shapes: `eval_shape` of many functions, against JAX."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.export
import jax.numpy
import pytest

import namoo
import namoo.export
import namoo.numpy

OURS = SimpleNamespace(J=namoo, jnp=namoo.numpy)
THEIRS = SimpleNamespace(J=jax, jnp=jax.numpy)


def table(lib: Any) -> dict[str, tuple]:
    """Functions with the types of their arguments, by name."""
    J, jnp = lib.J, lib.jnp
    lax = J.lax
    (b,) = J.export.symbolic_shape("b", constraints=["b>=2"])
    n, m = J.export.symbolic_shape("n, m", scope=b.scope)

    def S(*shape, d="float32"):
        return J.ShapeDtypeStruct(shape, d)

    return {
        "add": (lambda x, y: x + y, S(b, 3), S(3)),
        "addb": (lambda x, y: x + y, S(b, 3), S(b, 1)),
        "mul_dim": (lambda x: x * x.shape[0], S(b, 3)),
        "dim_div": (lambda x: jnp.sum(x) / x.shape[0], S(b, 3)),
        "dim_float": (lambda x: x.shape[0] * 2.0, S(b, 3)),
        "arr_dim": (lambda x: jnp.array(x.shape[0]) + 1, S(b, 3)),
        "dim_add_arr": (lambda x: x.shape[0] + x, S(b, 3)),
        "mean": (lambda x: jnp.mean(x, axis=0), S(b, 3)),
        "var": (lambda x: jnp.var(x), S(b, 3)),
        "matmul": (lambda x, w: x @ w, S(b, 3), S(3, 4)),
        "matmul_bb": (lambda x, w: jnp.matmul(x, w), S(b, n, 3), S(b, 3, m)),
        "einsum": (lambda x, w: jnp.einsum("bij,bjk->bik", x, w), S(b, n, 3), S(b, 3, m)),
        "dot": (lambda x, w: jnp.dot(x, w), S(b, 3), S(3)),
        "tensordot": (lambda x, w: jnp.tensordot(x, w, 1), S(b, n), S(n, 4)),
        "reshape-1": (lambda x: x.reshape(-1), S(b, 3)),
        "reshape": (lambda x: x.reshape((x.shape[0], -1)), S(b, 3, 4)),
        "reshape2": (lambda x: jnp.reshape(x, (x.shape[0] * 3, 4)), S(b, 3, 4)),
        "reshape3": (lambda x: jnp.reshape(x, (-1, 2)), S(b, 4)),
        "transpose": (lambda x: x.T, S(b, 3)),
        "concat": (lambda x, y: jnp.concatenate([x, y], 0), S(b, 3), S(n, 3)),
        "stack": (lambda x: jnp.stack([x, x]), S(b, 3)),
        "tile": (lambda x: jnp.tile(x, (2, 1)), S(b, 3)),
        "repeat": (lambda x: jnp.repeat(x, 3, axis=0), S(b, 3)),
        "pad": (lambda x: jnp.pad(x, ((1, 1), (0, 0))), S(b, 3)),
        "padwrap": (lambda x: jnp.pad(x, ((x.shape[0], 1), (0, 0))), S(b, 3)),
        "slice": (lambda x: x[1:], S(b, 3)),
        "slice-1": (lambda x: x[:-1], S(b, 3)),
        "slice::2": (lambda x: x[::2], S(b, 3)),
        "slice::-1": (lambda x: x[::-1], S(b, 3)),
        "idx0": (lambda x: x[0], S(b, 3)),
        "idx-1": (lambda x: x[-1], S(b, 3)),
        "idx1": (lambda x: x[:, 1], S(b, 3)),
        "idxarr": (lambda x, i: x[i], S(b, 3), S(n, d="int32")),
        "idxdim": (lambda x: x[: x.shape[0] - 1], S(b, 3)),
        "newaxis": (lambda x: x[:, None], S(b, 3)),
        "at": (lambda x: x.at[0].set(1.0), S(b, 3)),
        "at_slice": (lambda x: x.at[1:].add(1.0), S(b, 3)),
        "take": (lambda x, i: jnp.take(x, i, axis=0), S(b, 3), S(n, d="int32")),
        "take_along": (lambda x, i: jnp.take_along_axis(x, i, axis=1), S(b, 3), S(b, 1, d="int32")),
        "argmax": (lambda x: jnp.argmax(x, 0), S(b, 3)),
        "argmax_flat": (lambda x: jnp.argmax(x), S(b, 3)),
        "sort": (lambda x: jnp.sort(x, 0), S(b, 3)),
        "argsort": (lambda x: jnp.argsort(x, 0), S(b, 3)),
        "topk": (lambda x: lax.top_k(x, 2), S(b, 3)),
        "cumsum": (lambda x: jnp.cumsum(x, 0), S(b, 3)),
        "zeros": (lambda x: jnp.zeros(x.shape), S(b, 3)),
        "zeros_like": (lambda x: jnp.zeros_like(x), S(b, 3)),
        "ones": (lambda x: jnp.ones((x.shape[0] + 1,)), S(b, 3)),
        "full": (lambda x: jnp.full(x.shape, 2.0), S(b, 3)),
        "eye": (lambda x: jnp.eye(x.shape[0]), S(b, 3)),
        "arange": (lambda x: jnp.arange(x.shape[0]), S(b, 3)),
        "arange2": (lambda x: jnp.arange(1, x.shape[0] + 1), S(b, 3)),
        "linspace": (lambda x: jnp.linspace(0, 1, x.shape[0]), S(b, 3)),
        "iota": (lambda x: lax.iota("int32", x.shape[0]), S(b, 3)),
        "tril": (lambda x: jnp.tril(jnp.ones((x.shape[0], x.shape[0]))), S(b, 3)),
        "where": (lambda x: jnp.where(x > 0, x, 0), S(b, 3)),
        "softmax": (lambda x: J.nn.softmax(x, -1), S(b, 3)),
        "softmax0": (lambda x: J.nn.softmax(x, 0), S(b, 3)),
        "logsumexp": (lambda x: J.nn.logsumexp(x, 0), S(b, 3)),
        "onehot": (lambda x: J.nn.one_hot(x, 5), S(b, d="int32")),
        "onehotdim": (lambda x: J.nn.one_hot(x, x.shape[0]), S(b, d="int32")),
        "gelu": (lambda x: J.nn.gelu(x), S(b, 3)),
        "conv": (
            lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            S(b, n, m, 3),
            S(3, 3, 3, 4),
        ),
        "convv": (
            lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            S(b, n + 3, m + 3, 3),
            S(3, 3, 3, 4),
        ),
        "convs": (
            lambda x, w: lax.conv_general_dilated(
                x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            S(b, n, m, 3),
            S(3, 3, 3, 4),
        ),
        "convt": (
            lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
            S(b, n, m, 3),
            S(3, 3, 3, 4),
        ),
        "maxpool": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            S(b, n + 2, m + 2, 3),
        ),
        "avgpool": (
            lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
            S(b, n, m, 3),
        ),
        "scan": (lambda x: lax.scan(lambda c, a: (c + a, c), jnp.zeros(3), x), S(b, 3)),
        "scan_b": (
            lambda x: lax.scan(lambda c, a: (c + a, c), jnp.zeros(x.shape[1:]), x),
            S(n, b, 3),
        ),
        "while": (
            lambda x: lax.while_loop(
                lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 2), (0, x)
            ),
            S(b, 3),
        ),
        "fori": (
            lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3)),
            S(b, 3),
        ),
        "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y, lambda y: y * 2, x), S(b, 3)),
        "map": (lambda x: lax.map(lambda r: r * 2, x), S(b, 3)),
        "assoc": (lambda x: lax.associative_scan(jnp.add, x, axis=1), S(b, 8)),
        "vmap": (lambda x: J.vmap(lambda r: r @ r)(x), S(b, 3)),
        "vmapscan": (lambda x: J.vmap(lambda r: jnp.sum(r[:, None] * r))(x), S(b, n)),
        "grad": (lambda x: J.grad(lambda y: jnp.sum(jnp.tanh(y) ** 2))(x), S(b, 3)),
        "gradmean": (lambda x: J.grad(lambda y: jnp.mean(J.nn.softmax(y) * y))(x), S(b, 3)),
        "gradconv": (
            lambda x, w: J.grad(
                lambda w: jnp.sum(
                    lax.conv_general_dilated(
                        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                    )
                )
            )(w),
            S(b, n, m, 3),
            S(3, 3, 3, 4),
        ),
        "gradscan": (
            lambda x: J.grad(
                lambda x: jnp.sum(lax.scan(lambda c, a: (jnp.tanh(c + a), c), jnp.zeros(3), x)[1])
            )(x),
            S(b, 3),
        ),
        "gradidx": (lambda x: J.grad(lambda x: jnp.sum(x[1:] * x[:-1]))(x), S(b, 3)),
        "gradmax": (lambda x: J.grad(lambda x: jnp.max(x))(x), S(b, 3)),
        "graddot": (lambda x, y: J.grad(lambda x: jnp.sum(x @ y))(x), S(b, n), S(n, m)),
        "jit": (lambda x: J.jit(lambda y: y * 2 + y.shape[0])(x), S(b, 3)),
        "random": (lambda x: J.random.normal(J.random.key(0), x.shape), S(b, 3)),
        "uniform": (lambda x: J.random.uniform(J.random.PRNGKey(0), x.shape), S(b, 3)),
        "bernoulli": (lambda x: J.random.bernoulli(J.random.PRNGKey(0), 0.5, x.shape), S(b, 3)),
        "split": (lambda x: jnp.split(x, 2, axis=1), S(b, 4)),
        "splitb": (lambda x: jnp.split(x, 2, axis=0), S(2 * b, 4)),
        "broadcast_to": (lambda x: jnp.broadcast_to(x, (x.shape[0], n, 3)), S(b, 1, 3)),
        "expand": (lambda x: jnp.expand_dims(x, 1), S(b, 3)),
        "squeeze": (lambda x: jnp.squeeze(x, 1), S(b, 1)),
        "flip": (lambda x: jnp.flip(x, 0), S(b, 3)),
        "roll": (lambda x: jnp.roll(x, 1, axis=0), S(b, 3)),
        "moveaxis": (lambda x: jnp.moveaxis(x, 0, 1), S(b, 3)),
        "norm": (lambda x: jnp.linalg.norm(x), S(b, 3)),
        "any": (lambda x: jnp.any(x > 0), S(b, 3)),
        "prod": (lambda x: jnp.prod(x, 0), S(b, 3)),
        "max": (lambda x: jnp.max(x, 0), S(b, 3)),
        "std": (lambda x: jnp.std(x, 0), S(b, 3)),
        "median": (lambda x: jnp.median(x, 1), S(b, 3)),
        "clip": (lambda x: jnp.clip(x, 0, 1), S(b, 3)),
        "dynslice": (lambda x: lax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, 2)), S(b, 3)),
        "dynupd": (lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 3)), (1, 0)), S(b, 3)),
        "attention": (lambda q: J.nn.dot_product_attention(q, q, q), S(b, n, 2, 4)),
        "cholesky": (lambda x: jnp.linalg.cholesky(x), S(b, 3, 3)),
        "svd": (lambda x: jnp.linalg.svd(x), S(b, 3, 3)),
        "solve": (lambda x, y: jnp.linalg.solve(x, y), S(b, 3, 3), S(b, 3, 2)),
        "inv": (lambda x: jnp.linalg.inv(x), S(b, 3, 3)),
        "fft": (lambda x: jnp.fft.fft(x), S(b, 8)),
        "resize": (lambda x: J.image.resize(x, (x.shape[0], 8, 8, 3), "bilinear"), S(b, 4, 4, 3)),
        "segment": (lambda x, i: J.ops.segment_sum(x, i, num_segments=5), S(b, 3), S(b, d="int32")),
        "segdim": (
            lambda x, i: J.ops.segment_sum(x, i, num_segments=x.shape[0]),
            S(b, 3),
            S(b, d="int32"),
        ),
        "outer": (lambda x, y: jnp.outer(x, y), S(b), S(n)),
        "diag": (lambda x: jnp.diag(x), S(b, b)),
        "trace": (lambda x: jnp.trace(x), S(b, b)),
        "diff": (lambda x: jnp.diff(x), S(3, b)),
        "meshgrid": (lambda x, y: jnp.meshgrid(x, y), S(b), S(n)),
        "nonzero": (lambda x: jnp.nonzero(x, size=4), S(b, 3)),
        "unique": (lambda x: jnp.unique(x, size=4), S(b)),
        "size": (lambda x: jnp.size(x) + 0, S(b, 3)),
        "astype": (lambda x: x.astype("int32"), S(b, 3)),
        "ravel": (lambda x: x.ravel(), S(b, 3)),
        "swap": (lambda x: jnp.swapaxes(x, 0, 1), S(b, 3)),
        "remat": (
            lambda x: J.grad(lambda y: J.checkpoint(lambda z: jnp.sum(jnp.sin(z)))(y))(x),
            S(b, 3),
        ),
        "custom": (lambda x: J.grad(lambda y: jnp.sum(J.nn.relu(y)))(x), S(b, 3)),
        "log_softmax": (lambda x: J.nn.log_softmax(x), S(b, 3)),
        "layernorm": (lambda x: J.nn.standardize(x), S(b, 3)),
        "quantile": (lambda x: jnp.quantile(x, 0.5, axis=0), S(b, 3)),
        "percentile": (lambda x: jnp.percentile(x, 50.0), S(b, 3)),
        "average": (lambda x: jnp.average(x, axis=0), S(b, 3)),
        "histogram": (lambda x: jnp.histogram(x, 5), S(b)),
        "bincount": (lambda x: jnp.bincount(x, length=5), S(b, d="int32")),
        "cross": (lambda x: jnp.cross(x, x), S(b, 3)),
        "kron": (lambda x: jnp.kron(x, jnp.ones((2, 2))), S(b, 3)),
        "vdot": (lambda x: jnp.vdot(x, x), S(b, 3)),
        "array_split": (lambda x: jnp.array_split(x, 2, axis=1), S(b, 5)),
        "interp": (lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0)), S(b)),
        "jvp": (lambda x: J.jvp(jnp.sin, (x,), (x,)), S(b, 3)),
        "jacfwd": (lambda x: J.jacfwd(lambda y: y**2)(x), S(3)),
        "hessian": (lambda x: J.vmap(J.hessian(lambda y: jnp.sum(y**3)))(x), S(b, 3)),
        "apply_along": (lambda x: jnp.apply_along_axis(jnp.sum, 1, x), S(b, 3)),
        "vectorize": (lambda x: jnp.vectorize(jnp.sum, signature="(n)->()")(x), S(b, 3)),
        "bool": (lambda x: x if x.shape[0] else x * 2, S(b, 3)),
        "rng_split": (lambda x: J.random.split(J.random.key(0), x.shape[0]), S(b, 3)),
        "fold": (lambda x: J.random.fold_in(J.random.key(0), x.shape[0]), S(b, 3)),
        "choice": (lambda x: J.random.categorical(J.random.key(0), x), S(b, 3)),
        "unstack": (lambda x: jnp.unstack(x, axis=1), S(b, 3)),
        "full_like": (lambda x: jnp.full_like(x, x.shape[0]), S(b, 3)),
        "int_dim_sum": (lambda x: sum(x.shape), S(b, 3)),
        "shape_array": (lambda x: jnp.asarray(x.shape) + 1, S(b, 3)),
        "stack_dims": (lambda x: jnp.stack([jnp.asarray(d) for d in x.shape]), S(b, 3)),
        "compare": (lambda x: jnp.arange(x.shape[0]) < x.shape[0] - 1, S(b, 3)),
        "batchnorm": (
            lambda x: (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5),
            S(b, n, m, 3),
        ),
        "gather_nd": (lambda x, i: x[jnp.arange(x.shape[0]), i], S(b, 3), S(b, d="int32")),
        "at_gather": (
            lambda x, i: x.at[jnp.arange(x.shape[0]), i].add(1.0),
            S(b, 3),
            S(b, d="int32"),
        ),
        "custom_linear": (lambda x: J.scipy.sparse.linalg.cg(lambda v: 2 * v, x)[0], S(b)),
        "insert": (lambda x: jnp.append(x, x), S(b)),
        "rfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), S(b, 8)),
        "gammaln": (lambda x: J.scipy.special.gammaln(x), S(b)),
        "triu_indices": (lambda x: jnp.triu(x), S(b, b)),
        "logical": (lambda x: jnp.logical_and(x > 0, x < 1), S(b, n)),
        "mod": (lambda x: x % 2, S(b, n)),
        "round": (lambda x: jnp.round(x), S(b, n)),
        "cumprod": (lambda x: jnp.cumprod(x, 1), S(b, n)),
        "cummax": (lambda x: lax.cummax(x), S(b, n)),
        "shape_as_value": (lambda x: lax.shape_as_value(x.shape), S(b, 3)),
        "argpartition": (lambda x: jnp.partition(x, 1, axis=1), S(b, 4)),
        "poolgrad": (
            lambda x: J.grad(
                lambda x: jnp.sum(
                    lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
                )
            )(x),
            S(b, n + 2, m + 2, 3),
        ),
    }


OUR_TABLE, THEIR_TABLE = table(OURS), table(THEIRS)


def described(lib: Any, row: tuple) -> str:
    fun, *args = row
    types = lib.J.tree.leaves(lib.J.eval_shape(fun, *args))
    return " ".join(f"{t.dtype}{tuple(t.shape)}" for t in types)


@pytest.mark.parametrize("name", OUR_TABLE)
def test_the_types_of_results_are_those_of_jax(name):
    assert described(OURS, OUR_TABLE[name]) == described(THEIRS, THEIR_TABLE[name])
