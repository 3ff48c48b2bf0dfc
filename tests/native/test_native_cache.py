"""Compiled programs on disk: found again when they are the same, and only then."""

import dataclasses
import importlib
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.config import Scope
from namoo.core.array import to_numpy
from namoo.core.jaxpr import Literal
from namoo.devices.shard_map_primitive import shard_map_p
from namoo.engines import disk_cache
from namoo.engines.native import pipeline
from namoo.engines.native.cache import fingerprint, programs
from namoo.engines.native.engine import native
from namoo.engines.native.link import code as link
from namoo.engines.native.link import options


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "code"
    monkeypatch.setenv("NAMOO_CACHE_DIR", str(path))
    monkeypatch.delenv("NAMOO_CACHE", raising=False)
    # Somebody may be editing them while the tests run.
    monkeypatch.setattr(programs, "_sources", lambda: "files")
    return path


@pytest.fixture
def written(monkeypatch):
    """The programs that were planned and written, rather than found."""
    seen = []
    result_of = pipeline.result_of
    monkeypatch.setattr(pipeline, "result_of", lambda *args: seen.append(args) or result_of(*args))
    return seen


def test_the_rooms_that_decide_programs_exist_and_hold_all_primitives():
    package = Path(namoo.__file__).parent
    assert [room for room in fingerprint.ROOMS if not (package / room).is_dir()] == []
    core_names = importlib.import_module("namoo.extend.core.primitives")
    primitives = [getattr(core_names, name) for name in dir(core_names) if name.endswith("_p")]
    for primitive in [*primitives, shard_map_p]:
        assert fingerprint._class_name(type(primitive))


def entries(folder):
    return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def forget():
    """Let go of the programs in memory, as a new process would know none."""
    programs._alive.clear()


def run(fun, *args):
    closed = namoo.make_jaxpr(fun)(*args)
    program = native.compile(closed)
    return [x.tolist() for x in program([to_numpy(jnp.asarray(x)) for x in args])]


def truncated(path):
    path.write_bytes(path.read_bytes()[:100])


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def emptied(path):
    path.write_bytes(b"")


def renamed(path):
    os.replace(path, path.with_name("f" * 64))


def linked(path):
    target = path.with_name("elsewhere")
    os.replace(path, target)
    path.symlink_to(target)


def writable(path):
    path.chmod(0o666)


def removed(path):
    path.unlink()


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def a_socket(path):
    path.unlink()
    before = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


def a_device(path):
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.stat("/dev/zero").st_rdev)
    except PermissionError:
        pytest.skip("only an administrator makes devices")


def a_loop(path):
    path.unlink()
    path.symlink_to(path)


def unreadable(path):
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("an administrator reads everything")


CONTENT = bytes(range(256))


ODD = [a_folder, a_pipe, a_socket, a_device, a_loop, unreadable]


@pytest.mark.parametrize("harm", [truncated, flipped, emptied, renamed, linked, writable, *ODD])
def test_a_harmed_entry_is_not_there(folder, harm):
    disk_cache.save("a" * 64, CONTENT)
    assert disk_cache.load("a" * 64) == CONTENT
    harm(folder / ("a" * 64))
    assert disk_cache.load("a" * 64) is None
    assert disk_cache.load("f" * 64) is None


@pytest.mark.parametrize("harm", [emptied, *ODD[1:]])
def test_an_odd_folder_is_not_used(folder, harm, written):
    """Neither to read nor to write, and programs run."""
    folder.write_bytes(b"")
    harm(folder)
    disk_cache.save("a" * 64, CONTENT)
    assert disk_cache.load("a" * 64) is None
    assert run(lambda x: [x * 2], 1.0) == [2.0]


def test_a_folder_of_others_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    assert disk_cache.folder() is None
    disk_cache.save("a" * 64, CONTENT)
    assert not entries(folder)


def test_off(folder, monkeypatch, written):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    disk_cache.save("a" * 64, CONTENT)
    assert not folder.exists() and disk_cache.load("a" * 64) is None
    assert run(jnp.sin, 1.0) == run(jnp.sin, 1.0) and len(written) == 2


def test_the_settings_of_jax_are_obeyed(folder, written, tmp_path):
    with Scope("compilation_cache_dir", str(tmp_path / "theirs")):
        assert run(jnp.sin, 1.0) and len(written) == 1
    assert not folder.exists() and entries(tmp_path / "theirs" / "namoo")
    with Scope("enable_compilation_cache", False):
        assert run(jnp.sin, 1.0) == run(jnp.sin, 1.0) and len(written) == 3
    assert not folder.exists()


def test_files_of_others_stay(folder):
    folder.mkdir(mode=0o700)
    (folder / "thesis.tex").write_bytes(bytes(3000))
    disk_cache.save("a" * 64, bytes(1000))
    disk_cache.prune(folder, limit=500)
    assert [p.name for p in entries(folder)] == ["thesis.tex"]


def test_old_entries_are_removed(folder):
    for i in range(4):
        disk_cache.save(f"{i:064x}", bytes(1000))
        os.utime(folder / f"{i:064x}", (i, i))
    disk_cache.prune(folder, limit=2500)
    assert [p.name for p in entries(folder)] == [f"{i:064x}" for i in (2, 3)]


def loops(x, n):
    y = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x[i], x.sum())
    z, rows = lax.scan(lambda c, row: (c + row, jnp.cumsum(c * row)), x, jnp.outer(x, x))
    return y, z, rows, lax.cond(n > 0, jnp.tanh, jnp.cos, x), jnp.sort(x)[::-1] @ rows


TABLE = jnp.asarray([0.5, 1.5, -2.5, 3.0], jnp.float32)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: [jnp.cos(x) - 3],
        lambda x: loops(x, 1),
        lambda x: [x * TABLE, namoo.nn.relu(x), namoo.nn.softmax(jnp.outer(x, TABLE))],
        # Python evaluates what it is asked to, and what has no rule.
        lambda x: [namoo.scipy.special.expi(jnp.outer(x, x))],
        lambda x: namoo.pure_callback(lambda x: np.asarray(x) + 1, x, x) * 2,
        namoo.grad(lambda x: namoo.checkpoint(jnp.sin)(x).sum()),
        lambda x: namoo.random.normal(namoo.random.key(3), (5,)) + x.sum(),
    ],
    ids=["map", "loops", "constants", "host", "callback", "remat", "random"],
)
@pytest.mark.parametrize("harm", [None, truncated, flipped, emptied, removed, a_pipe])
def test_programs_come_from_the_disk(folder, written, fun, harm):
    x = jnp.asarray([0.25, -1.0, 3.5, 0.0], jnp.float32)
    first = run(fun, x)
    forget()
    assert len(written) == 1
    assert run(fun, x) == first and len(written) == 1
    if harm is not None:
        forget()
        found = entries(folder)
        assert len(found) >= 2
        for path in found:
            harm(path)
        assert run(fun, x) == first and len(written) == 2
        forget()
        assert run(fun, x) == first and len(written) == 2


def test_programs_without_their_code_are_compiled(folder, written):
    first = run(jnp.sin, 1.0)
    forget()
    (record,) = [p for p in entries(folder) if b"'code'" in p.read_bytes()]
    for path in entries(folder):
        if path != record:
            path.unlink()
    assert run(jnp.sin, 1.0) == first and len(written) == 2


def test_equal_programs_share_their_code(folder, written):
    closed = [namoo.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0) for _ in range(3)]
    made = [native.compile(c) for c in closed]
    assert len({id(p.made) for p in made}) == 1 and len(written) == 1
    assert len({p([np.ones((), np.float32)])[0].item() for p in made}) == 1
    del made
    assert not programs._alive


def test_texts_and_figures_of_a_program_from_the_disk(folder):
    closed = namoo.make_jaxpr(lambda x: jnp.tanh(x @ x).sum())(jnp.ones((40, 40)))
    first = native.compile(closed)
    figures = [first.as_text(s) for s in ("jaxpr", "fused", "llvm")], first.costs, first.memory
    del first
    forget()
    again = native.compile(closed)
    assert figures == (
        [again.as_text(s) for s in ("jaxpr", "fused", "llvm")], again.costs, again.memory,
    )  # fmt: skip


# Programs that print alike, or differ little: each is to have its own value.
X = jnp.asarray([1.5, -0.5, 2.0, 0.0], jnp.float32)
ALIKE = {
    "sum axes": [lambda x: x.reshape(2, 2).sum(0), lambda x: x.reshape(2, 2).sum(1)],
    "reverse": [lambda x: lax.cumsum(x, 0), lambda x: lax.cumsum(x, 0, True)],
    "zeros": [lambda x: 1 / (x * 0 + 0.0), lambda x: 1 / (x * 0 * 1 + -0.0)],
    "literals": [lambda x: x + 0.1, lambda x: x + 0.10000001],
    "constants": [
        lambda x: x * np.array([1, 2, 3, 4], np.float32),
        lambda x: x * np.array([1, 2, 3, 5], np.float32),
    ],
    "types": [lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.float16)],
    "modes": [lambda x: x.at[7:].get(mode="clip"), lambda x: x.at[jnp.array([7])].get(mode="clip")],
    "inner programs": [
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x),
    ],
    "inner constants": [
        lambda x: lax.scan(
            lambda c, _: (c * jnp.array([1, 2, 3, 4], np.float32), None), x, None, 2
        )[0],
        lambda x: lax.scan(
            lambda c, _: (c * jnp.array([1, 2, 3, 5], np.float32), None), x, None, 2
        )[0],
    ],
    "operands": [lambda x: x - x[::-1], lambda x: x[::-1] - x],
    "callbacks": [
        lambda x: namoo.pure_callback(lambda x: np.asarray(x) + 1, x, x),
        lambda x: namoo.pure_callback(lambda x: np.asarray(x) + 2, x, x),
    ],
    "keys": [
        lambda x: namoo.random.uniform(namoo.random.key(1), (4,)),
        lambda x: namoo.random.uniform(namoo.random.key(2), (4,)),
    ],
}


@pytest.mark.parametrize("funs", ALIKE.values(), ids=ALIKE)
def test_programs_that_differ_are_told_apart(folder, funs):
    for _ in range(2):
        for fun in funs:
            wanted = [x.tolist() for x in namoo.tree.leaves(fun(X))]
            np.testing.assert_allclose(run(fun, X), wanted, rtol=1e-5)
        forget()


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (programs, "_sources", lambda: "other files"),
        (programs, "FORMAT", -1),
        (options, "PASSES", (*options.PASSES, "reassociate")),
        (options, "OPTIONS", (*options.OPTIONS, "disable-cgp")),
        (np, "__version__", "0.0"),
    ],
)
def test_another_surrounding_means_another_program(
    folder, written, monkeypatch, place, name, value
):
    run(jnp.sin, 1.0)
    forget()
    monkeypatch.setattr(place, name, value)
    for cached in (programs._surroundings, link.surroundings):
        cached.cache_clear()
    run(jnp.sin, 1.0)
    monkeypatch.undo()
    for cached in (programs._surroundings, link.surroundings):
        cached.cache_clear()
    assert len(written) == 2


def test_settings_and_options_are_part_of_the_name(folder, written):
    closed = namoo.make_jaxpr(jnp.sin)(1.0)
    with namoo.threefry_partitionable(False):
        a = native.compile(closed)
    b = native.compile(closed)
    c = native.compile(closed, {"other": 1})
    assert len({id(p.made) for p in (a, b, c)}) == 3


def test_sources_that_changed_after_they_were_loaded_are_not_trusted(monkeypatch):
    monkeypatch.setattr(programs, "LOADED_AT", time.time_ns())
    assert programs._sources.__wrapped__() is not None
    monkeypatch.setattr(programs, "LOADED_AT", 0)
    assert programs._sources.__wrapped__() is None


@dataclasses.dataclass
class Foreign:
    number: int


@pytest.mark.parametrize(
    "value", [Foreign(1), print, lambda: 1, object(), np.array([None]), Foreign]
)
def test_what_has_no_text_is_not_named(value):
    closed = namoo.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(X)
    closed.eqns[0].params["extra"] = value
    with pytest.raises(fingerprint.Unknown):
        fingerprint.Fingerprint(closed, {})
    assert programs.identify(closed, {}) is None


@pytest.mark.parametrize("shared", ["params", "literals", "nothing", "all"])
def test_programs_of_one_name_hold_the_same_arrays(shared):
    def f(x):
        return jnp.cumsum(x) * 3.0 + jnp.cumsum(x + 1.0) * 3.0 + jnp.arange(4.0)

    def told(closed):
        mark = fingerprint.Fingerprint(closed, {})
        return mark.digest, [x.tolist() for x in mark.arrays]

    closed = namoo.make_jaxpr(f)(jnp.ones(4))
    first, second = [eqn for eqn in closed.eqns if eqn.primitive.name == "cumsum"]
    third, fourth = [eqn for eqn in closed.eqns if eqn.primitive.name == "mul"]
    first.params = {**first.params, "extra": np.arange(3)}
    second.params = {**second.params, "extra": np.arange(3)}
    apart = [Literal(np.array(3, np.float32), a.aval) for a in (third.invars[1], fourth.invars[1])]
    third.invars[1], fourth.invars[1] = apart
    expected = told(closed)
    if shared in ("params", "all"):
        second.params = first.params
    if shared in ("literals", "all"):
        fourth.invars[1] = third.invars[1]
    assert told(closed) == expected
    second.params["extra"] = np.arange(3) + 1
    assert (told(closed) == expected) is False


def test_rules_of_derivatives_do_not_matter(folder, written):
    def program(scale):
        f = namoo.custom_jvp(lambda x: jnp.sin(x) * 2)
        f.defjvp(lambda xs, ts: (f(*xs), scale * ts[0]))
        return namoo.make_jaxpr(lambda x: f(x))(1.0)

    a, b = native.compile(program(1.0)), native.compile(program(2.0))
    assert a.made is b.made


def test_many_processes_share_the_folder(folder):
    code = """
from namoo.engines.native.cache import programs
programs._sources = lambda: ""  # somebody may be editing files while the tests run
import namoo, namoo.numpy as jnp
print(float(namoo.jit(jnp.sin)(1.0)))
"""
    runs = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE)
        for _ in range(16)
    ]
    results = {run.communicate(timeout=120)[0] for run in runs}
    assert len(results) == 1 and all(run.returncode == 0 for run in runs)
    assert len([p for p in entries(folder) if b"'code'" in p.read_bytes()]) == 1


@pytest.mark.parametrize("size", [8, 1024])  # of a product written out, and of one for BLAS
def test_a_program_on_disk_needs_neither_llvm_nor_what_writes_it(folder, size):
    code = f"""
import sys, namoo, namoo.numpy as jnp
print(float(namoo.jit(lambda x: jnp.tanh(x.T @ x / {size}).sum())(jnp.ones(({size}, {size})))))
heavy = "llvmlite.binding", "scipy.linalg", "namoo.engines.native.graph.node", "hashlib", "tempfile"
print(*(name for name in heavy if name in sys.modules))
print({size} < 100 or "scipy.linalg.cython_blas" in sys.modules)
from scipy.linalg import cython_blas
print(cython_blas is sys.modules["scipy.linalg.cython_blas"])
"""
    # Somebody may be editing files while the tests run.
    start = "from namoo.engines.native.cache import programs\nprograms._sources = lambda: ''"
    code = f"{start}\n{code}"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0] and runs[0][2:] == runs[1][2:] == ["True", "True"]
    assert "llvmlite.binding" in runs[0][1] and "scipy.linalg" not in runs[0][1]
    assert runs[1][1] == ""
