"""The parts of a training loop: metrics, decisions, logs, plots and reports."""

# Wrong arguments are given on purpose, and dataclasses get methods that a checker does not see.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false

import csv
import html
import io
import itertools
import json
import math
import re
import shutil
import struct as binary
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import data, optim, train, tree
from namoo.train import events, plots
from namoo.train.progress import _drawn, line

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(60, 4)).astype(np.float32)
SCORES[::7] = np.round(SCORES[::7])  # ties
LABELS = RNG.integers(0, 4, 60)
MASK = RNG.random(60) < 0.7
BINARY = RNG.integers(0, 2, 60)
PROBABILITIES = np.round(RNG.random(60), 2).astype(np.float32)
LOSSES = RNG.random(60).astype(np.float32)


def top_k(scores, labels, k):
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :k]
    return np.mean([label in row for label, row in zip(labels, order, strict=True)])


def confusion(guess, labels, size=4):
    matrix = np.zeros((size, size), int)
    for true, got in zip(labels, guess, strict=True):
        matrix[true, got] += 1
    return matrix


def f1(scores, labels, average):
    guess = scores.argmax(-1)
    each, tps, pairs = [], 0, 0
    for c in range(4):
        tp = np.sum((guess == c) & (labels == c))
        fp, fn = np.sum((guess == c) & (labels != c)), np.sum((guess != c) & (labels == c))
        each.append(2 * tp / (2 * tp + fp + fn))
        tps, pairs = tps + tp, pairs + 2 * tp + fp + fn
    values = {"macro": np.mean(each), "micro": 2 * tps / pairs, "binary": each[1], None: each}
    return values[average]


def auc(scores, labels, bins):
    scores = np.floor(np.minimum(scores * np.float32(bins), bins - 1))
    pairs = [
        (p > n) + 0.5 * (p == n)
        for p, n in itertools.product(scores[labels == 1], scores[labels == 0])
    ]
    return np.mean(pairs)


METRICS = {
    "mean": (train.Mean.empty(), (LOSSES,), np.mean),
    "perplexity": (train.Perplexity.empty(), (LOSSES,), lambda x: np.exp(np.mean(x))),
    "accuracy": (
        train.Accuracy.empty(),
        (SCORES, LABELS),
        lambda s, y: np.mean(s.argmax(-1) == y),
    ),
    "accuracy_of_classes": (train.Accuracy.empty(), (BINARY, LABELS), lambda g, y: np.mean(g == y)),
    "top_1": (train.TopK.empty(1), (SCORES, LABELS), lambda s, y: top_k(s, y, 1)),
    "top_3": (train.TopK.empty(3), (SCORES, LABELS), lambda s, y: top_k(s, y, 3)),
    "confusion": (
        train.Confusion.empty(4),
        (SCORES, LABELS),
        lambda s, y: confusion(s.argmax(-1), y),
    ),
    **{
        f"f1_{average}": (
            train.F1.empty(4, average),
            (SCORES, LABELS),
            lambda s, y, average=average: f1(s, y, average),
        )
        for average in ("macro", "micro", "binary", None)
    },
    "auc": (train.AUC.empty(64), (PROBABILITIES, BINARY), lambda s, y: auc(s, y, 64)),
    "auc_fine": (train.AUC.empty(), (PROBABILITIES, BINARY), lambda s, y: auc(s, y, 1e6)),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_in_every_way_of_adding_up(name):
    empty, arrays, oracle = METRICS[name]
    expected = oracle(*arrays)
    check = lambda metric, to=expected: np.testing.assert_allclose(  # noqa: E731
        metric.compute(), to, rtol=2e-5
    )
    check(empty.update(*arrays))
    check(empty.update(*arrays, mask=MASK), oracle(*(x[MASK] for x in arrays)))
    parts = [x.reshape(6, 10, *x.shape[1:]) for x in arrays]
    merged = empty
    for i in range(6):
        merged = merged.merge(empty.update(*(x[i] for x in parts)))
    check(merged)
    carried, _ = namoo.jit(lambda m, xs: namoo.lax.scan(lambda m, x: (m.update(*x), None), m, xs))(
        empty, tuple(parts)
    )
    check(carried)
    of_device = namoo.vmap(lambda *x: empty.update(*x), axis_name="i")
    check(of_device(*parts).sum())
    everywhere = namoo.vmap(lambda *x: empty.update(*x).reduce("i"), axis_name="i")(*parts)
    check(tree.map(lambda x: x[2], everywhere))


def test_metrics_of_nothing_and_of_what_is_masked():
    for metric in (
        train.Mean.empty(),
        train.Accuracy.empty(),
        train.F1.empty(3),
        train.AUC.empty(),
    ):
        assert float(metric.compute()) == 0.0
    mean = train.Mean.empty().update(jnp.array([1.0, jnp.nan]), mask=jnp.array([True, False]))
    assert float(mean.compute()) == 1.0
    rows = train.Mean.empty().update(jnp.array([[1.0, 3.0], [9.0, 9.0]]), mask=jnp.array([1, 0]))
    assert float(rows.compute()) == 2.0
    outside = train.Confusion.empty(2).update(jnp.array([0, 1]), jnp.array([-100, 1]))
    np.testing.assert_array_equal(outside.compute(), [[0, 0], [0, 1]])
    with pytest.raises(ValueError, match="average"):
        train.F1.empty(2, "mean")


@pytest.mark.parametrize("metric", [train.Accuracy.empty(), train.Confusion.empty(3)])
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.ones((4, 3)), np.zeros(5, int)),
        (np.ones((4, 3)), np.zeros((4, 3), int)),  # one-hot labels
        (np.ones((4, 3)), np.zeros((4, 1), int)),
        (np.ones(4), np.zeros(4, int)),  # probabilities
        (np.ones((4, 3), int), np.zeros(3, int)),
    ],
)
def test_scores_and_labels_that_do_not_go_together(metric, scores, labels):
    with pytest.raises(ValueError, match="do not fit together"):
        metric.update(scores, labels)
    with pytest.raises(ValueError, match="do not fit together"):
        namoo.jit(metric.update)(scores, labels)


def test_scores_that_are_no_probabilities_have_no_area():
    scores, labels = jnp.array([0.1, 0.9, 3.0, jnp.nan]), jnp.array([0, 1, 1, 0])
    empty = train.AUC.empty()
    assert np.isnan(empty.update(scores, labels).merge(empty).compute())
    assert empty.update(scores, labels, jnp.array([1, 1, 0, 0])).compute() == 1


def test_gradients_of_another_structure():
    state = train.TrainState.create(params={"w": jnp.ones(1)}, tx=optim.sgd(0.1))
    with pytest.raises(ValueError, match="gradients do not have.*\n.*missing key 'w'"):
        state.apply_gradients(grads={"v": jnp.ones(1)})


@pytest.mark.parametrize(
    ("history", "error", "message"),
    [
        ({"loss": 1.0}, TypeError, "'loss' is 1.0"),
        ([1.0, 2.0], TypeError, "not 1.0"),
        ({"step": [1, 2], "loss": [1.0, 2.0, 3.0]}, ValueError, "3 numbers of 'loss', but 2"),
    ],
)
def test_histories_that_are_none(history, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train.plot(history, tmp_path / "a.svg")


def test_trees_of_metrics():
    of = lambda x: {"loss": train.Mean.empty().update(x), "c": train.Confusion.empty(2)}  # noqa: E731
    values = train.compute(train.merge(of(1.0), of(2.0), of(6.0)))
    assert values["loss"] == 3.0 and type(values["loss"]) is float
    assert values["c"].shape == (2, 2)


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_evaluate(last):
    loader = data.Loader((LOSSES, LABELS), 16, last=last)

    @namoo.jit
    def step(scale, batch):
        (losses, labels), mask = batch if last == "pad" else (batch, jnp.ones(len(batch[0])))
        return {
            "mean": jnp.sum(scale * losses * mask) / jnp.sum(mask),
            "metric": train.Mean.empty().update(scale * losses, mask),
            "accuracy": train.Accuracy.empty().update(labels, labels, mask),
        }

    found = train.evaluate(step, 2.0, loader)
    expected = {"mean": 2 * LOSSES.mean(), "metric": 2 * LOSSES.mean(), "accuracy": 1.0}
    assert found == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="no batch"):
        train.evaluate(step, 2.0, [])


def test_every():
    assert [i for i in range(10) if train.every(3)(i)] == [3, 6, 9]
    called = []
    act = train.every(2, action=lambda *a, **k: called.append((a, k)))
    assert [act(i, i * 10, name="x") for i in range(4)] == [False, False, True, False]
    assert called == [((20,), {"name": "x"})]
    soon, late = train.every(seconds=1e-9), train.every(seconds=1000)
    assert soon(0) and soon(0) and not late(5)


@pytest.mark.parametrize(
    "arguments", [{}, {"steps": 0}, {"steps": 2, "seconds": 3}, {"seconds": -1}]
)
def test_every_needs_a_period(arguments):
    with pytest.raises(ValueError, match="positive number"):
        train.every(**arguments)


@pytest.mark.parametrize(
    ("values", "options", "stops_at"),
    [
        ([3, 2, 1, 0], {"patience": 1}, None),
        ([1, 2, 0, 3, 3], {"patience": 2}, 4),
        ([1, 1, 1], {"patience": 2}, 2),
        ([1, 2, 3], {"patience": 1, "mode": "max"}, None),
        ([3, 2, 3.5, 1, 1], {"patience": 2, "mode": "max"}, 4),
        ([1, 0.95, 0.91], {"patience": 2, "min_delta": 0.1}, 2),
        ([math.nan, math.nan, 1], {"patience": 2}, 1),
    ],
)
def test_early_stopping(values, options, stops_at):
    stopping = train.EarlyStopping.create(**options)
    found = None
    for i, value in enumerate(values):
        stopping = stopping.update(value)
        if found is None and stopping.should_stop:
            found = i
    assert found == stops_at
    update = lambda s, v: (s.update(v), s.update(v).should_stop)  # noqa: E731
    scanned = namoo.lax.scan(update, train.EarlyStopping.create(**options), jnp.array(values))
    stops = np.flatnonzero(scanned[1])
    assert (stops[0] if len(stops) else None) == stops_at


def test_early_stopping_says_when_to_save():
    stopping = train.EarlyStopping.create(patience=3)
    assert not stopping.improved
    improved = []
    for value in [2.0, 3.0, 1.0]:
        stopping = stopping.update(value)
        improved.append(bool(stopping.improved))
    assert improved == [True, False, True]
    for options in ({"mode": "least"}, {"patience": 0}):
        with pytest.raises(ValueError):
            train.EarlyStopping.create(**options)


@pytest.mark.parametrize("debias", [True, False])
def test_ema(debias):
    values = RNG.normal(size=(6, 3)).astype(np.float32)
    ema = train.EMA.create({"w": jnp.zeros(3)}, 0.9, debias)
    update = namoo.jit(lambda ema, params: ema.update(params))
    for value in values:
        ema = update(ema, {"w": value})
    weights = 0.1 * 0.9 ** np.arange(5, -1, -1)
    if debias:
        weights /= weights.sum()
    np.testing.assert_allclose(ema.average["w"], weights @ values, rtol=1e-4)
    with pytest.raises(ValueError, match="decay"):
        train.EMA.create({}, 1.0)


def test_accumulation_is_the_gradient_of_the_batch():
    x, y = RNG.normal(size=(12, 3)).astype(np.float32), RNG.normal(size=12).astype(np.float32)
    params = {"w": jnp.ones(3), "b": jnp.zeros(())}

    def loss(params, batch, scale):
        error = (batch[0] @ params["w"] + params["b"] - batch[1]) * scale
        return jnp.mean(error**2), {"error": train.Mean.empty().update(error), "n": jnp.int32(3)}

    whole = namoo.value_and_grad(loss, has_aux=True)
    (value, aux), grads = whole(params, (x, y), 0.5)
    for parts in (1, 3, 4):
        split = namoo.jit(train.accumulate(whole, parts))
        (value_2, aux_2), grads_2 = split(params, (x, y), 0.5)
        np.testing.assert_allclose(value, value_2, rtol=1e-5)
        np.testing.assert_allclose(aux["error"].compute(), aux_2["error"].compute(), rtol=1e-4)
        assert tree.allclose(grads, grads_2, rtol=1e-4) and aux_2["n"] == 3
    with pytest.raises(ValueError, match="5 equal parts"):
        train.accumulate(whole, 5)(params, (x, y), 0.5)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress(with_tqdm, monkeypatch):
    if not with_tqdm:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    file = Terminal()
    shown = train.progress(iter(range(4)), total=4, description="fit", file=file, interval=0.0)
    for _ in shown:
        shown(loss=jnp.float32(0.12345678), note="x")
    assert shown.count == 4 and len(shown) == 4
    last = file.getvalue().rstrip().rsplit("\r", 1)[-1]
    assert "fit" in last and "4/4" in last and "loss 0.1235, note x" in last


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_logged_lines_stand_beside_the_progress(with_tqdm, monkeypatch):
    if not with_tqdm:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    screen = Terminal()
    log = train.Logger(kinds=["console"], file=screen)
    shown = train.progress(range(2), file=screen, description="fit")
    for step in shown:
        shown(loss=0.5)
        log(step, accuracy=1)
    drawn = screen.getvalue()
    for step in (0, 1):
        before, after = drawn.split(f"step {step}  accuracy 1\n")
        # The line was empty, and the progress is there again at once.
        *_, last = before.split("\n")
        assert last.endswith(" \r") and "fit" in after
        assert after.lstrip("\r").startswith("fit")
    assert not _drawn


def test_progress_is_shown_in_notebooks():
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert list(train.progress(range(3), file=stream)) == [0, 1, 2]
    assert "3/3" in stream.getvalue()


def test_progress_is_quiet_elsewhere():
    file = io.StringIO()
    assert list(train.progress(range(3), file=file)) == [0, 1, 2]
    assert not file.getvalue()
    unknown = train.progress(iter([1]), file=file)
    with pytest.raises(TypeError, match="not known"):
        len(unknown)
    assert line(unknown, 0, 0.0) == "0  0.00 steps/s"


def test_progress_reads_numbers_only_to_draw_them():
    class Counted(float):
        read = 0

        def __float__(self):
            Counted.read += 1
            return 0.0

    shown = train.progress(range(1000), file=Terminal(), interval=60.0)
    for _ in shown:
        shown(loss=Counted())
    assert Counted.read <= 2


ROWS = [
    {"step": 1, "loss": 2.5},
    {"step": 2, "loss": math.nan, "note": 'a,b "c"'},
    {"step": 3, "loss": -math.inf, "accuracy": 0.1},
    {"step": 4, "loss": 1e-30},
]


def same_rows(a, b):
    np.testing.assert_equal(a, b)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_logs_come_back(kind, tmp_path):
    with train.Logger(tmp_path, [kind]) as log:
        for row in ROWS:
            log(**{k: jnp.float32(v) if k == "accuracy" else v for k, v in row.items()})
        same_rows(log.history[:2], ROWS[:2])
    path = tmp_path / f"log.{kind}"
    text = path.read_text()
    if kind == "jsonl":
        refuse = lambda name: pytest.fail(name)  # noqa: E731
        assert [json.loads(t, parse_constant=refuse)["step"] for t in text.splitlines()] == [
            1,
            2,
            3,
            4,
        ]
    else:
        rows = list(csv.DictReader(io.StringIO(text)))
        assert rows[1]["note"] == 'a,b "c"' and rows[0]["accuracy"] == ""
    # A run that was killed while it wrote a line goes on after the last whole one.
    path.write_text(text + text.splitlines()[-1][:3])
    with train.Logger(tmp_path, [kind]) as log:
        same_rows(log.history[1], ROWS[1])
        log.rewind(3)
        log(3, loss=7.0)
    with train.Logger(tmp_path, [kind]) as log:
        same_rows(log.history, [*ROWS[:2], {"step": 3, "loss": 7.0}])


def test_console_and_errors(capsys, tmp_path):
    train.Logger(kinds=["console"])(3, loss=jnp.float32(0.5), n=np.int64(7), note="best")
    assert capsys.readouterr().out == "step 3  loss 0.5  n 7  note best\n"
    with pytest.raises(ValueError, match="not 'xml'"):
        train.Logger(tmp_path, ["xml"])
    with pytest.raises(ValueError, match="needs a folder"):
        train.Logger(kinds=["csv"])
    with pytest.raises(ValueError, match=r"loss has shape \(2,\)"):
        train.Logger(kinds=[])(1, loss=jnp.ones(2))
    for loss in (None, [1.0], 2 + 1j, jnp.complex64(1)):
        with pytest.raises(TypeError, match="numbers and texts, and loss is"):
            train.Logger(kinds=[])(1, loss=loss)


@pytest.mark.parametrize(
    ("data_", "crc"),
    # The examples of RFC 3720.
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksums(data_, crc):
    assert events.crc32c(data_) == crc


def test_the_checksum_of_a_length_is_that_of_every_file_of_events():
    assert events.masked_crc32c(binary.pack("<Q", 24)) == 0x224B7FA3


def plain_reader(raw: bytes):
    """TensorBoard's records, read with nothing but their description."""
    while raw:
        (length,) = binary.unpack("<Q", raw[:8])
        body, raw = raw[12 : 12 + length], raw[16 + length :]
        yield body


def test_tensorboard_files(tmp_path):
    with train.Logger(tmp_path, ["tensorboard"]) as log:
        log(300, loss=0.5, note="texts are left out")
        log(-1, accuracy=jnp.float32(0.25), large=1e39, larger=-(10**400))
    [path] = tmp_path.glob("events.out.tfevents.*")
    found = [(event.step, event.values) for event in train.read_events(path)]
    assert found == [
        (300, {"loss": 0.5}),
        (-1, {"accuracy": 0.25, "large": math.inf, "larger": -math.inf}),
    ]
    first, second, _ = plain_reader(path.read_bytes())
    assert first[0] == 0x09 and first[9:] == b"\x1a\x0dbrain.Event:2"
    # step = 300; summary { value { tag: "loss" simple_value: 0.5 } }
    assert second[9:] == b"\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f"
    raw = path.read_bytes()
    path.write_bytes(raw[:-5])
    assert len(list(train.read_events(path))) == 1
    path.write_bytes(raw[:-10] + b"\x00" + raw[-9:])
    with pytest.raises(ValueError, match="wrong checksum"):
        list(train.read_events(path))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(message=st.binary(max_size=40))
def test_records_that_are_no_events(message, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "events"
    path.write_bytes(events.record(message))
    try:
        assert all(isinstance(event, events.Event) for event in train.read_events(path))
    except ValueError as error:
        assert "has no event at byte 0" in str(error)


def test_tensorboard_reads_its_files(tmp_path):
    module = "tensorboard.backend.event_processing.event_accumulator"
    reader = pytest.importorskip(module).EventAccumulator(str(tmp_path))
    with train.Logger(tmp_path, ["tensorboard"]) as log:
        for step in (1, 300, 2**40):
            log(step, loss=1 / step, **{"test/accuracy": 0.25, "grad norm": math.nan})
    reader.Reload()
    assert sorted(reader.Tags()["scalars"]) == ["grad norm", "loss", "test/accuracy"]
    found = [(event.step, event.value) for event in reader.Scalars("loss")]
    assert found == [(step, np.float32(1 / step)) for step in (1, 300, 2**40)]


HOSTILE = "<script>alert('x')</script> & \"y\""


def drawn(axes):
    """What the lines of a panel show: their points, and the places of their dots."""
    lines = [line.get_xydata() for line in axes.get_lines()]
    dots = [np.flatnonzero(line.get_markevery()) for line in axes.get_lines()]
    return lines, dots


def test_svg(tmp_path):
    rows = [
        {"step": i, "loss": 1 / (i + 1), "val_loss": 2.0 if i % 2 else math.nan, HOSTILE: 3.0}
        for i in range(50)
    ]
    path = train.plot(rows, tmp_path / "curves.svg", title=HOSTILE)
    root = ElementTree.fromstring(path.read_text())
    tag = "{http://www.w3.org/2000/svg}"
    texts = [t.text for t in root.iter(f"{tag}text")]
    assert {"loss", "val", HOSTILE, "step"} <= set(texts)
    assert not list(root.iter(f"{tag}script"))
    # Equal runs give equal files.
    again = train.plot(rows, tmp_path / "again.svg", title=HOSTILE)
    assert again.read_bytes() == path.read_bytes()


def test_gaps_and_dots():
    values = [1.0, math.nan, 2.0, math.inf, 3.0, 4.0, -math.inf, 5.0]
    picture = plots.figure({"loss": list(enumerate(values))}, "step", "", log=False)
    ([[points], [dots]]) = drawn(*picture.axes)
    assert np.flatnonzero(np.isfinite(points[:, 1])).tolist() == [0, 2, 4, 5, 7]
    assert dots.tolist() == [0, 2, 7]


@pytest.mark.parametrize(
    "values",
    [
        *([1.0], [0.0, 0.0], [math.nan, math.inf], [1e-300, 2e-300], [1e30, 1e30 + 1e14], [-5, 5]),
        *([-1.7e308, 1.7e308], [5e-324, 1.7e308], [1.0, 1.0 + 2e-12], [3.0, 4.0]),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_any_numbers_can_be_drawn(values, log):
    points = list(enumerate(map(float, values)))
    text = plots.svg({"x": points}, log=log)
    ElementTree.fromstring(text)
    assert not re.search(r"\bnan|\binf", text)


@pytest.mark.parametrize(
    ("names", "panels"),
    [
        (["loss", "val_loss", "Test loss"], {"loss": ["loss", "val", "Test"]}),
        (["loss/train", "loss/val"], {"loss": ["train", "val"]}),
        (["train/f1", "val/f1"], {"f1": ["train", "val"]}),
        (["sgd/log norm", "adam/log norm"], {"log norm": ["sgd", "adam"]}),
        (["learning_rate", "error_rate"], {"learning_rate": [""], "error_rate": [""]}),
        (["val_loss", "val/loss"], {"loss": ["val_loss", "val/loss"]}),
        (["test/", "/", "val_"], {"test/": [""], "/": [""], "val_": [""]}),
    ],
)
def test_which_curves_share_a_picture(names, panels):
    found = plots.panels_of(dict.fromkeys(names, []))
    expected = {k: [k] if v == [""] else v for k, v in panels.items()}
    assert {title: list(curves) for title, curves in found.items()} == expected


@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize("name", ["a", "a name of some length", "이름", "long" * 40, "$x^", "_a"])
def test_names_of_curves_stay_on_the_paper(count, name):
    curves = {f"{name}{i}/{name}": [(0.0, 1.0), (1.0, float(i))] for i in range(count)}
    text = plots.svg(curves, name, title=name * 5)
    # Text is text, and so it is found again.
    assert text.count(f">{name[:20]}") >= count + 3
    picture = plots.figure(curves, name, name * 5, log=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        picture.draw_without_rendering()
        [axes] = picture.axes
        for artist in (axes.get_legend(), axes.xaxis.label, axes.title, picture._suptitle):
            box = artist.get_window_extent()
            assert 0 <= box.x0 <= box.x1 <= picture.bbox.x1 and 0 <= box.y0
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == count


def test_logarithmic_axes():
    points = [(float(i), 10.0**-i if i % 2 == 0 else 0.0) for i in range(7)]
    [axes] = plots.figure({"loss": points}, "step", "", log=True).axes
    assert axes.get_yscale() == "log"
    ([_], [dots]) = drawn(axes)
    assert dots.tolist() == [0, 2, 4, 6]


def test_long_runs_are_small_files():
    points = [(float(i), math.sin(i * i)) for i in range(100_000)]
    assert len(plots.svg({"loss": points})) < 400_000


def test_other_plots(tmp_path, monkeypatch):
    history = {"loss": [1.0, 2.0], "val_loss": [2.0, 1.0]}
    assert "<svg" in train.plot(history, tmp_path / "a.html").read_text()
    path = train.plot(history, tmp_path / "a.png", title="t")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="not '.txt'"):
        train.plot(history, tmp_path / "a.txt")
    with pytest.raises(ValueError, match="no numbers"):
        train.plot([], tmp_path / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for name in ("b.svg", "b.png", "b.html"):
        with pytest.raises(ImportError, match=r"pip install namoo\[plots\]"):
            train.plot(history, tmp_path / name)
        assert not (tmp_path / name).exists()
    assert "<svg" in train.report(tmp_path / "run.html", history).read_text()


def test_reports(tmp_path):
    timings = train.Timings()
    with timings(HOSTILE):
        pass
    log = train.Logger(kinds=[])
    for i in range(5):
        log(i, loss=1.0 / (i + 1), note=HOSTILE, bad=math.nan)
    path = train.report(
        tmp_path / "run.html",
        log,
        title=HOSTILE,
        config={"optimizer": {"rate": 0.1, HOSTILE: HOSTILE}},
        params={"dense": {"w": jnp.ones((3, 4))}, HOSTILE: jnp.zeros(2)},
        timings=timings,
    )
    text = path.read_text()
    assert text.count("<script") == 1 and "&lt;script&gt;" in text
    for part in ("Numbers", "Configuration", "Parameters", "Timings", "optimizer.rate", "dense/w"):
        assert part in text
    # The last, the best with its step, the least and the most; of one that is nan everywhere, nan.
    cells = re.findall(r"<td>([^<]*)</td>", text)
    assert cells[:7] == ["loss", "0.2", "0.2", "4", "0.2", "1", "5"]
    assert cells[7:9] == ["bad", "nan"]
    for part in ("duration", "command", "namoo", "NumPy", "threads"):
        assert f"<td>{part}</td>" in text or part in text
    # Nothing is loaded from anywhere.
    assert not re.search(r"""(src|href)=["'](?!#)|https?:|@import|url\(""", text)
    assert "Numbers" not in train.report(tmp_path / "new" / "b.html", []).read_text()


RUN = {
    "rate": [0.1, 0.1, 0.05],
    "loss": [3.0, 1.0, 2.0],
    "val_loss": [3.5, 2.5, 1.5],
    "accuracy": [0.1, 0.7, 0.6],
}


def figures(text):
    found = re.findall(r"<figure data-curves='([^']*)'><figcaption><b>([^<]*)</b>", text)
    return {title: json.loads(html.unescape(data)) for data, title in found}


def test_charts_of_a_report(tmp_path):
    text = train.report(tmp_path / "run.html", RUN).read_text()
    found = figures(text)
    assert list(found) == ["loss", "accuracy", "rate"]
    assert [curve["name"] for curve in found["loss"]["curves"]] == ["loss", "val"]
    assert found["accuracy"]["curves"][0]["points"] == [[0.0, 0.1], [1.0, 0.7], [2.0, 0.6]]
    best = re.findall(r"best (\S+) at step (\S+?)<", text)
    assert best == [("1", "1"), ("1.5", "2"), ("0.7", "1")]
    assert text.count("<circle") == 2 * len(best)  # on both axes
    assert text.count("type='checkbox'") == 3
    assert "prefers-color-scheme:dark" in text


def test_runs_are_compared_in_one_report(tmp_path):
    other = {"loss": [4.0, 3.0], "accuracy": [0.2, 0.3]}
    text = train.report(
        tmp_path / "run.html", RUN, title="wide", against={"narrow": other}
    ).read_text()
    names = [curve["name"] for curve in figures(text)["loss"]["curves"]]
    assert names == ["wide: loss", "wide: val", "narrow: loss"]
    assert text.count("stroke-dasharray") == 4  # two curves, on both axes
    rows = [row[:2] for row in re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td>", text)]
    assert ("narrow: loss", "3") in rows and ("wide: loss", "2") in rows


@pytest.mark.parametrize(
    "values", [[], [math.nan], [1.0], [0.0, 0.0], [-1.0, -2.0], [1e-300, 1e300], [math.inf, 1.0]]
)
def test_curves_of_any_numbers_can_be_drawn(values, tmp_path):
    text = train.report(tmp_path / "run.html", {"loss": values}).read_text()
    assert "nan" not in "".join(re.findall(r"<path d='([^']*)'", text))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_report_in_chromium(tmp_path):
    page = train.report(tmp_path / "run.html", RUN)
    probe = """<script>
    const svg = document.querySelector('figure svg'), box = svg.getBoundingClientRect();
    svg.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + box.width * 0.55,
      clientY: box.top + 20}));
    const seen = kind => getComputedStyle(document.querySelector('figure .' + kind)).display;
    const before = seen('linear') + ' ' + seen('log');
    document.querySelector('figure input').click();
    document.body.dataset.found = [document.querySelector('.tip').textContent, before,
      seen('linear') + ' ' + seen('log')].join('|');
    </script>"""
    page.write_text(page.read_text().replace("</body>", probe + "</body>"))
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update"
    )
    done = subprocess.run(
        ["chromium", *flags.split(), f"--user-data-dir={tmp_path}/profile", "--dump-dom",
         f"file://{page}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    (found,) = re.findall(r'data-found="([^"]*)"', done.stdout)
    assert found.split("|") == ["step 1\nloss  1\nval  2.5", "inline none", "none inline"]


def test_a_whole_loop_resumes_exactly():
    x = RNG.normal(size=(40, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 3.0], np.float32)

    @namoo.jit
    def step(state, batch):
        x, y = batch
        loss = lambda w: jnp.mean((x @ w - y) ** 2)  # noqa: E731
        value, grads = namoo.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads), value

    def start():
        loader = data.Loader((x, y), 8, key=namoo.random.key(3), workers=2)
        return loader, train.TrainState.create(params=jnp.zeros(3), tx=optim.adam(0.1))

    def run(loader, state, count):
        losses = []
        for batch in loader.steps(count):
            state, loss = step(state, batch)
            losses.append(float(loss))
        return state, losses

    loader, state = start()
    _, expected = run(loader, state, 13)
    first, state = start()
    state, began = run(first, state, 7)
    second, _ = start()
    second.restore(first.state())
    _, rest = run(second, state, 6)
    assert began + rest == expected
    for each in (loader, first, second):
        each.close()
