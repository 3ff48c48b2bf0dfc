"""A value that shall lie on devices in a certain way."""

from __future__ import annotations

from namoo.core.primitive import Primitive


class ShardingConstraint(Primitive):
    """The identity; where several devices compute, the value is laid out as `sharding` tells."""

    name, linear = "sharding_constraint", True
    takes_axis = True

    def evaluate(self, x, *, sharding):
        return x

    def abstract(self, x, *, sharding):
        return x

    def transpose(self, ct, x, *, sharding):
        return [self.bind(ct, sharding=sharding)]

    def batch(self, xs, dims, *, axis, sharding):
        wider = sharding.with_dimension(dims[0], axis.spmd)
        return self.bind(*xs, sharding=wider), dims[0]

    def native(self, emit, x, *, sharding):
        return x

    def stablehlo(self, hlo, x, *, sharding):
        return hlo.constrain(x, sharding)


sharding_constraint_p = ShardingConstraint()
