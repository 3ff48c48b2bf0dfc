"""Settings of all tests: one platform for the oracle, and a summary of the package's size."""

import os
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

import namoo

# Before any test imports jax: the oracle runs on the CPU. It runs most programs once, so XLA should
# compile them quickly rather than well; these flags more than halve the time.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
SOON = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
)
if SOON not in (flags := os.environ.get("XLA_FLAGS", "")):
    os.environ["XLA_FLAGS"] = f"{flags} {SOON}".lstrip()

PACKAGE = Path(__file__).parents[1] / "src" / "namoo"

# The same examples on every run and machine; a slow machine is not a failure.
hypothesis.settings.register_profile("namoo", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("namoo")


# These files test how programs run, on the default engine. The other files test what functions
# compute, in thousands of small programs, which the interpreter compiles faster.
ON_THE_DEFAULT_ENGINE = {
    "test_bench",
    "test_compositions",
    "test_control",
    "test_examples",
    "test_grad",
    "test_guide",
    "test_inspect",
    "test_jit",
    "test_layers",
    "test_lessons",
    "test_random_control_programs",
    "test_random_programs",
    "test_runtime_calls",
    "test_strict",
    "test_summary_of_layers",
    "test_vmap",
}


@pytest.fixture(autouse=True)
def _engine_of_the_file(request):
    """Select the engine that suits the file, or that of NAMOO_TEST_ENGINE."""
    name, before = request.path.stem, namoo.config.engine
    default = before if name in ON_THE_DEFAULT_ENGINE or name.startswith("test_native") else None
    chosen = os.environ.get("NAMOO_TEST_ENGINE") or default or "interpreter"
    namoo.config.update("engine", chosen)
    yield
    namoo.config.update("engine", before)


@pytest.fixture(autouse=True, scope="module")
def _empty_caches():
    """Forget what earlier files left behind, so that a file does not depend on their order."""
    namoo.clear_caches()


@pytest.fixture
def eight_devices():
    """Let the CPU present itself as eight devices."""
    namoo.cpu_devices(8)
    yield
    namoo.cpu_devices(1)


def pytest_collection_modifyitems(items):
    """Leave out examples of functions that a namespace shows: they run where they are defined."""
    items[:] = [x for x in items if not (isinstance(x, pytest.DoctestItem) and is_shown_again(x))]


def is_shown_again(item) -> bool:
    """Whether the example belongs to a function that was defined in another module."""
    module = item.dtest.globs["__name__"]
    name = item.name.removeprefix(f"{module}.").partition(".")[0]
    wrapped = getattr(item.dtest.globs.get(name), "__wrapped__", None)
    return getattr(wrapped, "__module__", module) != module


def lines_by_room() -> Counter[str]:
    """Count the lines of each room: a folder or a module directly inside the package."""
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        lines[room] += len(path.read_text(encoding="utf-8").splitlines())
    return lines


def pytest_terminal_summary(terminalreporter, config):
    if hasattr(config, "workerinput"):
        return
    lines = lines_by_room()
    terminalreporter.write_sep("-", "lines by room")
    for room, count in lines.most_common():
        terminalreporter.write_line(f"{count:7,}  {room}")
    terminalreporter.write_line(f"{lines.total():7,}  in all")
