"""`scipy.linalg` against real JAX: values, types, derivatives, errors."""

import warnings

import jax
import numpy as np
import pytest
import scipy.linalg

import namoo
import namoo.numpy as jnp
import namoo.scipy.linalg as linalg
from scipy_oracle import Case, Table, check_derivatives, fail_alike, normal

A, B = normal(3, 3) + 3 * np.eye(3, dtype="f"), normal(3, 3, seed=1) + 4 * np.eye(3, dtype="f")
STACK = normal(2, 3, 3) + 3 * np.eye(3, dtype="f")
COMPLEX = normal(3, 3, dtype=np.complex64) + 3 * np.eye(3, dtype="F")
TALL, WIDE = normal(4, 3), normal(3, 4)
VECTOR, MATRIX = normal(3), normal(3, 2)
POSITIVE = A @ A.T + np.eye(3, dtype="f")
HERMITIAN = COMPLEX @ COMPLEX.conj().T + np.eye(3, dtype="f")
POSITIVES = STACK @ np.swapaxes(STACK, -1, -2)
CVECTOR = normal(3, dtype=np.complex64)
SCALES = np.array([0, 0.02, 0.3, 5], "f")[:, None, None]
HALVES = np.array([1, 2], np.float16)
INTEGERS = np.array([[4, 1], [1, 3]], np.int32)
SPIRAL = np.array([[1, 2, 0], [-2, 1, 1], [0, 0.5, -1]], "f")


def call(name, *static, **options):
    """A row that calls one function with arrays, then static arguments."""
    return lambda lib, *args: getattr(lib.scipy.linalg, name)(*args, *static, **options)


def sizes(name, **options):
    """The sizes of the results' elements: vectors that are unique up to a sign."""
    return lambda lib, *args: [
        lib.jnp.abs(x)
        for x in lib.jax.tree.leaves(getattr(lib.scipy.linalg, name)(*args, **options))
    ]


def symmetric(lib, a):
    return (a + lib.jnp.conj(a).mT) / 2


FACTORS = {
    "cholesky": Case(call("cholesky"), POSITIVE, diff=True, second=True),
    "cholesky lower": Case(call("cholesky", True), HERMITIAN, diff=True),
    "cholesky stack": Case(call("cholesky", lower=True), POSITIVES),
    "cholesky int": Case(call("cholesky"), INTEGERS),
    "cholesky fails": Case(call("cholesky"), -POSITIVE),
    "cho_factor": Case(lambda lib, a: lib.scipy.linalg.cho_factor(a, lower=True)[0], POSITIVE),
    "cho_solve": Case(
        lambda lib, a, b: lib.scipy.linalg.cho_solve(lib.scipy.linalg.cho_factor(a), b),
        POSITIVE,
        VECTOR,
        diff=True,
    ),
    "cho_solve lower": Case(
        lambda lib, c, b: lib.scipy.linalg.cho_solve((c, True), b),
        np.tril(COMPLEX),
        MATRIX,
        diff=True,
    ),
    "cho_solve stack": Case(
        lambda lib, c, b: lib.scipy.linalg.cho_solve((c, False), b), STACK, MATRIX
    ),
    "lu": Case(call("lu"), A, diff=True, rtol=2e-4),
    "lu tall": Case(call("lu"), TALL, diff=True, rtol=2e-4),
    "lu wide": Case(call("lu"), WIDE, diff=True, rtol=2e-4),
    "lu complex": Case(call("lu"), COMPLEX),
    "lu int": Case(call("lu"), INTEGERS),
    **{
        f"lu_solve {trans}": Case(
            lambda lib, a, b, trans=trans: lib.scipy.linalg.lu_solve(
                lib.scipy.linalg.lu_factor(a), b, trans
            ),
            COMPLEX,
            MATRIX,
            diff=True,
            rtol=2e-4,
        )
        for trans in (0, 1, 2)
    },
    "lu_solve vector": Case(
        lambda lib, a, b: lib.scipy.linalg.lu_solve(lib.scipy.linalg.lu_factor(a), b), A, VECTOR
    ),
    "lu_solve stack": Case(
        lambda lib, a, b: lib.scipy.linalg.lu_solve(lib.scipy.linalg.lu_factor(a), b), STACK, MATRIX
    ),
    **{
        f"qr {mode} {shape}": Case(call("qr", mode=mode), x)
        for mode in ("full", "economic", "r")
        for shape, x in (("tall", TALL), ("wide", WIDE), ("complex", COMPLEX), ("int", INTEGERS))
    },
    "qr derivative": Case(call("qr", mode="economic"), TALL, diff=True, rtol=1e-3),
    "qr stack": Case(call("qr"), STACK),
    "qr pivoting": Case(call("qr", pivoting=True), TALL),
    "qr pivoting r": Case(call("qr", pivoting=True, mode="r"), WIDE),
    "qr_multiply": Case(call("qr_multiply"), TALL, normal(2, 4)),
    "qr_multiply left": Case(call("qr_multiply", "left"), TALL, MATRIX),
    "qr_multiply wide": Case(call("qr_multiply", "left"), WIDE, MATRIX),
    "qr_multiply conjugate": Case(call("qr_multiply", conjugate=True), COMPLEX, CVECTOR),
    "qr_multiply left conjugate": Case(
        call("qr_multiply", "left", conjugate=True), COMPLEX, normal(3, 2, dtype=np.complex64)
    ),
    "qr_multiply pivoting": Case(call("qr_multiply", pivoting=True), TALL, normal(2, 4)),
    "qr_multiply vector": Case(call("qr_multiply", "left"), TALL, VECTOR),
    "qr_multiply stack": Case(call("qr_multiply", "left", pivoting=True), A, STACK),
    "svd": Case(sizes("svd"), TALL, rtol=1e-4),
    "svd thin": Case(
        lambda lib, a: [
            (u * s[None]) @ v
            for u, s, v in [lib.scipy.linalg.svd(a, full_matrices=False)]
        ],
        COMPLEX,
        diff=True,
        rtol=1e-3,
    ),
    "svd values": Case(call("svd", compute_uv=False), STACK, diff=True, rtol=1e-4),
    "schur": Case(sizes("schur"), SPIRAL, rtol=1e-4),
    "schur complex": Case(sizes("schur", output="complex"), SPIRAL, rtol=1e-4),
    "schur stack": Case(sizes("schur"), STACK, rtol=1e-4),
    "rsf2csf": Case(
        lambda lib, a: [
            lib.jnp.tril(t, -1) for t, z in [lib.scipy.linalg.rsf2csf(*lib.scipy.linalg.schur(a))]
        ]
        + [
            z @ t @ lib.jnp.conj(z).mT
            for t, z in [lib.scipy.linalg.rsf2csf(*lib.scipy.linalg.schur(a))]
        ],
        np.stack([SPIRAL, SPIRAL.T]),
        rtol=1e-4,
    ),
    "rsf2csf one": Case(call("rsf2csf"), A[:1, :1], A[:1, :1]),
    "hessenberg": Case(call("hessenberg", calc_q=True), normal(4, 4), rtol=1e-4),
    "hessenberg stack": Case(call("hessenberg"), STACK),
    "hessenberg complex": Case(call("hessenberg", calc_q=True), COMPLEX),
    "hessenberg empty": Case(call("hessenberg", calc_q=True), np.zeros((0, 0), "f")),
    "polar tall": Case(call("polar"), TALL, rtol=1e-4),
    "polar stack": Case(call("polar"), STACK, rtol=1e-4),
    "polar complex": Case(call("polar"), COMPLEX, rtol=1e-4),
    "polar svd": Case(call("polar", method="svd"), TALL, diff=True, rtol=1e-3),
    "eigh": Case(sizes("eigh"), POSITIVE, rtol=1e-4),
    "eigh complex": Case(sizes("eigh", lower=False), HERMITIAN, rtol=1e-4),
    "eigh values": Case(call("eigh", eigvals_only=True), POSITIVES, diff=True, rtol=1e-3),
    "eigh asymmetric": Case(call("eigh", eigvals_only=True), A, rtol=1e-4),
    "eigh_tridiagonal vectors": Case(sizes("eigh_tridiagonal"), normal(5), normal(4), rtol=1e-3),
    "eigh_tridiagonal complex": Case(
        lambda lib, d, e: [
            w for w in lib.scipy.linalg.eigh_tridiagonal(d, e)[:1]
        ]
        + [(v * w) @ lib.jnp.conj(v).mT for w, v in [lib.scipy.linalg.eigh_tridiagonal(d, e)]],
        normal(4).astype("F"),
        normal(3, dtype=np.complex64),
        rtol=1e-3,
    ),
    "eigh_tridiagonal one": Case(call("eigh_tridiagonal"), normal(1), normal(0)),
}  # fmt: skip

SYSTEMS = {
    "inv": Case(call("inv"), STACK, diff=True, second=True),
    "det": Case(call("det"), STACK, diff=True),
    "solve": Case(call("solve"), A, VECTOR, diff=True, second=True),
    "solve sym": Case(call("solve", assume_a="sym"), A, MATRIX),
    "solve pos": Case(
        lambda lib, a, b: lib.scipy.linalg.solve(symmetric(lib, a), b, assume_a="pos"),
        POSITIVE,
        MATRIX,
        diff=True,
        second=True,
        rtol=1e-4,
    ),
    "solve pos lower": Case(
        lambda lib, a, b: lib.scipy.linalg.solve(symmetric(lib, a), b, True, assume_a="pos"),
        POSITIVE,
        VECTOR,
        diff=True,
        rtol=1e-4,
    ),
    "solve pos stack": Case(call("solve", assume_a="pos"), POSITIVES, normal(2, 3, 2)),
    "solve int": Case(call("solve"), INTEGERS, INTEGERS),
    "solve pos complex": Case(call("solve", assume_a="pos"), HERMITIAN, CVECTOR),
    **{
        f"solve_triangular {trans} {lower} {unit}": Case(
            call("solve_triangular", trans, lower, unit), COMPLEX, MATRIX, diff=True
        )
        for trans, lower, unit in [
            (0, False, False),
            ("T", False, True),
            ("C", True, False),
            (2, False, False),
            (1, True, True),
            ("N", True, False),
        ]
    },
    "solve_triangular vector": Case(call("solve_triangular", lower=True), A, VECTOR, diff=True),
    "solve_triangular stack": Case(call("solve_triangular"), STACK, MATRIX),
    "solve_triangular stack of right sides": Case(call("solve_triangular"), A, normal(2, 3, 2)),
    "solve_triangular int": Case(call("solve_triangular"), INTEGERS, INTEGERS[0]),
    "solve_sylvester": Case(call("solve_sylvester"), A, normal(2, 2), MATRIX, rtol=1e-4),
    "solve_sylvester complex": Case(call("solve_sylvester"), A, B, COMPLEX, rtol=1e-4),
    "solve_sylvester complex A": Case(call("solve_sylvester"), COMPLEX, B, A, rtol=1e-4),
    "solve_sylvester eigen": Case(call("solve_sylvester", method="eigen"), A, B, A, rtol=1e-4),
    "solve_sylvester stack": Case(call("solve_sylvester"), STACK, B, A, rtol=1e-4),
    "solve_sylvester singular": Case(call("solve_sylvester"), np.triu(A), -np.triu(A), A),
    "solve_sylvester int": Case(call("solve_sylvester"), INTEGERS, INTEGERS, INTEGERS),
    "vmap solve_triangular": Case(
        lambda lib, a, b: lib.jax.vmap(lib.scipy.linalg.solve_triangular, (None, 1), 1)(a, b),
        A,
        MATRIX,
    ),
}

FUNCTIONS = {
    "expm": Case(call("expm"), A, diff=True, second=True, rtol=1e-4),
    "expm scaled": Case(call("expm"), SCALES * A, diff=True, rtol=1e-3),
    "expm complex": Case(call("expm"), COMPLEX, rtol=1e-4),
    "expm triangular": Case(call("expm", upper_triangular=True), np.triu(A), rtol=1e-4),
    "expm stack": Case(call("expm"), STACK * np.array([[[0.1]], [[3]]], "f"), rtol=1e-3),
    "expm overflow": Case(call("expm", max_squarings=1), 100 * A),
    "expm of one": Case(call("expm"), A[:1, :1]),
    "expm empty": Case(call("expm"), A[:0, :0]),
    "expm_frechet": Case(call("expm_frechet"), A, B, rtol=1e-4),
    "sqrtm": Case(call("sqrtm"), POSITIVE, rtol=1e-4),
    "sqrtm indefinite": Case(call("sqrtm"), SPIRAL, rtol=1e-4),
    "sqrtm complex": Case(call("sqrtm"), COMPLEX, rtol=1e-4),
    "sqrtm zero": Case(call("sqrtm"), 0 * A),
    "sqrtm none": Case(call("sqrtm"), np.array([[0, 1], [0, 0]], "f")),
    "sqrtm int": Case(call("sqrtm"), INTEGERS, rtol=1e-4),
    "funm": Case(lambda lib, a: lib.scipy.linalg.funm(a, lib.jnp.sin), SPIRAL, rtol=1e-4),
    "funm error": Case(
        lambda lib, a: lib.scipy.linalg.funm(a, lib.jnp.exp, disp=False), A, rtol=1e-3
    ),
    "funm diagonal": Case(
        lambda lib, a: lib.scipy.linalg.funm(a, lib.jnp.exp, disp=False), np.eye(2, dtype="f")
    ),
}  # fmt: skip

STRUCTURED = {
    "block_diag": Case(call("block_diag"), A, VECTOR, np.float32(2), diff=True),
    "block_diag types": Case(
        call("block_diag"), INTEGERS, np.array([1, 2], np.float16), np.bool_(True)
    ),
    "block_diag none": Case(call("block_diag")),
    "toeplitz": Case(call("toeplitz"), VECTOR, diff=True, second=True),
    "toeplitz complex": Case(call("toeplitz"), CVECTOR, diff=True),
    "toeplitz row": Case(call("toeplitz"), VECTOR, normal(4), diff=True),
    "toeplitz stack": Case(call("toeplitz"), normal(2, 1, 3), normal(4, 2)),
    "toeplitz types": Case(call("toeplitz"), INTEGERS[0], normal(2)),
    "toeplitz int8": Case(call("toeplitz"), np.array([1, 2, 3], np.int8)),
    "toeplitz bool": Case(call("toeplitz"), np.array([True, False])),
    "toeplitz number": Case(call("toeplitz"), np.float32(2)),
    "toeplitz empty": Case(call("toeplitz"), np.zeros(0, "f"), VECTOR),
    "hankel": Case(call("hankel"), VECTOR, diff=True),
    "hankel row": Case(call("hankel"), VECTOR, normal(4), diff=True),
    "hankel stack": Case(call("hankel"), normal(2, 1, 3), normal(4, 2)),
    "hankel empty": Case(call("hankel"), np.zeros(0, "f"), np.zeros((2, 0), "f")),
    "circulant": Case(call("circulant"), normal(2, 3), diff=True),
    "circulant number": Case(call("circulant"), np.int32(2)),
    "circulant empty": Case(call("circulant"), np.zeros(0, "f")),
    **{
        f"convolution_matrix {mode} {n}": Case(call("convolution_matrix", n, mode), normal(2, 4))
        for mode in ("full", "same", "valid")
        for n in (1, 3, 4, 7)
    },
    "leslie": Case(call("leslie"), VECTOR, normal(2), diff=True),
    "leslie stack": Case(call("leslie"), normal(2, 3), INTEGERS[0]),
    "companion": Case(call("companion"), normal(2, 4), diff=True, rtol=1e-4),
    "companion int": Case(call("companion"), INTEGERS),
    "fiedler": Case(call("fiedler"), normal(2, 3), diff=True),
    "fiedler int": Case(call("fiedler"), INTEGERS),
    **{
        f"fiedler_companion {n}": Case(call("fiedler_companion"), 1 + np.abs(normal(2, n)))
        for n in (1, 2, 3, 4, 5, 8, 9)
    },
    "hilbert": Case(call("hilbert", 4)),
    "hilbert empty": Case(call("hilbert", 0)),
    "invhilbert": Case(call("invhilbert", 4), rtol=1e-4),
    **{
        f"{name} {kind}": Case(call(name, 5, kind), rtol=1e-4)
        for name in ("pascal", "invpascal")
        for kind in (None, "symmetric", "lower", "upper")
    },
    "helmert": Case(call("helmert", 4)),
    "helmert full": Case(call("helmert", 4, True)),
    "hadamard": Case(call("hadamard", 4)),
    "hadamard float": Case(call("hadamard", 2, dtype=np.float16)),
    "dft": Case(call("dft", 5)),
    "dft sqrtn": Case(call("dft", 5, "sqrtn")),
    "dft n": Case(call("dft", 4, scale="n", dtype=np.complex64)),
    "dft empty": Case(call("dft", 0)),
}
TABLES = {
    "factors": Table(FACTORS),
    "systems": Table(SYSTEMS),
    "functions": Table(FUNCTIONS),
    "structured": Table(STRUCTURED),
}


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, rows in TABLES.items() for name in rows]
)
def test_as_jax(table, name):
    TABLES[table].check(name)


ERRORS = {
    "cholesky not square": call("cholesky", TALL),
    "cholesky vector": call("cholesky", VECTOR),
    "cho_solve lengths": call("cho_solve", (A, True), normal(4)),
    "cho_solve not square": call("cho_solve", (TALL, True), VECTOR),
    "cho_solve scalar": call("cho_solve", (A, True), np.float32(1)),
    "lu_solve trans": call("lu_solve", (A, np.arange(3, dtype=np.int32)), VECTOR, 3),
    "lu_solve lengths": call("lu_solve", (A, np.arange(3, dtype=np.int32)), normal(4)),
    "lu vector": call("lu", VECTOR),
    "lu_factor vector": call("lu_factor", VECTOR),
    "qr mode": call("qr", A, mode="raw"),
    "qr vector": call("qr", VECTOR),
    "qr_multiply mode": call("qr_multiply", A, A, "up"),
    "qr_multiply lengths": call("qr_multiply", TALL, A),
    "qr_multiply left lengths": call("qr_multiply", TALL, TALL, "left"),
    "svd vector": call("svd", VECTOR),
    "schur output": call("schur", A, "both"),
    "schur int": call("schur", INTEGERS),
    "schur not square": call("schur", TALL),
    "rsf2csf not square": call("rsf2csf", TALL, A),
    "rsf2csf Z not square": call("rsf2csf", A, TALL),
    "rsf2csf sizes": call("rsf2csf", A, np.eye(2)),
    "hessenberg int": call("hessenberg", INTEGERS),
    "hessenberg not square": call("hessenberg", TALL),
    "polar vector": call("polar", VECTOR),
    "polar side": call("polar", A, "middle"),
    "polar method": call("polar", A, method="other"),
    "polar int": call("polar", INTEGERS),
    "eigh not square": call("eigh", TALL),
    "eigh_tridiagonal types": call("eigh_tridiagonal", VECTOR, INTEGERS[0]),
    "eigh_tridiagonal int": call("eigh_tridiagonal", INTEGERS[0], INTEGERS[0, :1]),
    "eigh_tridiagonal lengths": call("eigh_tridiagonal", VECTOR, VECTOR, eigvals_only=True),
    "eigh_tridiagonal select": call("eigh_tridiagonal", VECTOR, VECTOR[1:], select="b"),
    "eigh_tridiagonal range": call("eigh_tridiagonal", VECTOR, VECTOR[1:], select="i"),
    "eigh_tridiagonal empty range": call(
        "eigh_tridiagonal", VECTOR, VECTOR[1:], select="i", select_range=(2, 1)
    ),
    "solve assume_a": call("solve", A, VECTOR, assume_a="band"),
    "solve lengths": call("solve", A, normal(4)),
    "solve pos lengths": call("solve", A, normal(4), assume_a="pos"),
    "solve pos ranks": call("solve", STACK, VECTOR, assume_a="pos"),
    "solve_triangular trans": call("solve_triangular", A, VECTOR, 3),
    "solve_triangular lengths": call("solve_triangular", A, normal(4)),
    "solve_sylvester shapes": call("solve_sylvester", A, A, MATRIX),
    "solve_sylvester method": call("solve_sylvester", A, A, A, method="other"),
    "inv not square": call("inv", TALL),
    "det not square": call("det", TALL),
    "expm not square": call("expm", TALL),
    "expm float16": call("expm", A.astype(np.float16)),
    "expm list": call("expm", [[1.0]]),
    "expm_frechet shapes": call("expm_frechet", A, np.eye(2, dtype="f")),
    "expm_frechet not square": call("expm_frechet", A, TALL),
    "expm_frechet int": call("expm_frechet", INTEGERS, INTEGERS),
    "sqrtm not square": call("sqrtm", TALL),
    "funm stack": lambda lib: lib.scipy.linalg.funm(STACK, lib.jnp.sin),
    "funm not square": lambda lib: lib.scipy.linalg.funm(TALL, lib.jnp.sin),
    "block_diag stack": call("block_diag", STACK),
    "block_diag list": call("block_diag", [1.0]),
    "toeplitz list": call("toeplitz", [1, 2]),
    "toeplitz row list": call("toeplitz", VECTOR, [1, 2]),
    "hankel number": call("hankel", 1),
    "hankel row number": call("hankel", VECTOR, 1),
    "hankel list": call("hankel", [1.0]),
    "circulant list": call("circulant", [1.0]),
    "convolution_matrix n": call("convolution_matrix", VECTOR, 0),
    "convolution_matrix mode": call("convolution_matrix", VECTOR, 2, "other"),
    "convolution_matrix number": call("convolution_matrix", np.float32(1), 2),
    "convolution_matrix empty": call("convolution_matrix", VECTOR[:0], 2),
    "leslie short": call("leslie", VECTOR[:1], VECTOR[:0]),
    "leslie lengths": call("leslie", VECTOR, VECTOR),
    "companion short": call("companion", VECTOR[:1]),
    "fiedler list": call("fiedler", [1.0]),
    "fiedler_companion empty": call("fiedler_companion", VECTOR[:0]),
    "pascal kind": call("pascal", 3, "other"),
    "invpascal kind": call("invpascal", 3, "other"),
    "helmert n": call("helmert", 0),
    "hadamard n": call("hadamard", 3),
    "dft scale": call("dft", 3, "other"),
    "dft real": call("dft", 3, dtype=np.float32),
    "unknown keyword": call("expm", A, squarings=3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])


# What JAX does not compute, or cannot differentiate, against SciPy and finite differences.


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.03, 0.2, 0.4, 1.0, 4.0])
@pytest.mark.parametrize("x", [A, COMPLEX, STACK], ids=["real", "complex", "stack"])
def test_exponentials_of_double_precision(x, scale):
    x = (scale * x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    with namoo.enable_x64(True):
        found = np.asarray(linalg.expm(jnp.asarray(x)))
    wanted = scipy.linalg.expm(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, 1e-11, 1e-12 * np.abs(wanted).max())


def test_functions_of_double_precision():
    a, b, c = (x.astype(np.float64) for x in (POSITIVE, B, SPIRAL))
    with namoo.enable_x64(True):
        found = [
            linalg.sqrtm(jnp.asarray(c)),
            linalg.funm(jnp.asarray(c), jnp.exp),
            linalg.solve_sylvester(*map(jnp.asarray, (a, b, c))),
            linalg.polar(jnp.asarray(c))[1],
        ]
        found = [np.asarray(x) for x in found]
    wanted = [
        scipy.linalg.sqrtm(c.astype(complex)),
        scipy.linalg.expm(c),
        scipy.linalg.solve_sylvester(a, b, c),
        scipy.linalg.polar(c)[1],
    ]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, 1e-9, 1e-10)


def test_generalised_eigenvalues():
    a, b = (x.astype(np.float64) for x in (POSITIVE + A + A.T, POSITIVE))
    for kind in (1, 2, 3):
        for lower in (True, False):
            w, v = linalg.eigh(jnp.asarray(a), jnp.asarray(b), type=kind, lower=lower)
            wanted, vectors = scipy.linalg.eigh(a, b, type=kind)
            np.testing.assert_allclose(w, wanted, 1e-4)
            np.testing.assert_allclose(np.abs(v), np.abs(vectors), 1e-3, 1e-4)
    w = linalg.eigh(jnp.asarray(a), eigvals_only=True, eigvals=(1, 2))
    np.testing.assert_allclose(w, scipy.linalg.eigvalsh(a, subset_by_index=(1, 2)), 1e-4)


@pytest.mark.parametrize("method", ["qdwh", "svd"])
@pytest.mark.parametrize(("side", "x"), [("right", WIDE), ("left", TALL), ("left", A)])
def test_polar_of_any_shape(method, side, x):
    u, p = linalg.polar(jnp.asarray(x), side, method=method)
    wanted_u, wanted_p = scipy.linalg.polar(x, side)
    np.testing.assert_allclose(u, wanted_u, 1e-3, 1e-4)
    np.testing.assert_allclose(p, wanted_p, 1e-3, 1e-4)


SUBSETS = [
    {"select": "a"},
    {"select": "i", "select_range": (1, 3)},
    {"select": "v", "select_range": (-1, 1)},
]


@pytest.mark.parametrize("select", SUBSETS)
def test_some_tridiagonal_eigenvalues(select):
    d, e = normal(6), normal(5)
    w, v = linalg.eigh_tridiagonal(jnp.asarray(d), jnp.asarray(e), **select)
    wanted, vectors = scipy.linalg.eigh_tridiagonal(d, e, **select)
    np.testing.assert_allclose(w, wanted, 1e-4)
    np.testing.assert_allclose(np.abs(v), np.abs(vectors), 1e-3, 1e-4)


def _reconstruct(d, e):
    w, v = linalg.eigh_tridiagonal(d, e)
    return (v * jnp.sin(w)) @ jnp.conj(v).T


SMOOTH = {
    "sqrtm": (linalg.sqrtm, [POSITIVE]),
    "sqrtm stack": (linalg.sqrtm, [POSITIVES]),
    "sqrtm complex": (linalg.sqrtm, [HERMITIAN]),
    "funm": (lambda a: linalg.funm(a, jnp.sin), [A]),
    "funm close eigenvalues": (lambda a: linalg.funm(a, jnp.exp), [np.eye(3) + 1e-7 * A]),
    "solve_sylvester": (linalg.solve_sylvester, [A, B, COMPLEX]),
    "solve_sylvester real": (linalg.solve_sylvester, [A, normal(2, 2), MATRIX]),
    "solve_sylvester stack": (linalg.solve_sylvester, [STACK, B, A]),
    "solve_sylvester eigen": (lambda *x: linalg.solve_sylvester(*x, method="eigen"), [A, B, A]),
    "polar": (linalg.polar, [A]),
    "polar tall": (linalg.polar, [TALL]),
    "polar wide": (linalg.polar, [WIDE]),
    "polar left": (lambda a: linalg.polar(a, "left"), [TALL]),
    "polar complex": (linalg.polar, [COMPLEX]),
    "polar of the identity": (linalg.polar, [np.eye(3)]),
    "qr_multiply": (linalg.qr_multiply, [TALL, normal(2, 4)]),
    "eigh_tridiagonal": (
        lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), [normal(4), normal(3)]
    ),
    "eigh_tridiagonal vectors": (_reconstruct, [normal(4), normal(3)]),
    "eigh_tridiagonal complex": (
        lambda d, e: _reconstruct(d.astype(e.dtype), e), [normal(4), normal(3, dtype=np.complex64)]
    ),
    "solve pos": (
        lambda a, b: linalg.solve(a + a.T, b, assume_a="pos"), [POSITIVE, VECTOR]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_by_finite_differences(name):
    fun, args = SMOOTH[name]
    check_derivatives(fun, *args)


MAPPED = {
    "cholesky": (linalg.cholesky, [POSITIVES]),
    "cho_solve": (lambda c, b: linalg.cho_solve((c, True), b), [STACK, normal(2, 3)]),
    "lu": (linalg.lu, [STACK]),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, 1), [STACK, normal(2, 3)]),
    "qr_multiply": (linalg.qr_multiply, [STACK, normal(2, 4, 3)]),
    "solve pos": (lambda a, b: linalg.solve(a, b, assume_a="pos"), [POSITIVES, normal(2, 3)]),
    "solve_sylvester": (linalg.solve_sylvester, [STACK, POSITIVES, STACK]),
    "expm": (linalg.expm, [STACK]),
    "sqrtm": (linalg.sqrtm, [STACK]),
    "funm": (lambda a: linalg.funm(a, jnp.cos), [STACK]),
    "polar": (linalg.polar, [STACK]),
    "rsf2csf": (linalg.rsf2csf, [np.triu(STACK, -1), STACK]),
    "hessenberg": (lambda a: linalg.hessenberg(a, calc_q=True), [STACK]),
    "eigh": (lambda a: linalg.eigh(a, eigvals_only=True), [POSITIVES]),
    "eigh_tridiagonal": (
        lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True),
        [normal(2, 4), normal(2, 3)],
    ),
    "toeplitz": (linalg.toeplitz, [normal(2, 3), normal(2, 4)]),
    "fiedler_companion": (linalg.fiedler_companion, [1 + normal(2, 5) ** 2]),
    "block_diag": (linalg.block_diag, [STACK, normal(2, 3)]),
}


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_is_a_loop(name):
    fun, args = MAPPED[name]
    arrays = [jnp.asarray(x) for x in args]
    found = namoo.tree.leaves(namoo.jit(namoo.vmap(fun))(*arrays))
    loop = [namoo.tree.leaves(fun(*(x[i] for x in arrays))) for i in range(2)]
    for x, *each in zip(found, *loop, strict=True):
        np.testing.assert_allclose(x, np.stack(each), 1e-4, 1e-4)


def test_stacks_of_vectors_are_deprecated():
    b = jnp.asarray(normal(2, 3))
    calls = {
        "cho_solve": lambda: linalg.cho_solve((jnp.asarray(STACK), True), b),
        "lu_solve": lambda: linalg.lu_solve(linalg.lu_factor(jnp.asarray(STACK)), b),
        "solve_triangular": lambda: linalg.solve_triangular(jnp.asarray(STACK), b),
    }
    for name, call in calls.items():
        with pytest.warns(FutureWarning, match=name):
            found = call()
        assert found.shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        wanted = jax.scipy.linalg.solve_triangular(STACK, np.asarray(b))
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)


def test_sylvester_and_square_roots_have_one_result():
    """That of a program, eagerly too: what differs in rounding would grow."""
    solve, root = namoo.scipy.linalg.solve_sylvester, namoo.scipy.linalg.sqrtm
    for seed in range(4):
        rng = np.random.RandomState(seed)
        a, b, c = (jnp.asarray(rng.randn(12, 12).astype(np.float32)) for _ in range(3))
        np.testing.assert_array_equal(solve(a, b, c), namoo.jit(solve)(a, b, c))
        np.testing.assert_array_equal(root(a), namoo.jit(root)(a))
