"""What the pages of the site call to run a cell, without a browser; `make docs-test` has one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

PYTHON = Path(__file__).parents[2] / "docs" / "browser" / "python"
PROGRAM = """
import json, sys
import shell
shown = []
found = getattr(shell, sys.argv[1])(sys.stdin.read(), "<cell 1>", lambda *pair: shown.append(pair))
print(json.dumps([found, shown]), file=sys.stderr)
"""


def call(function: str, source: str) -> tuple[dict, list[list[str]], str]:
    """What the shell returns, shows and prints; in a process, because it sets the engine."""
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, function],
        input=source,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found, shown = json.loads(done.stderr)
    return found, shown, done.stdout


@pytest.mark.parametrize(
    ("source", "shown", "printed"),
    [
        ("x = 1", [], ""),
        ("print(2)\n3", [["text/plain", "3"]], "2\n"),
        ("None", [], ""),
        ("class A:\n    def _repr_svg_(self):\n        return '<svg/>'\nA()", "svg", ""),
        ("import namoo\nnamoo.grad(lambda x: x**2)(3.0).item()", [["text/plain", "6.0"]], ""),
    ],
)
def test_the_last_expression_is_shown(source, shown, printed):
    if shown == "svg":
        shown = [["image/svg+xml", "<svg/>"]]
    assert call("run", source) == ({}, shown, printed)


@pytest.mark.parametrize(
    ("source", "kind", "parts"),
    [
        (
            "def f():\n    1 / 0\nf()",
            "ZeroDivisionError",
            ['"<cell 1>", line 2, in f', "    1 / 0"],
        ),
        ("x = (", "SyntaxError", ['"<cell 1>", line 1']),
    ],
)
def test_errors_are_those_of_a_terminal(source, kind, parts):
    found, _, _ = call("run", source)
    assert found["kind"] == kind
    assert all(part in found["error"] for part in parts) and "shell.py" not in found["error"]


@pytest.mark.parametrize(
    ("source", "right", "missing"),
    [
        ("assert True, 'one'\nassert 1 == 1, 'two'", ["one", "two"], None),
        ("assert True, 'one'\nassert 1 == 2, 'two'\nassert True, 'three'", ["one"], "two"),
        ("assert True, f'{1}'\nassert False, f'{1} is wrong'", [], "1 is wrong"),
    ],
)
def test_a_check_says_what_is_right_and_what_is_missing(source, right, missing):
    found, _, _ = call("check", source)
    assert (found["right"], found.get("missing")) == (right, missing)


@pytest.mark.parametrize(
    ("calls", "marks"),
    [
        ("plt.plot([1, 2, 4])", {"polyline": 1}),
        ("plt.semilogy([1, 10, 100], label='a < b'); plt.legend()", {"polyline": 1}),
        (
            "plt.scatter([1, 2], [3, 4]); plt.plot([1, 2], [3, 4], '--')",
            {"circle": 2, "polyline": 1},
        ),
        ("plt.bar([0, 1], [2, 3]); plt.title('bars')", {"rect": 4}),
        ("plt.imshow([[0, 1], [2, 3]])", {"rect": 5}),
        ("plt.plot([1.0, 1.0]); plt.grid(); plt.xlabel('x'); plt.ylabel('y')", {"polyline": 1}),
    ],
)
def test_pictures_are_drawn(calls, marks):
    found, ((mime, picture),), _ = call("run", f"import matplotlib.pyplot as plt\n{calls}")
    assert not found and mime == "image/svg+xml"
    tags = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()]
    assert {tag: tags.count(tag) for tag in marks} == marks
