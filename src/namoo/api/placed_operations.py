"""Eager operations on arrays with an explicit placement: each is a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo._base.caches import register
from namoo._base.config import config, disable_jit
from namoo.api.jit import jit
from namoo.core.trace import Tracer
from namoo.devices.placement import put
from namoo.devices.primitives import device_put_p

_OPERATIONS_LIMIT = 4096
_operations: dict[Any, Any] = register(
    "api operations on placed arrays", {}, bound=4096, keyed_by="primitive, parameters"
)


def apply(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an operation on the devices of its operands."""
    for x in args:
        if isinstance(x, Tracer):
            x.escaped()
    if prim is device_put_p:
        return put(args[0], params["sharding"])
    key: Any = (prim, tuple(sorted(params.items())))
    try:
        known = _operations.get(key)
    except TypeError:  # parameters without hash
        key = known = None
    if known is None:

        def operation(*xs):
            return prim.bind(*xs, **params)

        operation.__name__ = prim.name
        known = jit(operation)
        if key is not None:
            if len(_operations) > _OPERATIONS_LIMIT:
                _operations.clear()
            _operations[key] = known
    if config.disable_jit:
        # Devices run only compiled programs.
        with disable_jit(False):
            return known(*args)
    return known(*args)
