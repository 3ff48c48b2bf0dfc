"""Types of elements that NumPy does not know: random keys."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

DType = np.dtype[Any]


class extended(np.generic):
    """Scalar type above all types of elements that NumPy does not know; for `issubdtype` only.

    Example:
        >>> from namoo.dtypes import extended, issubdtype
        >>> issubdtype(KeyDType("threefry2x32"), extended)
        True
    """


class prng_key(extended):
    """Scalar type of random keys; for `issubdtype` only.

    Example:
        >>> from namoo.dtypes import issubdtype, prng_key
        >>> issubdtype(KeyDType("rbg"), prng_key), issubdtype("float32", prng_key)
        (True, False)
    """


class ExtendedDType:
    """Base class of dtypes that are not NumPy's.  `type` is a subclass of `extended`."""

    __slots__ = ()
    _is_immutable = True
    type: type[extended] = extended


class Generator(NamedTuple):
    """What libraries read of a random generator, by JAX's names.

    Attributes:
        name: name of the generator.
        tag: its short name, in the printed type of keys.
        key_shape: shape of the 32-bit words of one key.
    """

    name: str
    tag: str
    key_shape: tuple[int, ...]


# name of the generator -> (tag in the printed name, shape of the words of one key)
_KEY_FORMS: dict[str, tuple[str, tuple[int, ...]]] = {
    "threefry2x32": ("fry", (2,)),
    "threefry4x32": ("fry4", (4,)),
    "rbg": ("rbg", (4,)),
    "unsafe_rbg": ("urbg", (4,)),
    "philox2x32": ("phx2", (1,)),
    "philox4x32": ("phx4", (2,)),
}


class KeyDType(ExtendedDType):
    """Type of random keys of one generator.

    Keys are stored in NumPy arrays of the structured type `numpy`, with one field for each word
    and the logical shape, so that NumPy's indexing, `reshape`, `where` and `concatenate` handle
    keys as they handle numbers.  The fields' *titles* carry the generator's tag: NumPy compares
    them, so keys of two generators never mix even where their words have the same number.

    Attributes:
        impl: name of the generator.
        name: printed name.
        key_shape: shape of the 32-bit words of one key.
        numpy: the structured type in which keys are stored.
        itemsize: bytes of one key.

    Example:
        >>> fry = KeyDType("threefry2x32")
        >>> fry, fry.key_shape, fry.itemsize
        (key<fry>, (2,), 8)
        >>> keys = fry.from_words(np.arange(6, dtype=np.uint32).reshape(3, 2))
        >>> keys.shape, of_numpy(keys.dtype)
        ((3,), key<fry>)
        >>> fry.to_words(keys[1:]).tolist()
        [[2, 3], [4, 5]]
    """

    __slots__ = ("impl", "name", "key_shape", "numpy", "itemsize")
    type = prng_key
    _made: dict[str, KeyDType] = {}

    def __new__(cls, impl: str) -> KeyDType:
        made = cls._made.get(impl)
        if made is not None:
            return made
        if impl not in _KEY_FORMS:
            raise ValueError(
                f"there is no random generator {impl!r}; choose one of {', '.join(_KEY_FORMS)}"
            )
        tag, key_shape = _KEY_FORMS[impl]
        count = int(np.prod(key_shape))
        self = super().__new__(cls)
        self.impl = impl
        self.name = f"key<{tag}>"
        self.key_shape = key_shape
        self.numpy = np.dtype([((f"{tag}.{i}", f"k{i}"), np.uint32) for i in range(count)])
        self.itemsize = self.numpy.itemsize
        _BY_NUMPY[self.numpy] = self
        return cls._made.setdefault(impl, self)

    @property
    def _impl(self) -> Generator:
        return Generator(self.impl, *_KEY_FORMS[self.impl])

    def __reduce__(self):
        return KeyDType, (self.impl,)

    def __repr__(self) -> str:
        return self.name

    def from_words(self, words: np.ndarray) -> np.ndarray:
        """Keys of shape `words.shape` without the trailing `key_shape`, from `uint32` words."""
        words = np.asarray(words)
        split = words.ndim - len(self.key_shape)
        if split < 0 or words.shape[split:] != self.key_shape or words.dtype != np.uint32:
            raise TypeError(
                f"words of {self.name} keys have dtype uint32 and a shape that ends in "
                f"{self.key_shape}; got {words.dtype} of shape {words.shape}"
            )
        flat = np.ascontiguousarray(words).reshape(*words.shape[:split], self.numpy.itemsize // 4)
        return flat.view(self.numpy)[..., 0]

    def to_words(self, keys: np.ndarray) -> np.ndarray:
        """The `uint32` words of keys, in a trailing `key_shape`."""
        flat = np.ascontiguousarray(keys)[..., None] if keys.ndim else keys.reshape(1)
        return flat.view(np.uint32).reshape(keys.shape + self.key_shape)


_BY_NUMPY: dict[DType, KeyDType] = {}


def define_key_dtype(impl: str, tag: str, key_shape: tuple[int, ...]) -> KeyDType:
    """The key type of a new random generator.

    Args:
        impl: name of the generator.
        tag: short name, printed as `key<tag>`.
        key_shape: shape of the 32-bit words of one key.

    Raises:
        ValueError: another form is known under this name.

    Example:
        >>> define_key_dtype("threefry2x32", "fry", (2,))
        key<fry>
    """
    form = (tag, tuple(key_shape))
    if _KEY_FORMS.setdefault(impl, form) != form:
        raise ValueError(f"random generator {impl!r} is defined already, as {_KEY_FORMS[impl]}")
    return KeyDType(impl)


def of_numpy(dtype: DType) -> DType | KeyDType:
    """The dtype that a NumPy array shows: the key type of a structured one, else itself."""
    return dtype if dtype.names is None else _BY_NUMPY.get(dtype, dtype)


def is_extended(dtype: Any) -> bool:
    """Whether a dtype, or a scalar type, is one that NumPy does not know."""
    return isinstance(dtype, ExtendedDType) or (
        isinstance(dtype, type) and issubclass(dtype, extended)
    )
