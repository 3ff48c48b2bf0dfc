"""What to write instead of an operation that a traced value does not support."""

BOOL_ADVICE = """\
Write instead, for a choice between two values: jnp.where(condition, a, b); between two
computations: lax.cond(condition, true_fun, false_fun, *operands); for a loop: lax.while_loop."""

INTEGER_ADVICE = """\
A Python integer is needed for range(), shapes, axes and list indices. Without one, write
lax.fori_loop for a loop, and lax.dynamic_slice, jnp.take or x[i] on an array."""

ARRAY_ADVICE = """\
NumPy functions cannot see inside traced values. Use the function of the same name in
namoo.numpy, or namoo.pure_callback to call NumPy when the program runs."""

SCALAR_ADVICE = """\
Keep the value an array (to change its type, try using `x.astype({kind})`), or return it and
convert it outside; to look at it, use namoo.debug.print."""

PRINT_ADVICE = "To print the value when the program runs, write namoo.debug.print('{x}', x=x)."
