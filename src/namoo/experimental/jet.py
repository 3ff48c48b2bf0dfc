"""Taylor mode: all derivatives of a function along a curve at once.

A value x(t) carries its derivatives x', x'', … at t = 0. The derivatives of y = f(x) follow from
the JVP rule, y' = ∂f(x)·x', which is itself a program on curves of one order less. So every
primitive with a JVP rule has a Taylor rule, loops and branches included. Products and quotients
have their own rules for speed: Leibniz' formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.source_context import make_entry_points as _guard
from namoo.control.call import jit_p
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.jaxpr import eval_jaxpr
from namoo.core.primitive import Zero
from namoo.core.trace import Trace, Tracer, context, set_trace
from namoo.primitives.arithmetic import add, div, div_p, mul, mul_p, sub
from namoo.primitives.contract import dot_general_p
from namoo.primitives.conv import conv_general_dilated_p
from namoo.primitives.shape import convert_element_type, instantiate, shape_of
from namoo.transforms.arguments import is_array, require_callable, to_array
from namoo.transforms.jvp import jvp
from namoo.transforms.stage import stage

__all__ = ["jet"]
__dir__ = __all__.copy


def jet(
    fun: Callable,
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Return the value of a function, and its derivatives of every order along a curve.

    The curve of argument i is xᵢ(t) = primals[i] + Σₖ series[i][k-1]·tᵏ/k!, and the results are
    those of fun(x₀(t), x₁(t), …) at t = 0, in the same form.

    Args:
        fun: a function of arrays.
        primals: the arguments; booleans are constant, and their series are ignored.
        series: for each argument its derivatives along the curve, the first one first; all
            arguments have the same number.
        factorial_scaled: False leaves out the factorials: x(t) = Σₖ cₖ·tᵏ, in and out.

    Returns:
        the result, and the same tree with a list of derivatives for each array.

    Raises:
        ValueError: arguments have different numbers of terms, or an argument is not an array.
        TypeError: an argument is an array of integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> value, (first, second) = jet(jnp.exp, (0.0,), ((1.0, 0.0),))
        >>> print(value, first, second)
        1.0 1.0 1.0
    """
    require_callable(fun, "jet")
    if len(primals) != len(series):
        raise TypeError(f"jet got {len(primals)} arguments, but series for {len(series)}.")
    for i, x in enumerate(primals):
        if not is_array(x):
            raise ValueError(
                f"jet: argument {i} is {type(x).__name__}, which is not an array. Pass each array "
                "of a tree as an argument of its own."
            )
        if aval_of(x).tangent().dtype != aval_of(x).dtype and aval_of(x).dtype != np.bool_:
            raise TypeError(
                f"jet: argument {i} has type {aval_of(x).str_short()}; only floats and complex "
                "numbers have derivatives. Close over integers instead."
            )
    lengths = {len(terms) for terms in series}
    if len(lengths) > 1:
        raise ValueError(
            "jet: all arguments must have series of one length, got "
            f"{[len(terms) for terms in series]} terms."
        )
    order = lengths.pop() if lengths else 0
    factors = [1 if factorial_scaled else math.factorial(k) for k in range(1, order + 1)]
    curves = [
        None  # booleans have no derivative
        if aval_of(x).dtype == np.bool_
        else [_term(x, term, factor, i) for term, factor in zip(terms, factors, strict=True)]
        for i, (x, terms) in enumerate(zip(primals, series, strict=True))
    ]
    out_tree: Any = None

    def flat(*args):
        nonlocal out_tree
        outs, out_tree = tree_util.tree_flatten(fun(*args))
        return outs

    values = [to_array(x) for x in primals]
    jaxpr, consts = stage(flat, [aval_of(x) for x in values], getattr(fun, "__name__", "jet"))
    outs = _run(lambda *xs: eval_jaxpr(jaxpr, consts, *xs), order, values, curves)
    results, terms = [], []
    for x in outs:
        value, own = (x.primal, x.terms) if isinstance(x, JetTracer) else (x, None)
        results.append(to_array(value))
        own = _zeros(value, order) if own is None else own
        terms.append([_times(t, 1 / f) for t, f in zip(own, factors, strict=True)])
    return out_tree.unflatten(results), out_tree.unflatten(terms)


def _term(x: Any, term: Any, factor: int, i: int) -> Any:
    """Return a derivative that the user gave, in the dtype of its argument's tangents."""
    aval = aval_of(x)
    if shape_of(term) != aval.shape:
        raise ValueError(
            f"jet: argument {i} has shape {aval.shape}, but a term of its series has shape "
            f"{shape_of(term)}."
        )
    return _times(convert_element_type(term, aval.dtype, aval.weak_type), factor)


def _times(x: Any, factor: float) -> Any:
    if factor == 1:
        return x
    aval = aval_of(x)
    return mul(x, EagerArray(np.asarray(factor, aval.dtype), aval.weak_type))


def _zeros(value: Any, order: int) -> list[Any]:
    from namoo.numpy import zeros

    aval = aval_of(value)
    dtype = aval.dtype if aval.tangent().dtype == aval.dtype else float
    return [zeros(aval.shape, dtype)] * order


class JetTracer(Tracer):
    """A value and its derivatives along a curve, which are computed on demand."""

    __slots__ = ("_make", "_terms", "primal")

    def __init__(self, trace: Trace, primal: Any, make: Callable[[], list[Any]]):
        self._trace = trace
        self.primal = primal
        self._make = make
        self._terms: list[Any] | None = None

    @property
    def aval(self):  # type: ignore[override]
        return aval_of(self.primal)

    @property
    def terms(self) -> list[Any]:
        if self._terms is None:
            self._terms = self._make()
        return self._terms


class JetTrace(Trace):
    """The trace that computes with curves of one order on its parent trace."""

    kind = "jet"

    def __init__(self, parent: Trace, order: int):
        self.parent = parent
        self.order = order

    def curve(self, x: Any) -> tuple[Any, Callable[[], list[Any]] | None]:
        """Return a value and a function for its derivatives, or None for a constant."""
        if isinstance(x, JetTracer) and x._trace is self:
            return x.primal, lambda: x.terms
        return x, None

    def process(self, prim, args, params):
        if prim is jit_p:
            return eval_jaxpr(params["jaxpr"].jaxpr, params["jaxpr"].consts, *args)
        primals, curves = zip(*map(self.curve, args), strict=True) if args else ((), ())
        with set_trace(self.parent):
            out = prim.bind(*primals, **params)
        if all(c is None for c in curves):
            return out
        rule = _RULES.get(prim, _general)
        made: list[list[Any]] = []

        def terms(position):
            # All results of a primitive are computed together.
            if not made:
                given = [c if c is None else c() for c in curves]
                with set_trace(self.parent):
                    made.extend(rule(self, prim, primals, given, out, params))
            return made[position]

        def join(value, position):
            aval = aval_of(value)
            if aval.tangent().dtype != aval.dtype:
                return value
            return JetTracer(self, value, lambda: terms(position))

        if prim.multiple_results:
            return [join(value, i) for i, value in enumerate(out)]
        return join(out, 0)


def _run(fun: Callable, order: int, primals: Sequence[Any], curves: Sequence[Any]) -> list[Any]:
    """Run a function on curves: tracers in, tracers or constants out; plain values at order 0."""
    if order == 0:
        return list(fun(*primals))
    trace = JetTrace(context.trace, order)
    tracers = [
        x if terms is None else JetTracer(trace, x, lambda terms=terms: terms)
        for x, terms in zip(primals, curves, strict=True)
    ]
    with set_trace(trace):
        outs = list(fun(*tracers))
        for x in outs:
            if isinstance(x, JetTracer) and x._trace is trace:
                with set_trace(trace.parent):
                    _ = x.terms
    trace.finish()
    return outs


def _general(trace: JetTrace, prim: Any, primals: Any, curves: Any, out: Any, params: dict) -> Any:
    """Return the derivatives of y from y' = ∂f(x)·x': the JVP rule on curves of one order less."""
    n = trace.order - 1
    positions = [i for i, c in enumerate(curves) if c is not None]

    def tangents_of(*values):
        xs, dots = list(primals), [Zero.of(x) for x in primals]
        for j, i in enumerate(positions):
            xs[i], dots[i] = values[j], values[len(positions) + j]
        if prim.higher_order:
            run = lambda *xs: prim.bind(*xs, **params)  # noqa: E731
            result = jvp(run if prim.multiple_results else lambda *xs: [run(*xs)], xs, dots)[1]
        else:
            result = prim.jvp(xs, dots, **params)[1]
            result = result if prim.multiple_results else [result]
        return [instantiate(t) for t in result]

    values = [primals[i] for i in positions] + [curves[i][0] for i in positions]
    terms = [curves[i][:-1] for i in positions] + [curves[i][1:] for i in positions]
    found = _run(tangents_of, n, values, terms)
    outs = out if prim.multiple_results else [out]
    return [_shifted(t, n, value) for t, value in zip(found, outs, strict=True)]


def _shifted(tangent: Any, n: int, value: Any) -> list[Any]:
    """Return the derivatives of a result, given the curve of its first derivative."""
    if aval_of(tangent).dtype != aval_of(value).dtype:  # float0: the result is an integer
        return []
    if isinstance(tangent, JetTracer):
        return [tangent.primal, *tangent.terms]
    return [tangent, *[instantiate(Zero(aval_of(tangent))) for _ in range(n)]]


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total


def _product(trace: JetTrace, prim: Any, primals: Any, curves: Any, out: Any, params: dict) -> Any:
    """Apply (x·y)⁽ⁿ⁾ = Σₖ C(n, k) x⁽ᵏ⁾·y⁽ⁿ⁻ᵏ⁾, for all bilinear primitives."""
    (x, y), (xs, ys) = primals, curves
    if ys is None:
        return [[prim.bind(t, y, **params) for t in xs]]
    if xs is None:
        return [[prim.bind(x, t, **params) for t in ys]]
    xs, ys = [x, *xs], [y, *ys]
    return [
        [
            _sum(
                [
                    _times(prim.bind(xs[k], ys[n - k], **params), math.comb(n, k))
                    for k in range(n + 1)
                ]
            )
            for n in range(1, trace.order + 1)
        ]
    ]


def _quotient(trace: JetTrace, prim: Any, primals: Any, curves: Any, out: Any, params: dict) -> Any:
    """Apply q⁽ⁿ⁾ = (x⁽ⁿ⁾ - Σₖ C(n, k) q⁽ᵏ⁾·y⁽ⁿ⁻ᵏ⁾) / y, with k < n, which follows from x = q·y."""
    (_, y), (xs, ys) = primals, curves
    if ys is None:
        return [[div(t, y) for t in xs]]
    found = [out]
    for n in range(1, trace.order + 1):
        rest = _sum([_times(mul(found[k], ys[n - k - 1]), math.comb(n, k)) for k in range(n)])
        found.append(div(sub(xs[n - 1], rest) if xs is not None else _times(rest, -1), y))
    return [found[1:]]


_RULES: dict[Any, Callable[..., Any]] = {
    mul_p: _product,
    dot_general_p: _product,
    conv_general_dilated_p: _product,
    div_p: _quotient,
}

_guard(globals())
