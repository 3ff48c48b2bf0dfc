"""jaxlib's PJRT client: the one file that knows jaxlib's names.

jaxlib does not keep these names stable between versions, so everything that the engine needs from
it is here, behind a few functions: clients and their devices, buffers, executables.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pkgutil
import platform
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo.engines import disk_cache

_INSTALL = 'pip install "namoo[xla]"'
_VERSIONS = ((0, 10), (0, 11))
"""The versions of jaxlib that this file supports: from the first, below the second."""


def _load() -> Any:
    """Import jaxlib's extension module; refuse versions that are not supported."""
    # XLA logs a line about each device to stderr, unless this is set before it is loaded.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    try:
        import jaxlib.version
    except ImportError as error:
        raise ImportError(f"The XLA engine needs jaxlib, which is not installed: {_INSTALL}") from (
            error
        )
    found = tuple(map(int, jaxlib.version.__version__.split(".")[:2]))
    if not _VERSIONS[0] <= found < _VERSIONS[1]:
        wanted = ".".join(map(str, _VERSIONS[0])), ".".join(map(str, _VERSIONS[1]))
        raise ImportError(
            f"The XLA engine speaks to jaxlib from {wanted[0]} up to, not including, {wanted[1]}; "
            f"found {jaxlib.version.__version__}. Run: {_INSTALL}"
        )
    from jaxlib import _jax  # type: ignore[attr-defined]

    return _jax


_jax = _load()

from jaxlib import _hlo, xla_client  # type: ignore[attr-defined]  # noqa: E402


def cpu_client(count: int, **distributed: Any) -> Any:
    """Return a client with `count` CPU devices of this process."""
    # XLA allocates results with malloc. glibc returns large blocks to the kernel, and touching new
    # pages costs more than the work of a step. Its threshold grows to the largest block freed so
    # far, up to 32 MB: free such a block once. No page of it is touched.
    np.empty((32 << 20) - (1 << 16), np.uint8)
    return xla_client.make_cpu_client(asynchronous=True, num_devices=count, **distributed)


def load_plugin(name: str, library: str, options: dict[str, Any], connection: Any = None) -> Any:
    """Load a PJRT plug-in, and return its client.

    Args:
        connection: the `distributed_client`, if there are several processes.
    """
    if not xla_client.pjrt_plugin_loaded(name):
        library_api = xla_client.load_pjrt_plugin_dynamically(name, library)
        if name in ("cuda", "rocm"):
            _let_call_back(name, library_api)
    if not xla_client.pjrt_plugin_initialized(name):
        xla_client.initialize_pjrt_plugin(name)
    return xla_client.make_c_api_client(name, options, connection)


def _let_call_back(name: str, library_api: Any) -> None:
    """Register Python callbacks for GPUs, which an extension beside the plug-in provides."""
    pattern = re.compile(rf"jax_{name}\d*_plugin")
    for module in pkgutil.iter_modules():
        if not pattern.fullmatch(module.name):
            continue
        extension = importlib.import_module(f"{module.name}.{name}_plugin_extension")
        platform_name = name.upper()
        for tell, method in (
            (xla_client.register_custom_type_handler, extension.register_custom_type),
            (xla_client.register_custom_call_handler, extension.register_custom_call_target),
        ):
            tell(platform_name, functools.partial(method, library_api))
        for known, value in extension.ffi_types().items():
            xla_client.register_custom_type(known, value, platform=platform_name)
        for known, value in extension.ffi_handlers().items():
            xla_client.register_custom_call_target(
                known, value, platform=platform_name, api_version=1
            )
        return


def register_handler(name: str, capsule: Any) -> None:
    """Register a handler of the typed FFI for CPUs."""
    xla_client.register_custom_call_target(name, capsule, platform="cpu", api_version=1)


def gpu_options(name: str) -> dict[str, Any]:
    """Return the options of GPU plug-ins, from XLA's environment variables."""
    platform_name = {"rocm": "ROCM"}.get(name, name)
    return {**xla_client.generate_pjrt_gpu_plugin_options(), "platform_name": platform_name}


def device_list(devices: Sequence[Any]) -> Any:
    """Return jaxlib's list of devices."""
    return _jax.DeviceList(tuple(devices))


def distributed_service(address: str, count: int, heartbeat: int, timeout: int) -> Any:
    """Start the service by which the clients of `count` processes find one another."""
    return _jax.get_distributed_runtime_service(
        address, count, heartbeat_timeout=heartbeat, cluster_register_timeout=timeout
    )


def distributed_client(address: str, number: int, heartbeat: int, timeout: int) -> Any:
    """Connect process `number` to the service; return when all processes are connected."""
    # No callback for missed heartbeats: jaxlib fails to convert its argument.
    made = _jax.get_distributed_runtime_client(
        address,
        number,
        init_timeout=timeout,
        heartbeat_timeout=heartbeat,
        shutdown_on_destruction=False,
        use_compression=True,
    )
    made.connect()
    return made


def distributed_options(connection: Any, number: int, count: int) -> dict[str, Any]:
    """Return the options of a client of several processes; its collectives use TCP."""
    return {
        "distributed_client": connection,
        "node_id": number,
        "num_nodes": count,
        "collectives": _jax.make_gloo_tcp_collectives(connection),
    }


class Placement(_jax.GSPMDSharding):
    """jaxlib's description of how the pieces of a buffer are placed on devices."""

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self._hlo_sharding

    @property
    def memory_kind(self) -> Any:
        return self._memory_kind


def placement(devices: Sequence[Any], sharding: str | None = None) -> Placement:
    """Make a placement on `devices`: replicated, or in pieces by an HLO sharding."""
    how = _hlo.HloSharding.replicate() if sharding is None else hlo_sharding(sharding)
    return Placement(device_list(devices), how)


def hlo_sharding(text: str) -> Any:
    """Parse an HLO sharding, such as `{devices=[4,1]<=[4]}`."""
    return _hlo.HloSharding.from_string(text)


def put(aval: Any, where: Placement, pieces: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Make a buffer from one NumPy array (or buffer) per device, without a copy if possible."""
    return _jax.batched_device_put(aval, where, pieces, devices, True, enable_x64=True)


def join(aval: Any, where: Placement, pieces: list[Any]) -> Any:
    """Make a buffer from the buffers of its pieces."""
    return _jax.ArrayImpl(aval, where, pieces, True, True)


def pieces(buffer: Any) -> list[Any]:
    """Return the buffers of a buffer's pieces on the devices of this process."""
    return list(buffer._arrays)


def client_of(buffer: Any) -> Any:
    """Return the client of a buffer."""
    return buffer._sharding._devices[0].client


def copied(buffer: Any, devices: dict[int, Any]) -> Any:
    """Copy a buffer to the devices with the same ids of another client."""
    where = buffer._sharding
    new = [devices[d.id] for d in where._devices]
    own = [d for d in new if d.process_index == d.client.process_index()]
    parts = pieces(buffer) if len(new) > 1 else [buffer]
    values = [np.array(p._single_device_array_to_np_array_did_copy()[0]) for p in parts]
    return put(buffer.aval, Placement(device_list(new), where._hlo_sharding), values, own)


class _Shown:
    """The array interface of a buffer's memory; it keeps the buffer alive."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            # Types without a NumPy type code are passed as bytes, and viewed below.
            "typestr": dtype.str if dtype.isbuiltin == 1 else f"|V{dtype.itemsize}",
            "data": (buffer.unsafe_buffer_pointer(), True),
        }


def to_numpy(buffer: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the values of a buffer on one device; without a copy if the host can read it."""
    if buffer.platform() != "cpu" or dtype.itemsize == 0 or _sub_byte(dtype) or 0 in shape:
        return np.asarray(buffer._single_device_array_to_np_array_did_copy()[0])
    buffer.block_until_ready()
    shown = np.asarray(_Shown(buffer, shape, dtype))
    return shown if shown.dtype == dtype else shown.view(dtype)


def _sub_byte(dtype: np.dtype) -> bool:
    """Whether elements are packed on the device but not in NumPy."""
    return dtype.name in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")


class Loaded:
    """A compiled program on its devices: buffers in, buffers out."""

    __slots__ = ("executable", "handlers")

    def __init__(self, executable: Any):
        self.executable = executable
        self.handlers: list[Any] = []

    def results(self, avals: Sequence[Any], where: Sequence[Placement]) -> None:
        """Set the types and placements of the results, before the first call."""
        self.handlers = [
            _jax.array_result_handler(a, w, True, True) for a, w in zip(avals, where, strict=True)
        ]

    @property
    def steps(self) -> tuple[Any, ...]:
        """The steps of a call without Python in between: `run`, `finish` and `handlers`.

        `finish(run(buffers), handlers)` returns the results, which may not be ready yet.
        """
        finish = _jax.ExecuteResults.consume_with_handlers
        return self.executable.execute_sharded, finish, self.handlers

    def call(self, buffers: list[Any]) -> list[Any]:
        """Run the program; results may not be ready yet."""
        return self.executable.execute_sharded(buffers).consume_with_handlers(self.handlers)

    def finish(self, buffers: list[Any]) -> list[Any]:
        """Run the program, and wait for all its effects."""
        outs = self.executable.execute_sharded(buffers, with_tokens=True)
        token = outs.consume_token()
        values = outs.consume_with_handlers(self.handlers)
        token.block_until_ready()
        return values

    def output_shardings(self) -> list[str]:
        """Return the shardings that XLA chose for the results, as HLO text."""
        found = self.executable.get_output_shardings()
        return [] if found is None else [str(_hlo.HloSharding.from_proto(s)) for s in found]

    def text(self) -> str:
        """Return the program after XLA's passes."""
        return self.executable.get_hlo_text()

    def costs(self) -> dict[str, float]:
        return dict(self.executable.cost_analysis())

    def memory(self) -> Any:
        return self.executable.get_compiled_memory_stats()


def compile_options(devices: Sequence[Any], results: int, free_results: Sequence[bool]) -> Any:
    """Return the options for an SPMD program over `devices`.

    Args:
        results: the number of results.
        free_results: for each, whether XLA may choose its sharding.
    """
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    count = len(devices)
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = count
    ids = np.array([[d.id for d in devices]], np.int32)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    if results:
        build.allow_spmd_sharding_propagation_to_output = list(free_results)
    return options


def inspection(tell: Callable[[str], None]) -> tuple[bytes, Callable]:
    """Register a function that XLA calls with the text of an HLO sharding.

    Returns:
        the name for the program, and an object to keep until the program is compiled.
    """

    def called(sharding: Any) -> None:
        tell(str(sharding))

    return _jax.encode_inspect_sharding_callback(called), called


def compile(
    client: Any,
    module: str,
    devices: Sequence[Any],
    options: Any,
    callbacks: Sequence[Callable],
    inspected: bool = False,
) -> Loaded:
    """Compile the text of a StableHLO module, or load the program from the disk cache.

    A program that calls back into this process, while it runs or is compiled, is never cached.
    """
    placed = device_list(devices)
    if callbacks:
        computation, given = parse(module), {"host_callbacks": list(callbacks)}
        return Loaded(client.compile_and_load(computation, placed, options, **given))
    if inspected:
        return Loaded(client.compile_and_load(module, placed, options))
    name = _cache_name(client, module, devices)
    known = disk_cache.load(name)
    if known is not None:
        with contextlib.suppress(Exception):  # any anomaly in an entry is a cache miss
            return Loaded(client.deserialize_executable(known, placed, options))
    executable = client.compile_and_load(module, placed, options)
    with contextlib.suppress(_jax.JaxRuntimeError):  # a platform that cannot serialise programs
        disk_cache.save(name, client.serialize_executable(executable))
    return Loaded(executable)


def computation(module: str) -> Any:
    """Convert a StableHLO module to an HLO module, before XLA's passes."""
    return _jax.mlir.mlir_module_to_xla_computation(module)


def _cache_name(client: Any, module: str, devices: Sequence[Any]) -> str:
    """Return the disk cache key of a program."""
    ids = " ".join(f"{d.id}" for d in devices)
    kinds = " ".join(sorted({d.device_kind for d in devices}))
    return disk_cache.key(
        "xla", module, versions(), client.platform_version, ids, kinds, _processor()
    )


@cached("xla pjrt: processor", bound=1, keyed_by="nothing", kept=True)
def _processor() -> str:
    """Return the features of this machine's processor."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii") as file:
        return "".join(line for line in file if line.startswith(("flags", "Features")))[:8192]
    return f"{platform.machine()} {platform.processor()}"


_context: Any = None


def parse(text: str) -> Any:
    """Parse a module: programs with host callbacks cannot be passed as text."""
    global _context
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    if _context is None:
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        context = ir.Context()
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        for dialect in (sdy, chlo, stablehlo):
            dialect.register_dialect(context)
        _context = context
    with _context:
        return ir.Module.parse(text)


@cached("xla pjrt: LAPACK registration", bound=1, keyed_by="nothing", kept=True)
def lapack() -> None:
    """Let programs for the CPU call LAPACK."""
    from jaxlib import lapack as routines

    for name, function, version in routines.registrations()["cpu"]:
        xla_client.register_custom_call_target(name, function, platform="cpu", api_version=version)
        xla_client.register_custom_call_as_batch_partitionable(name)
    routines._lapack.initialize()


def versions() -> str:
    """Return everything besides the module that decides the code of a program."""
    return f"jaxlib extension {xla_client._version}, XLA_FLAGS={os.environ.get('XLA_FLAGS', '')}"
