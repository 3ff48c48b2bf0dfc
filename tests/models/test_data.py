"""Loaders: which examples in which order, positions, workers, and what goes wrong in them."""

# Wrong arguments are given on purpose.
# pyright: reportArgumentType=false

import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections import UserDict

import ml_dtypes
import numpy as np
import pytest

import namoo.numpy as jnp
from namoo import data, random, struct, tree
from namoo.data import order, sources

KEY = random.key(7)


def ids(batches) -> list[list[int]]:
    return [np.asarray(batch).tolist() for batch in batches]


def flat(batches) -> list[int]:
    return [i for batch in ids(batches) for i in batch]


class Dataset:
    """As PyTorch, Hugging Face and Grain have it: a length, and examples by number."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        assert type(index) is int
        return {"x": np.full(2, index), "y": index}


class Many(Dataset):
    """With PyTorch's way to read many examples at once."""

    def __getitem__(self, index):
        raise AssertionError

    def __getitems__(self, indices):
        return [Dataset.__getitem__(self, i) for i in indices]


class InFile:
    """As HDF5 has arrays: rows by increasing numbers only, each once, and nothing at large."""

    chunks, ndim, dtype, shape = (2, 2), 2, np.dtype(int), (10, 2)

    def __getitem__(self, numbers):
        assert np.all(np.diff(numbers) > 0)
        return np.stack([numbers, -numbers], 1)


class OnlyIterates:
    """As PyTorch's IterableDataset: `[i]` is there, and is not."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        raise NotImplementedError

    def __iter__(self):
        return iter(range(5))


@struct.dataclass
class Pair:
    x: np.ndarray
    y: np.ndarray


X = np.arange(10)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (X, [0, 1, 2]),
        (jnp.arange(10), [0, 1, 2]),
        ((X, X[:, None]), (np.arange(3), np.arange(3)[:, None])),
        ({"a": X, "b": (X * 2,)}, {"a": np.arange(3), "b": (np.arange(3) * 2,)}),
        (Pair(X, X + 1), Pair(np.arange(3), np.arange(1, 4))),
        (np.asfortranarray(np.arange(20).reshape(10, 2)), [[0, 1], [2, 3], [4, 5]]),
        (list(range(10)), [0, 1, 2]),
        ([np.ones(2)] * 4, np.ones((3, 2))),
        ((1, 2, 3), [1, 2, 3]),
        (range(5), [0, 1, 2]),
        (Dataset(5), {"x": [[0, 0], [1, 1], [2, 2]], "y": [0, 1, 2]}),
        (Many(5), {"x": [[0, 0], [1, 1], [2, 2]], "y": [0, 1, 2]}),
        (OnlyIterates(), [0, 1, 2]),
        (lambda: iter(range(5)), [0, 1, 2]),
        ([{"ids": [i, i]} for i in range(3)], {"ids": [[0, 0], [1, 1], [2, 2]]}),
        ([("a", 1), ("b", 2), ("c", 3)], (["a", "b", "c"], [1, 2, 3])),
        ((InFile(), X), (np.array([[0, 0], [1, -1], [2, -2]]), np.arange(3))),
        (data.windows(InFile(), 2, 4), [[[0, 0], [1, -1]], [[4, -4], [5, -5]], [[8, -8], [9, -9]]]),
        (UserDict({"a": X}), {"a": np.arange(3)}),
        (data.windows(X, 4, 3), [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]),
        (data.windows({"t": X}, 2), {"t": [[0, 1], [1, 2], [2, 3]]}),
    ],
)
def test_sources(source, expected):
    batch = next(iter(data.Loader(source, 3)))
    is_leaf = lambda x: isinstance(x, list)  # noqa: E731
    tree.map(np.testing.assert_array_equal, tree.map(np.asarray, expected, is_leaf=is_leaf), batch)


def tensors():
    """What PyTorch has for arrays, with what NumPy has for the same."""
    torch = pytest.importorskip("torch")
    x = np.arange(6, dtype=np.float32)
    yield torch.tensor(x), x
    yield torch.tensor(x, requires_grad=True), x
    yield torch.tensor(x).to(torch.bfloat16)[::2], x.astype(ml_dtypes.bfloat16)[::2]
    yield torch.tensor(x).to(torch.float8_e5m2), x.astype(ml_dtypes.float8_e5m2)


def test_tensors_and_datasets_of_pytorch():
    from_torch = pytest.importorskip("torch.utils.data")
    for given, expected in tensors():
        pair = given, given.detach()
        columns = from_torch.TensorDataset(*pair)
        for source in (pair, columns, from_torch.Subset(columns, range(len(given)))):
            (found, _), *_ = data.Loader(source, 3)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected[:3])

    class Stream(from_torch.IterableDataset):
        def __iter__(self):
            return ({"x": given} for given, _ in tensors())

    assert next(iter(data.Loader(Stream(), 1)))["x"].shape == (1, 6)


def test_batches_of_arrays_are_copies():
    x = np.zeros(4)
    for batch in data.Loader(x, 2):
        batch += 1
    assert not x.any()


def test_arrays_in_files_are_read_where_they_are_asked_for():
    weights = np.arange(10) // 8
    loader = data.Loader(InFile(), 4, key=KEY, weights=weights, samples=8)
    assert flat(batch[:, 0] for batch in loader) == order.weighted(KEY, 0, weights, 8).tolist()
    mapped_one = data.Loader(InFile(), 5, map=lambda row: row[1])
    assert flat(mapped_one) == list(range(0, -10, -1))


def test_mapped_files(tmp_path):
    table = np.arange(20).reshape(10, 2)
    np.save(tmp_path / "x.npy", table)
    table.astype(np.uint16).tofile(tmp_path / "x.bin")
    npy = data.mapped(tmp_path / "x.npy")
    raw = data.mapped(tmp_path / "x.bin", np.uint16, (10, 2))
    assert isinstance(npy, np.memmap) and isinstance(raw, np.memmap)
    for x, y in data.Loader((npy, raw), 5, key=KEY):
        np.testing.assert_array_equal(x, y)
    assert data.mapped(tmp_path / "x.bin", np.uint16).shape == (20,)
    with pytest.raises(ValueError, match="bare numbers"):
        data.mapped(tmp_path / "x.bin")


def test_the_order_is_that_of_the_permutation():
    loader = data.Loader(X, 5, key=KEY)
    for epoch in range(3):
        expected = random.permutation(random.fold_in(KEY, epoch), 10)
        assert flat(loader) == np.asarray(expected).tolist()
    raw = random.key_data(KEY)
    assert flat(data.Loader(X, 5, key=raw)) == flat(data.Loader(X, 5, key=KEY))
    assert flat(data.Loader(X, 5, key=KEY, shuffle=False)) == list(range(10))


@pytest.mark.parametrize("size", [0, 1, 5, 7, 8, 12])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("last", ["drop", "keep", "pad"])
@pytest.mark.parametrize("kind", ["array", "stream"])
def test_shards_and_last_batches(size, count, last, kind):
    source = np.arange(size) if kind == "array" else (lambda: range(size))
    shards = [
        list(data.Loader(source, 2, last=last, shard=(index, count))) for index in range(count)
    ]
    if last == "pad":
        assert all(x.shape == mask.shape == (2,) for shard in shards for x, mask in shard)
        seen = [x[mask].tolist() for shard in shards for x, mask in shard]
        assert all(np.all((x >= 0) & (x < size)) for shard in shards for x, _ in shard)
    else:
        seen = [x.tolist() for shard in shards for x in shard]
    lengths = {len(shard) for shard in shards}
    if last == "drop":
        assert lengths == {size // count // 2} and all(len(x) == 2 for x in seen)
    else:
        assert sorted(sum(seen, [])) == list(range(size))
    if last == "pad":
        each = -(-size // count)
        assert lengths == {-(-each // 2)}
    if kind == "array":
        for index, shard in enumerate(shards):
            loader = data.Loader(source, 2, last=last, shard=(index, count))
            assert len(loader) == len(shard)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 64, 1000, 4097])
def test_an_order_by_parts_has_every_number_once(size):
    found = order.Feistel(KEY, size)(np.arange(size))
    assert sorted(found.tolist()) == list(range(size))
    for part in (slice(None, None, 3), slice(5, 6)):
        np.testing.assert_array_equal(found[part], order.Feistel(KEY, size)(np.arange(size)[part]))


def test_an_order_by_parts_is_random():
    # 5 numbers have 120 orders: each should come about 20 times in 2400, by chi-squared.
    made = [order.Feistel(key, 5)(np.arange(5)) for key in random.split(KEY, 2400)]
    counts = np.unique(np.stack(made) @ 10 ** np.arange(5), return_counts=True)[1]
    assert len(counts) == 120
    assert abs(np.sum((counts - 20) ** 2 / 20) - 119) < 5 * (2 * 119) ** 0.5
    # And neighbours in a large one are far apart, without a trend.
    large = order.Feistel(KEY, 10**12)(np.arange(20_000)) / 10**12
    assert abs(np.corrcoef(large[1:], large[:-1])[0, 1]) < 0.04
    assert np.histogram(large, 10, (0, 1))[0] == pytest.approx(2000, abs=250)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("size", [2**20, 2**20 + 1, 10**12, 2**63 - 1])
def test_large_sources(size, shuffle):
    """Neither the order nor the source is ever in memory."""
    at = {"epoch": 3, "batch": size // 64 - 2, "batch_size": 32, "shards": 2, "key": KEY}
    found = []
    for index in range(2):
        options = {"key": KEY, "shuffle": shuffle, "shard": (index, 2), "last": "drop"}
        loader = data.Loader(range(size), 32, **options)
        loader.restore(at)
        found.append(flat(loader))
    places = np.arange(64 * (size // 64 - 2), 64 * (size // 64))
    if not shuffle:
        expected = places
    elif size < 2**21:
        expected = data.permutation(KEY, 3, size)[places]
    else:
        expected = order.Feistel(random.fold_in(KEY, 3), size)(places)
    assert found == [expected[0::2].tolist(), expected[1::2].tolist()]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 10),
        ({"key": KEY, "shuffle": False}, 10),
        ({"key": KEY}, 8),
        ({"key": KEY, "weights": np.ones(10)}, 8),
        ({"last": "drop"}, 8),
        ({"key": KEY, "last": "keep"}, 10),
    ],
)
@pytest.mark.parametrize("source", [X, list(X)])
def test_a_fixed_order_keeps_the_last_batch_and_a_random_one_drops_it(options, count, source):
    assert len(flat(data.Loader(source, 4, **options))) == count


def test_shards_of_a_shuffled_epoch_are_disjoint():
    shards = [flat(data.Loader(X, 1, key=KEY, shard=(i, 3), last="keep")) for i in range(3)]
    assert sorted(sum(shards, [])) == list(range(10))
    assert sum(shards, []) != list(range(10))


@pytest.mark.parametrize("size", [3, 20, 100])
def test_a_stream_is_shuffled_in_a_buffer(size):
    make = lambda: data.Loader(lambda: range(50), 5, key=KEY, shuffle_buffer=size)  # noqa: E731
    loader = make()
    first, second = flat(loader), flat(loader)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second and first != list(range(50)) and first == flat(make())
    # An example leaves the buffer at the earliest when it has entered it.
    assert all(i <= place + size for place, i in enumerate(first))


def test_weighted_sampling():
    weights = np.array([0.0, 1.0, 3.0, 6.0])
    drawn = data.weighted(KEY, 0, weights, samples=20_000)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, weights / 10, atol=0.015)
    alone = data.weighted(KEY, 0, weights, replace=False)
    assert sorted(alone.tolist()) == [1, 2, 3]
    first = [data.weighted(KEY, i, weights, 1, replace=False)[0] for i in range(400)]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 400, weights / 10, atol=0.08)
    loader = data.Loader(np.arange(4), 2, key=KEY, weights=weights, samples=6)
    assert len(loader) == 3
    assert flat(loader) == data.weighted(KEY, 0, weights, 6).tolist()
    assert flat(loader) == data.weighted(KEY, 1, weights, 6).tolist()


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        ([1.0, -1.0], {}, "finite number >= 0"),
        ([1.0, np.nan], {}, "finite number >= 0"),
        ([0.0, 0.0], {}, "all weights are zero"),
        ([0.0, 1.0], {"samples": 2, "replace": False}, "without replacement"),
    ],
)
def test_weights_that_cannot_be(weights, options, message):
    with pytest.raises(ValueError, match=message):
        data.weighted(KEY, 0, weights, **options)


def double(x):
    return x * 2


def noisy(x, *, key):
    return x + random.uniform(key)


def noisy_batch(batch, key):
    return batch + np.asarray(random.normal(key, batch.shape))


LOADERS = {
    "array": lambda **k: data.Loader(np.arange(23.0), 4, key=KEY, **k),
    "padded": lambda **k: data.Loader(np.arange(23.0), 4, key=KEY, last="pad", **k),
    "stream": lambda **k: data.Loader(range_of_23, 4, key=KEY, shuffle_buffer=8, **k),
    "sharded": lambda **k: data.Loader(np.arange(23.0), 4, key=KEY, shard=(1, 2), **k),
    "mapped": lambda **k: data.Loader(list(range(23)), 4, key=KEY, map=noisy, last="keep", **k),
    "batch_map": lambda **k: data.Loader(np.arange(23.0), 4, key=KEY, batch_map=noisy_batch, **k),
    "weighted": lambda **k: data.Loader(np.arange(3.0), 1, key=KEY, weights=[1, 2, 3], **k),
}


def range_of_23():
    return range(23)


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        tree.map(np.testing.assert_array_equal, x, y)


def test_every_example_has_a_key_of_its_own():
    seen = []
    for index in range(2):
        loader = data.Loader(
            list(range(8)), 2, key=KEY, map=lambda x, key: random.bits(key), shard=(index, 2)
        )
        seen += flat(loader.steps(4))
    assert len(set(seen)) == len(seen) == 16


def test_the_places_of_a_buffer_do_not_repeat():
    drawn = np.fromiter(itertools.islice(order._slots(100, KEY), 8192), int)
    assert (drawn[:4096] != drawn[4096:]).any()
    np.testing.assert_allclose(np.bincount(drawn, minlength=100) / 8192, 0.01, atol=0.005)


def test_a_mapped_file_is_sent_as_its_name(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100_000))
    whole = sources.Arrays({"a": data.mapped(tmp_path / "x.npy"), "b": np.arange(100_000)[::-1]})
    alone = pickle.dumps(sources.Arrays(data.mapped(tmp_path / "x.npy")))
    assert len(alone) < 2000
    where = np.array([3, 99_999])
    for source in (whole, sources.Arrays(data.mapped(tmp_path / "x.npy")[10:])):
        again = pickle.loads(pickle.dumps(source))
        where = where % len(source)
        tree.map(np.testing.assert_array_equal, source.batch(where), again.batch(where))


def test_what_is_no_longer_wanted_is_not_made():
    made = []

    def slowly(x):
        time.sleep(0.005)
        made.append(x)
        return x

    for source in (list(range(100)), lambda: range(100)):
        made.clear()
        with data.Loader(source, 1, map=slowly, workers=1, prefetch=60) as loader:
            for _ in loader:
                break
            for _ in loader:
                break
            assert len(made) < 30


@pytest.mark.parametrize("name", LOADERS)
def test_the_order_is_the_same_for_any_number_of_workers(name):
    make = LOADERS[name]
    expected = list(make().steps(9))
    for workers in (1, 3):
        with make(workers=workers, prefetch=workers) as loader:
            same(expected, list(loader.steps(9)))


def test_processes_make_the_same_batches(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(23.0))
    source = (np.arange(23.0), data.mapped(tmp_path / "x.npy"))
    for options in ({"batch_map": first_noisy}, {"map": None}):
        make = lambda options=options, **k: data.Loader(source, 4, key=KEY, **options, **k)  # noqa: E731
        with make(workers=1, worker_kind="process") as loader:
            same(list(make().steps(7)), list(loader.steps(7)))


def first_noisy(batch, key):
    return batch[0] + np.asarray(random.normal(key, batch[0].shape)), batch[1]


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_restored_loader_continues_exactly(name, workers):
    make = LOADERS[name]
    expected = list(make().steps(12))
    for stop in (0, 1, 2, 3, 5, 6, 11):
        loader = make(workers=workers)
        began = [batch for batch in loader.steps(stop)] if stop else []
        # As a checkpoint gives it back: numbers may be arrays.
        state = {k: v if k == "key" else np.int64(v) for k, v in loader.state().items()}
        other = make(workers=workers)
        other.restore(state)
        same(expected, began + list(other.steps(12 - stop)))
        loader.close()
        other.close()


def test_the_position_counts_what_was_received():
    loader = data.Loader(X, 2, workers=2, prefetch=4)
    positions = [(loader.state()["epoch"], loader.state()["batch"]) for _ in loader]
    assert positions == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 0)]
    for _ in loader:
        break
    assert loader.state()["batch"] == 1 and ids(loader)[0] == [2, 3]
    assert set(tree.leaves({**loader.state(), "key": 0})) <= set(range(10))
    loader.close()


def test_a_state_brings_its_key():
    loader = data.Loader(X, 5, key=KEY)
    next(iter(loader))
    other = data.Loader(X, 5, key=random.key(99))
    other.restore(loader.state())
    same(list(loader), list(other))


def test_a_loop_that_was_overtaken_says_so():
    loader = data.Loader(X, 2)
    first, second = iter(loader), iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="one position"):
        next(first)
    loader.restore(loader.state())
    with pytest.raises(RuntimeError, match="one position"):
        next(second)


def fails_at_5(x):
    if x == 5:
        raise KeyError("the fifth example is broken")
    return x


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a}-{b}")


def odd(x):
    raise Odd("one", "two")


def dies(x):
    os._exit(3)


@pytest.mark.parametrize("source", [list(range(8)), range_of_23])
@pytest.mark.parametrize("options", [{}, {"workers": 1}, {"workers": 3}])
def test_errors_arrive_in_their_place_with_their_traceback(source, options):
    loader = data.Loader(source, 2, map=fails_at_5, **options)
    seen = []
    with pytest.raises(KeyError, match="fifth") as caught:
        for batch in loader:
            seen.append(batch.tolist())
    assert seen == [[0, 1], [2, 3]] and loader.state()["batch"] == 2
    text = "".join(traceback.format_exception(caught.value))
    assert "in fails_at_5" in text and "batch 2 of epoch 0" in text
    loader.close()


def test_errors_of_processes():
    with data.Loader(list(range(8)), 2, map=fails_at_5, workers=1, worker_kind="process") as loader:
        with pytest.raises(KeyError, match="fifth") as caught:
            list(loader)
        assert "in fails_at_5" in "".join(traceback.format_exception(caught.value))
    with data.Loader([1], 1, map=odd, workers=1, worker_kind="process") as loader:
        with pytest.raises(RuntimeError, match="(?s)Odd.*in odd"):
            list(loader)
    with data.Loader([1], 1, map=dies, workers=1, worker_kind="process") as loader:
        with pytest.raises(RuntimeError, match="ended before its work was done"):
            list(loader)
    with pytest.raises(TypeError, match="worker_kind='thread'"):
        list(data.Loader([1], 1, map=lambda x: x, workers=1, worker_kind="process"))


def test_an_error_while_reading_a_stream():
    def broken():
        yield from (1, 2, 3)
        raise OSError("the disk is gone")

    for workers in (0, 2):
        loader = data.Loader(broken, 2, workers=workers)
        seen = []
        with pytest.raises(OSError, match="disk"):
            for batch in loader:
                seen.append(batch.tolist())
        assert seen == [[1, 2]]
        loader.close()


def test_no_thread_stays():
    def names():
        return [t.name for t in threading.enumerate() if t.name.startswith("namoo-data")]

    loader = data.Loader(X, 2, workers=3)
    for _ in loader:
        break
    list(loader)
    loader.close()
    other = data.Loader(X, 2, workers=3)
    next(iter(other))
    del other
    ends = time.monotonic() + 60
    while names() and time.monotonic() < ends:
        time.sleep(0.01)
    assert not names()
    assert ids(loader)[0] == [0, 1]
    loader.close()


def test_a_program_ends_though_its_loader_is_under_way():
    code = (
        "import numpy as np\n"
        "from namoo import data\n"
        "if __name__ == '__main__':\n"
        "    for kind in ('thread', 'process'):\n"
        "        loader = data.Loader(np.arange(100), 2, workers=2, worker_kind=kind)\n"
        "        print(next(iter(loader)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["[0", "1]"] * 2 and not run.stderr


def test_workers_end_with_a_program_that_is_killed():
    code = (
        "import numpy as np, time\n"
        "from namoo import data\n"
        "if __name__ == '__main__':\n"
        "    loader = data.Loader(np.arange(100), 2, workers=2, worker_kind='process')\n"
        "    print(next(iter(loader)), flush=True)\n"
        "    time.sleep(100)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None and run.stdout.readline() == b"[0 1]\n"
        run.kill()
        # They have its output too: while one of them lives, it is open.
        run.communicate(timeout=90)


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (X, {"batch_size": 0}, ValueError, "batch_size"),
        (X, {"last": "fill"}, ValueError, "last must be"),
        (X, {"shard": (2, 2)}, ValueError, "shard"),
        (X, {"worker_kind": "fiber"}, ValueError, "worker_kind"),
        (X, {"workers": -1}, ValueError, "workers"),
        (X, {"prefetch": 0}, ValueError, "prefetch"),
        (X, {"batch_size": 2.5}, TypeError, "integer"),
        (X, {"key": 0}, TypeError, "must be a random key, not 0"),
        (X, {"shuffle": True}, ValueError, "need a key"),
        (X, {"map": noisy}, ValueError, "need a key"),
        (X, {"key": KEY, "shuffle_buffer": 3}, ValueError, "streams only"),
        (X, {"key": KEY, "weights": [1.0]}, ValueError, "each of 10"),
        (X, {"key": KEY, "weights": X, "shuffle": True}, ValueError, "leave shuffle out"),
        (X, {"samples": 3}, ValueError, "give weights"),
        (range_of_23, {"key": KEY, "shuffle": True}, ValueError, "shuffle_buffer"),
        (range_of_23, {"key": KEY, "weights": X}, ValueError, "not a stream"),
        ((X, X[:4]), {}, ValueError, "0 has 10, 1 has 4"),
        ({"a": 1}, {}, TypeError, "Every leaf"),
        ({"train": [1], "test": [2]}, {}, TypeError, "give one: source\\['train'\\]"),
        ("text", {}, TypeError, "a loader reads"),
        (3, {}, TypeError, "cannot read from int"),
    ],
)
def test_arguments_that_cannot_be(source, options, error, message):
    with pytest.raises(error, match=message):
        data.Loader(source, **{"batch_size": 2, **options})


def test_other_errors():
    with pytest.raises(ValueError, match=r"at x: \(1,\) and \(2,\)"):
        list(data.Loader([{"x": np.ones(1)}, {"x": np.ones(2)}], 2))
    with pytest.raises(TypeError, match="a object cannot be part of a batch"):
        list(data.Loader([object()], 1))
    with pytest.raises(ValueError, match="expected a dict") as caught:
        list(data.Loader([{"x": 1}, None], 2))
    assert "to_iter_dataset" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="no batch of 20"):
        list(data.Loader(X, 20, last="drop").steps(1))
    with pytest.raises(TypeError, match="no length"):
        len(data.Loader(range_of_23, 2))
    with pytest.raises(ValueError, match="batch_size 2"):
        data.Loader(X, 3).restore(data.Loader(X, 2).state())
    with pytest.raises(ValueError, match="lacks .*'shards'.* and has .*'epoch'"):
        data.Loader(X, 3).restore({"epoch": 3})
    once = data.Loader(iter(range(4)), 2)
    assert ids(once) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="read only once"):
        list(once)
    assert ids(data.Loader(X, 5, map=double)) == [[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]]
    assert ids(data.Loader([[1], [2, 3]], 2, collate=lambda xs: [len(x) for x in xs])) == [[1, 2]]


def test_digits_come_with_the_package():
    train, test = data.digits()
    for (images, labels), count in ((train, 2000), (test, 500)):
        assert images.shape == (count, 28, 28) and images.dtype == np.float32
        assert labels.shape == (count,) and labels.dtype == np.int32
        assert images.min() == 0.0 and images.max() == 1.0
        assert set(labels.tolist()) == set(range(10))
    # No image is in both sets.
    seen = {image.tobytes() for image in train[0]}
    assert not any(image.tobytes() in seen for image in test[0])
