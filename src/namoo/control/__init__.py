"""Primitives that hold programs: nested jit, branches, loops, collectives."""
