"""`python -m namoo.inspect script.py::f`: what each line of a script's function costs.

The script runs first, as usual. Then `f` is inspected with the arguments of its first call, or
with those that `--args` computes.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from namoo import tree
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct
from namoo.core.trace import Tracer
from namoo.inspect.report import Inspection, inspect


def main(words: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m namoo.inspect", description="Show what each line of a function costs."
    )
    parser.add_argument("target", metavar="script.py::f", help="a file, and a name in it")
    parser.add_argument(
        "--args",
        default="",
        metavar="CODE",
        help="the arguments, as a Python expression of the script's names: 'params, x'; by "
        "default those of the first call in the script",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page instead of text")
    parser.add_argument("--json", metavar="FILE", help="write the numbers instead of text")
    options = parser.parse_args(words)
    file, _, name = options.target.partition("::")
    if not name or not Path(file).is_file():
        parser.error(f"{options.target!r} must be an existing file, '::' and a name in it")
    report = _inspected(file, name, options.args)
    if options.html:
        report.save(options.html)
    if options.json:
        Path(options.json).write_text(json.dumps(report.as_dict(), indent=1), encoding="utf-8")
    if not options.html and not options.json:
        print(report)


def _inspected(file: str, name: str, code: str) -> Inspection:
    """Run a script, and inspect one of its functions."""
    sys.path.insert(0, str(Path(file).resolve().parent))
    sys.argv = [file]
    names: dict[str, Any] = {"__name__": "__main__", "__file__": file, _RECORDED: Recorded}
    exec(_recording(file, name), names)
    found = names.get(name)
    if not isinstance(found, Recorded):
        functions = ", ".join(n for n, x in names.items() if callable(x) and n[0] not in "_")
        raise SystemExit(f"{file} defines no {name!r} outside of functions; it has: {functions}")
    if code:
        return inspect(found.fun, *eval(f"({code},)", names))
    if found.call is None:
        raise SystemExit(
            f"{file} does not call {name}: say with which arguments, by names that it defines, as "
            "in --args 'params, x'"
        )
    args, kwargs = found.call
    return inspect(found.fun, *args, **kwargs)


_RECORDED = "__namoo_recorded__"


class Recorded:
    """A function that keeps the arguments of its first call."""

    def __init__(self, fun: Any):
        self.fun = fun
        self.call: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fun, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is None:
            # Copies: the call may donate its arguments.
            self.call = tree.map(_copied, (args, kwargs))
        return self.fun(*args, **kwargs)


def _copied(x: Any) -> Any:
    if isinstance(x, Tracer):
        return ShapeDtypeStruct(x.shape, x.dtype)
    return x.copy() if isinstance(x, (Array, np.ndarray)) else x


def _recording(file: str, name: str) -> Any:
    """Compile a script in which the function `name` keeps the arguments of its first call."""
    module = ast.parse(Path(file).read_text(encoding="utf-8"), file)
    body: list[ast.stmt] = []
    for statement in module.body:
        body.append(statement)
        if name in _bound(statement):
            (wrap,) = ast.parse(f"{name} = {_RECORDED}({name})").body
            for node in ast.walk(wrap):
                ast.copy_location(node, statement)
            body.append(wrap)
    module.body = body
    return compile(module, file, "exec")


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    match statement:
        case ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


if __name__ == "__main__":
    main()
