"""`namoo.debug`: look at the values of a program while it runs."""

from __future__ import annotations

import builtins
import logging
import pdb
import re
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.source_context import entry_point, is_hidden, user_frame
from namoo._base.source_context import make_entry_points as _guard
from namoo._base.terminal import colors_wanted
from namoo.control.callback import bind_debug, debug_callback_p, debug_print_p, refuse_arguments
from namoo.control.callback import debug_callback as callback
from namoo.core.trace import Tracer
from namoo.devices.primitives import inspect_sharding_p
from namoo.engines.registry import home
from namoo.transforms.stage import stage

__all__ = [
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
__dir__ = __all__.copy

_log = logging.getLogger("namoo.debug")


class _Checker(string.Formatter):
    """Finds out whether a format string and its arguments belong together, without formatting:
    the values are not known yet."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first = re.split(r"[.\[]", field_name, maxsplit=1)[0]
        key = int(first) if first.isdigit() else first
        try:
            return self.get_value(key, args, kwargs), key
        except IndexError:
            raise IndexError(
                f"Replacement index {key} out of range for positional args tuple: debug.print has "
                f"more {{}} in its format string than positional arguments, which are {len(args)}."
            ) from None
        except KeyError:
            raise KeyError(
                f"debug.print: the format string has {{{key}}}, but there is no argument {key}. "
                f"Write debug.print(..., {key}=value)."
            ) from None

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used_args, args, kwargs):
        positional = [x for i, x in enumerate(args) if i not in used_args]
        if positional:
            raise ValueError(
                f"Unused positional arguments to debug.print: {positional}. Write a {{}} in the "
                "format string for each argument."
            )
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {names}. Write {{name}} in the "
                'format string for each. You may be passing an f-string (f"{x}"), which is '
                "formatted before the values are known: pass an ordinary string."
            )


def _emit(fmt: str, args: tuple, kwargs: dict, write: Callable[[str], None], options: dict) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: the format must be a str, got {type(fmt).__name__}.")
    if not options["skip_format_check"]:
        _Checker().vformat(fmt, args, kwargs)

    now = np.get_printoptions()

    def show(*values, **named):
        with np.printoptions(**now):
            text = fmt.format(*values, **named)
        write(text)

    bind_debug(debug_print_p, show, args, kwargs, fmt=fmt, ordered=options["ordered"])


@entry_point
def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values when the program runs, also inside of `jit`, `vmap`, `grad` and loops.

    Args:
        fmt: a format string as for `str.format`, such as "x is {x}, y is {}"; if None, the result
            is this function with the options given.
        *args: values for the `{}` in it: arrays, trees of them, or anything else.
        ordered: print in the order of the program; here it always is.
        partitioned: has no effect.
        skip_format_check: do not check the format string before the program runs.
        **kwargs: values for the `{name}` in it.

    Raises:
        ValueError: an argument is not used by the format string.
        IndexError: the format string uses more arguments than there are.
        KeyError: the format string uses a name that is not given.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo import debug
        >>> f = namoo.jit(lambda x: debug.print("x is {} and {y}", x, y=2 * x))
        >>> f(3)
        x is 3 and 6
    """
    options = dict(ordered=bool(ordered), skip_format_check=skip_format_check)
    if fmt is None:
        refuse_arguments("debug_print", args, kwargs)
        return lambda fmt, *args, **kwargs: _emit(fmt, args, kwargs, _print_line, options)
    _emit(fmt, args, kwargs, _print_line, options)
    return None


def _print_line(text: str) -> None:
    # In one piece: several devices may print at once.
    builtins.print(f"{text}\n", end="")


def _log_line(text: str) -> None:
    _log.info("%s", text)


@entry_point
def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """As `debug.print`, but to the logger `namoo.debug`, at level INFO.

    Args:
        fmt: a format string as for `str.format`; if None, the result is this function with the
            options given.
        *args: values for the `{}` in it.
        ordered: log in the order of the program; here it always is.
        partitioned: has no effect.
        skip_format_check: do not check the format string before the program runs.
        **kwargs: values for the `{name}` in it.

    Example:
        >>> import namoo
        >>> from namoo import debug
        >>> namoo.jit(lambda x: debug.log("x is {}", x))(3)
    """
    options = dict(ordered=bool(ordered), skip_format_check=skip_format_check)
    if fmt is None:
        refuse_arguments("debug_log", args, kwargs)
        return lambda fmt, *args, **kwargs: _emit(fmt, args, kwargs, _log_line, options)
    _emit(fmt, args, kwargs, _log_line, options)
    return None


def _is_live(x: Any) -> bool:
    return isinstance(x, Tracer) and x._trace.alive


def _leaves(x: Any) -> list:
    """The leaves of any local variable; it need not be a tree that can be flattened."""
    try:
        return tree_util.tree_leaves(x)
    except (TypeError, ValueError):
        return [x]


class _Debugger(pdb.Pdb):
    """A debugger whose stack has the user's frames only."""

    def get_stack(self, f, t):
        stack, current = super().get_stack(f, t)
        shown = [i for i, (frame, _) in enumerate(stack) if not _is_own(frame)]
        before = sum(i < current for i in shown)
        return [stack[i] for i in shown], min(before, len(shown) - 1)


def _is_own(frame: FrameType) -> bool:
    return is_hidden(frame.f_code.co_filename)


def _frames_of_the_trace() -> list[FrameType]:
    """The user's frames from the current one to the function that is being traced."""
    frame = user_frame()
    found: list[FrameType] = []
    inside = 1
    while frame is not None:
        if not _is_own(frame):
            found.append(frame)
        elif frame.f_code is stage.__code__:
            inside = len(found)
        frame = frame.f_back
    return found[:inside]


def _at_line_of(frame: FrameType, statement: str) -> CodeType:
    """Compile a statement at the line of a frame, so that the debugger lists the code around it."""
    code = compile("\n" * (frame.f_lineno - 1) + statement, frame.f_code.co_filename, "exec")
    return code.replace(co_name=frame.f_code.co_name, co_qualname=frame.f_code.co_qualname)


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Stop the program when it runs, in Python's debugger, with the values of your variables.

    The debugger shows the line that calls `breakpoint`; its local variables have the values of
    this run, where in the function itself they are traced. Type `p x` to see one, `up` to go to the
    caller, up to the function under `jit`, and `c` to go on.

    Args:
        backend: 'cli' or None, which is the same.
        filter_frames: leave namoo's own functions out of the stack.
        num_frames: how many functions to keep at most, from the one that calls `breakpoint`.
        ordered: stop in the order of the program; here it always does.
        token: has no effect.
        **kwargs: passed to `pdb.Pdb`.

    Raises:
        ValueError: the backend is unknown, or `num_frames` is less than 1.
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: the backend must be 'cli' or None, got {backend!r}.")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames must be at least 1, got {num_frames}.")
    frames = _frames_of_the_trace()[:num_frames]
    codes = [_at_line_of(frame, "exec(*_inner)") for frame in frames]
    codes[0] = _at_line_of(frames[0], "_debugger.set_trace()")
    spaces = [frame.f_globals for frame in frames]
    traced: list[dict[str, Any]] = [{} for _ in frames]
    static: list[dict[str, Any]] = [{} for _ in frames]
    for frame, changing, fixed in zip(frames, traced, static, strict=True):
        for name, value in frame.f_locals.items():
            (changing if any(map(_is_live, _leaves(value))) else fixed)[name] = value

    def stop(values):
        inner: Any = {"_debugger": (_Debugger if filter_frames else pdb.Pdb)(**kwargs)}
        for number, changing in enumerate(values):
            # Each frame runs the next inner one, so that the debugger has the callers, too.
            local = {**static[number], **changing, **inner}
            inner = {"_inner": (codes[number], spaces[number], local)}
        exec(*inner["_inner"])

    bind_debug(debug_callback_p, stop, (traced,), {}, ordered=bool(ordered))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[float], Sequence[float]] | None = None,
) -> None:
    """Print a picture of which devices hold which part of an array of a given shape.

    If the array has more than two dimensions, the picture shows those that are split.

    Args:
        shape: the shape of the array.
        sharding: the sharding of the array.
        use_color: colour the parts, where the output is a terminal.
        scale: how large the picture is.
        min_width: the least width of a part, in letters.
        max_width: the greatest width of the picture, in letters.
        color_map: gives a colour (red, green, blue, each up to 1) for a number from 0 to 1.

    Raises:
        ValueError: more than two dimensions are split, or one cannot be split evenly.

    Example:
        >>> import namoo
        >>> from namoo.sharding import NamedSharding, PartitionSpec as P
        >>> mesh = namoo.make_mesh((1,), ("x",))
        >>> visualize_sharding((8, 4), NamedSharding(mesh, P("x")), scale=0.2, max_width=20)
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    from namoo.devices.sharding.visualize import picture

    drawn = picture(
        shape,
        sharding,
        color_map=color_map,
        use_color=use_color and colors_wanted(sys.stdout),
        scale=scale,
        min_width=min_width,
        max_width=max_width,
    )
    builtins.print(drawn)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call a function with an array's sharding.

    Under `jit` it is called when the program is compiled, which decides the sharding of values.

    Args:
        value: an array, or a tree of them.
        callback: called with the sharding of each.

    Example:
        >>> import namoo.numpy as jnp
        >>> found = []
        >>> inspect_array_sharding(jnp.ones(3), callback=found.append)
        >>> found
        [SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)]
    """
    # Imported here because printing needs no devices.
    from namoo.devices.placement import as_sharding

    def report(place: Any) -> None:
        callback(as_sharding(home() if place is None else place))

    for leaf in tree_util.tree_leaves(value):
        if isinstance(leaf, Tracer):
            inspect_sharding_p.bind(leaf, callback=report)
        else:
            callback(leaf.sharding)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print a picture of which devices hold which part of an array.

    Args:
        arr: the array.
        **kwargs: as for `visualize_sharding`.

    Example:
        >>> import namoo.numpy as jnp
        >>> visualize_array_sharding(jnp.ones(3))
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs)
    )


_guard(globals())
