"""Settings: their names and values, scopes and threads, environment and command line."""

import itertools
import os
import subprocess
import sys
import threading

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
from namoo._base import config as settings
from namoo._base.config import OPTIONS, TRACED, config

SCOPED = {name: each for name, each in vars(settings).items() if isinstance(each, settings.Setting)}
OTHER = {  # for each scoped option, a value that is not its default
    "array_garbage_collection_guard": "log",
    "default_device": "cpu",
    "default_matmul_precision": "highest",
    "default_prng_impl": "rbg",
    "explicit_x64_dtypes": "error",
    "legacy_prng_key": "warn",
    "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "raise",
    "traceback_filtering": "off",
    "transfer_guard_device_to_device": "log",
    "transfer_guard_device_to_host": "disallow",
    "transfer_guard_host_to_device": "allow",
}


def other_value(name):
    return OTHER[name] if name in OTHER else not getattr(config, name)


@pytest.fixture
def restored():
    """Put back every option that a test updates."""
    before = config.values
    yield
    for name, value in before.items():
        config.update(name, value)


SHOW_ALL = "\nfor name, value in config.values.items(): print(name, repr(value), sep='\\t')"


def test_options_and_defaults_are_those_of_jax():
    ours, theirs = (
        dict(line.split("\t") for line in run(source + SHOW_ALL).splitlines())
        for source in ("from namoo._base.config import config", "from jax import config")
    )
    own = {"jax_eager_shortcuts", "jax_engine", "jax_memo", "jax_perf_map", "jax_strict"}
    own |= {"jax_flush_subnormals", "jax_trace_new_arrays", "jax_verify"}
    assert ours.keys() - own == theirs.keys()
    # The one default that differs: see docs/differences.md.
    assert ours.pop("jax_check_static_indices") == "True"
    assert theirs.pop("jax_check_static_indices") == "False"
    for name, value in theirs.items():
        if value.startswith("<"):  # an enumeration of JAX's, whose word is the value here
            assert ours[name].strip("'") in value.lower(), name
        else:
            assert ours[name] == value, name


def test_scopes_are_those_of_jax():
    theirs = {n for n in dir(jax) if type(getattr(jax, n)).__name__ == "State"}
    ours = SCOPED.keys() - {
        "eager_shortcuts",
        "explicit_x64_dtypes",
        "strict",
        "traceback_filtering",
    }
    assert ours == theirs
    for name in ("disable_jit", "checking_leaks", "transfer_guard"):
        assert callable(getattr(settings, name)) and callable(getattr(jax, name))


def run(code: str, *args: str, **environment: str) -> str:
    """What a fresh interpreter prints, with none of this process's settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "NAMOO_"))}
    command = [sys.executable, "-W", "error", "-c", code, *args]
    done = subprocess.run(command, capture_output=True, text=True, env=clean | environment)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


@pytest.mark.parametrize("name", [option.name for option in OPTIONS])
def test_every_way_to_read_an_option(name):
    value = getattr(config, name)
    assert getattr(config, f"jax_{name}") == value
    assert config.read(name) == config.read(f"jax_{name}") == config.values[f"jax_{name}"] == value


@pytest.mark.parametrize("prefix", ["", "jax_"])
def test_update(prefix, restored):
    config.update(f"{prefix}enable_x64", True)
    assert config.enable_x64 is True
    assert config.jax_enable_x64 is True
    assert config.x64_enabled is True
    assert config.values["jax_enable_x64"] is True
    config.update(f"{prefix}enable_x64", False)
    assert config.jax_enable_x64 is False


def test_options_without_effect_are_stored(restored):
    config.update("jax_cpu_enable_async_dispatch", False)
    assert config.jax_cpu_enable_async_dispatch is False
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    assert config.read("jax_persistent_cache_min_compile_time_secs") == 0
    config.update("jax2tf_default_native_serialization", False)
    assert config.values["jax2tf_default_native_serialization"] is False


@pytest.mark.parametrize(
    "name, suggestion",
    [
        ("jax_enable_x46", "jax_enable_x64"),
        ("enable_x46", "jax_enable_x64"),
        ("jax_debug_nan", "jax_debug_nans"),
        ("rank_promotion", "jax_numpy_rank_promotion"),
        ("zzz", None),
    ],
)
def test_unknown_names(name, suggestion):
    for use in (lambda: config.update(name, True), lambda: config.read(name)):
        with pytest.raises(AttributeError, match=repr(name)) as caught:
            use()
        assert ("did you mean" in str(caught.value)) == (suggestion is not None)
        assert (suggestion or "") in str(caught.value)
    with pytest.raises(AttributeError, match=name):
        getattr(config, name)


def test_options_are_not_assigned():
    for name in ("jax_enable_x64", "enable_x64"):
        with pytest.raises(AttributeError, match=r"config\.update\('jax_enable_x64', True\)"):
            setattr(config, name, True)
    assert config.enable_x64 is False


BAD = [
    ("jax_enable_x64", "maybe"),
    ("jax_enable_x64", 2),
    ("jax_enable_x64", [1]),
    ("jax_numpy_dtype_promotion", "loose"),
    ("jax_numpy_dtype_promotion", None),
    ("jax_numpy_rank_promotion", "foo"),
    ("jax_numpy_rank_promotion", 1),
    ("jax_default_matmul_precision", "foo"),
    ("jax_default_prng_impl", "mersenne"),
    ("jax_default_device", "abacus"),
    ("jax_default_device", 3),
    ("jax_legacy_prng_key", "err"),
    ("jax_transfer_guard", "foo"),
    ("jax_random_seed_offset", 1.5),
    ("jax_random_seed_offset", True),
    ("jax_platforms", 3),
    ("jax_exec_time_optimization_effort", "fast"),
    ("jax_compilation_cache_dir", 3),
]


@pytest.mark.parametrize("name, value", BAD)
def test_bad_values(name, value):
    before = config.read(name)
    with pytest.raises(ValueError) as caught:
        config.update(name, value)
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert config.read(name) == before


@pytest.mark.parametrize(
    "value, expected",
    [(True, True), (False, False), (1, True), (0, False), (None, False), ("True", True),
     ("false", False), ("on", True), ("0", False)],
)  # fmt: skip
def test_booleans(value, expected, restored):
    config.update("jax_debug_nans", value)
    assert config.jax_debug_nans is expected


def test_enumerations_of_jax_are_taken(restored):
    config.update("jax_numpy_dtype_promotion", jax.config.values["jax_numpy_dtype_promotion"])
    config.update("jax_legacy_prng_key", jax.config.values["jax_legacy_prng_key"])
    assert (config.numpy_dtype_promotion, config.legacy_prng_key) == ("standard", "allow")
    device = jax.devices("cpu")[0]
    config.update("jax_default_device", device)
    assert config.jax_default_device is device


@pytest.mark.parametrize("name", SCOPED)
def test_scope(name):
    before, value = getattr(config, name), other_value(name)
    scope = SCOPED[name]
    assert scope.value == before != value
    with scope(value):
        assert getattr(config, name) == scope.value == value
        with scope(before):
            assert getattr(config, name) == before
        assert getattr(config, name) == value
    assert getattr(config, name) == before
    with pytest.raises(KeyError), scope(value):
        raise KeyError
    assert getattr(config, name) == before


def test_scopes_without_a_value():
    with settings.enable_x64():
        assert config.jax_enable_x64
    with pytest.raises(TypeError, match="needs a value"):
        settings.numpy_rank_promotion()
    with pytest.raises(ValueError, match="'allow', 'warn', 'raise'"):
        settings.numpy_rank_promotion("foo")
    with pytest.raises(TypeError, match="context manager"):
        bool(settings.enable_x64)


def test_named_scopes():
    with settings.disable_jit():
        assert config.jax_disable_jit
        with settings.disable_jit(False):
            assert not config.jax_disable_jit
    with settings.checking_leaks():
        assert config.jax_check_tracer_leaks
    with settings.transfer_guard("log"):
        assert {config.read(n) for n in config.values if "transfer_guard" in n} == {"log"}
    assert not config.disable_jit and not config.check_tracer_leaks
    assert config.transfer_guard is None


def test_a_scope_is_used_again_and_decorates():
    scope = settings.enable_x64(True)
    with scope:
        with settings.enable_x64(False), scope:
            assert config.enable_x64
        assert config.enable_x64
    assert not config.enable_x64

    @settings.debug_nans(True)
    def countdown(n):
        assert config.debug_nans
        return [] if n == 0 else [config.debug_nans, *countdown(n - 1)]

    assert countdown(3) == [True] * 3
    assert not config.debug_nans


def test_update_inside_a_scope_shows_after_it(restored):
    with settings.enable_x64(False):
        config.update("jax_enable_x64", True)
        assert not config.enable_x64
    assert config.enable_x64


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_threads_see_updates_but_not_scopes(restored):
    with settings.enable_x64(True):
        assert in_thread(lambda: config.enable_x64) is False
        assert in_thread(config.trace_key) != config.trace_key()
    config.update("jax_enable_x64", True)
    assert in_thread(lambda: config.enable_x64) is True
    assert in_thread(config.trace_key) == config.trace_key()

    def scoped():
        with settings.numpy_rank_promotion("raise"):
            return config.numpy_rank_promotion

    assert in_thread(scoped) == "raise"
    assert config.numpy_rank_promotion == "allow"


def test_a_scope_in_one_thread_stays_while_another_updates(restored):
    entered, updated = threading.Event(), threading.Event()
    seen = {}

    def scoped():
        with settings.numpy_rank_promotion("raise"):
            seen["before"] = config.trace_key()
            entered.set()
            assert updated.wait(60)
            seen["rank"], seen["x64"] = config.numpy_rank_promotion, config.enable_x64
            seen["after"] = config.trace_key()

    thread = threading.Thread(target=scoped)
    thread.start()
    assert entered.wait(60)
    config.update("jax_enable_x64", True)
    updated.set()
    thread.join()
    assert (seen["rank"], seen["x64"]) == ("raise", True)
    assert seen["before"][TRACED.index("enable_x64")] is False
    assert seen["after"][TRACED.index("enable_x64")] is True


def test_a_decorated_function_in_many_threads():
    barrier = threading.Barrier(4)

    @settings.enable_x64(True)
    def work():
        barrier.wait(60)
        inside = config.enable_x64
        barrier.wait(60)
        return inside

    results = []
    threads = [
        threading.Thread(target=lambda: results.append((work(), config.enable_x64)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(True, False)] * 4


def test_trace_key_holds_what_tracing_depends_on(restored):
    key = config.trace_key()
    assert hash(key) == hash(config.trace_key())
    assert dict(zip(TRACED, key, strict=True)) == {name: getattr(config, name) for name in TRACED}
    for option in OPTIONS:
        if option.name not in SCOPED:
            continue
        with SCOPED[option.name](other_value(option.name)):
            assert (config.trace_key() != key) == option.traced, option.name
            assert (config.trace_id() != in_thread(config.trace_id)) == option.traced, option.name
        assert config.trace_key() == key
    config.update("jax_random_seed_offset", 3)
    assert config.trace_key() != key


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.sampled_from(["enable_x64", "debug_nans"]), st.booleans()),
        st.tuples(st.just("enter"), st.sampled_from(["enable_x64", "debug_nans"]), st.booleans()),
        st.tuples(st.just("exit"), st.none(), st.none()),
    ),
    max_size=12,
)


@given(CHANGES)
def test_reads_follow_any_sequence_of_changes(changes):
    """Against a model: a dictionary of updates under a stack of scopes."""
    updates = {"enable_x64": False, "debug_nans": False}
    scopes = []
    try:
        for action, name, value in changes:
            if action == "update":
                updates[name] = value
                config.update(name, value)
            elif action == "enter":
                scope = SCOPED[name](value)
                scope.__enter__()
                scopes.append((name, value, scope))
            elif scopes:
                scopes.pop()[2].__exit__(None, None, None)
            expected = dict(updates)
            expected.update((name, value) for name, value, _ in scopes)
            for each, model in expected.items():
                assert getattr(config, each) == config.read(f"jax_{each}") == model
                assert config.trace_key()[TRACED.index(each)] == model
            assert config._trace[1] == config.trace_key()
    finally:
        for _, _, scope in reversed(scopes):
            scope.__exit__(None, None, None)
        for each in updates:
            config.update(each, False)


def test_trace_ids_are_equal_where_keys_are():
    seen = {}
    for x64, rank in itertools.product((False, True, False), ("allow", "warn", "allow")):
        with settings.enable_x64(x64), settings.numpy_rank_promotion(rank):
            assert seen.setdefault(config.trace_key(), config.trace_id()) == config.trace_id()
    assert len(seen) == len(set(seen.values())) == 4


SHOW = (
    "from namoo._base.config import config; print(config.enable_x64, config.numpy_rank_promotion)"
)


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, "False allow"),
        ({"JAX_ENABLE_X64": "1"}, "True allow"),
        ({"NAMOO_ENABLE_X64": "true"}, "True allow"),
        ({"NAMOO_ENABLE_X64": "0", "JAX_ENABLE_X64": "1"}, "False allow"),
        ({"JAX_ENABLE_X64": "off", "NAMOO_NUMPY_RANK_PROMOTION": "raise"}, "False raise"),
        ({"JAX_NO_SUCH_OPTION": "1", "NAMOO_": "1"}, "False allow"),
    ],
    ids=str,
)
def test_environment(environment, expected):
    assert run(SHOW, **environment) == expected


def test_bad_environment_names_the_variable():
    message = run(SHOW, NAMOO_NUMPY_RANK_PROMOTION="sometimes")
    assert "ValueError" in message
    assert "NAMOO_NUMPY_RANK_PROMOTION" in message and "'sometimes'" in message


FLAGS = "from namoo._base.config import config; config.parse_flags_with_absl(); print(config.{})"


@pytest.mark.parametrize(
    "args, name, expected",
    [
        (["--jax_enable_x64"], "enable_x64", "True"),
        (["--jax_enable_x64=false"], "enable_x64", "False"),
        (["--nojax_threefry_partitionable"], "threefry_partitionable", "False"),
        (["-jax_numpy_rank_promotion=warn", "file", "--other"], "numpy_rank_promotion", "warn"),
        (["--enable_x64"], "enable_x64", "False"),
        (["jax_enable_x64"], "enable_x64", "False"),
    ],
)
def test_command_line(args, name, expected):
    assert run(FLAGS.format(name), *args) == expected


ABSL = """
import warnings
from absl import app
from namoo._base.config import config
config.config_with_absl()
def main(argv):
    print(config.enable_x64, config.numpy_rank_promotion, config.random_seed_offset, argv[1:])
app.run(main)
"""


@pytest.mark.parametrize("setup", ["config_with_absl", "parse_flags_with_absl"])
def test_absl(setup):
    code = ABSL.replace("config_with_absl", setup)
    assert run(code, "x") == "False allow 0 ['x']"
    args = ("--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "--jax_random_seed_offset=3")
    assert run(code, *args, "x") == "True warn 3 ['x']"
    assert "jax_numpy_rank_promotion" in run(code, "--jax_numpy_rank_promotion=foo")


def test_a_program_is_compiled_again_for_another_engine():
    from namoo.engines.interpreter import Program as Interpreted
    from namoo.transforms.program import ProgramPrimitive

    namoo.jit(namoo.lax.sin)(1.0)  # engines are attached when `jit` is first used
    program = namoo.make_jaxpr(namoo.lax.sin)(1.0)
    kinds = []
    for engine in ("native", "interpreter", "native"):
        namoo.config.update("engine", engine)
        kinds.append(isinstance(ProgramPrimitive.executable(program), Interpreted))
    assert kinds == [False, True, False]
