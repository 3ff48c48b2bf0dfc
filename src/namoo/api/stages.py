"""Ahead-of-time compilation: the stages traced, lowered and compiled of a function under `jit`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from namoo import errors, tree_util
from namoo._base.source_context import entry_point
from namoo.api import dispatch
from namoo.api.donation import ArgInfo
from namoo.core.array import PlacedArray
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import Tracer, wrap
from namoo.dimensions.sizes import is_symbolic
from namoo.engines import registry
from namoo.engines.base import HostOperation
from namoo.transforms.arguments import argument_paths, is_array
from namoo.tree import diff

_COMPILER_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
)


def check_compiler_options(options: dict[str, Any]) -> None:
    """Refuse names that are not options of XLA, whose flags begin with `xla_`."""
    for name in options:
        if name not in _COMPILER_OPTIONS and not name.startswith("xla_"):
            raise errors.JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")


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
        # Arguments are pickled as types, and the plan is made again.
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
        """The types of the result, as a tree of `ShapeDtypeStruct`s with their `out_shardings`."""
        shardings = self._jitted._shardings
        return self._types(None if shardings is None else shardings.wanted(self._traced))

    def _types(self, shardings: Sequence[Any] | None) -> Any:
        """Return the types of the result, with a sharding for each leaf that is an array."""
        traced = self._traced
        avals = traced.closed.out_avals
        types = [
            ShapeDtypeStruct(a.shape, a.dtype, sharding=s, weak_type=a.weak_type)
            for a, s in zip(avals, shardings or [None] * len(avals), strict=True)
        ]
        return traced.out_tree.unflatten(traced.fixed_out.join(types))

    @property
    def in_avals(self) -> Any:
        """The types of the arguments; leaves that are not arrays stay unchanged."""
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
        """The positions of the leaves that are donated."""
        return tuple(i for i, d in enumerate(self._donated) if d)

    @cached_property
    def _plan(self) -> Any:
        """The placement of the program if it is committed to devices, else None."""
        operands = [x for x in self._leaves if is_array(x)]
        used = self._traced.used(operands)
        if not self._jitted._is_placed(self._traced, used) and not any(map(_is_told, used)):
            return None
        args, kwargs = self.in_tree.unflatten(self._leaves)
        return self._jitted._plan(self._traced, operands, args, kwargs)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """Return the program ready to be compiled; warn about donated arguments that have no use.

        Args:
            lowering_platforms: has no effect: the program is the same for all platforms.
        """
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
        """Return the program as text.

        Args:
            dialect: "jaxpr"; or "stablehlo" or "hlo", the input of XLA. The default is "stablehlo"
                for a program on devices of its own, and "jaxpr" for others.
        """
        dialect = dialect or ("stablehlo" if self._traced._plan else "jaxpr")
        if dialect == "jaxpr":
            refs = self._traced._traced.refs
            return str(self._traced.jaxpr if refs is None else refs.program)
        if dialect not in ("stablehlo", "hlo"):
            raise ValueError(
                "as_text: unknown dialect: it must be 'jaxpr', 'stablehlo' or 'hlo', got "
                f"{dialect!r}."
            )
        if dialect == "stablehlo":
            return self._stablehlo()
        return self.compiler_ir("hlo").as_hlo_text()

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the program as XLA's own object; it needs `jaxlib`.

        Args:
            dialect: "stablehlo" (the default), for a module of MLIR; or "hlo", for an
                `XlaComputation`.

        Example:
            >>> import namoo
            >>> lowered = namoo.jit(namoo.numpy.sin).lower(1.0)
            >>> "sine" in lowered.compiler_ir("hlo").as_hlo_text()
            True
        """
        from namoo.engines.xla import pjrt

        if dialect not in (None, "stablehlo", "hlo"):
            raise ValueError(
                f"compiler_ir: unknown dialect: it must be 'stablehlo' or 'hlo', got {dialect!r}."
            )
        make = pjrt.computation if dialect == "hlo" else pjrt.parse
        return make(self._stablehlo())

    def _stablehlo(self) -> str:
        from namoo.engines.xla import engine

        plan = self._traced._plan
        return plan.stablehlo() if plan else engine.stablehlo(self._traced._traced.program)

    def cost_analysis(self) -> dict[str, float] | None:
        """Estimate the operations of a call, like `Compiled.cost_analysis`."""
        return self.compile().cost_analysis()

    def compile(self, compiler_options: dict | None = None) -> Compiled:
        """Compile the program for arguments of exactly these types.

        Args:
            compiler_options: options of XLA; their names are checked, and they have no effect.
        """
        check_compiler_options(compiler_options or {})
        return Compiled(self._traced)


class Compiled:
    """An executable program, to be called with arguments of the types it was compiled for."""

    _is_immutable = True

    def __init__(self, traced: Traced):
        self._traced = traced
        self.in_tree = traced.in_tree
        donation = traced._traced.donation
        refs = traced._traced.refs
        self._placed = traced._plan and traced._plan.ready()
        if self._placed:
            self._run = self._placed.program
        elif refs is not None:
            self._run = refs.executable(traced._jitted._engine)
        elif donation:
            self._run = donation.executable
        else:
            self._run = traced._jitted._executable(traced._traced.program)

    def __reduce__(self) -> tuple[Any, ...]:
        # The machine that unpickles compiles the program, or finds it in its disk cache.
        return Compiled, (self._traced,)

    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    args_info = property(lambda self: self._traced.args_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def __repr__(self) -> str:
        program = self._traced.jaxpr
        types = (
            ", ".join(aval.str_short() for aval in avals)
            for avals in (program.in_avals, program.out_avals)
        )
        kernels = getattr(self._run, "kernels", None)
        size = f", {kernels} kernels" if isinstance(kernels, int) else ""
        return f"<Compiled {self._traced.fun_name}: {' -> '.join(types)}{size}>"

    def as_text(self, stage: str | None = None) -> str:
        """Return the program at a stage of compilation.

        The default is "hlo" for a program on devices of its own, and "jaxpr" for others.

        Native programs have "jaxpr", "fused" (kernels, their lines and memory), "llvm" and
        "assembly"; XLA's have "jaxpr", "stablehlo", and "hlo", which is XLA's optimised program.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> compiled = namoo.jit(lambda x: jnp.tanh(x) * 2.0).lower(jnp.ones(8)).compile()
            >>> print(compiled.as_text("fused"))  # doctest: +ELLIPSIS
            0: kernel over [8]  at <doctest ...>:1
                %3: float32[8] = ('map', 'mul') %1 %2  [out 0]
        """
        stage = stage or ("hlo" if self._placed else "jaxpr")
        return self._run.as_text(stage)  # type: ignore[attr-defined]

    def runtime_executable(self) -> Any:
        """Return the engine's own object, for those who know the engine."""
        return self._run

    def cost_analysis(self) -> dict[str, float] | None:
        """Estimate the operations ("flops") of a call, and the bytes it moves.

        Returns None if the engine does not know.
        """
        return self._run.costs  # type: ignore[attr-defined]

    def memory_analysis(self) -> Any:
        """Return the bytes that a call needs: arguments, results, intermediate values and code."""
        return self._run.memory  # type: ignore[attr-defined]

    def host_operations(self) -> list[HostOperation]:
        """Return the operations that the program calls Python for, with the user's lines.

        They wait for the interpreter lock and copy their operands; all others are native code.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> f = namoo.jit(lambda a: namoo.scipy.special.expi(a) + 1)
            >>> compiled = f.lower(jnp.eye(2)).compile()
            >>> [operation.name for operation in compiled.host_operations()]
            ['expi']
        """
        return self._run.host_operations()  # type: ignore[attr-defined]

    @property
    def input_shardings(self) -> tuple[Any, dict[str, Any]]:
        """The sharding of each argument, in the structure of the arguments.

        It is None for arguments that the program does not use, which may be on any device.
        """
        rest = iter(self._inputs)
        return self.in_tree.unflatten(
            [next(rest) if is_array(x) else x for x in self._traced._leaves]
        )

    @property
    def input_formats(self) -> tuple[Any, dict[str, Any]]:
        """The layout and the sharding of each argument, in the structure of the arguments.

        Example:
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
        """The sharding of each result, in the structure of the result."""
        inner = self._traced._traced
        return inner.out_tree.unflatten(inner.fixed_out.join(self._outputs))

    @property
    def _outputs(self) -> list[Any]:
        if self._placed:
            return self._placed.program.results
        return [self._place] * len(self._traced._traced.closed.out_avals)

    @property
    def _inputs(self) -> list[Any]:
        """The sharding of each array among the arguments; None for unused ones."""
        inner = self._traced._traced
        places = (
            self._placed.inputs if self._placed else [self._place] * len(inner.program.in_avals)
        )
        used = iter(places[len(inner.given) :])
        count = len(inner.closed.in_avals) - len(inner.consts)
        return [None if i in inner.unused else next(used) for i in range(count)]

    @property
    def _place(self) -> Any:
        """The sharding of a program that is not committed to devices."""
        from namoo.devices.sharding.shardings import SingleDeviceSharding

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

    @entry_point
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        traced = self._traced
        if tree != self.in_tree:
            raise TypeError(
                tree_util.mismatch(
                    "Function compiled with input pytree does not match the input pytree it was "
                    f"called with: the structure of the arguments of {traced.fun_name} differs",
                    diff(self.in_tree, tree),
                ).args[0]
            )
        operands = [x for x in leaves if is_array(x)]
        paths = argument_paths(traced._jitted._fun, args, kwargs)
        paths = [p for p, x in zip(paths, leaves, strict=True) if is_array(x)]
        compiled_for = [aval_of(x) for x in traced._leaves if is_array(x)]
        for x, wanted, path in zip(operands, compiled_for, paths, strict=True):
            found = aval_of(x)
            if found.dtype != wanted.dtype or not _fits(found.shape, wanted.shape):
                raise TypeError(
                    "Argument types differ from the types for which this computation was "
                    f"compiled, {traced.fun_name}. The mismatches are:\nArgument {path!r} "
                    f"compiled with {wanted.str_short(short_dtypes=False)} and called with "
                    f"{found.str_short(short_dtypes=False)}"
                )
        inner = traced._traced
        tracer = next((x for x in operands if isinstance(x, Tracer)), None)
        if tracer is not None:
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled for a "
                f"particular signature. Detected argument of type {type(tracer).__name__}: the "
                f"compiled {traced.fun_name} runs on concrete arrays only. Transform the function "
                "before compiling it."
            )
        if any(map(_is_committed, operands)):
            self._require_places(operands, paths)
        inputs = (*inner.given, *inner.used(operands))
        if inner.refs is not None:
            outs = inner.refs(inner.consts, leaves, operands, traced._jitted, lambda: paths)
        elif self._placed:
            outs = self._placed(inputs)
        elif inner.donation is None:
            outs = dispatch.execute(self._run, inputs)
        else:
            outs = inner.donation(inputs)
        return inner.out_tree.unflatten(inner.fixed_out.join(list(map(wrap, outs, inner.weak_out))))


def _fits(found: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a shape is the expected one; a dynamic dimension matches any size but 0."""
    if len(found) != len(wanted):
        return False
    return all(n > 0 if is_symbolic(m) else n == m for n, m in zip(found, wanted, strict=True))


def _type_of(x: Any) -> Any:
    """Return the type of an array; other values stay unchanged."""
    return ShapeDtypeStruct.like(x) if is_array(x) else x


def _format(aval: ShapedArray, sharding: Any) -> Any:
    """Return the format of an array; an empty one if the array is not used."""
    from namoo.devices.sharding.memory_layout import Format, row_major

    return Format() if sharding is None else Format(row_major(aval.ndim), sharding)


def _is_committed(x: Any) -> bool:
    return type(x) is PlacedArray and x._committed


def _is_told(x: Any) -> bool:
    """Whether a type has a sharding over concrete devices."""
    if not isinstance(x, ShapeDtypeStruct) or x.sharding is None:
        return False
    from namoo.devices.placement import needs_placing

    return needs_placing(x.sharding)
