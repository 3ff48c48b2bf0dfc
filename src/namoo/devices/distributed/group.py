"""Join the processes that run one program, and leave them again.

`namoo.distributed` is the public namespace of this module.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from namoo._base.config import config
from namoo._base.source_context import entry_point
from namoo.devices.distributed.clusters import detect
from namoo.devices.distributed.health import FAREWELL, Member, Server, listening, parse_address
from namoo.devices.distributed.secret import find_secret, new_secret
from namoo.engines import registry

__all__ = ["barrier", "initialize", "is_initialized", "shutdown"]

# Seconds that the report of another process' death may arrive after its consequences.
_NEWS = 3.0


class _State:
    """The objects that `initialize` made."""

    member: Member | None = None
    server: Server | None = None
    runtime: Any = None
    shutdown_timeout: float = 300
    failed = False


_state = _State()


@entry_point
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
    """Join the processes that run this program together; return when all have joined.

    Arguments that are not given are read from the environment, if `python -m namoo.launch`, Slurm
    or Open MPI started this process.

    Processes authenticate one another by a secret: the text in `NAMOO_COORDINATOR_SECRET`, which
    the launcher sets, or the content of the file that `NAMOO_COORDINATOR_SECRET_FILE` names; else
    that of a file in the user's home directory, which is created when it is first needed.

    When a process dies later, all others name it on standard error and end with exit code 70. A
    process that others wait for longer than `stall_timeout_seconds` is named, and prints its stack.

    Args:
        coordinator_address: host and port that process 0 listens at, such as "10.0.0.1:1234".
        num_processes: the number of processes.
        process_id: the number of this process, from 0.
        local_device_ids: the accelerators of this machine that this process may use; by default one
            for each process if a cluster started them, else all.
        cluster_detection_method: 'namoo', 'slurm' or 'ompi' to require one of them; 'deactivate' to
            ignore the environment.
        initialization_timeout: seconds to wait for the others.
        heartbeat_timeout_seconds: seconds without a heartbeat after which a process counts as dead.
        shutdown_timeout_seconds: seconds that a process waits for the others when it ends.
        coordinator_bind_address: the address that process 0 binds to, if it differs from
            `coordinator_address`, as behind address translation.
        slice_index: has no effect.
        partition_index: has no effect.
        stall_timeout_seconds: seconds after which a process that others wait for is named.

    Raises:
        RuntimeError: it was called twice; or the processes' arguments or secrets contradict one
            another; or the address of process 0 is not one of its machine.
        PermissionError: other users can read the file with the secret.
        TimeoutError: not all processes joined; the message names the missing ones.
        ValueError: an argument is neither given nor in the environment, or the secret is too short.

    Example:
        >>> import namoo
        >>> namoo.distributed.initialize("localhost:0", num_processes=1, process_id=0)
        >>> namoo.process_count(), namoo.distributed.is_initialized()
        (1, True)
        >>> namoo.distributed.shutdown()
    """
    if is_initialized():
        raise RuntimeError("distributed.initialize was called already; call it only once.")
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
    # A single process needs no secret.
    secret = new_secret().encode() if count == 1 else find_secret(os.environ)
    # A process counts as dead only after several missed heartbeats.
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
            progress=lambda: registry.progress.started,
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
    registry.set_processes(number, count)
    _watch_errors()
    atexit.register(shutdown)


def _settled(
    address: str | None,
    count: int | None,
    number: int | None,
    local: int | Sequence[int] | None,
    method: str | None,
) -> tuple[str, int, int, list[int] | None]:
    """Complete the arguments from the environment, and check them."""
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
            "started by none of `python -m namoo.launch`, Slurm's srun and Open MPI's mpirun. "
            "Write initialize('10.0.0.1:1234', num_processes=2, process_id=0)."
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
    """jaxlib's distributed service, by which its clients find one another."""

    def __init__(self, heartbeat_timeout: float, initialization_timeout: float):
        from namoo.engines.xla import clients, processes

        if clients.in_use():
            raise RuntimeError(
                "distributed.initialize must be called before anything runs on XLA or is put on a "
                "device: the devices of all processes are numbered again. Call it first."
            )
        self._xla = processes
        self._init = max(1, round(initialization_timeout))
        # Our own heartbeat must report first: jaxlib reports a lost process by aborting this one.
        self._heartbeat = round(heartbeat_timeout * 3) + 30
        self._service: Any = None

    def serve(self, host: str, listen: str, count: int) -> str:
        """Start the service in process 0, and return its address."""
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

    Example:
        >>> is_initialized()
        False
    """
    return _state.member is not None


@entry_point
def shutdown() -> None:
    """Leave the group, together with all other processes. It is called automatically at exit.

    It does nothing if `initialize` was not called.
    """
    member, server, runtime = _state.member, _state.server, _state.runtime
    if member is None:
        return
    _state.member = _state.server = _state.runtime = None
    atexit.unregister(shutdown)
    if _state.failed:
        if server is not None:
            # The others end by themselves; if jaxlib's service were gone they would abort.
            time.sleep(FAREWELL)
        if runtime is not None:
            runtime.stop()
        return
    if not member.leave(_state.shutdown_timeout):
        sys.stderr.write(
            f"namoo.distributed, process {member.number}: the others did not finish within "
            f"{_state.shutdown_timeout:g} s; this one exits now.\n"
        )
    if runtime is not None:
        runtime.stop()
    member.close()
    if server is not None:
        server.join(_NEWS)
        server.stop()
    registry.set_processes(0, 1)


@entry_point
def barrier(name: str = "barrier", timeout_seconds: float = 300) -> None:
    """Wait until all processes have reached this call.

    Args:
        name: a name for the barrier, the same in all processes.
        timeout_seconds: how long to wait.

    Raises:
        TimeoutError: not all arrived in time; the message names the missing ones.

    Example:
        >>> barrier()  # alone, there is nobody to wait for
    """
    if _state.member is not None:
        _state.member.barrier(name, timeout_seconds)


def _watch_errors() -> None:
    """Notify the others when this process ends with an error."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        member = _state.member
        if member is None:
            before(kind, error, traceback)
            return
        if kind.__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
            # Most likely a collective failed because another process died: the report is on its
            # way, and ends this process.
            member.await_verdict(_NEWS)
        before(kind, error, traceback)
        _state.failed = True
        member.failed(f"{kind.__name__}: {error}".splitlines()[0][:200])
        if _state.server is not None:
            # A thread of this process notifies the others.
            _state.server.condemned.wait(_NEWS)

    sys.excepthook = hook
