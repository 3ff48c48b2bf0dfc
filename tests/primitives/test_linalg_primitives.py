"""Linear algebra against real JAX: values, types, derivatives, batches, degenerate matrices."""

import functools
from typing import Any

import jax
import jax.lax.linalg as theirs
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
from namoo import tree_util
from namoo.core.array import EagerArray, to_numpy
from namoo.lax import linalg as ours

rng = np.random.default_rng(7)


def normal(*shape):
    return rng.standard_normal(shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def positive(x):
    return x @ np.swapaxes(x, -1, -2).conj() + np.eye(x.shape[-1])


SQUARE, TALL, WIDE = normal(4, 4), normal(4, 3), normal(3, 4)
STACK = normal(2, 4, 4)
CSQUARE, CTALL = complex_normal(4, 4), complex_normal(4, 3)
SYMMETRIC, HERMITIAN = positive(SQUARE), positive(CSQUARE)
LOWER = np.tril(SQUARE) + 3 * np.eye(4)
PACKED, TAUS = np.linalg.qr(TALL, mode="raw")
PACKED = PACKED.T.copy()
CPACKED, CTAUS = np.linalg.qr(CTALL, mode="raw")
CPACKED = CPACKED.T.copy()
DIAGONALS = (normal(5), normal(5) + 4, normal(5), normal(5, 2))
COMPLEX_DIAGONALS = tuple(x + 1j * x[::-1] for x in DIAGONALS)
EIGVALS: dict[str, Any] = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
RIGHT = {"compute_left_eigenvectors": False, "enable_eigvec_derivs": True}
THIN = {"full_matrices": False}

# name of the function, operands, keywords
CASES = {
    "cholesky": ("cholesky", (SYMMETRIC,), {}),
    "cholesky stack": ("cholesky", (positive(STACK),), {}),
    "cholesky complex": ("cholesky", (HERMITIAN,), {}),
    "cholesky one triangle": ("cholesky", (SYMMETRIC,), {"symmetrize_input": False}),
    "eigh": ("eigh", (SYMMETRIC,), {}),
    "eigh stack": ("eigh", (STACK,), {}),
    "eigh upper": ("eigh", (SYMMETRIC,), {"symmetrize_input": False, "lower": False}),
    "eigh complex": ("eigh", (HERMITIAN,), {}),
    "eigvals": ("eig", (SQUARE,), EIGVALS),
    "eig": ("eig", (SQUARE,), {"enable_eigvec_derivs": True}),
    "eig right": ("eig", (STACK,), RIGHT),
    "eig complex": ("eig", (CSQUARE,), {"enable_eigvec_derivs": True}),
    "lu": ("lu", (SQUARE,), {}),
    "lu tall": ("lu", (TALL,), {}),
    "lu wide": ("lu", (WIDE,), {}),
    "lu stack": ("lu", (STACK,), {}),
    "lu complex": ("lu", (CSQUARE,), {}),
    "qr": ("qr", (SQUARE,), {}),
    "qr tall": ("qr", (TALL,), THIN),
    "qr tall full": ("qr", (TALL,), {}),
    "qr wide": ("qr", (WIDE,), THIN),
    "qr wide full": ("qr", (WIDE,), {}),
    "qr stack": ("qr", (normal(2, 5, 3),), {}),
    "qr complex": ("qr", (CTALL,), THIN),
    "qr complex full": ("qr", (CTALL,), {}),
    "qr pivoting": ("qr", (TALL,), {"pivoting": True, **THIN}),
    "svd": ("svd", (SQUARE,), {}),
    "svd tall": ("svd", (TALL,), THIN),
    "svd wide": ("svd", (WIDE,), THIN),
    "svd stack": ("svd", (STACK,), THIN),
    "svd complex": ("svd", (CTALL,), THIN),
    "svd values": ("svd", (TALL,), {"compute_uv": False}),
    "triangular_solve": ("triangular_solve", (LOWER, TALL), {"left_side": True, "lower": True}),
    "triangular_solve right": ("triangular_solve", (LOWER.T, WIDE), {}),
    "triangular_solve transposed": (
        "triangular_solve",
        (LOWER, TALL),
        {"left_side": True, "lower": True, "transpose_a": True},
    ),
    "triangular_solve unit": (
        "triangular_solve",
        (LOWER, WIDE),
        {"lower": True, "unit_diagonal": True},
    ),
    "triangular_solve adjoint": (
        "triangular_solve",
        (LOWER + 1j * LOWER, CTALL),
        {"left_side": True, "lower": True, "transpose_a": True, "conjugate_a": True},
    ),
    "triangular_solve conjugate": (
        "triangular_solve",
        (LOWER + 1j * LOWER, CTALL),
        {"left_side": True, "lower": True, "conjugate_a": True},
    ),
    "triangular_solve vector": ("triangular_solve", (LOWER, normal(4)), {"left_side": True}),
    "triangular_solve vectors": ("triangular_solve", (STACK, normal(2, 4)), {}),
    "tridiagonal_solve": ("tridiagonal_solve", DIAGONALS, {}),
    "tridiagonal_solve complex": ("tridiagonal_solve", COMPLEX_DIAGONALS, {}),
    "tridiagonal_solve stack": (
        "tridiagonal_solve",
        tuple(np.stack([x, x + 0.5]) for x in DIAGONALS),
        {},
    ),
}
VALUES_ONLY = {
    # JAX cannot differentiate this one.
    "qr pivoting stack": ("qr", (STACK,), {"pivoting": True}),
    "eigh complex stack": ("eigh", (positive(complex_normal(2, 3, 3)),), {}),
    "svd tall full": ("svd", (TALL,), {}),
    "svd QR": ("svd", (TALL,), {"algorithm": "QR"}),
    "schur": ("schur", (SQUARE,), {}),
    "schur stack": ("schur", (STACK,), {"compute_schur_vectors": False}),
    "schur complex": ("schur", (CSQUARE,), {}),
    "hessenberg": ("hessenberg", (SQUARE,), {}),
    "hessenberg complex": ("hessenberg", (complex_normal(2, 4, 4),), {}),
    "tridiagonal": ("tridiagonal", (SYMMETRIC,), {}),
    "tridiagonal upper": ("tridiagonal", (positive(STACK),), {"lower": False}),
    "tridiagonal complex": ("tridiagonal", (HERMITIAN,), {}),
    "householder_product": ("householder_product", (PACKED, TAUS), {}),
    "householder_product complex": ("householder_product", (CPACKED, CTAUS), {}),
    "ormqr": ("ormqr", (PACKED, TAUS, SQUARE), {}),
    "ormqr right": ("ormqr", (PACKED, TAUS, SQUARE), {"left": False, "transpose": True}),
    "ormqr complex": ("ormqr", (CPACKED, CTAUS, CSQUARE), {"transpose": True}),
    "ormqr fewer": ("ormqr", (PACKED, TAUS[:2], TALL), {}),
    "symmetric_product": ("symmetric_product", (TALL, SQUARE), {"alpha": 2.0, "beta": 0.5}),
    "symmetric_product symmetrized": (
        "symmetric_product",
        (STACK, STACK),
        {"beta": 0.5, "symmetrize_output": True},
    ),
    "cholesky_update": ("cholesky_update", (LOWER.T, normal(4)), {}),
    "perturbed": (
        "tridiagonal_solve",
        (np.zeros(3), np.array([1.0, 0, 5]), np.zeros(3), np.ones((3, 1))),
        {"perturb_singular": True},
    ),
    "perturbed coupled": (
        "tridiagonal_solve",
        (np.ones(2), np.ones(2), np.ones(2), np.array([[1.0], [2.0]])),
        {"perturb_singular": True},
    ),
}
every_case = pytest.mark.parametrize("case", [*CASES, *VALUES_ONLY])
differentiable = pytest.mark.parametrize("case", CASES)


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with namoo.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def functions(case):
    """Our function and JAX's, of the operands of the case, and these."""
    name, args, params = (CASES | VALUES_ONLY)[case]

    def of(module, lax):
        given = dict(params)
        if "algorithm" in given:
            given["algorithm"] = module.SvdAlgorithm(given["algorithm"])

        def run(*xs):
            outs = leaves(getattr(module, name)(*xs, **given))
            return [
                _with_sign(lax, x, axis) if axis and x.ndim > 1 else x
                for x, axis in zip(outs, FREE_SIGNS.get(name, [0] * 3), strict=False)
            ]

        return run

    return of(ours, namoo.lax), of(theirs, jax.lax), args


# Where the sign of each column (-2) or row (-1) of a result is a matter of rounding.
FREE_SIGNS = {"eigh": [-2, 0], "eig": [0, -2, -2], "svd": [-2, 0, -1], "schur": [0, 0]}


def _with_sign(lax, x, axis):
    """The vectors with the sign that makes their first component positive."""
    first = lax.slice_in_dim(x, 0, 1, axis=x.ndim + axis)
    part = lax.real(first) if x.dtype.kind == "c" else first
    sign = lax.stop_gradient(lax.convert_element_type(lax.sign(part), x.dtype))
    return lax.mul(x, lax.broadcast_in_dim(sign, x.shape, range(x.ndim)))


def leaves(tree):
    return list(tree) if isinstance(tree, (list, tuple)) else [tree]


def single(x):
    return x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)


def close(found, wanted, rtol=1e-9, atol=None):
    """Equal in type and shape, and close relative to the largest element."""
    found, wanted = to_numpy(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if found.dtype.kind in "fc":
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale + (atol or 0))
    else:
        np.testing.assert_array_equal(found, wanted)


def all_close(found, wanted, **tolerance):
    found, wanted = tree_util.tree_leaves(found), jax.tree.leaves(wanted)
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        close(x, y, **tolerance)


@every_case
@in_x64
def test_values_in_double_precision(case):
    mine, jaxs, args = functions(case)
    found, wanted = mine(*args), jaxs(*args)
    all_close(found, wanted)


@every_case
def test_values_in_single_precision(case):
    mine, jaxs, args = functions(case)
    args = [single(x) for x in args]
    found = mine(*args)
    if case.startswith(("schur", "perturbed")):  # not unique, or a matter of the precision
        all_close(found, jaxs(*args), rtol=2e-4)
        return
    with namoo.enable_x64(True):
        exact = mine(*(x.astype(np.result_type(x, np.float64)) for x in args))
    for x, y, aval in zip(found, exact, jax.eval_shape(jaxs, *args), strict=True):
        assert (x.shape, x.dtype) == (aval.shape, aval.dtype)
        close(x, to_numpy(y).astype(x.dtype), rtol=2e-4)


def only_inexact(fun):
    """The function without its integer results."""
    return lambda *xs: [x for x in fun(*xs) if np.dtype(x.dtype).kind in "fc"]


def directions(args, seed):
    """Random tangents for the operands."""
    r = np.random.default_rng(seed)
    imaginary = {"c": 1j, "f": 0}
    return tuple(
        (r.standard_normal(x.shape) + imaginary[x.dtype.kind] * r.standard_normal(x.shape))
        for x in args
    )


@differentiable
@in_x64
def test_jvp_and_vjp(case):
    mine, jaxs, args = functions(case)
    mine, jaxs = only_inexact(mine), only_inexact(jaxs)
    ts = directions(args, 0)
    outs, tangents = namoo.jvp(mine, args, ts)
    cts = list(directions([to_numpy(x) for x in outs], 1))
    _, pull = namoo.vjp(mine, *args)

    @jax.jit
    def wanted(args, ts, cts):
        return jax.jvp(jaxs, args, ts)[1], jax.vjp(jaxs, *args)[1](cts)

    all_close([tangents, pull(cts)], wanted(args, ts, cts), rtol=1e-8)


SECOND_ORDER = [
    "cholesky",
    "eigh",
    "eig right",
    "lu tall",
    "qr tall full",
    "qr wide",
    "svd tall",
    "svd values",
    "triangular_solve transposed",
    "tridiagonal_solve",
]


@pytest.mark.parametrize("case", SECOND_ORDER)
@in_x64
def test_second_derivatives(case):
    """Reverse over forward mode: the pullback of the tangents in one direction."""
    mine, jaxs, args = functions(case)
    ts = directions(args, 2)
    outs, pull = namoo.vjp(lambda *xs: namoo.jvp(only_inexact(mine), xs, ts)[1], *args)
    cts = list(directions([to_numpy(x) for x in outs], 3))

    def wanted(args, cts):
        return jax.vjp(lambda *xs: jax.jvp(only_inexact(jaxs), xs, ts)[1], *args)[1](cts)

    if case != "lu tall":  # whose rule in JAX needs concrete pivots
        wanted = jax.jit(wanted)
    all_close(pull(cts), wanted(args, cts), rtol=1e-7)


@in_x64
def test_second_derivative_of_eigenvalues_needs_no_permission():
    """JAX asks for enable_eigvec_derivs; eigenvalues do not depend on how vectors are scaled."""

    def largest(x):
        (w,) = ours.eig(x, **EIGVALS)
        return namoo.lax.real(w)

    def slope(x):
        return namoo.jvp(largest, (x,), (SYMMETRIC,))[1]

    step = 1e-5
    _, found = namoo.jvp(slope, (SQUARE,), (LOWER,))
    up, down = (to_numpy(slope(SQUARE + h * LOWER)) for h in (step, -step))
    np.testing.assert_allclose(to_numpy(found), (up - down) / (2 * step), rtol=1e-5)


@every_case
@in_x64
def test_vmap_is_a_loop(case):
    mine, _, args = functions(case)
    examples = [[x * (1 + k / 8) for x in args] for k in range(3)]
    places = [x.ndim if i % 2 else 0 for i, x in enumerate(args)]
    stacked = [np.stack([e[i] for e in examples], axis=places[i]) for i in range(len(args))]
    outs = namoo.vmap(mine, in_axes=tuple(places))(*stacked)
    for k, example in enumerate(examples):
        for out, wanted in zip(outs, mine(*example), strict=True):
            close(to_numpy(out)[k], to_numpy(wanted), rtol=1e-8)


@in_x64
def test_one_triangular_matrix_for_many_right_sides_is_one_solve():
    """The mapped axis becomes columns: the program has one solve of a bigger right side."""
    bs = normal(7, 4, 3)
    for left, b in ((True, bs), (False, np.swapaxes(bs, 1, 2))):
        f = namoo.vmap(
            lambda x, left=left: ours.triangular_solve(LOWER, x, left_side=left, lower=True)
        )
        text = str(namoo.make_jaxpr(f)(b))
        assert text.count("triangular_solve[") == 1
        assert ("f64[4,21]" if left else "f64[21,4]") in text
        wanted = [jax.lax.linalg.triangular_solve(LOWER, x, left_side=left, lower=True) for x in b]
        close(f(b), np.stack(wanted))


@in_x64
def test_many_small_systems_agree_with_one_by_one():
    a, b = normal(50, 3, 3) + 3 * np.eye(3), normal(50, 3, 2)
    for lower in (True, False):
        for transpose_a in (True, False):
            params = {"left_side": True, "lower": lower, "transpose_a": transpose_a}
            found = to_numpy(ours.triangular_solve(a, b, **params))
            for k in range(50):
                close(found[k], to_numpy(ours.triangular_solve(a[k], b[k], **params)))


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), max_size=2),
    st.integers(0, 5),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
@in_x64
def test_factors_multiply_to_the_matrix(batch, m, n, is_complex, full):
    r = np.random.default_rng(m * 7 + n)
    x = r.standard_normal((*batch, m, n)) + is_complex * 1j * r.standard_normal((*batch, m, n))
    equal = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
    k = min(m, n)

    factors, _, order = (to_numpy(o) for o in ours.lu(x))
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    equal(lower @ np.triu(factors[..., :k, :]), np.take_along_axis(x, order[..., None], -2))

    q, upper, columns = (to_numpy(o) for o in ours.qr(x, pivoting=True, full_matrices=full))
    equal(q @ upper, np.take_along_axis(x, columns[..., None, :], -1))
    q, upper = (to_numpy(o) for o in ours.qr(x, full_matrices=full))
    equal(q @ upper, x)
    equal(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*batch, *[q.shape[-1]] * 2)))

    u, s, vh = (to_numpy(o) for o in ours.svd(x, full_matrices=full))
    equal((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    equal(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*batch, *[vh.shape[-2]] * 2)))

    square = x @ adjoint(x) + np.eye(m)
    factor = to_numpy(ours.cholesky(square))
    equal(factor @ adjoint(factor), square)
    v, w = (to_numpy(o) for o in ours.eigh(square))
    equal((v * w[..., None, :]) @ adjoint(v), square)
    t, q = (to_numpy(o) for o in ours.schur(square))
    equal(q @ t @ adjoint(q), square)
    b = np.ones((*batch, m, 2), x.dtype)
    solved = to_numpy(ours.triangular_solve(factor, b, left_side=True, lower=True))
    equal(factor @ solved, b)


SHAPES = [(0, 0), (2, 0, 0), (0, 3, 3), (1, 1), (3, 0), (0, 3), (2, 3)]
FACTORISATIONS = [
    "cholesky",
    "eigh",
    "eig",
    "lu",
    "qr",
    "svd",
    "schur",
    "hessenberg",
    "tridiagonal",
]


@pytest.mark.parametrize("name", FACTORISATIONS)
@pytest.mark.parametrize("shape", [*SHAPES, (3,), ()], ids=str)
def test_degenerate_shapes(name, shape):
    x = np.ones(shape, np.float32)
    if name == "hessenberg" and shape in ((0, 0), (2, 0, 0)):
        # JAX fails inside its compiler.
        assert ours.hessenberg(x)[1].shape == shape[:-2] + (0,)
        return
    try:
        wanted = leaves(jax.eval_shape(getattr(theirs, name), x))
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error), match=name):
            getattr(ours, name)(x)
        return
    found = leaves(getattr(ours, name)(x))
    assert [(o.shape, o.dtype) for o in found] == [(o.shape, o.dtype) for o in wanted]
    if shape == (1, 1):
        all_close(found, leaves(getattr(theirs, name)(x)), rtol=1e-6)


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_types(name):
    fun = getattr(ours, name)
    integers = np.eye(3, dtype=np.int32)
    if name in ("cholesky", "eigh"):
        assert all(o.dtype == np.float32 for o in leaves(fun(integers)))
    else:
        with pytest.raises(TypeError, match=f"{name} does not accept dtype int32"):
            fun(integers)
    narrow = leaves(fun(np.eye(3, dtype=ml_dtypes.bfloat16)))
    wide = leaves(fun(np.eye(3, dtype=np.float32)))
    for x, y in zip(narrow, wide, strict=True):
        assert x.dtype == (ml_dtypes.bfloat16 if y.dtype == np.float32 else y.dtype)
        np.testing.assert_allclose(
            to_numpy(x).astype(np.complex64), to_numpy(y).astype(np.complex64), rtol=1e-2
        )


def test_weak_types_pass_through():
    weak = EagerArray(np.eye(2, dtype=np.float32), True)
    assert all(o.weak_type for o in ours.lu(weak))
    assert not any(o.weak_type for o in ours.lu(np.eye(2, dtype=np.float32)))


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eig", "svd", "lu", "qr"])
def test_nan_stays_in_its_matrix(name):
    x = np.stack([SYMMETRIC, np.full((4, 4), np.nan), SYMMETRIC]).astype(np.float32)
    found = [to_numpy(o) for o in leaves(getattr(ours, name)(x))]
    wanted = [np.asarray(o) for o in leaves(getattr(theirs, name)(x))]
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(f), np.isnan(w))
        np.testing.assert_allclose(f, w, rtol=1e-3, atol=1e-3)


def test_cholesky_of_indefinite_matrices_is_nan():
    x = np.array([[[1, 2], [2, 1]], [[4, 0], [0, 9]]], np.float32)
    np.testing.assert_array_equal(
        to_numpy(ours.cholesky(x)), np.asarray(theirs.cholesky(jax.numpy.asarray(x)))
    )


def test_subsets_of_eigenvalues_and_singular_values():
    v, w = ours.eigh(SYMMETRIC.astype(np.float32))
    v1, w1 = ours.eigh(SYMMETRIC.astype(np.float32), subset_by_index=(1, 3))
    close(v1, to_numpy(v)[:, 1:3], rtol=1e-6)
    close(w1, to_numpy(w)[1:3], rtol=1e-6)
    u, s, vh = ours.svd(TALL.astype(np.float32), full_matrices=False)
    u1, s1, vh1 = ours.svd(TALL.astype(np.float32), full_matrices=False, subset_by_index=(0, 2))
    close(u1, to_numpy(u)[:, :2], rtol=1e-6)
    close(s1, to_numpy(s)[:2], rtol=1e-6)
    close(vh1, to_numpy(vh)[:2], rtol=1e-6)


@in_x64
def test_schur_sorts_what_is_selected_first():
    t, q = ours.schur(SQUARE, sort_eig_vals=True, select_callable=lambda w: w.real < 0)
    t, q = to_numpy(t), to_numpy(q)
    np.testing.assert_allclose(q @ t @ q.T, SQUARE, atol=1e-12)
    wanted = np.linalg.eigvals(SQUARE).real
    count = int((wanted < 0).sum())
    assert 0 < count < 4
    assert (np.linalg.eigvals(t[:count, :count]).real < 0).all()


@in_x64
def test_cholesky_update_is_the_factor_of_the_sum():
    r, w = np.linalg.cholesky(SYMMETRIC).T, normal(4)
    new = to_numpy(ours.cholesky_update(r, w))
    np.testing.assert_allclose(new.T @ new, r.T @ r + np.outer(w, w), atol=1e-12)
    many = namoo.vmap(ours.cholesky_update, (None, 0))(r, np.stack([w, 2 * w]))
    np.testing.assert_allclose(to_numpy(many)[0], new, atol=1e-12)


@pytest.mark.parametrize("pivots", [[2, 2, 4], [0, 1, 2], [3, 4, 3], [5]])
def test_pivots_to_permutation(pivots):
    pivots = np.array(pivots, np.int32)
    found = ours.lu_pivots_to_permutation(pivots, 6)
    close(found, theirs.lu_pivots_to_permutation(pivots, 6))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_qdwh(shape, is_complex):
    x = single(complex_normal(*shape) if is_complex else normal(*shape))
    all_close(ours.qdwh(x), theirs.qdwh(x), rtol=1e-5)


@in_x64
def test_qdwh_in_double_precision_and_padded():
    x = normal(4, 4)
    u, h, _, is_converged = ours.qdwh(x)
    wanted_u, _, wanted_v = np.linalg.svd(x)
    np.testing.assert_allclose(to_numpy(u), wanted_u @ wanted_v, atol=1e-13)
    np.testing.assert_allclose(to_numpy(u) @ to_numpy(h), x, atol=1e-13)
    assert to_numpy(is_converged)
    u, h, *_ = namoo.jit(lambda x: ours.qdwh(x, dynamic_shape=(3, 2)))(x)
    inner = ours.qdwh(x[:3, :2])
    np.testing.assert_allclose(to_numpy(u)[:3, :2], to_numpy(inner[0]), atol=1e-12)
    assert not to_numpy(u)[3:].any() and not to_numpy(h)[2:].any()


def test_qdwh_stops_where_it_is_told():
    x = single(normal(3, 3))
    for limit in (0, 2):
        _, _, count, is_converged = ours.qdwh(x, max_iterations=limit)
        assert to_numpy(count) == limit and not to_numpy(is_converged)


F32 = np.float32
WRONG = {
    "solve: not square": (
        "triangular_solve",
        [(3, 4), (4, 3)],
        {},
        r"square matrix, got shape \(3, 4\)",
    ),
    "solve: rows": (
        "triangular_solve",
        [(3, 3), (4, 4)],
        {"left_side": True},
        r"\(3, 3\) and \(4, 4\)",
    ),
    "solve: ranks": (
        "triangular_solve",
        [(3, 3), (5, 3, 4)],
        {"left_side": True},
        "number of batch dimensions",
    ),
    "solve: batches": (
        "triangular_solve",
        [(2, 3, 3), (5, 3, 4)],
        {"left_side": True},
        r"\(2, 3, 3\), \(5, 3, 4\)",
    ),
    "solve: vector": ("triangular_solve", [(3,), (3,)], {}, "rank at least 2"),
    "solve: scalar": ("triangular_solve", [(3, 3), ()], {}, "rank at least 2"),
    "tridiagonal: vector": ("tridiagonal_solve", [(3,)] * 4, {}, "rank at least 2"),
    "tridiagonal: rows": ("tridiagonal_solve", [(3,)] * 3 + [(4, 2)], {}, r"\(4, 2\) and \(3,\)"),
    "tridiagonal: lengths": (
        "tridiagonal_solve",
        [(3,), (4,), (3,), (4, 2)],
        {},
        "same shape",
    ),
    "householder: wide": ("householder_product", [(3, 4), (3,)], {}, r"\(3, 4\)"),
    "householder: taus": ("householder_product", [(4, 3), (4,)], {}, r"\(4,\)"),
    "ormqr: rows": ("ormqr", [(4, 3), (3,), (3, 4)], {}, r"\(4, 3\).*\(3, 4\)"),
    "product": ("symmetric_product", [(4, 3), (3, 3)], {}, r"\(4, 3\) and \(3, 3\)"),
    "update: size": ("cholesky_update", [(3, 3), (2,)], {}, r"\(3, 3\) and \(2,\)"),
    "update: stack": ("cholesky_update", [(2, 3, 3), (2, 3)], {}, "rank of exactly 2"),
    "svd: subset": (
        "svd",
        [(4, 3)],
        {"subset_by_index": (0, 2)},
        "full_matrices",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_as_jax_does(case):
    name, shapes, params, message = WRONG[case]
    args = [np.ones(shape, F32) for shape in shapes]
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(theirs, name)(*args, **params)
    with pytest.raises(caught.type, match=message):
        getattr(ours, name)(*args, **params)
    with pytest.raises(caught.type, match=message):
        namoo.jit(lambda *xs: getattr(ours, name)(*xs, **params))(*args)


def test_other_wrong_input():
    x = np.eye(3, dtype=F32)
    with pytest.raises(TypeError, match="same dtypes"):
        ours.triangular_solve(x, x.astype(np.complex64))
    with pytest.raises(TypeError, match="int32"):
        ours.lu_pivots_to_permutation(np.array([1.0], F32), 3)
    with pytest.raises(ValueError, match="permutation_size 2"):
        ours.lu_pivots_to_permutation(np.array([2, 2, 4], np.int32), 2)
    with pytest.raises(ValueError, match="subset_by_index"):
        ours.eigh(x, subset_by_index=(0, 9))
    with pytest.raises(NotImplementedError, match="JACOBI"):
        ours.eigh(x, implementation=ours.EighImplementation.JACOBI)
    with pytest.raises(NotImplementedError, match="POLAR"):
        ours.svd(x, algorithm=ours.SvdAlgorithm.POLAR)
    with pytest.raises(ValueError, match="LAPACK"):
        ours.eig(x, implementation=ours.EigImplementation.MAGMA)
    with pytest.raises(ValueError, match="select_callable"):
        ours.schur(x, sort_eig_vals=True)
    with pytest.raises(ValueError, match="rows as columns"):
        ours.qdwh(np.ones((2, 3), F32))


@pytest.mark.parametrize(
    ("fun", "x", "message"),
    [
        (ours.eig, SQUARE, "enable_eigvec_derivs=True"),
        (ours.svd, TALL, "full_matrices=False"),
        (ours.schur, SQUARE, "schur"),
        (ours.hessenberg, SQUARE, "hessenberg"),
        (ours.tridiagonal, SYMMETRIC, "tridiagonal"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_derivatives_that_do_not_exist(fun, x, message):
    x = x.astype(F32)
    with pytest.raises(NotImplementedError, match=message):
        namoo.jvp(fun, (x,), (x,))
    with pytest.raises(NotImplementedError):
        jax.jvp(getattr(theirs, fun.__name__), (x,), (x,))


def test_every_name_of_jax_is_here():
    missing = {n for n in dir(theirs) if not n.startswith("_")} - set(dir(ours))
    assert not missing


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        ("lu", (SQUARE,)),
        ("qr", (SQUARE,)),
        ("svd", (SQUARE,)),
        ("eig", (SQUARE,)),
        ("schur", (SQUARE,)),
        ("hessenberg", (SQUARE,)),
        ("householder_product", (PACKED, TAUS)),
        ("triangular_solve", (SQUARE, SQUARE)),
        ("tridiagonal_solve", DIAGONALS),
    ],
    ids=lambda p: p if isinstance(p, str) else "",
)
def test_programs_name_the_primitive_and_its_parameters_as_jax_does(fun, args):
    args = [single(x) for x in args]
    (mine,) = namoo.make_jaxpr(getattr(ours, fun))(*args).eqns
    (jaxs,) = jax.make_jaxpr(getattr(theirs, fun))(*args).eqns
    assert mine.primitive.name == jaxs.primitive.name
    assert mine.params == jaxs.params


def test_one_element_is_a_hermitian_matrix_by_its_real_part():
    packed, diagonal, *_ = ours.tridiagonal(np.array([[1 + 2j]], np.complex64))
    assert packed.tolist() == [[1]] and diagonal.tolist() == [1]
