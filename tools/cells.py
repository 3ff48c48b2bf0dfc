"""Pages with code cells: run them, and write them as notebooks.

A cell is a fenced block of Python. Its output is written below the call, after `#>`:

    ```python
    print(1 + 1)
    #> 2
    ```

The word after `python` says what kind of cell it is:

    native      the output is that of the native engine, which a browser does not have
    raises      the cell ends with an error, and the lines after `#>` are its message
    exercise    what the reader completes
    check       assertions with messages: they fail for the exercise and hold for the solution
    solution    takes the place of the exercise
    shown       code for another library, which is not run

    python tools/cells.py --run FILE...     run pages; an output that differs is an error
    python tools/cells.py FOLDER            write the lessons as notebooks
"""

import contextlib
import doctest
import io
import json
import linecache
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
LANGUAGES = {"en": DOCS, "ko": DOCS / "ko"}
BLOCK = re.compile(r"^```python *(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Cell(NamedTuple):
    """A piece of a page: `text` is Markdown, the other kinds are Python."""

    kind: str
    source: str

    @property
    def code(self) -> str:
        """The source without the outputs."""
        return re.sub(r"^#>.*\n?", "", self.source, flags=re.MULTILINE)

    @property
    def output(self) -> str:
        """What the cell prints."""
        return "".join(f"{line}\n" for line in re.findall(r"^#> ?(.*)$", self.source, re.MULTILINE))


def read(path: Path) -> list[Cell]:
    """The cells of a page, in order."""
    text = path.read_text(encoding="utf-8")
    cells, end = [], 0
    for block in BLOCK.finditer(text):
        cells.append(Cell("text", text[end : block.start()]))
        cells.append(Cell(block[1] or "code", block[2]))
        end = block.end()
    return [cell for cell in [*cells, Cell("text", text[end:])] if cell.source.strip()]


def execute(source: str, name: str, names: dict) -> str:
    """Run a source and return what it prints."""
    # Errors show the lines of a cell, and namoo reads them.
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), names)
    return printed.getvalue()


def same(expected: str, found: str, name: str) -> None:
    if not doctest.OutputChecker().check_output(expected, found, LIKE):
        raise AssertionError(f"{name} prints\n{found}\nand the page says\n{expected}")


def run(path: Path) -> None:
    """Run a page from top to bottom, with the solutions in place of the exercises."""
    names: dict = {"__name__": "__main__"}
    exercise = check = ""
    for number, cell in enumerate(read(path)):
        name = f"<{path.stem}, cell {number}>"
        match cell.kind:
            case "text" | "shown":
                pass
            case "code" | "native":
                same(cell.output, execute(cell.code, name, names), name)
            case "raises":
                try:
                    execute(cell.code, name, names)
                except Exception as error:
                    same(cell.output, "".join(traceback.format_exception_only(error)), name)
                else:
                    raise AssertionError(f"{name} raises nothing")
            case "exercise":
                exercise = cell.code
            case "check":
                check = cell.code
                unsolved = dict(names)
                execute(exercise, name, unsolved)
                try:
                    execute(check, name, unsolved)
                except AssertionError as error:
                    assert str(error), f"{name} does not say what is missing"
                else:
                    raise AssertionError(f"{name} passes for an unsolved exercise")
            case "solution":
                execute(cell.code, name, names)
                same(cell.output, execute(check, name, names), name)
            case kind:
                raise AssertionError(f"{name} is of an unknown kind: {kind}")


def notebook(cells: list[Cell]) -> dict:
    """A page as a notebook, in Jupyter's format 4.5."""
    made = []
    for number, (kind, source) in enumerate(cells):
        cell = {"id": f"cell-{number}", "metadata": {}}
        if kind in ("text", "solution", "shown"):
            if kind != "text":  # to be read, not to be run
                source = f"```python\n{source}```\n"
            cell |= {"cell_type": "markdown", "source": source.strip()}
        else:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
            cell["source"] = cells[number].code.strip()
            if kind == "raises":
                cell["metadata"] = {"tags": ["raises-exception"]}
            elif text := cells[number].output:
                cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}]
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def lessons(language: str = "en") -> list[Path]:
    """The lessons of a language, in order."""
    return sorted((LANGUAGES[language] / "lessons").glob("[0-9]*.md"))


def write_notebooks(folder: Path) -> None:
    for language in LANGUAGES:
        (folder / language).mkdir(parents=True, exist_ok=True)
        for path in lessons(language):
            text = json.dumps(notebook(read(path)), ensure_ascii=False, indent=1)
            (folder / language / f"{path.stem}.ipynb").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        for file in sys.argv[2:]:
            run(Path(file))
    else:
        write_notebooks(Path(sys.argv[1]))
