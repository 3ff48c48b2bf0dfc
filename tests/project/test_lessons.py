"""The lessons' scripts run, and their assertions hold, in a process of their own each."""

import subprocess
import sys
from pathlib import Path

import pytest

LESSONS = sorted((Path(__file__).parents[2] / "examples" / "lessons").glob("*.py"))


def test_there_are_five_lessons():
    assert len(LESSONS) == 5


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson(lesson):
    # In its own process, because a lesson registers classes and counts traces.
    run = subprocess.run(
        [sys.executable, "-W", "error", lesson], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    # The solution of the exercise is the last thing that a lesson prints.
    assert "Exercise" in run.stdout or "All six steps" in run.stdout
