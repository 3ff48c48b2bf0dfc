"""How much of JAX's public surface must exist: `api_coverage.py` prints the whole table."""

import inspect

import pytest

import api_coverage
import namoo
import namoo.lax
import namoo.random
import namoo.tree

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
