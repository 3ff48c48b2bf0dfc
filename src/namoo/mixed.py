"""Mixed precision: parameters in one dtype, arithmetic in another, and losses scaled to fit.

    policy = mixed.policy("params=f32,compute=bf16,output=f32")
    loss = policy(loss)                       # a function of the same arguments

A number smaller than float16 can hold is lost. A loss that is scaled up before it is differentiated
has gradients that are large enough, and `DynamicLossScale` finds a scale that is not too large.
bfloat16 has the range of float32 and needs none of this.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from namoo import _trees, errors, struct, tree
from namoo import numpy as jnp
from namoo._module.filters import is_inexact_array_like
from namoo.api.grad import value_and_grad as _value_and_grad
from namoo.paths import Paths, paths

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
    """Which dtypes a function works in; call it with a function to apply it.

    Only floating-point arrays are converted; integers, booleans and keys stay.

    Args:
      params: the dtype in which parameters are kept.
      compute: the dtype of arithmetic.
      output: the dtype of results.
      keep: leaves of the arguments, by path, that are not converted for arithmetic, such as the
        scales of norms: `"**/norm/**"`. The path starts with the number of the argument.

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
        """A tree with its floating-point arrays in the dtype of parameters."""
        return _trees.cast(of, self.params)

    def cast_to_compute(self, of: T) -> T:
        """A tree with its floating-point arrays in the dtype of arithmetic, except those kept."""
        if self.keep is None:
            return _trees.cast(of, self.compute)
        return (~self.keep).map(lambda x: _trees.cast(x, self.compute), of)  # type: ignore[union-attr]

    def cast_to_output(self, of: T) -> T:
        """A tree with its floating-point arrays in the dtype of results."""
        return _trees.cast(of, self.output)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """A function that converts its arguments to `compute` and its result to `output`.

        A gradient goes back through the conversions, and so has the dtypes of the arguments.
        """

        @errors.boundary
        @functools.wraps(fun)
        def converted(*args, **kwargs):
            args, kwargs = self._arguments(args, kwargs)
            return self.cast_to_output(fun(*args, **kwargs))

        return converted

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if self.keep is None:
            return _trees.cast((args, kwargs), self.compute)
        # Positional arguments by number, others by name: one path language for both.
        named = {**{str(i): x for i, x in enumerate(args)}, **kwargs}
        named = self.cast_to_compute(named)
        return tuple(named[str(i)] for i in range(len(args))), {k: named[k] for k in kwargs}

    def __str__(self) -> str:
        return f"params={self.params},compute={self.compute},output={self.output}"


def policy(text: str, keep: Paths | str | None = None) -> Policy:
    """Reads a policy.

    Args:
      text: such as `"params=f32,compute=bf16,output=f32"`; what is not named is float32. Short
        names are f16, bf16, f32, f64.
      keep: leaves of the arguments, by path, that are not converted for arithmetic.

    Returns:
      The policy.

    Raises:
      ValueError: if a part cannot be read.

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
    """Tells whether no number of a tree is infinite or not a number.

    Args:
      of: a tree of arrays.

    Returns:
      A boolean scalar.

    >>> import namoo.numpy as jnp
    >>> bool(all_finite({"a": jnp.array([1.0, jnp.inf])}))
    False
    """
    flags = [jnp.all(jnp.isfinite(x)) for x in tree.leaves(of) if is_inexact_array_like(x)]
    return functools.reduce(jnp.logical_and, flags, jnp.asarray(True))


def select(condition: Any, on_true: T, on_false: T) -> T:
    """Chooses one of two trees.

    Args:
      condition: a boolean scalar.
      on_true: a tree of arrays.
      on_false: a tree of the same structure.

    Returns:
      A tree of the same structure.

    >>> select(True, {"a": 1.0}, {"a": 2.0})
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    return tree.map(lambda a, b: jnp.where(condition, a, b), on_true, on_false)


@struct.dataclass
class NoLossScale:
    """A scale of one that never changes.

    >>> NoLossScale().scale(2.0)
    2.0
    """

    def scale(self, of: Any) -> Any:
        """The tree itself."""
        return of

    def unscale(self, of: Any) -> Any:
        """The tree itself."""
        return of

    def adjust(self, is_finite: Any) -> NoLossScale:
        """The same."""
        return self


@struct.dataclass
class StaticLossScale:
    """A scale that never changes.

    >>> StaticLossScale(8.0).scale(2.0), StaticLossScale(8.0).unscale(16.0)
    (16.0, 2.0)
    """

    loss_scale: Any

    def scale(self, of: Any) -> Any:
        """A tree times the scale, in its own dtypes."""
        return tree.map(lambda x: x * _as(self.loss_scale, x), of)

    def unscale(self, of: Any) -> Any:
        """A tree divided by the scale."""
        return tree.map(lambda x: x / _as(self.loss_scale, x), of)

    def adjust(self, is_finite: Any) -> StaticLossScale:
        """The same."""
        return self


@struct.dataclass
class DynamicLossScale(StaticLossScale):
    """A scale that is halved when a gradient overflows, and doubled when none did for long.

        s ← s / factor             where a gradient is not finite
        s ← s · factor             after `period` steps with finite gradients

    It is a tree, and belongs into the state of the training.

    Args:
      loss_scale: the scale to start from.
      counter: how many steps were finite since the last change.
      period: after how many of them the scale grows.
      factor: by how much it changes.
      min_loss_scale: the smallest scale.
      max_loss_scale: the largest scale.

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
        """The scale for the next step.

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
    """The scale in the dtype of what it multiplies; a Python number adapts itself."""
    return scale.astype(x.dtype) if hasattr(scale, "astype") and hasattr(x, "dtype") else scale


def value_and_grad(
    fun: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `namoo.value_and_grad`, of a loss that is scaled while it is differentiated.

    Args:
      fun: a function that returns a scalar, or `(scalar, aux)`.
      argnums: which arguments to differentiate with respect to.
      has_aux: the function returns a pair, whose second part is not differentiated.

    Returns:
      A function of a loss scale and the arguments, that returns `(value, grads, is_finite, scale)`:
      the value and the gradients without the scale, whether all gradients are finite, and the scale
      for the next step. A step that is not finite is to be left out:
      `params = mixed.select(is_finite, new_params, params)`.

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
