"""Small libraries for examples: `optimizers` and `stax`, as triples and pairs of functions."""
