"""One program in many processes, on one machine or many.

Every process runs the same script, and calls `initialize` before it uses devices:

    namoo.distributed.initialize()
    mesh = namoo.make_mesh((namoo.device_count(),), ("data",))

A process that was started by `python -m namoo.launch`, by Slurm's `srun` or by Open MPI's `mpirun`
reads the addresses and numbers from its environment.
"""

from namoo.devices.distributed.group import barrier, initialize, is_initialized, shutdown

__all__ = ["barrier", "initialize", "is_initialized", "shutdown"]
__dir__ = __all__.copy
