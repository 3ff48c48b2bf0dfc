"""Settings: a table of options, an object to read and write them, a context manager for each.

`config` is a `threading.local`. Its *class* attributes are the settings of the process, and its
instance attributes are the overrides of the current thread by context managers. So reading
`config.enable_x64` is one attribute access, cheap enough for every eager operation.

    >>> config.update("jax_enable_x64", True)
    >>> config.jax_enable_x64
    True
    >>> with enable_x64(False):
    ...     config.jax_enable_x64
    False
    >>> config.update("jax_enable_x64", False)

A setting's default is taken from the environment: `NAMOO_ENABLE_X64`, else `JAX_ENABLE_X64`.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import os
import sys
from _thread import _local, allocate_lock  # `threading` takes longer to load than this module
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from namoo._base.caches import register

_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off", "")


def _boolean(value: Any) -> bool:
    """Accept booleans, 0 and 1, None (as False), and the usual words of environment variables."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif value is None or value in (False, True):
        return bool(value)
    raise ValueError("a boolean: True or False")


def _integer(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return int(value)
    elif not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    raise ValueError("an integer or None")


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            return float(value)
    raise ValueError("a number or None")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError("a string or None")


def _choice(*words: str, optional: bool = False) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if value is None and optional:
            return None
        # JAX has enumerations for some of these, whose `value` is the word.
        word = getattr(value, "value", value)
        if isinstance(word, str) and word in words:
            return str(word)
        raise ValueError(f"one of {', '.join(map(repr, words))}" + " or None" * optional)

    return check


def _device(value: Any) -> Any:
    """Accept a platform's name, a device, or None for the engine's own choice."""
    if value is None or hasattr(value, "platform"):
        return value
    if isinstance(value, str) and value in ("cpu", "gpu", "cuda", "rocm", "tpu"):
        return value
    raise ValueError("a device such as jax.devices('cpu')[0], a platform such as 'cpu', or None")


def _anything(value: Any) -> Any:
    return value


class Option:
    """One setting: the check of its values, its effect, and whether programs depend on it."""

    __slots__ = ("check", "default", "doc", "name", "traced")

    def __init__(
        self,
        name: str,
        default: Any,
        check: Callable[[Any], Any],
        doc: str,
        traced: bool = False,
    ):
        self.name, self.default, self.check = name, default, check
        self.doc, self.traced = doc, traced


_TRANSFER = _choice("allow", "log", "disallow", "log_explicit", "disallow_explicit", optional=True)
_PRECISION = _choice(
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
    optional=True,
)
_MODE = _choice("allow", "warn", "error")

# The list of everything a user can set. Options with `traced` change the program that a function is
# traced to, so they are part of the key of every cache of traced programs.
OPTIONS = (
    Option(
        "engine",
        "native",
        _choice("native", "interpreter", "xla"),
        "What runs compiled programs: machine code, NumPy operation by operation, or XLA.",
        True,
    ),
    Option("enable_x64", False, _boolean, "Keep 64-bit types; else they become 32-bit.", True),
    Option(
        "explicit_x64_dtypes",
        "warn",
        _MODE,
        "What an explicit request for a 64-bit type does while enable_x64 is off.",
        True,
    ),
    Option(
        "numpy_dtype_promotion",
        "standard",
        _choice("standard", "strict"),
        "Whether operands of different types are promoted or refused.",
        True,
    ),
    Option(
        "numpy_rank_promotion",
        "allow",
        _choice("allow", "warn", "raise"),
        "What broadcasting operands of different rank does.",
        True,
    ),
    Option(
        "default_matmul_precision",
        None,
        _PRECISION,
        "Precision of matrix products and convolutions that specify none.",
        True,
    ),
    Option("default_device", None, _device, "Device of values without a placement.", True),
    Option(
        "default_prng_impl",
        "threefry2x32",
        _choice("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
        "Random generator of keys that specify none.",
        True,
    ),
    Option("enable_custom_prng", False, _boolean, "PRNGKey makes typed keys.", True),
    Option(
        "threefry_partitionable",
        True,
        _boolean,
        "Threefry draws each element's bits from its own position.",
        True,
    ),
    Option("legacy_prng_key", "allow", _MODE, "What passing an untyped uint32 key does."),
    Option("random_seed_offset", 0, _integer, "Added to every seed of a random key.", True),
    Option("debug_key_reuse", False, _boolean, "Raise when a random key is used twice.", True),
    Option("debug_nans", False, _boolean, "Raise where an operation first gives NaN.", True),
    Option("debug_infs", False, _boolean, "Raise where an operation first gives infinity.", True),
    Option(
        "strict",
        False,
        _boolean,
        "Raise where an index is out of bounds, or an integer is divided by zero or overflows.",
        True,
    ),
    Option("disable_jit", False, _boolean, "Run functions under jit as plain Python.", True),
    Option("softmax_custom_jvp", False, _boolean, "softmax has its own derivative rule.", True),
    Option(
        "high_dynamic_range_gumbel",
        False,
        _boolean,
        "random.gumbel draws from its far tail too, at twice the random bits.",
        True,
    ),
    Option("check_tracer_leaks", False, _boolean, "Raise when a traced value outlives its trace."),
    Option(
        "check_static_indices",
        True,
        _boolean,
        "Raise where a Python integer indexes out of bounds; otherwise it is clamped or dropped.",
        True,
    ),
    Option(
        "trace_new_arrays",
        False,
        _boolean,
        "Arrays that `array` and `asarray` make in a traced function are traced, as in JAX.",
        True,
    ),
    Option(
        "flush_subnormals",
        False,
        _boolean,
        "Native programs take subnormal numbers for zero, as XLA does on a CPU.",
        True,
    ),
    Option(
        "eager_shortcuts",
        True,
        _boolean,
        "Let eager operations call NumPy directly; if off, each is bound as under a transform.",
    ),
    Option(
        "memo",
        True,
        _boolean,
        "Replay programs that transformations have traced before; results do not depend on it.",
    ),
    Option("perf_map", False, _boolean, "Name native kernels by the user's lines for `perf`."),
    Option("verify", False, _boolean, "Check a program after each pass of the native compiler."),
    Option(
        "disable_bwd_checks",
        False,
        _boolean,
        "Accept cotangents of other shapes than the arguments' from rules of custom_vjp.",
        True,
    ),
    Option("no_tracing", False, _boolean, "Raise when jit would have to trace."),
    Option("no_execution", False, _boolean, "Raise when a compiled function would run.", True),
    Option("log_compiles", False, _boolean, "Log each program that jit traces and compiles."),
    Option("explain_cache_misses", False, _boolean, "Log why jit traced a function again."),
    Option(
        "traceback_filtering",
        "auto",
        _choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
        "How namoo's own frames are hidden in tracebacks; 'off' shows them.",
    ),
    Option(
        "tracer_error_num_traceback_frames",
        5,
        _integer,
        "How many frames of the user's program an error about a traced value shows.",
    ),
    Option("pprint_use_color", True, _boolean, "Print programs in colour on a terminal."),
    Option("platforms", None, _text, "Engines to use, in order of preference, with commas."),
    Option("platform_name", "", _text, "The older way to say `platforms`, for one platform."),
    Option("num_cpu_devices", -1, _integer, "Number of devices a CPU presents; -1: unset."),
    Option("compilation_cache_dir", None, _text, "Directory of compiled programs."),
    Option("enable_compilation_cache", True, _boolean, "Keep compiled programs on disk."),
)

# JAX's other settings. Their types are checked, and they can be read back, so that a script that
# sets them still runs. They control XLA's compiler, accelerators or JAX's own internals, and have
# no effect here. The type is that of the default; None means a string.
ACCEPTED: dict[str, Any] = {
    "allow_f16_reductions": True,
    "array_garbage_collection_guard": None,
    "auto_pcast": True,
    "backend_target": "",
    "bcoo_cusparse_lowering": False,
    "captured_constants_report_frames": 0,
    "captured_constants_warn_bytes": 2000000000,
    "check_proxy_envs": True,
    "compilation_cache_check_contents": False,
    "compilation_cache_expect_pgle": False,
    "compilation_cache_include_metadata_in_key": False,
    "compilation_cache_max_size": -1,
    "compiler_detailed_logging_min_ops": 10,
    "compiler_enable_remat_pass": True,
    "cpu_collectives_implementation": "gloo",
    "cpu_enable_async_dispatch": True,
    "cpu_get_global_topology_timeout_minutes": 5,
    "cpu_get_local_topology_timeout_minutes": 2,
    "cross_host_transfer_socket_address": "",
    "cross_host_transport_addresses": "",
    "cuda_visible_devices": "all",
    "custom_vjp3": False,
    "debug_leaked_clients_on_clear_backends": False,
    "debug_log_modules": "",
    "disable_most_optimizations": False,
    "disable_vmap_shmap_error": False,
    "disallow_mesh_context_manager": False,
    "distributed_debug": False,
    "dump_ir_modes": "stablehlo",
    "dump_ir_to": "",
    "embedded_constants_max_bytes": 32,
    "enable_checks": False,
    "enable_pgle": False,
    "enable_preemption_service": True,
    "enable_recoverability": False,
    "error_checking_behavior_divide": "ignore",
    "error_checking_behavior_nan": "ignore",
    "error_checking_behavior_oob": "ignore",
    "exec_time_optimization_effort": 0.0,
    "experimental_unsafe_xla_runtime_errors": False,
    "export_calling_convention_version": 10,
    "export_ignore_forward_compatibility": False,
    "force_dcn_cross_host_transfers": False,
    "hlo_source_file_canonicalization_regex": None,
    "include_debug_info_in_dumps": True,
    "include_full_tracebacks_in_locations": True,
    "log_checkpoint_residuals": False,
    "logging_level": "NOTSET",
    "memory_fitting_effort": 0.0,
    "memory_fitting_level": "O2",
    "mock_gpu_topology": "",
    "mosaic_allow_hlo": False,
    "mutable_array_checks": True,
    "oneapi_visible_devices": "all",
    "optimization_level": "UNKNOWN",
    "pallas_enable_debug_checks": False,
    "pallas_poison_buffers": False,
    "pallas_use_mosaic_gpu": True,
    "pallas_verbose_errors": False,
    "persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "persistent_cache_min_compile_time_secs": 1.0,
    "persistent_cache_min_entry_size_bytes": 0,
    "pgle_aggregation_percentile": 90,
    "pgle_profiling_runs": 3,
    "ragged_dot_use_gpu_pallas_triton_lowering": False,
    "ragged_dot_use_ragged_dot_instruction": True,
    "raise_persistent_cache_errors": False,
    "refs_to_pins": False,
    "remat3": False,
    "remove_custom_partitioning_ptr_from_cache_key": False,
    "remove_size_one_mesh_axis_from_type": False,
    "rocm_visible_devices": "all",
    "scan3": False,
    "send_traceback_to_runtime": "off",
    "serialization_version": 0,
    "share_binary_between_hosts": False,
    "share_binary_between_hosts_timeout_ms": 1200000,
    "sort_devices_by_process_index": True,
    "source_url_schema": None,
    "thread_guard": False,
    "threefry_gpu_kernel_lowering": False,
    "traceback_in_locations_limit": 100,
    "use_direct_linearize": True,
    "use_emit_pipeline_primitive": False,
    "use_magma": "auto",
    "use_shardy_partitioner": True,
    "use_simplified_jaxpr_constants": False,
    "xla_backend": "",
    "xla_profile_version": 0,
}
_CHECK_BY_TYPE = {bool: _boolean, int: _integer, float: _number, str: _text, type(None): _text}
_NO_EFFECT = "Accepted so that scripts which set it run; has no effect."
_ALL = (
    *OPTIONS,
    *(
        Option(name, value, _CHECK_BY_TYPE[type(value)], _NO_EFFECT)
        for name, value in ACCEPTED.items()
    ),
    *(
        Option(f"transfer_guard{way}", None, _TRANSFER, _NO_EFFECT)
        for way in ("", "_host_to_device", "_device_to_device", "_device_to_host")
    ),
    *(
        Option(name, None, _anything, _NO_EFFECT)
        for name in (
            "pjrt_client_create_options",
            "cross_host_transfer_timeout_seconds",
            "cross_host_transfer_transfer_size",
        )
    ),
)
_BY_NAME = {option.name: option for option in _ALL}
# JAX spells these without its prefix.
_BARE = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "mock_num_gpu_processes": 0,
}
for _name, _value in _BARE.items():
    _BY_NAME[_name] = Option(_name, _value, _CHECK_BY_TYPE[type(_value)], _NO_EFFECT)

# In addition to the options: the meshes that `sharding.set_mesh` and `use_abstract_mesh` make
# current, what `analysis.sharding_rules` does, and the values of `make_user_context`.
TRACED = (
    *(option.name for option in OPTIONS if option.traced),
    "mesh",
    "abstract_mesh",
    "sharding_rules",
    "user_contexts",
)
_read_traced = operator.attrgetter(*TRACED)

# Settings that check every eager operation.
CHECKS = ("debug_nans", "debug_infs", "strict")
# Settings that decide which trace evaluates eager operations.
_BOTTOM = (*CHECKS, "eager_shortcuts")
_notified: list[Callable[[], None]] = []


def on_checks(notify: Callable[[], None]) -> None:
    """Call a function now, and whenever the bottom trace of this thread may have changed."""
    _notified.append(notify)
    notify()


def _changed(name: str) -> None:
    if name in _BOTTOM:
        for notify in _notified:
            notify()


_lock = allocate_lock()
# Counts changes that all threads see, so that a thread notices that its cached trace key is stale.
_generation = 0
# Kept: other caches have these numbers in their keys.
_trace_ids: dict[tuple[Any, ...], int] = register(
    "base.config trace ids",
    {},
    bound="combinations of settings that were used",
    keyed_by="settings that tracing depends on",
    kept=True,
)
_STALE: tuple[int, tuple[Any, ...], int] = (-1, (), -1)


def _jax_name(name: str) -> str:
    return name if name in _BARE else f"jax_{name}"


def _find(name: str) -> Option:
    """Return the option of a name with or without the prefix `jax_`."""
    option = _BY_NAME.get(name) or _BY_NAME.get(name.removeprefix("jax_"))
    if option is not None:
        return option
    import difflib  # only an error needs it, and it costs a millisecond

    known = [_jax_name(each) for each in _BY_NAME]
    near = difflib.get_close_matches(name, known, 3, 0.6) or difflib.get_close_matches(
        f"jax_{name}", known, 3, 0.6
    )
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise AttributeError(f"there is no config option {name!r}{hint}", name=name)


def _checked(option: Option, value: Any, source: str = "") -> Any:
    try:
        return option.check(value)
    except ValueError as error:
        raise ValueError(
            f"config option {_jax_name(option.name)!r}{source} takes {error}; got {value!r} "
            f"of type {type(value).__name__}"
        ) from None


def _from_environment() -> dict[str, Any]:
    """Return the defaults, overridden by the environment; namoo's prefix wins over JAX's."""
    found: dict[str, Any] = {}
    for prefix in ("JAX_", "NAMOO_"):
        for variable, text in os.environ.items():
            option = _BY_NAME.get(variable.removeprefix(prefix).lower())
            if option is not None and variable.startswith(prefix):
                found[option.name] = _checked(option, text, f" (environment: {variable})")
    return found


def set_for_all(name: str, value: Any) -> None:
    """Set an attribute of `config` for the whole process."""
    global _generation
    with _lock:
        setattr(Config, name, value)
        _generation += 1


class Config(_local):
    """The settings, as the current thread sees them.

    `config.enable_x64` and `config.jax_enable_x64` both read a setting; `update` changes one for
    the whole process; the context managers of this module change one temporarily, for one thread.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    _trace = _STALE
    mesh: Any = None

    def __reduce__(self) -> str:
        return "config"

    abstract_mesh: Any = None
    sharding_rules: str = "strict"
    user_contexts: tuple[Any, ...] = ()

    # `threading.local` would treat an assignment as a value of this thread, which is never meant.
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"config.{name} cannot be assigned; "
            f"write config.update({_jax_name(_find(name).name)!r}, {value!r})"
        )

    def update(self, name: str, value: Any) -> None:
        """Set an option for all threads, except where a context manager overrides it.

        Args:
            name: the option, with or without the prefix `jax_`.
            value: its new value.

        Raises:
            AttributeError: no option has this name.
            ValueError: the option does not take this value.

        Example:
            >>> config.update("jax_debug_nans", True)
            >>> config.debug_nans
            True
            >>> config.update("jax_debug_nans", False)
        """
        try:
            option = _find(name)
        except AttributeError as error:
            error.__traceback__ = None
            raise
        set_for_all(option.name, _checked(option, value))
        _changed(option.name)

    def read(self, name: str) -> Any:
        """Return the current value of an option, by its name with or without the prefix `jax_`.

        Example:
            >>> config.read("jax_numpy_rank_promotion")
            'allow'
        """
        return getattr(self, _find(name).name)

    @property
    def values(self) -> dict[str, Any]:
        """All options, by JAX's names, with their current values."""
        return {_jax_name(name): getattr(self, name) for name in _BY_NAME}

    @property
    def x64_enabled(self) -> bool:
        """The same as `enable_x64`."""
        return self.enable_x64

    def trace_key(self) -> tuple[Any, ...]:
        """The values of all options that a traced program depends on, in the order of `TRACED`."""
        generation, key, _ = self._trace
        return key if generation == _generation else self._refreshed()[1]

    def trace_id(self) -> int:
        """A number that is equal if `trace_key` is: cheaper to hash, for the call path."""
        generation, _, identity = self._trace
        return identity if generation == _generation else self._refreshed()[2]

    def _refreshed(self) -> tuple[int, tuple[Any, ...], int]:
        with _lock:
            key = _read_traced(self)
            # 1 and True are equal, but no check lets both through for one option.
            entry = (_generation, key, _trace_ids.setdefault(key, len(_trace_ids)))
        self.__dict__["_trace"] = entry
        return entry

    def parse_flags_with_absl(self) -> None:
        """Read options from the command line: `--jax_enable_x64`, `--jax_platforms=cpu`.

        If the program uses absl, they are also declared as flags, so that `absl.app.run` knows
        them.
        """
        for argument in sys.argv[1:]:
            flag, _, text = argument.partition("=")
            name = flag.lstrip("-")
            if not flag.startswith("-") or name.removeprefix("no") not in _FLAGS:
                continue
            if name in _FLAGS:
                self.update(name, text if "=" in argument else True)
            else:
                self.update(name.removeprefix("no"), False)
        if "absl.flags" in sys.modules:
            self.config_with_absl()

    def config_with_absl(self) -> None:
        """Declare every option as a flag of absl; they take effect when absl has parsed them."""
        flags = importlib.import_module("absl.flags")
        app = importlib.import_module("absl.app")
        declare = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}
        for name, option in _FLAGS.items():
            if name not in flags.FLAGS:
                define = declare.get(type(option.default), flags.DEFINE_string)
                define(name, getattr(self, option.name), option.doc)
        app.call_after_init(self.complete_absl_config)

    def complete_absl_config(self) -> None:
        """Copy the flags that absl found on the command line."""
        flags = importlib.import_module("absl.flags").FLAGS
        for name in _FLAGS:
            if flags[name].present:
                self.update(name, flags[name].value)


_FLAGS = {_jax_name(name): option for name, option in _BY_NAME.items()}


def _install() -> None:
    environment = _from_environment()
    for name, option in _BY_NAME.items():
        setattr(Config, name, environment.get(name, option.default))
        if name not in _BARE:
            setattr(Config, f"jax_{name}", property(operator.attrgetter(name), doc=option.doc))


_install()
config = Config()
_ABSENT = object()


class Scope(contextlib.ContextDecorator):
    """Overrides one option for the current thread while it is entered; also a decorator."""

    __slots__ = ("_name", "_value", "_saved")

    def __init__(self, name: str, value: Any):
        self._name = name
        self._value = value
        self._saved: list[Any] = []

    def _recreate_cm(self) -> Scope:
        # Each call of a decorated function has its own scope, so calls in several threads do not
        # restore each other's values.
        return Scope(self._name, self._value)

    def __enter__(self) -> None:
        own = config.__dict__
        self._saved.append(own.get(self._name, _ABSENT))
        own[self._name] = self._value
        own["_trace"] = _STALE
        _changed(self._name)

    def __exit__(self, *_: object) -> None:
        own = config.__dict__
        saved = self._saved.pop()
        if saved is _ABSENT:
            del own[self._name]
        else:
            own[self._name] = saved
        own["_trace"] = _STALE
        _changed(self._name)


class Setting:
    """The context manager of one option: `with enable_x64(True): ...`.

    Other threads do not see the change.  Scopes nest, and a scope also decorates a function.
    """

    def __init__(self, name: str):
        self._option = _BY_NAME[name]
        self.__doc__ = f"Context manager for the option {_jax_name(name)!r}.\n\n{self._option.doc}"

    def __call__(self, new_val: Any = _ABSENT) -> Scope:
        if new_val is _ABSENT:
            if self._option.check is not _boolean:
                raise TypeError(f"{self._option.name}() needs a value for the option")
            new_val = True
        return Scope(self._option.name, _checked(self._option, new_val))

    @property
    def name(self) -> str:
        return _jax_name(self._option.name)

    @property
    def value(self) -> Any:
        """The current value, for this thread."""
        return getattr(config, self._option.name)

    def __bool__(self) -> bool:
        # `if enable_x64:` would always be true, where the value is meant.
        raise TypeError(
            f"{self._option.name} is a context manager; "
            f"read the option as config.{self.name} or {self._option.name}.value"
        )

    def __repr__(self) -> str:
        return f"<setting {self.name}: {self.value!r}>"


allow_f16_reductions = Setting("allow_f16_reductions")
array_garbage_collection_guard = Setting("array_garbage_collection_guard")
auto_pcast = Setting("auto_pcast")
check_tracer_leaks = Setting("check_tracer_leaks")
debug_infs = Setting("debug_infs")
debug_key_reuse = Setting("debug_key_reuse")
debug_nans = Setting("debug_nans")
default_device = Setting("default_device")
default_matmul_precision = Setting("default_matmul_precision")
default_prng_impl = Setting("default_prng_impl")
eager_shortcuts = Setting("eager_shortcuts")
enable_checks = Setting("enable_checks")
enable_custom_prng = Setting("enable_custom_prng")
enable_x64 = Setting("enable_x64")
explain_cache_misses = Setting("explain_cache_misses")
explicit_x64_dtypes = Setting("explicit_x64_dtypes")
jax2tf_associative_scan_reductions = Setting("jax2tf_associative_scan_reductions")
legacy_prng_key = Setting("legacy_prng_key")
log_compiles = Setting("log_compiles")
no_execution = Setting("no_execution")
no_tracing = Setting("no_tracing")
numpy_dtype_promotion = Setting("numpy_dtype_promotion")
numpy_rank_promotion = Setting("numpy_rank_promotion")
remove_size_one_mesh_axis_from_type = Setting("remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = Setting("softmax_custom_jvp")
strict = Setting("strict")
thread_guard = Setting("thread_guard")
threefry_partitionable = Setting("threefry_partitionable")
traceback_filtering = Setting("traceback_filtering")
transfer_guard_device_to_device = Setting("transfer_guard_device_to_device")
transfer_guard_device_to_host = Setting("transfer_guard_device_to_host")
transfer_guard_host_to_device = Setting("transfer_guard_host_to_device")


def disable_jit(disable: bool = True) -> Scope:
    """Context manager under which functions wrapped in `jit` run as plain Python.

    Args:
        disable: False switches compilation on again inside an outer `disable_jit`.

    Example:
        >>> with disable_jit():
        ...     config.jax_disable_jit
        True
    """
    return Scope("disable_jit", _checked(_BY_NAME["disable_jit"], disable))


def checking_leaks() -> Scope:
    """Context manager that raises when a traced value outlives its trace.

    Example:
        >>> with checking_leaks():
        ...     config.jax_check_tracer_leaks
        True
    """
    return check_tracer_leaks(True)


@contextlib.contextmanager
def transfer_guard(new_val: str | None) -> Iterator[None]:
    """Context manager that sets the guard of transfers in all directions.

    Args:
        new_val: 'allow', 'log', 'disallow', 'log_explicit', 'disallow_explicit' or None.

    Example:
        >>> with transfer_guard("log"):
        ...     config.jax_transfer_guard_host_to_device
        'log'
    """
    value = _checked(_BY_NAME["transfer_guard"], new_val)
    with contextlib.ExitStack() as scopes:
        for way in ("", "_host_to_device", "_device_to_device", "_device_to_host"):
            scopes.enter_context(Scope(f"transfer_guard{way}", value))
        yield
