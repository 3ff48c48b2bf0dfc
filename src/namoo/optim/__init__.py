"""Optimisers: Optax's protocol and names.

A transformation is a pair `(init, update)`; `chain` joins them, and an optimiser is such a chain.

Example:
    >>> import namoo, namoo.numpy as jnp
    >>> from namoo import optim
    >>> opt = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.1))
    >>> params = {"w": jnp.array([1.0, 2.0])}
    >>> state = opt.init(params)
    >>> grads = namoo.grad(lambda p: jnp.sum(p["w"] ** 2))(params)
    >>> updates, state = opt.update(grads, state, params)
    >>> optim.apply_updates(params, updates)
    {'w': Array([0.9000007, 1.9000007], dtype=float32)}
"""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

_TABLE = {
    "optim.losses": ".",
    "optim.transforms": ".",
    "optim.tree": ".",
    "optim.tree_utils": ".",
    "optim.tree_utils.state_utils": "tree_map_params",
    "optim.tree_utils.tree_math": (
        "bias_correction=tree_bias_correction global_norm "
        "update_infinity_moment=tree_update_infinity_moment update_moment=tree_update_moment "
        "update_moment_per_elem_norm=tree_update_moment_per_elem_norm"
    ),
    **_PUBLIC["optim"],
    **_PUBLIC["optim.losses"],
    **_PUBLIC["optim.transforms"],
    "optim.perturbations": ".",
    "optim.projections": ".",
    "optim.schedules": ". " + _PUBLIC["optim"]["optim.schedules"],
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
