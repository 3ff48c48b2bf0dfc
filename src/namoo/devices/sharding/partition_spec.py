"""`PartitionSpec`: the mesh axes that each dimension of an array is split over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class _Unconstrained:
    """The compiler chooses how this dimension is split."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


def _canonical(part: Any) -> Any:
    """Normalise an entry: a tuple of one axis becomes that axis, an empty one None."""
    if not isinstance(part, tuple | list):
        return part
    for inner in part:
        if isinstance(inner, tuple | list):
            raise ValueError(
                f"PartitionSpec: a dimension is split over one mesh axis or a flat tuple of them; "
                f"{part!r} has {inner!r} inside."
            )
    return tuple(part) if len(part) > 1 else part[0] if part else None


def _axes_set(what: str, axes: Any) -> frozenset[Any]:
    if not isinstance(axes, set | frozenset):
        raise TypeError(
            f"PartitionSpec: {what} is a set of mesh axes, as in {what}={{'x'}}; got {axes!r} of "
            f"type {type(axes).__name__}."
        )
    if None in axes:
        raise ValueError(f"PartitionSpec: {what} names mesh axes, and None is not one.")
    return frozenset(axes)


class PartitionSpec:
    """For each dimension of an array, the mesh axis or axes it is split over.

    An entry is None (not split), the name of a mesh axis, a tuple of names (split over all of
    them, the first varies slowest), or `P.UNCONSTRAINED` (the compiler chooses). Dimensions after
    the last entry are not split.

    Args:
        *partitions: the entries.
        unreduced: mesh axes over which the array is still to be summed.
        reduced: mesh axes over which the array's gradient is still to be summed.

    Raises:
        ValueError: nested tuples, or an axis that is both split over and (un)reduced.

    Example:
        >>> P = PartitionSpec
        >>> P("x", None), P(("x", "y")), P(("x",)) == P("x")
        (P('x', None), P(('x', 'y'),), True)
    """

    __slots__ = ("_partitions", "unreduced", "reduced", "_hash", "__weakref__")
    _partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    UNCONSTRAINED = UNCONSTRAINED

    def __init__(
        self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> None:
        put = super().__setattr__
        put("_partitions", tuple(map(_canonical, partitions)))
        put("unreduced", _axes_set("unreduced", unreduced))
        put("reduced", _axes_set("reduced", reduced))
        put("_hash", hash((self._partitions, self.unreduced, self.reduced)))
        for what, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if both := axes & set(self.axes()):
                raise ValueError(
                    f"PartitionSpec: {sorted(both)} are in the partitions {self._partitions} and "
                    f"in {what}; an axis can be in one of them."
                )
        if both := self.unreduced & self.reduced:
            raise ValueError(f"PartitionSpec: {sorted(both)} are both in unreduced and in reduced.")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"PartitionSpec cannot be changed; write spec.update({name}=...)")

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries, as a tuple."""
        return self._partitions

    def axes(self) -> Iterator[Any]:
        """Iterate over the mesh axes of all dimensions, from the first dimension on."""
        for part in self._partitions:
            yield from axes_of(part)

    def __repr__(self) -> str:
        entries = repr(self._partitions)[1:-1]
        # A single entry keeps its comma, unless a keyword follows.
        parts = [entries.removesuffix(",")] if entries else []
        parts += [f"unreduced={set(self.unreduced)!r}"] if self.unreduced else []
        parts += [f"reduced={set(self.reduced)!r}"] if self.reduced else []
        return f"P({entries})" if len(parts) <= bool(entries) else f"P({', '.join(parts)})"

    def __reduce__(self) -> Any:
        return _make, (self._partitions, self.unreduced, self.reduced)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PartitionSpec)
            and self._hash == other._hash
            and self._partitions == other._partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
        )

    def __hash__(self) -> int:
        return self._hash

    def _plain(self) -> tuple[Any, ...]:
        """Return the entries; refuse a spec that has other parts than entries."""
        if self.unreduced or self.reduced:
            raise ValueError(
                f"{self} has more than its entries, which would be lost; use spec.partitions."
            )
        return self._partitions

    def __getitem__(self, index: Any) -> Any:
        return self._plain()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self._partitions,
                *other._partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        return PartitionSpec(*self._plain(), *other) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self._plain()) if isinstance(other, tuple) else NotImplemented

    def index(self, value: Any) -> int:
        """Return the first dimension with this entry."""
        return self._partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        """Return the number of dimensions with this entry."""
        return self._partitions.count(_canonical(value))

    def update(
        self, partitions: Any = None, unreduced: Any = None, reduced: Any = None
    ) -> PartitionSpec:
        """Return the spec with some fields replaced."""
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )


P = PartitionSpec


def _make(
    partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]
) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def axes_of(part: Any) -> tuple[Any, ...]:
    """Return the mesh axes of one entry.

    Example:
        >>> axes_of("x"), axes_of(("x", "y")), axes_of(None)
        (('x',), ('x', 'y'), ())
    """
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)
