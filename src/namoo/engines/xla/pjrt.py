"""jaxlib's PJRT client: the one file that knows jaxlib's names.

jaxlib promises nothing about these names from version to version, so everything that the engine
needs of it is here, behind a few functions: clients and their devices, buffers, executables.
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

from namoo.engines import cache

_INSTALL = 'pip install "namoo[xla]"'
_VERSIONS = ((0, 10), (0, 11))
"""The versions of jaxlib whose names these are: from the first, below the second."""


def _load() -> Any:
    """jaxlib's extension module, of a version that this file speaks to."""
    # XLA writes a line about each device to stderr, unless told before it is loaded.
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

# --- devices --------------------------------------------------------------------------------------


def cpu_client(count: int, **distributed: Any) -> Any:
    """A client with `count` CPU devices of this process."""
    # Results come from malloc, and go.  glibc gives blocks from a certain size on back to the
    # kernel, whose pages cost more than a step's work when they are touched again; the size is that
    # of the largest block so far that was given back, up to 32 MB.  No page of this one is touched.
    np.empty((32 << 20) - (1 << 16), np.uint8)
    return xla_client.make_cpu_client(asynchronous=True, num_devices=count, **distributed)


def load_plugin(name: str, library: str, options: dict[str, Any], connection: Any = None) -> Any:
    """The client of a PJRT plug-in, from its library.

    Args:
      connection: that of `distributed_client`, where this is one of several processes.
    """
    if not xla_client.pjrt_plugin_loaded(name):
        library_api = xla_client.load_pjrt_plugin_dynamically(name, library)
        if name in ("cuda", "rocm"):
            _let_call_back(name, library_api)
    if not xla_client.pjrt_plugin_initialized(name):
        xla_client.initialize_pjrt_plugin(name)
    return xla_client.make_c_api_client(name, options, connection)


def _let_call_back(name: str, library_api: Any) -> None:
    """Let programs on GPUs call functions of this process: an extension beside the plug-in can."""
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


def gpu_options(name: str) -> dict[str, Any]:
    """What the plug-ins of GPUs are told, by the environment variables that XLA's users know."""
    platform_name = {"rocm": "ROCM"}.get(name, name)
    return {**xla_client.generate_pjrt_gpu_plugin_options(), "platform_name": platform_name}


def device_list(devices: Sequence[Any]) -> Any:
    """jaxlib's list of its devices."""
    return _jax.DeviceList(tuple(devices))


# --- many processes -------------------------------------------------------------------------------


def distributed_service(address: str, count: int, heartbeat: int, timeout: int) -> Any:
    """The service that clients of `count` processes find one another through."""
    return _jax.get_distributed_runtime_service(
        address, count, heartbeat_timeout=heartbeat, cluster_register_timeout=timeout
    )


def distributed_client(address: str, number: int, heartbeat: int, timeout: int) -> Any:
    """The connection of process `number` to the service; returns when all processes have theirs."""
    # A callback for missed heartbeats cannot be given: jaxlib fails to convert its argument.
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
    """What makes a client one of several processes'; its collectives go over TCP."""
    return {
        "distributed_client": connection,
        "node_id": number,
        "num_nodes": count,
        "collectives": _jax.make_gloo_tcp_collectives(connection),
    }


# --- buffers --------------------------------------------------------------------------------------


class Placement(_jax.GSPMDSharding):
    """How the pieces of a buffer lie on devices, in jaxlib's terms."""

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self._hlo_sharding

    @property
    def memory_kind(self) -> Any:
        return self._memory_kind


def placement(devices: Sequence[Any], sharding: str | None = None) -> Placement:
    """Of a buffer on `devices`: all of it on each, or in pieces as an HLO sharding tells."""
    how = _hlo.HloSharding.replicate() if sharding is None else hlo_sharding(sharding)
    return Placement(device_list(devices), how)


def hlo_sharding(text: str) -> Any:
    """An HLO sharding from its text, as `{devices=[4,1]<=[4]}`."""
    return _hlo.HloSharding.from_string(text)


def put(aval: Any, where: Placement, pieces: Sequence[Any], devices: Sequence[Any]) -> Any:
    """A buffer from one NumPy array (or buffer) for each device, without a copy where possible."""
    return _jax.batched_device_put(aval, where, pieces, devices, True, enable_x64=True)


def join(aval: Any, where: Placement, pieces: list[Any]) -> Any:
    """A buffer from the buffers of its pieces."""
    return _jax.ArrayImpl(aval, where, pieces, True, True)


def pieces(buffer: Any) -> list[Any]:
    """The buffers of a buffer's pieces, of the devices of this process."""
    return list(buffer._arrays)


def client_of(buffer: Any) -> Any:
    """The client that a buffer belongs to."""
    return buffer._sharding._devices[0].client


def copied(buffer: Any, devices: dict[int, Any]) -> Any:
    """A buffer on the devices of the same numbers, of another client."""
    where = buffer._sharding
    new = [devices[d.id] for d in where._devices]
    own = [d for d in new if d.process_index == d.client.process_index()]
    parts = pieces(buffer) if len(new) > 1 else [buffer]
    values = [np.array(p._single_device_array_to_np_array_did_copy()[0]) for p in parts]
    return put(buffer.aval, Placement(device_list(new), where._hlo_sharding), values, own)


class _Shown:
    """A buffer's memory as an array interface: the array keeps this, and this keeps the buffer."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            # Types that NumPy has no letter for travel as bytes, and are viewed below.
            "typestr": dtype.str if dtype.isbuiltin == 1 else f"|V{dtype.itemsize}",
            "data": (buffer.unsafe_buffer_pointer(), True),
        }


def to_numpy(buffer: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The numbers of a buffer on one device: its own memory where the host can read it."""
    if buffer.platform() != "cpu" or dtype.itemsize == 0 or _sub_byte(dtype) or 0 in shape:
        return np.asarray(buffer._single_device_array_to_np_array_did_copy()[0])
    buffer.block_until_ready()
    shown = np.asarray(_Shown(buffer, shape, dtype))
    return shown if shown.dtype == dtype else shown.view(dtype)


def _sub_byte(dtype: np.dtype) -> bool:
    """Whether elements share bytes on the device, and do not in NumPy."""
    return dtype.name in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")


# --- programs -------------------------------------------------------------------------------------


class Loaded:
    """A compiled program on its devices: buffers in, buffers out."""

    __slots__ = ("executable", "handlers")

    def __init__(self, executable: Any):
        self.executable = executable
        self.handlers: list[Any] = []

    def results(self, avals: Sequence[Any], where: Sequence[Placement]) -> None:
        """Say what the results are, before the first call."""
        self.handlers = [
            _jax.array_result_handler(a, w, True, True) for a, w in zip(avals, where, strict=True)
        ]

    @property
    def steps(self) -> tuple[Any, ...]:
        """A call in steps that need no Python between them: `run`, `finish`, `handlers`, where
        `finish(run(buffers), handlers)` are the results, which may still be on their way."""
        finish = _jax.ExecuteResults.consume_with_handlers
        return self.executable.execute_sharded, finish, self.handlers

    def call(self, buffers: list[Any]) -> list[Any]:
        """The results, which may still be on their way."""
        return self.executable.execute_sharded(buffers).consume_with_handlers(self.handlers)

    def finish(self, buffers: list[Any]) -> list[Any]:
        """The results, after all effects have happened."""
        outs = self.executable.execute_sharded(buffers, with_tokens=True)
        token = outs.consume_token()
        values = outs.consume_with_handlers(self.handlers)
        token.block_until_ready()
        return values

    def output_shardings(self) -> list[str]:
        """How XLA decided to lay out the results, as texts of HLO shardings."""
        found = self.executable.get_output_shardings()
        return [] if found is None else [str(_hlo.HloSharding.from_proto(s)) for s in found]

    def text(self) -> str:
        """The program after XLA's passes."""
        return self.executable.get_hlo_text()

    def costs(self) -> dict[str, float]:
        return dict(self.executable.cost_analysis())

    def memory(self) -> Any:
        return self.executable.get_compiled_memory_stats()


def compile_options(devices: Sequence[Any], results: int, free_results: Sequence[bool]) -> Any:
    """Options for one program over `devices`, each of which computes its part.

    Args:
      results: how many results there are.
      free_results: for each, whether XLA may choose how it lies on the devices.
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
    """What a program names a function by that is told the text of an HLO sharding; and what must
    be kept until the program is compiled."""

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
    """A program from the text of its StableHLO module; from the disk where it is known.

    A program that calls back into this process, or tells of itself while it is compiled, is
    compiled each time.
    """
    placed = device_list(devices)
    if callbacks:
        computation, given = _parse(module), {"host_callbacks": list(callbacks)}
        return Loaded(client.compile_and_load(computation, placed, options, **given))
    if inspected:
        return Loaded(client.compile_and_load(module, placed, options))
    name = _cache_name(client, module, devices)
    known = cache.load(name)
    if known is not None:
        with contextlib.suppress(Exception):  # any doubt about an entry means to compile again
            return Loaded(client.deserialize_executable(known, placed, options))
    executable = client.compile_and_load(module, placed, options)
    with contextlib.suppress(_jax.JaxRuntimeError):  # a platform that cannot write programs down
        cache.save(name, client.serialize_executable(executable))
    return Loaded(executable)


def hlo_text(module: str) -> str:
    """The text of a StableHLO module in XLA's own words, before any pass of XLA."""
    return _jax.mlir.mlir_module_to_xla_computation(module).as_hlo_text()


def _cache_name(client: Any, module: str, devices: Sequence[Any]) -> str:
    """What decides the code of a program."""
    ids = " ".join(f"{d.id}" for d in devices)
    kinds = " ".join(sorted({d.device_kind for d in devices}))
    return cache.key("xla", module, versions(), client.platform_version, ids, kinds, _processor())


@functools.cache
def _processor() -> str:
    """The abilities of this machine's processor."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii") as file:
        return "".join(line for line in file if line.startswith(("flags", "Features")))[:8192]
    return f"{platform.machine()} {platform.processor()}"


_context: Any = None


def _parse(text: str) -> Any:
    """A module as an object: programs with host callbacks cannot be given as text."""
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


@functools.cache
def lapack() -> None:
    """Let programs for the CPU call LAPACK."""
    from jaxlib import lapack as routines

    for name, function, version in routines.registrations()["cpu"]:
        xla_client.register_custom_call_target(name, function, platform="cpu", api_version=version)
        xla_client.register_custom_call_as_batch_partitionable(name)
    routines._lapack.initialize()


def versions() -> str:
    """What decides whether a compiled program can be used again."""
    return f"jaxlib extension {xla_client._version}, XLA_FLAGS={os.environ.get('XLA_FLAGS', '')}"
