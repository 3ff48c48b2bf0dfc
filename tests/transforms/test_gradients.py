"""Every public function that has derivatives has the right ones: `gradients.py` is the table.

Forward mode is compared with differences of fourth order, reverse mode with forward mode by an
inner product, and the derivative of reverse mode with its differences.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

import api_coverage
import gradient_table
import namoo
from conformance.harness import assert_close, central_difference, inner, random_like

STEP = 2e-4


def namespace() -> dict[str, Any]:
    spaces = {}
    for short, path in gradient_table.SPACES.items():
        spaces[short] = importlib.import_module(f"namoo.{path}")
    return {**spaces, "vmap": namoo.vmap, **gradient_table.CONSTANTS}


def compiled(expression: str):
    """The expression as a function of its arrays, and the arrays."""
    names = [
        name
        for name in gradient_table.ARRAYS
        if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"(=])", expression)
    ]
    known = namespace()
    code = compile(expression, expression, "eval")

    def fun(*arrays):
        # Functions inside the expression see globals only.
        inputs = dict(zip(names, map(namoo.numpy.asarray, arrays), strict=True))
        out = eval(code, {**known, **inputs})
        leaves = namoo.tree.leaves(out)
        return [x for x in leaves if np.issubdtype(x.dtype, np.inexact)]

    return fun, [gradient_table.ARRAYS[name] for name in names]


ROWS = gradient_table.rows()


@pytest.mark.parametrize(("expression", "flags"), ROWS, ids=[text for text, _ in ROWS])
def test_derivatives(expression, flags):
    rtol = next((float(f) for f in flags if f[0].isdigit()), 1e-7)
    with namoo.enable_x64():
        fun, args = compiled(expression)
        rng = np.random.default_rng(0)
        tangents = [random_like(rng, x) for x in args]
        values, pushed = namoo.jvp(fun, tuple(args), tuple(tangents))
        assert values
        differences = central_difference(fun, args, tangents, STEP)
        for found, wanted in zip(pushed, differences, strict=True):
            assert_close(found, wanted, rtol, "forward", 1e-10)
        if "forward" in flags:
            return
        cts = [random_like(rng, x) for x in values]

        def pulled(*args):
            return namoo.vjp(fun, *args)[1]([namoo.numpy.asarray(ct) for ct in cts])

        (ours, size), (theirs, _) = inner(pulled(*args), tangents), inner(cts, pushed)
        assert abs(ours - theirs) <= 1e-9 * max(size, 1.0), "reverse against forward"
        if "once" in flags:
            return
        _, second = namoo.jvp(pulled, tuple(args), tuple(tangents))
        for found, wanted in zip(
            second, central_difference(pulled, args, tangents, STEP), strict=True
        ):
            assert_close(found, wanted, 10 * rtol, "second order", 1e-9)


def public_functions(root: str) -> set[str]:
    """The functions of a namespace of JAX that namoo has, and of those inside it."""
    found = set()
    for space in api_coverage.NAMES:
        if space == root or space.startswith(root + "."):
            module = importlib.import_module(f"namoo.{space}")
            for name in api_coverage.present(space):
                thing = getattr(module, name)
                if callable(thing) and not isinstance(thing, type) and not name.endswith("_p"):
                    found.add(f"{space}.{name}")
    return found


ROOTS = ["numpy", "lax", "nn", "scipy", "image", "ops", "random"]


@pytest.mark.parametrize("root", ROOTS)
def test_every_function_has_a_row_or_a_reason(root):
    subjects = {s for text, _ in ROWS if (s := gradient_table.subject(text))}
    # `jnp.add.reduce` is about `jnp.add`, too.
    covered = subjects | {s.rpartition(".")[0] for s in subjects}
    reasons = gradient_table.without_derivative()
    assert sorted(public_functions(root) - covered - set(reasons)) == []
    assert sorted(covered & set(reasons)) == []


def test_reasons_are_about_functions_that_exist():
    for name in gradient_table.without_derivative():
        space, _, last = name.rpartition(".")
        try:
            module = importlib.import_module(f"namoo.{space}")
        except ImportError:
            space, _, middle = space.rpartition(".")
            module = getattr(importlib.import_module(f"namoo.{space}"), middle)
        assert hasattr(module, last), name
