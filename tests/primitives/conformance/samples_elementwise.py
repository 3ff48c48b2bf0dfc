"""Rows for `namoo.primitives.arithmetic`, `compare` and `elementwise`: a smooth point each, complex
and scalar operands, and awkward points (ties, zeros, infinities) by their values."""

import ml_dtypes
import numpy as np

from conformance.harness import Sample
from namoo._base import dtypes as _dtypes
from namoo.primitives import arithmetic as ar
from namoo.primitives import compare as cp
from namoo.primitives import elementwise as ew

x = np.array([[0.5, -1.25, 2.0], [3.0, 0.125, -0.75]])
y = np.array([[1.5, 0.75, -0.5], [-2.0, 1.125, 0.25]])
positive = np.array([0.25, 0.75, 1.5, 3.0])
small = np.array([-0.8, -0.25, 0.125, 0.6])
above_one = np.array([1.25, 2.0, 3.5])
z = x + 1j * y
w = y - 1j * x[::-1]
scalar = np.array(1.75)
inf, nan = np.inf, np.nan
awkward = np.array([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
ints = np.array([[7, -7, 3], [-3, 0, 5]], np.int32)
more_ints = np.array([[2, 2, -2], [-2, 5, 5]], np.int32)
most = np.array([2**31 - 1, -(2**31), -1], np.int32)
nibbles = np.array([-8, -3, 0, 2, 7]).astype(ml_dtypes.int4)
keys = np.arange(8, dtype=np.uint32).view(_dtypes.KeyDType("threefry2x32").numpy)

floats = ["float32", "float16", "bfloat16"]
numbers = [*floats, "int32", "uint8", "int8"]


def unary(prim, point, complex_point=None, dtypes=floats, **changes):
    yield Sample(prim, [point], dtypes=dtypes, **changes)
    yield Sample(prim, [point[..., :1].reshape(-1)[0].reshape(())], name="scalar", **changes)
    yield Sample(prim, [np.zeros((0, 2))], name="empty", **{**changes, "diff": ()})
    if complex_point is not None:
        yield Sample(prim, [complex_point], name="complex", **changes)


def binary(prim, p, q, dtypes=floats, complex_points=None, **changes):
    yield Sample(prim, [p, q], dtypes=dtypes, **changes)
    yield Sample(prim, [p.reshape(-1)[0], q], name="scalar left", **changes)
    yield Sample(prim, [p, q.reshape(-1)[0]], name="scalar right", **changes)
    yield Sample(prim, [p.reshape(-1)[0], q.reshape(-1)[0]], name="scalars", **changes)
    if complex_points is not None:
        yield Sample(prim, list(complex_points), name="complex", **changes)
        yield Sample(
            prim, [complex_points[0], np.complex128(1.5 - 0.5j)], name="complex scalar", **changes
        )


def integers(prim, *args, **changes):
    return Sample(prim, list(args), name=changes.pop("name", "integers"), **changes)


def value(prim, args, expected, name, **params):
    """A row about the value only."""
    return Sample(prim, args, params, name=name, diff=(), expected=expected)


SAMPLES = [
    *unary(ar.neg_p, x, z, numbers),
    integers(ar.neg_p, most, expected=[-(2**31) + 1, -(2**31), 1]),
    value(ar.neg_p, [np.array([1, 0], np.uint8)], [255, 0], "unsigned"),
    *binary(ar.add_p, x, y, numbers, (z, w)),
    integers(ar.add_p, most, most, expected=[-2, 0, -2]),
    *(
        Sample(p, [nibbles, nibbles[::-1].copy()], name="int4", dtypes=())
        for p in (ar.add_p, ar.sub_p, ar.mul_p, ar.div_p, ar.rem_p, ew.max_p, ew.min_p, cp.lt_p)
    ),
    *(Sample(p, [nibbles], name="int4", dtypes=()) for p in (ar.neg_p, ar.sign_p, ew.square_p)),
    *binary(ar.sub_p, x, y, numbers, (z, w)),
    integers(ar.sub_p, most, most[::-1].copy()),
    *binary(ar.mul_p, x, y, numbers, (z, w)),
    integers(ar.mul_p, most, most),
    *binary(ar.div_p, x, y, floats, (z, w)),
    value(
        ar.div_p,
        [ints, more_ints],
        [[3, -3, -1], [1, 0, 1]],
        "integers towards zero",
    ),
    value(
        ar.div_p,
        [np.array([7, -7, 0, -(2**31)], np.int32), np.array([0, 0, 0, -1], np.int32)],
        [-1, -1, -1, -(2**31)],
        "integers by zero",
    ),
    value(ar.div_p, [np.array([7, 0], np.uint8), np.array([0, 0], np.uint8)], [255, 255], "bytes"),
    value(
        ar.div_p,
        [np.array([1.0, -1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, -0.0])],
        [inf, -inf, nan, -inf],
        "by zero",
    ),
    *binary(ar.rem_p, x + 0.1, y, floats),
    value(ar.rem_p, [ints, more_ints], [[1, -1, 1], [-1, 0, 0]], "signs of integers"),
    value(
        ar.rem_p,
        [np.array([7, -7, -(2**31)], np.int32), np.array([0, 0, -1], np.int32)],
        [7, -7, 0],
        "integers by zero",
    ),
    value(
        ar.rem_p,
        [np.array([5.5, -5.5, 5.5, 1.0, inf, 1.0]), np.array([2.0, 2.0, -2.0, 0.0, 1.0, inf])],
        [1.5, -1.5, 1.5, nan, nan, 1.0],
        "signs",
    ),
    *binary(ar.complex_p, x, y, ["float32"]),
    *(Sample(p, [z]) for p in (ar.real_p, ar.imag_p, ar.conj_p)),
    *(Sample(p, [z[0, 0]], name="scalar") for p in (ar.real_p, ar.imag_p, ar.conj_p)),
    *unary(ar.abs_p, x, z, [*floats, "int32", "int8"]),
    value(
        ar.abs_p,
        [np.array([0, 3 + 4j, inf, complex(0, inf), complex(nan, inf)])],
        [0, 5, inf, inf, inf],
        "complex",
    ),
    integers(ar.abs_p, most, expected=[2**31 - 1, -(2**31), 1]),
    *unary(ar.sign_p, x, None, numbers),
    value(ar.sign_p, [awkward], [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, nan], "awkward"),
    value(ar.sign_p, [np.array([0, 3 + 4j, -2])], [0, 0.6 + 0.8j, -1], "complex"),
    *(row for p in (ar.floor_p, ar.ceil_p) for row in unary(p, x + 0.3)),
    *(
        Sample(ar.round_p, [x + 0.3], {"rounding_method": how}, name=how.name, dtypes=floats)
        for how in ar.RoundingMethod
    ),
    value(
        ar.round_p,
        [np.array([0.5, 1.5, -0.5, -2.5, 0.49999999999999994, inf, nan, -0.0, 4503599627370497.5])],
        [1.0, 2.0, -1.0, -3.0, 0.0, inf, nan, -0.0, 4503599627370498.0],
        "halves away from zero",
        rounding_method=ar.RoundingMethod.AWAY_FROM_ZERO,
    ),
    value(
        ar.round_p,
        [np.array([0.5, 1.5, -0.5, -2.5])],
        [0.0, 2.0, -0.0, -2.0],
        "halves to even",
        rounding_method=ar.RoundingMethod.TO_NEAREST_EVEN,
    ),
    *unary(ar.is_finite_p, x, diff=()),
    value(ar.is_finite_p, [awkward], [True] * 4 + [False] * 3, "awkward"),
    Sample(ar.nextafter_p, [x, y], diff=()),
    Sample(
        ar.nextafter_p,
        [np.array([0.0, 1.0, inf, nan]), np.array([1.0, 1.0, 0.0, 1.0])],
        name="awkward",
        diff=(),
        dtypes=(),
        expected=[5e-324, 1.0, np.finfo(float).max, nan],
    ),
    *unary(ew.exp_p, x, z),
    *unary(ew.exp2_p, x, z),
    *unary(ew.log_p, positive, z),
    *unary(ew.log1p_p, positive - 0.5, z),
    *unary(ew.expm1_p, x, z),
    *unary(ew.sqrt_p, positive, z),
    *unary(ew.rsqrt_p, positive, z),
    *unary(ew.cbrt_p, x),
    *unary(ew.logistic_p, x, z),
    *unary(ew.square_p, x, z, numbers),
    value(ew.log_p, [np.array([0.0, -1.0, inf])], [-inf, nan, inf], "awkward"),
    value(ew.sqrt_p, [np.array([0.0, -0.0, -1.0, inf])], [0.0, -0.0, nan, inf], "awkward"),
    value(ew.rsqrt_p, [np.array([0.0, -1.0, inf])], [inf, nan, 0.0], "awkward"),
    value(ew.logistic_p, [np.array([-1e4, 1e4, -inf, inf])], [0.0, 1.0, 0.0, 1.0], "extremes"),
    value(ew.expm1_p, [np.array([1e-20, -inf, 0.0])], [1e-20, -1.0, 0.0], "small"),
    value(ew.log1p_p, [np.array([1e-20, -1.0, 0.0])], [1e-20, -inf, 0.0], "small"),
    value(ew.expm1_p, [np.array([1e-20 + 1e-20j, 0j])], [1e-20 + 1e-20j, 0j], "small complex"),
    value(ew.log1p_p, [np.array([1e-20 + 1e-20j, 0j])], [1e-20 + 1e-20j, 0j], "small complex"),
    *(
        Sample(ew.integer_pow_p, [x], {"y": n}, name=f"to the {n}", dtypes=floats)
        for n in (-3, -1, 2, 3, 7)
    ),
    Sample(ew.integer_pow_p, [z], {"y": 3}, name="complex"),
    Sample(ew.integer_pow_p, [z], {"y": -2}, name="complex inverse"),
    integers(ew.integer_pow_p, ints, params={"y": 3}, expected=ints**3),
    value(ew.integer_pow_p, [awkward], [inf, -inf, 1.0, -1.0, 0.0, -0.0, nan], "inverse", y=-1),
    *binary(ew.pow_p, positive, y.reshape(-1)[:4], floats, (z, w)),
    Sample(ew.pow_p, [x, more_ints], name="integer exponent", dtypes=floats),
    Sample(ew.pow_p, [z, more_ints], name="complex to integer"),
    value(
        ew.pow_p,
        [
            np.array([0.0, 0.0, -2.0, -2.0, inf, nan, 1.0, -0.0]),
            np.array([0.0, -1.0, 3.0, 0.5, 0.0, 0.0, nan, -1.0]),
        ],
        [1.0, inf, -8.0, nan, 1.0, 1.0, 1.0, -inf],
        "awkward",
    ),
    *(row for p in (ew.sin_p, ew.cos_p, ew.tan_p) for row in unary(p, x, z)),
    *(row for p in (ew.asin_p, ew.acos_p, ew.atanh_p) for row in unary(p, small, z)),
    *(row for p in (ew.atan_p, ew.asinh_p) for row in unary(p, x, z)),
    *(row for p in (ew.sinh_p, ew.cosh_p, ew.tanh_p) for row in unary(p, x, z)),
    *unary(ew.acosh_p, above_one, z),
    *binary(ew.atan2_p, x, y, floats),
    value(
        ew.atan2_p,
        [np.array([0.0, -0.0, 0.0, -0.0, inf]), np.array([-1.0, -1.0, 1.0, 1.0, inf])],
        [np.pi, -np.pi, 0.0, -0.0, np.pi / 4],
        "quadrants",
    ),
    *(
        row
        for p, fun in (
            (cp.eq_p, np.equal),
            (cp.ne_p, np.not_equal),
            (cp.lt_p, np.less),
            (cp.le_p, np.less_equal),
            (cp.gt_p, np.greater),
            (cp.ge_p, np.greater_equal),
        )
        for row in (
            Sample(p, [x, y], diff=(), oracle=fun, dtypes=numbers),
            Sample(p, [awkward, awkward[::-1].copy()], name="awkward", diff=(), oracle=fun),
            Sample(p, [ints, more_ints], name="integers", oracle=fun),
            Sample(p, [scalar, y], name="scalar left", diff=(), oracle=fun),
            Sample(p, [np.array([True, False]), np.array([True, True])], name="bools", oracle=fun),
        )
    ),
    Sample(cp.eq_p, [z, w], name="complex", diff=()),
    Sample(cp.eq_p, [keys, keys[::-1].copy()], name="keys", expected=[False] * 4),
    Sample(cp.ne_p, [keys, keys[::-1].copy()], name="keys", expected=[True] * 4),
    *binary(ew.max_p, x, y, numbers),
    *binary(ew.min_p, x, y, numbers),
    integers(ew.max_p, ints, more_ints, expected=np.maximum(ints, more_ints)),
    value(ew.max_p, [np.array([1.0, nan]), np.array([nan, 1.0])], [nan, nan], "NaN"),
    value(ew.min_p, [np.array([1.0, nan]), np.array([nan, 1.0])], [nan, nan], "NaN"),
    Sample(ew.max_p, [x > 0, y > 0], name="booleans", expected=(x > 0) | (y > 0)),
    Sample(cp.select_n_p, [x > 0, x, y], dtypes=[*floats, "int32"]),
    Sample(cp.select_n_p, [np.array(True), x, y], name="scalar which"),
    Sample(cp.select_n_p, [np.array(False), scalar, scalar * 2], name="scalars"),
    Sample(cp.select_n_p, [more_ints % 3, x, y, x * y], name="three cases"),
    Sample(cp.select_n_p, [x > 0, z, w], name="complex"),
    Sample(cp.select_n_p, [np.array([True, False, True, False]), keys, keys[::-1]], name="keys"),
    Sample(cp.select_n_p, [x > 0, x], name="one case"),
    value(
        cp.select_n_p,
        [np.array([-5, 0, 1, 9], np.int32), *(np.full(4, k) for k in (10, 11, 12))],
        [10, 10, 11, 12],
        "which out of range",
    ),
    Sample(ew.clamp_p, [np.array(-1.0), x, np.array(1.0)], dtypes=numbers),
    Sample(ew.clamp_p, [x - y**2, x, x + y**2 - 0.3], name="arrays"),
    Sample(ew.clamp_p, [np.array(-1.0), x, y + 4.4], name="mixed ranks"),
    Sample(ew.clamp_p, [np.array(-1.0), scalar, np.array(1.5)], name="scalars"),
    value(
        ew.clamp_p,
        [np.array(1.0), np.array([0.0, 1.0, 2.0, 3.0, nan]), np.array(2.0)],
        [1.0, 1.0, 2.0, 2.0, nan],
        "ties",
    ),
    integers(ew.clamp_p, np.int32(-2), ints, np.int32(3)),
]
