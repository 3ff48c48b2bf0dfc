"""Call the public functions with arguments that none of them takes.

Print those whose errors show a frame of the package.
"""

import importlib
import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import reference
from namoo._base.source_context import is_hidden

# Written for authors of libraries, who may see frames of namoo; and what starts services.
OF_LIBRARIES = ("namoo.api_util", "namoo.core", "namoo.extend", "namoo.interpreters")
STARTING = {"initialize", "start_server", "breakpoint"}


def wrong_calls(fun: Callable) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Calls whose arguments are nothing that the function could take."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [p for p in parameters if p.default is p.empty]
    keywords = {p.name: object() for p in needed if p.kind is p.KEYWORD_ONLY}
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed)
    for argument in (object(), "a"):
        if count:
            yield [argument] * count, keywords


def shows_frames(fun: Callable) -> bool:
    """Whether an error of the function shows a frame of the package."""
    for args, kwargs in wrong_calls(fun):
        try:
            fun(*args, **kwargs)
        except Exception as error:
            files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            if any(is_hidden(file) for file in files):
                return True
    return False


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for space in reference.NAMESPACES:
        module = importlib.import_module(space)
        for name in sorted(set(dir(module)) - STARTING):
            fun = getattr(module, name)
            if inspect.isfunction(fun) and not space.startswith(OF_LIBRARIES) and shows_frames(fun):
                print(f"{space}.{name}")
