"""Primitives about devices: sharding constraints, moves, and inspection of shardings."""

from __future__ import annotations

from namoo.core.primitive import Primitive


class ShardingConstraint(Primitive):
    """The identity; in a program over several devices the value gets the sharding `sharding`."""

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


class DevicePut(Primitive):
    """The identity; arrays on devices are moved to those of `sharding`.

    The cotangent is moved back to `src`, the sharding of the operand, if that is known.
    """

    name, linear = "device_put", True
    takes_axis = True

    def evaluate(self, x, *, sharding, src):
        return x

    def abstract(self, x, *, sharding, src):
        return x

    def transpose(self, ct, x, *, sharding, src):
        return [ct if src is None else self.bind(ct, sharding=src, src=sharding)]

    def batch(self, xs, dims, *, axis, sharding, src):
        wider = [s and s.with_dimension(dims[0], axis.spmd) for s in (sharding, src)]
        return self.bind(*xs, sharding=wider[0], src=wider[1]), dims[0]

    def native(self, emit, x, *, sharding, src):
        return x

    def stablehlo(self, hlo, x, *, sharding, src):
        return hlo.constrain(x, sharding)


class InspectSharding(Primitive):
    """Calls a function with the sharding of a value when the program is compiled.

    The function gets a sharding, a device, or None for a value on the host.
    """

    name, effectful, multiple_results = "inspect_sharding", True, True

    def evaluate(self, x, *, callback):
        callback(None)
        return []

    def abstract(self, x, *, callback):
        return []

    def jvp(self, primals, tangents, *, callback):
        self.bind(*primals, callback=callback)
        return [], []

    def batch(self, xs, dims, *, callback):
        self.bind(*xs, callback=callback)
        return [], []

    def native(self, emit, x, *, callback):
        callback(None)
        return []

    def stablehlo(self, hlo, x, *, callback):
        hlo.inspect(x, callback)
        return []


sharding_constraint_p = ShardingConstraint()
device_put_p = DevicePut()
inspect_sharding_p = InspectSharding()
