"""Arrays without elements: the same shapes, types and errors as in JAX, eagerly and compiled."""

import numpy as np
import pytest

import jax_oracle


def zeros(*shape):
    return np.zeros(shape, np.float32)


def places(*shape):
    return np.zeros(shape, np.int32)


def conv(lib, x, w):
    return lib.lax.conv(x, w, (1, 1), "SAME")


def window(lib, x):
    return lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 2), (1, 1), "VALID")


# A function of a library, and arguments for the function that it returns.
PROGRAMS = {
    "mapped index": (lambda lib: lib.vmap(lambda x, i: x[i]), zeros(0, 3), places(0)),
    "mapped index, one array": (
        lambda lib: lib.vmap(lambda x, i: x[i], in_axes=(None, 0)),
        lambda lib: lib.jnp.zeros(3),
        places(0),
    ),
    "mapped rows": (lambda lib: lib.vmap(lambda x, i: x[i]), zeros(0, 3, 2), places(0, 4)),
    "mapped update": (
        lambda lib: lib.vmap(lambda x, i: x.at[i].add(1.0)),
        zeros(0, 3),
        places(0, 2),
    ),
    "take_along_axis": (
        lambda lib: lambda x, i: lib.jnp.take_along_axis(x, i, 1),
        zeros(0, 3),
        places(0, 2),
    ),
    "take_along_axis, first": (
        lambda lib: lambda x, i: lib.jnp.take_along_axis(x, i, 0),
        zeros(0, 3),
        places(0, 3),
    ),
    "take_along_axis, no places": (
        lambda lib: lambda x, i: lib.jnp.take_along_axis(x, i, 1),
        zeros(3, 0),
        places(3, 0),
    ),
    "sort": (lambda lib: lib.jnp.sort, zeros(0)),
    "grad of sort": (lambda lib: lib.grad(lambda x: lib.jnp.sort(x).sum()), zeros(0)),
    "grad of sort, first": (lambda lib: lib.grad(lambda x: lib.jnp.sort(x, 0).sum()), zeros(0, 3)),
    "grad of sort, last": (lambda lib: lib.grad(lambda x: lib.jnp.sort(x, 1).sum()), zeros(0, 3)),
    "mapped grad of sort": (
        lambda lib: lib.vmap(lib.grad(lambda x: lib.jnp.sort(x).sum())),
        zeros(0, 3),
    ),
    "grad of top_k": (
        lambda lib: lib.grad(lambda x: lib.lax.top_k(x, 2)[0].sum()),
        zeros(0, 3),
    ),
    "argpartition": (lambda lib: lambda x: lib.jnp.argpartition(x, 1, axis=1), zeros(0, 3)),
    "partition": (lambda lib: lambda x: lib.jnp.partition(x, 1, axis=1), zeros(0, 3)),
    **{
        f"rankdata {method}": (
            lambda lib, method=method: lambda x: lib.scipy.stats.rankdata(x, method=method),
            zeros(0),
        )
        for method in ("min", "max", "dense", "ordinal", "average")
    },
    "rankdata of rows": (lambda lib: lambda x: lib.scipy.stats.rankdata(x, axis=1), zeros(0, 3)),
    "associative_scan": (lambda lib: lambda x: lib.lax.associative_scan(lib.jnp.add, x), zeros(0)),
    "associative_scan of rows": (
        lambda lib: lambda x: lib.lax.associative_scan(lib.jnp.add, x, axis=1),
        zeros(3, 0),
    ),
    "mapped convolution": (
        lambda lib: lib.vmap(lambda x: conv(lib, x, zeros(4, 3, 2, 2))),
        zeros(0, 2, 3, 5, 5),
    ),
    "mapped kernels": (
        lambda lib: lib.vmap(lambda w: conv(lib, zeros(2, 3, 5, 5), w)),
        zeros(0, 4, 3, 2, 2),
    ),
    "mapped convolution and kernels": (
        lambda lib: lib.vmap(lambda x, w: conv(lib, x, w)),
        zeros(0, 2, 3, 5, 5),
        zeros(0, 4, 3, 2, 2),
    ),
    "convolution": (
        lambda lib: lib.grad(lambda w, x: conv(lib, x, w).sum()),
        zeros(4, 3, 2, 2),
        zeros(0, 3, 5, 5),
    ),
    "mapped gradients of a convolution": (
        lambda lib: lib.vmap(lib.grad(lambda w, x: conv(lib, x, w).sum()), in_axes=(None, 0)),
        zeros(4, 3, 2, 2),
        zeros(0, 2, 3, 5, 5),
    ),
    "quantile": (lambda lib: lambda x: lib.jnp.quantile(x, 0.5, axis=1), zeros(0, 3)),
    "matrix product": (lambda lib: lib.jnp.matmul, zeros(3, 0), zeros(0, 4)),
    "scan": (
        lambda lib: lambda x: lib.lax.scan(lambda c, y: (c + y, c * y), 0.0, x),
        zeros(0),
    ),
    "mapped loop": (
        lambda lib: lib.vmap(lambda x: lib.lax.while_loop(lambda c: c < 3, lambda c: c + 1, x)),
        zeros(0),
    ),
    "mapped branches": (
        lambda lib: lib.vmap(lambda x: lib.lax.cond(x > 0, lib.jnp.sin, lib.jnp.cos, x)),
        zeros(0),
    ),
    "grad of a window": (lambda lib: lib.grad(lambda x: window(lib, x).sum()), zeros(0, 4)),
    "solve": (lambda lib: lib.jnp.linalg.solve, zeros(0, 0), zeros(0, 2)),
    "mapped solve": (lambda lib: lib.vmap(lib.jnp.linalg.solve), zeros(0, 2, 2), zeros(0, 2, 1)),
    "hessian": (lambda lib: lib.hessian(lambda x: lib.jnp.sin(x).sum()), zeros(0)),
    "segment_sum": (
        lambda lib: lambda x, i: lib.ops.segment_sum(x, i, 3),
        zeros(0),
        places(0),
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name, compiled):
    def program(lib):
        fun, *args = PROGRAMS[name]
        fun = lib.jit(fun(lib)) if compiled else fun(lib)
        return fun(*(a(lib) if callable(a) else a for a in args))

    jax_oracle.agree(program, weak=False)


def test_from_an_empty_axis_nothing_can_be_taken():
    from namoo import numpy as jnp

    x, i = jnp.zeros((3, 0)), jnp.zeros((3, 2), int)
    assert np.isnan(jnp.take_along_axis(x, i, 1)).all()
    with pytest.raises(TypeError, match="Slice size"):
        jnp.take_along_axis(x, i, 1, mode="clip")
