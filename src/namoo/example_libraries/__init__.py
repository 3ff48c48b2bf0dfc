"""Small libraries of examples: `optimizers` and `stax`."""
