"""What a user calls: `jit`, `grad`, `vmap`, `pmap` and their relatives."""
