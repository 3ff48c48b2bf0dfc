"""Types of elements against real JAX: canonical forms, hierarchy, promotion, weak types, keys."""

import contextlib
import copy
import enum
import itertools
import pickle
import warnings
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src import config as jax_config
from jax._src import core as jax_core
from jax._src import dtypes as jax_dtypes

import namoo.dtypes as public
from namoo._base import config as settings
from namoo._base import dtypes as dt

ALL = sorted(dt.SUPPORTED - {dt.float0}, key=lambda d: d.name)
FLOATS = [d for d in ALL if dt.issubdtype(d, np.floating)]
INTEGERS = [d for d in ALL if dt.issubdtype(d, np.integer)]
COMPLEX = [dt.complex64, dt.complex128]
ABSTRACT = [
    np.generic,
    np.number,
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.inexact,
    np.floating,
    np.complexfloating,
    np.bool_,
    np.character,
    np.flexible,
    np.void,
    np.object_,
]
IMPLS = ["threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"]
PYTHON = [bool, int, float, complex]


@contextlib.contextmanager
def both(x64: bool = False, mode: str = "standard", explicit: str = "warn"):
    """The same settings in namoo and in JAX."""
    explicit_mode = jax_config.ExplicitX64Mode[explicit.upper()]
    with (
        settings.enable_x64(x64),
        settings.numpy_dtype_promotion(mode),
        settings.explicit_x64_dtypes(explicit),
        jax.enable_x64(x64),
        jax.numpy_dtype_promotion(mode),
        jax_config.explicit_x64_dtypes(explicit_mode),
    ):
        yield


def outcome(function, *args) -> Any:
    """What a call does: its value, or the kind of its error; and the kinds of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error).__name__
    return result, {warning.category for warning in caught}


def mine(dtype, weak):
    """What namoo's arrays and abstract values show of their type."""
    return SimpleNamespace(dtype=dtype, weak_type=weak)


def theirs(dtype, weak):
    """What JAX's arrays and abstract values show of their type."""
    return SimpleNamespace(dtype=dtype, aval=SimpleNamespace(weak_type=weak))


def is_wide(dtype) -> bool:
    return dtype in (dt.int64, dt.uint64, dt.float64, dt.complex128)


def test_every_type_of_jax_is_here_and_no_other():
    # JAX also lists strings, which none of its operations but a copy takes.
    assert dt.SUPPORTED == jax_dtypes._jax_dtype_set - {np.dtypes.StringDType()}
    for dtype in ALL:
        constant = "bool_" if dtype.kind == "b" else dtype.name
        if dtype.name not in ("int1", "uint1"):
            assert getattr(dt, constant) is dtype
    assert dt.float0 == jax.dtypes.float0


def test_the_public_namespace_is_that_of_jax():
    assert set(public.__all__) == {name for name in vars(jax.dtypes) if not name.startswith("_")}
    assert public.bfloat16 is jax.dtypes.bfloat16
    assert issubclass(public.TypePromotionError, ValueError)


SPECIFIERS = [
    *ALL,
    *(d.name for d in ALL if not d.name.endswith("int1")),
    *(d.type for d in ALL),
    *PYTHON,
    None,
    "int",
    "i4",
    "<f8",
    ">f4",
    "c16",
    "float",
    "S3",
    str,
    object,
    np.longdouble,
    dt.float0,
    np.dtype([("a", np.int32)]),
    np.dtype("datetime64[s]"),
    SimpleNamespace,
    3,
    2.5,
    "float33",
    np.floating,
    [1, 2],
    (),
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("spec", SPECIFIERS, ids=repr)
def test_canonicalize(spec, x64):
    with both(x64):
        expected = outcome(jax.dtypes.canonicalize_dtype, spec)
        assert outcome(public.canonicalize_dtype, spec) == expected
        # A second time from memory.
        assert outcome(public.canonicalize_dtype, spec) == expected


class ScalarType:
    """As `jnp.float32` is: an object that makes arrays, with a dtype."""

    dtype = np.dtype("float64")

    def __call__(self, x):
        return np.float64(x)


def test_canonicalize_takes_objects_with_a_dtype():
    assert dt.canonicalize_dtype(ScalarType()) == np.float32
    assert dt.dtype_of(ScalarType()) == np.float32
    with settings.enable_x64(True):
        assert dt.canonicalize_dtype(ScalarType()) == np.float64


def test_canonicalize_extended_types():
    key = dt.KeyDType("threefry2x32")
    assert dt.canonicalize_dtype(key, allow_extended=True) is key
    assert public.canonicalize_dtype(key, allow_extended_dtype=True) is key
    assert dt.canonicalize_dtype(dt.prng_key, allow_extended=True) is dt.prng_key
    for extended in (key, dt.prng_key):
        # Allowed once is not allowed for ever.
        with pytest.raises(ValueError, match="random keys"):
            dt.canonicalize_dtype(extended)


@pytest.mark.parametrize("explicit", ["warn", "error", "allow"])
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("spec", SPECIFIERS, ids=repr)
def test_types_that_users_name(spec, x64, explicit):
    with both(x64, explicit=explicit):
        expected = outcome(jax_dtypes.check_and_canonicalize_user_dtype, spec, "zeros")
        assert outcome(dt.check_user_dtype_supported, spec, "zeros") == expected


def test_warning_names_function_types_remedy_and_the_users_line():
    with pytest.warns(UserWarning, match="float64 requested in zeros.*jax_enable_x64") as seen:
        dt.check_user_dtype_supported("float64", "zeros")
    assert "float32" in str(seen[0].message)
    assert seen[0].filename == __file__


@pytest.mark.parametrize("fun_name", [None, "zeros"])
def test_arrays_are_no_types(fun_name):
    with pytest.raises(ValueError, match=r"x\.dtype"):
        dt.check_user_dtype_supported(np.ones(3), fun_name)
    assert outcome(jnp.zeros, 3, jnp.ones(3))[0] == "ValueError"
    with pytest.raises(TypeError, match=r"x\.dtype"):
        dt.canonicalize_dtype(np.ones(3))


class Celsius(float):
    """A number that is not plain: it has a type of its own, and is not weak."""


class Colour(enum.IntEnum):
    RED = 1


VALUES = [
    *(kind(1) for kind in PYTHON),
    *(np.ones(2, d) for d in ALL),
    *(np.ones((), d)[()] for d in ALL),
    np.zeros(2, dt.float0),
    *PYTHON,
    *ALL,
    *(d.type for d in ALL),
    *(d.name for d in ALL if not d.name.endswith("int1")),
    "float33",
    None,
    object(),
    [1, 2],
    np.array(["a"]),
    np.array([None]),
    np.str_("int32"),
    np.longdouble(1),
    np.datetime64(1, "s"),
    SimpleNamespace(dtype=np.dtype("float64")),
    SimpleNamespace(dtype=np.dtype("S3")),
    Celsius(1.5),
    Colour.RED,
    memoryview(b"abc"),
]


@pytest.mark.parametrize("explicit", ["warn", "error", "allow"])
@pytest.mark.parametrize("x64", [False, True])
def test_types_of_values(x64, explicit):
    with both(x64, explicit=explicit):
        for value in VALUES:
            expected = outcome(jax_dtypes.dtype, value)
            assert outcome(dt.dtype_of, value) == expected, repr(value)
            expected = outcome(jax.dtypes.result_type, value)
            assert outcome(public.result_type, value) == expected, repr(value)
            expected = outcome(jax.dtypes.scalar_type_of, value)
            assert outcome(public.scalar_type_of, value) == expected, repr(value)
            if expected[0] != "TypeError":
                weak = value in (int, float, complex) if isinstance(value, type) else None
                weak = jax_dtypes.is_weakly_typed(value) if weak is None else weak
                assert dt.is_weak(value) == weak, repr(value)


def test_python_scalars():
    for value in (True, 1, 1.0, 1j):
        assert dt.is_python_scalar(value)
        assert dt.is_python_type(type(value))
        assert dt.is_weak(value) == jnp.asarray(value).weak_type
        assert dt.python_scalar_dtype(type(value)) == jnp.asarray(value).dtype
        assert dt.coerce_scalar(value).dtype == jnp.asarray(value).dtype
        assert dt.coerce_scalar(value).shape == ()
    for value in (np.float64(1), np.bool_(True), Celsius(1), "1", None, np.ones(())):
        assert not dt.is_python_scalar(value)
        assert not dt.is_weak(value)
    for kind in (np.float64, dt.float64, dt.bool_, "float", None, Celsius):
        assert not dt.is_python_type(kind)


@pytest.mark.parametrize("x64", [False, True])
# XLA computes with one-bit integers as booleans.
@pytest.mark.parametrize("dtype", [d for d in ALL if dt.itemsize_bits(d) > 1], ids=str)
def test_scalars_meet_arrays(dtype, x64):
    with both(x64):
        for value in (200, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 10**30):
            if is_wide(dtype) and not x64:
                continue
            expected = outcome(lambda v=value: jnp.zeros((), dtype) + v)
            if expected[0] == "OverflowError":
                with pytest.raises(OverflowError, match=str(value)):
                    dt.coerce_scalar(value, dtype)
            elif dtype in INTEGERS:
                assert dt.coerce_scalar(value, dtype) == np.asarray(expected[0])


def issubdtype_arguments(extended, prng_key, keys):
    return [*ALL, dt.float0, *(d.type for d in ALL), *ABSTRACT, *PYTHON, None, "f4", "bfloat16",
            extended, prng_key, *keys]  # fmt: skip


def test_issubdtype():
    ours = issubdtype_arguments(dt.extended, dt.prng_key, map(dt.KeyDType, IMPLS))
    keys = [jax.random.key(0, impl=impl).dtype for impl in IMPLS]
    oracle = issubdtype_arguments(jax.dtypes.extended, jax.dtypes.prng_key, keys)
    pairs = zip(ours, oracle, strict=True)
    for (a, x), (b, y) in itertools.product(list(pairs), repeat=2):
        assert public.issubdtype(a, b) == jnp.issubdtype(x, y), (a, b)
    for bad in ("float33", 3):
        assert outcome(public.issubdtype, bad, np.floating) == outcome(
            jnp.issubdtype, bad, np.floating
        )


KINDS = [
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
    "float32",
    np.int8,
    int,
    dt.bfloat16,
    ("bool", "complex floating"),
    ("float16", np.uint8, "signed integer"),
    (),
    "number",
    3,
    ("bool", 2.5),
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_isdtype(kind):
    for dtype in [*ALL, "float32", float, np.int8, dt.float0]:
        assert outcome(dt.isdtype, dtype, kind) == outcome(jnp.isdtype, dtype, kind)


def test_can_cast():
    for a, b in itertools.product(ALL, repeat=2):
        assert dt.can_cast(a, b) == jnp.can_cast(a, b), (a, b)
        for casting in ("no", "same_kind", "unsafe"):
            assert dt.can_cast(a, b, casting) == jnp.can_cast(a, b, casting), (a, b, casting)


FINFO = ("bits", "eps", "epsneg", "machep", "max", "maxexp", "min", "minexp", "negep", "nexp",
         "nmant", "precision", "resolution", "smallest_normal", "smallest_subnormal", "tiny",
         "dtype")  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_finfo(dtype):
    ours, oracle = public.finfo(dtype), jnp.finfo(dtype)
    for field in FINFO:
        np.testing.assert_equal(getattr(ours, field), getattr(oracle, field), field)
    assert dt.supports_inf(dtype) == jax_dtypes.supports_inf(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_iinfo(dtype):
    ours, oracle = public.iinfo(dtype), jnp.iinfo(dtype)
    for field in ("bits", "min", "max", "dtype", "kind"):
        assert getattr(ours, field) == getattr(oracle, field)
    assert not dt.supports_inf(dtype)


@pytest.mark.parametrize("dtype", [*ALL, dt.float0, None, str, "float32", bool, float], ids=str)
def test_itemsize_bits(dtype):
    assert outcome(public.itemsize_bits, dtype) == outcome(jax.dtypes.itemsize_bits, dtype)


@pytest.mark.parametrize("dtype", [*ALL, dt.float0], ids=str)
def test_short_names(dtype):
    oracle = jax_core.ShapedArray((), dtype).str_short(short_dtypes=True)
    assert f"{dt.short_name(dtype)}[]" == oracle


RELATED = ["to_inexact_dtype", "to_numeric_dtype", "to_complex_dtype", "to_floating_dtype"]


@pytest.mark.parametrize("function", RELATED)
def test_related_types(function):
    # JAX forgets that the narrowest integers are integers; here they become float32 like others.
    forgotten = {"int1", "uint1", "int2", "uint2"}
    for dtype in ALL:
        ours = getattr(dt, function)(dtype)
        if dtype.name in forgotten and function != "to_numeric_dtype":
            assert ours == getattr(jax_dtypes, function)("int8")
        else:
            assert ours == getattr(jax_dtypes, function)(dtype), dtype


def test_tangent_types():
    for dtype in ALL:
        aval = jax_core.ShapedArray((), dtype).to_tangent_aval()
        assert dt.tangent_dtype(dtype) == aval.dtype
    assert dt.tangent_dtype(dt.float0) == dt.float0
    for impl in IMPLS:
        assert dt.tangent_dtype(dt.KeyDType(impl)) == dt.float0


OPERANDS = [(dtype, weak) for dtype in ALL for weak in (False, True)]


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("x64", [False, True])
def test_lattice_of_all_pairs(x64, mode):
    operands = [(d, weak) for d, weak in OPERANDS if x64 or not is_wide(d)]
    with both(x64, mode):
        for a, b in itertools.product(operands, repeat=2):
            expected = outcome(jax_dtypes.lattice_result_type, theirs(*a), theirs(*b))
            assert outcome(dt.lattice_result_type, mine(*a), mine(*b)) == expected, (a, b)
            assert outcome(dt.join, a, b) == expected, (a, b)


@pytest.mark.parametrize("explicit", ["warn", "allow"])
def test_arrays_made_with_64_bits_outlive_the_setting(explicit):
    with jax.enable_x64(True):
        # XLA has no 6-bit floats and no one-bit integers.
        present = [d for d in ALL if dt.itemsize_bits(d) not in (1, 6)]
        arrays = {d: jnp.zeros((), d) for d in present}
    with both(False, explicit=explicit):
        for (a, x), (b, y) in itertools.product(arrays.items(), repeat=2):
            if not (is_wide(a) or is_wide(b)):
                continue
            ours = outcome(dt.lattice_result_type, mine(a, False), mine(b, False))
            assert ours == outcome(jax_dtypes.lattice_result_type, x, y), (a, b)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promote_types(x64, mode):
    specifiers = [*ALL, *PYTHON, None, "f4", np.float64, dt.float0, object]
    with both(x64, mode):
        for a, b in itertools.product(specifiers, repeat=2):
            assert outcome(dt.promote_types, a, b) == outcome(jnp.promote_types, a, b), (a, b)


@pytest.mark.parametrize("x64", [False, True])
def test_safe_to_cast(x64):
    specifiers = [d for d in ALL if x64 or not is_wide(d)]
    with both(x64):
        for a, b in itertools.product([*specifiers, 1, 2.0, 1j, True], specifiers):
            expected = outcome(jax_dtypes.safe_to_cast, a, b)
            assert outcome(dt.safe_to_cast, a, b) == expected, (a, b)


ARGUMENTS = st.one_of(
    st.sampled_from([True, 1, 2.5, 1j]),
    st.sampled_from([bool, int, float, complex, None]),
    st.sampled_from([d for d in ALL if not is_wide(d)]),
    st.sampled_from(["int8", "uint32", "float16", "bfloat16", "complex64", "int4"]),
    st.sampled_from([np.ones(2, d) for d in ALL]),
)


@given(
    args=st.lists(ARGUMENTS, max_size=5),
    x64=st.booleans(),
    mode=st.sampled_from(["standard", "strict"]),
)
def test_result_type(args, x64, mode):
    with both(x64, mode):
        for flag in (False, True):
            expected = outcome(
                lambda: jax.dtypes.result_type(*args, return_weak_type_flag=flag)  # noqa: B023
            )
            ours = outcome(
                lambda: public.result_type(*args, return_weak_type_flag=flag)  # noqa: B023
            )
            assert ours == expected


@given(st.lists(st.sampled_from(OPERANDS), min_size=1, max_size=5), st.randoms())
def test_promotion_does_not_depend_on_order(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    with both(x64=True):
        assert outcome(dt.join, *pairs) == outcome(dt.join, *shuffled)
        expected = outcome(jax_dtypes.lattice_result_type, *(theirs(*pair) for pair in pairs))
        assert outcome(dt.join, *pairs) == expected


@pytest.mark.parametrize(
    "mode, args, words",
    [
        ("strict", ("int32", "float32"), ["float32", "int32", "strict", "astype", "'standard'"]),
        ("strict", ("int32", 1.5), ["Python float", "int32"]),
        ("standard", ("float8_e4m3fn", "float32"), ["float8_e4m3fn", "astype('float32')"]),
        ("standard", ("int4", "int8"), ["int4", "int8", "astype('int32')"]),
    ],
)
def test_promotion_errors_say_what_to_write(mode, args, words):
    with settings.numpy_dtype_promotion(mode), pytest.raises(dt.TypePromotionError) as caught:
        dt.result_type(*args)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("impl", IMPLS)
def test_key_types(impl):
    oracle = jax.random.key(0, impl=impl)
    key = dt.KeyDType(impl)
    assert (repr(key), str(key), key.name, key.itemsize) == (
        repr(oracle.dtype),
        str(oracle.dtype),
        oracle.dtype.name,
        oracle.dtype.itemsize,
    )
    assert key.key_shape == jax.random.key_data(oracle).shape
    assert key.impl == impl
    assert key.type is dt.prng_key
    assert dt.short_name(key) == oracle.dtype.name
    assert dt.of_numpy(key.numpy) is key
    assert key.numpy.names == tuple(f"k{i}" for i in range(*key.key_shape))
    assert {key, dt.KeyDType(impl)} == {key}
    assert pickle.loads(pickle.dumps(key)) is key
    assert copy.deepcopy(key) is key
    with pytest.raises(TypeError):
        np.dtype(key)  # type: ignore[call-overload]


def test_key_types_differ():
    keys = [dt.KeyDType(impl) for impl in IMPLS]
    for a, b in itertools.combinations(keys, 2):
        assert a != b
        assert a.numpy != b.numpy
    assert keys[0] != dt.float32
    with pytest.raises(ValueError, match="threefry2x32"):
        dt.KeyDType("threefry")
    with pytest.raises(ValueError, match="defined already"):
        dt.define_key_dtype("rbg", "other", (4,))


REARRANGE = {
    "reshape": lambda x: x.reshape(3, 2),
    "transpose": lambda x: x.T,
    "take": lambda x: np.take(x, [2, 0], axis=1),
    "index": lambda x: x[1],
    "scalar": lambda x: np.asarray(x[0, 0]),
    "reversed": lambda x: x[:, ::-1],
    "where": lambda x: np.where([[True], [False]], x, x[::-1]),
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "stack": lambda x: np.stack([x, x], axis=1),
    "broadcast": lambda x: np.broadcast_to(x[0], (4, 3)),
    "empty": lambda x: x[:, :0],
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", REARRANGE)
def test_numpy_rearranges_keys_as_numbers(impl, name):
    key = dt.KeyDType(impl)
    count = key.key_shape[0]
    positions = np.arange(6).reshape(2, 3)
    words = np.arange(6 * count, dtype=np.uint32).reshape(2, 3, count)
    keys = key.from_words(words)
    assert keys.shape == (2, 3)
    moved = REARRANGE[name](keys)
    assert dt.of_numpy(moved.dtype) is key
    assert dt.dtype_of(moved) is key
    expected = words.reshape(6, count)[REARRANGE[name](positions)]
    np.testing.assert_array_equal(key.to_words(moved), expected)


def test_keys_of_two_generators_do_not_mix():
    rbg = dt.KeyDType("rbg").from_words(np.zeros((3, 4), np.uint32))
    unsafe = dt.KeyDType("unsafe_rbg").from_words(np.zeros((3, 4), np.uint32))
    with pytest.raises(TypeError):
        np.concatenate([rbg, unsafe])


@pytest.mark.parametrize(
    "words",
    [
        np.zeros(3, np.uint32),
        np.zeros(2, np.int32),
        np.zeros((), np.uint32),
        np.zeros((2, 4), "u4"),
    ],
    ids=["shape", "dtype", "rank", "trailing"],
)
def test_bad_words_are_refused(words):
    with pytest.raises(TypeError, match="uint32"):
        dt.KeyDType("threefry2x32").from_words(words)


def test_keys_are_promoted_with_themselves_only():
    ours = [mine(dt.KeyDType("threefry2x32"), False), mine(dt.KeyDType("rbg"), False)]
    oracle = [jax.random.key(0), jax.random.key(0, impl="rbg")]
    assert dt.result_type(ours[0], ours[0]) is dt.KeyDType("threefry2x32")
    for other in (1, 2.0, np.float32(1)):
        expected = outcome(jax.dtypes.result_type, oracle[0], other)
        assert outcome(dt.result_type, ours[0], other) == expected
    assert outcome(dt.result_type, *ours) == outcome(jax.dtypes.result_type, *oracle)
    assert outcome(dt.result_type, dt.KeyDType("rbg")) == outcome(
        jax.dtypes.result_type, oracle[1].dtype
    )


@pytest.mark.parametrize("kind", dt.MEMBERS)
def test_members_are_what_issubdtype_says(kind):
    assert dt.MEMBERS[kind] == {d for d in dt.SUPPORTED if dt.issubdtype(d, kind)}


@pytest.mark.parametrize(
    "mode, left, right, words",
    [
        ("standard", "float8_e4m3fn", "float32", "8-bit floats do not support implicit promotion"),
        ("standard", "float4_e2m1fn", "float32", "4-bit floats do not support implicit promotion"),
        ("standard", "int4", "int8", "4-bit integers do not support implicit promotion"),
        ("strict", "int32", "float32", "promotion path when jax_numpy_dtype_promotion=strict"),
    ],
)
def test_types_without_a_common_one_are_refused_in_the_words_of_jax(mode, left, right, words):
    with settings.numpy_dtype_promotion(mode):
        with pytest.raises(public.TypePromotionError, match=words):
            dt.promote_types(left, right)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "float16", "complex64"])
def test_the_type_of_one_weak_value_is_the_default_of_its_kind(dtype):
    weak = SimpleNamespace(dtype=np.dtype(dtype), shape=(), weak_type=True)
    kinds = {"u": "uint", "i": "int", "f": "float", "c": "complex"}
    for bits, x64 in ((32, False), (64, True)):
        with settings.enable_x64(x64):
            kind = kinds[weak.dtype.kind]
            assert dt.result_type(weak) == f"{kind}{2 * bits if kind == 'complex' else bits}"


def test_a_name_that_is_no_type():
    with pytest.raises(TypeError, match="data type 'nonsense' not understood"):
        dt.canonicalize_dtype("nonsense")
