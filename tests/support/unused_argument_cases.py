"""Functions that do not use some arguments, on eight devices, for both namoo and JAX.

Run as a script, it prints what JAX does: JAX needs the number of devices before it is loaded.

"""

import itertools
import json
import os
import warnings
from typing import Any

import numpy as np


def _first(m, a, b):
    return a + 1


def _none(m, *args):
    return 2.0


def _dead(m, a, b):
    m.numpy.sin(b)
    return a + 1


def _told(m, a, b):
    m.debug.callback(lambda x: None, b)
    return a + 1


def _constrained(m, a, b):
    return m.lax.with_sharding_constraint(a + 1, place(m, "rows"))


# (function, placements of the arguments, options); options may be placements, too.
CASES = {
    "deleted": (_first, ["host", "gone host"], {}),
    "deleted, alone": (_none, ["gone host"], {}),
    "deleted on a device": (_none, ["gone device 3"], {}),
    "deleted beside a device": (_first, ["device 3", "gone device 3"], {}),
    "deleted beside a mesh": (_first, ["rows", "gone rows"], {}),
    "first deleted": (lambda m, a, b: b + 1, ["gone host", "host"], {}),
    "only in dead code": (_dead, ["host", "gone host"], {}),
    "times zero": (lambda m, a, b: a + 0 * b, ["host", "gone host"], {}),
    "of a callback": (_told, ["host", "gone host"], {}),
    "of a constraint": (_constrained, ["host", "gone device 1"], {}),
    "in a tree": (lambda m, a, b: a["x"] + 1, ["tree", "gone host"], {}),
    "on a device": (_none, ["device 3"], {}),
    "on two devices": (_none, ["device 3", "device 1"], {}),
    "the used on a device": (_first, ["device 3", "device 1"], {}),
    "the unused on a device": (_first, ["host", "device 1"], {}),
    "the unused on a mesh": (_first, ["host", "rows"], {}),
    "a device beside a mesh": (_first, ["rows", "device 1"], {}),
    "another mesh": (_first, ["rows", "two"], {}),
    "in_shardings": (_first, ["host", "gone host"], {"in_shardings": "rows"}),
    "in_shardings of another": (_first, ["host", "everywhere"], {"in_shardings": "rows"}),
    "in_shardings beside a device": (_first, ["host", "device 1"], {"in_shardings": "rows"}),
    "in_shardings that do not divide": (_first, ["host", "odd"], {"in_shardings": "rows"}),
    "in_shardings of two meshes": (_first, ["host", "host"], {"in_shardings": ("rows", "two")}),
    "in_shardings of the unused": (_first, ["host", "host"], {"in_shardings": (None, "rows")}),
    "in_shardings, alone": (_none, ["host"], {"in_shardings": "rows"}),
    "out_shardings": (_first, ["host", "gone device 1"], {"out_shardings": "rows"}),
    "donated": (_first, ["host", "host"], {"donate_argnums": (0, 1)}),
    "donated, on a mesh": (_first, ["rows", "rows"], {"donate_argnums": (0, 1)}),
    "donated beside a deleted": (_first, ["host", "gone host"], {"donate_argnums": (0, 1)}),
    "donated beside a deleted, on a mesh": (_first, ["rows", "gone rows"], {"donate_argnums": 0}),
}
HOW = ["called", "ahead"]


def place(m, name):
    """Return a device or a sharding."""
    kind, _, number = name.partition(" ")
    if kind == "device":
        return m.devices()[int(number)]
    devices = np.array(m.devices())[: 2 if kind == "two" else 8]
    spec = m.sharding.PartitionSpec(*[] if kind == "everywhere" else ["x"])
    return m.sharding.NamedSharding(m.sharding.Mesh(devices, ("x",)), spec)


def argument(m, name) -> Any:
    name = name.removeprefix("gone ")
    if name == "tree":
        return {"x": m.numpy.ones(8), "y": m.numpy.ones(3)}
    if name == "odd":
        return m.numpy.ones(3)
    x = m.numpy.ones(8)
    return x if name == "host" else m.device_put(x, place(m, name))


def arguments(m, names):
    out = [argument(m, name) for name in names]
    for x, name in zip(out, names, strict=True):
        if name.startswith("gone"):
            x.delete()
    return out


def outcome(m, name, keep, how):
    """Return the value, its placement, and the deleted arguments; or the error.

    Args:
        how: "called"; "again", once arguments that are there were seen; or compiled "ahead" of it.
    """
    fun, names, options = CASES[name]
    options = {
        k: v if k == "donate_argnums" else m.tree.map(lambda n: place(m, n), v)
        for k, v in options.items()
    }

    # A new function: JAX's cache ignores the value of `keep_unused`.
    f = m.jit(lambda *args: fun(m, *args), keep_unused=keep, **options)
    alive = [n.removeprefix("gone ") for n in names]
    args = arguments(m, names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more = []
            if how == "ahead":
                f = f.lower(*arguments(m, alive)).compile()
                more = [x is None for x in m.tree.leaves(f.input_shardings, is_leaf=_is_none)]
            elif how == "again":
                f(*arguments(m, alive))
                f(*arguments(m, alive))
            x = f(*args)
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]
        return [kinds[0]]
    gone = [leaf.is_deleted() for leaf in m.tree.leaves(args)]
    ids = sorted(d.id for d in x.devices())
    return [np.asarray(x).reshape(-1)[:2].tolist(), ids, x.committed, gone, more]


def _is_none(x):
    return x is None


def main():
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=8"
    import jax

    everything = itertools.product(CASES, [False, True], HOW)
    print(json.dumps([outcome(jax, *case) for case in everything]))


if __name__ == "__main__":
    main()
