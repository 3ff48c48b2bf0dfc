"""The primitives that programs are made of, by JAX's names, to recognise them in a program.

Example:
    >>> import namoo
    >>> [eqn] = namoo.make_jaxpr(namoo.lax.sin)(1.0).eqns
    >>> eqn.primitive is namoo.extend.core.primitives.sin_p
    True
"""

from namoo import lax as _lax
from namoo._base.lazy import lazy as _lazily
from namoo.lax import linalg as _linalg

# All primitives of `lax` and `lax.linalg`, and those that only programs contain.
_TABLE = {
    **{
        module: " ".join(name for name in names.split() if name.endswith("_p"))
        for module, names in {**_lax._TABLE, **_linalg._TABLE}.items()
    },
    "control.call": "call_p closed_call_p jit_p",
    "devices.primitives": "device_put_p sharding_constraint_p",
    "primitives.families": "add_jaxvals_p=add_any_p",
    "primitives.random.gamma": "random_gamma_p",
    "primitives.random.prng": (
        "random_bits_p random_fold_in_p random_seed_p random_split_p rng_bit_generator_p"
    ),
    "transforms.custom_call": (
        "custom_jvp_call_p=custom_jvp_program_p custom_lin_p custom_vjp_call_p=custom_vjp_program_p"
    ),
    "transforms.remat": "name_p remat_p",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
