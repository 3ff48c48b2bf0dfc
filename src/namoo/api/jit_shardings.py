"""The options of `jit` about devices: `in_shardings`, `out_shardings`, `device`, `backend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo import tree_util
from namoo._base.caches import derived, program_key
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.devices.placement import needs_placing
from namoo.devices.primitives import sharding_constraint_p
from namoo.devices.sharding.current_mesh import concrete_mesh
from namoo.devices.sharding.partition_spec import PartitionSpec
from namoo.devices.sharding.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    require_fitting,
)
from namoo.engines import registry
from namoo.transforms.arguments import is_array
from namoo.transforms.stage import stage_closed

_CONSTRAINED = program_key("jit with shardings", keyed_by="shardings of arguments and results")


class Shardings:
    """The shardings of a function's arguments and results, as prefixes of their trees.

    If `moves` is true, there is one sharding for all, and arguments on other devices are moved.
    """

    def __init__(self, ins: Any, outs: Any, moves: bool = False):
        self._given = ins, outs
        self.moves = moves
        self._bare = any(
            isinstance(leaf, PartitionSpec) for t in (ins, outs) for leaf in _leaves(t)
        )
        self._key = tuple(
            (tree_util.tree_structure(t, is_leaf=_is_none), tuple(_leaves(t))) for t in (ins, outs)
        )

    @property
    def ins(self) -> Any:
        """The shardings of the arguments; bare specs are on the mesh that is set at the call."""
        return _named("in_shardings", self._given[0]) if self._bare else self._given[0]

    @property
    def outs(self) -> Any:
        """The shardings of the results, likewise."""
        return _named("out_shardings", self._given[1]) if self._bare else self._given[1]

    @staticmethod
    def of(ins: Any, outs: Any, device: Any, backend: str | None) -> Shardings | None:
        """Make it from the options of `jit`; None if they specify nothing."""
        if backend is not None and device is None:
            found = registry.of_platform(backend)
            # The platform that everything runs on anyway needs no sharding.
            device = found[0] if found[0].platform != registry.of_platform()[0].platform else None
        if device is not None:
            if ins is not None or outs is not None:
                raise ValueError(
                    "jit: give either device (or backend) or in_shardings and out_shardings."
                )
            place = device
            if not hasattr(device, "device_set"):
                if device.platform == "cpu" and len(registry.of_platform()) == 1:
                    return None
                place = SingleDeviceSharding(device)
            return Shardings(place, place, moves=True)
        if not any(leaf is not None for t in (ins, outs) for leaf in _leaves(t)):
            return None
        _check_kinds("in_shardings", ins)
        _check_kinds("out_shardings", outs)
        return Shardings(ins, outs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shardings) and (self._key, self.moves) == (other._key, other.moves)

    def __hash__(self) -> int:
        return hash(self._key)

    def are_elsewhere(self) -> bool:
        """Whether one of them is anything but the host's only device."""
        every = [*_leaves(self.ins), *_leaves(self.outs)]
        return any(s is not None and needs_placing(s) for s in every)

    def leaves(self, args: tuple, kwargs: dict, traced: Any) -> tuple[list[Any], list[Any]]:
        """Return a sharding or None for each operand of the program, and for each result."""
        count = tree_util.tree_structure(kwargs).num_leaves
        if count and not self.moves and any(leaf is not None for leaf in _leaves(self.ins)):
            raise ValueError(
                "jit does not support keyword arguments where in_shardings is given, since it does "
                f"not cover them: pass {', '.join(sorted(kwargs))} by position."
            )
        given = self._prefix("in_shardings", self.ins, args)
        given += [self.ins if self.moves else None] * count
        fixed = _places(args, kwargs)
        given = [s for i, s in enumerate(given) if i not in fixed]
        return [*[None] * len(traced.consts), *given], self.wanted(traced)

    def check(self, args: tuple, kwargs: dict, traced: Any, paths: Sequence[str]) -> None:
        """Refuse shardings that do not fit the trees, ranks or sizes of the arrays.

        Args:
            args, kwargs: the arguments that are data.
            traced: their program.
            paths: the names of the leaves of the arguments that are arrays.
        """
        given, wanted = self.leaves(args, kwargs, traced)
        names = [
            f"result{tree_util.keystr(path)}"
            for i, path in enumerate(tree_util.leaf_paths(traced.out_tree))
            if i not in traced.fixed_out.by_position
        ]
        avals = traced.closed.in_avals[len(traced.consts) :]
        arguments = zip(given[len(traced.consts) :], paths, avals, strict=True)
        for what, leaves in (
            ("arguments", arguments),
            ("outputs", zip(wanted, names, traced.closed.out_avals, strict=True)),
        ):
            for sharding, name, aval in leaves:
                if sharding is not None:
                    require_fitting(f"pjit {what} with pytree key path {name}", sharding, aval)

    def wanted(self, traced: Any) -> list[Any]:
        """Return a sharding or None for each result of the program."""
        result = traced.out_tree.unflatten(range(traced.out_tree.num_leaves))
        found = self._prefix("out_shardings", self.outs, result)
        return [s for i, s in enumerate(found) if i not in traced.fixed_out.by_position]

    def constrained(self, args: tuple, kwargs: dict, traced: Any) -> ClosedJaxpr:
        """Return the program with the shardings as constraints, to be part of another program."""
        closed = traced.closed
        given, wanted = self.leaves(args, kwargs, traced)

        def make():
            def run(*xs):
                outs = eval_jaxpr(closed.jaxpr, closed.consts, *_lay(given, xs))
                return _lay(wanted, outs)

            return stage_closed(run, closed.in_avals, closed.jaxpr.name)

        return derived(closed.jaxpr, (_CONSTRAINED, tuple(given), tuple(wanted)), make)

    @staticmethod
    def _prefix(what: str, shardings: Any, tree: Any) -> list[Any]:
        if isinstance(shardings, list) and isinstance(tree, tuple):
            shardings = tuple(shardings)
        whose = "positional arguments tuple" if what[0] == "i" else "results"
        return tree_util.broadcast_prefix(
            shardings,
            tree,
            is_leaf=_is_none,
            title=f"pjit {what} specification must be a tree prefix of the {whose}, with a "
            "sharding, a PartitionSpec or None at its leaves",
            name=f"pjit {what}",
        )


def _lay(shardings: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    return [
        x if s is None else sharding_constraint_p.bind(x, sharding=s)
        for s, x in zip(shardings, xs, strict=True)
    ]


def _places(args: tuple, kwargs: dict) -> set[int]:
    """Return the positions of leaves that are part of the program and not data."""
    leaves = tree_util.tree_leaves((args, kwargs))
    return {i for i, x in enumerate(leaves) if not is_array(x)}


def _is_none(x: Any) -> bool:
    return x is None


def _leaves(tree: Any) -> list[Any]:
    return tree_util.tree_leaves(tree, is_leaf=_is_none)


def _check_kinds(what: str, shardings: Any) -> None:
    """Refuse leaves that are not shardings, specs or None."""

    def one(path: Any, leaf: Any) -> None:
        if leaf is None or isinstance(leaf, Sharding | PartitionSpec):
            return
        raise TypeError(
            f"{what} leaf specifications are expected to be shardings, PartitionSpec instances or "
            f"None, but got {leaf!r} of type {type(leaf).__name__}, at "
            f"{what}{tree_util.keystr(path)}."
        )

    tree_util.tree_map_with_path(one, shardings, is_leaf=_is_none)


def _named(what: str, shardings: Any) -> Any:
    """Turn bare specs into shardings on the current mesh."""

    def one(path: Any, leaf: Any) -> Any:
        if isinstance(leaf, PartitionSpec):
            mesh = concrete_mesh()
            if mesh.empty:
                raise RuntimeError(
                    f"jit: {what}{tree_util.keystr(path)} is a PartitionSpec, {leaf}, which needs "
                    "a mesh: set one with namoo.set_mesh(mesh), or pass NamedSharding(mesh, spec)."
                )
            return NamedSharding(mesh, leaf)
        return leaf

    return tree_util.tree_map_with_path(one, shardings, is_leaf=_is_none)
