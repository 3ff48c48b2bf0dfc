"""The guides run as they are written."""

import doctest
from pathlib import Path

import pytest

GUIDES = sorted(
    path
    for path in (Path(__file__).parents[1] / "docs").glob("*.md")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guide(path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])  # a guide names files as a reader would
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(path), module_relative=False, optionflags=flags)
    assert found.attempted > 3 and found.failed == 0
