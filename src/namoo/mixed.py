"""Mixed precision: parameters in one dtype, arithmetic in another, and loss scaling.

    policy = mixed.policy("params=f32,compute=bf16,output=f32")
    loss = policy(loss)                       # a function of the same arguments

Small gradients underflow in float16. Scaling the loss up before it is differentiated keeps them
representable, and `DynamicLossScale` finds a scale that does not overflow. bfloat16 has the range
of float32 and needs no loss scaling.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from namoo import numpy as jnp
from namoo import struct, tree
from namoo._base.source_context import entry_point
from namoo._base.source_context import make_entry_points as _guard
from namoo.api.grad import value_and_grad as _value_and_grad
from namoo.module.filters import is_inexact_array_like
from namoo.tree import arithmetic
from namoo.tree.paths import Paths, paths

__all__ = [
    "DynamicLossScale",
    "NoLossScale",
    "Policy",
    "StaticLossScale",
    "all_finite",
    "policy",
    "select",
    "value_and_grad",
]
__dir__ = __all__.copy

T = TypeVar("T")

_SHORT = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "half": "float16",
    "full": "float32",
}


@dataclasses.dataclass(frozen=True)
class Policy:
    """The dtypes that a function works in; call the policy with a function to apply it.

    Only floating-point arrays are converted; integers, booleans and keys are left alone.

    Args:
        params: the dtype in which parameters are kept.
        compute: the dtype of arithmetic.
        output: the dtype of results.
        keep: leaves of the arguments, by path, that are not converted for arithmetic, such as the
            scales of norms: `"**/norm/**"`. The path starts with the number of the argument.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> half = Policy("float32", "bfloat16", "float32")
        >>> @half
        ... def f(w, x):
        ...     print(w.dtype, x.dtype)
        ...     return w @ x
        >>> namoo.grad(f)(jnp.ones(3), jnp.ones(3))
        bfloat16 bfloat16
        Array([1., 1., 1.], dtype=float32)
    """

    params: Any = "float32"
    compute: Any = "float32"
    output: Any = "float32"
    keep: Paths | str | None = None

    def __post_init__(self):
        for name in ("params", "compute", "output"):
            given = getattr(self, name)
            try:
                dtype = jnp.dtype(_SHORT.get(given, given) if isinstance(given, str) else given)
            except TypeError:
                raise ValueError(f"{name} must be a dtype, not {given!r}") from None
            object.__setattr__(self, name, dtype)
        if isinstance(self.keep, str):
            object.__setattr__(self, "keep", paths(self.keep))

    def cast_to_param(self, of: T) -> T:
        """Convert the floating-point arrays of a tree to the dtype of parameters."""
        return arithmetic.cast(of, self.params)

    def cast_to_compute(self, of: T) -> T:
        """Convert the floating-point arrays of a tree, except `keep`, to the compute dtype."""
        if self.keep is None:
            return arithmetic.cast(of, self.compute)
        return (~self.keep).map(lambda x: arithmetic.cast(x, self.compute), of)  # type: ignore[union-attr]

    def cast_to_output(self, of: T) -> T:
        """Convert the floating-point arrays of a tree to the dtype of results."""
        return arithmetic.cast(of, self.output)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that converts its arguments to `compute` and its result to `output`.

        Gradients pass back through the conversions and have the dtypes of the arguments.
        """

        @entry_point
        @functools.wraps(fun)
        def converted(*args, **kwargs):
            args, kwargs = self._arguments(args, kwargs)
            return self.cast_to_output(fun(*args, **kwargs))

        return converted

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if self.keep is None:
            return arithmetic.cast((args, kwargs), self.compute)
        # Positional arguments are named by number, so that patterns can select both kinds.
        named = {**{str(i): x for i, x in enumerate(args)}, **kwargs}
        named = self.cast_to_compute(named)
        return tuple(named[str(i)] for i in range(len(args))), {k: named[k] for k in kwargs}

    def __str__(self) -> str:
        return f"params={self.params},compute={self.compute},output={self.output}"


def policy(text: str, keep: Paths | str | None = None) -> Policy:
    """Parse a policy.

    Args:
        text: such as `"params=f32,compute=bf16,output=f32"`; what is not named is float32. Short
            names are f16, bf16, f32, f64.
        keep: leaves of the arguments, by path, that are not converted for arithmetic.

    Returns:
        The policy.

    Raises:
        ValueError: if a part cannot be read.

    Example:
        >>> print(policy("compute=bf16"))
        params=float32,compute=bfloat16,output=float32
    """
    parts: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, is_pair, dtype = (x.strip() for x in part.partition("="))
        if not is_pair or name not in ("params", "compute", "output"):
            raise ValueError(
                f"a policy is written as 'params=f32,compute=bf16,output=f32', but {part!r} of "
                f"{text!r} is not one of its parts"
            )
        parts[name] = dtype
    return Policy(**parts, keep=keep)


def all_finite(of: Any) -> Any:
    """Return whether all elements of a tree are finite.

    Args:
        of: a tree of arrays.

    Returns:
        A boolean scalar.

    Example:
        >>> import namoo.numpy as jnp
        >>> bool(all_finite({"a": jnp.array([1.0, jnp.inf])}))
        False
    """
    flags = [jnp.all(jnp.isfinite(x)) for x in tree.leaves(of) if is_inexact_array_like(x)]
    return functools.reduce(jnp.logical_and, flags, jnp.asarray(True))


def select(condition: Any, on_true: T, on_false: T) -> T:
    """Select one of two trees by a condition.

    Args:
        condition: a boolean scalar.
        on_true: a tree of arrays.
        on_false: a tree of the same structure.

    Returns:
        A tree of the same structure.

    Example:
        >>> select(True, {"a": 1.0}, {"a": 2.0})
        {'a': Array(1., dtype=float32, weak_type=True)}
    """
    return tree.map(lambda a, b: jnp.where(condition, a, b), on_true, on_false)


@struct.dataclass
class NoLossScale:
    """A loss scale of one.

    Example:
        >>> NoLossScale().scale(2.0)
        2.0
    """

    def scale(self, of: Any) -> Any:
        """Return the tree itself."""
        return of

    def unscale(self, of: Any) -> Any:
        """Return the tree itself."""
        return of

    def adjust(self, is_finite: Any) -> NoLossScale:
        """Return the same scale."""
        return self


@struct.dataclass
class StaticLossScale:
    """A loss scale that never changes.

    Example:
        >>> StaticLossScale(8.0).scale(2.0), StaticLossScale(8.0).unscale(16.0)
        (16.0, 2.0)
    """

    loss_scale: Any

    def scale(self, of: Any) -> Any:
        """Multiply a tree by the scale, keeping its dtypes."""
        return tree.map(lambda x: x * _as(self.loss_scale, x), of)

    def unscale(self, of: Any) -> Any:
        """Divide a tree by the scale."""
        return tree.map(lambda x: x / _as(self.loss_scale, x), of)

    def adjust(self, is_finite: Any) -> StaticLossScale:
        """Return the same scale."""
        return self


@struct.dataclass
class DynamicLossScale(StaticLossScale):
    """A loss scale that is halved when a gradient overflows and doubled after many finite steps.

        s ← s / factor             where a gradient is not finite
        s ← s · factor             after `period` steps with finite gradients

    It is a tree and belongs in the training state.

    Args:
        loss_scale: the scale to start from.
        counter: how many steps were finite since the last change.
        period: after how many of them the scale grows.
        factor: the factor by which the scale changes.
        min_loss_scale: the smallest scale.
        max_loss_scale: the largest scale.

    Example:
        >>> scale = DynamicLossScale(1024.0, period=2)
        >>> scale.adjust(False).loss_scale, scale.adjust(True).adjust(True).loss_scale
        (Array(512., dtype=float32), Array(2048., dtype=float32))
    """

    loss_scale: Any = struct.field(
        default=2.0**15, converter=functools.partial(jnp.asarray, dtype="float32")
    )
    counter: Any = struct.field(default=0, converter=functools.partial(jnp.asarray, dtype="int32"))
    period: int = struct.field(pytree_node=False, default=2000)
    factor: float = struct.field(pytree_node=False, default=2.0)
    min_loss_scale: float = struct.field(pytree_node=False, default=1.0)
    max_loss_scale: float = struct.field(pytree_node=False, default=2.0**24)

    def adjust(self, is_finite: Any) -> DynamicLossScale:
        """Return the scale for the next step.

        Args:
            is_finite: whether the gradients of this step were finite.

        Returns:
            The new scale.
        """
        is_due = self.counter + 1 >= self.period
        larger = jnp.minimum(self.loss_scale * self.factor, self.max_loss_scale)
        smaller = jnp.maximum(self.loss_scale / self.factor, self.min_loss_scale)
        grown = jnp.where(is_due, larger, self.loss_scale)
        return dataclasses.replace(
            self,
            loss_scale=jnp.where(is_finite, grown, smaller),
            counter=jnp.where(is_finite & ~is_due, self.counter + 1, 0),
        )


def _as(scale: Any, x: Any) -> Any:
    """Return the scale in the dtype of what it multiplies; a Python number stays one."""
    return scale.astype(x.dtype) if hasattr(scale, "astype") and hasattr(x, "dtype") else scale


def value_and_grad(
    fun: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `namoo.value_and_grad`, with a loss scale applied while differentiating.

    Args:
        fun: a function that returns a scalar, or `(scalar, aux)`.
        argnums: which arguments to differentiate with respect to.
        has_aux: the function returns a pair, whose second part is not differentiated.

    Returns:
        A function of a loss scale and the arguments, that returns `(value, grads, is_finite,
        scale)`: the value and the gradients without the scale, whether all gradients are finite,
        and the scale for the next step. A step that is not finite is to be left out: `params =
        mixed.select(is_finite, new_params, params)`.

    Example:
        >>> import namoo.numpy as jnp
        >>> f = value_and_grad(lambda w: jnp.sum(w**2).astype(jnp.float16))
        >>> value, grads, is_finite, scale = f(DynamicLossScale(1024.0), jnp.array([1e-6, 2.0]))
        >>> grads, bool(is_finite)
        (Array([2.e-06, 4.e+00], dtype=float32), True)
    """

    def of(loss_scale: Any, *args: Any, **kwargs: Any) -> Any:
        def scaled(*args, **kwargs):
            out = fun(*args, **kwargs)
            loss, aux = out if has_aux else (out, None)
            return loss_scale.scale(loss), (loss, aux)

        differentiated = _value_and_grad(scaled, argnums, has_aux=True)
        (_, (loss, aux)), grads = differentiated(*args, **kwargs)
        grads = loss_scale.unscale(grads)
        is_finite = all_finite(grads)
        value = (loss, aux) if has_aux else loss
        return value, grads, is_finite, loss_scale.adjust(is_finite)

    return of


_guard(globals())
