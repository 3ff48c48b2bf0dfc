"""`jnp.linalg` against real JAX: values, dtypes, weak types, shapes, errors, derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_gradients as gradients
import numpy_oracle as oracle

# Square, wide, stacked, complex and integer matrices; and what is no matrix.
SPD = "(m @ m.T + jnp.eye(4, dtype=jnp.float32))"
HERMITIAN = "(c[:, :3] + c[:, :3].conj().T)"
STACK = "(z[:, :, :3] + 3 * jnp.eye(3, dtype=jnp.float32))"
SQUARE = ["m", SPD, STACK, "c[:, :3]", "i[:, :3]", "k[:, :3]", "jnp.ones((2, 2))"]
EMPTY = ["jnp.zeros((0, 0))", "jnp.zeros((2, 0, 0))"]
WRONG = ["f", "g", "s", "[[1.0]]"]
WEAK = "jnp.asarray(2.0)[None, None]"


def calls(names, arguments, template="jnp.linalg.{name}({args})"):
    return [template.format(name=name, args=args) for name in names for args in arguments]


DECOMPOSITIONS = [
    *calls(["cholesky"], [SPD, f"{SPD}, upper=True", "m", "m, symmetrize_input=False", WEAK]),
    *calls(["cholesky"], [*EMPTY, "i[:, :3]", *WRONG]),
    *calls(["eigh", "eigvalsh"], ["m", STACK, HERMITIAN, "i[:, :3]", *WRONG]),
    *calls(["eigh", "eigvalsh"], ["m, 'U'", "m, 'U', symmetrize_input=False", "m, 'X'", "m, None"]),
    "jnp.linalg.eigh(m, 'U', False)",
    "jnp.linalg.eigh(m, None, False)",
    *calls(["eigvals", "eig"], ["m", STACK, "c[:, :3]", "i[:, :3]", *WRONG]),
    *calls(["qr"], ["f", "f.T", "z", "c", "i", "g", "[[1.0]]", "jnp.zeros((0, 3))", WEAK]),
    *(f"jnp.linalg.qr({x}, {mode!r})" for x in ("f.T", "c") for mode in ("complete", "r", "raw")),
    "jnp.linalg.qr(f.T, 'full')",
    "jnp.linalg.qr(f, 'other')",
    *calls(["svdvals"], ["f", "z", "c", "i", "g", "[1.0]", "jnp.zeros((0, 3))"]),
    *calls(["svd"], ["m", "z, full_matrices=False", "z, compute_uv=False", "i, False", "g"]),
    f"jnp.linalg.svd({SPD}, hermitian=True)",
    f"jnp.linalg.svd({HERMITIAN}, hermitian=True, compute_uv=False)",
    "jnp.linalg.svd(f, subset_by_index=(0, 1))",
    *calls(["matrix_rank"], ["m", "f", "z", "i", "g", "s", "jnp.ones((3, 3))", "[1.0]"]),
    "jnp.linalg.matrix_rank(z, 0.5)",
    "jnp.linalg.matrix_rank(z, jnp.array([0.1, 0.9]))",
    "jnp.linalg.matrix_rank(m + m.T, hermitian=True)",
    "jnp.linalg.matrix_rank(m, tol=0.5)",
    "jnp.linalg.matrix_rank(m, 0.5, tol=0.5)",
]
SYSTEMS = [
    *calls(["inv"], [*SQUARE, *EMPTY, *WRONG, WEAK, "jnp.array([[2.0, 0.0], [0.0, 4.0]])"]),
    *calls(["det", "slogdet"], [*SQUARE, *EMPTY, *WRONG, "jnp.zeros((4, 4))", "m[:1, :1]"]),
    f"jnp.linalg.det({WEAK})",
    "jnp.linalg.slogdet(m, method='lu')",
    "jnp.linalg.slogdet(m, method='qr')",
    f"jnp.linalg.slogdet({STACK}, method='qr')",
    "jnp.linalg.slogdet(c[:, :3], method='qr')",
    "jnp.linalg.slogdet(m, method='other')",
    *calls(
        ["solve"],
        [
            "m, g",
            "m, f.T",
            f"{STACK}, f",
            f"{STACK}, z",
            f"{STACK}[0], z",
            f"{STACK}, f[:, 0]",
            "c[:, :3], f",
            "i[:, :3] + 9 * np.eye(3, dtype=np.int32), i",
            "m, c.T",
            "m, jnp.zeros((4, 0))",
            "jnp.zeros((0, 0)), jnp.zeros((0, 2))",
            "m, f",
            f"{STACK}, z[:, :, 0]",
            f"{STACK}, jnp.ones((3, 3, 2))",
            "m, 2.0",
            "f, g",
            "g, g",
            "[[1.0]], [1.0]",
        ],
    ),
    *calls(["pinv"], ["m", "f", "z", "c", "i", "jnp.ones((3, 2))", "jnp.zeros((0, 2))", "g"]),
    *calls(["pinv"], [f"{SPD}, hermitian=True", "f, 0.5", "f, rcond=0.5", "f, 0.5, rcond=0.5"]),
    "jnp.linalg.pinv(z, jnp.array([0.1, 0.9]))",
    "jnp.linalg.pinv(c[:, :3], hermitian=True)",
    *calls(
        ["lstsq"],
        [
            "f.T, g",
            "f.T, m",
            "f, f[:, 0]",
            "c.T, g",
            "i.T, j",
            "jnp.ones((3, 2)), jnp.ones(3)",
            "jnp.zeros((3, 2)), jnp.ones(3)",
            "jnp.zeros((0, 2)), jnp.zeros(0)",
            "jnp.zeros((3, 0)), jnp.ones(3)",
            "m, g, 0.3",
            "m, g, rcond=-1",
            "f, g",
            "z, g",
            "f, z",
            "f.T, s",
        ],
    ),
    *calls(["tensorinv"], ["jnp.reshape(m, (2, 2, 4))", "m, 1", "m, ind=0", "f", "z"]),
    *calls(["tensorsolve"], ["jnp.reshape(m, (2, 2, 4)), jnp.ones((2, 2))", "m, g", "f, g"]),
    "jnp.linalg.tensorsolve(jnp.reshape(m, (2, 4, 2)), jnp.ones((2, 2)), axes=(1,))",
    "jnp.linalg.tensorsolve(z, jnp.ones((2, 3)))",
]
NORMS = [
    *calls(["norm"], ["f", "g", "s", "2.0", "z", "c", "i", "t", "h", "b", "n", "e", "[1.0]"]),
    *(
        f"jnp.linalg.norm({x}, {ord})"
        for x in ("g", "c[0]", "i[0]", "p[0]")
        for ord in ("jnp.inf", "-jnp.inf", 0, 1, -1, 2, -2, 3, 0.5, "'fro'", "'inf'", "None")
    ),
    *(
        f"jnp.linalg.norm({x}, {ord})"
        for x in ("f", "c", "z")
        for ord in ("jnp.inf", "-jnp.inf", 1, -1, 2, -2, "'fro'", "'nuc'", 0, 3, "'inf'")
    ),
    *(
        f"jnp.linalg.norm(z, {ord}, axis={axis}, keepdims={keepdims})"
        for ord in (None, 1, "jnp.inf", 2, "'nuc'")
        for axis in ("(0, 2)", "(2, 1)", "(-1,)", "1")
        for keepdims in (False, True)
    ),
    *calls(["norm"], ["z, axis=(0, 1, 2)", "f, axis=(0, 0)", "f, axis=2", "f, keepdims=True"]),
    *calls(["norm"], ["z, keepdims=True", "jnp.zeros(0), jnp.inf", "jnp.zeros(0), -jnp.inf"]),
    *calls(["matrix_norm"], ["f", "z, ord=2", "z, keepdims=True, ord='nuc'", "g", "c, ord=1"]),
    *calls(["vector_norm"], ["f", "z, axis=(0, 2)", "z, keepdims=True", "s", "c, ord=1"]),
    *calls(["vector_norm"], ["z, axis=1, ord=jnp.inf, keepdims=True", "f, ord='fro'", "i"]),
    *(f"jnp.linalg.cond(m, {p})" for p in (None, 2, -2, 1, -1, "jnp.inf", "'fro'", "'nuc'", "'a'")),
    *calls(["cond"], ["z", "i[:, :3]", "f, 1", "g", "e", "c", "jnp.zeros((2, 2))", "[[1.0]]"]),
]
PRODUCTS = [
    *(f"jnp.linalg.matrix_power({x}, {n})" for x in ("m", STACK, "i[:, :3]") for n in range(-3, 8)),
    *calls(["matrix_power"], ["m, 2.0", "f, 2", "g, 2", "c[:, :3], 3", "t[:, :3], 2"]),
    *calls(
        ["multi_dot"],
        [
            "[f, m]",
            "[f.T, f, m]",
            "[g, m, g]",
            "[f, m, g]",
            "[g, m, m, f.T]",
            "[f, m, i.T, c]",
            "[jnp.ones((2, 9)), jnp.ones((9, 2)), jnp.ones((2, 9)), jnp.ones((9, 3))]",
            "[f, f]",
            "[f, g, m]",
            "[m, z, m]",
            "[]",
            "[[1.0], [2.0]]",
        ],
    ),
    *calls(["cross"], ["f[:, 0], f[:, 1]", "i.T, f[:, 0]", "f, f, axis=0", "g, g"]),
    *calls(["outer"], ["g, j", "f, g"]),
    *calls(["diagonal", "trace"], ["z", "z, offset=1", "f, offset=-1", "c", "k", "g", "[1.0]"]),
    "jnp.linalg.trace(t, dtype='int32')",
    *calls(["matrix_transpose"], ["z", "g"]),
    *calls(["tensordot"], ["z, z", "f, m, axes=1", "f, f, axes=((0,), (0,))"]),
    *calls(["vecdot"], ["f, g", "c, c", "z, f", "z, z, axis=0", "f, m[:, :3]"]),
    *calls(["matmul"], ["f, m", "z, m", "g, g", "f, f"]),
]
TABLES = {
    "decompositions": DECOMPOSITIONS,
    "systems": SYSTEMS,
    "norms": NORMS,
    "products": PRODUCTS,
}
# Eigenvectors may be turned; their definition is tested below.
SKIPPED = {text for text in DECOMPOSITIONS if text.startswith("jnp.linalg.eig(") and "[:" in text}
SKIPPED.add("jnp.linalg.eig(m)")
CASES = [(name, text) for name, table in TABLES.items() for text in table if text not in SKIPPED]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


@pytest.mark.parametrize("x", ["m", STACK, "c[:, :3]"])
def test_eigenvectors(x):
    a = oracle.eager_result(namoo, x)
    w, v = jnp.linalg.eig(a)
    np.testing.assert_allclose(a @ v, w[..., None, :] * v, atol=1e-5)
    np.testing.assert_allclose(jnp.linalg.norm(v, axis=-2), np.ones(w.shape), rtol=1e-5)


@settings(max_examples=30)
@given(st.data())
def test_any_shapes(data):
    """Products of the factors, for any shape and any number of batch axes."""
    batch = data.draw(st.lists(st.integers(0, 3), max_size=2))
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([np.float32, np.complex64]))
    x = gradients.normal(*batch, m, n, dtype=dtype)
    a = jnp.asarray(x)
    close = lambda p, q: np.testing.assert_allclose(p, q, rtol=1e-4, atol=1e-4)  # noqa: E731
    q, r = jnp.linalg.qr(a)
    close(q @ r, x)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    close((u * s[..., None, :].astype(dtype)) @ vh, x)
    p = jnp.linalg.pinv(a)
    close(a @ p @ a, x)
    gram = a @ jnp.matrix_transpose(a).conj() + jnp.eye(m, dtype=dtype)
    w, v = jnp.linalg.eigh(gram)
    close((v * w[..., None, :].astype(dtype)) @ jnp.matrix_transpose(v).conj(), gram)
    factor = jnp.linalg.cholesky(gram)
    close(factor @ jnp.matrix_transpose(factor).conj(), gram)
    b = jnp.asarray(gradients.normal(*batch, m, 2, dtype=dtype, seed=3))
    close(gram @ jnp.linalg.solve(gram, b), b)
    sign, size = jnp.linalg.slogdet(gram)
    close(sign * jnp.exp(size), np.linalg.det(np.asarray(gram)))


N, C = gradients.normal, lambda *shape: gradients.normal(*shape, dtype=np.complex64)
POSITIVE = N(4, 4) @ N(4, 4).T + np.eye(4, dtype=np.float32)
BATCH = N(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)
ZERO = np.zeros(3, np.float32)
TIED = np.array([[2.0, -2.0], [1.0, 0.0]], np.float32)
AT_CORNERS = {
    **{
        f"norm {ord} at 0": (lambda m, x, o=ord: m.linalg.norm(x, o), ZERO)
        for ord in (None, np.inf, -np.inf, 0, 1, 2, 3, 0.5)
    },
    "norm at one 0": (lambda m, x: m.linalg.norm(x, axis=1), np.diag([0, 1, 2]).astype(np.float32)),
    "norm p at one 0": (lambda m, x: m.linalg.norm(x, 3), np.array([0, 1, 2], np.float32)),
    "norm ties": (lambda m, x: m.linalg.norm(x, np.inf), TIED),
    "vector_norm ties": (lambda m, x: m.linalg.vector_norm(x, ord=np.inf), TIED),
    "norm complex at 0": (lambda m, x: m.linalg.norm(x), ZERO.astype(np.complex64)),
    "pinv of almost Hermitian": (lambda m, x: m.linalg.pinv(x, hermitian=True), C(3, 3)),
}


def test_the_derivative_of_pinv_makes_no_square_of_the_longer_side():
    long = np.ones((100_000, 2), "f") + np.arange(2, dtype="f")

    def program(a):
        return namoo.vjp(jnp.linalg.pinv, a)[1](a.T)

    for x in (long, long.T):
        eqns = namoo.make_jaxpr(program)(jnp.asarray(x)).eqns
        assert max(v.aval.size for eqn in eqns for v in eqn.outvars) <= 2 * x.size


CONDITIONED = {
    "inv": lambda a, b: jnp.linalg.inv(a),
    "solve": lambda a, b: jnp.linalg.solve(a, b),
    "det": lambda a, b: jnp.linalg.det(a),
    "slogdet": lambda a, b: jnp.linalg.slogdet(a),
    "tensorsolve": lambda a, b: jnp.linalg.tensorsolve(a, b[..., 0]),
    "sylvester": lambda a, b: namoo.scipy.linalg.solve_sylvester(a, -a.T, a @ a),
}


@pytest.mark.parametrize("name", CONDITIONED)
@pytest.mark.parametrize("shape", [(6, 6), (20, 6, 6), (100, 6, 6)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_one_algorithm_eagerly_and_compiled(name, shape, dtype):
    """Matrices so badly conditioned that two algorithms would agree in no digit."""
    if len(shape) > 2 and name in ("tensorsolve", "sylvester"):
        shape = (6, 6)
    left, right = (np.linalg.qr(gradients.normal(*shape, seed=i, dtype=dtype))[0] for i in (1, 2))
    a = jnp.asarray((left * np.logspace(0, -9, 6)) @ right, dtype)
    b = jnp.asarray(gradients.normal(*shape, seed=3, dtype=dtype))
    found, wanted = CONDITIONED[name](a, b), namoo.jit(CONDITIONED[name])(a, b)
    for x, y in zip(namoo.tree.leaves(found), namoo.tree.leaves(wanted), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-6 * abs(y).max())


@pytest.mark.parametrize("name", AT_CORNERS)
def test_derivatives_at_corners(name):
    """What JAX says where there is no derivative, or where it is a convention."""
    gradients.check(*AT_CORNERS[name], second=False)


def cofactors(a):
    """The derivative of the determinant, from its definition."""
    n = len(a)
    minor = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)  # noqa: E731
    rows = [[(-1) ** (i + j) * np.linalg.det(minor(i, j)) for j in range(n)] for i in range(n)]
    return np.array(rows)


@pytest.mark.parametrize("rank", range(5))
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_det_of_singular_matrices(rank, dtype):
    """The determinant is a polynomial: it has derivatives where there is no inverse."""
    left, right = gradients.normal(4, rank, dtype=dtype), gradients.normal(rank, 4, dtype=dtype)
    a, step = left @ right, 1e-6 * gradients.normal(4, 4, dtype=dtype, seed=5)
    a[:, 0] *= rank != 3  # a column of zeros, too: the first pivot vanishes
    holomorphic = np.dtype(dtype).kind == "c"
    with namoo.enable_x64(True):
        grad = namoo.grad(jnp.linalg.det, holomorphic=holomorphic)
        found, change = namoo.jvp(grad, (jnp.asarray(a),), (jnp.asarray(step),))
        found, change = np.asarray(found), np.asarray(change)
    np.testing.assert_allclose(found, cofactors(a), rtol=1e-9, atol=1e-9)
    wanted = (cofactors(a + step) - cofactors(a - step)) / 2
    np.testing.assert_allclose(change, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (4, 4)])
def test_mapped(shape):
    """Under vmap, jit and grad together, as one by one."""
    x = jnp.asarray(gradients.normal(5, *shape))
    fun = lambda a: jnp.linalg.det(a) + jnp.linalg.inv(a).sum() + jnp.linalg.slogdet(a)[1]  # noqa: E731
    found = namoo.jit(namoo.vmap(namoo.grad(fun)))(x)
    wanted = np.stack([namoo.grad(fun)(x[i]) for i in range(5)])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_repeated_singular_values():
    """Least squares and the pseudo-inverse do not depend on how singular vectors are chosen."""
    eye = jnp.eye(3)
    np.testing.assert_allclose(namoo.jacobian(jnp.linalg.pinv)(eye).sum(), -9.0, rtol=1e-5)
    jacobian = namoo.jacobian(lambda a: jnp.linalg.lstsq(a, jnp.ones(3))[0])(eye)
    np.testing.assert_allclose(jacobian.sum(), -9.0, rtol=1e-5)


def test_jit_needs_no_values():
    with pytest.raises(namoo.errors.TracerBoolConversionError):
        namoo.jit(lambda a: jnp.linalg.lstsq(a, a[:, 0], numpy_resid=True))(jnp.eye(3))
