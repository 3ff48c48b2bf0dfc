"""User-defined primitives: rules are set one by one, in JAX's conventions.

Each kind of rule is an attribute of the primitive, or None. `namoo.interpreters` sets them through
JAX's tables; rules are stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.core import primitive as own
from namoo.core.array import Array, EagerArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, no_effects
from namoo.core.trace import eval_trace, set_trace
from namoo.transforms.discharge import discharged
from namoo.transforms.stage import stage_closed

Rule = Callable[..., Any]

GPUS = {"cuda": "gpu", "rocm": "gpu"}
"""JAX's names for GPUs, which are one platform here."""

# JAX's names of the rules that are not "X rule".
_TITLES = {
    "Abstract evaluation": "Abstract evaluation",
    "Transpose": "Transpose rule (for reverse-mode differentiation)",
}
ADVICE = {
    "Evaluation": "{0}_p.def_impl(function of arrays)",
    "Abstract evaluation": "{0}_p.def_abstract_eval(function of types that returns the result's)",
    "Differentiation": (
        "namoo.interpreters.ad.primitive_jvps[{0}_p] = function of (primals, tangents)"
    ),
    "Transpose": (
        "namoo.interpreters.ad.primitive_transposes[{0}_p] = function of (cotangent, *operands)"
    ),
    "Batching": (
        "namoo.interpreters.batching.primitive_batchers[{0}_p] = function of (operands, dims)"
    ),
}


class ModuleContext(NamedTuple):
    """The program that a lowering rule is called for.

    Attributes:
        platforms: the platforms that it is compiled for.
    """

    platforms: Sequence[str]

    def add_keepalive(self, value: Any) -> None:
        """Do nothing: programs keep alive what they use."""


class LoweringContext(NamedTuple):
    """The equation that a lowering rule is called for: the operation and its types."""

    primitive: Primitive
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    platforms: Sequence[str]

    @property
    def module_context(self) -> ModuleContext:
        """The program that the equation is part of."""
        return ModuleContext(self.platforms)


class _Operations(type(own.Primitive)):
    """Make built-in primitives instances of `Primitive`, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Primitive:
            return isinstance(instance, own.Primitive)
        return super().__instancecheck__(instance)


class Primitive(own.Primitive, metaclass=_Operations):
    """A user-defined primitive.

    Args:
        name: its name in programs and messages.

    Set `multiple_results` to True where the rules return lists.

    Example:
        >>> import namoo
        >>> twice_p = Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: 2 * x)
        >>> _ = twice_p.def_abstract_eval(lambda x: x)
        >>> print(twice_p.bind(3.0), namoo.jit(twice_p.bind)(4.0))
        6.0 8.0
    """

    sets_weak = True

    impl: Rule | None = None
    """What the operation computes; `def_impl` sets it, or a subclass defines it as a method."""
    abstract_eval: Rule | None = None
    """The type of the result and the effects; set or defined likewise."""

    def __init__(self, name: str):
        self.name = name
        self.jvp_rule: Rule | None = None
        self.transpose_rule: Rule | None = None
        self.batch_rule: Rule | None = None
        self.lowerings: dict[str | None, Rule] = {}

    def def_impl(self, impl: Rule) -> Rule:
        """Set the evaluation rule: a function of arrays, which may use NumPy."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        """Set the abstract rule: a function of `namoo.core.ShapedArray`s."""
        self.abstract_eval = lambda *avals, **params: (rule(*avals, **params), no_effects)
        return rule

    def def_effectful_abstract_eval(self, rule: Rule) -> Rule:
        """Like `def_abstract_eval`, for a function that returns the type and a set of effects."""
        self.abstract_eval = rule
        self.effectful = True
        return rule

    @property
    def holds_program(self) -> bool:
        # The function itself gives the best error for a mistake in a call.
        return self.lowering("cpu") is not None or self.abstract_eval is None

    def weak_result(self, weak: bool, params: dict) -> bool:
        return False

    def weak_results(self, weak: bool, count: int, params: dict) -> list[bool]:
        return [False] * count

    def evaluate(self, *values: Any, **params: Any) -> Any:
        arrays = [EagerArray(np.asarray(x)) for x in values]
        with set_trace(eval_trace):
            if self.impl is not None:
                out = self.impl(*arrays, **params)
                outs = list(out) if self.multiple_results else [out]
            elif (rule := self.lowering("cpu")) is not None:
                avals = [x.aval for x in arrays]
                outs = rule(self._context("cpu", avals, params), *arrays, **params)
            else:
                raise self.without("Evaluation")
            outs = [to_numpy(x) for x in outs]
        if self.abstract_eval is not None:
            outs = self._fitted(outs, [aval_of(x) for x in arrays], params)
        return outs if self.multiple_results else outs[0]

    def _fitted(
        self, outs: Sequence[np.ndarray], avals: Sequence[ShapedArray], params: dict
    ) -> list[np.ndarray]:
        """Convert computed values to the types of the abstract rule, which programs rely on."""
        wanted = self._out_avals(avals, params)
        found = [ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype)) for x in outs]
        plain = [a.update(dtype=getattr(a.dtype, "numpy", a.dtype)).strong() for a in wanted]
        if found != plain:
            returned, said = (", ".join(a.str_short() for a in avals) for avals in (found, wanted))
            raise TypeError(
                f"The function of {self.name}_p.def_impl returned {returned}, but that of "
                f"def_abstract_eval says {said}."
            )
        return [x.astype(a.dtype, copy=False) for x, a in zip(outs, plain, strict=True)]

    def abstract(self, *avals: ShapedArray, **params: Any) -> Any:
        if self.abstract_eval is None:
            raise self.without("Abstract evaluation")
        out, _ = self.abstract_eval(*avals, **params)
        if isinstance(out, (list, tuple)) != self.multiple_results:
            raise ValueError(
                f"{self.name}.abstract_eval() method should return a tuple or a list of types if "
                f"and only if multiple_results is set. Got {out!r}."
            )
        return list(map(_type, out)) if self.multiple_results else _type(out)

    def _out_avals(self, avals: Sequence[ShapedArray], params: dict) -> list[ShapedArray]:
        out = self.abstract(*avals, **params)
        return out if self.multiple_results else [out]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        if self.jvp_rule is None:
            raise self.without("Differentiation")
        return self.jvp_rule(primals, tangents, **params)

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> list:
        if self.transpose_rule is None:
            raise self.without("Transpose")
        return self.transpose_rule(ct, *operands, **params)

    def batch(self, operands: Any, dims: Any, **params: Any) -> Any:
        if self.batch_rule is None:
            raise self.without("Batching")
        return self.batch_rule(operands, dims, **params)

    def lowering(self, platform: str) -> Rule | None:
        """The rule for programs on a platform; None where the host evaluates the operation."""
        kind = GPUS.get(platform, platform)
        return self.lowerings.get(kind, self.lowerings.get(None))

    def _context(self, platform: str, avals: Sequence[ShapedArray], params: dict) -> Any:
        return LoweringContext(self, avals, self._out_avals(avals, params), (platform,))

    def lowered(self, platform: str, avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
        """Trace the lowering rule of a platform for operands of given types."""
        rule = self.lowering(platform)
        assert rule is not None
        context = self._context(platform, avals, params)

        def flat(*arrays: Any) -> list[Any]:
            outs = rule(context, *arrays, **params)
            outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            if not all(isinstance(x, (Array, np.ndarray, np.generic, int, float)) for x in outs):
                raise NotImplementedError(
                    f"The lowering of '{self.name}' returned {outs!r}, which are not arrays. "
                    "Rules that are written in MLIR cannot be used here. Register "
                    "mlir.lower_fun(function of arrays), or no lowering at all and "
                    f"{self.name}_p.def_impl(function of arrays)."
                )
            return outs

        program, _ = discharged(stage_closed(flat, avals, self.name), (False,) * len(avals))
        found, wanted = program.out_avals, context.avals_out
        if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
            raise TypeError(
                f"The lowering of '{self.name}' returns {found}, but the function of "
                f"{self.name}_p.def_abstract_eval says {wanted}."
            )
        return program

    @property
    def native(self) -> Rule | None:
        return None if self.lowering("cpu") is None else self._native

    def _native(self, emit: Any, *operands: Any, **params: Any) -> Any:
        avals = [atom.aval for atom in emit.eqn.invars]
        outs = emit.inline(self.lowered("cpu", avals, params), operands)
        return outs if self.multiple_results else outs[0]

    @property
    def stablehlo(self) -> Rule | None:
        return self._stablehlo if self.lowerings else None

    def _stablehlo(self, hlo: Any, *operands: Any, **params: Any) -> Any:
        if self.lowering(hlo.platform) is None:
            raise hlo.on_the_host()
        program = self.lowered(hlo.platform, hlo.inputs, params)
        outs = hlo.call(program, operands, self.name)
        return outs if self.multiple_results else outs[0]

    def without(self, rule: str) -> NotImplementedError:
        """Return the error for a missing rule."""
        return NotImplementedError(
            f"{_TITLES.get(rule, f'{rule} rule')} for '{self.name}' not implemented. Define it: "
            f"{ADVICE[rule].format(self.name)}."
        )


def _type(aval: Any) -> ShapedArray:
    """The result of an abstract rule, as a canonical type."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise TypeError(
            f"A rule of def_abstract_eval returned {aval!r}; return "
            "namoo.core.ShapedArray(shape, dtype), and a list of them with multiple_results."
        )
    dtype = dtypes.canonicalize_dtype(aval.dtype, allow_extended=True)
    return ShapedArray(tuple(aval.shape), dtype, getattr(aval, "weak_type", False))
