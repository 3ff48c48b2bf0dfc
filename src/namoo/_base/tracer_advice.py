"""What to write instead of an operation that a traced value does not support."""

BOOL_ADVICE = """\
Write instead, for a choice between two values: jnp.where(condition, a, b); between two
computations: lax.cond(condition, true_fun, false_fun, *operands); for a loop: lax.while_loop.
If the argument is a setting rather than data, mark it static: jit(f, static_argnames=('name',))."""

INTEGER_ADVICE = """\
A Python integer is needed for range(), shapes, axes and list indices. Mark the argument static,
jit(f, static_argnames=('n',)), or use lax.fori_loop, lax.dynamic_slice, jnp.take or x[i] on an
array instead."""

ARRAY_ADVICE = """\
NumPy functions cannot see inside traced values. Use the function of the same name in
namoo.numpy, or namoo.pure_callback to call NumPy when the program runs."""

SCALAR_ADVICE = """\
Keep the value an array (to change its type, try using `x.astype({kind})`), or return it and
convert it outside; to look at it, use namoo.debug.print."""
