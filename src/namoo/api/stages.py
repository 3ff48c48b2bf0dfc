"""The stages of a function under `jit`, ahead of time: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from namoo import errors, tree_util
from namoo.api import dispatch
from namoo.api.arguments import is_array
from namoo.api.donation import ArgInfo
from namoo.core.array import PlacedArray
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import Tracer, wrap
from namoo.engines import devices as registry
from namoo.engines.base import HostOperation
from namoo.tree import diff


class Traced:
    """A program made by tracing, before it is compiled."""

    _is_immutable = True

    def __init__(self, jitted: Any, traced: Any, in_tree: Any, leaves: Any, donated: list[bool]):
        self.fun_name = jitted._name
        self.in_tree = in_tree
        self._jitted = jitted
        self._traced = traced
        self._leaves: Sequence[Any] = leaves
        self._donated = donated

    def __getstate__(self) -> dict[str, Any]:
        # Types stand for the arguments, and where the program runs is found again.
        state = {name: value for name, value in vars(self).items() if name != "_plan"}
        state["_leaves"] = [_type_of(x) for x in self._leaves]
        return state

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program; values that the function closes over are its first inputs."""
        return self._traced.closed

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

    @property
    def out_info(self) -> Any:
        """The types of the result, as a tree of `ShapeDtypeStruct`s; with the shardings that
        `out_shardings` asks for."""
        told = self._jitted._shardings
        return self._types(None if told is None else told.wanted(self._traced))

    def _types(self, shardings: Sequence[Any] | None) -> Any:
        """The types of the result, with the shardings of the arrays among its leaves."""
        traced = self._traced
        avals = traced.closed.out_avals
        types = [
            ShapeDtypeStruct(a.shape, a.dtype, sharding=s, weak_type=a.weak_type)
            for a, s in zip(avals, shardings or [None] * len(avals), strict=True)
        ]
        return traced.out_tree.unflatten(traced.fixed_out.join(types))

    @property
    def in_avals(self) -> Any:
        """The types of the arguments; leaves that are not arrays as they are."""
        return self.in_tree.unflatten([aval_of(x) if is_array(x) else x for x in self._leaves])

    @property
    def args_info(self) -> Any:
        """The type of every argument, and whether it is donated."""
        leaves = zip(self._leaves, self._donated, strict=True)
        return self.in_tree.unflatten(
            [ArgInfo(aval_of(x), donated) if is_array(x) else x for x, donated in leaves]
        )

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the leaves that are donated."""
        return tuple(i for i, d in enumerate(self._donated) if d)

    @cached_property
    def _plan(self) -> Any:
        """Where the program runs, if on devices of its own; else None."""
        operands = [x for x in self._leaves if is_array(x)]
        used = self._traced.used(operands)
        if not self._jitted._is_placed(self._traced, used) and not any(map(_is_told, used)):
            return None
        args, kwargs = self.in_tree.unflatten(self._leaves)
        return self._jitted._plan(self._traced, operands, args, kwargs)

    def lower(self) -> Lowered:
        """The program, ready to be compiled; warns of donated arguments that are of no use."""
        if self._traced.donation is not None:
            _ = self._traced.donation.aliases
        return Lowered(self)


class Lowered:
    """A program that an engine can compile."""

    _is_immutable = True

    def __init__(self, traced: Traced):
        self._traced = traced
        self.in_tree = traced.in_tree

    out_info = property(lambda self: self._traced.out_info)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    args_info = property(lambda self: self._traced.args_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def as_text(self, dialect: str | None = None) -> str:
        """The program as text.

        Args:
          dialect: "jaxpr" (default); or, of what XLA is given, "stablehlo" or "hlo".
        """
        if dialect in (None, "jaxpr"):
            return str(self._traced.jaxpr)
        if dialect not in ("stablehlo", "hlo"):
            raise ValueError(
                f"as_text: dialect must be 'jaxpr', 'stablehlo' or 'hlo', got {dialect!r}."
            )
        from namoo.engines.xla import engine, pjrt

        plan = self._traced._plan
        text = plan.stablehlo() if plan else engine.stablehlo(self._traced._traced.program)
        return text if dialect == "stablehlo" else pjrt.hlo_text(text)

    def compile(self, compiler_options: dict | None = None) -> Compiled:
        """An executable for arguments of exactly these types."""
        return Compiled(self._traced)


class Compiled:
    """An executable program: call it with arguments of the types it was compiled for."""

    _is_immutable = True

    def __init__(self, traced: Traced):
        self._traced = traced
        self.in_tree = traced.in_tree
        donation = traced._traced.donation
        self._placed = traced._plan and traced._plan.ready()
        if self._placed:
            self._run = self._placed.program
        elif donation:
            self._run = donation.executable
        else:
            self._run = traced._jitted._executable(traced._traced.program)

    def __reduce__(self) -> tuple[Any, ...]:
        # Machine code is made, or found in the cache on disk, where it is to run.
        return Compiled, (self._traced,)

    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    args_info = property(lambda self: self._traced.args_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def as_text(self, stage: str = "jaxpr") -> str:
        """The program at a stage: "jaxpr", "fused" (kernels and memory), "llvm" or "assembly"; on
        XLA "jaxpr", "stablehlo" or "hlo", which is what XLA made of it.

        >>> import namoo, namoo.numpy as jnp
        >>> compiled = namoo.jit(lambda x: jnp.tanh(x) * 2.0).lower(jnp.ones(8)).compile()
        >>> print(compiled.as_text("fused"))
        0: kernel over [8]
            %3: float32[8] = ('map', 'mul') %1 %2  [out 0]
        """
        return self._run.as_text(stage)  # type: ignore[attr-defined]

    def cost_analysis(self) -> dict[str, float] | None:
        """About how many operations a call is ("flops") and how many bytes it moves.

        None where the engine does not know.
        """
        return self._run.costs  # type: ignore[attr-defined]

    def memory_analysis(self) -> Any:
        """The bytes that a call needs: arguments, results, intermediate values and code."""
        return self._run.memory  # type: ignore[attr-defined]

    def host_operations(self) -> list[HostOperation]:
        """The operations that Python evaluates from within the program, with the user's lines.

        They wait for the interpreter's lock and copy their operands; the others are native code.

        >>> import namoo, namoo.numpy as jnp
        >>> compiled = namoo.jit(lambda a: jnp.linalg.eigvals(a) + 1).lower(jnp.eye(2)).compile()
        >>> [operation.name for operation in compiled.host_operations()]
        ['eig']
        """
        return self._run.host_operations()  # type: ignore[attr-defined]

    @property
    def input_shardings(self) -> tuple[Any, dict[str, Any]]:
        """How each argument lies on devices, in the structure of the arguments; None for those that
        the program does not use, which may lie anywhere."""
        rest = iter(self._inputs)
        return self.in_tree.unflatten(
            [next(rest) if is_array(x) else x for x in self._traced._leaves]
        )

    @property
    def input_formats(self) -> tuple[Any, dict[str, Any]]:
        """The layout and the sharding of each argument, in the structure of the arguments.

        >>> import namoo, namoo.numpy as jnp
        >>> compiled = namoo.jit(lambda x: x).lower(jnp.ones((2, 3))).compile()
        >>> compiled.input_formats[0][0].layout.major_to_minor
        (0, 1)
        """
        rest = iter(self._inputs)
        return self.in_tree.unflatten(
            [_format(aval_of(x), next(rest)) if is_array(x) else x for x in self._traced._leaves]
        )

    @property
    def output_formats(self) -> Any:
        """The layout and the sharding of each result, in the structure of the result."""
        inner = self._traced._traced
        formats = [*map(_format, inner.closed.out_avals, self._outputs)]
        return inner.out_tree.unflatten(inner.fixed_out.join(formats))

    @property
    def out_info(self) -> Any:
        """The types of the result, as a tree of `ShapeDtypeStruct`s with shardings."""
        return self._traced._types(self._outputs)

    @property
    def output_shardings(self) -> Any:
        """How each result lies on devices, in the structure of the result."""
        inner = self._traced._traced
        return inner.out_tree.unflatten(inner.fixed_out.join(self._outputs))

    @property
    def _outputs(self) -> list[Any]:
        if self._placed:
            return self._placed.program.results
        return [self._place] * len(self._traced._traced.closed.out_avals)

    @property
    def _inputs(self) -> list[Any]:
        """The sharding of each argument that is an array; None for those that are not used."""
        inner = self._traced._traced
        places = (
            self._placed.inputs if self._placed else [self._place] * len(inner.program.in_avals)
        )
        used = iter(places[len(inner.given) :])
        count = len(inner.closed.in_avals) - len(inner.consts)
        return [None if i in inner.unused else next(used) for i in range(count)]

    @property
    def _place(self) -> Any:
        """Where a program runs that has no devices of its own."""
        from namoo.sharding import SingleDeviceSharding

        return SingleDeviceSharding(getattr(self._run, "place", None) or registry.home())

    def _require_places(self, operands: Sequence[Any], paths: Sequence[str]) -> None:
        for x, wanted, path in zip(operands, self._inputs, paths, strict=True):
            if wanted is None or not _is_committed(x):
                continue
            if not x._sharding.is_equivalent_to(wanted, x.ndim):
                raise ValueError(
                    "Computation was compiled for input shardings that disagree with the shardings "
                    f"of arguments passed to it: argument {path} of {self._traced.fun_name} was "
                    f"compiled with {wanted} and called with {x._sharding}. Move it first: "
                    "namoo.device_put(x, sharding)."
                )

    @errors.boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        traced = self._traced
        if tree != self.in_tree:
            raise TypeError(
                tree_util.mismatch(
                    f"{traced.fun_name} was compiled for arguments of another structure",
                    diff(self.in_tree, tree),
                ).args[0]
            )
        operands = [x for x in leaves if is_array(x)]
        paths = [
            tree_util.keystr(p)
            for p, x in tree_util.tree_leaves_with_path((args, kwargs))
            if is_array(x)
        ]
        compiled_for = [aval_of(x) for x in traced._leaves if is_array(x)]
        for x, wanted, path in zip(operands, compiled_for, paths, strict=True):
            found = aval_of(x)
            if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
                raise TypeError(
                    "Argument types differ from the types for which this computation was "
                    f"compiled: argument {path} of {traced.fun_name} was compiled with "
                    f"{wanted.str_short()} and called with {found.str_short()}."
                )
        inner = traced._traced
        if any(isinstance(x, Tracer) for x in operands):
            raise TypeError(
                f"Cannot apply transformations to the compiled {traced.fun_name}: a compiled "
                "program runs on concrete arrays only. Transform the function before compiling it."
            )
        if any(map(_is_committed, operands)):
            self._require_places(operands, paths)
        inputs = (*inner.given, *inner.used(operands))
        if self._placed:
            outs = self._placed(inputs)
        elif inner.donation is None:
            outs = dispatch.execute(self._run, inputs)
        else:
            outs = inner.donation(inputs)
        return inner.out_tree.unflatten(inner.fixed_out.join(list(map(wrap, outs, inner.weak_out))))


def _type_of(x: Any) -> Any:
    """The type of an argument that is an array; others as they are."""
    return ShapeDtypeStruct.like(x) if is_array(x) else x


def _format(aval: ShapedArray, sharding: Any) -> Any:
    """The format of an array; of one that is not used, nothing is said."""
    from namoo.sharding.layouts import Format, row_major

    return Format() if sharding is None else Format(row_major(aval.ndim), sharding)


def _is_committed(x: Any) -> bool:
    return type(x) is PlacedArray and x._committed


def _is_told(x: Any) -> bool:
    """Whether a type says that arrays of it lie on devices of their own."""
    if not isinstance(x, ShapeDtypeStruct) or x.sharding is None:
        return False
    from namoo.api.placement import needs_placing

    return needs_placing(x.sharding)
