"""The modules `(J, jnp, lax)` of JAX and of namoo, for programs that run with both."""

from __future__ import annotations

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import namoo
import namoo.lax
import namoo.numpy

JAX = (jax, jax.numpy, jax.lax)
NAMOO = (namoo, namoo.numpy, namoo.lax)


def both_in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with jax.enable_x64(True), namoo.enable_x64(True):
            return test(*args, **kwargs)

    return run


def assert_agree(found, wanted, rtol=1e-9, atol=1e-9):
    """Check that trees, shapes, dtypes, weak types and values agree."""
    found_leaves, found_tree = namoo.tree.flatten(found)
    wanted_leaves, wanted_tree = jax.tree.flatten(wanted)
    assert str(found_tree) == str(wanted_tree)
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(wanted)]
    for path, x, y in zip(paths, found_leaves, wanted_leaves, strict=True):
        if not hasattr(x, "shape"):
            assert isinstance(y, type(x)) and x == y, path
            continue
        if not hasattr(y, "shape"):  # where JAX passes a number through, namoo may return an array
            y = jax.numpy.asarray(y)
        y_weak = getattr(y, "weak_type", False)
        assert (x.shape, str(x.dtype)) == (y.shape, str(y.dtype)), path
        assert getattr(x, "weak_type", False) == y_weak, f"weak type of {path}: JAX has {y_weak}"
        if y.dtype == jax.dtypes.float0:
            continue
        np.testing.assert_allclose(
            np.asarray(x), np.asarray(y), rtol=rtol, atol=atol, err_msg=path or "the result"
        )


@pytest.fixture(scope="module", autouse=True)
def jax_compiles_quickly():
    """Disable most of JAX's optimisations: they take most of the time and change no result."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
