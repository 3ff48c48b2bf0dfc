"""Sparse arrays moved, joined, compressed by rows, and under functions written for dense ones."""

import jax
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jaxs

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.experimental import sparse

RNG = np.random.default_rng(0)
F32 = np.float32


def some(*shape):
    """Numbers of which about half are zero."""
    return (RNG.normal(size=shape) * (RNG.random(shape) > 0.5)).astype(F32)


DENSE = some(2, 3, 4)
MATRIX, OTHER = some(4, 5), some(4, 5)
LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]


def close(found, wanted):
    np.testing.assert_allclose(sparse.todense(found), wanted, rtol=1e-5, atol=1e-6)


def bcoo(x, layout=(0, 0), extra=0):
    """A sparse array with some stored elements that do not count."""
    exact = sparse.BCOO.fromdense(x, n_batch=layout[0], n_dense=layout[1])
    nse = exact.nse + extra
    return sparse.BCOO.fromdense(x, nse=nse, n_batch=layout[0], n_dense=layout[1])


ARRANGED = {
    "rev": (lambda m: sparse.bcoo_rev(m, (0, 1, 2)), lambda x: x[::-1, ::-1, ::-1]),
    "rev one": (lambda m: sparse.bcoo_rev(m, (1,)), lambda x: x[:, ::-1]),
    "slice": (
        lambda m: sparse.bcoo_slice(
            m, start_indices=(0, 1, 1), limit_indices=(2, 3, 4), strides=(1, 1, 2)
        ),
        lambda x: x[:2, 1:3, 1:4:2],
    ),
    "empty slice": (
        lambda m: sparse.bcoo_slice(m, start_indices=(0, 1, 2), limit_indices=(2, 1, 4)),
        lambda x: x[:, 1:1, 2:],
    ),
    "dynamic_slice": (
        lambda m: sparse.bcoo_dynamic_slice(m, (1, 1, 3), (1, 2, 2)),
        lambda x: x[1:, 1:, 2:],
    ),
    "squeeze": (
        lambda m: sparse.bcoo_squeeze(
            sparse.bcoo_slice(m, start_indices=(1, 0, 2), limit_indices=(2, 3, 3)),
            dimensions=(0, 2),
        ),
        lambda x: x[1, :, 2],
    ),
    **{
        f"concatenate {axis}": (
            lambda m, axis=axis: sparse.bcoo_concatenate([m, m * 2.0, m], dimension=axis),
            lambda x, axis=axis: np.concatenate([x, x * 2, x], axis),
        )
        for axis in range(3)
    },
    "broadcast in front": (
        lambda m: sparse.bcoo_broadcast_in_dim(
            m, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3)
        ),
        lambda x: np.broadcast_to(x, (5, 2, 3, 4)),
    ),
    "broadcast inside": (
        lambda m: sparse.bcoo_broadcast_in_dim(
            m, shape=(2, 2, 3, 2, 4), broadcast_dimensions=(0, 2, 4)
        ),
        lambda x: np.broadcast_to(x[:, None, :, None], (2, 2, 3, 2, 4)),
    ),
    "stretch": (
        lambda m: sparse.bcoo_broadcast_in_dim(
            sparse.bcoo_slice(m, start_indices=(1, 0, 0), limit_indices=(2, 3, 1)),
            shape=(2, 3, 3),
            broadcast_dimensions=(0, 1, 2),
        ),
        lambda x: np.broadcast_to(x[1:, :, :1], (2, 3, 3)),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", ARRANGED)
def test_arranged(name, layout):
    ours, wanted = ARRANGED[name]
    close(ours(bcoo(DENSE, layout, extra=2)), wanted(DENSE))
    close(namoo.jit(ours)(bcoo(DENSE, layout, extra=2)), wanted(DENSE))


@pytest.mark.parametrize("n_batch", [0, 1])
@pytest.mark.parametrize("n_dense", [0, 1])
def test_compressed_rows(n_batch, n_dense):
    x = some(*[3] * n_batch, 4, 5, *[2] * n_dense)
    options = {"n_batch": n_batch, "n_dense": n_dense}
    ours = sparse.BCSR.fromdense(x, **options)
    theirs = jaxs.BCSR.fromdense(jax.numpy.asarray(x), **options)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert (ours.shape, ours.nse, ours.n_batch, ours.n_dense, ours.size, len(ours)) == (
        *(theirs.shape, theirs.nse, theirs.n_batch, theirs.n_dense, theirs.size),
        len(x),
    )
    assert repr(ours) == repr(theirs)
    close(ours, x)
    close(namoo.jit(lambda m: m.todense())(ours), x)
    close(ours.sum_duplicates(), x)
    close(sparse.bcsr_concatenate([ours, ours], dimension=n_batch), np.concatenate([x, x], n_batch))
    found = sparse.bcsr_extract(ours.indices, ours.indptr, x * 3)
    close(sparse.BCSR((found, ours.indices, ours.indptr), shape=x.shape), x * 3)


def test_products_of_compressed_rows():
    m = sparse.BCSR.from_scipy_sparse(scipy.sparse.csr_matrix(MATRIX))
    v, w = RNG.normal(size=5).astype(F32), RNG.normal(size=(2, 4)).astype(F32)
    close(m @ v, MATRIX @ v)
    close(w @ m, w @ MATRIX)
    close(m @ sparse.BCSR.fromdense(OTHER.T), MATRIX @ OTHER.T)
    close(namoo.jit(lambda m, v: m @ v)(m, v), MATRIX @ v)
    dims = (((0,), (1,)), ((), ()))
    close(sparse.bcsr_dot_general(m, w, dimension_numbers=dims), MATRIX.T @ w.T)
    with pytest.raises(NotImplementedError, match="to_bcoo"):
        m.transpose()


SPARSIFIED = {
    "zero-preserving": lambda m, x, y, v: m.sin(x) + m.expm1(y) - m.sqrt(abs(x)) * 2,
    "product with dense": lambda m, x, y, v: x * v + y / (v + 9),
    "product with sparse": lambda m, x, y, v: x * y,
    "power": lambda m, x, y, v: x**3 - y**2,
    "matmul": lambda m, x, y, v: (x @ v, v @ x.T, x @ y.T, x.T @ (x @ v)),
    "sums": lambda m, x, y, v: (x.sum(), x.sum(0), m.sum(y, 1, keepdims=True)),
    "shapes": lambda m, x, y, v: (x.T, x.reshape(10, 2), x[1:3, ::2], x[::-1], x[2], x[:, None]),
    "joins": lambda m, x, y, v: (m.concatenate([x, y]), m.stack([x, y], 1), m.hstack([x, x * v])),
    "mean": lambda m, x, y, v: m.mean(x * x),
    "types": lambda m, x, y, v: (x * 3).astype("int32"),
    "dense in the end": lambda m, x, y, v: x + v,
    "without sparse": lambda m, x, y, v: m.exp(v),
}


@pytest.mark.parametrize("name", SPARSIFIED)
def test_sparsified(name):
    v = RNG.uniform(1, 2, 5).astype(F32)
    program = SPARSIFIED[name]
    wanted = program(jnp, jnp.asarray(MATRIX), jnp.asarray(OTHER), jnp.asarray(v))

    def run(x, y):
        return sparse.sparsify(lambda x, y, v: program(jnp, x, y, v))(x, y, v)

    # Elements stored in parts count as their sum.
    halves = bcoo(MATRIX) * 0.25 + bcoo(MATRIX) * 0.75
    for found in (
        run(bcoo(MATRIX), bcoo(OTHER, extra=1)),
        run(halves, sparse.BCSR.fromdense(OTHER)),
        namoo.jit(run)(bcoo(MATRIX, extra=2), bcoo(OTHER)),
    ):
        found = namoo.tree.leaves(found, is_leaf=lambda x: isinstance(x, sparse.BCOO))
        for a, b in zip(found, namoo.tree.leaves(wanted), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            close(a, b)


def test_sparsified_results_are_sparse():
    f = sparse.sparsify(lambda x, y: {"sum": jnp.sin(x) + y, "dense": x @ jnp.ones(5)})
    out = f(bcoo(MATRIX), bcoo(OTHER))
    assert isinstance(out["sum"], sparse.BCOO) and isinstance(out["dense"], namoo.Array)
    traced = sparse.sparsify(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 5)))
    close(namoo.jit(traced)(bcoo(MATRIX), 1), MATRIX[1:3])


@pytest.mark.parametrize("fun", [jnp.exp, jnp.max, lambda x: x**-1, lambda x: 1 / x])
def test_what_is_not_sparse_is_refused(fun):
    with pytest.raises(NotImplementedError, match="todense"):
        sparse.sparsify(fun)(bcoo(MATRIX))
    with pytest.raises(Exception):  # noqa: B017 - JAX's own types vary
        jaxs.sparsify(lambda x: jax.numpy.exp(x))(jaxs.BCOO.fromdense(jax.numpy.asarray(MATRIX)))


def test_derivatives_by_sparse_arrays():
    v = RNG.normal(size=5).astype(F32)

    def loss(L, m, v):
        return L.numpy.sum(L.numpy.sin(m @ v))

    ours = sparse.grad(lambda m, v: loss(namoo, m, v), argnums=(0, 1))(bcoo(MATRIX), v)
    mat = jaxs.BCOO.fromdense(jax.numpy.asarray(MATRIX))
    theirs = jaxs.grad(lambda m, v: loss(jax, m, v), argnums=(0, 1))(mat, v)
    close(ours[0], theirs[0].todense())
    close(ours[1], theirs[1])
    assert isinstance(ours[0], sparse.BCOO) and ours[0].nse == mat.nse
    rows = sparse.BCSR.fromdense(MATRIX)
    (value, aux), slope = sparse.value_and_grad(
        lambda m, v: (loss(namoo, m, v), m.nse), has_aux=True
    )(rows, v)
    assert isinstance(slope, sparse.BCSR) and aux == mat.nse
    close(slope, theirs[0].todense())
    close(value, loss(jax, mat, v))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_random_arrays(layout):
    m = sparse.random_bcoo(
        namoo.random.key(0), (4, 3, 5), nse=0.5, n_batch=layout[0], n_dense=layout[1]
    )
    sizes = m.shape[m.n_batch : m.n_batch + m.n_sparse]
    assert m.nse == int(0.5 * np.prod(sizes))
    assert (m.n_batch, m.n_dense, m.unique_indices) == (*layout, True)
    flat = np.asarray(m.indices).reshape(-1, m.nse, m.n_sparse)
    assert all(len({tuple(row) for row in one}) == m.nse for one in flat)
    assert np.count_nonzero(m.todense()) == m.data.size


def test_refusals():
    m = bcoo(MATRIX)
    with pytest.raises(ValueError, match="length 1"):
        sparse.bcoo_squeeze(m, dimensions=(0,))
    with pytest.raises(TypeError, match="within the shape"):
        sparse.bcoo_slice(m, start_indices=(0, 0), limit_indices=(9, 1))
    with pytest.raises(TypeError, match="larger than"):
        sparse.bcoo_dynamic_slice(m, (0, 0), (9, 1))
    with pytest.raises(ValueError, match="kinds of axes"):
        sparse.bcoo_concatenate([m, bcoo(MATRIX, (1, 0))], dimension=0)
    with pytest.raises(ValueError, match="must agree"):
        sparse.bcoo_concatenate([m, m.T], dimension=0)
    with pytest.raises(ValueError, match="in order"):
        sparse.bcoo_broadcast_in_dim(m, shape=(4, 5), broadcast_dimensions=(1, 0))
    with pytest.raises(ValueError, match="do not fit"):
        sparse.BCSR((m.data, m.indices[:, 1], jnp.zeros(3, int)), shape=m.shape)
    with pytest.raises(ValueError, match="two are"):
        sparse.bcsr_fromdense(jnp.ones(3))


OPERATORS = {
    "index": lambda m: m[1],
    "slice": lambda m: m[1:, ::2],
    "new axis": lambda m: m[None],
    "abs": lambda m: abs(m),
    "power": lambda m: m**2,
    "plus": lambda m: +m,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR], ids=["BCOO", "BCSR"])
def test_operators(name, kind):
    fun, m = OPERATORS[name], kind.fromdense(MATRIX)
    if kind is sparse.BCSR and name not in ("index", "slice", "new axis"):
        fun = sparse.sparsify(fun, use_tracer=True)
    with namoo.numpy_rank_promotion("raise"):
        close(fun(m), fun(MATRIX))


def test_sparse_arrays_have_a_common_class():
    for kind, theirs in ((sparse.BCOO, jaxs.BCOO), (sparse.BCSR, jaxs.BCSR)):
        m = kind.fromdense(MATRIX)
        assert isinstance(m, sparse.JAXSparse) and issubclass(theirs, jaxs.JAXSparse)
        assert m.block_until_ready() is m
        assert (len(m), m.ndim, m.size) == (4, 2, 20)
        assert repr(m) == repr(theirs.fromdense(jax.numpy.asarray(MATRIX)))
        assert namoo.jit(lambda m: (repr(m), m.todense())[1])(m).shape == (4, 5)


def test_linear_operations_keep_what_is_stored():
    twice = sparse.BCOO((jnp.array([1 + 2j, 3j]), jnp.array([[1], [1]])), shape=(3,))
    for fun in (lax.real, lax.imag, lax.neg):
        out = sparse.sparsify(fun)(twice)
        assert out.nse == 2
        close(out, fun(twice.todense()))
    close(sparse.sparsify(lax.bessel_i1e)(bcoo(MATRIX)), lax.bessel_i1e(MATRIX))
