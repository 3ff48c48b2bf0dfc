"""The user's line behind an operation, and tracebacks without namoo's own frames.

Messages and warnings name the line of the user's program. It is found by walking the stack to the
first frame outside the package, or, when a traced program runs, from the equation that is running.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from namoo._base.caches import register
from namoo._base.config import config

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_hidden: tuple[str, ...] = (_PACKAGE,)
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_LIBRARIES = re.compile(r"<frozen |.*[/\\](numpy|scipy|opt_einsum|llvmlite)[/\\]")


class NameStack(tuple[str, ...]):
    """The names of the scopes that an operation was traced in, from the outermost one."""

    __slots__ = ()

    def extend(self, name: str) -> NameStack:
        """The stack with one more name."""
        return NameStack((*self, name))

    def __str__(self) -> str:
        return "/".join(self)


class Source:
    """A position in the user's program.

    One is made for every operation that is traced, and few are ever read. It stores the code object
    and the instruction; the line is computed on demand.
    """

    __slots__ = ("_code", "_instruction", "name_stack")
    backward = False
    """Whether the operation belongs to a backward pass."""

    def __init__(self, code: CodeType, instruction: int, name_stack: NameStack):
        self._code = code
        self._instruction = instruction
        self.name_stack: NameStack = name_stack

    def __reduce__(self) -> tuple[Any, ...]:
        return _source, (self.file, self.line, self.function, self.name_stack, type(self))

    @property
    def file(self) -> str:
        return self._code.co_filename

    @property
    def function(self) -> str:
        return self._code.co_qualname

    @property
    def position(self) -> tuple[int, int]:
        """The instruction, as a key that is cheap to make; a line has several."""
        return id(self._code), self._instruction

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
        cell = _notebook_cell(self.file)
        place = f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"
        return f"{place} ({self.function})"

    @property
    def code(self) -> str:
        """The text of the line, or '' where the file cannot be read."""
        import linecache  # loaded late: it loads the tokenizer

        return linecache.getline(self.file, self.line).strip()


class BackwardSource(Source):
    """The line of an operation whose derivative a backward pass computes."""

    __slots__ = ()
    backward = True

    @staticmethod
    def of(source: Source) -> BackwardSource:
        return BackwardSource(source._code, source._instruction, source.name_stack)


def _notebook_cell(file: str) -> str:
    """Return the name that a notebook shows for the file of a cell, or ''."""
    if (ipython := sys.modules.get("IPython")) is None:
        return ""
    shell = ipython.get_ipython()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(name) if name else ""  # None for a file that is not a cell


def _source(
    file: str, line: int, function: str, name_stack: NameStack, kind: type[Source]
) -> Source:
    """Rebuild a pickled source; a code object itself cannot be pickled."""
    code = compile("0", file, "eval")
    code = code.replace(co_firstlineno=line, co_name=function, co_qualname=function)
    # Its first instruction has no line of its own.
    return kind(code, len(code.co_code) - 2, name_stack)


def hide_frames(*modules: Any) -> None:
    """Hide the frames of a library in tracebacks and reported lines, like namoo's own.

    Args:
        *modules: Modules or packages, or paths of their files.

    Example:
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
            _kinds.clear()


def show_frames(path: str) -> None:
    """Show the frames of a file or folder that was passed to `hide_frames`.

    Example:
        >>> import json
        >>> hide_frames(json.__file__)
        >>> show_frames(json.__file__)
        >>> is_hidden(json.__file__)
        False
    """
    global _hidden
    path = os.path.abspath(path)
    if os.path.basename(path) == "__init__.py":
        path = os.path.dirname(path) + os.sep
    _hidden = tuple(kept for kept in _hidden if kept != path or kept == _PACKAGE)
    _kinds.clear()


def is_hidden(filename: str) -> bool:
    """Whether a file belongs to namoo, or to a library that was passed to `hide_frames`."""
    return filename.startswith(_hidden)


def user_frame() -> FrameType | None:
    """Return the innermost frame on the stack that is not hidden."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_hidden):
        frame = frame.f_back
    return frame


class _SourceContext(_local):
    """What is known about the user's line of the current thread without walking the stack.

    Attributes:
        eqn: The equation that runs, while a traced program is evaluated.
        operation: While only rules of namoo itself run: a list with the line of the operation that
            they belong to. The list is empty until the line is asked for.
        name_stack: The names of the scopes that the thread is in.
        backward: Whether a backward pass runs.
        withheld: Collects warnings instead of giving them, while a program is made from an earlier
            run.
    """

    eqn: Any = None
    operation: list[Source | None] | None = None
    name_stack: NameStack = NameStack()
    backward: bool = False
    withheld: list[str] | None = None


source_context = _SourceContext()


@contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Use these names of scopes for the operations that are traced within the block."""
    outer, source_context.name_stack = source_context.name_stack, name_stack
    try:
        yield
    finally:
        source_context.name_stack = outer


# The functions that evaluate equations one by one and set `source_context.eqn`, by the id of their
# code, and the files that contain them.
_replaying: set[int] = set()
_replaying_files: set[str] = set()
_VISIBLE, _INTERNAL, _REPLAYING = range(3)
_kinds: dict[str, int] = register(
    "base kinds of files",
    {},
    bound="files whose functions call namoo",
    keyed_by="file name",
)


def _kind(file: str) -> int:
    """Whether a user wants to see the lines of a file, and whether it replays equations.

    A line of NumPy or SciPy that calls namoo is not the user's: its caller is.
    """
    if file in _replaying_files:
        kind = _REPLAYING
    else:
        kind = _INTERNAL if is_hidden(file) or _LIBRARIES.match(file) else _VISIBLE
    _kinds[file] = kind
    return kind


def replays_equations(function: Any) -> Any:
    """Declare a function that binds equations traced before.

    Operations that come from an equation report the line where the equation was traced. The
    function sets `source_context.eqn`, and restores it.
    """
    _replaying.add(id(function.__code__))
    _replaying_files.add(function.__code__.co_filename)
    return function


def user_source(inside: int = 0) -> Source | None:
    """Return the user's current line; for an equation that runs again, the line that traced it.

    Args:
        inside: The number of innermost callers that need not be looked at.
    """
    known = source_context.operation
    if known is None:
        source = _find_source(inside)
    else:
        if not known:
            known.append(_find_source(inside))
        source = known[0]
    if source_context.backward and source is not None and not source.backward:
        return BackwardSource.of(source)
    return source


def _find_source(inside: int) -> Source | None:
    frame: FrameType | None = sys._getframe(2 + inside)
    while frame is not None:
        code = frame.f_code
        kind = _kinds.get(code.co_filename)
        if kind is None:
            kind = _kind(code.co_filename)
        if kind == _VISIBLE:
            return Source(code, frame.f_lasti, source_context.name_stack)
        if kind == _REPLAYING and id(code) in _replaying and source_context.eqn is not None:
            if source_context.eqn.source is not None:
                return source_context.eqn.source
        frame = frame.f_back
    return None


def at_user_line(source: Source | None = None) -> str:
    """Return the end of a message that names the user's line.

    The text of the line is left out where the traceback ends with it.

    Args:
        source: The line; by default that of the operation or equation that runs.
    """
    source = source or user_source()
    if source is None:
        return ""
    frame = user_frame()
    if frame is not None and source == Source(frame.f_code, frame.f_lasti, source.name_stack):
        return f"\n  at {source}"
    code = source.code
    return f"\n  at {source}" + (f"\n    {code}" if code else "")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line."""
    if source_context.withheld is not None:
        source_context.withheld.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_hidden):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


BETWEEN = (
    "errors.py",
    "_base/",
    "tree/",
    "tree_util.py",
    "core/",
    "primitives/",
    "transforms/",
    "control/",
    "memo/",
    "devices/",
    "api/",
    "eager/",
    "numpy/promote.py",
    "numpy/ufuncs.py",
    "numpy/_methods.py",
    "random/arguments.py",
    "scipy/linalg/arguments.py",
    "scipy/stats/arguments.py",
)
"""Files and folders of the package that are between a library function and its caller."""
_between = tuple(_PACKAGE + path.replace("/", os.sep) for path in BETWEEN)


def called_by_user(name: str = "") -> bool:
    """Whether the operands of an operation come from the user, not from a library function.

    The settings that refuse to mix ranks or dtypes are about the user's own operands; what a
    library function does with intermediate values is its own affair. The distinction is made only
    where an error would be raised, so nothing else pays for it. An operation belongs to the user if
    all library functions between it and the user's line are in one file, that of the function that
    the user called, or if that function has the name of the operation.

    Args:
        name: The public function whose operands do not fit.
    """
    frame: FrameType | None = sys._getframe(1)
    inner: FrameType | None = None
    outer: FrameType | None = None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if not frame.f_code.co_filename.startswith(_between):
            outer = frame
            inner = inner or frame
        frame = frame.f_back
    if inner is None or outer is None:
        return True
    if inner.f_code.co_filename == outer.f_code.co_filename:
        return True
    if outer.f_code.co_name == name.rpartition(".")[2]:
        return True
    if source_context.withheld is not None:
        # Otherwise a remembered program would accept the same operands from a user.
        source_context.withheld.append(name)
    return False


def called_function(default: str) -> str:
    """Return the name of the function of namoo that the user called, for a message.

    Args:
        default: The name to use if it cannot be found.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_hidden(frame.f_code.co_filename):
        fun = frame.f_locals.get("fun")  # the wrapper of an entry point has it
        default = getattr(fun, "__name__", default)
        frame = frame.f_back
    return default


def _is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, or to a library that namoo is built on."""
    if file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file:
        return True
    return _LIBRARIES.match(file) is not None


def raised_at(error: BaseException) -> Source | None:
    """Return the user's line that raised an exception, or that called what raised it."""
    tb, found = _visible(error.__traceback__), None
    while tb is not None:
        found = Source(tb.tb_frame.f_code, tb.tb_lasti, source_context.name_stack)
        tb = tb.tb_next
    return found


def _visible(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without hidden frames."""
    frames, inside = [], False
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        # Frames of NumPy and the standard library that namoo calls are hidden, too.
        inside = is_hidden(file) or inside and _is_library(file)
        if not inside:
            frames.append(tb)
        tb = tb.tb_next
    out = None
    for entry in reversed(frames):
        out = TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def hide_internal_frames(error: BaseException) -> None:
    """Remove namoo's own frames from an exception; to be followed by a bare `raise`.

    A bare `raise` takes the traceback from the exception and adds no frame for the function that
    contains it, so the frames stay hidden. An exception that namoo had caught before it raised
    this one is not shown, either.
    """
    if config.traceback_filtering == "off":
        return
    if type(error) is TypeError:
        from namoo._base.hints import explain_type_error  # needed only for errors

        explain_type_error(error, _visible(error.__traceback__))
    error.__traceback__ = _visible(error.__traceback__)
    while (earlier := error.__context__) is not None:
        shown = _visible(earlier.__traceback__)
        if shown is not None:
            earlier.__traceback__ = shown
            break
        if earlier is error.__cause__:
            break
        error.__context__ = earlier.__context__


def entry_point(fun: F, namespace: str | None = None) -> F:
    """Make `fun` an entry point: exceptions leave it without namoo's own frames.

    `config.update("jax_traceback_filtering", "off")` shows the frames again.

    Args:
        fun: A function of namoo.
        namespace: The public module of the function, from which it can be pickled. A function that
            is an entry point already, or that is not namoo's, is returned unchanged.
    """
    if namespace is not None:
        if hasattr(fun, "is_entry_point") or not is_hidden(fun.__code__.co_filename):
            return fun
        if "entry" in fun.__dict__:  # a function that two namespaces have is one object
            return fun.__dict__["entry"]

    @functools.wraps(fun)
    def entry(*args, **kwargs):
        try:
            return fun(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            hide_internal_frames(error)
            raise

    entry.is_entry_point = True  # type: ignore[attr-defined]
    if namespace is not None:
        entry.__module__ = namespace
        fun.entry = entry  # type: ignore[attr-defined]
    return entry  # type: ignore[return-value]


def make_entry_points(namespace: dict[str, Any]) -> None:
    """Make the public functions of a module entry points.

    Functions of the package call one another without them; only what users call is wrapped.

    Args:
        namespace: `globals()` of the module; `__all__` in it tells which names are public.
    """
    for name in namespace.get("__all__", list(namespace)):
        fun = namespace.get(name)
        if not name.startswith("_") and isinstance(fun, FunctionType):
            namespace[name] = entry_point(fun, namespace["__name__"])


C = TypeVar("C", bound=type)


def entry_class(cls: C) -> C:
    """Make the constructor and the public methods of a class entry points."""
    for name, thing in list(vars(cls).items()):
        is_public = not name.startswith("_") or name in ("__init__", "__call__", "__getitem__")
        if is_public and isinstance(thing, FunctionType):
            setattr(cls, name, entry_point(thing))
        elif is_public and isinstance(thing, classmethod):
            setattr(cls, name, classmethod(entry_point(thing.__func__)))
    return cls
