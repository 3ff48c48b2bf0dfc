"""`namoo.image` against real JAX: every method, with and without antialiasing."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import image
from scipy_oracle import Case, Table, fail_alike, normal

IMAGE = normal(5, 6, 2)
SMALL = normal(3, 4)
LONG = normal(53, 67, 3)


@pytest.fixture(params=[0, image._SMALL_PRODUCT], autouse=True)
def smallest(request, monkeypatch):
    """Run everything by non-zero weights, and with products of small images."""
    monkeypatch.setattr(image, "_SMALL_PRODUCT", request.param)


INTEGERS = (10 * normal(4, 5)).astype(np.int32)


def resize(*static, **options):
    return lambda lib, x: lib.image.resize(x, *static, **options)


def move(shape, axes, method, **options):
    return lambda lib, x, scale, translation: lib.image.scale_and_translate(
        x, shape, axes, scale, translation, method, **options
    )


SCALE = np.array([1.3, 0.6], np.float32)
SHIFT = np.array([0.7, -1.1], np.float32)
KINDS = ("nearest", "linear", "cubic", "cubic-pytorch", "area", "lanczos3", "lanczos5")
ALIASES = ("bilinear", "trilinear", "triangle", "bicubic", "tricubic", "bicubic-pytorch")
ROWS = {
    **{
        f"{method} {shape} {antialias}": Case(resize(shape, method, antialias), IMAGE)
        for method in KINDS
        for shape in ((3, 9, 2), (8, 4, 2))
        for antialias in (True, False)
    },
    **{f"{method} by name": Case(resize((4, 4), method), SMALL) for method in ALIASES},
    "enum": Case(lambda lib, x: lib.image.resize(x, (4, 4), lib.image.ResizeMethod.LINEAR), SMALL),
    "same shape": Case(resize((3, 4), "cubic"), SMALL),
    "to nothing": Case(resize((0, 4), "cubic"), SMALL),
    "to nothing, nearest": Case(resize((0, 4), "nearest"), SMALL),
    "to one": Case(resize((1, 1), "linear"), SMALL),
    "from one": Case(resize((3, 4), "lanczos3"), SMALL[:1, :1]),
    "integers": Case(resize((3, 3), "linear"), INTEGERS),
    "integers, same shape": Case(resize((4, 5), "linear"), INTEGERS),
    "integers, nearest": Case(resize((7, 2), "nearest"), INTEGERS),
    "booleans": Case(resize((3, 3), "linear"), INTEGERS > 0),
    "halves": Case(resize((3, 3), "linear"), SMALL.astype(np.float16), rtol=2e-3),
    "complex": Case(resize((3, 3), "cubic"), normal(4, 4, dtype=np.complex64)),
    "derivative": Case(resize((3, 7), "cubic"), SMALL, diff=True),
    "derivative, nearest": Case(resize((2, 7), "nearest"), SMALL, diff=True),
    # Long axes are resized by their non-zero weights.
    **{
        f"long {method} {shape} {antialias}": Case(resize(shape, method, antialias), LONG)
        for method in KINDS
        for shape in ((70, 40, 3), (41, 150, 3), (53, 131, 3), (2, 67, 3))
        for antialias in (True, False)
    },
    "long, wide rows": Case(resize((90, 3, 30), "cubic"), normal(61, 2, 30)),
    "long, halves": Case(resize((70, 40, 3), "linear"), LONG.astype(np.float16), rtol=2e-3),
    "long, complex": Case(resize((90,), "cubic"), normal(64, dtype=np.complex64)),
    "long, derivative": Case(resize((30,), "linear"), normal(64), diff=True),
    "long, derivative, twice as long": Case(resize((67, 3), "lanczos3"), normal(56, 3), diff=True),
    "long, vmap": Case(
        lambda lib, x: lib.jax.vmap(
            lib.jax.grad(lambda x: (lib.image.resize(x, (40, 90), "linear") ** 2).sum()), -1
        )(x),
        LONG,
    ),
    "vmap": Case(
        lambda lib, x: lib.jax.vmap(lambda x: lib.image.resize(x, (3, 3), "linear"), -1)(x), IMAGE
    ),
    **{
        f"scale_and_translate {method} {antialias}": Case(
            move((4, 7), (0, 1), method, antialias=antialias), SMALL, SCALE, SHIFT
        )
        for method in ("linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
        for antialias in (True, False)
    },
    "scale_and_translate one axis": Case(
        move((5, 9, 2), (1,), "linear"), IMAGE, SCALE[:1], SHIFT[:1]
    ),
    "scale_and_translate negative axis": Case(
        move((5, 6, 3), [-1], "linear"), IMAGE, SCALE[:1], SHIFT[:1]
    ),
    "scale_and_translate no axis": Case(move((3, 4), (), "linear"), SMALL, SCALE[:0], SHIFT[:0]),
    "scale_and_translate integers": Case(
        move((3, 4), (0, 1), "linear"), INTEGERS, np.array([1, 2]), np.array([0, 1])
    ),
    "scale_and_translate derivative": Case(
        move((4, 7), (0, 1), "cubic"), SMALL, SCALE, SHIFT, diff=True, rtol=1e-4
    ),
    "scale_and_translate derivative, lanczos": Case(
        move((4, 7), (0, 1), "lanczos3"), SMALL, SCALE, SHIFT, diff=True, rtol=1e-3
    ),
}
TABLE = Table(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_as_jax(name):
    TABLE.check(name)


ERRORS = {
    "rank": lambda lib: lib.image.resize(SMALL, (3,), "linear"),
    "method": lambda lib: lib.image.resize(SMALL, (3, 3), "other"),
    "fraction": lambda lib: lib.image.resize(SMALL, (2.5, 3), "linear"),
    "list": lambda lib: lib.image.resize([[1.0]], (2, 2), "linear"),
    "move nearest": lambda lib: move((3, 3), (0,), "nearest")(lib, SMALL, SCALE[:1], SHIFT[:1]),
    "move rank": lambda lib: move((3,), (0,), "linear")(lib, SMALL, SCALE[:1], SHIFT[:1]),
    "move method": lambda lib: move((3, 3), (0,), "other")(lib, SMALL, SCALE[:1], SHIFT[:1]),
    "move axis": lambda lib: move((3, 3), (5,), "linear")(lib, SMALL, SCALE[:1], SHIFT[:1]),
    "move list": lambda lib: move((3, 3), (0,), "linear")(lib, SMALL, [1.0], [1.0]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])


def test_methods():
    assert [m.name for m in image.ResizeMethod] == (
        "NEAREST LINEAR LANCZOS3 LANCZOS5 CUBIC CUBIC_PYTORCH AREA".split()
    )
    for name in (*KINDS, *ALIASES):
        assert isinstance(image.ResizeMethod.from_string(name), image.ResizeMethod)
    with pytest.raises(ValueError, match="spatial_dims"):
        image.scale_and_translate(
            jnp.asarray(SMALL), (3, 3), (0,), jnp.ones(2), jnp.ones(2), "linear"
        )


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "area"])
def test_a_constant_image_stays_constant(method):
    found = namoo.jit(lambda x: image.resize(x, (7, 3), method))(jnp.full((4, 5), 2.5))
    np.testing.assert_allclose(found, 2.5, 1e-6)


@pytest.mark.parametrize("size", [(2, 80, 90, 3), (2, 300, 270, 3), (2, 80, 270, 3)])
def test_long_axes_are_resized_by_their_nonzero_weights(size):
    def loss(x):
        return jnp.sum(image.resize(x, size, "linear") ** 2)

    x = jnp.ones((2, 150, 160, 3))
    text = namoo.jit(namoo.value_and_grad(loss)).lower(x).compile().as_text("fused")
    assert "'dot'" not in text and "scatter" not in text


def test_what_does_not_count_is_not_read():
    x = jnp.ones((100, 300)).at[50].set(jnp.nan)
    found = namoo.jit(lambda x: image.resize(x, (200, 300), "linear"))(x)
    assert 0 < np.isnan(found).sum() <= 4 * 300


def test_a_symbolic_batch():
    (b,) = namoo.export.symbolic_shape("b")
    x = namoo.ShapeDtypeStruct((b, 100, 100, 3), jnp.float32)
    out = namoo.eval_shape(lambda x: image.resize(x, (b, 200, 50, 3), "linear"), x)
    assert out.shape == (b, 200, 50, 3)
