"""Every row of the benchmarks runs on tiny inputs and agrees with its NumPy or JAX version.

No time is asserted: that would test the machine.
"""

import json
import re

import numpy as np
import pytest

import run
import table
from row import FRESH, Goal, Row, difference
from rows import ROWS, SECTIONS
from worker import Work

CALLED = [row for row in ROWS.values() if row.measure not in FRESH]
WITH_NUMPY = [row for row in CALLED if row.numpy is not None]
AGAINST_JAX = [
    "MLP step, AdamW, batch 32",
    "Lorenz, 500 steps of RK4, gradient",
    "scatter-add, 50k x 256, 4096 ids",
    "tree.map of two, 1000 leaves in dataclasses",
]


def test_names_are_unique():
    assert sum(map(len, SECTIONS.values())) == len(ROWS)


@pytest.mark.parametrize("row", CALLED, ids=lambda row: row.name)
def test_runs_in_namoo(row):
    work = Work(row, "namoo", tiny=True)
    assert all(np.isfinite(x).all() for x in work.result())
    assert work.repeat(2) > 0


@pytest.mark.parametrize("row", WITH_NUMPY, ids=lambda row: row.name)
def test_agrees_with_numpy(row):
    ours, theirs = (Work(row, name, tiny=True).result() for name in ("namoo", "numpy"))
    assert ours and difference(ours, theirs) <= row.tolerance


@pytest.mark.parametrize("name", AGAINST_JAX)
def test_agrees_with_jax(name):
    ours, theirs = (Work(ROWS[name], library, tiny=True).result() for library in ("namoo", "jax"))
    assert ours and difference(ours, theirs) <= ROWS[name].tolerance


@pytest.mark.parametrize("off", [0.1, np.nan])
def test_difference_sees_what_is_wrong(off):
    right = [np.ones(3), np.zeros(())]
    assert difference(right, right) == 0
    assert difference([np.array([1, 1, 1 + off]), np.zeros(())], right) > 0.05
    assert difference(right[:1], right) == float("inf")
    assert difference([np.ones(4), np.zeros(())], right) == float("inf")


def test_wrong_results_are_named(tmp_path):
    files = {name: tmp_path / f"{name}.npz" for name in ("namoo", "jax", "numpy")}
    for name, file in files.items():
        np.savez(file, np.ones(3) * (2 if name == "namoo" else 1))
    assert list(run.agree(Row("any"), files)) == ["namoo"]


def test_peak_is_the_childs_own():
    ballast = np.ones(40_000_000)  # 320 MB that a child must not be charged with
    small = run.once(ROWS["peak memory, MLP step"], "namoo", {})
    assert 20e6 < small < ballast.nbytes


def goals_met(goal, **best):
    row = Row("any", program=lambda jax, jnp: abs, torch=lambda *_: abs, numpy=abs, goal=goal)
    return table.verdict(table.goals(row, best, {"other": {"best": {"namoo": 2.0}}}))


@pytest.mark.parametrize(
    ("goal", "best", "met"),
    [
        (Goal(jax=2.0), {"namoo": 1.0, "jax": 2.0}, "yes"),
        (Goal(jax=2.0), {"namoo": 1.0, "jax": 1.9}, "no"),
        (Goal(jax=2.0), {"namoo": 1.0}, "–"),
        (Goal(jax=2.0, torch=1.0), {"namoo": 1.0, "jax": 3.0, "torch": 0.9}, "no"),
        (Goal(), {"namoo": 1.0, "numpy": 0.9}, "no"),
        (Goal(numpy=None, over_numpy=0.2), {"namoo": 1.0, "numpy": 0.9}, "yes"),
        (Goal(numpy=None, over_numpy=0.05), {"namoo": 1.0, "numpy": 0.9}, "no"),
        (Goal(of_row=("other", 1.5)), {"namoo": 3.0}, "yes"),
        (Goal(of_row=("other", 1.5)), {"namoo": 3.1}, "no"),
    ],
)
def test_goals(goal, best, met):
    assert goals_met(goal, **best) == met


def test_markdown_goes_between_the_markers(tmp_path):
    (tmp_path / "docs").mkdir()
    pages = [tmp_path / name for name in ("README.md", "README.ko.md", "docs/benchmarks.md")]
    for page in pages:
        page.write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n")
    figures = {
        name: {"best": {"namoo": 2e-5, "jax": 1e-4}, "failures": {}}
        for name in ("matmul 1024", "matmul 128")
    }
    run.write_pages(figures, run.machine(), tmp_path)
    for page in pages:
        text = page.read_text()
        assert text.startswith("before\n<!-- bench -->\n")
        assert text.endswith("<!-- /bench -->\nafter\n")
        assert "old" not in text
        assert "| matmul 1024 | 20 µs | 100 µs | – | – | 5× | – | – |" in text
        assert ("matmul 128" in text) == (page.name == "benchmarks.md")


def test_the_readmes_show_rows_of_the_whole_table():
    whole = (run.ROOT / "docs" / "benchmarks.md").read_text()
    for name in ("README.md", "README.ko.md"):
        shown = re.findall(r"^\| [^*\n]*× .*$", (run.ROOT / name).read_text(), re.MULTILINE)[1:]
        assert len(shown) == len(table.TELLING) == 10
        for line, row in zip(shown, table.TELLING, strict=True):
            assert line.startswith(f"| {row} |") and line in whole


def test_one_row_as_a_user_runs_it(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.json"
    arguments = ["--only", "^matmul 128$", "--k", "1", "--frameworks", "namoo,numpy"]
    monkeypatch.setattr("sys.argv", ["run.py", *arguments, "--json", str(out)])
    monkeypatch.setattr(run, "PATIENCE", 0.0)
    run.main()
    kept = json.loads(out.read_text())["rows"]["matmul 128"]
    assert kept["best"].keys() == {"namoo", "numpy"} and not kept["failures"]
    assert "matmul 128" in capsys.readouterr().out
