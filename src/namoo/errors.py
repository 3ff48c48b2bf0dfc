"""Exception types, the user's own line, and the hiding of internal frames.

The exception types are JAX's, so that `except` clauses keep working.  Every message tells what
went wrong, where, and what to write instead.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from _thread import _local
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from namoo._config import config

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_hidden: tuple[str, ...] = (_PACKAGE,)


class JAXTypeError(TypeError):
    """What the errors about types have in common."""


class JAXIndexError(IndexError):
    """What the errors about indices have in common."""


class JaxprTypeError(TypeError):
    """A program whose types do not fit."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions that has no answer."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete Python value is needed."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value decided an `if`, `while`, `and`, `or`, `not` or `assert`."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer: a `range`, an index of a list, a shape."""


class TracerArrayConversionError(JAXTypeError):
    """A traced value was passed to NumPy itself."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown."""


class UnexpectedTracerError(Exception):
    """A traced value was kept after its transformation had finished."""


class KeyReuseError(RuntimeError):
    """A random key was consumed twice."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""


class Source:
    """A place in the user's program.

    One is made for every operation that is traced, and few are ever looked at: a place is the
    code and the instruction in it, and the line is found when it is asked for.
    """

    __slots__ = ("_code", "_instruction")

    def __init__(self, code: CodeType, instruction: int):
        self._code = code
        self._instruction = instruction

    def __reduce__(self) -> tuple[Any, ...]:
        return _source, (self.file, self.line, self.function)

    @property
    def file(self) -> str:
        return self._code.co_filename

    @property
    def function(self) -> str:
        return self._code.co_qualname

    @property
    def line(self) -> int:
        for start, end, line in self._code.co_lines():
            if start <= self._instruction < end and line is not None:
                return line
        return self._code.co_firstlineno

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Source({str(self)!r})"

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"

    @property
    def code(self) -> str:
        """The source line itself, or '' where the file cannot be read."""
        import linecache

        return linecache.getline(self.file, self.line).strip()


def _source(file: str, line: int, function: str) -> Source:
    """A place that was pickled: code itself cannot be."""
    code = compile("0", file, "eval")
    code = code.replace(co_firstlineno=line, co_name=function, co_qualname=function)
    return Source(code, len(code.co_code) - 2)  # its first instruction has no line of its own


def hide_frames(*modules: Any) -> None:
    """Hide a library's frames, as namoo's own are, in tracebacks and in reported lines.

    Args:
      *modules: modules or packages, or paths of their files.

    >>> import json
    >>> hide_frames(json)
    """
    global _hidden
    for module in modules:
        path = module if isinstance(module, str) else module.__file__
        path = os.path.abspath(path)
        if os.path.basename(path) == "__init__.py":
            path = os.path.dirname(path) + os.sep
        if path not in _hidden:
            _hidden = (*_hidden, path)


def is_hidden(filename: str) -> bool:
    """Whether a file belongs to namoo, or to a library that asked to be hidden."""
    return filename.startswith(_hidden)


def user_frame() -> FrameType | None:
    """The innermost frame on the stack that is not part of namoo."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_hidden):
        frame = frame.f_back
    return frame


class _Place(_local):
    """Where in the user's program a thread is, as far as that is known without looking.

    Attributes:
      eqn: the equation that it runs again, if it does so.
      operation: while only rules of namoo's own run, in a list, where they were asked for; the
        list is empty until somebody has looked.
      withheld: warnings that are not given, while a program is made of what ran before.
    """

    eqn: Any = None
    operation: list[Source | None] | None = None
    withheld: list[str] | None = None


place = _Place()

# The functions, by the id of their code, that run equations one by one and say so in `place`; the
# files they are in; and files that are known to be hidden and have no such function.
_replaying: set[int] = set()
_replaying_files: set[str] = set()
_known_hidden: set[str] = set()


def replays_equations(function: Any) -> Any:
    """Decorate a function that binds what was traced before: operations that come from an equation
    come from the line it was traced at.  The function sets `place.eqn`, and sets it back."""
    _replaying.add(id(function.__code__))
    _replaying_files.add(function.__code__.co_filename)
    return function


def user_source(inside: int = 0) -> Source | None:
    """Where the user's program is now; for an equation that runs again, where it was written.

    The innermost `inside` callers are known to be neither.
    """
    known = place.operation
    if known is None:
        return _look(inside)
    if not known:
        known.append(_look(inside))
    return known[0]


def _look(inside: int) -> Source | None:
    frame: FrameType | None = sys._getframe(2 + inside)
    while frame is not None:
        code = frame.f_code
        if code.co_filename not in _known_hidden:
            if not code.co_filename.startswith(_hidden):
                return Source(code, frame.f_lasti)
            if code.co_filename not in _replaying_files:
                _known_hidden.add(code.co_filename)
            elif id(code) in _replaying and place.eqn is not None:
                if place.eqn.source is not None:
                    return place.eqn.source
        frame = frame.f_back
    return None


def at_user_line(source: Source | None = None) -> str:
    """A sentence part that names the user's line, for the end of a message."""
    source = source or user_source()
    if source is None:
        return ""
    code = source.code
    return f"\n  at {source}" + (f"\n    {code}" if code else "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's own line."""
    if place.withheld is not None:
        place.withheld.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_hidden):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Parts of the package that come between a function of the library and its caller.
_BETWEEN = tuple(
    _PACKAGE + part.replace("/", os.sep)
    for part in (
        "errors.py",
        "_dtypes/",
        "_lazy.py",
        "_spans.py",
        "_tree/",
        "tree",
        "core/",
        "primitives/",
        "transforms/",
        "control/",
        "api/",
        "numpy/promote.py",
        "numpy/fast.py",
        "numpy/ufuncs.py",
        "numpy/_methods.py",
        "random/arguments.py",
        "scipy/linalg/arguments.py",
        "scipy/stats/arguments.py",
    )
)


def called_by_user(name: str = "") -> bool:
    """Whether the user mixes the operands of an operation, not a function of the library.

    The settings that refuse to mix ranks or types are about the user's own operands.  What a
    library function does with its intermediate values is its own affair.  Its calls are told from
    the user's where an error would be raised, so that nothing else pays for it: the functions
    between the operation and the user's line are in the file of the one that the user called,
    which hands its arguments on, or have its name.

    Args:
        name: the public function whose operands do not fit.
    """
    frame: FrameType | None = sys._getframe(1)
    inner: FrameType | None = None
    outer: FrameType | None = None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if not frame.f_code.co_filename.startswith(_BETWEEN):
            outer = frame
            inner = inner or frame
        frame = frame.f_back
    if inner is None or outer is None:
        return True
    if inner.f_code.co_filename == outer.f_code.co_filename:
        return True
    if outer.f_code.co_name == name.rpartition(".")[2]:
        return True
    if place.withheld is not None:
        # A remembered program would let the same operands of a user pass.
        place.withheld.append(name)
    return False


def visible(tb: TracebackType | None) -> TracebackType | None:
    """The traceback without hidden frames."""
    frames = []
    while tb is not None:
        if not is_hidden(tb.tb_frame.f_code.co_filename):
            frames.append(tb)
        tb = tb.tb_next
    out = None
    for entry in reversed(frames):
        out = TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def tidy(error: BaseException) -> None:
    """Hide namoo's own frames in an exception; follow it with a bare `raise`.

    A bare `raise` takes the traceback from the exception and adds no frame for the function it
    stands in, so what is hidden here stays hidden.
    """
    if config.traceback_filtering != "off":
        error.__traceback__ = visible(error.__traceback__)


def boundary(fun: F) -> F:
    """Make `fun` an entry point: exceptions leave it without namoo's own frames.

    `config.update("jax_traceback_filtering", "off")` shows them again.
    """

    @functools.wraps(fun)
    def entry(*args, **kwargs):
        try:
            return fun(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            tidy(error)
            raise

    entry.is_boundary = True  # type: ignore[attr-defined]
    return entry  # type: ignore[return-value]


def guarded(fun: FunctionType, namespace: str) -> Any:
    """A public function of a namespace as an entry point.

    Functions call one another inside without this; only what a user calls is wrapped.
    """
    if not is_hidden(fun.__code__.co_filename) or hasattr(fun, "is_boundary"):
        return fun
    entry = boundary(fun)
    # Under this name it can be pickled.
    entry.__module__ = namespace
    return entry


def guard(namespace: dict[str, Any]) -> None:
    """Make the public functions of a namespace entry points, under the namespace's own name."""
    for name, fun in list(namespace.items()):
        if not name.startswith("_") and isinstance(fun, FunctionType):
            namespace[name] = guarded(fun, namespace["__name__"])
