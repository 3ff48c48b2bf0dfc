"""How exact a product of matrices must be: `Precision`, and the algorithms of devices.

On a CPU every `Precision` means full precision.  An algorithm is applied: operands are rounded to
its type before they are multiplied.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config

__all__ = [
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "Precision", "PrecisionLike",
    "Tolerance",
]  # fmt: skip


class Precision(enum.Enum):
    """The precision of matrix products and convolutions of float32 on accelerators.

    Its values have aliases named after the arithmetic of the hardware.

    Example:
        >>> Precision("bfloat16"), Precision("tensorfloat32"), Precision("float32")
        (Precision.DEFAULT, Precision.HIGH, Precision.HIGHEST)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        name = _BY_WORD.get(value) if value is None or isinstance(value, str) else None
        return None if name is None else cls[name]

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_BY_WORD: dict[str | None, str] = {
    "highest": "HIGHEST",
    "float32": "HIGHEST",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "default": "DEFAULT",
    "bfloat16": "DEFAULT",
    "fastest": "DEFAULT",
    None: "DEFAULT",
}


class DotAlgorithm(NamedTuple):
    """The arithmetic of a matrix product: how operands are rounded and sums are accumulated.

    Args:
        lhs_precision_type: the type the left operand is rounded to.
        rhs_precision_type: the type the right operand is rounded to.
        accumulation_type: the type sums are kept in.
        lhs_component_count: into how many terms of that type the left operand is split.
        rhs_component_count: the same for the right operand.
        num_primitive_operations: how many products of such terms are added up.
        allow_imprecise_accumulation: whether sums may be less exact than their type.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms that devices offer, by name: left type, right type, type of sums, and, after an
    X, how many products of split operands are added up."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[type, ...] | None:
        """The types that the left operand may have; None for any."""
        parts = self.name.split("_")
        if parts[0] == "BF16":
            return (np.float32,) if len(parts) > 3 else (dtypes.bfloat16.type, np.float32)
        return None if parts[0] not in _TYPES else (_TYPES[parts[0]],)

    @property
    def supported_rhs_types(self) -> tuple[type, ...] | None:
        """The types that the right operand may have; None for any."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> type | None:
        """The type of sums; None for any."""
        last = self.name.removesuffix("_FAST_ACCUM").split("_X")[0].split("_")[-1]
        return _TYPES.get(last)


_TYPES: dict[str, type] = {
    "F16": np.float16,
    "BF16": dtypes.bfloat16.type,
    "TF32": np.float32,
    "F32": np.float32,
    "F64": np.float64,
}

PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)
CanonicalPrecision = None | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset


def canonicalize_precision(precision: Any) -> Any:
    """The canonical form of a precision: None, a pair of `Precision`, or an algorithm.

    None means the setting `default_matmul_precision`.

    Raises:
        ValueError: it is none of the forms that are accepted.

    Example:
        >>> canonicalize_precision("highest")
        (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return precision, precision
    if isinstance(precision, str):
        if precision in _BY_WORD:
            return (Precision(precision),) * 2
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, (tuple, list)) and len(precision) == 2:
        if all(isinstance(p, Precision) for p in precision):
            return tuple(precision)
        if all(isinstance(p, str) and p in _BY_WORD for p in precision):
            return tuple(map(Precision, precision))
    words = ", ".join(repr(word) for word in _BY_WORD if word)
    raise ValueError(
        f"Precision argument must be None, one of {words}, a lax.Precision, a pair of such words "
        "or of lax.Precision, a lax.DotAlgorithm, or a lax.DotAlgorithmPreset or its name; "
        f"got {precision!r}."
    )


def is_algorithm(precision: Any) -> bool:
    """Whether a canonical precision prescribes how operands are rounded."""
    return isinstance(precision, (DotAlgorithm, DotAlgorithmPreset))


def round_operands(precision: Any, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The operands as an algorithm rounds them, in their own types.

    Split operands (more components than one) are as exact as float32, and stay unchanged.
    """
    if isinstance(precision, DotAlgorithm):
        left = precision.lhs_precision_type if precision.lhs_component_count == 1 else None
        right = precision.rhs_precision_type if precision.rhs_component_count == 1 else None
        return _through(x, left), _through(y, right)
    word = precision.name.split("_")[0]
    if precision.name.split("_")[-1].startswith("X") or word not in _TYPES:
        return x, y
    if word == "TF32":
        return _tensorfloat32(x), _tensorfloat32(y)
    return _through(x, _TYPES[word]), _through(y, _TYPES[word])


def in_xla(hlo: Any, precision: Any, x: Any, y: Any) -> tuple[Any, Any, str]:
    """The operands as an algorithm rounds them in a program for XLA, and the precision in words."""
    pair: Any = precision or (Precision.DEFAULT, Precision.DEFAULT)
    if is_algorithm(precision):
        pair = (Precision.HIGHEST, Precision.HIGHEST)
        x, y = (_kept(hlo, v, bits) for v, bits in zip((x, y), _kept_bits(precision), strict=True))
    return x, y, f"[{', '.join(f'#stablehlo<precision {p.name}>' for p in pair)}]"


def _kept(hlo: Any, x: Any, bits: tuple[int, int] | None) -> Any:
    if bits is None or not dtypes.issubdtype(x.dtype, np.floating):
        return x
    exponent, mantissa = (f"{n} : i32" for n in bits)
    return hlo.op("reduce_precision", x, result=x, exponent_bits=exponent, mantissa_bits=mantissa)


def _kept_bits(precision: Any) -> list[tuple[int, int] | None]:
    """How many bits of exponent and mantissa an algorithm keeps of each operand; None for all."""
    if isinstance(precision, DotAlgorithm):
        left = precision.lhs_precision_type if precision.lhs_component_count == 1 else None
        right = precision.rhs_precision_type if precision.rhs_component_count == 1 else None
        return [_form(left), _form(right)]
    word, *_, last = precision.name.split("_")
    kept = None if last.startswith("X") else (8, 10) if word == "TF32" else _form(_TYPES.get(word))
    return [kept, kept]


def _form(dtype: Any) -> tuple[int, int] | None:
    if dtype is None:
        return None
    info = dtypes.finfo(dtype)
    return int(info.nexp), int(info.nmant)


def _through(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Round to a narrower type and convert back."""
    if dtype is None or not dtypes.issubdtype(x.dtype, np.floating):
        return x
    dtype = np.dtype(dtype)
    return x if dtype.itemsize >= x.dtype.itemsize else x.astype(dtype).astype(x.dtype)


def _tensorfloat32(x: np.ndarray) -> np.ndarray:
    """Keep 10 bits of a float32's mantissa, rounding to nearest, ties to even."""
    if x.dtype != np.float32:
        return x
    bits = x.view(np.uint32)
    kept = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(
        0xFFFFE000
    )
    return np.where(np.isfinite(x), kept.view(np.float32), x)


class AccuracyMode(enum.Enum):
    """How exactly a function such as `lax.exp` is computed."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """The error that is allowed in a function such as `lax.exp`; results here are within it."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
