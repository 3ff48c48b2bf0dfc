"""All rows, in the order of the table."""

from . import (
    arrays,
    calls,
    cnn,
    compiling,
    data,
    eager,
    fft,
    gpt,
    in_place,
    layouts,
    linalg,
    loops,
    lstm,
    matmul,
    mlp,
    narrow,
    per_example,
    shapes,
    starting,
    trees,
)

SECTIONS = {
    "Training": [*mlp.ROWS, *gpt.ROWS, *cnn.ROWS, *lstm.ROWS],
    "Loops": loops.ROWS,
    "Loops over arrays": in_place.ROWS,
    "Per-example gradients": per_example.ROWS,
    "Arrays": [*arrays.ROWS, *matmul.ROWS, *shapes.ROWS, *layouts.ROWS],
    "Narrow numbers": narrow.ROWS,
    "Data movement": data.ROWS,
    "Linear algebra": linalg.ROWS,
    "Fourier transforms": fft.ROWS,
    "Compiling": compiling.ROWS,
    "Starting": starting.ROWS,
    "Calls": calls.ROWS,
    "Eager": eager.ROWS,
    "Trees": trees.ROWS,
}
ROWS = {row.name: row for rows in SECTIONS.values() for row in rows}
