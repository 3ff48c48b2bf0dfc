"""The public transformations: `jit`, `grad`, `vmap`, `pmap` and related functions."""
