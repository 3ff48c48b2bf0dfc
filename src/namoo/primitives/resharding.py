"""`reshard`: the same value with another sharding in its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo.analysis.mesh_types import MeshArray
from namoo.analysis.sharding_rules import by_compiler
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive
from namoo.core.trace import EvalTrace, context


class Reshard(Primitive):
    """The identity; the type of the result has the sharding `sharding`, or none if that is None."""

    name, linear, sharded = "reshard", True, True
    implied_params = ("sharding",)
    takes_axis = True

    place: Callable[[Any, Any], Any]
    """Puts a concrete array on devices; `api.wiring` sets it."""

    def bind(self, x, *, sharding):
        if isinstance(context.trace, EvalTrace):
            return x if sharding is None else self.place(x, sharding)
        return super().bind(x, sharding=sharding)

    def evaluate(self, x, *, sharding):
        return x

    def abstract(self, x, *, sharding):
        split = None if sharding is None else sharding.in_type(len(x.shape))
        if split is None and not x.vma:
            return ShapedArray(x.shape, x.dtype, x.weak_type)
        return MeshArray(x, x.vma, split)

    def transpose(self, ct, x, *, sharding):
        return [with_type(ct, x.aval.to_ct_aval())]

    def batch(self, xs, dims, *, axis, sharding):
        (x,), (d,) = xs, dims
        if sharding is not None:
            entries = [*sharding.spec.partitions]
            entries += [None] * (d - len(entries))
            own = aval_of(x)
            split = own.split if type(own) is MeshArray else None
            entries.insert(d, axis.spmd if split is None else split.spec.partitions[d])
            sharding = sharding.with_spec(sharding.spec.update(entries))
        return self.bind(x, sharding=sharding), d

    def native(self, emit, x, *, sharding):
        return x

    def stablehlo(self, hlo, x, *, sharding):
        wanted = None if sharding is None else sharding.in_program(x.ndim)
        return x if wanted is None or hlo.module.manual else hlo.constrain(x, wanted)


reshard_p = Reshard()


def with_type(x: Any, aval: Any) -> Any:
    """A value with the sharding that a type has; unchanged if the type has none."""
    split = aval.split if type(aval) is MeshArray else None
    if split is None or aval_of(x) == MeshArray(aval_of(x), split=split):
        return x
    return reshard_p.bind(x, sharding=split)


def _no_devices(name: str, given: Any) -> Any:
    raise AssertionError(f"{name}: there is nothing to resolve {given} with")


resolve: Callable[[str, Any], Any] = _no_devices
"""The sharding that a user asked a function for; `api.wiring` sets it."""


def with_out_sharding(out_sharding: Any, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function with the sharding that the user asked for.

    The compiler chooses the shardings of what the function computes in between.
    """
    sharding = resolve(fun.__name__, out_sharding)
    with by_compiler():
        x = fun(*args, **kwargs)
    return x if sharding is None else reshard_p.bind(x, sharding=sharding)


def resharded(name: str, x: Any, out_sharding: Any) -> Any:
    """What the function `name` made, with the sharding that the user asked for."""
    sharding = resolve(name, out_sharding)
    return x if sharding is None else reshard_p.bind(x, sharding=sharding)
