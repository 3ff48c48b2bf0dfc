"""Importable only: see `namoo.experimental.colocated_python`."""

from namoo._base.stand_in import stand_in

DeviceList = stand_in(
    "jax.experimental.colocated_python.serialization.DeviceList",
    "It is for devices of a remote host; namoo's devices are those of this machine.",
)
