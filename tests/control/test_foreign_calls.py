"""`namoo.ffi` and `namoo.native_call`: compiled functions, on every engine and against JAX."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import ffi

ENGINES = ("interpreter", "native", "xla")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
F32 = namoo.ShapeDtypeStruct((2, 3), np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    source = Path(__file__).parents[1] / "support" / "foreign" / "handlers.cc"
    path = tmp_path_factory.mktemp("foreign") / "handlers.so"
    command = ["g++", "-shared", "-fPIC", "-O1", "-std=c++17", f"-I{ffi.include_dir()}"]
    subprocess.run([*command, str(source), "-o", str(path)], check=True)
    lib = ctypes.CDLL(str(path))
    for name in ("scale", "describe", "add_one", "count_calls"):
        ffi.register_ffi_target(name, ffi.pycapsule(getattr(lib, name)))
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(lib, name)), platform="cpu")
    lib.calls.restype = ctypes.c_int64
    return lib


def scale(lib, vmap_method=None, **attributes):
    named = {"factor": np.float32(2), "power": 3, **attributes}

    def f(x):
        out = jax.ShapeDtypeStruct(x.shape, np.float32)
        return lib.ffi.ffi_call("scale", out, vmap_method=vmap_method)(x, **named)

    return f


def describe(lib, **options):
    def f(x):
        outs = (
            jax.ShapeDtypeStruct((3,), np.int64),
            jax.ShapeDtypeStruct((6,), np.float32),
        )
        call = lib.ffi.ffi_call("describe", outs, **options)
        return tuple(call(x, text="four", numbers=np.array([1, 10])))

    return f


def in_place(lib):
    out = jax.ShapeDtypeStruct((2, 3), np.float32)
    return lambda x: lib.ffi.ffi_call("add_one", out, input_output_aliases={0: 0})(x) + x


def in_a_loop(lib):
    return lambda x: lib.lax.scan(lambda c, y: (scale(lib)(c) + y, y.sum()), x[0], x)


CASES = {
    "attributes": scale,
    "texts, arrays, several results": describe,
    "layouts": lambda lib: describe(lib, input_layouts=[(1, 0)], output_layouts=[None, None]),
    "aliases": in_place,
    "in a loop": in_a_loop,
    **{
        f"vmap {method}": lambda lib, method=method: lib.vmap(scale(lib, method))
        for method in (
            "sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
            "legacy_vectorized",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("engine", [None, *ENGINES])
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_jax(library, case, engine):
    with jax.enable_x64(True), namoo.enable_x64(True):
        f = CASES[case](namoo)
        found = (namoo.jit(f, engine=engine) if engine else f)(X)
        expected = jax.jit(CASES[case](jax))(X)
    for a, b in zip(namoo.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", [scale(namoo), in_a_loop(namoo)])
def test_native_code_calls_without_python(library, f):
    assert not namoo.jit(f, engine="native").lower(X).compile().host_operations()


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_errors_of_handlers(library, engine):
    f = scale(namoo, factor=np.float32(-1))
    with pytest.raises(namoo.errors.JaxRuntimeError, match="the factor is negative"):
        (namoo.jit(f, engine=engine) if engine else f)(X)


def test_an_error_names_line_and_iteration(library):
    def f(x):
        step = lambda c, y: (scale(namoo, factor=np.float32(-1))(c), None)  # noqa: E731
        return namoo.lax.scan(step, x, None, length=3)[0]

    with pytest.raises(namoo.errors.JaxRuntimeError, match=r"iteration 0 of scan\n  at .*test_"):
        namoo.jit(f, engine="native")(X)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("effect, expected", [(True, 3), (False, 0)])
def test_effects(library, engine, effect, expected):
    def f(x):
        for _ in range(3):
            out = namoo.ShapeDtypeStruct((), np.int64)
            ffi.ffi_call("count_calls", out, has_side_effect=effect)()
        return x

    with namoo.enable_x64(True):
        compiled = namoo.jit(f, engine=engine)
        before = library.calls()
        compiled(X)
        namoo.effects_barrier()
    assert library.calls() - before == expected


def test_derivatives(library):
    @namoo.custom_vjp
    def cube_scale(x):
        return scale(namoo)(x)

    cube_scale.defvjp(lambda x: (cube_scale(x), None), lambda _, ct: (scale(namoo)(ct),))
    np.testing.assert_array_equal(namoo.grad(lambda x: cube_scale(x).sum())(X), np.full_like(X, 8))
    with pytest.raises(ValueError, match="FFI call to `scale` cannot be differentiated"):
        namoo.grad(lambda x: scale(namoo)(x).sum())(X)


def saxpy(library):
    return lambda x, y: namoo.native_call(
        library.saxpy, F32, x.size, np.float32(3), x, y, np.int8(-1), vmap_method="sequential"
    )


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_plain_functions(library, engine):
    f = saxpy(library)
    np.testing.assert_array_equal((namoo.jit(f, engine=engine) if engine else f)(X, X), 2 * X)
    batched = namoo.vmap(f, (0, None))
    batched = namoo.jit(batched, engine=engine) if engine else batched
    xs = np.stack([X, 2 * X])
    np.testing.assert_array_equal(batched(xs, X), 3 * xs - X)


def test_plain_functions_are_called_without_python(library):
    compiled = namoo.jit(saxpy(library), engine="native").lower(X, X).compile()
    assert not compiled.host_operations()


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_a_status_is_an_error(library, engine):
    out = namoo.ShapeDtypeStruct((), np.float64)
    f = lambda x: namoo.native_call(library.root, out, x, status=True)  # noqa: E731
    with namoo.enable_x64(True):
        f = namoo.jit(f, engine=engine) if engine else f
        assert f(jnp.float64(9)) == 3.0
        with pytest.raises(namoo.errors.JaxRuntimeError, match="root returned the status 3"):
            f(jnp.float64(-1))


def test_numba():
    numba = pytest.importorskip("numba")

    @numba.cfunc("void(CPointer(float32), int64, CPointer(float32))")
    def double(x, n, y):
        for i in range(n):
            y[i] = 2 * x[i]

    f = namoo.jit(lambda x: namoo.native_call(double, F32, x, x.size))
    np.testing.assert_array_equal(f(X), 2 * X)


# How it is called, the exception, part of its message.
MISTAKES = [
    (lambda: namoo.native_call(len, F32, X), TypeError, "no compiled function"),
    (lambda: namoo.native_call(5, F32, "x"), TypeError, "operand 0 must be an array or a number"),
    (lambda: namoo.native_call(5, F32, X, vmap_method="x"), ValueError, "vmap_method"),
    (lambda: ffi.ffi_call("missing", F32)(X), ValueError, "No FFI target 'missing'"),
    (lambda: ffi.ffi_call("a", F32, vmap_method="x"), ValueError, "vmap_method"),
    (lambda: ffi.ffi_call("a", 5), ValueError, "'shape' and 'dtype'"),
    (lambda: ffi.register_ffi_target("a", len), TypeError, "must be a capsule"),
    (lambda: ffi.register_ffi_target("a", len, api_version=0), ValueError, "api_version"),
]


@pytest.mark.parametrize("call, error, message", MISTAKES)
def test_mistakes(call, error, message):
    with pytest.raises(error) as info:
        call()
    assert message in str(info.value)


def test_wrong_aliases(library):
    for aliases, message in (({1: 0}, "input index 1"), ({0: 1}, "output index 1")):
        with pytest.raises(ValueError, match=message):
            ffi.ffi_call("add_one", F32, input_output_aliases=aliases)(X)
    with pytest.raises(TypeError, match="attribute factor"):
        namoo.jit(lambda x: scale(namoo, factor=x)(X))(1.0)
