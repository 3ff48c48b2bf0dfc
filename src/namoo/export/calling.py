"""Calls of exported functions: check the arguments, find the sizes, run the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo.analysis.specialising import sized, specialised
from namoo.control.call import jit_p
from namoo.core.avals import ShapedArray, aval_of
from namoo.dimensions.expression import DimExpr, is_symbolic_dim
from namoo.dimensions.solving import Equation, solve
from namoo.export.checks import DisabledSafetyCheck, default_export_platform
from namoo.transforms.arguments import argument_paths
from namoo.transforms.custom import custom_vjp
from namoo.tree.difference import Structures, find_differences, mismatch

if TYPE_CHECKING:
    from namoo.export.exported import Exported


def path_name(path: Sequence[Any]) -> str:
    """The name of an argument, given its path in `(args, kwargs)`."""
    name = "args" if tree_util.keystr(path[:1]) == "[0]" else "kwargs"
    return name + tree_util.keystr(tuple(path[1:]))


def _names(exported: Exported) -> list[str]:
    example = exported.in_tree.unflatten([0] * exported.in_tree.num_leaves)
    return [path_name(path) for path, _ in tree_util.tree_flatten_with_path(example)[0]]


def argument_names(exported: Exported, fun: Any) -> list[str]:
    """Return the names of the arguments, using the parameter names of `fun` if it is known."""
    args, kwargs = exported.in_tree.unflatten([0] * exported.in_tree.num_leaves)
    return argument_paths(fun, args, kwargs) if callable(fun) else _names(exported)


def call(exported: Exported, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call an exported function."""
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    if tree != exported.in_tree:
        differences = find_differences(exported.in_tree, tree, Structures(), Structures())
        raise mismatch(
            "The invocation args and kwargs must have the same pytree structure as when the "
            f"function '{exported.fun_name}' was exported, but (args, kwargs) differ",
            differences,
        )
    _require_platform(exported)
    return exported.out_tree.unflatten(_flat(exported)(*leaves))


def _require_platform(exported: Exported) -> None:
    here = default_export_platform()
    if here not in exported.platforms and DisabledSafetyCheck.platform() not in (
        exported.disabled_safety_checks
    ):
        raise ValueError(
            f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but "
            f"it is used on '('{here}',)'."
        )


def _flat(exported: Exported) -> Any:
    """Return the function of flat arguments, with a custom derivative."""

    @custom_vjp
    def run(*leaves: Any) -> list[Any]:
        return _run(exported, leaves)

    def forward(*leaves: Any) -> tuple[list[Any], Any]:
        return run(*leaves), leaves

    def backward(leaves: Any, cts: list[Any]) -> tuple[Any, ...]:
        derivative = exported.vjp()
        wanted = derivative.in_avals[len(leaves) :]
        given = [
            np.zeros(np.shape(ct), dtypes.float0) if aval.dtype == dtypes.float0 else ct
            for ct, aval in zip(cts, wanted, strict=True)
        ]
        return tuple(_flat(derivative)(*leaves, *given))

    run.defvjp(forward, backward)
    return run


def _run(exported: Exported, leaves: Sequence[Any]) -> list[Any]:
    avals = [aval_of(x) for x in leaves]
    sizes = sizes_of(exported, avals)
    program = exported.jaxpr
    if sizes:
        program = specialised(program, tuple(sizes.items()))
    operands = [x for x, a in zip(leaves, avals, strict=True) if a.dtype != dtypes.float0]
    results = iter(jit_p.bind(*operands, jaxpr=program, name=exported.fun_name))
    return [
        next(results)
        if a.dtype != dtypes.float0
        else np.zeros(sized(a.shape, sizes), dtypes.float0)
        for a in exported.out_avals
    ]


def sizes_of(exported: Exported, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """Find the sizes of the dimension variables for arguments of given types.

    Raises:
        ValueError: an argument has the wrong type, or the sizes contradict one another.
    """
    equations, shapes = [], []
    for i, (wanted, found) in enumerate(zip(exported.in_avals, avals, strict=True)):
        if len(wanted.shape) != len(found.shape):
            raise ValueError(
                f"Rank mismatch for {_names(exported)[i]}: expected {wanted.shape} and called with "
                f"{found.shape}"
            )
        if wanted.dtype != found.dtype:
            raise ValueError(
                f"Dtype mismatch for {_names(exported)[i]}: expected {wanted.dtype} and called "
                f"with {found.dtype}"
            )
        if wanted.shape == found.shape and not any(map(is_symbolic_dim, wanted.shape)):
            continue
        name = _names(exported)[i]
        for axis, (size, actual) in enumerate(zip(wanted.shape, found.shape, strict=True)):
            if isinstance(size, DimExpr):
                equations.append(Equation(size, actual, f"{name}.shape[{axis}]"))
            elif size != actual:
                raise ValueError(
                    f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected "
                    f"{wanted.shape} and called with {found.shape}"
                )
        if any(map(is_symbolic_dim, wanted.shape)):
            shapes.append(f"{name}.shape = {wanted.shape}")
    return solve(equations, ",".join(shapes))


def require_solvable(exported: Exported) -> None:
    """Raise an error if the argument shapes do not determine all variables, or if a result has
    other variables."""
    sizes = sizes_of(exported, exported.in_avals)
    for aval in exported.out_avals:
        sized(aval.shape, sizes)
