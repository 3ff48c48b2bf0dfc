"""The rest of the C++ runtime: calls of compiled functions, entries, the pool, bits, buffers."""

import ctypes
import dataclasses
import gc
import io
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import random, tree_util
from namoo._base.runtime import native
from namoo.api.jit import Jitted
from namoo.core.array import EagerArray
from namoo.primitives.random import generators
from namoo.primitives.special import erf_inverse

pytestmark = pytest.mark.skipif(native is None, reason="the C++ part was not built")


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many calls went the general way."""
    count = [0]
    original = Jitted.general

    def general(self, args, kwargs):
        count[0] += 1
        return original(self, args, kwargs)

    Jitted.general = general
    try:
        yield count
    finally:
        Jitted.general = original


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = namoo.tree.static(default="layer")


class Point:
    """A node by registration, with metadata."""

    def __init__(self, x, kind):
        self.x, self.kind = x, kind


tree_util.register_pytree_node(Point, lambda p: ((p.x,), p.kind), lambda kind, c: Point(c[0], kind))


def double(value):
    return namoo.tree.map(lambda x: x + x, value)


ARGUMENTS = {
    "array": lambda: jnp.ones((2, 3)),
    "weak": lambda: jnp.asarray(2.0),
    "NumPy's": lambda: np.ones((2, 3), np.float32),
    "NumPy's double": lambda: np.ones((2, 3), np.float64),
    "not contiguous": lambda: jnp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)).T,
    "NumPy's number": lambda: np.float64(2.5),
    "float": lambda: 2.5,
    "int": lambda: 3,
    "bool array": lambda: jnp.asarray([True, False]),
    "complex": lambda: 1 + 2j,
    "empty": lambda: jnp.zeros((0, 3)),
    "bfloat16": lambda: jnp.ones(3, jnp.bfloat16),
    "tree": lambda: {"b": [jnp.ones(2), 1.0], "a": (np.int32(1), None)},
    "dataclass": lambda: [Layer(jnp.ones(2), 2), Layer(1.0, jnp.ones((), jnp.int32), "other")],
    "custom": lambda: Point(jnp.ones(2), "kind"),
    "nothing": lambda: (),
}


@pytest.mark.parametrize("make", ARGUMENTS.values(), ids=ARGUMENTS)
def test_recognised_calls_give_the_same(make):
    f = namoo.jit(double)
    with counted() as general:
        first = f(make())
        assert general == [1]
        second = f(make())
        third = f(make())
        assert general == [1]
    for again in (second, third):
        leaves, treedef = tree_util.tree_flatten(first)
        others, other = tree_util.tree_flatten(again)
        assert treedef == other
        for a, b in zip(leaves, others, strict=True):
            assert type(a) is type(b) is EagerArray
            assert (a.dtype, a.weak_type, a.shape) == (b.dtype, b.weak_type, b.shape)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_what_differs_is_not_taken_for_the_same():
    f = namoo.jit(lambda x, *rest, **named: (x, rest, named))
    x = jnp.ones(3)
    calls: list[tuple[tuple, dict]] = [
        ((x,), {}),
        ((jnp.ones(4),), {}),
        ((jnp.ones((3, 1)),), {}),
        ((x.astype(jnp.int32),), {}),
        ((jnp.float32(1.0),), {}),
        ((1.0,), {}),  # as is a weak array of its type
        ((1,), {}),
        ((True,), {}),
        (([x],), {}),
        (((x,),), {}),
        (({"a": x},), {}),
        (({"b": x},), {}),
        ((x, x), {}),
        ((x,), {"k": x}),
        ((x,), {"m": x}),
        ((Point(x, 1),), {}),
        ((Point(x, 2),), {}),
        ((x, "text"), {}),
        ((x, "other"), {}),
        ((x, None), {}),
    ]
    for _ in range(3):
        for args, kwargs in calls:
            found = f(*args, **kwargs)
            wanted = (args[0], args[1:], kwargs)
            mine, treedef = tree_util.tree_flatten(found)
            theirs, other = tree_util.tree_flatten(wanted)
            assert treedef == other
            for a, b in zip(mine, theirs, strict=True):
                if isinstance(b, str):
                    assert a == b
                else:
                    b = jnp.asarray(b)
                    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert len(f.explain()) == len(calls)


def test_static_arguments():
    f = namoo.jit(lambda x, n, *, mode="a": (x * n, mode), static_argnums=1, static_argnames="mode")
    with counted() as general:
        for n, mode in [(2, "a"), (3, "a"), (2, "b"), (2, "a"), (3, "a"), (2, "b")]:
            value, found = f(jnp.ones(2), n, mode=mode)
            assert found == mode and value[0] == n
    assert general == [3]
    with pytest.raises(ValueError, match="hashable"):
        f(jnp.ones(2), [1], mode="a")


def test_numbers_that_do_not_fit_are_refused_every_time():
    f = namoo.jit(lambda x: x + 1)
    assert f(3) == 4 and f(4) == 5
    for _ in range(2):
        with pytest.raises(OverflowError):
            f(2**40)
    assert f(5) == 6


def test_settings_transformations_and_cleared_caches_are_seen():
    f = namoo.jit(lambda x: x * 2)
    x = jnp.ones(3)
    for _ in range(2):
        f(x)
    with counted() as general:
        with namoo.enable_x64(True):
            assert f(np.ones(3)).dtype == np.float64
        assert f(np.ones(3)).dtype == np.float32
        namoo.vmap(f)(x)
        namoo.grad(lambda x: f(x).sum())(x)
        namoo.make_jaxpr(f)(x)
        with namoo.disable_jit():
            f(x)
        assert general[0] >= 5
        f(x)  # the settings are read anew
        general[0] = 0
        f(x)
        assert general == [0]
        f.clear_cache()
        f(x)
        assert general == [1]
        namoo.clear_caches()
        f(x)
        assert general == [2]


def test_closed_over_values_and_static_results():
    w = jnp.arange(3.0)
    f = namoo.jit(lambda x: {"y": x * w, "tag": "text", "f": len})
    first, second = f(jnp.ones(3)), f(jnp.ones(3))
    assert second["tag"] == "text" and second["f"] is len
    np.testing.assert_array_equal(np.asarray(first["y"]), np.asarray(second["y"]))


def test_donated_arrays_are_gone_in_recognised_calls_too():
    f = namoo.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        x = jnp.ones(4)
        f(x)
        assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)


def test_errors_of_recognised_calls_show_only_the_users_lines():
    def host(x):
        if x > 1:
            raise ValueError("too large")
        return x

    f = namoo.jit(lambda x: namoo.pure_callback(host, namoo.ShapeDtypeStruct((), np.float32), x))
    for number in (0.0, 1.0):
        f(jnp.float32(number))
    with counted() as general, pytest.raises(Exception, match="too large") as caught:
        f(jnp.float32(2.0))
    assert general == [0]
    hidden = os.path.dirname(namoo.__file__)
    assert not any(hidden in str(entry.path) for entry in caught.traceback)
    assert f(jnp.float32(1.0)) == 1


def test_methods_and_attributes_of_a_function_under_jit():
    class Model:
        @namoo.jit
        def __call__(self, x):
            """Doc."""
            return x * 2

    assert Model.__call__.__doc__ == "Doc."
    f = namoo.jit(lambda x: x)
    f.note = 3
    assert f.note == 3 and weakref.ref(f)() is f


def test_a_function_under_jit_is_collected():
    def make():
        holder: dict[str, Any] = {}
        f = namoo.jit(lambda x: x * 2 if holder else x)
        holder["f"] = f  # a cycle
        for _ in range(2):
            f(jnp.ones(2))
        return weakref.ref(f)

    found = make()
    namoo.clear_caches()
    gc.collect()
    assert found() is None


def test_calls_from_many_threads():
    f = namoo.jit(lambda x, n: x + n)
    wrong: list[Any] = []

    def work(number):
        for i in range(200):
            size = 1 + (i + number) % 5
            found = np.asarray(f(jnp.ones(size), np.float32(number)))
            if found.shape != (size,) or not (found == 1 + number).all():
                wrong.append((number, found))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_many_calls_leave_memory_flat():
    """In a process of its own: a large one gives and takes memory for other reasons."""
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_runtime; test_runtime.call_often()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def call_often():
    f = namoo.jit(lambda tree: namoo.tree.map(lambda x: x * 1.5, tree))
    state: Any = {"a": jnp.ones(1000), "b": [Layer(jnp.ones(3), 1.0)], "p": Point(jnp.ones(2), 1)}
    for _ in range(500):
        state = f(state)
    objects, memory = len(gc.get_objects()), resident()
    for _ in range(20_000):
        state = f(state)
    gc.collect()
    assert len(gc.get_objects()) - objects < 200
    # AddressSanitizer keeps what was freed, to see who still uses it.
    assert resident() - memory < 4 << 20 or "ASAN_OPTIONS" in os.environ


FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p
)


def address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def floats(pointer, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (count,))


@FUNCTION
def add_constant(buffers, arena, host):
    """out = a + const, through the arena."""
    scratch = floats(arena, 6)
    scratch[:] = floats(buffers[0], 6) + floats(buffers[1], 6)
    floats(buffers[2], 6)[:] = scratch
    return 0


@FUNCTION
def failing(buffers, arena, host):
    return host or 7


def make_entry(**options) -> Any:
    constant = np.arange(6, dtype=np.float32)
    return native.Entry(
        address(add_constant),
        [((2, 3), np.float32)],
        [((2, 3), np.float32)],
        consts=[constant],
        arena=24,
        keep=add_constant,
        **options,
    )


@pytest.mark.parametrize("quick", [False, True])
def test_an_entry_computes(quick):
    entry = make_entry(quick=quick)
    x = np.ones((2, 3), np.float32)
    for given in (x, np.asfortranarray(x), np.ones((2, 6), np.float32)[:, ::2]):
        [out] = entry([given])
        np.testing.assert_array_equal(out, np.arange(6).reshape(2, 3) + 1)
        assert out.ctypes.data % 64 == 0 and out.flags.owndata and out.flags.writeable
    assert entry.keep is add_constant


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([], ValueError),
        ([np.ones((2, 3), np.float32)] * 2, ValueError),
        ([np.ones((2, 3), np.float64)], ValueError),
        ([np.ones((2, 3), np.int32)], ValueError),
        ([np.ones((2, 4), np.float32)], ValueError),
        ([[1.0]], ValueError),
        (3, TypeError),
    ],
)
def test_an_entry_refuses_other_arrays(values, error):
    with pytest.raises(error):
        make_entry()(values)


def test_an_entry_is_made_of_what_it_needs():
    for arguments, options in [
        ((0, [], []), {}),
        ((address(failing), [], []), {"arena": -1}),
        ((address(failing), [(2, object)], []), {}),
        ((address(failing), [], [((2,), object)]), {}),
        ((address(failing), [], []), {"consts": [np.ones((2, 2)).T]}),
        ((address(failing), [], []), {"consts": [3]}),
        ((address(failing), 3, []), {}),
        ((address(failing), [(2, "f4")], [(2, "f4")]), {"in_place": [(0, 1)]}),
        ((address(failing), [(2, "f4")], [(3, "f4")]), {"in_place": [(0, 0)]}),
        ((address(failing), [(2, "f4")], [(2, "i4")]), {"in_place": [(0, 0)]}),
        ((address(failing), [(2, "f4")], [(2, "f4")] * 2), {"in_place": [(0, 0), (0, 1)]}),
        ((), {}),
    ]:
        with pytest.raises((TypeError, ValueError)):
            native.Entry(*arguments, **options)


def test_a_failure_goes_to_the_handler():
    codes = []

    def handler(code, raised):
        assert raised is None
        codes.append(code)
        raise KeyError("from the handler")

    entry = native.Entry(address(failing), [], [((3,), "f4")], handler=handler, keep=failing)
    with pytest.raises(KeyError, match="from the handler"):
        entry([])
    entry = native.Entry(
        address(failing), [], [], host=9, handler=lambda code, _: codes.append(code)
    )
    with pytest.raises(RuntimeError, match="code 9"):
        entry([])
    assert codes == [7, 9]


def test_an_entry_keeps_nothing_of_a_call():
    entry, x = make_entry(), np.ones((2, 3), np.float32)
    entry([x])
    gc.collect()  # what other tests left has types, too
    before = sys.getrefcount(x), sys.getrefcount(x.dtype), native.pool_info()["in_use"]
    for _ in range(1000):
        entry([x])
    after = sys.getrefcount(x), sys.getrefcount(x.dtype), native.pool_info()["in_use"]
    assert np.abs(np.subtract(after, before)).max() < 10


@pytest.fixture
def limited():
    """The pool, with a small limit for a while."""
    yield native.pool_limit
    native.pool_limit(None)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (1000, 7), (1 << 20,)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "?", "c8", "u2"])
def test_pooled_arrays(shape, dtype):
    array = native.empty(shape, dtype)
    assert array.shape == shape and array.dtype == np.dtype(dtype)
    assert array.ctypes.data % 64 == 0
    array[...] = 1
    assert (array == 1).all()


def test_the_pool_gives_memory_again_and_is_bounded(limited):
    limited(0)
    assert native.pool_info()["cached"] == 0
    limited(1 << 20)
    first = native.empty(1000, "f4")
    place = first.ctypes.data
    del first
    again = native.empty(1001, "f4")
    assert again.ctypes.data == place
    arrays = [native.empty(50_000, "f4") for _ in range(20)]
    used = native.pool_info()["in_use"]
    del arrays, again
    assert native.pool_info()["cached"] <= 1 << 20
    assert native.pool_info()["in_use"] <= used - 20 * 200_000
    large = native.empty(1 << 20, "f4")
    del large
    assert native.pool_info()["cached"] <= 1 << 20


def test_the_pool_keeps_what_was_in_use_together(limited):
    limited(None)
    before = native.pool_info()["in_use"]
    arrays = [native.empty(100 << 20, "u1") for _ in range(4)]
    places = {a.ctypes.data for a in arrays}
    used = native.pool_info()["in_use"] - before
    del arrays
    assert native.pool_info()["cached"] >= used >= 400 << 20
    arrays = [native.empty(100 << 20, "u1") for _ in range(4)]
    assert {a.ctypes.data for a in arrays} == places
    del arrays
    namoo.clear_caches()
    assert native.pool_info()["cached"] <= 256 << 20


def flags_of_memory(address):
    """What the system was told of the memory at an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if limits := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(limits[1], 16) <= address < int(limits[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"nothing at {address:#x}")


large_pages = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="there are no large pages"
)


@large_pages
@pytest.mark.parametrize(("megabytes", "seen"), [(8, [True] * 3), (136, [False, True, True])])
def test_much_scratch_lies_in_large_pages_when_it_is_used_again(megabytes, seen):
    found = []

    @FUNCTION
    def look(buffers, arena, host):
        found.append("hg" in flags_of_memory(arena + (4 << 20)))
        return 0

    native.pool_limit(0)  # memory of the system
    native.pool_limit(None)
    entry = native.Entry(address(look), [], [], arena=megabytes << 20, keep=look)
    for _ in range(3):
        entry([])
    assert found == seen


@large_pages
def test_large_arrays_lie_in_large_pages_and_begin_at_different_lines():
    native.pool_limit(0)  # memory of the system
    native.pool_limit(None)
    arrays = [native.empty(3 << 20, "f4") for _ in range(8)]
    assert all("hg" in flags_of_memory(a.ctypes.data + (4 << 20)) for a in arrays)
    assert len({a.ctypes.data % 4096 for a in arrays}) == len(arrays)


def test_pooled_arrays_can_be_resized():
    array = native.empty(3, "f4")
    array[:] = [1, 2, 3]
    array.resize(1000, refcheck=False)
    assert array[:3].tolist() == [1, 2, 3] and not array[3:].any()


def test_the_pool_refuses_what_it_cannot_hold():
    for shape, dtype, error in [
        ((2,), object, TypeError),
        ((-1,), "f4", ValueError),
        ((1 << 60,), "u1", MemoryError),
    ]:
        with pytest.raises(error):
            native.empty(shape, dtype)


def test_the_pool_serves_threads():
    wrong = []

    def work(number):
        generator = np.random.default_rng(number)
        for _ in range(300):
            held = [native.empty(int(n), "i4") for n in generator.integers(0, 5000, 4)]
            for array in held:
                array[:] = number
            wrong.extend(array for array in held if (array != number).any())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257, 1000])
def test_bits_and_keys_are_those_of_the_reference(keys, n, monkeypatch):
    words = np.random.default_rng(n).integers(0, 2**32, (keys, 2), np.uint32)
    data = words[:, 0] ^ np.uint32(n)
    generator = generators.GENERATORS["threefry2x32"]
    mine = (
        generator.bits(words, n, 32),
        generator.split(words, n),
        generator.fold_in(words, data),
    )
    monkeypatch.setattr(generators, "native", None)
    wanted = (
        generator.bits(words, n, 32),
        generator.split(words, n),
        generator.fold_in(words, data),
    )
    for a, b in zip(mine, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_normal_numbers_are_those_of_the_reference(monkeypatch):
    mine = np.asarray(random.normal(random.key(5), (20_001,)))
    monkeypatch.setattr(generators, "native", None)
    monkeypatch.setattr(erf_inverse, "native", None)
    np.testing.assert_array_equal(mine, np.asarray(random.normal(random.key(5), (20_001,))))


@pytest.mark.parametrize("runtime", [native, None])
@pytest.mark.parametrize(
    "x, y, z, wanted",
    [  # (1 + 2⁻¹²)² is 1 + 2⁻¹¹ + 2⁻²⁴: half-way, until z tells
        (1 + 2**-12, 1 + 2**-12, 2.0**-60, 1 + 2**-11 + 2**-23),
        (1 + 2**-12, 1 + 2**-12, -(2.0**-60), 1 + 2**-11),
        (1 + 2**-12, 1 + 2**-12, 0.0, 1 + 2**-11),
        (3.0, 5.0, -15.0, 0.0),
        (1e30, 1e30, 1.0, np.inf),
    ],
)
def test_a_step_of_a_polynomial_is_rounded_once(monkeypatch, runtime, x, y, z, wanted):
    monkeypatch.setattr(erf_inverse, "native", runtime)
    out = np.empty(3, np.float32)
    with np.errstate(all="ignore"):
        erf_inverse._polynomial(np.array([x, z], np.float32), np.full(3, y, np.float32), out)
    assert out.tolist() == [wanted] * 3


def test_arrays_of_other_types_and_lengths_are_refused():
    keys = np.zeros((1, 2), np.uint32)
    for call in (
        lambda: native.threefry_bits(keys, np.zeros(3, np.float32)),
        lambda: native.threefry_bits(np.zeros(3, np.uint32), np.zeros(3, np.uint32)),
        lambda: native.threefry_split(keys, np.zeros(3, np.uint32)),
        lambda: native.threefry_fold_in(keys, np.zeros(2, np.uint32), np.zeros(2, np.uint32)),
        lambda: native.horner(np.ones(2, "f4"), np.ones(2, "f4"), np.ones(3, "f4")),
        lambda: native.horner(np.ones(2, "f4"), np.ones(4, "f4")[::2], np.ones(2, "f4")),
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            call()


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", "uint8", "float16"])
def test_arrays_have_the_buffer_protocol(dtype):
    x = jnp.ones((2, 3), dtype)
    view: Any = memoryview(x)  # type: ignore[arg-type]
    assert view.readonly and view.shape == (2, 3) and view.nbytes == x.nbytes
    np.testing.assert_array_equal(np.asarray(view), np.asarray(x))
    assert bytes(view) == x.tobytes()
    with pytest.raises(TypeError):  # it asks for memory to write to
        io.BytesIO(b"abcd").readinto(x)  # type: ignore[arg-type]


def test_keys_have_no_buffer():
    with pytest.raises(BufferError, match="key_data"):
        memoryview(random.key(0))  # type: ignore[arg-type]


def test_a_view_keeps_the_memory():
    view = memoryview(jnp.arange(5.0) + 1)  # type: ignore[arg-type]
    gc.collect()
    assert view.tolist() == [1, 2, 3, 4, 5]


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


USE = (
    "import namoo, namoo.numpy as jnp; from namoo._base.runtime import native; "
    "print(native is None, namoo.jit(lambda t: namoo.tree.map(lambda x: x + 1, t))([jnp.ones(2)]))"
)
MISSING = "import sys; sys.modules['namoo._runtime'] = None; "


def test_the_runtime_is_chosen_by_the_environment():
    chosen = run(USE, NAMOO_RUNTIME="python")
    assert chosen.stdout.startswith("True [Array([2., 2.]") and not chosen.stderr
    chosen = run(USE, NAMOO_RUNTIME="native")
    assert chosen.stdout.startswith("False [Array([2., 2.]")
    assert "NAMOO_RUNTIME is 'native' or 'python'" in run(USE, NAMOO_RUNTIME="rust").stderr


def test_a_missing_runtime_is_told_once():
    missing = run(MISSING + USE + "; import namoo.tree_util", NAMOO_RUNTIME="")
    assert missing.stdout.startswith("True [Array([2., 2.]")
    assert missing.stderr.count("runs without its C++ part") == 1
    assert "ModuleNotFoundError" in run(MISSING + USE, NAMOO_RUNTIME="native").stderr


def test_a_runtime_built_from_other_sources_is_not_used():
    other = "import sys, types; sys.modules['namoo._runtime'] = types.ModuleType('_runtime'); "
    found = run(other + USE, NAMOO_RUNTIME="")
    assert found.stdout.startswith("True [Array([2., 2.]")
    assert "built from other sources" in found.stderr
    assert "built from other sources" in run(other + USE, NAMOO_RUNTIME="native").stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(), (0,), (7,), (8,), (2, 3), (128,), (5, 129), (8, 8, 64)], ids=str
)
def test_total_adds_in_the_order_of_numpy(dtype, shape):
    rng = np.random.default_rng(len(shape))
    for _ in range(20):
        x = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape), dtype)
        found = native.total(x)
        assert (found.shape, found.dtype) == ((), x.dtype)
        assert found.tobytes() == np.asarray(np.add.reduce(x, None)).tobytes()


@pytest.mark.parametrize(
    "x",
    [
        np.ones((4, 4), np.float32)[:, 1],
        np.ones((4, 4), np.float32).T,
        np.ones(3, ">f4"),
        np.arange(3),
        np.ones(3, np.float16),
        np.ones(5000, np.float32),
        np.ma.ones(3),
        [1.0],
    ],
    ids=["strided", "transposed", "swapped", "integers", "half", "large", "a subclass", "a list"],
)
def test_total_leaves_the_rest_to_numpy(x):
    assert native.total(x) is None


def test_total_has_no_warnings():
    assert np.isnan(native.total(np.array([np.inf, -np.inf])))
    assert np.isinf(jnp.full(3, 3e38).sum())


DAEMONS = """
import logging, threading, time
import namoo, namoo.numpy as jnp

logging.getLogger("namoo").setLevel(logging.ERROR)  # not about functions that are traced again

x = jnp.ones(10_000)
loop = namoo.jit(lambda x: namoo.lax.fori_loop(0, 300, lambda i, c: jnp.sin(c), x))
host = namoo.jit(lambda x: namoo.pure_callback(lambda a: (time.sleep(0.001), a)[1], x, x))

def compile_one():
    c = time.time()
    namoo.jit(lambda x: x * c)(jnp.ones(3))

def for_ever(call):
    while True:
        call()

calls = [lambda: loop(x), lambda: host(x), compile_one, lambda: namoo.tree.map(jnp.sin, [x] * 9)]
loop(x), host(x)
for call in calls:
    threading.Thread(target=for_ever, args=(call,), daemon=True).start()
time.sleep(0.5)
"""

CHILDREN = (
    DAEMONS
    + """
import os, signal
big = jnp.ones(10**6)
total = float(namoo.jit(jnp.sum)(big))
for number in range(8):
    child = os.fork()
    if not child:
        signal.alarm(60)
        good = float(namoo.jit(jnp.sum)(big)) == total
        good = good and namoo.jit(lambda x: x * 2 + number)(1) == 2 + number
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
)


@pytest.mark.parametrize("script", [DAEMONS, CHILDREN], ids=["end", "fork"])
def test_threads_in_programs_disturb_neither_the_end_nor_a_fork(script):
    if "fork" in script and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    # From 3.12 on, Python itself warns of every fork of a process with threads.
    done = run(script, NAMOO_CACHE="off", PYTHONWARNINGS="ignore::DeprecationWarning")
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_another_library_was_calling_compute_as_all_others():
    """XLA switches subnormal numbers off while it calls back, and new threads inherit that."""
    program = """
import numpy as np, jax, namoo, namoo.numpy as jnp

def product(scale):
    return np.unique(namoo.jit(lambda x: x * scale)(jnp.full((1_000_000,), 1e-38)))

def inside(x):
    product(2e-3)  # starts the threads
    return x

namoo.set_num_threads(2)
jax.jit(lambda x: jax.pure_callback(inside, x, x))(np.float32(1)).block_until_ready()
print(*(product(k * 1e-3).size for k in range(1, 6)))
"""
    assert run(program, NAMOO_RUNTIME="native").stdout.split() == ["1"] * 5
