"""Convolutions of the native engine against NumPy's, and their gradients."""

import functools

import numpy as np
import pytest

import namoo
from conformance import samples_conv
from namoo import lax
from namoo.engines.native.engine import native
from namoo.primitives.conv import conv_general_dilated_p


def random(shape, dtype="f4", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def agrees(f, args, tolerance=2e-5, host=0):
    """The native program of a function and the function itself give the same."""
    with namoo.enable_x64(True):
        program = native.compile(namoo.make_jaxpr(f)(*args))
        expected = [np.asarray(x) for x in namoo.tree.leaves(f(*args))]
    assert len(program.host.equations) == host
    for out, value in zip(program(list(args)), expected, strict=True):
        assert out.dtype == value.dtype and out.shape == value.shape
        if value.dtype.kind in "biuc":
            np.testing.assert_allclose(out, value, rtol=tolerance, atol=tolerance)
        else:
            out, value = out.astype(np.float64), value.astype(np.float64)
            np.testing.assert_allclose(
                out, value, rtol=tolerance, atol=tolerance * np.abs(value).max(initial=1)
            )


NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
CASES = {
    "digits": ((4, 28, 28, 1), (3, 3, 1, 16), NHWC, {"padding": "SAME"}),
    "features": ((3, 14, 14, 16), (5, 5, 16, 33), NHWC, {"padding": "SAME"}),
    "features first": ((3, 16, 14, 14), (33, 16, 3, 3), NCHW, {"padding": "SAME"}),
    "wide": ((2, 3, 9, 70), (8, 3, 3, 5), NCHW, {"padding": "VALID"}),
    "strides": ((2, 15, 17, 5), (3, 4, 5, 20), NHWC, {"padding": "SAME", "window_strides": (2, 3)}),
    "strides first": (
        (2, 5, 15, 17), (20, 5, 3, 4), NCHW, {"padding": "SAME", "window_strides": (2, 3)},
    ),
    "steps": (
        (2, 15, 17, 5), (3, 4, 5, 20), NHWC, {"padding": "SAME", "rhs_dilation": (2, 3)},
    ),
    "gaps": (
        (2, 6, 7, 5), (3, 4, 5, 20), NHWC,
        {"padding": ((2, 1), (3, 0)), "lhs_dilation": (2, 3)},
    ),
    "gaps on one side": (
        (2, 6, 7, 5), (5, 2, 5, 20), NHWC,
        {"padding": ((4, -1), (0, 3)), "lhs_dilation": (3, 1), "window_strides": (1, 2)},
    ),
    "gaps and groups": (
        (2, 8, 6, 7), (12, 4, 3, 3), NCHW,
        {"padding": ((1, 2), (2, 2)), "lhs_dilation": (2, 2), "feature_group_count": 2},
    ),
    "wider gaps than the kernel": (
        (2, 4, 5, 3), (2, 2, 3, 9), NHWC,
        {"padding": ((1, 1), (-3, 2)), "lhs_dilation": (3, 4)},
    ),
    "cut": ((2, 9, 9, 5), (3, 3, 5, 20), NHWC, {"padding": ((-1, 1), (2, -2))}),
    "groups": ((2, 9, 9, 8), (3, 3, 4, 20), NHWC, {"feature_group_count": 2}),
    "groups first": ((2, 8, 9, 19), (20, 2, 3, 3), NCHW, {"feature_group_count": 4}),
    "one feature a group": ((2, 9, 9, 24), (3, 3, 1, 24), NHWC, {"feature_group_count": 24}),
    "batch groups": ((6, 9, 9, 4), (3, 3, 4, 20), NHWC, {"batch_group_count": 2}),
    "mixed layouts": ((9, 10, 5, 4), (7, 4, 3, 3), ("HWNC", "OIHW", "CNHW"), {}),
    "one axis": ((2, 40, 6), (5, 6, 12), ("NWC", "WIO", "NWC"), {"padding": "SAME"}),
    "three axes": ((2, 5, 6, 7, 3), (2, 3, 2, 3, 9), ("NDHWC", "DHWIO", "NDHWC"), {}),
}  # fmt: skip


def of(name):
    left, right, layout, params = CASES[name]
    params = {"window_strides": (1,) * (len(left) - 2), "padding": "VALID", **params}
    f = functools.partial(lax.conv_general_dilated, dimension_numbers=layout, **params)
    return f, left, right


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CASES)
def test_layouts_and_windows(name, dtype):
    f, left, right = of(name)
    agrees(f, [random(left, dtype, 1), random(right, dtype, 2)], 2e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    f, left, right = of(name)
    x, w = random(left, seed=1), random(right, seed=2)
    ct = random(f(x, w).shape, seed=3)

    def gradients(x, w, ct):
        return namoo.vjp(f, x, w)[1](ct)

    agrees(gradients, [x, w, ct], 1e-4)


def test_long_sums_are_cut():
    f, left, right = of("digits")
    x, w = random((32, *left[1:]), seed=1), random(right, seed=2)
    ct = random(f(x, w).shape, seed=3)

    def gradient(x, w, ct):
        return namoo.vjp(functools.partial(f, x), w)[1](ct)

    agrees(gradient, [x, w, ct], 1e-4)


def test_what_follows_is_computed_in_the_same_kernel():
    f, left, right = of("features")
    x, w, b = random(left, seed=1), random(right, seed=2), random(right[-1:], seed=3)

    def layer(x, w, b):
        return namoo.nn.relu(f(x, w) + b)

    agrees(layer, [x, w, b])
    assert native.compile(namoo.make_jaxpr(layer)(x, w, b)).kernels == 2


@pytest.mark.parametrize("sample", samples_conv.SAMPLES, ids=lambda s: s.name)
def test_samples(sample):
    host = int(sample.params["precision"] is not None or sample.args[0].dtype == bool)

    def f(x, w):
        return conv_general_dilated_p.bind(x, w, **sample.params)

    for dtype in ("float64", *sample.dtypes):
        args = [a.astype(namoo.numpy.dtype(dtype)) if a.dtype == "f8" else a for a in sample.args]
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}.get(dtype, 2e-5)
        agrees(f, args, tolerance, host)
