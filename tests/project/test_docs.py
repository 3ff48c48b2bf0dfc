"""The pages of the documentation run, and both languages have the same code."""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import api_coverage
import cells
import check_site
import korean_search
import namoo
import reference
from namoo._base.lazy import names_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The pages with cells; older pages have interactive sessions, which test_guide.py runs.
FOLDERS = ("start", "lessons", "how-to", "concepts", "coming-from")
TOP = ("index.md", "sharp-bits.md", "playground.md")
PAGES = [
    path
    for path in [*map(DOCS.joinpath, TOP), *sorted(DOCS.glob("*/*.md"))]
    if path.parent.name in (*FOLDERS, DOCS.name) and any(c.kind == "code" for c in cells.read(path))
]
KOREAN = sorted((DOCS / "ko").rglob("*.md"))


def name(path: Path) -> str:
    return path.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_prints_what_it_says(page):
    # In its own process, because a page registers classes, counts traces and sets up devices.
    # Pictures are drawn without a screen.
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error", ROOT / "tools" / "cells.py", "--run", page]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def program(cell: cells.Cell) -> str:
    """A cell without what differs between the languages: what the check of an exercise says."""
    if cell.kind == "solution":
        return cell.code
    if cell.kind != "check":
        return cell.source
    tree = ast.parse(cell.source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is not None:
            # The words go, the values in them stay.
            values = [x.value for x in ast.walk(node.msg) if isinstance(x, ast.FormattedValue)]
            node.msg = ast.List(sorted(values, key=ast.unparse), ast.Load())
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            node.args = []
    return ast.unparse(tree)


@pytest.mark.parametrize("page", KOREAN, ids=name)
def test_both_languages_have_the_same_cells(page):
    english = DOCS / page.relative_to(DOCS / "ko")
    if not english.exists():
        assert page.stem == "reference"  # the reference is in English, and one page leads to it
        return
    code = [[program(c) for c in cells.read(path) if c.kind != "text"] for path in (english, page)]
    assert code[0] == code[1]


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_learner_reads_is_there_in_korean(folder):
    english = {path.name for path in (DOCS / folder).glob("*.md")}
    assert english <= {path.name for path in (DOCS / "ko" / folder).glob("*.md")}


@pytest.mark.parametrize("lesson", cells.lessons(), ids=lambda path: path.stem)
def test_a_lesson_ends_with_an_exercise(lesson):
    kinds = [cell.kind for cell in cells.read(lesson) if cell.kind != "text"]
    assert kinds[-3:] == ["exercise", "check", "solution"]
    assert "<summary>Hint</summary>" in lesson.read_text(encoding="utf-8")


def test_pages_that_are_wrong_fail(tmp_path):
    page = tmp_path / "page.md"
    for text in (
        "```python\nprint(1)\n#> 2\n```\n",
        "```python raises\nx = 1\n#> ValueError: ...\n```\n",
        "```python exercise\nx = 1\n```\n```python check\nassert x == 1, 'no'\n```\n",
        "```python exercise\nx = 1\n```\n```python check\nassert x == 2, 'no'\n```\n"
        "```python solution\nx = 3\n```\n",
    ):
        page.write_text(text)
        with pytest.raises(AssertionError):
            cells.run(page)


def test_notebooks_have_the_cells_of_the_lessons(tmp_path):
    cells.write_notebooks(tmp_path)
    assert len(list(tmp_path.glob("*/*.ipynb"))) == len(cells.lessons()) * len(cells.LANGUAGES)
    for language in cells.LANGUAGES:
        for lesson in cells.lessons(language):
            made = json.loads((tmp_path / language / f"{lesson.stem}.ipynb").read_text("utf-8"))
            assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
            ids = [cell["id"] for cell in made["cells"]]
            assert len(set(ids)) == len(ids)
            read = [c for c in cells.read(lesson) if c.kind not in ("text", "solution", "shown")]
            found = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
            assert [cell["source"] for cell in found] == [cell.code.strip() for cell in read]
            for cell in found:
                assert "#>" not in cell["source"]


def test_a_notebook_runs(tmp_path):
    cells.write_notebooks(tmp_path)
    path = next(tmp_path.glob("en/04_*.ipynb"))
    names: dict = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            if "assert" in cell["source"]:
                break  # the check of the exercise, which is not solved
            printed = cells.execute(cell["source"], "<cell>", names)
            expected = "".join(output["text"] for output in cell["outputs"])
            cells.same(expected, printed, cell["id"])
    assert "orders" in names


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("자동 미분을 씁니다", "미분"),
        ("jit으로 컴파일합니다", "jit"),
        ("jit으로 컴파일합니다", "컴파일"),
        ("배열의 shape", "shape"),
        ("배열의 shape", "배열"),
    ],
)
def test_words_are_found_without_their_particles(text, word):
    assert word in korean_search.words(text)


def test_every_namespace_is_in_the_reference():
    modules = {
        f"namoo.{public}" for public, (_, own) in names_of(namoo._TABLE).items() if not own
    } | {f"namoo.{space}".rstrip(".") for space in api_coverage.NAMES}
    for module in sorted(modules - set(reference.NAMESPACES)):
        parts = [space for space in reference.NAMESPACES if space.startswith(f"{module}.")]
        own = [n for n in reference.public_names(module) if n.isidentifier()]
        assert parts or not own, f"{module} is missing in the table of tools/reference.py"


@pytest.mark.parametrize("space", api_coverage.NAMES)
def test_names_that_jax_has_are_in_the_reference(space):
    module = importlib.import_module(f"namoo.{space}".rstrip("."))
    public = reference.public_names(module.__name__)
    there = [n for n in api_coverage.present(space) if not inspect.ismodule(getattr(module, n))]
    assert [n for n in there if n not in public] == []


@pytest.mark.parametrize("namespace", reference.NAMESPACES)
def test_every_public_name_has_an_address(namespace):
    found = reference.addresses()
    module = importlib.import_module(namespace)
    assert reference.public_names(namespace)
    for public in reference.public_names(namespace):
        assert hasattr(module, public)
        assert f"{namespace}.{public}" in found


def test_addresses_differ_where_case_does_not_matter():
    pages = {address.partition("#")[0] for address in reference.addresses().values()}
    assert len({page.lower() for page in pages}) == len(pages)


@pytest.mark.parametrize(
    ("html", "wrong"),
    [
        ('<a id="x" href="#x">a</a>', 0),
        ('<a href="https://example.org">a link may leave</a>', 0),
        ('<script src="https://example.org/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//example.org/x.css">', 1),
        ('<img src="data:image/png;base64,AA">', 0),
        ('<a href="missing.html">a</a>', 1),
        ('<a href="#missing">a</a>', 1),
        ('<img src="missing.png">', 1),
    ],
)
def test_the_check_of_a_site(html, wrong, tmp_path):
    (tmp_path / "index.html").write_text(html)
    assert len(check_site.problems(tmp_path, {})) == wrong


@pytest.mark.parametrize(
    ("style", "wrong"),
    [
        ("a { background: url(x.png) }", 0),
        ('a { background: url("data:image/png;base64,AA") }', 0),
        ("a { background: url('https://example.org/x.png') }", 1),
        ('@import "//example.org/x.css";', 1),
    ],
)
def test_the_check_of_a_site_reads_styles(style, wrong, tmp_path):
    (tmp_path / "site.css").write_text(style)
    assert len(check_site.problems(tmp_path, {})) == wrong


def test_the_check_of_a_site_looks_for_names(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "namoo.html").write_text('<dt id="namoo.grad">')
    names = {"namoo.grad": "namoo.html#namoo.grad", "namoo.jit": "namoo.html#namoo.jit"}
    assert check_site.problems(tmp_path, names) == ["namoo.jit is missing from the reference"]
