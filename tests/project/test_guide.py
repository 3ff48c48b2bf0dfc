"""The guides run as they are written, and the files that they name exist."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = sorted(
    path for path in (ROOT / "docs").glob("*.md") if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guide(path, monkeypatch):
    monkeypatch.chdir(ROOT)  # a guide names files as a reader would
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(path), module_relative=False, optionflags=flags)
    assert found.attempted > 3 and found.failed == 0


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"], ids=lambda p: p.stem
)
def test_files_that_a_page_names_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target
    bases = [ROOT, ROOT / "src" / "namoo", ROOT / "src" / "namoo" / "engines" / "native"]
    for name in re.findall(r"`([\w./]+\.(?:py|cpp|h))`", text):
        if "/" in name:
            assert any((base / name).exists() for base in bases), name


def test_make_check_runs_tests_that_exist():
    found = re.search(
        r"^CHECKED := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert found
    for name in found[1].replace("\\", "").split():
        assert (ROOT / name).is_file(), name
