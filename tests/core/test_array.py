"""Arrays themselves: operators, conversions, printing, protocols, and what traced ones refuse."""

import copy
import pickle
import sys
from collections.abc import Hashable

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
import numpy_oracle as oracle
from jax_oracle import agree, fail_alike
from namoo import errors, lax
from namoo.interpreters import partial_eval

X = np.arange(5, dtype=np.float32)

OPERATORS = """
f + p
f + 1
f + 1.5
1 - f
f * g
f / 2
i / 2
i // j
i % j
7 // j
i % 0
i // 0
f // 0.3
f % 0.3
divmod(i, j)
divmod(7.5, p)
f ** 2
f ** -1
i ** 2
i ** -1
p ** 0.5
p ** f
2 ** f
2 ** j
j ** j
u ** 2
f ** j
f @ m
-f
+f
-u
-t
abs(i)
~i
~t
~f
i & 3
i | j
3 ^ i
t & t
f & 1
u << 2
i >> 1
u >> 1
1 << j
f < p
f <= 0
0 < f
i == j
f != f
c == c
c < c
f == None
f == 'a'
f != 'a'
f == [1.0]
f + [1]
f * (2,)
f + 'a'
f + None
f + f.T
z + m
f < None
k + 300
i + 2**40
h + 1.5
h + i
b * 2
t + t
t * t
t - t
t + 1
u - 1
np.float32(2) * f
np.ones(4, np.float32) + f
f + np.ones(4)
f + np.float64(1.5)
f > np.ones(4)
jnp.full(3, 1.5) + jnp.full(3, 1)
jnp.full(3, 2) ** jnp.full(3, 2)
jnp.asarray(1) + jnp.asarray(2.5)
f[0]
f[-1, 1:]
f[..., None].shape
f.at[0].set(1.0)
f.at[0, 1].add(1)
2.0 in g
2.0 in f
None in g
f.conj()
c.real
c.imag
f.imag
c.conj()
f.dot(g)
f.item()
s.item()
f.item(3)
f.item(1, 2)
f.tolist()
f.nbytes
f.itemsize
f.view('int32')
f.view('int8')
u.view('int16')
c.view('float32')
f.view('complex64')
t.view('int8')
s.view('int32')
s.view('int8')
g.view('float64')
i.byteswap()
f.byteswap()
u.byteswap()
f.astype(int).prod(axis=0)
f.swapaxes(0, 1)
f.squeeze()
f.trace()
f.diagonal()
f.ptp()
f.var(axis=0)
f.repeat(2, axis=0)
f.ravel()
f.take(np.array([1, 2]), axis=1)
f.nonzero(size=3)
f.flat
len(f)
len(s)
iter(s)
list(g)
bool(s)
bool(f)
bool(e)
int(s)
int(f)
float(s)
float(i[0, 0])
complex(s)
int(i[0, 1])
range(3)[i[0, 0] * 0]
[1, 2, 3][j[0] * 0 + 1]
[1, 2, 3][s]
hash(f)
f'{s:.2f}'
f'{i[0, 0]:03d}'
format(f, '')
str(f)
repr(f)
repr(i)
repr(t)
repr(c)
repr(h)
repr(b)
repr(e)
repr(s)
repr(z)
repr(jnp.asarray(1.5))
repr(jnp.full(3, 1))
repr(jnp.arange(2000))
repr(jnp.zeros((0, 3), int))
repr(jnp.arange(20) * 100000)
repr(jnp.arange(13) / 16)
repr(jnp.zeros((2, 20)))
repr(jnp.asarray([1.5, 2], 'float8_e4m3fn'))
repr(jnp.asarray([1, -2], 'int4'))
np.asarray(f)
np.asarray(f, np.float64)
np.array(f)
np.sin(f)
np.sum(f)
jnp.asarray([1, 2], 'int4') + jnp.asarray([1, 2], 'int4')
jnp.asarray([1, 2], 'int4') + 1
jnp.asarray([1, 2], 'int4') + i[0, 0]
jnp.asarray([1.5, 2], 'float8_e5m2') * 2.0
jnp.asarray([1.5, 2], 'float8_e5m2').sum()
jnp.asarray([1.5, 2], 'float8_e5m2') + f[0, 0]
""".strip().splitlines()


# What needs values, or prints them.
WORDS = ("repr", "str(", "np.", "format", "bool(", "int(", "float(", "complex(", "range(", "][")
CONCRETE = [text for text in OPERATORS if any(word in text for word in WORDS)]
TRACED = [text for text in OPERATORS if text not in CONCRETE]


@pytest.mark.parametrize("expression", CONCRETE)
def test_concrete_as_jax(expression):
    oracle.check_eager(expression)


@pytest.mark.parametrize("expression", TRACED)
def test_as_jax(expression):
    oracle.check_traced(tuple(TRACED), expression)


CONVERSIONS = {
    "bool": (lambda x: bool(x > 0), errors.TracerBoolConversionError),
    "if": (lambda x: 1 if x > 0 else 2, errors.TracerBoolConversionError),
    "int": (lambda x: int(x), errors.ConcretizationTypeError),
    "float": (lambda x: float(x), errors.ConcretizationTypeError),
    "complex": (lambda x: complex(x), errors.ConcretizationTypeError),
    "index": (lambda x: range(x), errors.TracerIntegerConversionError),
    "list": (lambda x: [1, 2][x], errors.TracerIntegerConversionError),
    "numpy": (lambda x: np.asarray(x), errors.TracerArrayConversionError),
    "item": (lambda x: x.item(), errors.ConcretizationTypeError),
    "tolist": (lambda x: x.tolist(), errors.ConcretizationTypeError),
    "arange": (lambda x: jnp.arange(x), errors.ConcretizationTypeError),
    "nonzero": (lambda x: jnp.nonzero(x[None]), errors.ConcretizationTypeError),
    "hash": (lambda x: hash(x), TypeError),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_traced_values_refuse_to_be_python_values(name):
    fun, error = CONVERSIONS[name]
    with pytest.raises(error) as raised:
        namoo.jit(lambda x: jnp.asarray(fun(x)))(jnp.asarray(1))
    assert isinstance(raised.value, TypeError)
    if name != "hash":
        # The message tells the user's line and what to write instead.
        assert "test_array.py" in str(raised.value)
        assert len(str(raised.value).splitlines()) > 2


def test_arrays_are_not_hashable():
    seen = [jnp.ones(2), namoo.random.key(0)]
    namoo.jit(lambda x: seen.append(x))(jnp.ones(2))
    assert not any(isinstance(x, Hashable) for x in seen)


def test_derivatives_know_the_values():
    def fun(x):
        assert bool(x > 1.0)
        return x * float(x) if x > 0 else x

    assert namoo.grad(fun)(3.0) == 3.0


def test_assignment_shows_what_to_write():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"x = x\.at\[idx\]\.set\(y\)"):
        x[0] = 1.0  # type: ignore[index]
    with pytest.raises(TypeError):
        del x[0]  # type: ignore[index]


class Foreign:
    """A type with operators of its own."""

    def __radd__(self, other):
        return "radd"

    def __lt__(self, other):
        return "lt"

    def __rmatmul__(self, other):
        return "rmatmul"


class Convertible:
    """A type that can be made an array."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


def test_foreign_types_have_their_own_operators():
    x = jnp.ones(3)
    assert x + Foreign() == "radd"
    assert (x > Foreign()) == "lt"
    assert x @ Foreign() == "rmatmul"
    assert not (x == Foreign())


@pytest.mark.parametrize(
    "fun",
    [
        lambda np_, w: np_.clip(w(X), w(np.float32(1)), w(np.float32(2))),
        lambda np_, w: np_.fmax(w(X), w(X)),
        lambda np_, w: np_.allclose(w(X), w(X)),
        lambda np_, w: np_.roll(w(X), w(np.int32(1))),
        lambda np_, w: np_.shape(w(X)),
        lambda np_, w: np_.ndim(w(X)),
        lambda np_, w: np_.size(w(X)),
    ],
)
@pytest.mark.parametrize("promotion", ["standard", "strict"])
def test_types_that_convert_are_arguments_of_functions(fun, promotion):
    with namoo.numpy_dtype_promotion(promotion):
        np.testing.assert_array_equal(fun(jnp, Convertible), fun(np, lambda x: x))


def test_types_that_convert_are_operands():
    x, y = jnp.ones(3), Convertible([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(x + y, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(jnp.multiply(y, 2.0), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(jnp.asarray(y), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(jnp.asarray([y, x])[0], [1.0, 2.0, 3.0])


def test_numpy_leaves_operators_to_arrays():
    x = jnp.ones(3)
    for out in (np.ones(3) + x, np.float32(2) * x, np.ones(3) < x, np.ones((3, 3)) @ x):
        assert isinstance(out, namoo.Array)


def test_arrays_are_immutable_views_for_numpy():
    x = jnp.arange(3.0)
    view = np.asarray(x)
    assert not view.flags.writeable
    assert np.shares_memory(view, x._value)
    assert np.array(x).flags.writeable
    if sys.version_info >= (3, 12):
        assert memoryview(x).readonly


def test_what_is_made_of_numpy_arrays_does_not_follow_them():
    for make in (
        jnp.array,
        jnp.asarray,
        lambda x: jnp.reshape(x, (3, 1)),
        lambda x: jnp.exp(x * 0) * x,
    ):
        source = np.ones(3, np.float32)
        made = make(source)
        source[:] = 7
        assert np.asarray(made).max() == 1


def test_dlpack_shares_memory_both_ways():
    x = jnp.arange(3.0)
    out = np.from_dlpack(x)
    assert np.shares_memory(out, x._value)
    source = np.arange(3, dtype=np.float32)
    assert np.shares_memory(jnp.from_dlpack(source)._value, source)
    assert not np.shares_memory(jnp.from_dlpack(source, copy=True)._value, source)
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (), (0, 2)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "bool"])
def test_dlpack_shares_all_types_with_jax(dtype, shape):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    theirs = jax.numpy.asarray(values)
    ours = jnp.from_dlpack(theirs)
    assert ours.dtype == dtype
    np.testing.assert_array_equal(np.asarray(ours), values)
    back = jax.dlpack.from_dlpack(jnp.asarray(values))
    np.testing.assert_array_equal(np.asarray(back), values)
    assert namoo.dlpack.is_supported_dtype(dtype) == jax.dlpack.is_supported_dtype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int4", "bool"])
def test_own_arrays_of_any_type_come_through_dlpack(dtype):
    x = jnp.asarray([0, 1, 1], dtype)
    for own in (None, True):
        found = jnp.from_dlpack(x, copy=own)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))
        assert np.shares_memory(found._value, x._value) is not bool(own)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "bool", "complex64"])
def test_copies_and_pickles_are_equal(dtype):
    x = jnp.asarray([0, 1, 1], dtype)
    for other in (
        copy.copy(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        x.copy(),
        x.clone(),
    ):
        assert other.dtype == x.dtype
        assert not other.weak_type
        np.testing.assert_array_equal(np.asarray(other), np.asarray(x))
    assert pickle.loads(pickle.dumps(jnp.asarray(1.5))).weak_type


def test_deleted_arrays_say_so():
    x = jnp.ones(3)
    assert not x.is_deleted()
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.exp(x + 1)


DEVICES = {
    "array": lambda L, d: L.jnp.array([1.0], device=d),
    "asarray": lambda L, d: L.jnp.asarray([1.0], device=d),
    "asarray of an array": lambda L, d: L.jnp.asarray(L.jnp.ones(3), device=d),
    "zeros": lambda L, d: L.jnp.zeros(3, device=d),
    "ones": lambda L, d: L.jnp.ones(3, device=d),
    "empty": lambda L, d: L.jnp.empty(3, device=d),
    "full": lambda L, d: L.jnp.full(3, 1.0, "float32", device=d),
    "zeros_like": lambda L, d: L.jnp.zeros_like(L.jnp.ones(3), device=d),
    "ones_like": lambda L, d: L.jnp.ones_like(L.jnp.ones(3), device=d),
    "empty_like": lambda L, d: L.jnp.empty_like(L.jnp.ones(3), device=d),
    "full_like": lambda L, d: L.jnp.full_like(L.jnp.ones(3), 2.0, device=d),
    "arange": lambda L, d: L.jnp.arange(3, device=d),
    "linspace": lambda L, d: L.jnp.linspace(0, 1, 3, device=d),
    "eye": lambda L, d: L.jnp.eye(3, device=d),
    "astype": lambda L, d: L.jnp.astype(L.jnp.ones(3), int, device=d),
    "fftfreq": lambda L, d: L.jnp.fft.fftfreq(3, device=d),
    "rfftfreq": lambda L, d: L.jnp.fft.rfftfreq(3, device=d),
    "to_device": lambda L, d: L.jnp.ones(3).to_device(d),
    "device_put": lambda L, d: L.device_put(L.jnp.ones(3), d),
    "device_put of a tree": lambda L, d: L.device_put({"a": 1.0, "b": (2.0, 3)}, {"a": d, "b": d}),
}


@pytest.mark.parametrize("name", DEVICES)
def test_places_for_arrays(name):
    call = DEVICES[name]
    for place in (lambda L: L.devices()[0], lambda L: L.jnp.ones(1).sharding, lambda L: None):
        agree(lambda L, place=place: call(L, place(L)))
    for place in ("cpu", 0, object):
        # JAX trips over some of these (AttributeError); where it looks, it is a ValueError.
        message = fail_alike(lambda L, place=place: call(L, place), ValueError)
        assert repr(place) in message and "device" in message


def test_devices_for_a_tree_must_fit_it():
    with pytest.raises(ValueError, match="missing key 'a'"):
        namoo.device_put({"a": 1.0}, {"b": namoo.devices()[0]})


def test_where_arrays_lie():
    x = jnp.ones((2, 3))
    assert x.devices() == {namoo.devices()[0]} == x.sharding.device_set
    assert x.device == namoo.devices()[0]
    assert x.is_fully_addressable and x.is_fully_replicated and x.is_ready()
    assert x.block_until_ready() is x and x.copy_to_host_async() is None
    assert x.on_device_size_in_bytes() == x.nbytes == 24
    assert x.to_device(x.device) is x
    assert x.addressable_data(0) is x
    assert x.tobytes() == np.asarray(x).tobytes()


def test_the_array_api_finds_its_namespace():
    x = jnp.ones(3)
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.01")


def test_rank_promotion_is_a_setting():
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with namoo.numpy_rank_promotion("raise"):
        for fun in (lambda: x + y, lambda: jnp.add(x, y), lambda: jnp.maximum(x, y)):
            with pytest.raises(ValueError, match="rank"):
                fun()
        assert (x + 1.0).shape == (x + x).shape == (2, 3)
    with namoo.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        assert (x * y).shape == (2, 3)


def test_strict_promotion_is_a_setting():
    with namoo.numpy_dtype_promotion("strict"):
        assert (jnp.ones(3) + 1).dtype == np.float32
        with pytest.raises(ValueError):
            jnp.add(jnp.ones(3), jnp.arange(3))


_matrix, _vector, _count = np.eye(3, dtype="f"), np.ones(3, "f"), np.arange(3, dtype="i")
# Functions that mix ranks and types inside, on operands that the user did not mix.
LIBRARY = {
    "cov": lambda: jnp.cov(_matrix, aweights=_vector),
    "corrcoef": lambda: jnp.corrcoef(_matrix),
    "polyfit": lambda: jnp.polyfit(_vector, _vector, 1),
    "histogram": lambda: jnp.histogram(_vector, weights=_vector),
    "histogramdd": lambda: jnp.histogramdd(jnp.ones((3, 2), int), weights=_count),
    "mgrid": lambda: jnp.mgrid[0:2:1, 0:1:0.5],
    "ogrid": lambda: jnp.ogrid[0:2, 0:1:5j],
    "gradient": lambda: jnp.gradient(_matrix, _vector, axis=0),
    "trace": lambda: jnp.trace(jnp.ones((2, 3, 3)), axis1=1, axis2=2),
    "where": lambda: jnp.where(_matrix > 0, _vector, _matrix),
    "pinv": lambda: jnp.linalg.pinv(_matrix),
    "slogdet": lambda: jnp.linalg.slogdet(np.stack([_matrix] * 2)),
    "sqrtm": lambda: namoo.scipy.linalg.sqrtm(_matrix),
    "dct": lambda: namoo.scipy.fft.dct(_matrix),
    "idctn": lambda: namoo.scipy.fft.idctn(_matrix),
    "stft": lambda: namoo.scipy.signal.stft(jnp.ones((2, 40)), nperseg=8),
    "istft": lambda: namoo.scipy.signal.istft(jnp.ones((2, 5, 6), complex), nperseg=8),
    "logsumexp": lambda: namoo.nn.logsumexp(_vector + 1j, return_sign=True),
    "multigammaln": lambda: namoo.scipy.special.multigammaln(_matrix + 5, 3),
    "rotation": lambda: namoo.scipy.spatial.transform.Rotation.from_rotvec(_matrix).mean().inv(),
    "resize": lambda: namoo.image.resize(_matrix, (5, 5), "linear"),
    "categorical": lambda: namoo.random.categorical(namoo.random.key(0), _vector, shape=(4,)),
    "multivariate_normal": lambda: namoo.random.multivariate_normal(
        namoo.random.key(0), _vector, _matrix, shape=(4,)
    ),
    "ode": lambda: namoo.experimental.ode.odeint(lambda y, t: -y, _vector, _vector.cumsum()),
    "operator of a library": lambda: namoo.grad(lambda x: jnp.cov(x).sum())(_matrix),
    "compiled": lambda: namoo.jit(jnp.cov)(_matrix),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_functions_may_mix_their_own_values(name):
    with namoo.numpy_dtype_promotion("strict"), namoo.numpy_rank_promotion("raise"):
        LIBRARY[name]()


# Operands that the user mixes, each pair in another way of calling.
MIXED = {
    "operator": lambda x, y: x + y,
    "function": lambda x, y: jnp.maximum(x, y),
    "method": lambda x, y: x.dot(y),
    "two functions deep": lambda x, y: jnp.clip(x, y, None),
    "minimum": lambda x, y: jnp.fmin(x, y),
    "tolerance": lambda x, y: jnp.allclose(x, y),
    "products": lambda x, y: jnp.vecdot(x, y),
    "integral": lambda x, y: jnp.trapezoid(x, y),
    "polynomial": lambda x, y: jnp.polyval(jnp.stack([x, x]), y),
    "distribution": lambda x, y: namoo.scipy.stats.norm.pdf(x, y),
    "compiled": lambda x, y: namoo.jit(lambda x, y: x * y)(x, y),
    "compiled function": lambda x, y: namoo.jit(jnp.multiply)(x, y),
    "mapped": lambda x, y: namoo.vmap(jnp.multiply)(x[None], y[None]),
    "differentiated": lambda x, y: namoo.jvp(lambda x: x * y.astype(float), (x,), (x,)),
    "called back": lambda x, y: namoo.lax.fori_loop(0, 2, lambda i, z: z * y, x),
    "in a tree": lambda x, y: namoo.tree.map(jnp.multiply, [x], [y]),
}


@pytest.mark.parametrize("name", MIXED)
def test_the_user_may_not_mix(name):
    x, row, count = jnp.ones((3, 3)), jnp.ones(3), jnp.ones((3, 3), int)
    if name != "method":
        with namoo.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
            MIXED[name](x, row)
    if name != "differentiated":
        with namoo.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
            MIXED[name](x, count)


def test_a_function_that_mixes_does_not_let_the_user_do_so():
    def mean_of_three(x, y):
        for _ in range(3):
            jnp.cov(x, aweights=y)
        return (x * y).sum()

    for transform in (namoo.grad, namoo.vmap, namoo.jit):
        x, y = jnp.eye(3), jnp.ones(3)
        if transform is namoo.vmap:
            x, y = x[None], y[None]
        with namoo.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
            transform(mean_of_three)(x, y)


def test_64_bits_are_a_setting():
    with namoo.enable_x64(True):
        x = jnp.arange(3.0)
        assert x.dtype == np.float64
        assert (x + 1).dtype == (x * 1.5).dtype == (2 / x).dtype == jnp.sum(x).dtype == np.float64
        assert jnp.asarray(2**40).dtype == np.int64
        assert (jnp.arange(3) ** 2).dtype == np.int64
        assert jnp.sin(x).dtype == jnp.exp(jnp.arange(3)).dtype == np.float64
    assert jnp.asarray(np.arange(3.0)).dtype == np.float32


def test_nothing_warns():
    x = jnp.array([0.0, -1.0, jnp.inf, jnp.nan])
    for fun in (jnp.log, jnp.sqrt, lambda v: 1 / v, lambda v: v / v, lambda v: v - v, jnp.arccos):
        fun(x)
    assert jnp.isnan(jnp.mean(jnp.zeros(0)))
    assert jnp.isinf(jnp.float32(1e30) * 1e30)
    assert x.astype(int).shape == (jnp.arange(4) // 0).shape


def test_float0_is_refused():
    zeros = np.zeros(3, namoo.dtypes.float0)
    with pytest.raises(TypeError, match="float0"):
        jnp.add(zeros, 1.0)


TAKES_NUMPY = {
    "device_put": namoo.device_put,
    "device_put to a device": lambda x: namoo.device_put(x, namoo.devices()[0]),
    "device_put of a tree": lambda x: namoo.device_put({"x": x})["x"],
    "asarray": jnp.asarray,
    "array": jnp.array,
    "array, no copy wanted": lambda x: jnp.array(x, copy=False),
    "reshape": lambda x: jnp.reshape(x, (2, 3)),
    "lax.reshape": lambda x: lax.reshape(x, (2, 3)),
    "transpose": lambda x: lax.transpose(x[None], (1, 0)),
    "squeeze": lambda x: lax.squeeze(x[None], (0,)),
    "expand_dims": lambda x: lax.expand_dims(x, (0,)),
    "slice": lambda x: lax.slice(x, (0,), (4,)),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (0,), (6,)),
    "split": lambda x: lax.split(x, (3, 3))[0],
    "broadcast": lambda x: lax.broadcast(x, (2,)),
    "rev": lambda x: lax.rev(x, (0,)),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "convert": lambda x: lax.convert_element_type(x, jnp.float32),
    "stop_gradient": lax.stop_gradient,
    "optimization_barrier": lax.optimization_barrier,
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: x + 1, x),
    "while_loop": lambda x: lax.while_loop(lambda x: False, lambda x: x, x),
    "fori_loop": lambda x: lax.fori_loop(0, 0, lambda i, x: x, x),
    "scan": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=1)[0],
    "checkpoint": namoo.checkpoint(lambda x: x),
    "vjp": lambda x: namoo.vjp(lambda x: x, x)[1](x)[0],
    "jit": namoo.jit(lambda x: x),
    "jit of a view": namoo.jit(lambda x: x[:3]),
    "jit of a reshape": lambda x: namoo.jit(lambda x: (x.reshape(2, 3), x + 1))(x)[0],
    "make_array_from_callback": lambda x: namoo.make_array_from_callback(
        (6,), namoo.sharding.SingleDeviceSharding(namoo.devices()[0]), lambda index: x[index]
    ),
    "wrap_key_data": lambda x: namoo.random.key_data(
        namoo.random.wrap_key_data(x[:2].view(np.uint32))
    ),
}


@pytest.mark.parametrize("name", TAKES_NUMPY)
@pytest.mark.parametrize("offset", [0, 4])
def test_writes_to_a_numpy_array_do_not_show(name, offset):
    """Wherever its memory begins, and also when the same types come again."""
    for _ in range(3):
        memory = np.zeros(160, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        x = memory[start : start + 24].view(np.float32)
        x[:] = range(6)
        y = TAKES_NUMPY[name](x)
        assert isinstance(y, namoo.Array)
        before = np.asarray(y).copy()
        x[:] = 7
        np.testing.assert_array_equal(np.asarray(y), before)


@pytest.mark.parametrize("options", [{"may_alias": True}, {"donate": True}])
def test_device_put_shares_memory_where_it_may(options):
    x = np.ones(4, np.float32)
    assert np.shares_memory(np.asarray(namoo.device_put(x, **options)), x)


def test_device_put_copies_refuses_and_shares_as_it_is_told():
    x = jnp.arange(3.0)
    assert namoo.device_put(x, may_alias=True) is x
    assert namoo.device_put(x, may_alias=False) is not x
    assert namoo.device_put(x, namoo.devices()[0], may_alias=False) is not x
    with pytest.raises(ValueError, match="cannot be True at the same time"):
        namoo.device_put(x, may_alias=True, donate=True)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        namoo.device_put(x, namoo.devices()[0])


def test_copy_to_host_async_asks_every_leaf_that_can():
    class Remote:
        asked = 0

        def copy_to_host_async(self):
            self.asked += 1

    tree = [object(), 1, Remote()]
    assert namoo.copy_to_host_async(tree) is tree
    assert tree[2].asked == 1


def test_a_broadcast_that_changes_nothing_is_no_equation():
    for x in (np.float32(3), np.ones(2, np.float32)):
        program = namoo.make_jaxpr(lambda x=x: namoo.lax.broadcast(x, ()))()
        assert not program.jaxpr.eqns


def test_equations_without_results_are_printed_without_an_equals_sign():
    program = namoo.make_jaxpr(lambda x: namoo.debug.print("{}", x))(1.0)
    assert str(program.eqns[0]).startswith("debug_print[")


def test_unused_results_of_branches_and_loops_need_no_inputs():
    def branch(x, y):
        sines = lambda x, y: (jnp.sin(x), jnp.sin(y))  # noqa: E731
        return namoo.lax.cond(x > 0, sines, lambda x, y: (x, x), x, y)

    def loop(x, y):
        return namoo.lax.fori_loop(0, 3, lambda i, c: (c[0] * 2, c[1] + c[0]), (x, y))

    for f in (branch, loop):
        whole = namoo.make_jaxpr(f)(1.0, 2.0).jaxpr
        assert partial_eval.dce_jaxpr(whole, [True, False])[1] == [True, False]
        assert partial_eval.dce_jaxpr(whole, [False, True])[1] == [True, True]
    shift = np.arange(3.0, dtype=np.float32)
    whole = namoo.make_jaxpr(lambda x, y: (x + shift, y))(shift, shift).jaxpr
    smaller, used = partial_eval.dce_jaxpr(whole, [True, False])
    assert used == [True, False] and len(smaller.constvars) == 1


def test_the_class_of_a_concrete_array_is_called_array():
    x = jnp.ones(3)
    assert type(x).__name__ == namoo.Array.__name__ == "Array"
    assert type(namoo.device_put(x, namoo.devices()[0])).__name__ == "Array"
    assert pickle.loads(pickle.dumps(type(x))) is type(x)
