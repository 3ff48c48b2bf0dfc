"""The expression of the user's program that is being evaluated, for error messages."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from itertools import islice
from types import FrameType, ModuleType

from namoo._base.source_context import user_frame
from namoo._base.tracer_advice import PRINT_ADVICE


def nodes_at(frame: FrameType) -> list[ast.AST]:
    """Return the syntax of a frame's current instruction: the expression, then what contains it.

    The list ends with the statement. It is empty where the source is not known.
    """
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if place is None or None in place:
        return []
    line, end_line, column, end_column = place
    try:
        module = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:  # the file has changed, or is not Python
        return []
    found: list[ast.AST] = []
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        first = getattr(node, "lineno", None)
        if first is not None:
            start, end = (first, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
            if start > (line, column) or end < (end_line, end_column):
                continue
            found.append(node)
            todo.clear()  # one child contains the instruction
        todo += ast.iter_child_nodes(node)
    found.reverse()
    statement = next((i for i, node in enumerate(found) if isinstance(node, ast.stmt)), len(found))
    return found[: statement + 1]


def _module_of(node: ast.AST, frame: FrameType) -> str:
    """Return the name of the module that an expression is, or ''."""
    if isinstance(node, ast.Name):
        thing = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        return thing.__name__ if isinstance(thing, ModuleType) else ""
    return ""


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def advice_for_code() -> str:
    """Return what to write instead of the user's current expression on a traced value, or ''."""
    frame = user_frame()
    nodes = nodes_at(frame) if frame is not None else []
    for i, node in enumerate(nodes):
        rule = _RULES.get(type(node))
        if rule is not None and frame is not None:
            advice = rule(node, nodes[i - 1] if i else None, frame)
            if advice:
                return advice
    return ""


def _call(node: ast.Call, child: ast.AST | None, frame: FrameType) -> str:
    if child is not None:  # it is in an argument, not the call itself
        return ""
    fun, args = node.func, ", ".join(_text(a) for a in node.args)
    if isinstance(fun, ast.Name):
        several = len(node.args) > 1
        instead = {
            "max": "jnp.maximum" if several else "jnp.max",
            "min": "jnp.minimum" if several else "jnp.min",
            "any": "jnp.any",
            "all": "jnp.all",
            "sorted": "jnp.sort",
        }.get(fun.id)
        if instead and node.args and isinstance(node.args[0], ast.GeneratorExp):
            return f"Write {instead} of an array instead of {fun.id}() of its elements."
        return f"Write {instead}({args}) instead of {fun.id}({args})." if instead else ""
    if not isinstance(fun, ast.Attribute):
        return ""
    module = _module_of(fun.value, frame)
    if module not in ("math", "numpy"):
        return ""
    name = fun.attr
    if (
        name in ("array", "asarray")
        and node.args
        and isinstance(node.args[0], (ast.List, ast.Tuple))
    ):
        return f"Write jnp.stack({args}) or jnp.array({args}): {_text(fun)} needs known values."
    jnp = sys.modules.get("namoo.numpy")
    if jnp is not None and name in dir(jnp):
        return f"Write jnp.{name}({args}): {_text(fun)} needs known values."
    return ""


def _compare(node: ast.Compare, child: ast.AST | None, frame: FrameType) -> str:
    operands = [_text(x) for x in (node.left, *node.comparators)]
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return f"Write jnp.isin({operands[0]}, jnp.array({operands[1]})) for a test of membership."
    if len(node.ops) == 1:
        return ""
    symbols = [_text(ast.Compare(_A, [op], [_A])).split()[1] for op in node.ops]
    pairs = zip(operands, symbols, operands[1:], strict=False)
    return (
        "Write "
        + " & ".join(f"({a} {op} {b})" for a, op, b in pairs)
        + (": Python's chain of comparisons needs truth values.")
    )


def _bool_op(node: ast.BoolOp, child: ast.AST | None, frame: FrameType) -> str:
    symbol, word = ("&", "and") if isinstance(node.op, ast.And) else ("|", "or")
    text = f" {symbol} ".join(f"({_text(v)})" for v in node.values)
    return f"Write {text}, or jnp.logical_{word}: Python's `{word}` needs truth values."


def _not(node: ast.UnaryOp, child: ast.AST | None, frame: FrameType) -> str:
    if not isinstance(node.op, ast.Not):
        return ""
    return f"Write ~({_text(node.operand)}) or jnp.logical_not: Python's `not` needs a truth value."


def _assert(node: ast.Assert, child: ast.AST | None, frame: FrameType) -> str:
    return (
        "An assert needs the value while the function is traced. Check shapes and dtypes with it; "
        "for values, write namoo.experimental.checkify.check(condition, message), or check them "
        "outside of the function."
    )


def _format(node: ast.AST, child: ast.AST | None, frame: FrameType) -> str:
    return PRINT_ADVICE


def _percent(node: ast.BinOp, child: ast.AST | None, frame: FrameType) -> str:
    is_text = isinstance(node.op, ast.Mod) and isinstance(node.left, (ast.Constant, ast.JoinedStr))
    return _format(node, child, frame) if is_text else ""


def _subscript(node: ast.Subscript, child: ast.AST | None, frame: FrameType) -> str:
    if child is not None and child is not node.slice:
        return ""
    what, index = _text(node.value), _text(node.slice)
    if isinstance(node.ctx, ast.Store):
        return (
            f"A NumPy array cannot hold a traced value: make {what} with namoo.numpy, and write "
            f"{what} = {what}.at[{index}].set(value)."
        )
    thing = None
    if isinstance(node.value, ast.Name):
        thing = frame.f_locals.get(what, frame.f_globals.get(what))
    if child is not None or not isinstance(thing, (list, tuple, str)):
        return ""
    return (
        f"Write jnp.array({what})[{index}] if {what} is a list of numbers, jnp.stack for arrays of "
        f"one shape, lax.switch({index}, functions) for functions."
    )


_A = ast.Name("a", ast.Load())
_RULES: dict[type[ast.AST], Callable] = {
    ast.Call: _call,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _not,
    ast.Assert: _assert,
    ast.JoinedStr: _format,
    ast.FormattedValue: _format,
    ast.BinOp: _percent,
    ast.Subscript: _subscript,
}
