"""Keys: made from seeds, split, folded, wrapped, and turned into bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.dtypes import KeyDType
from namoo._base.short import short
from namoo._base.source_context import at_user_line, called_function, entry_point
from namoo.core.array import Array, EagerArray, owned, to_numpy
from namoo.dimensions.sizes import as_value, dimension
from namoo.eager import attach_shortcuts
from namoo.primitives.arithmetic import add
from namoo.primitives.random import prng
from namoo.primitives.random.generators import GENERATORS
from namoo.primitives.shape import convert_element_type
from namoo.random.arguments import sampler, shape_tuple

_LEGACY = (
    "Legacy uint32 key array passed as key to jax.random function. Make keys with "
    'random.key(seed); if a raw key array is what you want, set jax_legacy_prng_key="allow".'
)


def key_dtype_of(spec: Any) -> KeyDType:
    """The key type for the name of a generator, a key type, or None (the default)."""
    if isinstance(spec, KeyDType):
        return spec
    name = config.default_prng_impl if spec is None else spec
    if isinstance(name, str) and name in GENERATORS:
        return KeyDType(name)
    if not isinstance(name, str):
        raise TypeError(
            f"unrecognized type {type(name)} of a PRNG implementation: pass its name, one of "
            f"{', '.join(GENERATORS)}."
        )
    raise ValueError(
        f"unrecognized PRNG implementation {name!r}. Choose one of: {', '.join(GENERATORS)}."
    )


def typed(key: Any) -> tuple[Any, bool]:
    """An array of typed keys, and whether it came as raw words."""
    if isinstance(key, Array):
        if isinstance(key.dtype, KeyDType):
            return key, False
    elif isinstance(key, (list, tuple, str, bytes, dict, set)) or key is None:
        raise TypeError(
            f"unexpected PRNG key type {type(key)}: got {short(key)} for the key. Write "
            f"random.{called_function('normal')}(key, ...), with a key made by random.key(seed)."
        )
    elif not isinstance(key, np.ndarray):
        seed = key if type(key) is int else "seed"
        raise _invalid(
            f"expected an array of keys, or of their uint32 words; got {short(key)}. Write "
            f"random.key({seed}) to make a key."
        )
    wrapped = wrap_words(key, key_dtype_of(None))
    if config.legacy_prng_key == "error":
        raise ValueError(_LEGACY)
    if config.legacy_prng_key != "allow":
        warnings.warn(_LEGACY, UserWarning, stacklevel=4)
    return wrapped, True


def _invalid(what: str) -> TypeError:
    return TypeError(f"JAX encountered invalid PRNG key data: {what}{at_user_line()}")


def wrap_words(words: Any, dtype: KeyDType) -> Any:
    """Words as keys, or a TypeError that says why they are not keys."""
    if not isinstance(words, (Array, np.ndarray)):
        raise _invalid(f"expected an array of uint32 words; got {words!r}")
    n = len(dtype.key_shape)
    if words.ndim < n:
        raise _invalid(f"expected at least {n} axis; got shape {words.shape}")
    if words.shape[-n:] != dtype.key_shape:
        raise _invalid(
            f"keys of {dtype.impl} have {dtype.key_shape[0]} words, so the shape must end in "
            f"{dtype.key_shape}; got {words.shape}"
        )
    if words.dtype != np.uint32:
        raise _invalid(f"expected dtype uint32; got {words.dtype}")
    return prng.random_wrap_p.bind(words, impl=dtype.impl)


def single(name: str, key: Any) -> tuple[Any, bool]:
    """One typed key, and whether it came as raw words."""
    out, raw = typed(key)
    if out.shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {key.shape}. "
            f"Map over it: vmap(lambda key: random.{name}(key, ...))(keys)."
            f"{at_user_line()}"
        )
    return out, raw


def _seed(name: str, seed: Any, dtype: KeyDType) -> Any:
    if isinstance(seed, int):
        try:
            value = np.asarray(seed, np.int64)
        except OverflowError:
            raise OverflowError(
                f"random.{name}: the seed {seed} does not fit 64 bits; use seed % 2**63."
            ) from None
        seed = EagerArray(value.astype(dtypes.default_int_dtype()))
    elif seed is None:
        raise ValueError(f"random.{name} needs an integer seed, got None.")
    elif not isinstance(seed, Array):
        if isinstance(seed, (list, tuple)):
            seed = np.asarray(seed)
        seed = EagerArray(to_numpy(seed))
    if dtypes.is_extended(seed.dtype):
        raise TypeError(f"{name} accepts a scalar seed, but was given a key of type {seed.dtype}.")
    if seed.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {seed.shape}. "
            f"Map over seeds: vmap(random.{name})(seeds)."
        )
    if not dtypes.issubdtype(seed.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r} of type {seed.dtype}.")
    if config.random_seed_offset:
        seed = add(seed, EagerArray(np.asarray(config.random_seed_offset).astype(seed.dtype)))
    return prng.random_seed_p.bind(seed, impl=dtype.impl)


@entry_point
def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A random key from an integer.

    Args:
        seed: an integer; without 64-bit types only its low 32 bits count.
        impl: name of the generator, or a key type; `config.default_prng_impl` by default.
        dtype: a key type, instead of `impl`.

    Returns:
        A key: an array without axes, of type `key<fry>` or another key type.

    Raises:
        TypeError: the seed is not an integer, or has axes.
        ValueError: no such generator; or both `impl` and `dtype`.
        OverflowError: a Python integer that does not fit 64 bits.

    Example:
        >>> from namoo import random
        >>> random.key(42).dtype, random.key_data(random.key(42)).tolist()
        (key<fry>, [0, 42])
    """
    if impl is not None and dtype is not None:
        raise ValueError("random.key: Cannot specify both `impl` and `dtype`.")
    return _seed("key", seed, key_dtype_of(dtype if impl is None else impl))


@entry_point
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """The words of a random key from an integer: the older form of keys, taken everywhere.

    Args:
        seed: an integer; without 64-bit types only its low 32 bits count.
        impl: name of the generator, or a key type; `config.default_prng_impl` by default.

    Returns:
        A `uint32` array of the words of the key.

    Raises:
        TypeError, ValueError, OverflowError: as `key`.

    Example:
        >>> from namoo import random
        >>> random.PRNGKey(42).tolist()
        [0, 42]
    """
    made = _seed("PRNGKey", seed, key_dtype_of(impl))
    return made if config.enable_custom_prng else prng.random_unwrap_p.bind(made)


@entry_point
def split(key: Any, num: Any = 2) -> Array:
    """New keys from a key, which must not be used again.

    Args:
        key: a key.
        num: how many, or the shape of the array of them.

    Returns:
        An array of keys, of shape `(num,)` or `num`; words, where the key came as words.

    Raises:
        TypeError: `key` is not a key, or `num` is not an integer.
        ValueError: `key` is an array of keys.

    Example:
        >>> from namoo import random
        >>> key, subkey = random.split(random.key(0))
        >>> random.key_data(subkey).tolist()
        [928981903, 3453687069]
    """
    one, raw = single("split", key)
    shape = shape_tuple(tuple(num) if isinstance(num, (tuple, list)) else (dimension(num),))
    keys = prng.random_split_p.bind(one, shape=shape)
    return prng.random_unwrap_p.bind(keys) if raw else keys


@entry_point
def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer, different for each integer.

    Args:
        key: a key.
        data: an integer of 32 bits.

    Raises:
        TypeError: `key` is not a key, or `data` has axes.
        ValueError: `key` is an array of keys.
        OverflowError: a Python integer that is negative or needs more than 32 bits.

    Example:
        >>> from namoo import random
        >>> random.key_data(random.fold_in(random.key(0), 1)).tolist()
        [928981903, 3453687069]
    """
    one, raw = single("fold_in", key)
    data = as_value(data)
    if isinstance(data, int):
        if not 0 <= data <= 0xFFFFFFFF:
            raise OverflowError(f"fold_in: {data} is out of bounds for uint32; use data % 2**32.")
        data = EagerArray(np.asarray(data, np.uint32))
    elif data is None or isinstance(data, (str, bytes)):
        raise ValueError(f"fold_in needs an integer, got {data!r}.")
    else:
        if not isinstance(data, Array):
            data = EagerArray(to_numpy(np.asarray(data)))
        if data.shape:
            raise TypeError(
                f"fold_in accepts a scalar, but was given an array of shape {data.shape}. "
                "Map over it: vmap(random.fold_in, (None, 0))(key, data)."
            )
        data = convert_element_type(data, np.uint32)
    made = prng.random_fold_in_p.bind(one, data)
    return prng.random_unwrap_p.bind(made) if raw else made


def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Array:
    """Words of `width` bits of one typed key."""
    return prng.random_bits_p.bind(key, bit_width=width, shape=shape)


@sampler
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Random bits, as unsigned integers.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: an unsigned type; `uint32` by default, `uint64` with 64-bit types.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `key` is an array of keys, or the type is not unsigned.

    Example:
        >>> from namoo import random
        >>> random.bits(random.key(0), (3,)).tolist()
        [4070199207, 4202968722, 1427181096]
    """
    one, _ = single("bits", key)
    wanted = dtypes.default_uint_dtype()
    if dtype is not None:
        wanted = dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(wanted, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype}")
    return random_bits(one, wanted.itemsize * 8, shape_tuple(shape))


@entry_point
def clone(key: Any) -> Array:
    """The same key, marked as unused for checks of key reuse.

    Example:
        >>> from namoo import random
        >>> key = random.key(0)
        >>> random.normal(key) == random.normal(random.clone(key))
        Array(True, dtype=bool)
    """
    if isinstance(key, Array) and isinstance(key.dtype, KeyDType):
        return prng.random_clone_p.bind(key)
    return key if isinstance(key, Array) else owned(key)


@entry_point
def key_data(keys: Any) -> Array:
    """The words of keys.

    Args:
        keys: an array of keys of any shape.

    Returns:
        A `uint32` array, with the words of each key in the last axis.

    Raises:
        TypeError: `keys` are not keys.

    Example:
        >>> from namoo import random
        >>> random.key_data(random.split(random.key(0), 3)).shape
        (3, 2)
    """
    return prng.random_unwrap_p.bind(typed(keys)[0])


@entry_point
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Keys from their words.

    Args:
        key_bits_array: a `uint32` array with the words of each key in the last axis.
        impl: name of the generator, or a key type; `config.default_prng_impl` by default.
        dtype: a key type, instead of `impl`.

    Raises:
        TypeError: the words have another type or shape.
        ValueError: no such generator; or both `impl` and `dtype`.

    Example:
        >>> from namoo import random
        >>> random.wrap_key_data(random.PRNGKey(42)) == random.key(42)
        Array(True, dtype=bool)
    """
    if impl is not None and dtype is not None:
        raise ValueError("random.wrap_key_data: Cannot specify both `impl` and `dtype`.")
    return wrap_words(key_bits_array, key_dtype_of(dtype if impl is None else impl))


@entry_point
def key_impl(keys: Any) -> str:
    """The name of the generator that keys are made for.

    Example:
        >>> from namoo import random
        >>> random.key_impl(random.key(0))
        'threefry2x32'
    """
    return typed(keys)[0].dtype.impl


@entry_point
def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The type of a generator's keys.

    Args:
        impl_spec: name of the generator; `config.default_prng_impl` by default.

    Raises:
        ValueError: no such generator.

    Example:
        >>> from namoo import random
        >>> random.key_dtype("rbg")
        key<rbg>
    """
    return key_dtype_of(impl_spec)


attach_shortcuts(globals())
