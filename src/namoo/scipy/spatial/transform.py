"""Rotations in three dimensions, as unit quaternions (x, y, z, w).

q = (a sin(θ/2), cos(θ/2)) rotates by the angle θ about the axis a; -q is the same rotation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.random import normal

__all__ = ["Rotation", "Slerp"]
__dir__ = __all__.copy

_SMALL = 1e-3
"""The angle below which series replace quotients that tend to 0 / 0."""


def _floats(x: Any) -> Array:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact_dtype(x.dtype))


def _norm(x: Array) -> Array:
    """The length of vectors along the last axis, which is kept."""
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def _normalized(quat: Array) -> Array:
    return quat / _norm(quat)


def _split(quat: Array) -> tuple[Array, Array]:
    """The vector and the scalar part, with the last axis kept."""
    return quat[..., :3], quat[..., 3:]


def _product(p: Array, q: Array) -> Array:
    """The rotation `p` after `q`."""
    (u, a), (v, b) = _split(p), _split(q)
    vector = a * v + b * u + jnp.cross(u, v)
    scalar = a * b - jnp.sum(u * v, axis=-1, keepdims=True)
    return jnp.concatenate([vector, scalar], axis=-1)


def _axes(seq: str) -> tuple[list[int], bool]:
    """The axes of a sequence such as 'xyz', and whether they rotate with the body ('XYZ')."""
    intrinsic = re.fullmatch("[XYZ]{1,3}", seq) is not None
    if not intrinsic and not re.fullmatch("[xyz]{1,3}", seq):
        raise ValueError(
            f"Rotation: seq must be one to three of 'x', 'y' and 'z', or of 'X', 'Y' and 'Z', got "
            f"{seq!r}."
        )
    if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
        raise ValueError(f"Rotation: consecutive axes of seq must be different, got {seq!r}.")
    return ["xyz".index(letter) for letter in seq.lower()], intrinsic


class Rotation(NamedTuple):
    """A rotation, or a stack of them.

    Args:
        quat: unit quaternions (x, y, z, w), of shape [..., 4].

    Example:
        >>> import namoo.numpy as jnp
        >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3)
        Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several stacks of rotations as one."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes, one after another.

        Args:
            seq: the axes: lower case for fixed axes, upper case for those of the body.
            angles: the angles, of shape [..., number of axes].
            degrees: the angles are in degrees, not in radians.

        Raises:
            ValueError: another sequence, or another number of angles.
        """
        axes, intrinsic = _axes(seq)
        angles = jnp.atleast_1d(_floats(angles))
        if angles.shape[-1] != len(axes):
            raise ValueError(
                f"Rotation.from_euler: {seq!r} needs angles of shape [..., {len(axes)}], got "
                f"{angles.shape}."
            )
        half = (jnp.deg2rad(angles) if degrees else angles) / 2
        out: Any = None
        for i, axis in enumerate(axes):
            quat = jnp.zeros((*angles.shape[:-1], 4), angles.dtype)
            quat = quat.at[..., axis].set(jnp.sin(half[..., i]))
            quat = quat.at[..., 3].set(jnp.cos(half[..., i]))
            if out is not None:
                quat = _product(out, quat) if intrinsic else _product(quat, out)
            out = quat
        return cls(out)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Rotations given by orthogonal matrices, of shape [..., 3, 3]."""
        m = _floats(matrix)
        # Every row is a multiple of the quaternion; the one with the largest square of its own
        # component is the most exact.
        entry = {(i, j): m[..., i, j] for i in range(3) for j in range(3)}
        trace = entry[0, 0] + entry[1, 1] + entry[2, 2]
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            row = [trace] * 4
            row[i] = 1 - trace + 2 * entry[i, i]
            row[j] = entry[j, i] + entry[i, j]
            row[k] = entry[k, i] + entry[i, k]
            row[3] = entry[k, j] - entry[j, k]
            rows.append(jnp.stack(row, axis=-1))
        differences = [
            entry[(i + 2) % 3, (i + 1) % 3] - entry[(i + 1) % 3, (i + 2) % 3] for i in range(3)
        ]
        rows.append(jnp.stack([*differences, 1 + trace], axis=-1))
        decision = jnp.stack([entry[0, 0], entry[1, 1], entry[2, 2], trace], axis=-1)
        choice = jnp.argmax(decision, axis=-1)[..., None, None]
        quat = jnp.take_along_axis(jnp.stack(rows, axis=-2), choice, axis=-2)[..., 0, :]
        return cls(_normalized(quat))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Rotations given by modified Rodrigues parameters a tan(θ/4), of shape [..., 3]."""
        mrp = _floats(mrp)
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (square + 1))

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Rotations given by quaternions of any length, of shape [..., 4]."""
        return cls(_normalized(_floats(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Rotations given by vectors along the axis, of the angle's length; shape [..., 3]."""
        rotvec = _floats(rotvec)
        rotvec = jnp.deg2rad(rotvec) if degrees else rotvec
        square = jnp.sum(rotvec * rotvec, axis=-1, keepdims=True)
        is_small = square <= _SMALL**2
        angle = jnp.sqrt(jnp.where(is_small, 1, square))
        scale = 0.5 - square / 48 + square * square / 3840
        cosine = 1 - square / 8 + square * square / 384
        scale = jnp.where(is_small, scale, jnp.sin(angle / 2) / angle)
        cosine = jnp.where(is_small, cosine, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * rotvec, cosine], axis=-1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that changes nothing, or `num` of them."""
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """One rotation, or `num` of them, drawn uniformly from all."""
        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        if self.single:
            raise TypeError("A single rotation cannot be indexed.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("A single rotation has no length.")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        return Rotation.from_quat(_product(self.quat, other.quat))

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Vectors of shape [..., 3] rotated, or rotated back; stacks broadcast.

        Raises:
            ValueError: vectors that do not have three components.
        """
        vectors = jnp.asarray(vectors)
        if vectors.shape[-1:] != (3,):
            raise ValueError(
                f"Rotation.apply: vectors must have shape [..., 3], got {vectors.shape}."
            )
        matrix = self.as_matrix()
        matrix = matrix.mT if inverse else matrix
        return jnp.sum(matrix * vectors[..., None, :], axis=-1)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles of rotations about three axes, of shape [..., 3].

        Bernardes and Viollet (2022), "Quaternion to Euler angles conversion: A direct, general and
        computationally efficient method".

        Raises:
            ValueError: another sequence than for `from_euler`, or fewer than three axes.
        """
        if len(seq) != 3:
            raise ValueError(f"Rotation.as_euler: seq must have three axes, got {seq!r}.")
        axes, intrinsic = _axes(seq)
        i, j, k = axes[::-1] if intrinsic else axes
        symmetric = i == k
        if symmetric:
            k = 3 - i - j
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., n] for n in range(4)]
        if symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        # Where the middle axis makes the others parallel, only their sum or difference is known;
        # it is given to the first angle.
        is_zero, is_pi = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
        known = jnp.where(is_zero, 2 * half_sum, 2 * half_difference * (1 if intrinsic else -1))
        is_locked = is_zero | is_pi
        first, third = half_sum - half_difference, half_sum + half_difference
        outer = [third, first] if intrinsic else [first, third]
        outer = [jnp.where(is_locked, known, outer[0]), jnp.where(is_locked, 0, outer[1])]
        if not symmetric:
            outer[0 if intrinsic else 1] = outer[0 if intrinsic else 1] * sign
            middle = middle - np.pi / 2
        angles = jnp.stack([outer[0], middle, outer[1]], axis=-1)
        angles = (angles + np.pi) % (2 * np.pi) - np.pi
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Orthogonal matrices, of shape [..., 3, 3]."""
        x, y, z, w = (self.quat[..., n] for n in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters a tan(θ/4), of shape [..., 3]."""
        vector, scalar = _split(_turned(self.quat, self.quat[..., 3:] < 0))
        return vector / (1 + scalar)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axis, with the angle as length, of shape [..., 3]."""
        vector, scalar = _split(_turned(self.quat, self.quat[..., 3:] < 0))
        square = jnp.sum(vector * vector, axis=-1, keepdims=True)
        is_small = square <= (_SMALL / 2) ** 2 * scalar * scalar
        sine = jnp.sqrt(jnp.where(is_small, 1, square))
        angle = 2 * jnp.arctan2(sine, scalar)
        small = 4 * square / jnp.where(is_small, scalar * scalar, 1)
        scale = 2 + small / 12 + 7 * small * small / 2880
        scale = jnp.where(is_small, scale, angle / jnp.sin(angle / 2))
        return (jnp.rad2deg(scale) if degrees else scale) * vector

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions (x, y, z, w), of shape [..., 4].

        Args:
            canonical: of q and -q the one whose first component that is not zero, from w, x, y, z,
                is positive.
            scalar_first: in the order (w, x, y, z).
        """
        quat = self.quat
        if canonical:
            decided = jnp.zeros(quat.shape[:-1], bool)
            negative = decided
            for n in (3, 0, 1, 2):
                negative = negative | (~decided & (quat[..., n] < 0))
                decided = decided | (quat[..., n] != 0)
            quat = _turned(quat, negative[..., None])
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], dtype=self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, from 0 to π."""
        vector, scalar = _split(self.quat)
        return 2 * jnp.arctan2(_norm(vector), jnp.abs(scalar))[..., 0]

    def mean(self, weights: Any = None) -> Rotation:
        """The mean of a stack of rotations: the unit quaternion that is closest to all.

        Args:
            weights: one for each rotation.

        Raises:
            ValueError: another number of weights.
        """
        if weights is None:
            weights = jnp.ones(self.quat.shape[0], self.quat.dtype)
        weights = jnp.asarray(weights, self.quat.dtype)
        if weights.shape != (len(self),):
            raise ValueError(
                f"Rotation.mean: weights must have shape ({len(self)},), one for each rotation, "
                f"got {weights.shape}."
            )
        _, vectors = linalg.eigh((weights * self.quat.T) @ self.quat)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not a stack."""
        return self.quat.ndim == 1


def _turned(quat: Array, where: Array) -> Array:
    """Replace q by -q where the condition holds."""
    return jnp.where(where, -quat, quat)


class Slerp(NamedTuple):
    """Rotations at given times, with a constant angular velocity in between.

    Make one with `Slerp.init(times, rotations)`, and call it with times.

    Example:
        >>> import namoo.numpy as jnp
        >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> jnp.degrees(Slerp.init(jnp.array([0.0, 1.0]), turns)(0.5).magnitude()).round(3)
        Array(45., dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Interpolate between rotations.

        Args:
            times: the times, in ascending order.
            rotations: a stack of rotations, one for each time, two at least.

        Raises:
            TypeError: `rotations` is not a Rotation.
            ValueError: too few rotations, or another number of times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp: rotations must be a Rotation, got {type(rotations).__name__}.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("Slerp: rotations must be a stack of two at least.")
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(
                f"Slerp: times must have shape ({len(rotations)},), one for each rotation, got "
                f"{times.shape}."
            )
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times: one for a number, a stack for a vector.

        Raises:
            ValueError: times of more than one axis.
        """
        times = jnp.asarray(times, self.times.dtype)
        if times.ndim > 1:
            raise ValueError(f"Slerp: times must be a number or a vector, got shape {times.shape}.")
        index = jnp.maximum(jnp.searchsorted(self.times, times) - 1, 0)
        part = (times - self.times[index]) / self.timedelta[index]
        turn = Rotation.from_rotvec(self.rotvecs[index] * part[..., None])
        return self.rotations[index] * turn
