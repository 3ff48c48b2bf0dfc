"""The basic `lax` functions against JAX: values at awkward points, types, derivatives, errors."""

import itertools
import warnings
from functools import partial

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax as jlax

import jax_oracle
from namoo import enable_x64, lax
from namoo.core.array import EagerArray
from namoo.core.primitive import Zero
from namoo.transforms.jvp import jvp

UNARY = """neg abs sign floor ceil exp exp2 log log1p expm1 sqrt rsqrt cbrt logistic square
    reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh real imag conj
    is_finite""".split()
BINARY = """add sub mul div rem atan2 max min nextafter eq ne lt le gt ge complex pow""".split()
DTYPES = "float32 float16 bfloat16 complex64 uint8 int32 bool".split()

# Functions in which the sign of a zero is kept, and so is compared.
SIGNED_ZERO = {"neg", "sign", "floor", "ceil", "sqrt", "sin", "tan", "asin", "atan", "square"}


def points(dtype):
    """Awkward numbers of a type."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        signed = [-1, -2, -3, -7, info.min + 1] if dtype.kind == "i" else []
        return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, *signed]).astype(dtype)
    if dtype.kind == "c":
        # Infinite parts are left out: engines disagree about them, JAX's own among themselves.
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.3, 20.0]
        return np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    large = float(ml_dtypes.finfo(dtype).max)
    half = [0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 0.3, 0.7, 10.0, 80.5, 1e3, 1e-3, np.inf, large]
    return np.array([*half, *(-x for x in half), np.nan]).astype(dtype)


def real_dtype(dtype):
    return np.dtype({"c": f"f{dtype.itemsize // 2}"}.get(dtype.kind, dtype))


def same_numbers(found, wanted, ulps, signed_zero=False):
    """Equal, or within some units in the last place; subnormal numbers count as zero."""
    if found.dtype.kind in "iub" or "int" in found.dtype.name:
        return found == wanted
    info = ml_dtypes.finfo(real_dtype(found.dtype))
    eps, tiny = float(info.eps), float(info.tiny)
    if found.dtype.kind == "c":
        size = np.maximum(np.abs(found), np.abs(wanted))
        off = np.abs(found - wanted)
    else:
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        found, wanted = (np.where(np.abs(x) < tiny, 0 * x, x) for x in (found, wanted))
        size, off = np.maximum(np.abs(found), np.abs(wanted)), np.abs(found - wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (off <= ulps * eps * size)
    if signed_zero and found.dtype.kind != "c":
        same &= (np.signbit(found) == np.signbit(wanted)) | np.isnan(found) | (found != 0)
    return same


def outcome(fun, args):
    """The result, or the type of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fun(*args)
        except Exception as error:  # noqa: BLE001 - its type is what is compared
            return error


def assert_same(fun, jax_fun, args, ulps=0, signed_zero=False, wrap=True):
    """Same value, dtype, shape and weak type; or the same type of error."""
    ours = [EagerArray(x) if wrap and isinstance(x, np.ndarray) else x for x in args]
    theirs = [jax.numpy.asarray(x) if wrap and isinstance(x, np.ndarray) else x for x in args]
    found, wanted = outcome(fun, ours), outcome(jax_fun, theirs)
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        kinds = type(found).__name__, type(wanted).__name__
        assert kinds[0] == kinds[1], f"{found!r}, but JAX: {wanted!r}"
        return
    type_of = [(str(x.dtype), x.shape, bool(x.weak_type)) for x in (found, wanted)]
    assert type_of[0] == type_of[1]
    found, wanted = found._value, np.asarray(wanted)
    with np.errstate(all="ignore"):
        bad = ~same_numbers(found, wanted, ulps, signed_zero)
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        inputs = [np.asarray(x)[where] if np.ndim(x) else x for x in args]
        raise AssertionError(f"{bad.sum()} differ; of {inputs}: {found[where]}, {wanted[where]}")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for dtype in DTYPES:
        assert_same(
            getattr(lax, name), getattr(jlax, name), [points(dtype)], 16, name in SIGNED_ZERO
        )


# What differs from JAX, and why: zero to a complex power is NaN in JAX, where the limit is 0; the
# arctangent of complex operands has another rounding; maxima of complex numbers ignore NaN there.
DIFFERENT = {("pow", "complex64"), ("atan2", "complex64")}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for dtype in DTYPES:
        if (name, dtype) in DIFFERENT:
            continue
        xs = points(dtype)
        xs = xs if len(xs) < 40 else xs[::7]
        grid = [np.repeat(xs, len(xs)), np.tile(xs, len(xs))]
        assert_same(getattr(lax, name), getattr(jlax, name), grid, 16)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64"])
def test_powers_of_integers(dtype):
    xs, ys = points(dtype), np.array([0, 1, 2, 3, -1, -2, 5], np.int32)
    assert_same(lax.pow, jlax.pow, [np.repeat(xs, len(ys)), np.tile(ys, len(xs))], 32)
    for y in (-3, -1, 0, 1, 2, 3, 20):
        assert_same(partial(lax.integer_pow, y=y), partial(jlax.integer_pow, y=y), [xs], 32)


EIGHT = "float8_e4m3fn float8_e5m2 float8_e8m0fnu".split()


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("dtype", [*"float32 bfloat16 float16 int32 complex64".split(), *EIGHT])
def test_round(dtype, method):
    assert_same(
        lambda x: lax.round(x, lax.RoundingMethod(method)),
        lambda x: jlax.round(x, jlax.RoundingMethod(method)),
        [points(dtype)],
        signed_zero=True,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8", "bool"])
def test_clamp(dtype):
    xs = points(dtype)
    low, x, high = (a.ravel() for a in np.meshgrid(xs[:6], xs, xs[:6]))
    clamp = jax.jit(jlax.clamp, compiler_options=jax_oracle.AS_USERS_HAVE_IT)
    assert_same(lax.clamp, clamp, [low, x, high])


NARROW = "int4 float8_e4m3fn float8_e5m2".split()
WIDE = "float32 bfloat16 complex64 uint8 int32 bool".split()


@pytest.mark.parametrize("new", [*WIDE, *NARROW, "int8", "uint4"])
def test_convert(new):
    convert = partial(lax.convert_element_type, new_dtype=new)
    jax_convert = partial(jlax.convert_element_type, new_dtype=new)
    for old in (*WIDE, *NARROW):
        x = np.arange(-6, 6).astype(old) if old in NARROW else points(old)
        assert_same(convert, jax_convert, [x])


@pytest.mark.parametrize("number", [2**32, -(2**32) + 5, 2**63 - 1])
@pytest.mark.parametrize("new", ["int32", "int8", "uint16", "float32", "bool", "complex64"])
def test_convert_a_number_that_no_integer_type_holds(number, new):
    found, wanted = lax.convert_element_type(number, new), jlax.convert_element_type(number, new)
    assert (found.dtype, found.item()) == (wanted.dtype, wanted.item())


OPERANDS = {
    "f32": np.arange(3, dtype=np.float32),
    "i32": np.arange(3, dtype=np.int32),
    "bf16": np.arange(3).astype(ml_dtypes.bfloat16),
    "bool": np.array([True, False, True]),
    "matrix": np.ones((2, 3), np.float32),
    "column": np.ones((2, 1), np.float32),
    "row": np.ones((1, 3), np.float32),
    "scalar": np.array(2.0, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "1": 1,
    "2.5": 2.5,
    "True": True,
    "2**40": 2**40,
    "list": [1.0, 2.0],
    "None": None,
    "text": "a",
}


@pytest.mark.parametrize("out", ["int16", "float16", "float32", "complex64", "float64", "int64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "bfloat16", "float32"])
def test_products_of_a_given_type(dtype, out):
    x, y = (np.array(v).astype(dtype) for v in ([100, 3, 7], [3, 4, 0]))
    ours = lax.mul(x, y, out_dtype=out)
    theirs = jlax.mul(x, y, out_dtype=out)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert lax.mul(2, 3, out_dtype=out).weak_type == jlax.mul(2, 3, out_dtype=out).weak_type


@pytest.mark.parametrize("name", ["add", "pow", "lt"])
def test_types_of_two_operands(name):
    for x, y in itertools.product(OPERANDS.values(), repeat=2):
        assert_same(getattr(lax, name), getattr(jlax, name), [x, y], 16)


@pytest.mark.parametrize("name", ["exp", "neg", "floor", "abs", "is_finite", "real", "square"])
def test_types_of_one_operand(name):
    for x in OPERANDS.values():
        assert_same(getattr(lax, name), getattr(jlax, name), [x], 16)


def test_types_of_clamp():
    names = ["f32", "i32", "matrix", "scalar", "1", "2.5"]
    for low, x, high in itertools.product(names, repeat=3):
        args = [OPERANDS[low], OPERANDS[x], OPERANDS[high]]
        assert_same(lax.clamp, jlax.clamp, args)


x6 = np.arange(6, dtype=np.float32).reshape(2, 3)
x3 = np.arange(3, dtype=np.float32)
which = np.array([0, 1, 2], np.int32)
mask = np.array([True, False, True])

SHAPE_CASES = [
    *(("reshape", x6, s) for s in [(6,), (3, 2), (-1,), (-1, 2), (6, 1.0), "a", None, 6]),
    *(("reshape", x6, (6,), d) for d in [(1, 0), (0, 1), (0, 0), (0,), (-1, 0)]),
    ("reshape", 3.0, (1,)),
    ("reshape", [1, 2], (2,)),
    *(
        ("broadcast_in_dim", x3, s, d)
        for s, d in [
            ((2, 3), (1,)),
            ((3, 2), (0,)),
            ((2, 3), (0,)),
            ((2, 3), (2,)),
            ((2, 3), (-1,)),
            ((2, 3), ()),
            ((2, 3), (0, 1)),
            ((-1, 3), (1,)),
            ((), ()),
        ]
    ),
    ("broadcast_in_dim", x6, (3, 2), (1, 0)),
    ("broadcast_in_dim", x6, (3, 4, 2), (2, 0)),
    ("broadcast_in_dim", 2.0, (3,), ()),
    *(("broadcast", x3, s) for s in [(2,), (), (2, 0), (-1,), (1.5,)]),
    *(("transpose", x6, p) for p in [(1, 0), (0, 1), (0, 0), (0,), (2, 0), (-1, 0)]),
    *(
        ("expand_dims", x3, d)
        for d in [(0,), (1,), (-1,), (0, 1), (2,), (-3,), (0, 0), (0, -3), (3,), ()]
    ),
    *(
        ("squeeze", x3.reshape(1, 3, 1), d)
        for d in [(0,), (1,), (2,), (-1,), (0, 0), (0, -3), (5,), (), None]
    ),
    *(("rev", x6, d) for d in [(0,), (0, 1), (-1,), (2,), (0, 0), ()]),
    *(
        ("full", s, v, d)
        for s, v, d in [
            ((2,), 1, None),
            ((2,), 1.5, None),
            ((2,), 1.5, "int32"),
            ((2,), True, None),
            ((-1,), 1, None),
            ((2,), x3, None),
            (3, 1, None),
            ((2,), "a", None),
            ((2,), 300, "int8"),
        ]
    ),
    *(
        ("iota", d, n)
        for d, n in [
            ("int32", 3),
            ("int8", 200),
            ("complex64", 2),
            (bool, 2),
            ("int32", 0),
            ("int32", -1),
            ("int32", 2.5),
            ("bfloat16", 4),
            (float, 3),
        ]
    ),
    *(("broadcasted_iota", "int32", (2, 3), d) for d in (0, 1, 2, -1)),
    *(
        ("convert_element_type", x, d)
        for x in (x3, 2, 1.5, True, np.int8(3), "a", [1, 2])
        for d in (int, float, bool, complex, "bfloat16", "foo", None, np.str_, object)
    ),
    *(
        ("select_n", *args)
        for args in [
            (mask, x3, x3),
            (mask, x3, x3, x3),
            (which, x3, x3, x3),
            (which, x3, x3),
            (True, x3, x3),
            (np.array(True), 1.0, 2.0),
            (mask, 1.0, 2.0),
            (mask, x3, x3[:2]),
            (x3, x3, x3),
            (which.astype(np.int8), x3, x3),
            (mask, x3, which),
            (mask,),
            (mask, x3),
            (mask[:2], x3, x3),
            (mask[:1], x3, x3),
            (0, 1, 2),
        ]
    ),
    ("select", mask, 1.0, 2.0),
    ("select", mask[:1], x3, x3),
    ("select", mask, x3, which),
]


@pytest.mark.parametrize("case", SHAPE_CASES, ids=lambda c: c[0])
def test_shapes(case):
    name, *args = case
    assert_same(getattr(lax, name), getattr(jlax, name), args)


def test_a_reshape_to_another_size_is_refused():
    # JAX lets this through until the program is compiled.
    with pytest.raises(TypeError, match=r"total size must be unchanged.*\(4,\).*\(2, 3\)"):
        lax.reshape(EagerArray(x6), (4,))


def tangent(fun, args, which):
    """The derivative of an elementwise function by one operand."""
    tangents = [
        EagerArray(np.ones_like(x)) if i == which else Zero.of(x) for i, x in enumerate(args)
    ]
    outs, out_tangents = jvp(lambda *xs: [fun(*xs)], args, tangents)
    t = out_tangents[0]
    return np.zeros(outs[0].shape, outs[0].dtype) if type(t) is Zero else t._value


def jax_tangent(fun, args, which):
    def of_one(x):
        return fun(*(x if i == which else a for i, a in enumerate(args)))

    return np.asarray(jax.jvp(of_one, (args[which],), (np.ones_like(args[which]),))[1])


def assert_same_tangent(name, args, which):
    with enable_x64(True), jax.enable_x64(True), np.errstate(all="ignore"):
        found = tangent(getattr(lax, name), args, which)
        wanted = jax_tangent(getattr(jlax, name), args, which)
        assert found.dtype == wanted.dtype
        bad = ~same_numbers(found, wanted, 1e5)
    if bad.any():
        i = np.flatnonzero(bad)[0]
        raise AssertionError(f"at {[a[i] for a in args]}: {found[i]}, JAX {wanted[i]}")


awkward = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 1e3, -1e3, np.inf, -np.inf, np.nan])
complex_points = np.array([complex(a, b) for a in (0.0, 1, -1, 0.5, 3) for b in (0.0, 1, -0.5, 2)])
REAL_ONLY = {"floor", "ceil", "cbrt", "rem", "complex"}


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("real", "imag", "is_finite")])
def test_derivatives_at_awkward_points(name):
    # Of acosh JAX has the derivative of the wrong branch where the real part is negative.
    keep = (lambda x: x[x.real >= 0]) if name == "acosh" else lambda x: x
    assert_same_tangent(name, [keep(awkward)], 0)
    if name not in REAL_ONLY:
        assert_same_tangent(name, [keep(complex_points)], 0)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "rem", "atan2", "max", "min", "pow", "complex"]
)
@pytest.mark.parametrize("which", [0, 1])
def test_derivatives_of_two_operands(name, which):
    n = len(awkward)
    assert_same_tangent(name, [np.repeat(awkward, n), np.tile(awkward, n)], which)


def test_derivative_of_a_power_of_integers():
    ys = np.array([0, 1, 2, 3, -1, -2], np.int32)
    xs = np.repeat(awkward, len(ys))
    assert_same_tangent("pow", [xs, np.tile(ys, len(awkward))], 0)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_derivatives_of_clamp(which):
    args = [a.ravel() for a in np.meshgrid(awkward[:6], awkward, awkward[:6])]
    assert_same_tangent("clamp", args, which)


@pytest.mark.parametrize(
    "args",
    [
        (np.zeros((2, 3), np.float32), 2),
        (np.zeros(3, np.int32), 2.9),
        (1.0, 2),
        (np.zeros(3, np.int32), 2.5, np.float32),
        (np.zeros(3, np.float32), 1, None, (2, 2)),
    ],
)
def test_full_like(args):
    jax_oracle.agree(lambda L: L.lax.full_like(*args))
