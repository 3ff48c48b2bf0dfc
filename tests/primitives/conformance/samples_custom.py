"""Rows for `namoo.transforms`: functions with rules of their own, and names for rematerialisation.

The rules below are the true derivatives, so that the checks of the table hold for them.
"""

import numpy as np

from conformance.harness import Sample
from namoo._base.config import enable_x64
from namoo.core.avals import aval_of
from namoo.primitives.elementwise import add, cos, mul, sin
from namoo.primitives.shape import broadcast
from namoo.transforms.custom_call import custom_jvp_call_p, custom_jvp_program_p
from namoo.transforms.linear_call import linear_call, linear_call_p
from namoo.transforms.remat import name_p
from namoo.transforms.stage import stage_closed
from namoo.transforms.vmap_rule import custom_vmap, custom_vmap_call_p

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


def scaled(a, b):
    return linear_call(mul, mul, a, b)


@custom_vmap
def batched_by_hand(a, b):
    return mul(sin(a), b)


@batched_by_hand.def_vmap
def _(size, batched, a, b):
    a, b = (v if b else broadcast(v, (size,)) for v, b in zip((a, b), batched, strict=True))
    return mul(sin(a), b), True


SAMPLES = [
    Sample(linear_call_p, [x, y], call=lambda a, b: [scaled(a, b)], diff=(1,)),
    Sample(custom_vmap_call_p, [x, y], call=lambda a, b: [batched_by_hand(a, b)]),
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
