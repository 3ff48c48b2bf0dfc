"""The small parts of `namoo.scipy` against real JAX and SciPy: `ndimage`, `interpolate`,
`integrate`, `cluster`, `spatial`, `sparse.linalg`, `optimize`."""

import jax.scipy.optimize
import numpy as np
import pytest
import scipy.ndimage
import scipy.spatial.transform

import namoo
import namoo.numpy as jnp
from namoo.scipy.interpolate import RegularGridInterpolator
from namoo.scipy.optimize import minimize
from namoo.scipy.sparse import linalg
from namoo.scipy.spatial.transform import Rotation, Slerp
from scipy_oracle import OURS, THEIRS, Case, Table, check_derivatives, fail_alike, normal

PLANE = normal(4, 5)
# Within, on, and far outside of the array.
ROW = np.array([0.2, 3.0, -0.7, 2.5, 9.3, -6.4, 3.4], np.float32)
COLUMN = np.array([1.5, 0.0, 4.6, -3.2, 2.2, 11.7, 4.0], np.float32)
INTEGERS = np.arange(20, dtype=np.int32).reshape(4, 5) ** 2


def at(order, mode="constant", **options):
    return lambda lib, x, *c: lib.scipy.ndimage.map_coordinates(x, c, order, mode, **options)


IMAGES = {
    **{
        f"{mode} {order}": Case(at(order, mode), PLANE, ROW, COLUMN, diff=(0,) if order else ())
        for mode in ("constant", "nearest", "wrap", "mirror", "reflect")
        for order in (0, 1)
    },
    "coordinates' derivative": Case(at(1), PLANE, ROW, COLUMN, diff=True),
    "cval": Case(at(1, cval=2.5), PLANE, ROW, COLUMN),
    "one axis": Case(at(1, "wrap"), normal(6), ROW),
    "three axes": Case(at(1, "mirror"), normal(3, 2, 4), ROW, COLUMN, ROW[::-1]),
    "of one element": Case(at(1, "mirror"), normal(1), ROW),
    "reflect one element": Case(at(1, "reflect"), normal(1), ROW),
    "integers": Case(at(1), INTEGERS, ROW, COLUMN),
    "integers, nearest": Case(at(0, "nearest", cval=3), INTEGERS, ROW, COLUMN),
    "integer coordinates": Case(at(1), PLANE, np.array([0, 3]), np.array([4, 1])),
    "integer coordinates, nearest": Case(at(0), PLANE, np.array([0, 3]), np.array([4, 7])),
    "booleans": Case(at(0), PLANE > 0, ROW, COLUMN),
    "halves": Case(at(1), PLANE.astype(np.float16), ROW, COLUMN, rtol=2e-3),
    "complex": Case(at(1), normal(4, 5, dtype=np.complex64), ROW, COLUMN),
    "broadcast": Case(at(1), PLANE, ROW[:, None], COLUMN[:3]),
    "one array": Case(
        lambda lib, x, c: lib.scipy.ndimage.map_coordinates(x, c, 1), PLANE, np.stack([ROW, COLUMN])
    ),
    "map_coordinates under vmap": Case(
        lambda lib, x, *c: lib.jax.vmap(lambda x: lib.scipy.ndimage.map_coordinates(x, c, 1))(x),
        normal(3, 4, 5),
        ROW,
        COLUMN,
    ),
}

GRID = (np.array([0, 1, 3, 4], np.float32), np.array([-1, 0, 0.5, 2, 2.2], np.float32))
POINTS = np.stack([ROW / 2, COLUMN / 3], -1)


def interpolate(method="linear", **options):
    def run(lib, x, y, values, points):
        make = lib.scipy.interpolate.RegularGridInterpolator
        return make((x, y), values, method, **options)(points)

    return run


GRIDS = {
    "linear": Case(interpolate(), *GRID, PLANE, POINTS, diff=(2,)),
    "nearest": Case(interpolate("nearest"), *GRID, PLANE, POINTS),
    "extrapolate": Case(interpolate(fill_value=None), *GRID, PLANE, POINTS, diff=(2, 3)),
    "extrapolate nearest": Case(interpolate("nearest", fill_value=None), *GRID, PLANE, POINTS),
    "fill": Case(interpolate(fill_value=7), *GRID, PLANE, POINTS),
    "more axes": Case(interpolate(), *GRID, normal(4, 5, 2, 3), POINTS),
    "integers": Case(interpolate(), *GRID, INTEGERS, POINTS),
    "halves": Case(interpolate(), *GRID, PLANE.astype(np.float16), POINTS, rtol=2e-3),
    "one point": Case(interpolate(), *GRID, PLANE, POINTS[0]),
    "stack of points": Case(interpolate(), *GRID, PLANE, POINTS[:6].reshape(2, 3, 2)),
    "tuple": Case(
        lambda lib, x, y, values, a, b: lib.scipy.interpolate.RegularGridInterpolator(
            (x, y), values, fill_value=None
        )((a, b)),
        *GRID,
        PLANE,
        ROW[:, None],
        COLUMN[:2],
    ),
    "other method": Case(
        lambda lib, x, y, values, xi: lib.scipy.interpolate.RegularGridInterpolator((x, y), values)(
            xi, method="nearest"
        ),
        *GRID,
        PLANE,
        POINTS,
    ),
    "as a tree": Case(
        lambda lib, x, y, values, xi: lib.jax.jit(lambda f, xi: f(xi))(
            lib.scipy.interpolate.RegularGridInterpolator((x, y), values), xi
        ),
        *GRID,
        PLANE,
        POINTS,
    ),
    "interpolation under vmap": Case(
        lambda lib, x, y, values, xi: lib.jax.vmap(
            lambda v: lib.scipy.interpolate.RegularGridInterpolator((x, y), v)(xi)
        )(values),
        *GRID,
        normal(3, 4, 5),
        POINTS,
    ),
    "trapezoid": Case(lambda lib, y: lib.scipy.integrate.trapezoid(y), PLANE, diff=True),
    "trapezoid at": Case(
        lambda lib, y, x: lib.scipy.integrate.trapezoid(y, x, axis=0), PLANE, normal(4), diff=True
    ),
    "trapezoid dx": Case(lambda lib, y: lib.scipy.integrate.trapezoid(y, dx=0.5), INTEGERS),
    "vq": Case(
        lambda lib, x, c: lib.scipy.cluster.vq.vq(x, c), normal(7, 3), normal(4, 3), diff=(0,)
    ),
    "vq of numbers": Case(
        lambda lib, x, c: lib.scipy.cluster.vq.vq(x, c), np.arange(5), np.array([1, 3])
    ),
}

QUATS = normal(5, 4)
RAW = QUATS / np.linalg.norm(QUATS, axis=-1, keepdims=True)
SIGNED = np.concatenate([QUATS, -np.eye(4, dtype="f")])
ANGLES = normal(4, 3)
VECTORS = normal(5, 3)


def rotation(method, *static, **options):
    """A method of the rotations of quaternions."""
    return lambda lib, q, *args: getattr(lib.scipy.spatial.transform.Rotation.from_quat(q), method)(
        *args, *static, **options
    )


def made(name, *before, **options):
    """The quaternions of a constructor."""
    return lambda lib, *args: (
        getattr(lib.scipy.spatial.transform.Rotation, name)(*before, *args, **options).quat
    )


LOCKED = np.array([[0, 0, 0, 1], [0, 0.6, 0, 0.8], [0.5, 0.5, 0.5, 0.5], [0.6, 0, 0.8, 0]], "f")
ROTATIONS = {
    **{
        f"from_euler {seq}": Case(made("from_euler", seq), ANGLES[:, : len(seq)])
        for seq in ("Y", "xyz", "YXY")
    },
    "from_euler degrees": Case(made("from_euler", "xyz", degrees=True), 100 * ANGLES),
    "from_euler number": Case(made("from_euler", "x"), np.float32(0.3)),
    "from_euler integers": Case(made("from_euler", "xy"), np.array([1, 2])),
    "from_matrix": Case(
        lambda lib, q: (
            lib.scipy.spatial.transform.Rotation.from_matrix(
                lib.scipy.spatial.transform.Rotation(q).as_matrix()
            ).quat
        ),
        np.concatenate([RAW, np.eye(4, dtype="f")]),
        rtol=1e-4,
    ),
    "from_matrix derivative": Case(made("from_matrix"), np.linalg.qr(normal(3, 3))[0], rtol=1e-4),
    "from_mrp": Case(made("from_mrp"), VECTORS),
    "from_quat": Case(made("from_quat"), QUATS),
    "from_rotvec": Case(made("from_rotvec"), VECTORS, diff=True),
    "from_rotvec small": Case(made("from_rotvec"), 1e-4 * VECTORS),
    "identity": Case(made("identity")),
    **{
        f"as_euler {seq}": Case(rotation("as_euler", seq), QUATS, rtol=1e-4)
        for seq in ("xyz", "YXY", "ZXY")
    },
    "as_euler degrees": Case(rotation("as_euler", "xyz", degrees=True), QUATS, rtol=1e-3),
    **{
        f"as_euler locked {seq}": Case(rotation("as_euler", seq), LOCKED, rtol=1e-3)
        for seq in ("ZXZ",)
    },
    "as_matrix": Case(rotation("as_matrix"), QUATS),
    "as_mrp": Case(rotation("as_mrp"), QUATS, rtol=1e-4),
    "as_rotvec": Case(rotation("as_rotvec"), QUATS, diff=True, rtol=1e-4),
    "as_rotvec small": Case(rotation("as_rotvec"), QUATS * np.array([1e-5, 1e-5, 1e-5, 1], "f")),
    "as_quat canonical": Case(rotation("as_quat", True), SIGNED),
    "as_quat scalar first": Case(rotation("as_quat", scalar_first=True), QUATS),
    "inv": Case(lambda lib, q: lib.scipy.spatial.transform.Rotation(q).inv().quat, RAW),
    "magnitude": Case(rotation("magnitude"), QUATS, rtol=1e-4),
    "mean": Case(
        lambda lib, q: lib.scipy.spatial.transform.Rotation.from_quat(q).mean().as_quat(True),
        QUATS,
        rtol=1e-4,
    ),
    "weighted mean": Case(
        lambda lib, q, w: lib.scipy.spatial.transform.Rotation(q).mean(w).as_quat(canonical=True),
        RAW,
        np.arange(1, 6, dtype="f"),
        rtol=1e-4,
    ),
    "product": Case(
        lambda lib, p, q: (
            (lib.scipy.spatial.transform.Rotation(p) * lib.scipy.spatial.transform.Rotation(q)).quat
        ),
        RAW,
        RAW[::-1],
    ),
    "apply": Case(rotation("apply"), QUATS, VECTORS, diff=True),
    "apply inverse": Case(rotation("apply", inverse=True), QUATS, VECTORS),
    "apply to integers": Case(rotation("apply"), QUATS, np.array([1, 0, 2])),
    "index": Case(lambda lib, q: lib.scipy.spatial.transform.Rotation(q)[1:3].quat, RAW),
    "concatenate": Case(
        lambda lib, q: (
            lib.scipy.spatial.transform.Rotation.concatenate(
                [lib.scipy.spatial.transform.Rotation(q)] * 2
            ).quat
        ),
        RAW,
    ),
    "slerp": Case(
        lambda lib, t, q, at: (
            lib.scipy.spatial.transform.Slerp.init(t, lib.scipy.spatial.transform.Rotation(q))(
                at
            ).quat
        ),
        np.array([0, 1, 1.5, 4, 5], "f"),
        RAW,
        np.array([0, 0.3, 1, 2.2, 5, 6], "f"),
        rtol=1e-4,
    ),
    "slerp at one time": Case(
        lambda lib, q, at: (
            lib.scipy.spatial.transform.Slerp.init(
                np.arange(5), lib.scipy.spatial.transform.Rotation(q)
            )(at).quat
        ),
        RAW,
        np.float32(2.3),
        rtol=1e-3,
    ),
    "rotations under vmap": Case(
        lambda lib, q, v: lib.jax.vmap(lambda r, v: r.apply(v))(
            lib.scipy.spatial.transform.Rotation(q), v
        ),
        RAW,
        VECTORS,
    ),
}

MATRIX = normal(6, 6) + 4 * np.eye(6, dtype="f")
POSITIVE = MATRIX @ MATRIX.T
HERMITIAN = normal(6, 6, dtype=np.complex64)
HERMITIAN = HERMITIAN @ HERMITIAN.conj().T + 4 * np.eye(6, dtype="f")
GENERAL = normal(6, 6, dtype=np.complex64) + 6 * np.eye(6, dtype="f")
RIGHT, CRIGHT = normal(6), normal(6, dtype=np.complex64)
PRECONDITIONER = np.diag(1 / np.diag(POSITIVE))


def solved(name, **options):
    return lambda lib, a, b: getattr(lib.scipy.sparse.linalg, name)(a, b, tol=1e-6, **options)[0]


def with_functions(name, **options):
    """The system as a function of a tree."""

    def run(lib, a, b):
        def matvec(tree):
            out = a @ lib.jnp.concatenate([tree["x"], tree["y"].ravel()])
            return {"x": out[:2], "y": out[2:].reshape(2, 2)}

        right = {"x": b[:2], "y": b[2:].reshape(2, 2)}
        return getattr(lib.scipy.sparse.linalg, name)(matvec, right, tol=1e-6, **options)[0]

    return run


# The size of a rounding error grows with the condition number; JAX's own differ, too.
LOOSE = {"rtol": 2e-3, "weak": False}
SPARSE = {
    "cg": Case(solved("cg"), POSITIVE, RIGHT, diff=(1,), **LOOSE),
    "cg complex": Case(solved("cg"), HERMITIAN, CRIGHT, **LOOSE),
    "cg function": Case(with_functions("cg"), POSITIVE, RIGHT, diff=(0, 1), **LOOSE),
    "cg preconditioned": Case(
        lambda lib, a, b, m: lib.scipy.sparse.linalg.cg(a, b, tol=1e-6, M=m)[0],
        POSITIVE,
        RIGHT,
        PRECONDITIONER,
        **LOOSE,
    ),
    "cg three steps": Case(solved("cg", maxiter=3), POSITIVE, RIGHT, **LOOSE),
    "bicgstab": Case(solved("bicgstab"), MATRIX, RIGHT, diff=True, **LOOSE),
    "weak types": Case(
        lambda lib, b: [
            getattr(lib.scipy.sparse.linalg, name)(lambda x: x, 1.0)[0]
            for name in ("cg", "bicgstab", "gmres")
        ],
        RIGHT,
    ),
    "bicgstab complex": Case(solved("bicgstab"), GENERAL, CRIGHT, **LOOSE),
    "bicgstab function": Case(with_functions("bicgstab"), MATRIX, RIGHT, diff=True, **LOOSE),
    **{
        f"gmres {method} {kind}": Case(
            solved("gmres", solve_method=method, **options), a, b, diff=diff, **LOOSE
        )
        for method, kind, a, b, diff, options in [
            ("batched", "plain", MATRIX, RIGHT, True, {}),
            ("incremental", "complex", GENERAL, CRIGHT, (), {}),
            ("batched", "restarted", MATRIX, RIGHT, (), {"restart": 3, "maxiter": 20}),
            ("incremental", "once", MATRIX, RIGHT, (), {"restart": 3, "maxiter": 1}),
        ]
    },
    "gmres function": Case(with_functions("gmres"), MATRIX, RIGHT, **LOOSE),
    "gmres of zeros": Case(
        lambda lib, a, b: lib.scipy.sparse.linalg.gmres(a, b), MATRIX, 0 * RIGHT, **LOOSE
    ),
    "cg under vmap": Case(
        lambda lib, a, b: lib.jax.vmap(lambda b: lib.scipy.sparse.linalg.cg(a, b, tol=1e-6)[0])(b),
        POSITIVE,
        normal(3, 6),
        **LOOSE,
    ),
}
TABLES = {
    "images": Table(IMAGES),
    "grids": Table(GRIDS),
    "rotations": Table(ROTATIONS),
    "sparse": Table(SPARSE),
}


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, rows in TABLES.items() for name in rows]
)
def test_as_jax(table, name):
    TABLES[table].check(name)


def transform(lib):
    return lib.scipy.spatial.transform


ERRORS = {
    "map_coordinates axes": lambda lib: lib.scipy.ndimage.map_coordinates(PLANE, [ROW], 1),
    "map_coordinates mode": lambda lib: at(1, "other")(lib, PLANE, ROW, COLUMN),
    "map_coordinates order": lambda lib: at(6)(lib, PLANE, ROW, COLUMN),
    "grid method": lambda lib: interpolate("cubic")(lib, *GRID, PLANE, POINTS),
    "grid call method": lambda lib: lib.scipy.interpolate.RegularGridInterpolator(GRID, PLANE)(
        POINTS, "cubic"
    ),
    "grid axes": lambda lib: lib.scipy.interpolate.RegularGridInterpolator(GRID * 2, PLANE),
    "grid list": lambda lib: lib.scipy.interpolate.RegularGridInterpolator(([0.0, 1.0],), ROW[:2]),
    "grid values list": lambda lib: lib.scipy.interpolate.RegularGridInterpolator(GRID, [1.0]),
    "grid fill": lambda lib: interpolate(fill_value=1j)(lib, *GRID, PLANE, POINTS),
    "grid points": lambda lib: interpolate()(lib, *GRID, PLANE, normal(2, 3)),
    "grid points list": lambda lib: interpolate()(lib, *GRID, PLANE, [1.0, 2.0]),
    "vq ranks": lambda lib: lib.scipy.cluster.vq.vq(PLANE, ROW),
    "vq rank": lambda lib: lib.scipy.cluster.vq.vq(PLANE[None], PLANE[None]),
    "vq list": lambda lib: lib.scipy.cluster.vq.vq([1.0], [1.0]),
    "vq empty": lambda lib: lib.scipy.cluster.vq.vq(PLANE, PLANE[:0]),
    "euler letters": lambda lib: made("from_euler", "abc")(lib, ANGLES),
    "euler four": lambda lib: made("from_euler", "xyzx")(lib, normal(4)),
    "euler none": lambda lib: made("from_euler", "")(lib, normal(0)),
    "euler repeated": lambda lib: made("from_euler", "xxy")(lib, ANGLES),
    "euler mixed": lambda lib: made("from_euler", "xYz")(lib, ANGLES),
    "euler lengths": lambda lib: made("from_euler", "xy")(lib, ANGLES),
    "as_euler two": lambda lib: rotation("as_euler", "xy")(lib, QUATS),
    "as_euler letters": lambda lib: rotation("as_euler", "abc")(lib, QUATS),
    "as_euler repeated": lambda lib: rotation("as_euler", "xxz")(lib, QUATS),
    "apply lengths": lambda lib: rotation("apply")(lib, QUATS, normal(4)),
    "single index": lambda lib: transform(lib).Rotation.from_quat(QUATS[0])[0],
    "single length": lambda lib: len(transform(lib).Rotation.from_quat(QUATS[0])),
    "mean weights": lambda lib: rotation("mean")(lib, QUATS, np.ones(2, "f")),
    "mean weights rank": lambda lib: rotation("mean")(lib, QUATS, np.ones((5, 1), "f")),
    "slerp type": lambda lib: transform(lib).Slerp.init(np.arange(5), QUATS),
    "slerp single": lambda lib: transform(lib).Slerp.init(
        np.arange(1), transform(lib).Rotation.from_quat(QUATS[0])
    ),
    "slerp times": lambda lib: transform(lib).Slerp.init(
        np.arange(3), transform(lib).Rotation.from_quat(QUATS)
    ),
    "slerp times rank": lambda lib: transform(lib).Slerp.init(
        np.ones((5, 1)), transform(lib).Rotation.from_quat(QUATS)
    ),
    "cg not square": lambda lib: lib.scipy.sparse.linalg.cg(MATRIX[:3], RIGHT),
    "cg no operator": lambda lib: lib.scipy.sparse.linalg.cg(3.0, RIGHT),
    "cg x0 structure": lambda lib: lib.scipy.sparse.linalg.cg(MATRIX, RIGHT, [RIGHT]),
    "gmres x0 structure": lambda lib: lib.scipy.sparse.linalg.gmres(MATRIX, RIGHT, (RIGHT,)),
    "gmres method": lambda lib: lib.scipy.sparse.linalg.gmres(MATRIX, RIGHT, solve_method="qr"),
    "bicgstab not square": lambda lib: lib.scipy.sparse.linalg.bicgstab(MATRIX[:, :3], RIGHT),
    "minimize method": lambda lib: lib.scipy.optimize.minimize(
        lambda x: x @ x, lib.jnp.ones(2), method="Newton"
    ),
    "minimize args": lambda lib: lib.scipy.optimize.minimize(
        lambda x, a: x @ x, lib.jnp.ones(2), args=1.0, method="BFGS"
    ),
    "minimize option": lambda lib: lib.scipy.optimize.minimize(
        lambda x: x @ x, lib.jnp.ones(2), method="BFGS", options={"speed": 1}
    ),
    "minimize without method": lambda lib: lib.scipy.optimize.minimize(
        lambda x: x @ x, lib.jnp.ones(2)
    ),
    "minimize integers": lambda lib: lib.scipy.optimize.minimize(
        lambda x: x @ x, lib.jnp.ones(2, int), method="BFGS"
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])


# Minimisation: the same minimum, and as many steps where JAX's search does not give up.

FUNCTIONS = {
    "rosenbrock": (
        lambda np, x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
        [-1.2, 1.0, 0.5],
    ),
    "eggholder": (
        lambda np, p: (
            -(p[1] + 47) * np.sin(np.sqrt(np.abs(p[0] / 2.0 + p[1] + 47.0)))
            - p[0] * np.sin(np.sqrt(np.abs(p[0] - (p[1] + 47.0))))
        ),
        [100.0, 100.0],
    ),
    "quartic": (lambda np, x: np.sum((x - 3.0) ** 4 + x), [0.0, 5.0, -2.0]),
}


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_minimize(name, method):
    fun, start = FUNCTIONS[name]
    options = {"gtol": 1e-6}

    def run(lib):
        with lib.jax.enable_x64(True):
            x0 = lib.jnp.asarray(np.array(start))
            minimum = lib.jax.jit(
                lambda x: lib.scipy.optimize.minimize(
                    lambda x: fun(lib.jnp, x), x, method=method, options=options
                )
            )(x0)
            assert isinstance(minimum, lib.scipy.optimize.OptimizeResults)
            minimum = lib.jax.tree.map(np.asarray, minimum)
            return minimum, fun(np, minimum.x)

    (ours, our_value), (theirs, their_value) = run(OURS), run(THEIRS)
    assert our_value <= their_value + 1e-6 * max(1, abs(their_value))
    np.testing.assert_allclose(ours.fun, our_value, 1e-9, 1e-12)
    assert ours._fields == theirs._fields
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a.shape == b.shape and a.dtype == b.dtype)
    if theirs.success:
        assert ours.success and ours.status == 0
        np.testing.assert_allclose(ours.x, theirs.x, 1e-4, 1e-4)


def test_minimize_within_transformations():
    def fun(x, a):
        return jnp.sum((x - a) ** 2) + jnp.sum(x**4)

    def least(a, x0=jnp.zeros(3)):  # noqa: B008 - a constant
        return minimize(fun, x0, (a,), method="BFGS", tol=1e-4).x

    starts = jnp.asarray(normal(4, 3))
    found = namoo.jit(namoo.vmap(least))(starts)
    one_by_one = [least(a) for a in starts]
    np.testing.assert_allclose(found, np.stack(one_by_one), 1e-3, 1e-3)
    wanted = [
        jax.scipy.optimize.minimize(
            lambda x, a: ((x - a) ** 2).sum() + (x**4).sum(),
            jax.numpy.zeros(3),
            (a,),
            method="BFGS",
        ).x
        for a in np.asarray(starts)[:1]
    ]
    np.testing.assert_allclose(found[:1], wanted, 1e-3, 1e-3)
    ended = minimize(fun, jnp.zeros(3), (starts[0],), method="bfgs", options={"maxiter": 1})
    assert not ended.success and ended.status == 1 and ended.nit == 1
    with pytest.raises(ValueError, match="vector"):
        minimize(fun, jnp.zeros((2, 2)), (1.0,), method="BFGS")


# What JAX leaves out, or gets wrong, against SciPy.


def test_random_rotations_and_identities():
    turns = Rotation.random(namoo.random.key(0), 200)
    np.testing.assert_allclose(np.linalg.norm(turns.quat, axis=-1), 1, 1e-5)
    # Of uniform rotations, a vector goes everywhere alike.
    assert np.abs(np.mean(turns.apply(jnp.array([1.0, 0.0, 0.0])), axis=0)).max() < 0.15
    assert Rotation.random(namoo.random.key(1)).single
    assert Rotation.identity(3).quat.shape == (3, 4)


SMOOTH = {
    "from_euler": (lambda x: Rotation.from_euler("xyz", x).quat, ANGLES),
    "from_matrix": (lambda x: Rotation.from_matrix(x).quat, np.linalg.qr(normal(3, 3))[0]),
    "as_euler": (lambda q: Rotation.from_quat(q).as_euler("xyz"), QUATS),
    "as_euler symmetric": (lambda q: Rotation.from_quat(q).as_euler("ZXZ"), QUATS),
    "as_mrp": (lambda q: Rotation.from_quat(q).as_mrp(), QUATS),
    "magnitude": (lambda q: Rotation.from_quat(q).magnitude(), QUATS),
    "mean": (lambda q: Rotation.from_quat(q).mean().as_matrix(), QUATS),
    "product": (lambda q: (Rotation(q) * Rotation(q[::-1])).quat, RAW),
    "slerp": (
        lambda q: Slerp.init(jnp.arange(5.0), Rotation.from_quat(q))(jnp.array([0.3, 2.2])).quat,
        QUATS,
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_rotations(name):
    check_derivatives(*SMOOTH[name])


def test_derivatives_at_no_rotation():
    found = namoo.jacobian(lambda v: Rotation.from_rotvec(v).quat)(jnp.zeros(3))
    np.testing.assert_allclose(found, np.eye(4, 3) / 2, atol=1e-7)
    found = namoo.jacobian(lambda q: Rotation(q).as_rotvec())(jnp.array([0.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, 2 * np.eye(3, 4), atol=1e-7)


def test_euler_angles_against_scipy():
    turns = scipy.spatial.transform.Rotation.from_quat(QUATS)
    for seq in ("xyz", "XZY", "zyz", "XYX"):
        found = Rotation.from_quat(QUATS).as_euler(seq)
        np.testing.assert_allclose(found, turns.as_euler(seq), 1e-3, 1e-4)


@pytest.mark.parametrize("order", range(1, 6))
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_splines_against_scipy(mode, order):
    their_mode = f"grid-{mode}" if mode in ("constant", "wrap") else mode
    for x, places in ((PLANE, [ROW, COLUMN]), (normal(30), [3 * ROW]), (normal(2, 3), [ROW, ROW])):
        wanted = scipy.ndimage.map_coordinates(x, places, order=order, mode=their_mode, cval=0.5)
        found = at(order, mode, cval=0.5)(OURS, x, *places)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)
    rounded = at(order, mode)(OURS, INTEGERS, ROW, COLUMN)
    assert rounded.dtype == np.int32


def test_derivatives_of_splines():
    smooth = at(3, "mirror")
    check_derivatives(lambda x, *c: smooth(OURS, x, *c), PLANE, ROW, COLUMN)


def test_points_outside_of_a_grid():
    interpolate = RegularGridInterpolator(
        tuple(map(jnp.asarray, GRID)), jnp.asarray(PLANE), bounds_error=True
    )
    assert np.isfinite(interpolate(jnp.array([[1.0, 1.0]]))).all()
    with pytest.raises(ValueError, match="outside"):
        interpolate(jnp.array([[1.0, 9.0]]))


@pytest.mark.parametrize("method", [linalg.cg, linalg.bicgstab, linalg.gmres])
def test_derivatives_and_maps_of_solutions(method):
    def solve(a, b):
        return method(a @ a.T, b, tol=1e-13)[0]

    check_derivatives(solve, MATRIX, RIGHT, rtol=1e-5)

    def loosely(a, b):
        return method(a, b, tol=1e-6)[0]

    stack = jnp.asarray(np.stack([POSITIVE, POSITIVE + np.eye(6, dtype="f")]))
    right = jnp.asarray(normal(2, 6))
    found = namoo.jit(namoo.vmap(loosely))(stack, right)
    wanted = [loosely(a, b) for a, b in zip(stack, right, strict=True)]
    np.testing.assert_allclose(found, np.stack(wanted), 1e-3, 1e-4)


def test_operators_of_other_kinds():
    class Twice:
        shape = (6, 6)

        def __matmul__(self, x):
            return 2 * x

    for method in (linalg.cg, linalg.bicgstab, linalg.gmres):
        np.testing.assert_allclose(method(Twice(), jnp.asarray(RIGHT))[0], RIGHT / 2, 1e-5)
    with pytest.raises(ValueError, match="matching shape"):
        linalg.cg(jnp.asarray(POSITIVE), jnp.asarray(RIGHT), jnp.ones(5))
