"""The Python array API standard, version 2024.12, as `namoo.numpy` has it.

Names and signatures come from a stored list of the standard.  Calls are written as the standard
spells them and run twice, in namoo and in NumPy, which implements the same version; JAX decides
where it departs from the standard, and those calls are listed apart.
"""

from __future__ import annotations

import inspect
import json
import operator
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp

STANDARD = json.loads((Path(__file__).parents[1] / "data" / "array_api_2024.json").read_text())
SECTIONS = {
    "functions": (jnp, jax.numpy),
    "linalg": (jnp.linalg, jax.numpy.linalg),
    "fft": (jnp.fft, jax.numpy.fft),
    "info": (jnp.__array_namespace_info__(), jax.numpy.__array_namespace_info__()),
    "methods": (jnp.ones((2, 2)), jax.numpy.ones((2, 2))),
}
SIGNATURES = [(section, name) for section in SECTIONS for name in STANDARD[section]]


@pytest.fixture
def wide():
    """Arrays of 64 bits, which half of the standard's dtypes have."""
    with namoo.enable_x64(True), jax.enable_x64(True):
        yield


def parameters(section: str, name: str) -> list[inspect.Parameter]:
    scope: dict[str, Any] = {}
    exec(f"def fun{STANDARD[section][name]}: ...", scope)
    return list(inspect.signature(scope["fun"]).parameters.values())


@pytest.mark.parametrize("kind", ["constants", "dtypes"])
def test_constants_and_dtypes(kind):
    for name in STANDARD[kind]:
        ours, wanted = getattr(jnp, name), getattr(np, name)
        if kind == "dtypes":
            assert jnp.dtype(ours) == wanted
        else:
            np.testing.assert_equal(ours, wanted)


@pytest.mark.parametrize("name", STANDARD["attributes"])
@pytest.mark.parametrize("x", [np.ones((2, 3), np.float32), np.arange(4).reshape(2, 1, 2) > 1])
def test_attributes(name, x):
    found = getattr(jnp.asarray(x), name)
    if name == "device":
        assert found in jnp.__array_namespace_info__().devices()
    elif name != "T" or x.ndim == 2:
        np.testing.assert_array_equal(np.asarray(found), getattr(x, name))


@pytest.mark.parametrize("section, name", SIGNATURES, ids=str)
def test_signatures(section, name):
    """Every call that the standard allows binds; a default differs only if JAX's does."""
    ours, theirs = (inspect.signature(getattr(owner, name)) for owner in SECTIONS[section])
    positional: list[str] = []
    keywords: dict[str, Any] = {}
    for p in parameters(section, name):
        if p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = p.default
        else:
            positional.append(p.name)
        if p.kind is p.POSITIONAL_OR_KEYWORD:
            assert ours.parameters[p.name].kind is p.kind
        own, jaxs = ours.parameters.get(p.name), theirs.parameters.get(p.name)
        if p.default is not p.empty and own and jaxs and jaxs.default == p.default:
            assert own.default == p.default, p.name
    ours.bind(*positional, **keywords)
    required = [p for p in parameters(section, name) if p.default is p.empty]
    ours.bind(*(p.name for p in required if p.kind is not p.VAR_POSITIONAL))


@pytest.mark.parametrize("enabled", [False, True])
def test_the_namespace_describes_itself(enabled):
    with namoo.enable_x64(enabled), jax.enable_x64(enabled):
        ours, theirs = jnp.__array_namespace_info__(), jax.numpy.__array_namespace_info__()
        assert ours.capabilities() == theirs.capabilities()
        assert ours.default_device() is theirs.default_device() is None
        assert ours.default_dtypes() == theirs.default_dtypes()
        assert [str(d) for d in ours.devices()] == [str(d) for d in (None, *namoo.devices())]
        kinds = [None, "bool", "signed integer", "unsigned integer", "integral", "real floating"]
        for kind in [*kinds, "complex floating", "numeric", ("bool", "integral"), ()]:
            assert ours.dtypes(kind=kind) == theirs.dtypes(kind=kind)
        for name, dtype in ours.dtypes(device=namoo.devices()[0]).items():
            assert jnp.zeros(1, dtype=dtype).dtype == getattr(jnp, name)
    with pytest.raises(KeyError, match="'real floating'"):
        ours.dtypes(kind="floating")


def test_arrays_know_their_namespace():
    x = jnp.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version=None) is jnp
    assert x.__array_namespace__(api_version=jnp.__array_api_version__) is jnp
    assert jnp.__array_api_version__ == jax.numpy.__array_api_version__ == STANDARD["version"]
    for version in ("2021.12", "2025.12", "latest"):
        with pytest.raises(ValueError, match="2024.12"):
            x.__array_namespace__(api_version=version)
    assert namoo.jit(lambda x: x.__array_namespace__().sin(x))(x).shape == (2,)


def test_devices():
    x = jnp.arange(3)
    for device in jnp.__array_namespace_info__().devices():
        for y in (x.to_device(device), jnp.asarray(x, device=device), jnp.ones(3, device=device)):
            assert y.device == x.device
        assert jnp.astype(x, jnp.float32, device=device).dtype == jnp.float32


def test_dlpack():
    x = jnp.arange(3.0)
    assert tuple(x.__dlpack_device__()) == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(3.0))
    for copy in (None, True, False):
        y = jnp.from_dlpack(x, device=None, copy=copy)
        assert type(y) is type(x) and y.tolist() == [0, 1, 2]
        assert (y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()) is (not copy)
    with pytest.raises(TypeError):
        x.__dlpack__(device=None)


SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGRAL, FLOATING = SIGNED + UNSIGNED, REAL + COMPLEX
BOOL, NUMERIC, ORDERED = ("bool",), INTEGRAL + FLOATING, INTEGRAL + REAL
ALL = BOOL + NUMERIC


def promoted(a: str, b: str) -> str | None:
    """The standard's result of mixing two dtypes; None where it leaves that open."""
    for chain in (BOOL, SIGNED, UNSIGNED, REAL, COMPLEX):
        if a in chain and b in chain:
            return max(a, b, key=chain.index)
    if a in UNSIGNED:
        a, b = b, a
    if a in SIGNED and b in UNSIGNED:
        # The first signed type that holds both; nothing holds int64 and uint64.
        holds = max(SIGNED.index(a), UNSIGNED.index(b) + 1)
        return SIGNED[holds] if holds < len(SIGNED) else None
    if a in COMPLEX:
        a, b = b, a
    if a in REAL and b in COMPLEX:
        return COMPLEX[max(REAL.index(a), COMPLEX.index(b))]
    return None


PAIRS = [(a, b) for a in ALL for b in ALL if promoted(a, b)]
KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGRAL,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow"), NUMERIC),
    "divide": FLOATING,
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), ORDERED),
    **dict.fromkeys(("equal", "not_equal"), ALL),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), ORDERED),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), REAL),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGRAL),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BOOL + INTEGRAL),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), BOOL),
}
TESTS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
UNARY = {
    **dict.fromkeys(("abs", "negative", "positive", "round", "sign", "square", "real"), NUMERIC),
    **dict.fromkeys(("isfinite", "isinf", "isnan", "conj"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "trunc"), ORDERED),
    **dict.fromkeys("acos acosh asin asinh atan atanh cos cosh exp expm1".split(), FLOATING),
    **dict.fromkeys("log log10 log1p log2 reciprocal sin sinh sqrt tan tanh".split(), FLOATING),
    "signbit": REAL,
    "imag": COMPLEX,
    "logical_not": BOOL,
    "bitwise_invert": BOOL + INTEGRAL,
}
PARTS = dict(zip(COMPLEX, REAL, strict=True))
OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
IN_PLACE = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
    "bitwise_and": operator.iand,
    "bitwise_or": operator.ior,
    "bitwise_xor": operator.ixor,
    "bitwise_left_shift": operator.ilshift,
    "bitwise_right_shift": operator.irshift,
}


def sample(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([True, False, True])
    return np.array([3, 1, 2]).astype(dtype) + (np.array(0.25j, dtype) if "c" in dtype else 0)


def assert_close(found: Any, wanted: Any) -> None:
    """Equal dtypes, shapes and, up to rounding, values."""
    assert found.dtype == wanted.dtype
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    rtol = 1e-5 if wanted.dtype in (np.float32, np.complex64) else 1e-10
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


def test_type_promotion(wide):
    for a, b in PAIRS:
        wanted = np.dtype(promoted(a, b))
        x, y = jnp.asarray(sample(a)), jnp.asarray(sample(b))
        assert jnp.result_type(a, b) == jnp.result_type(x, y) == jnp.result_type(x, b) == wanted
        assert jnp.can_cast(jnp.dtype(a), jnp.dtype(wanted))
        for joined in (jnp.concat([x, y]), jnp.stack([x, y]), jnp.where(x == x, x, y)):
            assert joined.dtype == wanted


@pytest.mark.parametrize("dtype", ALL)
def test_isdtype(dtype, wide):
    for kind, members in KINDS.items():
        assert jnp.isdtype(jnp.dtype(dtype), kind) is (dtype in members)
        assert jnp.isdtype(jnp.dtype(dtype), (kind, jnp.dtype(dtype))) is True
    assert [other for other in ALL if jnp.isdtype(jnp.dtype(dtype), jnp.dtype(other))] == [dtype]


@pytest.mark.parametrize("dtype", ALL)
def test_astype(dtype, wide):
    for source in ALL:
        if source in COMPLEX and dtype not in COMPLEX:
            continue  # The standard leaves it open.
        x = jnp.asarray(sample(source))
        for copy in (True, False):
            assert_close(jnp.astype(x, jnp.dtype(dtype), copy=copy), sample(source).astype(dtype))


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_keep_dtypes(name, wide):
    for dtype in UNARY[name]:
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(sample(dtype))
        if name in ("isfinite", "isinf", "isnan", "signbit"):
            result = "bool"
        else:
            result = PARTS.get(dtype, dtype) if name in ("abs", "real", "imag") else dtype
        assert_close(getattr(jnp, name)(jnp.asarray(sample(dtype))), wanted.astype(result))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_promote(name, wide):
    fun, oracle = getattr(jnp, name), getattr(np, name)
    for a, b in PAIRS:
        if a not in BINARY[name] or b not in BINARY[name]:
            continue
        x, y = sample(a), sample(b)[::-1]
        wanted = oracle(x, y).astype("bool" if name in TESTS else promoted(a, b))
        ours = jnp.asarray(x), jnp.asarray(y)
        assert_close(fun(*ours), wanted)
        if name in OPERATORS:
            assert_close(OPERATORS[name](*ours), wanted)
        if name in IN_PLACE:
            changed = IN_PLACE[name](*ours)
            assert_close(changed, wanted)
            assert_close(ours[0], x)


SCALARS = {bool: ALL, int: NUMERIC, float: FLOATING, complex: COMPLEX}


@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_take_the_dtype_of_the_array(name, wide):
    for kind, dtypes in SCALARS.items():
        for dtype in set(dtypes) & set(BINARY[name]):
            if (kind is bool) is not (dtype == "bool"):
                continue
            x, number = jnp.asarray(sample(dtype)), kind(1)
            result = np.dtype("bool" if name in TESTS else dtype)
            for pair in ((x, number), (number, x)):
                wanted = getattr(np, name)(*(np.asarray(v, dtype) for v in pair)).astype(result)
                assert_close(getattr(jnp, name)(*pair), wanted)
                if name in OPERATORS:
                    assert_close(OPERATORS[name](*pair), wanted)


_rng = np.random.default_rng(0)
_square = _rng.normal(size=(2, 3, 3))
ARRAYS: dict[str, np.ndarray] = {
    "x": _rng.normal(size=(3, 4)),
    "y": _rng.normal(size=(3, 4)),
    "f": _rng.normal(size=(3, 4)).astype(np.float32),
    "z": _rng.normal(size=(3, 4)) + 1j * _rng.normal(size=(3, 4)),
    "n": np.array([[3, 1, 2, 3], [0, 1, 1, 0], [5, 4, 3, 2]]),
    "small": np.array([100, 100, 100], np.int8),
    "bytes": np.array([200, 100, 7], np.uint8),
    "mask": np.array([[True, False, True, True], [False] * 4, [True] * 4]),
    "v": np.array([0.5, 2.0, 1.0]),
    "w": np.array([1.0, -1.0, 0.25]),
    "k": np.array([2, 0, 1]),
    "t": _rng.normal(size=(2, 3, 4)),
    "gaps": np.array([1.0, np.nan, 2.0, np.nan, 1.0]),
    "m": _square,
    "p": _square @ _square.mT + np.eye(3),
    "none": np.zeros((0, 3)),
    "one": np.ones((1, 3, 1)),
}
CALLS = """
all(mask) / all(mask, axis=1) / all(mask, axis=(0, 1), keepdims=True) / all(none) / all(n, axis=0)
any(mask) / any(mask, axis=1) / any(mask, axis=(0, 1), keepdims=True) / any(none) / any(n, axis=0)
arange(4) / arange(1, 4) / arange(1, 9, 3) / arange(4.0) / arange(5, 0, -2, dtype=float32)
arange(3, dtype=int8) / arange(0.0, 1.0, 0.25) / arange(2, stop=4, step=1)
argmax(x) / argmax(n, axis=1) / argmax(x, axis=0, keepdims=True)
argmin(x) / argmin(n, axis=1) / argmin(x, axis=0, keepdims=True)
argsort(x) / argsort(n, axis=0, stable=True) / argsort(n, axis=1)
asarray([1, 2]) / asarray([1.5, 2]) / asarray(True) / asarray([1j]) / asarray(x, dtype=float32)
asarray(x, copy=True) / asarray([[1, 2], [3, 4]], dtype=uint8) / asarray(x, copy=None)
astype(x, int32) / astype(n, float32, copy=False) / astype(f, complex128)
broadcast_arrays(v, m) / broadcast_to(v, (2, 3)) / broadcast_to(one, (2, 3, 4))
can_cast(int8, int16) / can_cast(int16, int8) / can_cast(float32, complex64)
clip(x, -0.5, 0.5) / clip(x, min=0) / clip(x, max=0) / clip(n, 1, 3) / clip(x, y, 2.0)
concat((x, y)) / concat((x, y), axis=1) / concat([x, y], axis=None)
concat((n, small[:, None]), axis=1)
count_nonzero(n) / count_nonzero(n, axis=1) / count_nonzero(mask, axis=0, keepdims=True)
cumulative_sum(v) / cumulative_sum(x, axis=1) / cumulative_sum(x, axis=0, include_initial=True)
cumulative_sum(small) / cumulative_sum(n, axis=1, dtype=float32) / cumulative_sum(bytes)
cumulative_prod(v) / cumulative_prod(x, axis=1) / cumulative_prod(x, axis=0, include_initial=True)
cumulative_prod(n, axis=1, dtype=float32)
diff(x) / diff(x, axis=0, n=2) / diff(v, prepend=w) / diff(v, append=w[:1])
empty((2, 3), dtype=int32).shape / empty_like(x).shape / empty_like(x, dtype=int8).dtype
expand_dims(x, axis=0) / expand_dims(x, axis=-1) / expand_dims(x, axis=1)
expand_dims(x, axis=(0, 2))
eye(3) / eye(2, 3) / eye(3, 3, k=1, dtype=int32) / eye(3, None, k=-1)
finfo(float32).eps / finfo(float64).max / finfo(float32).bits / finfo(float32).smallest_normal
finfo(float32).min / finfo(float64).dtype
flip(x) / flip(x, axis=1) / flip(t, axis=(0, -1))
from_dlpack(x) / from_dlpack(n, copy=True)
full((2, 2), 3) / full((2,), 1.5, dtype=float32) / full((), True) / full(3, 1j)
full_like(x, 2.0) / full_like(n, 7, dtype=float32)
iinfo(int8).max / iinfo(uint16).bits / iinfo(int32).min / iinfo(int64).dtype
isdtype(float32, 'real floating') / isdtype(int8, ('bool', 'integral'))
linspace(0, 1, 5) / linspace(0.0, 1.0, num=4, endpoint=False) / linspace(0, 1, 3, dtype=float32)
matmul(x, y.mT) / matmul(m, p) / matmul(v, w) / matmul(m, v) / matmul(f, f.T) / matmul(n, n.T)
matrix_transpose(x) / matrix_transpose(t)
max(x) / max(n, axis=0) / max(x, axis=(0, 1), keepdims=True) / max(gaps)
mean(x) / mean(x, axis=0) / mean(t, axis=(0, 2), keepdims=True) / mean(f, axis=1) / mean(gaps)
meshgrid(v, w) / meshgrid(v, k, indexing='ij')
min(x) / min(n, axis=0) / min(x, axis=(0, 1), keepdims=True) / min(gaps)
moveaxis(t, 0, 2) / moveaxis(t, (0, 1), (-1, 0))
nonzero(n) / nonzero(mask) / nonzero(v)
ones((2, 3)) / ones(3, dtype=int8) / ones_like(n) / ones_like(n, dtype=complex64)
permute_dims(t, (2, 0, 1)) / permute_dims(x, axes=(1, 0))
prod(x) / prod(small) / prod(n, axis=1, dtype=float32) / prod(x, axis=(0, 1), keepdims=True)
prod(none) / prod(bytes) / prod(z, axis=0)
repeat(x, 2) / repeat(x, 2, axis=1) / repeat(v, k) / repeat(x, k, axis=0)
reshape(x, (4, 3)) / reshape(x, (2, -1)) / reshape(x, shape=(12,), copy=True)
reshape(x, (-1,), copy=None)
result_type(int8, uint8) / result_type(f, float64) / result_type(n, small) / result_type(f, 1.0)
roll(v, 1) / roll(x, 1) / roll(x, (1, -1), axis=(0, 1)) / roll(x, 2, axis=1)
roll(x, 1, axis=(0, 1))
searchsorted(sort(v), w) / searchsorted(sort(v), v, side='right')
searchsorted(v, w, sorter=argsort(v))
sort(x) / sort(n, axis=0) / sort(x, axis=1, stable=False)
squeeze(one, axis=0) / squeeze(one, (0, 2)) / squeeze(one, axis=-1)
stack((x, y)) / stack((x, y), axis=1) / stack([x, y], axis=-1)
std(x) / std(x, axis=0) / std(x, axis=1, correction=1, keepdims=True) / std(x, correction=0.5)
sum(x) / sum(small) / sum(n, axis=1, dtype=float32) / sum(x, axis=(0, 1), keepdims=True)
sum(none) / sum(none, axis=1) / sum(bytes) / sum(f, axis=0) / sum(z, axis=0) / sum(mask)
take(x, k, axis=0) / take(v, k) / take(x, k, axis=-1)
take_along_axis(x, argsort(x)) / take_along_axis(x, argsort(x, axis=0), axis=0)
tensordot(x, y) / tensordot(x, y, axes=((0, 1), (0, 1))) / tensordot(x, y, axes=0)
tensordot(x, y, axes=([1], [1])) / tensordot(t, x, axes=2)
tile(x, (2, 1)) / tile(v, (2, 2)) / tile(t, (2,))
tril(x) / tril(m, k=1) / triu(x) / triu(m, k=-1)
unique_all(n) / unique_all(gaps) / unique_counts(n) / unique_counts(gaps)
unique_inverse(n) / unique_inverse(gaps)
unique_counts(n).values / unique_counts(n).counts / unique_inverse(n).inverse_indices
unique_all(n).indices
unstack(x) / unstack(x, axis=1) / unstack(t, axis=-1)
var(x) / var(x, axis=0) / var(x, axis=1, correction=1, keepdims=True)
vecdot(x, y) / vecdot(x, y, axis=0) / vecdot(z, x) / vecdot(m, p, axis=-2)
where(mask, x, y) / where(mask, x, 0.0) / where(mask, 1, n) / where(mask, f, x)
zeros((2, 3)) / zeros(3, dtype=int8) / zeros((), dtype=bool) / zeros_like(n)
zeros_like(n, dtype=float32)
linalg.cholesky(p) / linalg.cholesky(p, upper=True)
linalg.cross(v, w) / linalg.cross(m, v) / linalg.cross(m, p, axis=1)
linalg.det(m) / linalg.diagonal(m) / linalg.diagonal(t, offset=1) / linalg.diagonal(m, offset=-1)
linalg.eigh(p).eigenvalues / linalg.eigvalsh(p) / linalg.inv(p)
linalg.matmul(m, p) / linalg.matrix_transpose(t) / linalg.tensordot(x, y.T, axes=1)
linalg.vecdot(x, y, axis=0)
linalg.matrix_norm(m) / linalg.matrix_norm(m, keepdims=True) / linalg.matrix_norm(m, ord=inf)
linalg.matrix_norm(m, ord=-inf) / linalg.matrix_norm(m, ord=1) / linalg.matrix_norm(m, ord=-1)
linalg.matrix_norm(m, ord=2) / linalg.matrix_norm(m, ord=-2) / linalg.matrix_norm(m, ord='nuc')
linalg.matrix_power(m, 3) / linalg.matrix_power(p, -1) / linalg.matrix_power(m, 0)
linalg.matrix_rank(m) / linalg.matrix_rank(m, rtol=0.5) / linalg.outer(v, w) / linalg.outer(v, k)
linalg.pinv(t) / linalg.pinv(m, rtol=0.01)
linalg.qr(m).Q.shape / linalg.qr(t, mode='complete').R.shape / linalg.qr(t, mode='reduced').R.shape
linalg.slogdet(m) / linalg.slogdet(p).logabsdet / linalg.slogdet(m).sign
linalg.solve(p, m) / linalg.solve(p[0, ...], v)
linalg.svd(t).S / linalg.svd(t).U.shape / linalg.svd(t, full_matrices=False).Vh.shape
linalg.svdvals(t)
linalg.trace(m) / linalg.trace(t, offset=1) / linalg.trace(n, dtype=float32)
linalg.vector_norm(x) / linalg.vector_norm(x, axis=1)
linalg.vector_norm(x, axis=(0, 1), keepdims=True)
linalg.vector_norm(v, ord=1) / linalg.vector_norm(v, ord=inf) / linalg.vector_norm(v, ord=-inf)
linalg.vector_norm(v, ord=0) / linalg.vector_norm(v, ord=3)
linalg.vector_norm(t, axis=(0, 2), ord=1)
fft.fft(z) / fft.fft(z, n=6, axis=0, norm='ortho') / fft.ifft(z) / fft.ifft(z, n=3, norm='forward')
fft.fftn(z) / fft.fftn(z, s=(2, 5), axes=(0, 1), norm='ortho') / fft.ifftn(z)
fft.ifftn(z, axes=(1,))
fft.rfft(x) / fft.rfft(f, n=3, axis=0, norm='forward') / fft.irfft(z) / fft.irfft(z, n=5, axis=1)
fft.rfftn(x) / fft.rfftn(x, axes=(1, 0)) / fft.irfftn(z)
fft.irfftn(z, s=(3, 4), axes=(0, 1), norm='ortho')
fft.hfft(z) / fft.hfft(z, n=5, norm='ortho') / fft.ihfft(x) / fft.ihfft(x, n=3, axis=0)
fft.fftfreq(5) / fft.fftfreq(4, d=0.5) / fft.rfftfreq(5) / fft.rfftfreq(6, d=2.0)
fft.fftshift(x) / fft.fftshift(x, axes=1) / fft.ifftshift(x) / fft.ifftshift(x, axes=(0,))
x[0, 1] / x[1, ...] / x[..., None, 0] / x[::-1, 1:3] / x[-1, -2:] / t[:, 0, ::2] / x[2:1, :]
x[mask] / n[mask] / v[k] / x[k, k] / x[0, k] / t[:, k, 1] / x[k, 1:] / v[v > 0.75] / x[mask, None]
""".strip()
CALL_LIST = [call.strip() for line in CALLS.splitlines() for call in line.split(" / ")]
# What NumPy does not have, or has no unique answer to, beside what it must equal.
EQUALITIES = """
sort(x, axis=0, descending=True) == flip(sort(x, axis=0), axis=0)
sort(n, descending=True, stable=False) == flip(sort(n), axis=1)
argsort(n, descending=True) == argsort(negative(n), stable=True)
argsort(x, axis=0, descending=True, stable=True) == argsort(negative(x), axis=0)
matmul(linalg.qr(m).Q, linalg.qr(m).R) == m
matmul(linalg.svd(m).U * linalg.svd(m).S[:, None, :], linalg.svd(m).Vh) == m
matmul(linalg.eigh(p).eigenvectors * linalg.eigvalsh(p)[:, None], linalg.eigh(p)[1].mT) == p
fft.fftfreq(4, dtype=float32) == astype(fft.fftfreq(4), float32)
unique_values(n) == unique_counts(n).values
unique_values(gaps) == unique_counts(gaps).values
var(v, correction=3) == asarray(nan)
nonzero(n, size=3, fill_value=0) == (asarray([0, 0, 0]), asarray([0, 1, 2]))
fft.rfftfreq(4, dtype=float32) == astype(fft.rfftfreq(4), float32)
""".strip().splitlines()
# Calls that JAX answers otherwise than the standard, each with what it does.
DEPARTURES = {
    "searchsorted(sort(v), w)": "indices of 32 bits",
    "searchsorted(sort(v), v, side='right')": "indices of 32 bits",
    "searchsorted(v, w, sorter=argsort(v))": "indices of 32 bits",
    "linalg.matrix_rank(m, rtol=0.5)": "rtol is not relative to the largest singular value",
}


def run(call: str, xp: Any, convert: Any) -> list[Any]:
    """The arrays, or plain values, that a call gives."""
    scope = {name: getattr(xp, name) for name in (*STANDARD["functions"], *STANDARD["dtypes"])}
    scope |= {name: convert(value) for name, value in ARRAYS.items()}
    with np.errstate(all="ignore"):
        out = eval(call, scope | {n: getattr(xp, n) for n in ("inf", "nan", "linalg", "fft")})
    return list(out) if isinstance(out, (tuple, list)) else [out]


def assert_same(ours: list[Any], wanted: list[Any]) -> None:
    assert len(ours) == len(wanted)
    for found, value in zip(ours, wanted, strict=True):
        if isinstance(value, (np.ndarray, np.generic, jax.Array)):
            assert_close(jnp.asarray(found), value)
        else:
            assert found == value


@pytest.mark.parametrize("call", CALL_LIST)
def test_calls(call, wide):
    ours, standard = run(call, jnp, jnp.asarray), run(call, np, np.asarray)
    if call in DEPARTURES:
        theirs = run(call, jax.numpy, jax.numpy.asarray)
        with pytest.raises(AssertionError):
            assert_same(theirs, standard)
        standard = theirs
    assert_same(ours, standard)


@pytest.mark.parametrize("row", EQUALITIES)
def test_equalities(row, wide):
    call, _, wanted = row.partition(" == ")
    assert_same(run(call, jnp, jnp.asarray), run(wanted, np, np.asarray))


def test_every_function_of_the_standard_is_called():
    text = " ".join([*CALL_LIST, *EQUALITIES]).replace("(", " ( ").split()
    spelled = {word for word, after in zip(text, text[1:], strict=False) if after == "("}
    names = {
        f"{s}." * (s != "functions") + n
        for s in ("functions", "linalg", "fft")
        for n in STANDARD[s]
    }
    assert names - spelled - {*UNARY, *BINARY} == {"__array_namespace_info__"}


@pytest.mark.parametrize(
    "call, error",
    [
        ("matmul(v, v[0])", ValueError),
        ("matmul(x, y)", TypeError),
        ("add(x, v)", ValueError),
        ("reshape(x, (5,))", TypeError),
        ("squeeze(x, axis=0)", ValueError),
        ("concat((x, t))", TypeError),
        ("sum(x, axis=2)", ValueError),
        ("expand_dims(x, axis=4)", ValueError),
        ("broadcast_to(x, (4, 3))", ValueError),
        ("sort(x, axis=7)", ValueError),
        ("meshgrid(v, indexing='yx')", ValueError),
        ("x.__bool__()", ValueError),
        ("isdtype(float32, 'floating')", ValueError),
        ("asarray(x, dtype='words')", TypeError),
        ("linalg.cholesky(v)", TypeError),
        ("linalg.inv(t)", ValueError),
        ("fft.fft(x, norm='both')", ValueError),
    ],
)
def test_errors_are_those_of_jax(call, error):
    for xp in (jnp, jax.numpy):
        with pytest.raises(error):
            run(call, xp, xp.asarray)


def _floats(shape: tuple[int, ...]) -> np.ndarray:
    return np.linspace(-2, 2, max(int(np.prod(shape)), 1))[: int(np.prod(shape))].reshape(shape)


@settings(max_examples=40)
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0),
    name=st.sampled_from(["add", "multiply", "maximum", "less", "copysign", "hypot"]),
)
def test_broadcasting(shapes, name):
    x, y = (_floats(shape).astype(np.float32) for shape in shapes.input_shapes)
    found = getattr(jnp, name)(jnp.asarray(x), jnp.asarray(y))
    assert found.shape == shapes.result_shape
    assert_close(found, np.asarray(getattr(np, name)(x, y)))


@settings(max_examples=60)
@given(data=st.data(), keepdims=st.booleans())
def test_reductions_along_any_axes(data, keepdims):
    shape = data.draw(hnp.array_shapes(max_dims=4, max_side=3))
    axes = st.one_of(
        st.none(),
        st.integers(-len(shape), len(shape) - 1),
        hnp.valid_tuple_axes(len(shape), min_size=1),
    )
    axis = data.draw(axes)
    name = data.draw(st.sampled_from("sum prod max min mean std var all any count_nonzero".split()))
    x = _floats(shape).astype(np.float32)
    found = getattr(jnp, name)(jnp.asarray(x), axis=axis, keepdims=keepdims)
    wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
    assert_close(found, wanted.astype(np.int32) if name == "count_nonzero" else wanted)


@settings(max_examples=100)
@given(data=st.data())
def test_any_basic_index(data):
    x = np.arange(24, dtype=np.int32).reshape(data.draw(st.permutations([2, 3, 4])))
    index = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
    assert_close(jnp.asarray(x)[index], np.asarray(x[index]))


def test_arrays_are_not_written_to():
    """The standard lets a library refuse assignment; JAX does, and says what to write instead."""
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1  # type: ignore[index]
