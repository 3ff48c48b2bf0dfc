"""`namoo.distributed`: one program in many processes, on one machine or many.

Every process runs the same script, and calls `initialize` before it uses devices:

    namoo.distributed.initialize()
    mesh = namoo.make_mesh((namoo.device_count(),), ("data",))

Started by `python -m namoo.launch`, by Slurm's `srun` or by Open MPI's `mpirun`, a process knows
the rest from its environment.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from namoo import errors
from namoo._config import config
from namoo.distributed.clusters import detect
from namoo.distributed.health import FAREWELL, Member, Server, listening, parse_address
from namoo.distributed.secret import find_secret, new_secret
from namoo.engines import devices

__all__ = ["barrier", "initialize", "is_initialized", "shutdown"]

# How long the news of another process' death may take to arrive after its consequences.
_NEWS = 3.0


class _State:
    """What `initialize` made."""

    member: Member | None = None
    server: Server | None = None
    runtime: Any = None
    shutdown_timeout: float = 300
    failed = False


_state = _State()


@errors.boundary
def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: float = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    *,
    stall_timeout_seconds: float = 300,
) -> None:
    """Join the processes that run this program together; returns when all have come.

    What is not given is taken from the environment, where `python -m namoo.launch`, Slurm or Open
    MPI started this process.

    Processes recognise one another by a secret: the text in `NAMOO_COORDINATOR_SECRET`, which the
    launcher sets, or that in the file which `NAMOO_COORDINATOR_SECRET_FILE` names; else that in a
    file of the user's home directory, which is made when it is first needed.

    Afterwards a process that dies is named on standard error by all the others, which then end,
    too, with exit code 70; a process that others wait for longer than `stall_timeout_seconds` is
    named, and shows where it is.

    Args:
      coordinator_address: host and port that process 0 listens at, as "10.0.0.1:1234".
      num_processes: how many processes there are.
      process_id: the number of this one, from 0.
      local_device_ids: the accelerators of this machine that this process may use; by default one
        for each process where a cluster started them, else all.
      cluster_detection_method: 'namoo', 'slurm' or 'ompi', where that shall be used; 'deactivate'
        where the environment shall not be looked at.
      initialization_timeout: seconds to wait for the others.
      heartbeat_timeout_seconds: seconds without a sign of life after which a process counts as
        dead.
      shutdown_timeout_seconds: seconds that a process which ends waits for the others.
      coordinator_bind_address: where process 0 listens, if that differs from the address, as on a
        machine that others reach by an address which it does not have itself.
      slice_index: has no effect.
      partition_index: has no effect.
      stall_timeout_seconds: seconds after which a process that others wait for is named.

    Raises:
      RuntimeError: called twice; or what processes were told does not fit together, their secret
        included; or the address of process 0 is not one of its machine.
      PermissionError: others can read the file with the secret.
      TimeoutError: not all processes came; the message names them.
      ValueError: something is neither given nor in the environment, or the secret is too short.

    Example:
        >>> import namoo
        >>> namoo.distributed.initialize("localhost:0", num_processes=1, process_id=0)
        >>> namoo.process_count(), namoo.distributed.is_initialized()
        (1, True)
        >>> namoo.distributed.shutdown()
    """
    if is_initialized():
        raise RuntimeError("distributed.initialize was called already; it is called once.")
    address, count, number, local = _settled(
        coordinator_address,
        num_processes,
        process_id,
        local_device_ids,
        cluster_detection_method,
    )
    if local is not None:
        visible = ",".join(map(str, local))
        for option in ("jax_cuda_visible_devices", "jax_rocm_visible_devices"):
            config.update(option, visible)
    where = parse_address(address)
    # One process has no other to share a secret with.
    secret = new_secret().encode() if count == 1 else find_secret(os.environ)
    # Several signs of life fit into the time after which silence means death.
    times: dict[str, Any] = {
        "beat": min(1.0, heartbeat_timeout_seconds / 4),
        "silence": heartbeat_timeout_seconds,
    }
    runtime = None if count == 1 else _Runtime(heartbeat_timeout_seconds, initialization_timeout)
    if number == 0:
        bind = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
        listen = parse_address(bind) if bind else (listening(where[0]), where[1])
        _state.server = Server(listen, count, secret, stall=stall_timeout_seconds, **times)
        where = (where[0], _state.server.port)
        _state.server.welcome(service=runtime and runtime.serve(where[0], listen[0], count))
        _state.server.start()
    try:
        member = Member(
            where,
            number,
            count,
            secret,
            timeout=initialization_timeout,
            progress=lambda: devices.together.started,
            **times,
        )
        if runtime is not None:
            runtime.join(member.welcome["service"], number, count)
    except BaseException:
        if _state.server is not None:
            _state.server.stop()
        _state.server = None
        raise
    _state.member, _state.runtime = member, runtime
    _state.shutdown_timeout = shutdown_timeout_seconds
    devices.set_processes(number, count)
    _watch_errors()
    atexit.register(shutdown)


def _settled(
    address: str | None,
    count: int | None,
    number: int | None,
    local: int | Sequence[int] | None,
    method: str | None,
) -> tuple[str, int, int, list[int] | None]:
    """What was given, and for the rest what the environment tells."""
    env = os.environ
    address = address or env.get("JAX_COORDINATOR_ADDRESS")
    ids = [local] if isinstance(local, int) else None if local is None else list(local)
    if ids is None and "JAX_LOCAL_DEVICE_IDS" in env:
        ids = [int(word) for word in env["JAX_LOCAL_DEVICE_IDS"].split(",")]
    if None in (address, count, number) and method != "deactivate":
        cluster = detect(method)
        if cluster is not None:
            address = address or cluster.coordinator(env)
            count = cluster.count(env) if count is None else count
            number = cluster.number(env) if number is None else number
            ids = [cluster.local_number(env)] if ids is None else ids
    given = {"coordinator_address": address, "num_processes": count, "process_id": number}
    if missing := [name for name, value in given.items() if value is None]:
        raise ValueError(
            f"distributed.initialize: {', '.join(missing)} must be given, since this process was "
            "started by none of `python -m namoo.launch`, Slurm's srun and Open MPI's mpirun. As "
            "in initialize('10.0.0.1:1234', num_processes=2, process_id=0)."
        )
    assert address is not None and count is not None and number is not None
    for name, value in (("num_processes", count), ("process_id", number)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(
                f"distributed.initialize: {name} must be an integer, got {value!r} of type "
                f"{type(value).__name__}."
            )
    if not 0 <= number < count:
        raise ValueError(
            f"distributed.initialize: process_id is one of 0 to num_processes - 1; got "
            f"process_id={number} with num_processes={count}."
        )
    return address, count, number, ids


class _Runtime:
    """jaxlib's part: what its clients find one another by."""

    def __init__(self, heartbeat_timeout: float, initialization_timeout: float):
        from namoo.engines.xla import clients, processes

        if clients.in_use():
            raise RuntimeError(
                "distributed.initialize must be called before anything runs on XLA or is put on a "
                "device: the devices of all processes are counted anew. Call it first."
            )
        self._xla = processes
        self._init = max(1, round(initialization_timeout))
        # Ours shall speak first: jaxlib's way to say that a process is lost is to abort.
        self._heartbeat = round(heartbeat_timeout * 3) + 30
        self._service: Any = None

    def serve(self, host: str, listen: str, count: int) -> str:
        """Start the service in process 0, and tell where it is."""
        address, self._service = self._xla.serve(host, listen, count, self._heartbeat, self._init)
        return address

    def join(self, address: str, number: int, count: int) -> None:
        self._xla.join(address, number, count, self._heartbeat, self._init)

    def stop(self) -> None:
        self._xla.leave()
        if self._service is not None:
            self._service.shutdown()


def is_initialized() -> bool:
    """Whether this process has joined others.

    >>> is_initialized()
    False
    """
    return _state.member is not None


@errors.boundary
def shutdown() -> None:
    """Part from the other processes, when all are about to; at the end this happens by itself.

    Does nothing where `initialize` was not called.
    """
    member, server, runtime = _state.member, _state.server, _state.runtime
    if member is None:
        return
    _state.member = _state.server = _state.runtime = None
    atexit.unregister(shutdown)
    if _state.failed:
        if server is not None:
            # The others end by themselves; without jaxlib's service they would abort.
            time.sleep(FAREWELL)
        if runtime is not None:
            runtime.stop()
        return
    if not member.leave(_state.shutdown_timeout):
        sys.stderr.write(
            f"namoo.distributed, process {member.number}: the others did not end within "
            f"{_state.shutdown_timeout:g} s; this one does now.\n"
        )
    if runtime is not None:
        runtime.stop()
    member.close()
    if server is not None:
        server.join(_NEWS)
        server.stop()
    devices.set_processes(0, 1)


@errors.boundary
def barrier(name: str = "barrier", timeout_seconds: float = 300) -> None:
    """Wait until all processes have come to this place.

    Args:
      name: the name of the place, the same in all processes.
      timeout_seconds: how long to wait.

    Raises:
      TimeoutError: not all came in time; the message names those who did not.

    >>> barrier()  # alone, there is nobody to wait for
    """
    if _state.member is not None:
        _state.member.barrier(name, timeout_seconds)


def _watch_errors() -> None:
    """Tell the others when this process ends with an error, so that they need not find out."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        member = _state.member
        if member is None:
            before(kind, error, traceback)
            return
        if kind.__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
            # Most likely a collective that broke because another process died: its name is on
            # the way, and this process then ends with it.
            member.await_verdict(_NEWS)
        before(kind, error, traceback)
        _state.failed = True
        member.failed(f"{kind.__name__}: {error}".splitlines()[0][:200])
        if _state.server is not None:
            # The others hear it from a thread of this process.
            _state.server.condemned.wait(_NEWS)

    sys.excepthook = hook
