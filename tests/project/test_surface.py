"""How much of JAX's public surface must exist: `api_coverage.py` prints the whole table."""

import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import api_coverage
import namoo
import namoo.lax
import namoo.random
import namoo.tree
from namoo._base.lazy import names_of
from reference import NAMESPACES

WHOLE = [
    "ad_checkpoint",
    "custom_batching",
    "dlpack",
    "dtypes",
    "errors",
    "flatten_util",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "random",
    "scipy.linalg",
    "scipy.special",
    "stages",
    "tree",
    "tree_util",
    "typing",
]


@pytest.mark.parametrize("space", WHOLE)
def test_whole_namespaces(space):
    assert sorted(set(api_coverage.NAMES[space]) - set(api_coverage.present(space))) == []


def test_lax_lacks_only_what_is_listed():
    assert len(api_coverage.present("lax")) >= 0.95 * len(api_coverage.NAMES["lax"])


# Names that the package must have in any case.
FOUNDATION = """
Array ShapeDtypeStruct block_until_ready checkpoint checkpoint_policies clear_caches closure_convert
config custom_gradient custom_jvp custom_vjp debug device_count device_get device_put devices
disable_jit enable_x64 ensure_compile_time_eval eval_shape grad hessian jacfwd jacobian jacrev jit
jvp lax linear_transpose linearize local_device_count make_jaxpr named_call named_scope nn numpy
pmap pure_callback random remat tree tree_util value_and_grad vjp vmap
""".split()


@pytest.mark.parametrize("name", FOUNDATION)
def test_the_foundation_is_public_and_explains_itself(name):
    thing = getattr(namoo, name)
    assert inspect.getdoc(thing)


@pytest.mark.parametrize("module", [namoo, namoo.lax, namoo.random, namoo.tree])
def test_public_functions_have_docstrings(module):
    bare = [
        name
        for name in dir(module)
        if not name.startswith("_")
        and inspect.isfunction(thing := getattr(module, name))
        and not thing.__doc__
    ]
    assert bare == []


def _public_modules() -> dict[str, ModuleType]:
    """The modules of the reference, and those that `dir()` leads to from there."""
    found: dict[str, ModuleType] = {}
    left = [importlib.import_module(name) for name in NAMESPACES]
    while left:
        module = left.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            if module.__name__.startswith("namoo"):
                values = [getattr(module, name) for name in dir(module)]
                left += [value for value in values if isinstance(value, ModuleType)]
    return found


PUBLIC_MODULES = _public_modules()


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_dir_shows_public_names_only(module):
    assert module.startswith("namoo") and "._" not in module
    thing = PUBLIC_MODULES[module]
    shown = [name for name in dir(thing) if not (name.startswith("__") and name.endswith("__"))]
    declared = {*getattr(thing, "__all__", ()), *names_of(getattr(thing, "_TABLE", {}))}
    assert set(shown) == {name for name in declared if not name.startswith("__")}
    assert [name for name in shown if name.startswith("_")] == []


@pytest.mark.parametrize("space", [space for space in api_coverage.NAMES if space])
def test_dir_shows_the_names_of_jax_that_exist(space):
    if f"namoo.{space}" in PUBLIC_MODULES:
        hidden = set(api_coverage.present(space)) - set(dir(PUBLIC_MODULES[f"namoo.{space}"]))
        assert hidden == set()


def test_a_star_import_loads_all_names():
    program = (
        "from namoo.numpy import *; from namoo.scipy import *; print(special.expit(sinh(0.0)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "0.5\n", run.stderr
