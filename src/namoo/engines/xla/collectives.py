"""Communication between the devices of a mesh, for the rules of collectives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np


class Manual:
    """The mesh of a `shard_map` whose body is being emitted.

    Args:
        mesh: has `axis_names`, `axis_sizes` and `flat_devices`.
        axes: the names of the axes that the body is mapped over.
        devices: the devices of the program, in its order.
        symbol: the name of the mesh in the module.
    """

    def __init__(self, mesh: Any, axes: Sequence[Any], devices: Sequence[Any], symbol: str):
        self.names = tuple(mesh.axis_names)
        self.axes = tuple(axes)
        self.free = [name for name in self.names if name not in self.axes]
        self.symbol = symbol
        position = {d: i for i, d in enumerate(devices)}
        # An abstract mesh refers to the devices of the program.
        places = [position[d] for d in (mesh.flat_devices if mesh.has_devices else devices)]
        self.grid = np.array(places, np.int64).reshape(mesh.axis_sizes)

    def groups(self, names: Sequence[Any], parts: Any = None) -> np.ndarray:
        """Group devices that differ only along some axes; `parts` splits the groups further."""
        last = [self.names.index(n) for n in names]
        rest = [i for i in range(len(self.names)) if i not in last]
        count = int(np.prod([self.grid.shape[i] for i in last]))
        rows = self.grid.transpose(*rest, *last).reshape(-1, count)
        if parts is None:
            return rows
        longest = max(map(len, parts))
        # Shorter groups are padded with -1.
        out = [[*row[list(p)], *[-1] * (longest - len(p))] for row in rows for p in parts]
        return np.array(out, np.int64)

    def coordinates(self, name: Any) -> np.ndarray:
        """Return the index along an axis of each device of the program."""
        along = np.indices(self.grid.shape)[self.names.index(name)]
        out = np.zeros(self.grid.size, np.int32)
        out[self.grid.reshape(-1)] = along.reshape(-1)
        return out


class Collectives:
    """The part of `hlo.Emitter` that communicates with other devices."""

    module: Any

    if TYPE_CHECKING:
        # Provided by the emitter.
        def __getattr__(self, name: str) -> Any: ...

    def _manual(self, names: Sequence[Any]) -> Manual:
        manual = self.module.manual
        if manual is None or not set(names) <= set(manual.axes):
            raise NameError(
                f"Found an unbound axis name: {list(names)}. A collective over it stands outside "
                "of the function that is mapped over it."
            )
        return manual

    def _exchange(self, names: Sequence[Any], parts: Any = None) -> dict[str, str]:
        rows = self._manual(names).groups(names, parts)
        return {
            "replica_groups": self.matrix(rows.tolist()),
            "channel_handle": self.module.channel(),
            "use_global_device_ids": "unit",
        }

    def axis_index(self, name: Any) -> Any:
        """Return the index of this device along an axis."""
        manual = self._manual([name])

        def find() -> Any:
            table = self.constant(manual.coordinates(name))
            return self.row(table, self.op("partition_id", result=((), np.uint32)))

        if not manual.free:
            return find()
        # The partition id identifies the device only if all axes are manual.
        return self.in_full(manual, [], lambda: [find()])

    def in_full(self, manual: Manual, operands: Sequence[Any], body: Callable) -> Any:
        """Return an int32 value of each device, computed by a function, where axes may be
        automatic.

        All devices along the automatic axes have the same value."""

        def whole(x: Any) -> str:
            return f"<@{manual.symbol}, [{', '.join(['{}'] * x.ndim)}]>"

        with self.writer.region([(x.shape, x.dtype) for x in operands]) as (xs, text):
            self.writer.op("sdy.return", body(*xs), [])
        attributes = {
            "in_shardings": f"#sdy.sharding_per_value<[{', '.join(map(whole, operands))}]>",
            "out_shardings": f"#sdy.sharding_per_value<[<@{manual.symbol}, []>]>",
            "manual_axes": _manual_axes(manual.free),
        }
        return self.op(
            "sdy.manual_computation",
            *operands,
            result=((), np.int32),
            attributes=attributes,
            regions=text,
        )

    def all_reduce(self, operation: str, x: Any, names: Sequence[Any], parts: Any = None) -> Any:
        """Combine the values of all devices along some axes."""
        return self.op(
            "all_reduce",
            x,
            result=[x],
            attributes=self._exchange(names, parts),
            regions=[self.combiner(operation, x.dtype)],
        )[0]

    def all_gather(self, x: Any, axis: int, names: Sequence[Any], parts: Any = None) -> Any:
        """Concatenate the values of all devices along some axes, along an axis of the array."""
        attributes = self._exchange(names, parts)
        count = self._manual(names).groups(names, parts).shape[1]
        shape = list(x.shape)
        shape[axis] *= count
        attributes["all_gather_dim"] = f"{axis} : i64"
        return self.op("all_gather", x, result=[(tuple(shape), x.dtype)], attributes=attributes)[0]

    def reduce_scatter(self, x: Any, axis: int, names: Sequence[Any], parts: Any = None) -> Any:
        """Sum over devices; each keeps its part along an axis of the array."""
        attributes = self._exchange(names, parts)
        count = self._manual(names).groups(names, parts).shape[1]
        shape = list(x.shape)
        shape[axis] //= count
        attributes["scatter_dimension"] = f"{axis} : i64"
        region = self.combiner("add", x.dtype)
        kind = (tuple(shape), x.dtype)
        return self.op("reduce_scatter", x, result=kind, attributes=attributes, regions=[region])

    def all_to_all(
        self, x: Any, split: int, concat: int, names: Sequence[Any], parts: Any = None
    ) -> Any:
        """Send each part along the axis `split` to one device, and concatenate along `concat`."""
        attributes = self._exchange(names, parts)
        del attributes["use_global_device_ids"]
        count = self._manual(names).groups(names, parts).shape[1]
        shape = list(x.shape)
        shape[split] //= count
        shape[concat] *= count
        attributes |= {
            "split_dimension": f"{split} : i64",
            "concat_dimension": f"{concat} : i64",
            "split_count": f"{count} : i64",
        }
        return self.op("all_to_all", x, result=[(tuple(shape), x.dtype)], attributes=attributes)[0]

    def permute(self, x: Any, name: Any, pairs: Sequence[tuple[int, int]]) -> Any:
        """Send values along an axis, from the first device of each pair to the second."""
        rows = self._manual([name]).groups([name])
        both = [(row[i], row[j]) for row in rows for i, j in pairs]
        attributes = {
            "source_target_pairs": self.matrix([(int(i), int(j)) for i, j in both]),
            "channel_handle": self.module.channel(),
        }
        return self.op("collective_permute", x, result=x, attributes=attributes)

    def manual_computation(
        self,
        closed: Any,
        operands: Sequence[Any],
        mesh: Any,
        axes: Sequence[Any],
        ins: Sequence[Any],
        outs: Sequence[Any],
        whole: Any,
    ) -> list[Any]:
        """Emit a program that each device of a mesh runs on its own parts of the operands.

        Args:
            axes: the mesh axes that the program is mapped over.
            ins, outs: the shardings of operands and results.
            whole: the sharding of a value that all devices share.
        """
        module = self.module

        def listed(shardings: Sequence[Any], values: Sequence[Any]) -> str:
            pairs = zip(shardings, values, strict=True)
            texts = [module.sharding(s, len(v.shape)) for s, v in pairs]
            if manual.free:
                # Along the other axes the compiler may split the values further.
                texts = [re.sub(r"\{([^{}]*)\}", _opened, text) for text in texts]
            return f"#sdy.sharding_per_value<[{', '.join(texts)}]>"

        outer = module.manual
        around = outer.axes if outer is not None else ()
        symbol = module.mesh(whole.shardy(0, module.devices)[0])
        manual = module.manual = Manual(mesh, (*around, *axes), module.devices, symbol)
        try:
            with self.writer.region([kind for kind in module.kinds(closed.in_avals)]) as (xs, text):
                self.writer.op("sdy.return", self.inline(closed, xs), [])
        finally:
            module.manual = outer
        attributes = {
            "in_shardings": listed(ins, operands),
            "out_shardings": listed(outs, self.avals),
            "manual_axes": _manual_axes([a for a in mesh.axis_names if a in axes]),
        }
        return self.op(
            "sdy.manual_computation",
            *operands,
            result=list(self.avals),
            attributes=attributes,
            regions=text,
        )


def _opened(dimension: re.Match[str]) -> str:
    """Write the axes of a dimension, which the compiler may extend."""
    return f"{{{dimension[1]}, ?}}" if dimension[1] else "{?}"


def _manual_axes(names: Sequence[Any]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"#sdy<manual_axes{{{quoted}}}>"
