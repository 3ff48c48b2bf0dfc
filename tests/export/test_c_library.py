"""`to_c`: programs are compiled with gcc, and give the bits that Python gives."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax, nn, random
from namoo.export import export, symbolic_args_specs, to_c

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux"
)
EXAMPLES = Path(__file__).parents[2] / "examples"
# What an object may use of the C library.
OUTSIDE = {"memcpy", "memset", "memmove", "fmod", "fmodf", "_GLOBAL_OFFSET_TABLE_"}


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def cnn():
    model = nn.inference_mode(example("mnist_cnn").CNN(key=random.key(0)))

    def cnn(image):
        return nn.softmax(model(image))

    return cnn, [normal(1, 28, 28)]


def gpt():
    model = example("char_gpt").GPT(50, width=32, heads=2, depth=2, key=random.key(0))

    def gpt(tokens):
        return model(tokens)

    return gpt, [np.arange(64, dtype=np.int32) % 50]


def cached_step():
    """One token through attention with a cache of keys and values."""
    weights = [jnp.asarray(normal(16, 48) / 4), jnp.asarray(normal(16, 16) / 4)]

    def step(token, place, cache):
        q, k, v = jnp.split(token @ weights[0], 3)
        cache = lax.dynamic_update_slice(cache, jnp.stack([k, v])[:, None], (0, place, 0))
        scores = jnp.where(jnp.arange(cache.shape[1]) <= place, cache[0] @ q / 4, -jnp.inf)
        return nn.gelu(nn.softmax(scores) @ cache[1] @ weights[1]), cache

    return step, [normal(16), np.int32(3), normal(2, 8, 16)]


def ode():
    """A pendulum by a method with steps of its own choice, in a while loop."""

    def field(y):
        return jnp.stack([y[1], -jnp.sin(y[0])])

    def solve(y, end, tolerance):
        def step(state):
            t, h, y = state
            h = jnp.minimum(h, end - t)
            k1 = field(y)
            k2 = field(y + h * k1)
            error = jnp.max(jnp.abs(h / 2 * (k2 - k1)))
            accept = error <= tolerance
            y = jnp.where(accept, y + h / 2 * (k1 + k2), y)
            scale = jnp.clip(0.9 * jnp.sqrt(tolerance / (error + 1e-12)), 0.2, 5.0)
            return jnp.where(accept, t + h, t), h * scale, y

        t, _, y = lax.while_loop(lambda s: s[0] < end, step, (0.0, 0.1, y))
        return {"t": t, "y": y}

    return solve, [normal(2), np.float32(3), np.float32(1e-4)]


def mixed():
    """Types other than float32, random numbers, sorts, conditions, complex products."""

    def mixed(x, i, flag, z):
        noise = random.normal(random.key(1), x.shape)
        y = lax.cond(flag, lambda v: jnp.sort(v), lambda v: v * 2, x + noise)
        return y.astype(jnp.bfloat16), i * 2, x > 0, x.astype(jnp.float16), z @ z, jnp.cumsum(y)

    return mixed, [
        normal(6),
        np.arange(3, dtype=np.int8),
        np.bool_(True),
        np.eye(3, dtype="c8") * 2,
    ]


PROGRAMS = {f.__name__: f for f in (cnn, gpt, cached_step, ode, mixed)}


def run(folder: Path, name: str, args: Any) -> bytes:
    """Compile and run `main.c`; return its outputs."""
    build = ["gcc", "-Wall", "-Wextra", "-Werror", "main.c", f"{name}.o", "-lm", "-o", "program"]
    subprocess.run(build, cwd=folder, check=True)
    leaves = [np.ascontiguousarray(x) for x in namoo.tree.leaves(args)]
    (folder / "inputs").write_bytes(b"".join(x.tobytes() for x in leaves))
    subprocess.run(
        ["./program", "inputs", "outputs"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return (folder / "outputs").read_bytes()


def undefined(file: Path) -> set[str]:
    text = subprocess.run(["nm", "-u", file], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines()}


def on_the_native_engine(fun: Any, args: Any) -> bytes:
    results = namoo.tree.leaves(namoo.jit(fun, engine="native")(*args))
    return b"".join(np.asarray(x).tobytes() for x in results)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "file", "arena": "static"}],
    ids=["weights inside", "weights in a file"],
)
def test_the_library_gives_the_bits_of_python(name, options, tmp_path):
    fun, args = PROGRAMS[name]()
    folder = to_c(fun, *args, path=tmp_path / "out", name="program", **options)
    assert undefined(folder / "program.o") <= OUTSIDE
    assert run(folder, "program", args) == on_the_native_engine(fun, args)


def test_named_target(tmp_path):
    fun, args = cnn()
    machine = to_c(fun, *args, path=tmp_path / "v2", target="x86-64-v2") / "cnn.o"
    wanted = on_the_native_engine(fun, args)
    if os.uname().machine == "x86_64":
        found = np.frombuffer(run(machine.parent, "cnn", args), np.float32)
        np.testing.assert_allclose(found, np.frombuffer(wanted, np.float32), rtol=1e-5)
        assert b"zmm" not in disassembled(machine) and b"ymm" not in disassembled(machine)
    with pytest.raises(ValueError, match="target='z80' is not a known processor"):
        to_c(fun, *args, path=tmp_path, target="z80")


def disassembled(file: Path) -> bytes:
    return subprocess.run(["objdump", "-d", file], capture_output=True, check=True).stdout


# The first bytes of object files, and the place and number of their processor.
FORMATS = {
    "aarch64-linux": (b"\x7fELF", slice(18, 20), 183),
    "aarch64-macos": (b"\xcf\xfa\xed\xfe", slice(4, 8), 0x0100000C),
    "x86-64-macos": (b"\xcf\xfa\xed\xfe", slice(4, 8), 0x01000007),
    "x86-64-windows": (b"\x64\x86", slice(0, 2), 0x8664),
}


@pytest.mark.parametrize("target", FORMATS)
def test_another_system(target, tmp_path):
    fun, args = ode()
    folder = to_c(fun, *args, path=tmp_path, target=target, name="pendulum")
    data = (folder / "pendulum.o").read_bytes()
    magic, place, processor = FORMATS[target]
    assert data.startswith(magic) and int.from_bytes(data[place], "little") == processor


def test_names_in_the_header(tmp_path):
    def f(x, params, int):
        return {"out": x + params["b"] + int, "X": params["w"]}

    x = np.float32(1)
    folder = to_c(f, x, {"b": x, "w": np.zeros((2, 3), np.float32)}, x, path=tmp_path)
    lines = ["const float *x,", "const float *params_b,", "const float *params_w,"]
    lines += ["const float *int_,", "float *out_X,", "float *out_out,", "void *arena);"]
    declared = (folder / "f.h").read_text().split("int f(")[1].split()
    assert " ".join(lines).split() == declared[: len(" ".join(lines).split())]


def test_cmake_builds_a_shared_library(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    fun, args = ode()
    folder = to_c(fun, *args, path=tmp_path)
    build = ["cmake", "-S", folder, "-B", folder / "build", "-DBUILD_SHARED_LIBS=ON"]
    for command in (build, ["cmake", "--build", folder / "build"]):
        subprocess.run(command, check=True, capture_output=True)
    subprocess.run([folder / "build" / "solve_main"], check=True, capture_output=True)
    assert (folder / "build" / "libsolve.so").exists()


def test_command_line(tmp_path):
    w = jnp.asarray(normal(4, 2))
    x = normal(3, 4)
    e = export(namoo.jit(lambda x: jnp.tanh(x @ w)))(*symbolic_args_specs((x,), ("b, _",)))
    (tmp_path / "model.bin").write_bytes(e.serialize())
    command = [sys.executable, "-m", "namoo.export", "model.bin", "--c", "out", "--name", "net"]
    subprocess.run([*command, "--sizes", "b=3"], cwd=tmp_path, check=True)
    found = run(tmp_path / "out", "net", [x])
    assert found == on_the_native_engine(lambda x: jnp.tanh(x @ w), [x])
    missing = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert missing.returncode and "symbolic dimensions" in missing.stderr


def integral(x):
    return namoo.scipy.special.expi(x)


def calls_back(x):
    return namoo.pure_callback(np.sin, x, x)


@pytest.mark.parametrize(
    "fun, message",
    [
        (integral, r"'expi'\n  at .*test_c_library.py:\d+ \(integral\)\n.*scipy.special.expi"),
        (calls_back, r"'pure_callback'(.|\n)*namoo.pure_callback\(np.sin, x, x\)"),
    ],
)
def test_what_stays_is_refused_with_its_line(fun, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_c(fun, np.eye(2, dtype=np.float32), path=tmp_path)
