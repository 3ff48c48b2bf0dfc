"""Exported functions: programs that can be written to a file and called from another process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.config import config, enable_x64
from namoo._base.source_context import entry_point
from namoo.analysis.dead_code import needed
from namoo.api.grad import vjp
from namoo.api.jit import Jitted, jit
from namoo.core.avals import ShapedArray, ShapeDtypeStruct
from namoo.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from namoo.dimensions.expression import DimExpr, is_symbolic_dim
from namoo.dimensions.scope import SymbolicScope
from namoo.export import calling, container
from namoo.export.checks import DisabledSafetyCheck, default_export_platform, require_version
from namoo.export.programs import ProgramReader, ProgramWriter
from namoo.export.trees import read_tree, write_tree
from namoo.transforms.arguments import is_array
from namoo.transforms.discharge import discharged, makes_refs


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """An exported function: its program, types and tree structures.

    Attributes:
        fun_name: the name of the function.
        in_tree: the structure of `(args, kwargs)`.
        in_avals: the types of the arguments; shapes may have symbolic dimensions.
        out_tree: the structure of the result.
        out_avals: the types of the results.
        platforms: where the function may be called.
        disabled_safety_checks: the checks that were turned off.
        calling_convention_version: how arguments are passed, in JAX's numbering.
        module_kept_var_idx: the positions of the arguments that the program uses.
        jaxpr: the program; it has no arguments or results of type float0.
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    jaxpr: ClosedJaxpr
    _get_vjp: Callable[[Exported], Exported] | None

    nr_devices = 1
    ordered_effects: tuple = ()
    unordered_effects: tuple = ()
    in_shardings_hlo = property(lambda self: (None,) * len(self.in_avals))
    out_shardings_hlo = property(lambda self: (None,) * len(self.out_avals))

    @property
    def uses_global_constants(self) -> bool:
        """Whether the shapes of arguments have symbolic dimensions."""
        return any(is_symbolic_dim(n) for aval in self.in_avals for n in aval.shape)

    def in_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return the shardings of the arguments: None, because programs are for one device."""
        return (None,) * len(self.in_avals)

    def out_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return the shardings of the results: None, because programs are for one device."""
        return (None,) * len(self.out_avals)

    def mlir_module(self) -> str:
        """The program in StableHLO, as text. It needs shapes without symbolic dimensions."""
        from namoo.engines.xla import engine

        return engine.stablehlo(self.jaxpr)

    @property
    def mlir_module_serialized(self) -> bytes:
        """The text of `mlir_module` as bytes."""
        return self.mlir_module().encode()

    def has_vjp(self) -> bool:
        """Return whether the derivative is available: a file may have been written without it.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> exported = namoo.export.export(namoo.jit(jnp.sin))(jnp.ones(3))
            >>> namoo.export.deserialize(exported.serialize()).has_vjp()
            False
        """
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """Return the exported derivative.

        Returns:
            A function that takes the flat arguments and a cotangent for each result, and returns a
            cotangent for each argument.

        Raises:
            ValueError: the function was read from a file without a derivative.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available: the file of '{self.fun_name}' has no derivative. Write it "
                "with serialize(vjp_order=1)."
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Write the function as bytes, for `deserialize`.

        Args:
            vjp_order: how many orders of derivatives to include.

        Raises:
            ValueError: the program has an operation that only this process can run, or a tree
                contains a class without a registered serialization.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> blob = namoo.export.export(namoo.jit(jnp.sin))(jnp.ones(3)).serialize(vjp_order=1)
            >>> f = namoo.export.deserialize(blob)
            >>> namoo.grad(lambda x: f.call(x).sum())(jnp.zeros(3))
            Array([1., 1., 1.], dtype=float32)
        """
        writer = ProgramWriter()
        written = _write(self, writer, vjp_order)
        document = {
            "x64": config.enable_x64,
            "constraints": [] if writer.scope is None else [*writer.scope.constraints],
            "types": writer.types,
            "programs": writer.programs,
            "exported": written,
        }
        return container.pack(document, writer.arrays)

    @entry_point
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        It can be called under `jit`, `vmap` and, if the derivative is available, `grad`. Symbolic
        dimensions take the sizes of the arguments.

        Args:
            args: trees of arrays with the structures, types and shapes of the export.
            kwargs: the keyword arguments.

        Raises:
            ValueError: the arguments do not match the export.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> from namoo.export import export, symbolic_shape
            >>> rows = namoo.ShapeDtypeStruct(symbolic_shape("rows, 2"), "float32")
            >>> exported = export(namoo.jit(lambda x: x.sum(0)))(rows)
            >>> exported.call(jnp.ones((5, 2)))
            Array([5., 5.], dtype=float32)
        """
        return calling.call(self, args, kwargs)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a function: trace it, so that the program can be written to a file.

    Args:
        fun_jit: the result of `jit`, or a function of namoo such as `jnp.sin`.
        platforms: where the program may be called: some of "cpu", "cuda", "rocm", "tpu". The
            default is the current platform. The program is the same for all.
        disabled_checks: the checks to turn off; see `DisabledSafetyCheck`.

    Returns:
        A function that takes arguments, or `ShapeDtypeStruct`s in place of arrays, and returns an
        `Exported`.

    Raises:
        ValueError: the function is not the result of `jit`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> exported = export(namoo.jit(jnp.sin))(namoo.ShapeDtypeStruct((4,), "float32"))
        >>> exported.in_avals
        (ShapedArray(float32[4]),)
        >>> blob = exported.serialize()
        >>> from namoo.export import deserialize
        >>> deserialize(blob).call(jnp.zeros(4))
        Array([0., 0., 0., 0.], dtype=float32)
    """
    if not isinstance(fun_jit, Jitted):
        if not getattr(fun_jit, "__module__", "").startswith("namoo."):
            raise ValueError(
                f"Function to be exported must be the result of `jit` but is: {fun_jit}"
            )
        fun_jit = jit(fun_jit)  # functions such as `jnp.sin`, which JAX has under `jit`
    where = tuple(platforms) if platforms is not None else (default_export_platform(),)
    version = require_version(config.export_calling_convention_version)

    @entry_point
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        _require_one_scope(fun_jit, args, kwargs)
        if fun_jit._shardings is not None and fun_jit._shardings.are_elsewhere():
            raise ValueError(
                f"The function '{fun_jit._name}' has shardings over several devices, and exported "
                "programs are for one device: leave in_shardings and out_shardings to the caller."
            )
        traced = fun_jit.trace(*args, **kwargs)
        return _exported(traced, where, tuple(disabled_checks), version)

    return do_export


def _require_one_scope(fun: Any, args: Any, kwargs: Any) -> None:
    first: tuple[DimExpr, str] | None = None
    leaves, _ = tree_util.tree_flatten_with_path((args, kwargs))
    for path, leaf in leaves:
        for size in getattr(leaf, "shape", ()):
            if not isinstance(size, DimExpr):
                continue
            name = calling.path_name(path)
            first = first or (size, name)
            if size.scope is not first[0].scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {fun._name}.\n"
                    f"Expected current (from {first[1]}) scope {first[0].scope}\nand found for "
                    f"'{size}' ({name}) scope {size.scope}"
                )


def _exported(
    traced: Any, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...], version: int
) -> Exported:
    for x in traced._leaves:
        if not is_array(x):
            raise ValueError(
                f"An exported function takes arrays, not {x!r} of type {type(x).__name__}. Mark "
                "the argument static: jit(f, static_argnums=...)."
            )
    program = traced._traced
    count = len(program.consts)
    jaxpr = traced.jaxpr.jaxpr
    inputs = jaxpr.invars[count:]
    closed = ClosedJaxpr(
        jaxpr.replace(
            constvars=jaxpr.invars[:count],
            invars=[v for v in inputs if v.aval.dtype != dtypes.float0],
        ),
        program.consts,
    )
    if makes_refs(jaxpr):  # discharge the references that the function creates
        closed, _ = discharged(closed, (False,) * len(closed.in_avals))
    in_avals = tuple(v.aval for v in inputs)
    _, read = needed(jaxpr)
    fixed = program.fixed_out.by_position
    for x in fixed.values():
        if getattr(x, "dtype", None) != dtypes.float0:
            raise ValueError(f"An exported function returns arrays, not {x!r}.")
    results = iter(closed.out_avals)
    out_avals = tuple(
        ShapedArray(np.shape(fixed[i]), dtypes.float0) if i in fixed else next(results)
        for i in range(program.fixed_out.count)
    )
    if not any(check.is_custom_call() for check in checks):
        ProgramWriter().number_of(closed)  # refuses what cannot leave the process
    exported = Exported(
        fun_name=traced.fun_name,
        in_tree=traced.in_tree,
        in_avals=in_avals,
        out_tree=traced.out_tree,
        out_avals=out_avals,
        platforms=platforms,
        disabled_safety_checks=checks,
        calling_convention_version=version,
        module_kept_var_idx=tuple(i for i, v in enumerate(inputs) if v in read),
        jaxpr=closed,
        _get_vjp=_derivative,
    )
    calling.require_solvable(exported)
    return exported


def _derivative(exported: Exported) -> Exported:
    """Export the derivative of a function that was traced in this process."""
    in_tangents = tuple(a.tangent() for a in exported.in_avals)
    out_tangents = tuple(a.tangent() for a in exported.out_avals)
    run = jaxpr_as_fun(exported.jaxpr)
    # Only floats are differentiated: tangents of other types are not part of a program.
    chosen = [a.dtype != dtypes.float0 for a in in_tangents]
    taken = [a.dtype != dtypes.float0 for a in exported.in_avals]
    given = [a.dtype != dtypes.float0 for a in out_tangents]
    returned = [a.dtype != dtypes.float0 for a in exported.out_avals]

    def fun_vjp_jax(*args: Any) -> list[Any]:
        primals, cts = args[: len(chosen)], args[len(chosen) :]

        def of_floats(*floats: Any) -> list[Any]:
            rest = iter(floats)
            whole = [next(rest) if c else x for x, c in zip(primals, chosen, strict=True)]
            outs = run(*compress(whole, taken))
            return [*compress(outs, compress(given, returned))]

        _, pull_back = vjp(of_floats, *compress(primals, chosen))
        return [*pull_back([*compress(cts, given)])]

    specs = [
        ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
        for a in (*exported.in_avals, *out_tangents)
    ]
    found = export(
        jit(fun_vjp_jax),
        platforms=exported.platforms,
        disabled_checks=exported.disabled_safety_checks,
    )(*specs)
    cotangents = iter(found.out_avals)
    return dataclasses.replace(
        found,
        out_tree=tree_util.tree_structure((0,) * len(chosen)),
        out_avals=tuple(
            next(cotangents) if c else a for a, c in zip(in_tangents, chosen, strict=True)
        ),
    )


def _write(exported: Exported, writer: ProgramWriter, vjp_order: int) -> dict[str, Any]:
    return {
        "fun_name": exported.fun_name,
        "in_tree": write_tree(exported.in_tree),
        "in_types": [writer.type_of(a) for a in exported.in_avals],
        "out_tree": write_tree(exported.out_tree),
        "out_types": [writer.type_of(a) for a in exported.out_avals],
        "platforms": [*exported.platforms],
        "disabled_checks": [str(check) for check in exported.disabled_safety_checks],
        "calling_convention_version": exported.calling_convention_version,
        "kept": [*exported.module_kept_var_idx],
        "program": writer.number_of(exported.jaxpr),
        "vjp": _write(exported.vjp(), writer, vjp_order - 1) if vjp_order > 0 else None,
    }


def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """Read a function that `Exported.serialize` wrote.

    Reading a file imports and executes no code from it: a file contains names of namoo's
    operations, numbers and text. The types of all values are checked.

    Args:
        blob: the bytes.

    Raises:
        ValueError: the bytes are not an exported function, are damaged, or contain a tree class
            that is not registered.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> blob = export(namoo.jit(lambda x, y: x @ y))(jnp.ones((2, 3)), jnp.ones(3)).serialize()
        >>> deserialize(blob).out_avals
        (ShapedArray(float32[2]),)
        >>> deserialize(blob[:100])
        Traceback (most recent call last):
        ValueError: the exported program is damaged or truncated: its checksum is wrong
    """
    document, arrays = container.unpack(blob)
    try:
        with enable_x64(document.get("x64") is True):
            return _read(document, arrays)
    except ValueError:
        raise
    except Exception as error:  # the JSON does not have the expected form
        raise ValueError(f"the exported program is damaged: {error!r:.200}") from error


def _read(document: dict[str, Any], arrays: list[Any]) -> Exported:
    constraints = document["constraints"]
    if len(constraints) > 64 or any(len(text) > 200 for text in constraints):
        raise ValueError("the exported program has too many constraints, or too long ones")
    reader = ProgramReader(document["types"], arrays, SymbolicScope(constraints))
    for program in document["programs"]:
        reader.read(program)
    return _read_exported(document["exported"], reader)


def _read_exported(written: dict[str, Any], reader: ProgramReader) -> Exported:
    in_avals = tuple(map(reader.type_of, written["in_types"]))
    out_avals = tuple(map(reader.type_of, written["out_types"]))
    in_tree, out_tree = read_tree(written["in_tree"]), read_tree(written["out_tree"])
    closed = reader.program(written["program"])
    taken = [a for a in in_avals if a.dtype != dtypes.float0]
    returned = [a for a in out_avals if a.dtype != dtypes.float0]
    example = in_tree.unflatten([0] * in_tree.num_leaves)
    if (
        [*closed.in_avals] != taken
        or [*closed.out_avals] != returned
        or (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals))
        or type(example) is not tuple
        or [*map(type, example)] != [tuple, dict]
    ):
        raise ValueError("the exported program does not match the types in its file")
    derivative = None
    if written["vjp"] is not None:
        found = _read_exported(written["vjp"], reader)
        tangents = [*in_avals, *(a.tangent() for a in out_avals)]
        if not _same_types(found.in_avals, tangents) or not _same_types(
            found.out_avals, [a.tangent() for a in in_avals]
        ):
            raise ValueError("the derivative of the exported program has the wrong types")
        derivative = lambda _: found  # noqa: E731
    texts = [written["fun_name"], *written["platforms"], *written["disabled_checks"]]
    numbers = [written["calling_convention_version"], *written["kept"]]
    if any(type(x) is not str for x in texts) or any(type(x) is not int for x in numbers):
        raise ValueError("the exported program is damaged: a name or a number has the wrong type")
    exported = Exported(
        fun_name=written["fun_name"],
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        platforms=tuple(written["platforms"]),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, written["disabled_checks"])),
        calling_convention_version=require_version(written["calling_convention_version"]),
        module_kept_var_idx=tuple(written["kept"]),
        jaxpr=closed,
        _get_vjp=derivative,
    )
    calling.require_solvable(exported)
    return exported


def _same_types(found: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> bool:
    return [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in wanted]
