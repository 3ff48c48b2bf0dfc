"""`TrainState`: parameters, the optimiser's state and the step, in one tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from namoo import mixed, struct, tree
from namoo import numpy as jnp
from namoo.optim.base import apply_updates
from namoo.tree.difference import mismatch


@struct.dataclass
class TrainState:
    """The values that change in training, and the functions that change them.

    The fields `step`, `params`, `opt_state` and `loss_scale` are data; `apply_fn` and `tx` are part
    of the structure. Subclasses may add fields, such as the state of batch norms.

    Args:
        step: how many gradients were applied.
        params: the parameters: any tree, a `namoo.Module` too.
        opt_state: the state of `tx`.
        apply_fn: the function of the model, often `(params, x) -> y`.
        tx: an optimiser: a pair `(init, update)` as in `namoo.optim` and Optax.
        loss_scale: a scale of `namoo.mixed`, for gradients of a loss that was scaled by it.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> from namoo import optim
        >>> state = TrainState.create(
        ...     apply_fn=lambda params, x: params["w"] * x,
        ...     params={"w": jnp.array(1.0)},
        ...     tx=optim.sgd(0.1),
        ... )
        >>> @namoo.jit
        ... def train_step(state, x, y):
        ...     loss = lambda params: (state.apply_fn(params, x) - y) ** 2
        ...     return state.apply_gradients(grads=namoo.grad(loss)(state.params))
        >>> state = train_step(state, 1.0, 2.0)
        >>> state.step, state.params
        (Array(1, dtype=int32), {'w': Array(1.2, dtype=float32)})
    """

    step: Any
    params: Any
    opt_state: Any
    apply_fn: Callable[..., Any] | None = struct.field(pytree_node=False, default=None)
    tx: Any = struct.field(pytree_node=False, default=None)
    loss_scale: Any = None

    @classmethod
    def create(
        cls, *, params: Any, tx: Any, apply_fn: Callable[..., Any] | None = None, **kwargs: Any
    ) -> Any:
        """Return the initial state.

        Args:
            params: the parameters.
            tx: the optimiser, whose state is made here.
            apply_fn: the function of the model.
            **kwargs: other fields.

        Returns:
            The state, with step 0.
        """
        return cls(
            step=jnp.zeros((), jnp.int32),
            params=params,
            opt_state=tx.init(params),
            apply_fn=apply_fn,
            tx=tx,
            **kwargs,
        )

    def apply_gradients(
        self, grads: Any, *, extra_args: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Any:
        """Return the state after a step.

            updates, opt_state = tx.update(grads, opt_state, params)
            params = params + updates

        With a `loss_scale`, the gradients are divided by it first. If one is not finite, parameters
        and optimiser state are kept, and the scale is reduced.

        Args:
            grads: a tree like the parameters.
            extra_args: further arguments of `tx.update` by name, such as the loss as `value`.
            **kwargs: other fields to replace.

        Returns:
            The new state.

        Raises:
            ValueError: if the gradients do not have the structure of the parameters.
        """
        if tree.structure(grads) != tree.structure(self.params):
            raise mismatch(
                "apply_gradients: the gradients do not have the structure of the parameters",
                tree.diff(self.params, grads),
            )
        scale = self.loss_scale
        if scale is not None:
            grads = scale.unscale(grads)
        updates, opt_state = self.tx.update(
            grads, self.opt_state, self.params, **(extra_args or {})
        )
        params = apply_updates(self.params, updates)
        if scale is not None:
            is_finite = mixed.all_finite(grads)
            params, opt_state = mixed.select(
                is_finite, (params, opt_state), (self.params, self.opt_state)
            )
            kwargs = {"loss_scale": scale.adjust(is_finite), **kwargs}
        return struct.replace(
            self, step=self.step + 1, params=params, opt_state=opt_state, **kwargs
        )
