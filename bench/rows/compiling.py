"""The time of first calls, and the memory that a process needs for them."""

import dataclasses
import itertools
from functools import partial

import numpy as np

from row import Goal, Row
from rows import gpt, mlp
from training import normal

STEP = mlp.ROWS[0]
FREE = Goal()
MEGABYTES = Goal(jax=1 / 0.7, torch=1.0, numpy=None)


def layers_inputs(tiny, layers):
    """Return a network of equal layers, and a batch."""
    layers, width, batch = (min(layers, 3), 6, 2) if tiny else (layers, 128, 32)
    params = [
        {"W": normal(i, width, width, scale=width**-0.5), "b": np.zeros(width, np.float32)}
        for i in range(layers)
    ]
    return params, *mlp.batch_for(params, batch), 0.001


def fresh(row, measure, what, cache="cold", goal=FREE):
    """Return a row that measures another row's first call or compilation in a new process."""
    title = {"first": "first call", "compile": "trace and compile"}[measure]
    return dataclasses.replace(
        row,
        name=f"{title}, {what}",
        measure=measure,
        cache=cache,
        goal=goal,
        torch=None,
        numpy=None,
    )


def layers(measure, count, goal=FREE):
    row = Row("", partial(layers_inputs, layers=count), mlp.sgd)
    return fresh(row, measure, f"{count} equal MLP layers", goal=goal)


def blocks(measure, count, goal=FREE):
    return fresh(gpt.row(count), measure, f"GPT of {count} layers", goal=goal)


def traced(name, inputs, step_of):
    """Return a row for tracing alone, of a function that `jit` has not seen before."""

    def program(jax, jnp):
        numbers, ran = itertools.count(), []

        def trace(*args):
            step, number = step_of(jax, jnp), next(numbers)

            # Equal functions share a trace; the number makes this function unique.
            def fresh(*args, number=number):
                ran.append(number)
                return step(*args)

            jax.jit(fresh).trace(*args)
            if ran != [number]:
                raise RuntimeError("jit took a program that it had: nothing was traced")
            ran.clear()

        return trace

    return Row(name, inputs, program, goal=Goal(jax=4.0), seen=lambda out: ())


def peak(row, name):
    return dataclasses.replace(row, name=name, measure="peak", goal=MEGABYTES, numpy=None)


ROWS = [
    fresh(STEP, "first", "MLP step, cold cache", "cold", Goal(jax=3.0)),
    fresh(STEP, "first", "MLP step, warm cache", "warm", Goal(jax=10.0)),
    layers("compile", 2),
    layers("compile", 6),
    layers("compile", 24),
    layers("compile", 96, Goal(jax=10.0, of_row=("trace and compile, 6 equal MLP layers", 1.5))),
    layers("first", 96, Goal(jax=10.0)),
    blocks("compile", 2),
    blocks("compile", 6),
    blocks("compile", 12, Goal(jax=10.0)),
    blocks("first", 12, Goal(jax=10.0)),
    traced("trace, MLP step", STEP.inputs, mlp.sgd_function),
    traced("trace, GPT step", gpt.inputs, gpt.step_function),
    peak(STEP, "peak memory, MLP step"),
    peak(gpt.ROWS[0], "peak memory, GPT step"),
]
