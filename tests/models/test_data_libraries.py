"""Loaders over what other libraries have, where they are installed: each as it is."""

import itertools

import numpy as np
import pytest

from namoo import data, random, tree

SIZE = 13
X = np.arange(SIZE * 2, dtype=np.float32).reshape(SIZE, 2)
Y = np.arange(SIZE) % 5
ROWS = [{"x": x, "y": y} for x, y in zip(X.tolist(), Y.tolist(), strict=True)]


class Source:
    """A random-access source as Grain describes it."""

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return {"x": X[index], "y": Y[index]}


def hugging_face(_):
    return pytest.importorskip("datasets").Dataset.from_list(ROWS)


def in_hdf5(folder):
    file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
    file["x"], file["y"] = X, Y
    return file


def in_zarr(folder):
    zarr = pytest.importorskip("zarr")
    return {
        "x": zarr.array(X, chunks=(5, 2), store=str(folder / "x")),
        "y": zarr.array(Y, chunks=(4,), store=str(folder / "y")),
    }


def in_archive(folder):
    np.savez(folder / "x.npz", x=X, y=Y)
    return np.load(folder / "x.npz")


def tensors(_):
    torch = pytest.importorskip("torch")
    return {"x": torch.tensor(X), "y": torch.tensor(Y)}


def array_records(folder):
    module = pytest.importorskip("array_record.python.array_record_module")
    grain = pytest.importorskip("grain.python")
    path = str(folder / "x.array_record")
    writer = module.ArrayRecordWriter(path, "group_size:1")
    for x, y in zip(X, Y, strict=True):
        writer.write(x.tobytes() + bytes([y]))
    writer.close()
    return grain.MapDataset.source(grain.ArrayRecordDataSource([path])).map(
        lambda record: {"x": np.frombuffer(record[:8], np.float32), "y": record[8]}
    )


SOURCES = {
    "datasets": hugging_face,
    "datasets of numpy": lambda folder: hugging_face(folder).with_format("numpy"),
    "datasets of torch": lambda folder: (
        pytest.importorskip("torch") and hugging_face(folder).with_format("torch")
    ),
    "datasets streamed": lambda folder: hugging_face(folder).to_iterable_dataset(),
    "grain": lambda _: pytest.importorskip("grain").MapDataset.source(Source()),
    "grain mapped": lambda _: (
        pytest.importorskip("grain").MapDataset.source(Source()).map(lambda row: dict(row))
    ),
    "grain streamed": lambda _: (
        pytest.importorskip("grain").MapDataset.source(Source()).to_iter_dataset()
    ),
    "grain records": array_records,
    "tensors": tensors,
    "hdf5": in_hdf5,
    "zarr": in_zarr,
    "archive": in_archive,
    "columns": lambda _: dict(pytest.importorskip("pandas").DataFrame({"x": X[:, 0], "y": Y})),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_as_it_is(name, workers, tmp_path):
    source = SOURCES[name](tmp_path)

    def loader():
        key = None if "streamed" in name else random.key(0)
        return data.Loader(source, 3, workers=workers, key=key)

    first = loader()
    found = list(itertools.islice(first, 2))
    state = first.state()
    numbers = np.arange(SIZE) if "streamed" in name else data.permutation(random.key(0), 0, SIZE)
    for batch, start in zip(found, (0, 3), strict=True):
        rows = numbers[start : start + 3]
        np.testing.assert_array_equal(batch["x"], X[rows, 0] if name == "columns" else X[rows])
        np.testing.assert_array_equal(batch["y"], Y[rows])
    second = loader()
    second.restore(state)
    tree.map(np.testing.assert_array_equal, list(second), list(loader())[2:])
