"""Every rule of every primitive, against its value, finite differences, an inner product, a loop.

The rows are in `conformance/samples_*.py`; see `conformance/harness.py` for their form.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from conformance.harness import (
    BATCH,
    Sample,
    all_primitives,
    as_operand,
    assert_close,
    central_difference,
    inner,
    load,
    numbers,
    random_like,
    subsets,
    tangents_for,
)
from namoo._base.config import config, eager_shortcuts, enable_x64
from namoo.analysis.reflection import check_jaxpr
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.core.primitive import Linear, is_zero
from namoo.core.trace import eval_trace
from namoo.engines.native.ir import ops
from namoo.memo.replay import replay
from namoo.primitives.families import Elementwise
from namoo.transforms.batch import Axis, batch, batch_to
from namoo.transforms.jvp import jvp
from namoo.transforms.linear import linearize
from namoo.transforms.stage import stage
from namoo.transforms.transpose import backward_pass

SAMPLES, BROKEN = load()

ONLY_BACKWARD = "has no forward mode; test_compositions.py differentiates it backward"
TESTED_ELSEWHERE = {
    "custom_vjp_call": ONLY_BACKWARD,
    "custom_lin": ONLY_BACKWARD,
    "linear_step": "stands only in derivatives as they are made; tests/memo/test_replay.py",
    **dict.fromkeys(
        ("addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap"),
        "takes a reference; tests/control/test_refs.py",
    ),
}
"""Primitives without rows, by name, and where they are tested."""

SERIES = "SciPy's series and continued fractions, by ranges of the operands"
COMPLEX = "SciPy's algorithm for complex numbers"
ON_THE_HOST = {
    "bessel_jn": "a recurrence whose length is a parameter",
    "ci": SERIES,
    "dawsn": SERIES,
    "expi": SERIES,
    "expn": SERIES,
    "fresnel_c": SERIES,
    "fresnel_s": SERIES,
    "hyp1f1": "as many terms as the slowest element needs",
    "hyp2f1": "as many terms as the slowest element needs",
    "loggamma": COMPLEX,
    "owens_t": SERIES,
    "poch": "SciPy's, by way of its log-gamma",
    "si": SERIES,
    "spence": SERIES,
    "sph_harm_y": COMPLEX,
    "wofz": COMPLEX,
}
"""Elementwise primitives without native code, by name, with how they are computed.

A compiled program calls back into Python for them. Take a name out when the engine learns it.
"""


def rows(wanted=lambda s: True):
    chosen = [s for s in SAMPLES if wanted(s)]
    ids: dict[str, int] = {}
    names = []
    for sample in chosen:
        name = str(sample)
        ids[name] = ids.get(name, 0) + 1
        names.append(name if ids[name] == 1 else f"{name}#{ids[name]}")
    return pytest.mark.parametrize("sample", chosen, ids=names)


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with enable_x64(True):
            return test(*args, **kwargs)

    return run


every_row = rows()
differentiable_rows = rows(lambda s: s.differentiable())
reversible_rows = rows(lambda s: s.differentiable() and s.reverse)
batched_rows = rows(lambda s: s.batched_operands())
second_order_rows = rows(lambda s: s.differentiable() and s.second_order)


def test_every_table_can_be_read():
    if BROKEN:
        name, error = next(iter(BROKEN.items()))
        raise AssertionError(f"{sorted(BROKEN)} cannot be imported; {name}: {error!r}") from error


def test_every_primitive_has_a_row():
    sampled = {id(s.primitive) for s in SAMPLES}
    missing = [
        where
        for where, prim in all_primitives().items()
        if id(prim) not in sampled and prim.name not in TESTED_ELSEWHERE
    ]
    assert not missing, f"primitives without samples: {', '.join(sorted(missing))}"


def test_elementwise_primitives_have_native_code():
    derived = {
        prim.name
        for prim in all_primitives().values()
        if isinstance(prim, Elementwise) and type(prim).native is Elementwise.native
        if prim.formula is None
    }
    assert derived - ops.TABLE.keys() == ON_THE_HOST.keys()


def check_types(sample: Sample, args: list) -> list:
    """The results of the primitive, after comparing their types with `abstract`'s."""
    avals = sample.out_avals(args)
    outs = sample.run(*args)
    assert len(outs) == len(avals)
    for out, aval in zip(outs, avals, strict=True):
        assert out.shape == aval.shape
        assert out.dtype == aval.dtype
        assert out.weak_type == aval.weak_type
    return outs


@every_row
@pytest.mark.parametrize("shortcuts", [True, False], ids=["", "bound"])
@in_x64
def test_value_has_the_abstract_type(sample, shortcuts):
    with eager_shortcuts(shortcuts):
        check_value(sample)


def check_value(sample: Sample) -> None:
    args = sample.operands()
    if not sample.primitive.higher_order:
        for x in args:
            if isinstance(x, np.ndarray) and x.flags.owndata:
                x.flags.writeable = False
        before = [np.array(numbers(x)) for x in args]
        outs = check_types(sample, args)
        for x, y in zip(args, before, strict=True):
            np.testing.assert_array_equal(numbers(x), y, err_msg="an operand was written to")
        plain = [EagerArray(numbers(x)) for x in args]
        for weak in subsets(range(len(args)), most=2):
            if all(plain[i]._value.dtype.kind in "iufc" for i in weak):
                check_types(sample, [EagerArray(x._value, i in weak) for i, x in enumerate(plain)])
    else:
        outs = sample.run(*args)
    wanted = sample.expected
    if sample.oracle is not None:
        wanted = sample.oracle(*args)
    if wanted is not None:
        wanted = wanted if sample.primitive.multiple_results else [wanted]
        for out, value in zip(outs, wanted, strict=True):
            assert_close(out, value, sample.value_rtol)


def converted(x, dtype):
    """A float64 operand in another type; a complex128 one in the complex type of that width."""
    if isinstance(x, EagerArray):
        return x
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        if x.dtype == np.complex128:
            return x.astype(np.complex64) if dtype == np.float32 else x
        return x.astype(dtype) if x.dtype == np.float64 else x


@rows(lambda s: s.dtypes and not s.primitive.higher_order)
def test_value_in_other_types(sample):
    from ml_dtypes import finfo

    for name in sample.dtypes:
        dtype = np.dtype(name)
        args = [converted(x, dtype) for x in sample.operands()]
        outs = check_types(sample, args)
        if dtype.kind not in "fV":
            continue
        with enable_x64(True):
            wide = [numbers(x).astype(np.float64) if x.dtype == dtype else x for x in args]
            exact = sample.run(*wide)
        for out, wanted in zip(outs, exact, strict=True):
            wanted = numbers(wanted)
            rounded = wanted.dtype.kind in "fc"
            rtol = sample.dtype_tol * float(finfo(dtype).eps) if rounded else 0.0
            if out.dtype == dtype:
                wanted = converted(wanted, dtype)
            assert_close(out, wanted, rtol, where=name)


@differentiable_rows
@in_x64
def test_jvp_is_the_derivative(sample):
    args = sample.operands()
    for chosen in subsets(sample.differentiable()):
        tangents = tangents_for(args, chosen, seed=1)
        outs, out_tangents = jvp(sample.run, args, tangents)
        wanted = central_difference(sample.run, args, tangents, 1e-3)
        for out, value in zip(outs, sample.run(*args), strict=True):
            assert_close(out, numbers(value), sample.value_rtol, f"value, by operands {chosen}")
        for out, t, w in zip(outs, out_tangents, wanted, strict=True):
            aval = aval_of(out).tangent()
            assert (t.aval.shape, t.aval.dtype) == (aval.shape, aval.dtype)
            if aval.dtype.kind in "fc":
                # Differences of values this large are not known any better.
                sizes = np.abs(numbers(out))
                floor = 1e-10 * sizes[np.isfinite(sizes)].max(initial=0.0)
                assert_close(t, w, sample.rtol, f"by operands {chosen}", floor)


@reversible_rows
@in_x64
def test_transpose_satisfies_the_inner_product(sample):
    args = sample.operands()
    rng = np.random.default_rng(2)
    for chosen in subsets(sample.differentiable()):
        tangents = tangents_for(args, chosen, seed=1)
        given = [t for t in tangents if not is_zero(t)]
        nonzeros = [not is_zero(t) for t in tangents]
        _, forward = jvp(sample.run, args, tangents)
        outs, nonzero_out, jaxpr, residuals = linearize(sample.run, args, nonzeros)
        check_jaxpr(jaxpr)
        pushed = eval_jaxpr(jaxpr, residuals, *given)
        wanted = [t for t, nz in zip(forward, nonzero_out, strict=True) if nz]
        for t, w in zip(pushed, wanted, strict=True):
            assert_close(t, numbers(w), 1e-10, "linearised against jvp")
        cts = [EagerArray(random_like(rng, t)) for t in pushed]
        pulled = backward_pass(jaxpr, residuals, [Linear(aval_of(t)) for t in given], cts)
        for ct, t in zip(pulled, given, strict=True):
            found = ct.aval
            assert (found.shape, found.dtype) == (t.aval.shape, t.aval.dtype), "type of cotangent"
        (there, size), (back, _) = inner(cts, pushed), inner(pulled, given)
        assert abs(there - back) <= 1e-9 * max(size, 1e-300), f"by operands {chosen}"


FIRST, LAST, MIXED = (0, 0), (-1, -1), (0, -1)
"""Where the mapped axis is, in operands of even and of odd number."""


def stacked(examples: list[list], chosen: tuple[int, ...], places=FIRST) -> tuple[list, list]:
    """Operands of several examples put together along a mapped axis, and where it is."""
    args, dims = [], []
    for i, xs in enumerate(zip(*examples, strict=True)):
        if i in chosen:
            dim = numbers(xs[0]).ndim if places[i % 2] else 0
            args.append(as_operand(np.stack([numbers(x) for x in xs], axis=dim)))
            dims.append(dim)
        else:
            args.append(xs[0])
            dims.append(None)
    return args, dims


def example_of(examples: list[list], chosen: tuple[int, ...], k: int) -> list:
    """The operands of one example, where only the chosen ones are batched."""
    return [x if i in chosen else examples[0][i] for i, x in enumerate(examples[k])]


def assert_batched(outs, dims, wanted, rtol, where):
    """Batched results equal those of a loop over examples."""
    for out, dim, *each in zip(outs, dims, *wanted, strict=True):
        value = numbers(out)
        value = np.stack([value] * BATCH) if dim is None else np.moveaxis(value, dim, 0)
        assert out.dtype == each[0].dtype, where
        for k, w in enumerate(each):
            assert_close(value[k], numbers(w), rtol, f"{where}, example {k}")


@batched_rows
@in_x64
def test_batch_is_a_loop(sample):
    examples = [sample.operands(k) for k in range(BATCH)]
    for chosen in subsets(sample.batched_operands()):
        wanted = [sample.run(*example_of(examples, chosen, k)) for k in range(BATCH)]
        for places in (FIRST, LAST, MIXED):
            args, dims = stacked(examples, chosen, places)
            outs, out_dims = batch(sample.run, Axis(BATCH), args, dims)
            where = f"operands {chosen} batched at {dims}"
            assert_batched(outs, out_dims, wanted, sample.value_rtol, where)


@rows(lambda s: s.batched_operands() and set(s.differentiable()) & set(s.batched_operands()))
@in_x64
def test_batch_and_jvp_commute(sample):
    """Batch of jvp, jvp of batch, and tangents alone batched (as `jacfwd` does)."""
    examples = [sample.operands(k) for k in range(BATCH)]
    diff = [i for i in sample.differentiable() if i in sample.batched_operands()]
    batched = tuple(sample.batched_operands())
    rng = np.random.default_rng(3)
    n = len(examples[0])

    def derivative(*args):
        primals, given = args[:n], iter(args[n:])
        tangents = [next(given) if i in diff else t for i, t in enumerate(zeros)]
        outs, out_tangents = jvp(sample.run, primals, tangents)
        return [*outs, *(t for t in out_tangents if not is_zero(t))]

    def partial_tangents(example, k):
        return [
            EagerArray(rows[k][n + diff.index(i)]) if i in diff else t
            for i, t in enumerate(tangents_for(example, (), seed=0))
        ]

    zeros = tangents_for(examples[0], (), seed=0)
    rows = [[*xs, *(random_like(rng, xs[i]) for i in diff)] for xs in examples]
    tangent_places = tuple(range(n, n + len(diff)))
    for chosen in ((*batched, *tangent_places), tangent_places, batched):
        wanted = [derivative(*example_of(rows, chosen, k)) for k in range(BATCH)]
        args, dims = stacked(rows, chosen)
        outs, out_dims = batch(derivative, Axis(BATCH), args, dims)
        assert_batched(outs, out_dims, wanted, 1e-9, f"batch of jvp, {chosen} batched")

    chosen = batched
    args, dims = stacked(examples, chosen)
    out_dims: list = []

    def mapped(*args):
        outs, out_dims[:] = batch(sample.run, Axis(BATCH), args, dims)
        return outs

    tangents = [
        EagerArray(np.stack([row[n + diff.index(i)] for row in rows])) if i in diff else t
        for i, t in enumerate(tangents_for(args, (), seed=0))
    ]
    _, found = jvp(mapped, args, tangents)
    each = [
        jvp(
            sample.run,
            example_of(examples, chosen, k),
            [
                EagerArray(rows[k][n + diff.index(i)]) if i in diff else t
                for i, t in enumerate(zeros)
            ],
        )[1]
        for k in range(BATCH)
    ]
    for place, (t, dim) in enumerate(zip(found, out_dims, strict=True)):
        if t.aval.dtype.kind not in "fc":
            continue
        value = numbers(t)
        value = np.stack([value] * BATCH) if dim is None else np.moveaxis(value, dim, 0)
        for k in range(BATCH):
            assert_close(value[k], numbers(each[k][place]), 1e-9, "jvp of batch")


@rows(lambda s: s.differentiable() and s.dtypes and not s.primitive.higher_order)
def test_rules_keep_other_types(sample):
    """Tangents, cotangents and batches have the types of what they belong to, in every dtype.

    Also with weak operands, as Python scalars are.
    """
    diff = sample.differentiable()
    for name in sample.dtypes:
        dtype = np.dtype(name)
        if dtype.kind not in "fV":
            continue
        for weak in (False, True):
            args = [
                EagerArray(numbers(converted(x, dtype)), weak and i in diff)
                for i, x in enumerate(sample.operands())
            ]
            if not all(aval_of(args[i]).dtype in (dtype, np.complex64) for i in diff):
                continue
            tangents = tangents_for(args, diff, seed=1)
            outs, out_tangents = jvp(sample.run, args, tangents)
            for out, t in zip(outs, out_tangents, strict=True):
                wanted = aval_of(out).tangent()
                assert (t.aval.shape, t.aval.dtype) == (wanted.shape, wanted.dtype), name
            if not sample.reverse:
                continue
            nonzeros = [not is_zero(t) for t in tangents]
            outs, nonzero_out, jaxpr, residuals = linearize(sample.run, args, nonzeros)
            cts = [
                EagerArray(np.ones(o.shape, o.dtype), o.weak_type)
                for o, nz in zip(outs, nonzero_out, strict=True)
                if nz
            ]
            linear = [Linear(v.aval) for v in jaxpr.invars]
            pulled = backward_pass(jaxpr, residuals, linear, cts)
            for ct, i in zip(pulled, diff, strict=True):
                wanted = aval_of(args[i])
                assert (ct.aval.shape, ct.aval.dtype) == (wanted.shape, wanted.dtype), name


@second_order_rows
@in_x64
def test_second_derivatives(sample):
    """Forward over forward against finite differences, and reverse over forward against both."""
    args = sample.operands()
    chosen = sample.differentiable()
    first = tangents_for(args, chosen, seed=4)
    second = tangents_for(args, chosen, seed=5)

    def derivative(*args):
        outs, tangents = jvp(sample.run, args, first)
        return [t for t in tangents if t.aval.dtype.kind in "fc" and not is_zero(t)]

    outs, found = jvp(derivative, args, second)
    wanted = central_difference(derivative, args, second, 1e-3)
    for out, t, w in zip(outs, found, wanted, strict=True):
        assert_close_or_flat(t, w, numbers(out), sample.rtol * 10)
    if not sample.reverse:
        return
    rng = np.random.default_rng(6)
    nonzeros = [not is_zero(t) for t in second]
    given = [t for t in second if not is_zero(t)]
    _, nonzero_out, jaxpr, residuals = linearize(derivative, args, nonzeros)
    pushed = [t for t, nz in zip(found, nonzero_out, strict=True) if nz]
    cts = [EagerArray(random_like(rng, t)) for t in pushed]
    pulled = backward_pass(jaxpr, residuals, [Linear(aval_of(t)) for t in given], cts)
    (there, size), (back, _) = inner(cts, pushed), inner(pulled, given)
    assert abs(there - back) <= 1e-8 * max(size, 1e-300), "reverse over forward"


def assert_close_or_flat(found, wanted, slope, rtol):
    """Second derivatives agree, relative to the first where they vanish."""
    found, wanted = numbers(found), np.asarray(wanted)
    scale = max(np.abs(wanted).max(initial=0.0), np.abs(slope).max(initial=0.0), 1e-300)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


@every_row
@in_x64
def test_staged_is_eager(sample):
    """The program of the primitive, of its derivative and of its batch computes the same."""
    # Equal bits are for two ways to call NumPy; machine code rounds `sin` in its own way.
    config.update("engine", "interpreter")
    args = sample.operands()

    def agree(fun, args, where):
        args = [x if isinstance(x, EagerArray) else EagerArray(numbers(x)) for x in args]
        avals = [aval_of(x) for x in args]
        jaxpr, consts = stage(fun, avals)
        check_jaxpr(jaxpr)
        assert sample.axis or sample.primitive.name in repr(jaxpr) or where != "value"
        found = eval_jaxpr(jaxpr, consts, *args)
        for x, wanted, aval in zip(found, fun(*args), jaxpr.out_avals, strict=True):
            assert (aval.shape, aval.dtype) == (wanted.shape, wanted.dtype), where
            assert aval.weak_type == wanted.weak_type, f"weak type, {where}"
            assert_close(x, numbers(wanted), sample.value_rtol, where)
        again = replay(eval_trace, ClosedJaxpr(jaxpr, consts), args)
        for x, same in zip(again, found, strict=True):
            assert (x.dtype, x.weak_type) == (same.dtype, same.weak_type), where
            np.testing.assert_array_equal(numbers(x), numbers(same), f"replayed, {where}")

    agree(sample.run, args, "value")
    diff = sample.differentiable()
    if diff:
        tangents = tangents_for(args, diff, seed=7)
        given = [t for t in tangents if not is_zero(t)]
        nonzeros = [not is_zero(t) for t in tangents]

        def derivative(*args):
            primals, rest = args[: len(nonzeros)], iter(args[len(nonzeros) :])
            ts = [next(rest) if nz else t for t, nz in zip(tangents, nonzeros, strict=True)]
            outs, out_tangents = jvp(sample.run, primals, ts)
            return [*outs, *(t for t in out_tangents if not is_zero(t))]

        agree(derivative, [*args, *given], "jvp")
    if diff and sample.reverse:
        rng = np.random.default_rng(8)
        outs, nonzero_out, *_ = linearize(sample.run, args, nonzeros)
        cts = [random_like(rng, o) for o, nz in zip(outs, nonzero_out, strict=True) if nz]

        def gradient(*args):
            primals, cts = args[: len(nonzeros)], args[len(nonzeros) :]
            outs, _, jaxpr, residuals = linearize(sample.run, primals, nonzeros)
            linear = [Linear(v.aval) for v in jaxpr.invars]
            pulled = backward_pass(jaxpr, residuals, linear, cts)
            return [*outs, *(ct for ct in pulled if not is_zero(ct))]

        agree(gradient, [*args, *cts], "transpose")
    batched = tuple(sample.batched_operands())
    if batched:
        stack, dims = stacked([sample.operands(k) for k in range(BATCH)], batched)
        axis = Axis(BATCH)

        def mapped(*xs):
            outs, out_dims = batch(sample.run, axis, xs, dims)
            # Where the mapped axis comes to lie is each way's own choice.
            return [batch_to(axis, x, d) for x, d in zip(outs, out_dims, strict=True)]

        agree(mapped, stack, "batch")
