"""What a page calls to run a cell, as a notebook would: the last expression is shown."""

import ast
import linecache
import os
import sys
import traceback

# A browser has neither a compiler nor the C++ part, and that is no news to the reader.
os.environ |= {"NAMOO_ENGINE": "interpreter", "NAMOO_RUNTIME": "python"}

NAMES: dict = {"__name__": "__main__"}
PICTURES = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}


def run(source: str, name: str, display) -> dict:
    """Run a source; return the text and the kind of its error, or nothing."""
    remember(source, name)
    try:
        tree = ast.parse(source, name)
        last = tree.body[-1:] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
        body = ast.Module(tree.body[: len(tree.body) - len(last)], tree.type_ignores)
        exec(compile(body, name, "exec"), NAMES)
        if last:
            show(eval(compile(ast.Expression(last[0].value), name, "eval"), NAMES), display)
    except BaseException as error:
        return describe(error)
    finally:
        draw(display)
    return {}


def check(source: str, name: str, display) -> dict:
    """Run assertions one by one; return what is right and the first thing that is missing."""
    remember(source, name)
    right: list[str] = []
    try:
        for statement in ast.parse(source, name).body:
            exec(compile(ast.Module([statement], []), name, "exec"), NAMES)
            match statement:
                case ast.Assert(msg=ast.Constant(value=str(message))):
                    right.append(message)
    except AssertionError as error:
        return describe(error) | {"right": right, "missing": str(error)}
    except BaseException as error:
        return describe(error) | {"right": right}
    finally:
        draw(display)
    return {"right": right}


def remember(source: str, name: str) -> None:
    """Let tracebacks show the lines of a cell."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name


def draw(display) -> None:
    """Show the pictures that a cell has drawn, and what it has printed."""
    if "matplotlib.pyplot" in sys.modules:
        for picture in sys.modules["matplotlib.pyplot"].finished():
            display("image/svg+xml", picture)
    sys.stdout.flush()
    sys.stderr.flush()


def show(value, display) -> None:
    """Show what a cell ends with, as a picture if it knows how to draw itself."""
    if value is None:
        return
    for method, mime in PICTURES.items():
        if not isinstance(value, type) and hasattr(value, method):
            display(mime, getattr(value, method)())
            return
    display("text/plain", repr(value))


def describe(error: BaseException) -> dict[str, str]:
    """The error as in a terminal, without the frames of this file."""
    frames = error.__traceback__
    own = describe.__code__.co_filename
    while frames is not None and frames.tb_frame.f_code.co_filename == own:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    return {"error": text, "kind": type(error).__name__}
