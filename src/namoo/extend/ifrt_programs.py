"""Names of IFRT, JAX's runtime for remote devices: they can be imported, but not called."""

from namoo._base.stand_in import stand_in

__all__ = ["ifrt_programs"]
__dir__ = __all__.copy


ifrt_programs = stand_in(
    "jax.extend.ifrt_programs.ifrt_programs",
    "It is for remote devices; namoo's devices are those of this machine.",
)
