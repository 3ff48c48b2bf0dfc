"""Transformations of functions and programs, each a trace that applies one rule of each primitive.

Read in this order: `stage` (record a program), `jvp` (forward mode), `batch` (`vmap`), `linear` and
`transpose` (reverse mode), `program` (operations that hold programs), `custom` and `remat`.

Nothing here remembers.  The one seam for memory is `Trace.memory`, an object of `core.trace.Memory`
that remembers nothing until `namoo.memo` replaces it: `Primitive.bind` asks it for operations under
eager transformations, `transpose.backward_pass` for whole passes.  A program that is derived from
another one (its JVP, its transpose) is a pure function of it, declared with `per_program`, which
stores the result with the program.
"""
