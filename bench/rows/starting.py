"""Start-up of a new process."""

from row import Goal, Row

ROWS = [
    Row("import", measure="import", goal=Goal(numpy=1 / 1.5)),
    Row("import and a first array", measure="array", goal=Goal(numpy=1 / 1.5)),
    *(
        Row(
            f"process to first MLP step, {cache} cache",
            measure="step",
            cache=cache,
            goal=Goal(jax=goal),
            frameworks=("namoo", "jax", "torch"),
        )
        for cache, goal in [("cold", 6.0), ("warm", 8.0)]
    ),
]
