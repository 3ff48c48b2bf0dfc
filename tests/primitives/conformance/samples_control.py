"""Rows for `namoo.control`: primitives that hold programs, and collectives over a named axis."""

import ctypes
from functools import partial
from typing import Any

import numpy as np

from conformance.harness import Sample
from namoo import debug
from namoo._base.config import enable_x64
from namoo._base.foreign import Arguments, Number, Target
from namoo.control import collective_primitives as axes
from namoo.control.bounded_loop import bounded_while_p, run_if_p
from namoo.control.call import call_p, closed_call_p, jit_p
from namoo.control.callback import (
    debug_callback,
    debug_callback_p,
    debug_print_p,
    io_callback,
    io_callback_p,
    pure_callback,
    pure_callback_p,
)
from namoo.control.check import check, require_p
from namoo.control.cond import cond_of_each_p, cond_p
from namoo.control.foreign_call import foreign_call_p, foreign_effect_p
from namoo.control.scan import scan_p
from namoo.control.solves import custom_linear_solve, linear_solve_p
from namoo.control.while_loop import while_p
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.primitives.elementwise import (
    add,
    convert_element_type,
    cos,
    div,
    exp,
    full_like,
    lt,
    mul,
    neg,
    sin,
    sub,
)
from namoo.primitives.shape import broadcast_to, reduce_sum
from namoo.transforms.batch import Axis, batch
from namoo.transforms.custom_forward import forward_p
from namoo.transforms.remat import dots_saveable, remat_p
from namoo.transforms.stage import stage_closed


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
def copy(source, size, target):
    ctypes.memmove(target, source, size)


x = np.array([0.5, -1.25, 2.0])
y = np.array([1.5, 0.75, -0.5])
m = np.array([[0.25, 1.5, -0.5], [1.25, -0.75, 0.5]])
scalar = np.array(0.75)
count = np.array(2, np.int32)


def program(fun, *args):
    """The program of a function, for arguments of the types of `args`."""
    with enable_x64(True):
        return stage_closed(fun, [aval_of(a) for a in args], fun.__name__)


def two_results(a, b):
    return [mul(sin(a), b), reduce_sum(a, (0,))]


def one_is_constant(a, b):
    return [mul(a, a), full_like(b, 3), b]


def with_integers(a, n):
    return [mul(a, convert_element_type(n, np.float64)), add(n, n)]


def nested(a, b):
    return jit_p.bind(b, exp(a), jaxpr=inner, name="two_results")


inner = program(two_results, x, y)

CALLS = [
    Sample(jit_p, [x, y], {"jaxpr": inner, "name": "f"}, dtypes=()),
    Sample(call_p, [x, y], {"jaxpr": inner}, dtypes=()),
    Sample(closed_call_p, [x, y], {"jaxpr": inner}, dtypes=()),
    Sample(
        jit_p,
        [x, y],
        {"jaxpr": program(one_is_constant, x, y), "name": "g"},
        name="a constant and an argument as results",
        dtypes=(),
    ),
    Sample(
        jit_p,
        [x, count],
        {"jaxpr": program(with_integers, x, count), "name": "h"},
        name="integers",
        dtypes=(),
    ),
    Sample(
        jit_p,
        [x, y],
        {"jaxpr": program(nested, x, y), "name": "nested"},
        name="a call in a call",
        dtypes=(),
    ),
    *(
        Sample(
            remat_p,
            [x, y],
            {"jaxpr": inner, "policy": policy, "prevent_cse": True, "differentiated": False},
            name=f"policy {policy and policy.__name__}",
            dtypes=(),
        )
        for policy in (None, dots_saveable)
    ),
    Sample(
        forward_p,
        [x, y],
        {
            "jaxpr": inner,
            "function": program(lambda a, b: two_results(a, b)[1:], x, y),
            "num_residuals": 1,
        },
        name="residuals and results",
        dtypes=(),
    ),
]


def first(a, b):
    return [mul(a, b), sin(a)]


def second(a, b):
    return [neg(b), full_like_array(a, 2.0)]


def third(a, b):
    return [exp(a), mul(mul(a, a), b)]


def full_like_array(a, value):
    return broadcast_to(full_like(a, value), a.shape)


branches = tuple(program(f, x, y) for f in (first, second, third))


def chosen(index, a, b):
    return cond_p.bind(index, a, b, branches=branches)


def each_chooses(index, a, b):
    """Examples choose for themselves; they have their own `a` and share `b`."""
    return batch(chosen, Axis(4), [index, a, b], [0, 0, None])[0]


indices, stacked = np.array([2, 0, 1, 0], np.int32), np.linspace(-1, 2, 12).reshape(4, 3)
(each,) = program(each_chooses, indices, stacked, y).eqns

BRANCHES = [
    Sample(cond_of_each_p, [indices, stacked, y], each.params, dtypes=()),
    *(
        Sample(
            cond_p,
            [np.array(i, np.int32), x, y],
            {"branches": branches},
            name=f"branch {i}",
            dtypes=(),
        )
        for i in range(3)
    ),
    # Of a batched index every example takes its own branch.
    Sample(
        cond_p,
        make=lambda rng: [
            np.asarray(rng.integers(0, 3), np.int32),
            rng.standard_normal(3),
            rng.standard_normal(3),
        ],
        params={"branches": branches},
        name="random branches",
        dtypes=(),
    ),
]


def body(w, c, n, a, b):
    """Constant `w`, carry `c` and a counter `n`, slices `a` and `b`."""
    c = add(mul(sin(c), w), mul(a, b))
    return [c, add(n, full_like(n, 1)), mul(c, b), n]


w, c, n = np.array([0.75, 1.25, -0.5]), np.array([0.1, -0.2, 0.3]), np.array(0, np.int32)
slices = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0.5, 1.5, 12).reshape(4, 3)
looped = program(body, w, c, n, slices[0][0], slices[1][0])


def scan_params(jaxpr, length, num_consts, num_carry, **changes):
    return {
        "jaxpr": jaxpr,
        "length": length,
        "reverse": False,
        "num_consts": num_consts,
        "num_carry": num_carry,
        "unroll": 1,
        **changes,
    }


def accumulate(c):
    return [mul(c, cos(c))]


def map_only(a):
    return [exp(a)]


LOOPS = [
    Sample(scan_p, [w, c, n, *slices], scan_params(looped, 4, 1, 2), dtypes=()),
    Sample(
        scan_p,
        [w, c, n, *slices],
        scan_params(looped, 4, 1, 2, reverse=True),
        name="reverse",
        dtypes=(),
    ),
    Sample(
        scan_p,
        [w, c, n, slices[0][:0], slices[1][:0]],
        scan_params(looped, 0, 1, 2),
        name="no steps",
        dtypes=(),
    ),
    Sample(scan_p, [c], scan_params(program(accumulate, c), 3, 0, 1), name="no xs", dtypes=()),
    Sample(
        scan_p,
        [slices[0]],
        scan_params(program(map_only, slices[0][0]), 4, 0, 0),
        name="no carry",
        dtypes=(),
    ),
]


def below(limit, i, a):
    return [lt(i, limit)]


def step(factor, i, a):
    return [add(i, full_like(i, 1)), sub(mul(a, factor), sin(a))]


def small(limit, a):
    return [lt(reduce_sum(a, (0,)), limit)]


def grow(factor, a):
    return [mul(a, factor)]


factor, limit = np.array(1.5), np.array(3, np.int32)
start = np.array(0, np.int32)

LOOPS += [
    Sample(
        while_p,
        make=lambda rng: [
            np.asarray(rng.integers(1, 4), np.int32),
            np.asarray(rng.uniform(1, 2)),
            start,
            rng.standard_normal(3),
        ],
        params={
            "cond_jaxpr": program(below, limit, start, x),
            "body_jaxpr": program(step, factor, start, x),
            "cond_nconsts": 1,
            "body_nconsts": 1,
        },
        reverse=False,
        dtypes=(),
    ),
    Sample(
        while_p,
        make=lambda rng: [
            np.asarray(rng.uniform(5, 9)),
            np.asarray(rng.uniform(1.4, 1.6)),
            rng.uniform(0.1, 0.3, 3),
        ],
        params={
            "cond_jaxpr": program(small, factor, x),
            "body_jaxpr": program(grow, factor, x),
            "cond_nconsts": 1,
            "body_nconsts": 1,
        },
        name="until a sum is reached",
        reverse=False,
        dtypes=(),
    ),
    Sample(
        bounded_while_p,
        make=lambda rng: [
            np.asarray(rng.integers(1, 4), np.int32),
            np.asarray(rng.uniform(1, 2)),
            start,
            rng.standard_normal(3),
        ],
        params={
            "cond_jaxpr": program(below, limit, start, x),
            "body_jaxpr": program(step, factor, start, x),
            "cond_nconsts": 1,
            "body_nconsts": 1,
            "max_steps": 70,
        },
        dtypes=(),
    ),
    Sample(
        run_if_p,
        make=lambda rng: [np.asarray(rng.integers(0, 2), np.int32), rng.standard_normal(3)],
        params={"branches": (program(lambda x: [x], x), program(lambda x: [sin(x)], x))},
        dtypes=(),
    ),
]

# Operands of collectives have the named axis in front.
A = 4
stack = np.linspace(-1, 2, A * 6).reshape(A, 2, 3) ** 2
square = np.linspace(-1, 2, A * A * 3).reshape(A, A, 3) ** 2
groups = ((0, 3), (1, 2))
named: dict[str, Any] = {"axis": ("i", A)}


def summed(**changes):
    return {"axes": ("i",), "axis_index_groups": None, **changes}


def gathered(dim, **changes):
    return {
        "all_gather_dimension": dim,
        "axis_index_groups": None,
        "axis_name": ("i",),
        "axis_size": A,
        "tiled": False,
        **changes,
    }


def scattered(dim, **changes):
    params = gathered(dim, **changes)
    params["scatter_dimension"] = params.pop("all_gather_dimension")
    return params


def exchanged(split, concat, **changes):
    return {
        "axis_index_groups": None,
        "axis_name": "i",
        "concat_axis": concat,
        "split_axis": split,
        "tiled": False,
        **changes,
    }


def sums(v, by):
    return np.stack([sum(v[j] for j in next(g for g in by if i in g)) for i in range(A)])


COLLECTIVES = [
    Sample(
        axes.psum_p,
        [stack],
        summed(),
        oracle=lambda v: np.broadcast_to(v.sum(0), v.shape),
        **named,
    ),
    Sample(
        axes.psum_p,
        [stack],
        summed(axis_index_groups=groups),
        name="groups",
        oracle=lambda v: sums(v, groups),
        **named,
    ),
    *(Sample(p, [stack], summed(), **named) for p in (axes.pmax_p, axes.pmin_p)),
    Sample(
        axes.pmax_p,
        [stack],
        summed(axis_index_groups=groups),
        name="groups",
        **named,
    ),
    Sample(
        axes.ppermute_p,
        [stack],
        {"axis_name": ("i",), "perm": ((0, 1), (1, 3), (3, 0))},
        oracle=lambda v: np.stack([v[3], v[0], 0 * v[0], v[1]]),
        **named,
    ),
    Sample(
        axes.pbroadcast_p,
        [stack],
        {"axis_name": "i", "source": 2},
        oracle=lambda v: np.stack([v[2]] * A),
        **named,
    ),
    *(Sample(axes.all_gather_p, [stack], gathered(d), name=f"at {d}", **named) for d in range(3)),
    Sample(axes.all_gather_p, [stack], gathered(1, tiled=True), name="tiled", **named),
    Sample(
        axes.all_gather_p,
        [stack],
        gathered(0, axis_index_groups=groups, axis_size=2),
        name="groups",
        **named,
    ),
    Sample(
        axes.reduce_scatter_p,
        [square],
        scattered(0),
        oracle=lambda v: v.sum(0),
        **named,
    ),
    Sample(
        axes.reduce_scatter_p,
        [square],
        scattered(0, tiled=True),
        name="tiled",
        **named,
    ),
    Sample(
        axes.all_to_all_p,
        [square],
        exchanged(0, 0),
        oracle=lambda v: v.swapaxes(0, 1),
        **named,
    ),
    Sample(
        axes.all_to_all_p,
        [square],
        exchanged(0, 1),
        name="to another axis",
        **named,
    ),
    Sample(
        axes.all_to_all_p,
        [square],
        exchanged(0, 1, tiled=True),
        name="tiled",
        **named,
    ),
    Sample(
        axes.axis_index_p,
        [],
        {"axis_name": "i"},
        expected=np.arange(A),
        **named,
    ),
]


def solve(a, b):
    """A linear equation with a diagonal matrix; auxiliary data of the solver has no derivative."""

    def by(a):
        return lambda _, b: (div(b, a), np.int32(3))

    return [*custom_linear_solve(partial(mul, a), b, by(a), by(a), has_aux=True)]


def multiply(u, v):
    return np.asarray(u) * np.asarray(v)


def called(method):
    def call(a, b):
        like = ShapeDtypeStruct(a.shape, a.dtype)
        return [
            pure_callback(
                lambda u, v: np.asarray(u) * np.asarray(v), like, a, b, vmap_method=method
            )
        ]

    return call


def called_with_effects(a):
    return [io_callback(lambda v: np.asarray(v) * 2, ShapeDtypeStruct(a.shape, a.dtype), a)]


SOLVES = [
    Sample(linear_solve_p, [x, y], call=solve, diff=(0, 1)),
    *(
        Sample(
            pure_callback_p,
            [x, y],
            call=called(method),
            name=method,
            diff=(),
            oracle=lambda a, b: [a * b],
        )
        for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")
    ),
    Sample(io_callback_p, [x], call=called_with_effects, diff=(), oracle=lambda a: [2 * a]),
    Sample(debug_callback_p, [x], call=lambda a: debug_callback(list, a) or []),
    Sample(debug_print_p, [x], call=lambda a: debug.print("{}", a) or []),
    *(
        Sample(
            prim,
            [x],
            {
                "target": Target(
                    "copy", ctypes.cast(copy, ctypes.c_void_p).value or 0, False, copy
                ),
                "arguments": Arguments({}, [None, Number(24, np.dtype(np.int64))]),
                "result_avals": (aval_of(x),),
                "layouts": ((0,), (0,)),
                "aliases": (),
                "vmap_method": "sequential",
            },
            diff=(),
            dtypes=(),
        )
        for prim in (foreign_call_p, foreign_effect_p)
    ),
    Sample(require_p, [x], call=lambda a: check(lt(a, full_like(a, 1e3)), "{}", a) or []),
]

SAMPLES = [*CALLS, *BRANCHES, *LOOPS, *COLLECTIVES, *SOLVES]
