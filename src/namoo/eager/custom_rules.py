"""Shortcut for functions with custom derivative rules: eager calls do not need the rules."""

from __future__ import annotations

from functools import wraps
from typing import Any

from namoo._base.source_context import hide_internal_frames
from namoo.core.trace import context, eval_trace
from namoo.eager.shortcuts import Entries, Function, Shortcut

ENTRIES = Entries()


def _install(general: Function) -> Function:
    from namoo.transforms.custom import undifferentiated  # which loads this table

    @wraps(general)
    def quick(custom: Any, args: tuple, kwargs: dict) -> Any:
        try:
            if context.trace is eval_trace:
                return undifferentiated(custom, args, kwargs)
            return general(custom, args, kwargs)
        except (Exception, KeyboardInterrupt) as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick


def _call(custom: Any, args: tuple, kwargs: dict) -> Any:
    return custom.fun(*args, **kwargs)


ENTRIES.append(Shortcut("transforms.custom", "call_custom", _call, "always", _install))
