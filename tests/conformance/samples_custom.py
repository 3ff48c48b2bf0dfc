"""Rows for `namoo.transforms`: functions with rules of their own, and names for rematerialisation.

The rules below are the true derivatives, so that the checks of the table hold for them.
"""

import numpy as np

from conformance.harness import Sample
from namoo._config import enable_x64
from namoo.core.avals import aval_of
from namoo.primitives.elementwise import add, cos, mul, sin
from namoo.transforms.custom import custom_jvp_call_p, custom_jvp_program_p
from namoo.transforms.remat import name_p
from namoo.transforms.stage import stage_closed

x = np.array([0.5, -1.25, 2.0])
y = np.array([1.5, 0.75, -0.5])


def function(a, b):
    return [mul(sin(a), b), b]


def rule(primals, tangents):
    (a, b), (da, db) = primals, tangents
    return function(a, b), [add(mul(mul(cos(a), da), b), mul(sin(a), db)), db]


rules = {"jvp": rule, "symbolic_zeros": False, "name": "function"}

with enable_x64(True):
    program = stage_closed(function, [aval_of(x), aval_of(y)])

SAMPLES = [
    Sample(name_p, [x], {"name": "hidden"}),
    Sample(name_p, [np.arange(3)], {"name": "hidden"}, name="integers"),
    Sample(custom_jvp_call_p, [x, y], {"fun": function, **rules}, dtypes=()),
    Sample(
        custom_jvp_program_p,
        [x, y],
        {"call_jaxpr": program, "num_consts": 0, **rules},
        dtypes=(),
    ),
]
