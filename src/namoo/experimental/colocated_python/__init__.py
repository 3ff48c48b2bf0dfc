"""Functions that run on the hosts of remote devices; they can be imported, but not called."""

from namoo._base.stand_in import stand_in

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
__dir__ = __all__.copy


_PLACE = "jax.experimental.colocated_python."
_WHY = "It is for devices of a remote host; namoo's devices are those of this machine."

colocated_cpu_devices = stand_in(_PLACE + "colocated_cpu_devices", _WHY)
colocated_python = stand_in(_PLACE + "colocated_python", _WHY)


def colocated_python_class(cls: type) -> type:
    """The placeholder of a class whose instances live on remote hosts; it has no instances."""
    return stand_in(f"{_PLACE}colocated_python_class({cls.__name__})", _WHY)
