"""Run programs that fail, and print what their users read as JSON.

`python run.py FOLDER` runs the files of a folder in order, in one process. Each is the main module.
"""

import contextlib
import io
import json
import os
import sys
import warnings
from pathlib import Path


def outcome(path: Path) -> dict[str, object]:
    """Run a program: what it writes to the terminal, and the names of its error's classes."""
    kinds: list[str] = []
    code = compile(path.read_text(encoding="utf-8"), path.name, "exec")
    with (
        contextlib.redirect_stderr(io.StringIO()) as text,
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            exec(code, {"__name__": "__main__", "__file__": path.name})
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            shown = error.__traceback__ and error.__traceback__.tb_next
            sys.__excepthook__(type(error), error.with_traceback(shown), shown)
    return {"kinds": kinds, "text": text.getvalue()}


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    json.dump({path.stem: outcome(path) for path in sorted(Path().glob("*.py"))}, sys.stdout)
