"""`namoo.image` against real JAX: every method, with and without antialiasing."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import image
from scipy_oracle import Case, Table, fail_alike, normal

IMAGE = normal(5, 6, 2)
SMALL = normal(3, 4)
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
