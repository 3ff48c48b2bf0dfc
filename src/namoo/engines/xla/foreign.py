"""Calls of handlers of the typed FFI, which are registered with XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from namoo._base.foreign import Target
from namoo.engines.xla import pjrt
from namoo.engines.xla.hlo import Emitter, Value, dense, element, kind_of, number

_registered: dict[str, int] = {}
"""The addresses of handlers by the name that XLA knows; they live as long as the process."""


def foreign_call(
    emit: Emitter,
    target: Target,
    named: Mapping[str, Any],
    operands: Sequence[Value],
    layouts: Sequence[Sequence[int]],
    aliases: Sequence[tuple[int, int]],
    effect: bool,
) -> list[Value]:
    """Emit a call; `layouts` are the orders of axes of the operands and then of the results."""
    name = target.name
    if target.address:  # else it may be one that comes with XLA
        if _registered.get(name, target.address) != target.address:
            # XLA registers a name once, but the user registered another function under it.
            name = f"{name}.{target.address:x}"
        if name not in _registered:
            _registered[name] = target.address
            pjrt.register_handler(name, target.keep)
    emit.module.handlers.append(target.name)
    kinds = [kind_of(a) for a in emit.avals]
    orders = [f"dense<{list(o)[::-1] if o else ''}> : tensor<{len(o)}xindex>" for o in layouts]
    before, after = orders[: len(operands)], orders[len(operands) :]
    attributes = {
        "call_target_name": f'"{name}"',
        "api_version": "4 : i32",
        "backend_config": _attribute(named),
        "has_side_effect": "true" if effect else "false",
        "operand_layouts": f"[{', '.join(before)}]",
        "result_layouts": f"[{', '.join(after)}]",
    }
    if aliases:
        pairs = [
            f"#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{j if len(kinds) > 1 else ''}], operand_index = {i}, operand_tuple_indices = []>"
            for i, j in aliases
        ]
        attributes["output_operand_aliases"] = f"[{', '.join(pairs)}]"
    return emit.writer.op("stablehlo.custom_call", operands, kinds, attributes)


def _attribute(value: Any) -> str:
    """Write an attribute of a call."""
    if isinstance(value, str):
        return '"' + "".join(f"\\{byte:02X}" for byte in value.encode()) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{k}" = {_attribute(v)}' for k, v in value.items()) + "}"
    if isinstance(value, np.ndarray):
        return dense(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    x = np.asarray(value)[()]
    return f"{number(x)} : {element(x.dtype)}"
