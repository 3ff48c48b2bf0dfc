"""Lowers a program to the text of a StableHLO module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import errors
from namoo._base.config import config, enable_x64
from namoo._base.floating_errors import floating_errors_ignored
from namoo.analysis.mesh_types import MeshArray
from namoo.core.array import to_numpy
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from namoo.engines import base
from namoo.engines.xla import pjrt
from namoo.engines.xla.collectives import Manual
from namoo.engines.xla.foreign import foreign_call
from namoo.engines.xla.hlo import (
    TOKEN,
    Emitter,
    Kind,
    OnTheHost,
    Value,
    Writer,
    _kind,
    attribute,
    kind_of,
    tensor,
)


class Module:
    """A module under construction: its functions, meshes and callbacks.

    Args:
        devices: the devices that it is for.
        read: makes a sharding from the text of an HLO sharding and a number of dimensions.
    """

    def __init__(self, devices: Sequence[Any] = (), read: Callable[[str, int], Any] | None = None):
        self.devices = tuple(devices)
        self.read = read
        self.partitions = len(devices) or 1
        self.platform = devices[0].platform if devices else "cpu"
        self.functions: dict[tuple[str, str], str] = {}
        """Function name → text of the function without its name."""
        self.calls: dict[int, tuple[Any, str, list[Kind]]] = {}
        """Id of a program → its function, for programs that were called before."""
        self.callbacks: list[Callable[..., Any]] = []
        self.handlers: list[str] = []
        """Names of the handlers of the typed FFI that are called."""
        self.host_equations: list[JaxprEqn] = []
        """The equations that call back into Python."""
        self.inspections: list[Callable[[str], None]] = []
        """The functions that XLA calls with shardings while it compiles."""
        self.meshes: dict[str, str] = {}
        self.manual: Manual | None = None
        """The `shard_map` that contains the current equations, for collectives."""
        self.channels = 0
        self.failures: list[BaseException] = []

    def text(self, name: str, main: str) -> str:
        """Return the text of the module with its main function."""
        lines = [
            f"module @{_symbol(name)} attributes {{mhlo.num_partitions = {self.partitions} : i32, "
            "mhlo.num_replicas = 1 : i32} {"
        ]
        lines += [f"sdy.mesh @{mesh} = {text}" for text, mesh in self.meshes.items()]
        lines += [main]
        lines += [f"func.func private @{n}{text}" for (_, text), n in self.functions.items()]
        return "\n".join([*lines, "}"])

    def raising(self, run: Callable[[list[Any]], list[Any]], buffers: list[Any]) -> list[Any]:
        """Run a program with callbacks, and raise the exception of a callback afterwards."""
        self.failures.clear()
        try:
            outs = run(buffers)
            for x in outs:
                x.block_until_ready()
        except Exception as error:
            if not self.failures:
                if self.handlers:
                    message = f"The FFI target {', '.join(self.handlers)} failed: {error}"
                    raise errors.JaxRuntimeError(message) from None
                raise
        else:
            if not self.failures:
                return outs
        # Outside of the handler, so that the exception keeps its own cause and context.
        raise self.failures[0]

    def mesh(self, text: str) -> str:
        """Return the name of a mesh, given its Shardy text."""
        return self.meshes.setdefault(text, f"mesh{len(self.meshes) or ''}")

    def sharding(self, sharding: Any, ndim: int) -> str | None:
        """Return a sharding as Shardy text; None with one device, or without constraints."""
        if self.partitions == 1:
            return None
        mesh, text = sharding.shardy(ndim, self.devices)
        return f"<@{self.mesh(mesh)}, {text}>"

    def channel(self) -> str:
        """Return a new channel for one collective."""
        self.channels += 1
        return f"#stablehlo.channel_handle<handle = {self.channels}, type = 1>"

    @staticmethod
    def kinds(avals: Sequence[Any]) -> list[Kind]:
        """Return the shapes and device dtypes of values."""
        return [kind_of(a) for a in avals]

    def main(
        self,
        closed: ClosedJaxpr,
        inputs: Sequence[dict[str, str]] = (),
        results: Sequence[dict[str, str]] = (),
    ) -> str:
        """Write the main function; `inputs` and `results` are the attributes of each."""
        arguments, outs, lines = self.body(closed)
        heads = [
            f"{x!r}{_attributes(inputs[i]) if inputs else ''}" for i, x in enumerate(arguments)
        ]
        tails = [
            f"{x.type}{_attributes(results[i]) if results else ''}" for i, x in enumerate(outs)
        ]
        body = "\n".join(lines)
        return f"func.func public @main({', '.join(heads)}) -> ({', '.join(tails)}) {{\n{body}\n}}"

    def body(self, closed: ClosedJaxpr) -> tuple[list[Value], list[Value], list[str]]:
        """Return the arguments, results and lines of a program as a function."""
        writer = Writer()
        arguments = [Value(writer.name(), *kind_of(a)) for a in closed.in_avals]
        outs = self.inline(Emitter(self, writer), closed, arguments)
        writer.op("func.return", outs, [])
        return arguments, outs, writer.lines

    def inline(self, emit: Emitter, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Write the equations of a program with an emitter."""
        jaxpr = closed.jaxpr
        env: dict[Any, Value] = dict(zip(jaxpr.invars, operands, strict=True))
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = emit.constant(to_numpy(const))

        def read(atom: Any) -> Value:
            return emit.constant(np.asarray(atom.val)) if type(atom) is Literal else env[atom]

        outer = emit.avals, emit.inputs
        for eqn in jaxpr.eqns:
            emit.avals = [v.aval for v in eqn.outvars]
            emit.inputs = [a.aval for a in eqn.invars]
            outs = _apply_rule(emit, eqn, [read(a) for a in eqn.invars])
            for var, out in zip(eqn.outvars, outs, strict=True):
                split = var.aval.split if type(var.aval) is MeshArray else None
                if split is not None and self.manual is None and eqn.primitive.name != "reshard":
                    out = emit.constrain(out, split.in_program(out.ndim))
                env[var] = out
        emit.avals, emit.inputs = outer
        return [read(v) for v in jaxpr.outvars]

    def call(
        self, emit: Emitter, closed: ClosedJaxpr, operands: Sequence[Value], name: str
    ) -> list[Value]:
        """Call a program as a separate function; one with effects is inlined, in their order."""
        if closed.effectful or self.manual is not None:
            return self.inline(emit, closed, operands)
        found = self.calls.get(id(closed.jaxpr)) if not closed.consts else None
        if found is None:
            arguments, outs, lines = self.body(closed)
            heads = ", ".join(map(repr, arguments))
            types = ", ".join(x.type for x in outs)
            text = f"({heads}) -> ({types}) {{\n" + "\n".join(lines) + "\n}"
            symbol = self.functions.setdefault(
                (name, text), f"{_symbol(name)}_{len(self.functions)}"
            )
            # The program is kept alive, so that no other gets its id.
            found = self.calls[id(closed.jaxpr)] = closed, symbol, [kind_of(x) for x in outs]
        attributes = {"callee": f"@{found[1]}"}
        return emit.writer.op("func.call", operands, found[2], attributes)

    def apply(self, emit: Emitter, function: Callable[..., Any], operands: Sequence[Value]) -> Any:
        """Trace a function for these operands, and write its equations."""
        many = False

        def flat(*tracers):
            nonlocal many
            out = function(*tracers)
            many = isinstance(out, (list, tuple))
            return list(out) if many else [out]

        avals = [ShapedArray(x.shape, x.dtype) for x in operands]
        jaxpr, consts = base.stage(flat, avals, "apply", None)
        closed = ClosedJaxpr(jaxpr, consts)
        outs = self.inline(emit, closed, operands)
        return outs if many else outs[0]

    def host(
        self,
        emit: Emitter,
        function: Callable[..., Any],
        operands: Sequence[Value],
        result: Any = None,
        effect: bool = False,
    ) -> Any:
        """Call a Python function of NumPy arrays when the program runs."""
        wanted = emit.avals if result is None else result
        many = isinstance(wanted, list) and not (result is None and len(wanted) == 1)
        kinds = [_kind(w) for w in wanted] if isinstance(wanted, list) else [_kind(wanted)]
        results, wide = kinds, config.x64_enabled

        def called(*arrays: Any) -> tuple[Any, ...]:
            token, arrays = arrays[:effect], arrays[effect:]
            try:
                # XLA calls from its own thread, which does not have the settings of this one.
                with enable_x64(wide):
                    outs = function(*map(np.asarray, arrays))
                outs = outs if many else [outs]
                return *token, *(
                    np.ascontiguousarray(np.asarray(x)).view(dtype).reshape(shape)
                    for x, (shape, dtype) in zip(outs, results, strict=True)
                )
            except BaseException as error:
                self.failures.append(error)
                if self.partitions == 1:
                    raise
                # The other devices may wait for this one, so it must run to the end.
                return *token, *(np.zeros(shape, dtype) for shape, dtype in results)

        if self.platform not in ("cpu", "gpu"):
            raise ValueError(
                f"Programs on {self.platform} devices cannot call back into Python, as callbacks, "
                "debug.print and operations without a rule for XLA do. Take it out of the program, "
                "or run it elsewhere: namoo.jit(f, device=namoo.devices('cpu')[0])."
            )
        self.callbacks.append(called)
        attributes = {
            "call_target_name": f'"xla_ffi_python_{self.platform}_callback"',
            "api_version": "4 : i32",
            "backend_config": f"{{index = {len(self.callbacks) - 1} : ui64}}",
            "has_side_effect": "true" if effect else "false",
        }
        if effect and self.manual is not None and self.manual.free:
            return self._tell(emit, operands, kinds, attributes)
        alone = self.partitions > 1 and self.manual is None
        if alone:
            operands = [self._everywhere(emit, x) for x in operands]
        if effect:
            operands, kinds = [emit.order(), *operands], [TOKEN, *kinds]
        attributes["operand_layouts"] = _layouts([x.shape for x in operands])
        attributes["result_layouts"] = _layouts([shape for shape, _ in kinds])
        notes = None
        if alone:
            # One device calls for all.
            first = f"<@{self.mesh('<[], device_ids=[0]>')}, []>"
            listed = ", ".join([first] * len(kinds))
            notes = {"sdy.sharding": f"#sdy.sharding_per_value<[{listed}]>"}
        values = emit.writer.op("stablehlo.custom_call", operands, kinds, attributes, (), notes)
        if effect:
            emit.token, *values = values
        if alone:
            values = [self._everywhere(emit, x) for x in values]
        return values if many else values[0]

    foreign = staticmethod(foreign_call)

    def inspect(self, emit: Emitter, x: Value, callback: Callable[[Any], None]) -> None:
        """Call a function with the sharding of a value, which XLA decides when it compiles."""
        if self.partitions == 1:
            callback(self.devices[0])
            return
        read = self.read
        assert read is not None

        def tell(text: str) -> None:
            # A value inside of a shard_map has no sharding of its own.
            callback(read("{replicated}" if "manual" in text else text, x.ndim))

        key, kept = pjrt.inspection(tell)
        self.inspections.append(kept)
        attributes = {
            "call_target_name": '"InspectSharding"',
            "has_side_effect": "true",
            "api_version": "1 : i32",
            "backend_config": '"' + "".join(f"\\{byte:02X}" for byte in key) + '"',
        }
        emit.writer.op("stablehlo.custom_call", [x], [kind_of(x)], attributes)

    def _tell(
        self,
        emit: Emitter,
        operands: Sequence[Value],
        kinds: Sequence[Kind],
        attributes: dict[str, str],
    ) -> list[Value]:
        """Emit a call for its effect where some mesh axes are automatic.

        The devices along those axes have the same values, so only the first one calls.
        """
        manual = self.manual
        assert manual is not None
        if kinds:
            raise NotImplementedError(
                "Callbacks with effects and results are not supported in a shard_map that leaves "
                f"the mesh axes {manual.free} to the compiler: leave axis_names out."
            )
        chosen = ~np.any([manual.coordinates(name) for name in manual.free], axis=0)

        def call(*xs: Value) -> list[Value]:
            token = emit.op("create_token", result=TOKEN)
            layouts = _layouts([(), *(x.shape for x in xs)])
            own = {**attributes, "operand_layouts": layouts, "result_layouts": _layouts([()])}
            emit.writer.op("stablehlo.custom_call", [token, *xs], [TOKEN], own)
            return [emit.constant(np.int32(1))]

        def body(*xs: Value) -> list[Value]:
            here = emit.op("partition_id", result=((), np.uint32))
            index = emit.row(emit.constant(chosen.astype(np.int32)), here)
            nothing = [((), np.dtype(np.int32))]
            other = lambda: [emit.constant(np.int32(0))]  # noqa: E731
            return emit.case(index, [other, lambda: call(*xs)], nothing)

        emit.in_full(manual, operands, body)
        return []

    def _everywhere(self, emit: Emitter, x: Value) -> Value:
        """Replicate a value on all devices."""
        mesh = self.mesh(f'<["all"={self.partitions}]>')
        dims = ", ".join(["{}"] * x.ndim)
        sharding = {"sharding": f"#sdy.sharding<@{mesh}, [{dims}]>"}
        return emit.op("sdy.sharding_constraint", x, result=x, attributes=sharding)

    def lapack(
        self,
        emit: Emitter,
        name: str,
        operands: Sequence[Value],
        kinds: list[Kind],
        options: dict[str, Any],
    ) -> list[Value]:
        """Call a LAPACK routine, whose matrices are in column-major order."""
        if self.platform != "cpu":
            raise OnTheHost
        pjrt.lapack()
        given = [f"{k} = {_option(v)}" for k, v in options.items()]
        rank = max(x.ndim for x in operands)
        attributes = {
            "call_target_name": f'"lapack_{name}_ffi"',
            "api_version": "4 : i32",
            "backend_config": f"{{{', '.join(given)}}}",
            "operand_layouts": _layouts([x.shape for x in operands], rank),
            "result_layouts": _layouts([shape for shape, _ in kinds], rank),
        }
        shapes = [x.shape for x in operands], [shape for shape, _ in kinds]
        notes = _divisible(*shapes, rank - 2) if self.partitions > 1 else None
        return emit.writer.op("stablehlo.custom_call", operands, kinds, attributes, (), notes)


def _option(value: Any) -> str:
    """Write an option of a routine: letters are bytes, and integers are int32."""
    if isinstance(value, str):
        return f"{ord(value)} : ui8"
    return attribute(value) if isinstance(value, bool) else f"{value} : i32"


def _apply_rule(emit: Emitter, eqn: JaxprEqn, operands: list[Value]) -> list[Value]:
    """Emit an equation by the rule of its primitive; without a rule NumPy computes it."""
    primitive, module = eqn.primitive, emit.module
    rule, before = primitive.stablehlo, len(module.callbacks)
    outs: Any
    try:
        if isinstance(rule, str):
            outs = emit.elementwise(rule, *operands)
        elif rule is not None:
            outs = rule(emit, *operands, **eqn.params)
        else:
            raise OnTheHost
    except OnTheHost:
        outs = _evaluate(emit, eqn, operands)
    if len(module.callbacks) > before and not primitive.holds_program:
        module.host_equations.append(eqn)
    outs = list(outs) if primitive.multiple_results else [outs]
    for var, out in zip(eqn.outvars, outs, strict=True):
        if kind_of(var.aval) != kind_of(out):
            raise AssertionError(
                f"The stablehlo rule of {primitive.name} gave {tensor(*kind_of(out))} for "
                f"{var.aval.str_short()}; it belongs in {type(primitive).__module__}."
            )
    return outs


def _evaluate(emit: Emitter, eqn: JaxprEqn, operands: Sequence[Value]) -> Any:
    """Emit a callback that computes an equation with NumPy."""
    primitive, params = eqn.primitive, eqn.params
    types = [getattr(a.aval.dtype, "numpy", a.aval.dtype) for a in eqn.invars]

    def evaluate(*arrays: np.ndarray) -> Any:
        logical = [a.view(t) if a.dtype != t else a for a, t in zip(arrays, types, strict=True)]
        with floating_errors_ignored():
            out = primitive.evaluate(*logical, **params)
        return out if primitive.multiple_results else [out]

    outs = emit.module.host(
        emit, evaluate, operands, result=list(emit.avals), effect=primitive.effectful
    )
    return outs if primitive.multiple_results else outs[0]


def _layouts(shapes: Sequence[tuple[int, ...]], columns: int = 0) -> str:
    """Return layouts: column-major for arrays with this many axes, else row-major."""
    texts = []
    for shape in shapes:
        order = [*range(len(shape))][::-1]
        if columns and len(order) == columns:
            order[:2] = order[1::-1]
        texts.append(f"dense<{order if order else ''}> : tensor<{len(order)}xindex>")
    return f"[{', '.join(texts)}]"


def _divisible(
    operands: Sequence[tuple[int, ...]], results: Sequence[tuple[int, ...]], count: int
) -> dict[str, str] | None:
    """Return a sharding rule that lets devices split the batch, the first `count` axes."""
    if count < 1 or any(len(shape) < count for shape in (*operands, *results)):
        return None
    sizes: dict[str, int] = {}

    def factor(size: int) -> str:
        number = len(sizes)
        name = chr(ord("i") + number) if number < 18 else f"z_{number - 17}"
        sizes[name] = size
        return name

    shared = [factor(n) for n in operands[0][:count]]

    def listed(shapes: Sequence[tuple[int, ...]]) -> str:
        own = [[*shared, *map(factor, shape[count:])] for shape in shapes]
        return ", ".join(f"[{', '.join(names)}]" for names in own)

    rule = f"({listed(operands)})->({listed(results)})"
    given = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return {
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{count}"}}',
        "sdy.sharding_rule": f"#sdy.op_sharding_rule<{rule} {{{given}}}, custom>",
    }


def _attributes(attributes: dict[str, str]) -> str:
    if not attributes:
        return ""
    return f" {{{', '.join(f'{k} = {v}' for k, v in attributes.items())}}}"


def _symbol(name: str) -> str:
    """Return a name as a symbol of MLIR."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name) or "program"
