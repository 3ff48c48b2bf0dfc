"""What notebooks, rich and treescope show of arrays, trees and the parts of a run."""

import functools
import re

import numpy as np
import pytest
from rich.pretty import pretty_repr

import namoo
import namoo.numpy as jnp
from namoo import data, nn, train, tree
from namoo._base.pictures import heat_map, histogram, png

X = jnp.linspace(-1, 1, 600).reshape(20, 30)
MODEL = nn.MLP(3, 1, 4, 1, key=namoo.random.key(0))
CPU = namoo.sharding.SingleDeviceSharding(namoo.devices()[0])


@functools.cache
def explained():
    def f(x):
        return x + 1

    jitted = namoo.jit(f)
    jitted(jnp.zeros(2))
    jitted(jnp.zeros(3))
    return jitted.explain()


def logger():
    log = train.Logger(kinds=[])
    log(1, loss=2.0)
    log(2, loss=1.0, val_loss=1.5)
    return log


SHOWN = {
    "a matrix": (lambda: X, ["float32[20,30]", "from -1 to 1", "<rect", "data:image/png"]),
    "a vector": (lambda: jnp.arange(100), ["int32[100]", "mean 49.5", "<rect"]),
    "a small matrix": (lambda: jnp.eye(2), ["float32[2,2]", "<td>1</td><td>0</td>"]),
    "nan and inf": (
        lambda: X.at[0, 0].set(jnp.nan).at[0, 1].set(jnp.inf),
        ["1 nan", "1 inf", "<rect"],
    ),
    "all nan": (lambda: jnp.full(30, jnp.nan), ["30 nan"]),
    "complex": (lambda: X.astype(complex), ["complex64[20,30]", "norm"]),
    "bfloat16": (lambda: X.astype(jnp.bfloat16), ["bfloat16[20,30]", "<rect"]),
    "four axes": (lambda: jnp.ones((2, 3, 4, 5)), ["float32[2,3,4,5]", "mean 1"]),
    "large": (lambda: jnp.zeros((1200, 1000)), ["sampled: 1 of 2 elements", "data:image/png"]),
    "a model": (lambda: MODEL, ["MLP", "21 parameters", "f32[4,3]", "<details open>"]),
    "a tree": (
        lambda: tree.summary({"w": X, "layers": [jnp.ones(4)]}),
        ["dict", "604 parameters", "layers"],
    ),
    "types": (lambda: tree.summary({"w": namoo.ShapeDtypeStruct((2,), jnp.float32)}), ["f32[2]"]),
    "layers": (lambda: tree.summary(MODEL, jnp.ones(3)), ["Linear", "layers/0", "f32[4]"]),
    "explain": (explained, ["now f32[3] and before f32[2]", "traced in", "<b>f</b>"]),
    "explain all": (namoo.explain, ["traced in"]),
    "a sharding": (lambda: CPU, ["SingleDeviceSharding", "CPU 0"]),
    "a logger": (logger, ["<figure", "best 1 at step 2"]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_show(name):
    make, parts = SHOWN[name]
    explained()
    page = make()._repr_html_()
    assert [part for part in parts if part not in page] == []
    assert page.startswith('<div class="namoo"><style>') and page.endswith("</div>")
    assert not re.search(r"https?:|<script src|<link|@import|url\(", page)


@pytest.mark.parametrize(
    "x",
    [jnp.ones(3), jnp.float32(1), namoo.random.key(0), jnp.array([True] * 50), jnp.zeros((0, 3))],
)
def test_notebooks_print_small_arrays_as_text(x):
    assert x._repr_html_() is None


def test_a_traced_array_has_no_picture():
    namoo.jit(lambda x: x if not hasattr(x, "_repr_html_") else 1 / 0)(X)


def test_histograms_count_all_values():
    counts = re.findall(r"<title>(\d+) from", histogram(np.asarray(X).ravel()))
    assert sum(map(int, counts)) == X.size


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (500, 2), (300, 300)])
def test_heat_maps_are_small(shape):
    page = heat_map(np.random.default_rng(0).normal(size=shape))
    assert len(page) < 60_000
    width, height = map(int, re.findall(r'(?:width|height)="(\d+)"', page))
    assert width <= 384 and height <= 384


def test_images_are_those_of_another_reader(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    colors = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    (tmp_path / "a.png").write_bytes(png(colors))
    found = image.imread(tmp_path / "a.png")
    np.testing.assert_array_equal(np.rint(found * 255).astype(np.uint8), colors)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (logger, "<Logger of loss, val_loss: 2 rows, the last at step 2>"),
        (lambda: train.Logger(kinds=[]), "<Logger of nothing: 0 rows>"),
        (
            lambda: data.Loader(np.arange(10), 4, shard=(1, 2), workers=2),
            "<Loader of 10 examples in batches of 4, shard 1 of 2, 2 thread workers, "
            "at batch 0 of 2 of epoch 0>",
        ),
        (
            lambda: data.Loader(iter(range(3)), 2),
            "<Loader of a stream in batches of 2, at batch 0 of epoch 0>",
        ),
        (
            lambda: namoo.jit(lambda x, y: x @ y).lower(X, X.T).compile(),
            "<Compiled <lambda>: f32[20,30], f32[30,20] -> f32[20,20]",
        ),
    ],
)  # fmt: skip
def test_what_they_hold(make, text):
    assert repr(make()).startswith(text)


def test_rich_shows_the_fields_of_a_module():
    assert pretty_repr(nn.Linear(2, 3, key=namoo.random.key(0))).startswith("Linear(\n    weight=")


def test_treescope_shows_modules_and_arrays():
    treescope = pytest.importorskip("treescope")
    text = treescope.render_to_text(MODEL)
    assert text.startswith("MLP(\n  layers=") and "float32(4, 3)" in text
    assert "float32(20, 30)" in treescope.render_to_text({"x": X})
