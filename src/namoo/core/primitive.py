"""Primitives: the operations everything is made of, each with all of its rules in one place.

| rule        | signature                       | what it says                                  |
|-------------|---------------------------------|-----------------------------------------------|
| `evaluate`  | `(*arrays, **params)`           | the value, with NumPy: the oracle of the rest |
| `abstract`  | `(*avals, **params)`            | shape, dtype and weak type of the result      |
| `jvp`       | `(primals, tangents, **params)` | result and tangent; tangents may be `Zero`    |
| `transpose` | `(ct, *operands, **params)`     | cotangents; linear operands are `Linear`      |
| `batch`     | `(operands, dims, **params)`    | the op with one more axis, and where it is    |
| `linearize` | `(primals, tangents, **params)` | only for primitives that hold programs        |
| `native`    | `(emit, *operands, **params)`   | how the native engine computes it             |
| `stablehlo` | `(hlo, *operands, **params)`    | how XLA computes it                           |
| `guards`    | `(*avals, **params)`            | conditions that `config.strict` checks        |
| `sharded`   | `(*operands, **params)`         | how the result is split: see `sharding_rules` |

With `multiple_results` the results (and `ct`, and the output dims) are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from namoo._base.pickling import by_variable
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import Trace, context, eval_trace, set_trace

if TYPE_CHECKING:
    from namoo.analysis.checks import Guard


class Primitive:
    """An operation.  Subclass it, write its rules, make one instance."""

    name: str
    _is_immutable = True
    multiple_results = False
    linear = False
    """All array operands together: f(a·x + b·y) = a·f(x) + b·f(y)."""
    effectful = False
    """It must run even if its results are not used."""
    exactly_once = False
    """Its effects must not be repeated, and must not happen where the program would skip them."""
    may_fail = False
    """It raises for some operands, so it must not run for examples that take another branch."""
    higher_order = False
    """Its parameters are Python functions: each kind of trace has its own method `under_<kind>`."""
    takes_axis = False
    """`batch` gets the keyword `axis` (size and name): for primitives that hold programs."""
    holds_program = False
    """Some parameters are jaxprs: running it runs the user's program."""
    quiet_params: tuple[str, ...] = ()
    """Parameters that are not printed when they are None or ()."""
    implied_params: tuple[str, ...] = ()
    """Parameters that are not printed, because the types of the results show them."""
    value_params: tuple[str, ...] | None = None
    """The parameters that results depend on, where the others are for transformations only."""
    sets_weak = False
    """`weak_result` decides the weak type; otherwise it is weak where all operands are."""
    weak_operands: slice | None = None
    """The operands that decide the weak type, where not all do: indices and conditions do not."""

    call_primitive = False
    """JAX's mark of operations that hold functions; programs are parameters here."""

    rules_are_pure: bool = False
    """Its rules bind other operations, and never run a function of the user's."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "rules_are_pure" not in vars(cls):
            cls.rules_are_pure = cls.__module__.startswith("namoo.primitives.")

    def __reduce__(self) -> Any:
        # Primitives are compared by identity, so another process must use its own instance.
        return by_variable(self) or super().__reduce__()

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation under the current trace: the only way to run it."""
        trace = context.trace
        if trace.asks_memory:
            out = trace.memory.operation(trace, self, args, params)
            if out is not None:
                return out
        return trace.process(self, args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[Any], *rest: Any) -> Any:
        """Apply the operation under another trace; the last argument has the parameters."""
        with set_trace(trace):
            return Primitive.bind(self, *args, **rest[-1])

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute the operation on concrete values, whatever is being traced."""
        with set_trace(eval_trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of `bind`, from those of an equation."""
        return dict(params)

    def dispatch_by_trace(self, trace: Trace, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The result under `trace`, for primitives whose parameters are Python functions."""
        return getattr(self, f"under_{trace.kind}")(trace, args, **params)

    def evaluate(self, *values: Any, **params: Any) -> Any:
        raise self._missing("evaluate")

    def kernel(self, *avals: ShapedArray, **params: Any) -> Callable[..., Any]:
        """`evaluate`, specialised to the types of the operands."""
        return partial(self.evaluate, **params) if params else self.evaluate

    def inlined(self, params: dict[str, Any]) -> Any:
        """The program to run instead of this operation; None where it must stay a call."""
        return None

    def abstract(self, *avals: ShapedArray, **params: Any) -> Any:
        raise self._missing("abstract")

    def dependent(self, given: Sequence[bool], params: dict[str, Any]) -> Sequence[bool] | None:
        """Which results depend on the operands in `given`; None where all of them may."""
        return None

    def narrowed(self, eqn: Any, used: Sequence[bool]) -> Any:
        """An equation that computes only the results in `used`, if that is less work."""
        return eqn

    def split_by_policy(self, eqn: Any, part: Callable[[Any], Any]) -> tuple[Any, ...] | None:
        """Split the equation in two if a `checkpoint` policy saves values of its programs.

        Args:
            eqn: an equation of this operation.
            part: maps a program to the variables that are saved, the program that computes them,
              and the program that takes them as inputs.

        Returns:
            None if nothing is saved; else the equation with the saved values as further results,
            the equation that takes them as further operands, and their variables.
        """
        return None

    def guards(self, *avals: Any, **params: Any) -> Sequence[Guard]:
        """Conditions on the operands, which `config.strict` checks; see `analysis.checks`."""
        return ()

    def weak_result(self, weak: bool, params: dict[str, Any]) -> bool:
        """Weak type of the result, given whether all operands are weak."""
        return weak

    def weak_results(self, weak: bool, count: int, params: dict[str, Any]) -> list[bool]:
        """`weak_result` for primitives with several results."""
        return [weak] * count

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """Linear primitives map tangents as they map values.

        With several operands some tangents may be `Zero`: then a primitive has a rule of its own.
        """
        if not self.linear:
            raise self._missing("jvp")
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    linearize: Any = None
    sharded: Any = None
    add_cotangents: Any = None
    """`(eqn, operands, cts, before)` returns the operands that have cotangents, each added to
    `before`; for operations that preserve the order of summation of the program they hold."""
    native: Any = None
    stablehlo: Any = None
    format: Any = None
    """`(eqn, names, typed results)` formats an equation that has a notation of its own."""
    effects_of: Any
    """The effects of an equation of this operation, if it is effectful."""

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> list[Any]:
        raise self._missing("transpose")

    def batch(self, operands: Any, dims: Any, **params: Any) -> Any:
        raise self._missing("batch")

    def varies(self, vma: frozenset[Any], params: dict[str, Any]) -> frozenset[Any]:
        """The mesh axes along which the result differs, given those of all operands."""
        return vma

    def scope(self, params: dict[str, Any]) -> Any:
        """A context manager with the axis names that its programs refer to."""
        return nullcontext()

    def collective_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        """The named axes a collective works over; none for ordinary operations."""
        return ()

    def _missing(self, rule: str) -> NotImplementedError:
        import inspect

        source = inspect.getsourcefile(type(self))
        return NotImplementedError(
            f"The operation '{self.name}' has no {rule} rule. "
            f"It belongs in class {type(self).__name__} of {source}."
        )

    def __repr__(self) -> str:
        return self.name


class Zero:
    """A tangent or cotangent that is symbolically zero: there is no array of zeros."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    @staticmethod
    def of(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(aval_of(x).tangent())

    from_primal_value = of

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class Linear:
    """A placeholder for a linear operand in a transposition: the one to differentiate by."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


def is_linear(x: Any) -> bool:
    """Whether `x` is an operand to differentiate by, in a transpose rule."""
    return type(x) is Linear


def is_zero(t: Any) -> bool:
    """Whether a tangent or cotangent is symbolically zero."""
    return type(t) is Zero
