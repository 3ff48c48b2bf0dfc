"""Mutable references: against JAX, on every engine, and what they refuse."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, assert_same
from namoo import lax
from namoo.compat.private.state.types import AccumEffect, ReadEffect, WriteEffect

X = np.array([0.7, -0.4, 1.3], np.float32)


# Programs of one vector that use references of their own.


def writes_and_reads(lib, x):
    ref = lib.new_ref(x)
    ref[...] = lib.jnp.sin(ref[...]) * ref[...]
    ref[0] = ref[1] * 2.0
    ref[1:] = ref[1:] + x[:2]
    return ref[...], ref[-1]


def adds_and_swaps(lib, x):
    ref = lib.new_ref(lib.jnp.zeros((2, 3)))
    lib.ref.addupdate(ref, 1, x)
    before = lib.ref.swap(ref, (0, slice(0, 2)), x[1:] * 2.0)
    lib.ref.addupdate(ref, (slice(None), 2), x[:2])
    return before, lib.freeze(ref)


def arrays_as_indices(lib, x):
    ref = lib.new_ref(x)
    places = lib.jnp.array([2, 0])
    ref[places] = ref[places] * 3.0
    return ref[...]


def parts_of_parts(lib, x):
    ref = lib.new_ref(lib.jnp.tile(x, (4, 1)))
    ref.at[1:3][0] = x * x
    ref.at[1:3][...] += lib.jnp.ones((2, 3))
    return ref[...], ref.at[2:][1]


def empty(lib, x):
    ref = lib.empty_ref(lib.ShapeDtypeStruct((3,), "float32"))
    ref[...] = x * 2.0
    out = ref[...]
    lib.free_ref(ref)
    return out


def written_in_a_call(lib, x):
    ref = lib.new_ref(x)

    @lib.jit
    def call(r, y):
        r[0] = y[1] * r[2]
        return r[0] + 1.0

    return call(ref, x), ref[...]


def closed_over_in_a_call(lib, x):
    ref, other = lib.new_ref(x), lib.new_ref(2.0 * x)

    @lib.jit
    def call(y):
        ref[...] = lib.jnp.sin(other[...]) + y
        return other[0]

    return call(x), call(ref[...]), ref[...]


def scan_closes_over(lib, x):
    ref = lib.new_ref(lib.jnp.float32(1.0))

    def body(c, a):
        ref[...] = ref[...] * a
        return c + ref[...], ref[...]

    return lib.lax.scan(body, lib.jnp.float32(0.0), x), ref[...]


def scan_over_a_ref(lib, x):
    ref = lib.new_ref(x)

    def body(c, r):
        r[...] = r[...] * r[...] + c
        return c + 1.0, r[...]

    return lib.lax.scan(body, 0.0, ref, reverse=True), ref[...]


def scan_fills_rows(lib, x):
    ref = lib.new_ref(lib.jnp.zeros((4, 3)))

    def body(c, i):
        ref[i] = lib.jnp.sin(c)
        return c * 1.1, None

    lib.lax.scan(body, x, lib.jnp.arange(4))
    return ref[...]


def loop_of_known_length(lib, x):
    ref = lib.new_ref(x)

    def body(i, total):
        ref[i] = ref[i] * total
        return total + ref[i]

    return lib.lax.fori_loop(0, 3, body, lib.jnp.float32(1.0)), ref[...]


def branches(lib, x):
    ref, other = lib.new_ref(x), lib.new_ref(x)

    def yes(y):
        ref[0] = y[1] * y[2]
        return ref[0]

    def no(y):
        other[...] = y * y
        return y[0]

    out = lib.lax.cond(x[0] > 0, yes, no, x), lib.lax.cond(x[0] < 0, yes, no, x)
    return out, ref[...], other[...]


def checkpointed(lib, x):
    @lib.checkpoint
    def part(y):
        ref = lib.new_ref(y)
        ref[...] = lib.jnp.sin(ref[...])
        return ref[...] * y

    return part(x)


def custom_rule_inside(lib, x):
    @lib.custom_vjp
    def half(y):
        ref = lib.new_ref(y)
        ref[...] = ref[...] * 0.5
        return ref[...]

    half.defvjp(lambda y: (half(y), None), lambda _, g: (g * 0.5,))
    ref = lib.new_ref(half(x))
    ref[0] = 1.0
    return ref[...]


PROGRAMS = [
    writes_and_reads,
    adds_and_swaps,
    arrays_as_indices,
    parts_of_parts,
    empty,
    written_in_a_call,
    closed_over_in_a_call,
    scan_closes_over,
    scan_over_a_ref,
    scan_fills_rows,
    loop_of_known_length,
    branches,
    checkpointed,
    custom_rule_inside,
]
by_name = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def total(lib, program, x):
    leaves = lib.tree.leaves(program(lib, x))
    return sum((lib.jnp.sum(y * (i + 1.0)) for i, y in enumerate(leaves)), 0.0)


@pytest.fixture(scope="module")
def wanted():
    """What real JAX computes with each program, made when it is asked for."""
    found = {}

    def ask(program, key, make):
        if (program, key) not in found:
            found[program, key] = make()
        return found[program, key]

    return ask


@by_name
@pytest.mark.parametrize("engine", [None, "interpreter", "native", "xla"])
def test_values(program, engine, wanted):
    theirs = wanted(program, "value", lambda: jax.jit(lambda x: program(THEIRS, x))(X))
    fun = lambda x: program(OURS, x)  # noqa: E731
    ours = fun(jnp.asarray(X)) if engine is None else namoo.jit(fun, engine=engine)(X)
    assert_same(ours, theirs, weak=False)


TRANSFORMED = {
    "grad": lambda lib, f, x: lib.grad(f)(x),
    "grad of jit": lambda lib, f, x: lib.grad(lib.jit(f))(x),
    "jit of grad": lambda lib, f, x: lib.jit(lib.grad(f))(x),
    "vmap of grad": lambda lib, f, x: lib.vmap(lib.grad(f))(lib.jnp.stack([x, -x]))[0],
    "grad of vmap": lambda lib, f, x: lib.grad(lambda y: lib.vmap(f)(y).sum())(x[None])[0],
}


def slopes(program):
    """The derivatives by differences of JAX's values."""
    fun = jax.jit(lambda x: total(THEIRS, program, x))
    steps = np.eye(3, dtype=np.float32) / 64
    return np.array([(fun(X + step) - fun(X - step)) * 32 for step in steps])


# JAX 0.10.2 has no derivatives of these.
WITHOUT = {parts_of_parts, custom_rule_inside}


@by_name
@pytest.mark.parametrize("how", TRANSFORMED)
def test_derivatives(program, how, wanted):
    def gradient(lib, how):
        return TRANSFORMED[how](lib, lambda x: total(lib, program, x), lib.jnp.asarray(X))

    if program in WITHOUT:
        theirs, rtol = wanted(program, "grad", lambda: slopes(program)), 1e-2
    else:
        theirs, rtol = wanted(program, "grad", lambda: gradient(THEIRS, "jit of grad")), 1e-4
    assert_same(gradient(OURS, how), theirs, rtol, weak=False)


@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p is not custom_rule_inside], ids=lambda f: f.__name__
)
def test_forward_mode_agrees_with_reverse_mode(program):
    x, t = jnp.asarray(X), jnp.asarray(X[::-1])
    fun = lambda x: total(OURS, program, x)  # noqa: E731
    _, found = namoo.jvp(fun, (x,), (t,))
    np.testing.assert_allclose(found, namoo.grad(fun)(x) @ t, rtol=1e-4)


# Functions that change references from outside; each returns what there is in the end.


def argument_of_jit(lib):
    ref = lib.new_ref(lib.jnp.zeros(3))

    @lib.jit
    def step(r, x):
        r[...] += x
        r[1] = r[1] * 2.0
        return r[0]

    return step(ref, 1.0), step(ref, 2.0), ref[...]


def closed_over_by_jit(lib):
    ref = lib.new_ref(lib.jnp.zeros(3))

    @lib.jit
    def step():
        lib.ref.addupdate(ref, 1, lib.jnp.float32(1.0))

    step()
    step()
    return ref[...]


def compiled_ahead(lib):
    ref = lib.new_ref(lib.jnp.arange(3))
    step = lib.jit(lambda r: r.__setitem__(0, r[1] + r[2])).lower(ref).compile()
    step(ref)
    return ref[...]


def types_alone(lib):
    kind = lib.ShapeDtypeStruct((3,), "float32", is_ref=True)
    step = lib.jit(lambda r: r.__setitem__(0, r[1])).lower(kind).compile()
    ref = lib.new_ref(lib.jnp.arange(3.0))
    step(ref)
    return ref[...]


def mapped_argument(lib):
    ref = lib.new_ref(lib.jnp.zeros((3, 2)))

    def example(r, x):
        r[0] = r[0] + x
        r[...] = r[...] * 2.0

    lib.vmap(example)(ref, lib.jnp.arange(3.0))
    return ref[...]


def mapped_over_another_axis(lib):
    ref = lib.new_ref(lib.jnp.ones((2, 3)))
    lib.vmap(lambda r, x: r.addupdate(x), in_axes=(1, 0))(ref, lib.jnp.arange(6.0).reshape(3, 2))
    return ref[...]


def read_by_vmap(lib):
    ref = lib.new_ref(lib.jnp.arange(4.0))
    return lib.vmap(lambda i: ref[i] + ref[0])(lib.jnp.array([3, 1]))


def stashed_cotangents(lib):
    @lib.custom_vjp
    def stash(ref, x):
        return x

    def bwd(ref, g):
        ref[...] = g
        return None, g

    stash.defvjp(lambda ref, x: (x, ref), bwd)
    found = []
    for wrap in (lambda f: f, lib.jit, lib.checkpoint):
        ref = lib.new_ref(lib.jnp.float32(0.0))

        def fun(r, x):
            body = lambda c, _: (lib.jnp.sin(stash(r, lib.jnp.sin(c))), None)  # noqa: E731
            return lib.lax.scan(body, x, None, length=2)[0]

        found += [lib.grad(wrap(fun), 1)(ref, lib.jnp.float32(1.0)), ref[...]]
    return found


def summed_cotangents(lib):
    ref = lib.new_ref(lib.jnp.zeros(3))

    def step(c, x):
        _, pull = lib.vjp(lambda w: (w * x).sum(), lib.jnp.ones(3))
        pull.with_refs(ref)(lib.jnp.float32(2.0))
        return c, None

    lib.lax.scan(step, 0.0, lib.jnp.arange(6.0).reshape(2, 3))
    return ref[...]


def tangent_reference(lib):
    ref, tangent = lib.new_ref(lib.jnp.float32(3.0)), lib.new_ref(lib.jnp.float32(1.0))

    def square(r):
        r[...] = r[...] * r[...]
        return r[...] + 1.0

    return lib.jvp(square, (ref,), (tangent,)), ref[...], tangent[...]


def without_derivative(lib):
    ref = lib.new_ref(lib.jnp.float32(1.0), kind="no_grad_no_remat")

    @lib.checkpoint
    def fun(x):
        out = x * ref[...]
        ref[...] += out
        return out

    return lib.grad(fun)(lib.jnp.float32(2.0)), ref[...]


def unchanged_copies(lib):
    first = lib.jnp.zeros(2)
    ref = lib.new_ref(first)
    before = ref[...]
    ref[0] = 1.0
    after = ref[...]
    lib.jit(lambda r: r.__setitem__(1, 5.0))(ref)
    return first, before, after, ref[...]


def keys(lib):
    ref = lib.new_ref(lib.random.key(0))
    ref[...] = lib.random.fold_in(ref[...], 1)
    return lib.random.key_data(ref[...])


OUTSIDE = [
    argument_of_jit,
    closed_over_by_jit,
    compiled_ahead,
    types_alone,
    mapped_argument,
    mapped_over_another_axis,
    read_by_vmap,
    stashed_cotangents,
    summed_cotangents,
    tangent_reference,
    without_derivative,
    unchanged_copies,
    keys,
]


@pytest.mark.parametrize("engine", ["interpreter", "native", "xla"])
@pytest.mark.parametrize("program", OUTSIDE, ids=lambda f: f.__name__)
def test_references_from_outside(program, engine, wanted):
    theirs = wanted(program, "value", lambda: program(THEIRS))
    before = namoo.config.engine
    namoo.config.update("engine", engine)
    try:
        assert_same(program(OURS), theirs, weak=False)
    finally:
        namoo.config.update("engine", before)


@pytest.mark.parametrize("engine", [None, "interpreter", "native", "xla"])
def test_a_while_loop_whose_condition_reads_what_its_body_writes(engine):
    # JAX refuses this: the reference would be an operand twice.
    def count(limit):
        ref = namoo.new_ref(0)

        def body(c):
            ref[...] += 1
            return c + 2

        return lax.while_loop(lambda c: ref[...] < limit, body, 0), ref[...]

    run = count if engine is None else namoo.jit(count, engine=engine)
    assert tuple(map(int, run(3))) == (6, 3)


def test_gradients_through_a_checkpoint_see_the_value_that_was_read():
    # JAX reads the reference again after it was changed, and changes it twice.
    ref = namoo.new_ref(1.0)

    @namoo.checkpoint
    def fun(x):
        out = x * ref[...]
        ref[...] += 1.0
        return out

    assert float(namoo.grad(fun)(2.0)) == 1.0
    assert float(ref[...]) == 2.0


def test_native_code_writes_in_place():
    ref = namoo.new_ref(jnp.zeros(100_000))
    step = namoo.jit(lambda r, i: r.__setitem__(i, r[i] + 1.0), engine="native")
    step(ref, 0)
    address = ref.unsafe_buffer_pointer()
    for i in range(3):
        step(ref, i)
    assert ref.unsafe_buffer_pointer() == address
    assert ref[:3].tolist() == [2.0, 1.0, 1.0]
    text = step.lower(ref, 0).compile().as_text("fused")
    assert "100000" not in text  # no kernel goes over the array

    kept = ref[...]
    step(ref, 0)
    assert float(kept[0]) == 2.0  # an array that was read does not change


def test_native_loops_write_in_place():
    def fill(r):
        return lax.fori_loop(0, 1000, lambda i, c: (r.__setitem__(i, r[i] + c), c)[1], 1.0)

    ref = namoo.new_ref(jnp.zeros(100_000))
    step = namoo.jit(fill, engine="native")
    step(ref)
    address = ref.unsafe_buffer_pointer()
    step(ref)
    assert ref.unsafe_buffer_pointer() == address
    assert float(ref[...].sum()) == 2000.0


def test_eager_writes_are_in_place():
    ref = namoo.new_ref(jnp.zeros(4))
    ref[0] = 1.0
    address = ref.unsafe_buffer_pointer()
    ref[1:3] = jnp.ones(2)
    namoo.ref.addupdate(ref, ..., jnp.ones(4))
    assert ref.unsafe_buffer_pointer() == address
    assert ref[...].tolist() == [2.0, 2.0, 2.0, 1.0]


def test_functions_are_traced_once():
    traces = []

    @namoo.jit
    def step(r):
        traces.append(1)
        r[...] += 1.0

    for size in (2, 2, 3):
        step(namoo.new_ref(jnp.zeros(size)))
    assert len(traces) == 2


def test_programs_are_printed_as_by_jax():
    def program(lib):
        def fun(r, i, x):
            r[...] = r[...] + 1.0
            r[i] = r[0]
            lib.ref.addupdate(r, 1, x[0])
            before = lib.ref.swap(r, slice(1, None), x[:2])
            own = lib.new_ref(before)
            last = lib.freeze(own)
            return lib.jit(lambda: r[0] + last[0])()

        return lib.make_jaxpr(fun)(lib.new_ref(lib.jnp.zeros(3)), 1, lib.jnp.zeros(3))

    ours, theirs = str(program(OURS)).split("\n"), str(program(THEIRS)).split("\n")
    marks = ("<-", "+=", "new_ref", "freeze", "lambda ;")
    found, wanted = ([x for x in text if any(m in x for m in marks)] for text in (ours, theirs))
    assert found == wanted


def test_effects_name_the_reference():
    def fun(r, s, t):
        r[0] = s[0]
        namoo.ref.addupdate(t, 0, 1.0)

    refs = [namoo.new_ref(jnp.zeros(2)) for _ in range(3)]
    program = namoo.make_jaxpr(fun)(*refs)
    first, second, third = program.jaxpr.invars
    assert program.effects == {WriteEffect(first), ReadEffect(second), AccumEffect(third)}


def twice_over_jit(lib, ref):
    lib.jit(lambda x_ref, y_ref: x_ref[0] + y_ref[0])(ref, ref)


def under_grad(lib, ref):
    lib.grad(lambda x: (ref.__setitem__(0, x), x)[1])(1.0)


REFUSED = {
    "another dtype": (lambda lib, ref: ref.__setitem__(0, 1), "Invalid dtype for `swap`"),
    "another shape": (lambda lib, ref: ref.__setitem__(..., 1.0), "Invalid shape for `swap`"),
    "shape of a sum": (lambda lib, ref: ref.addupdate(1.0), "Invalid shape for `addupdate`"),
    "out of bounds": (lambda lib, ref: ref[3], "Out of bound indexer: idx=3, dim=3."),
    "too many indices": (lambda lib, ref: ref[0, 0], "must not be longer than `shape`"),
    "backwards": (lambda lib, ref: ref[::-1], r"slice must have a step >= 1 \(found: -1\)"),
    "a mask": (lambda lib, ref: ref[lib.jnp.ones(3, bool)], "boolean indices must be concrete"),
    "no array": (lambda lib, ref: lib.new_ref("a"), "Error interpreting argument to new_ref"),
    "returned": (lambda lib, ref: lib.jit(lambda r: r)(ref), "passed in as the argument r"),
    "made and returned": (
        lambda lib, ref: lib.jit(lambda: lib.new_ref(1.0))(),
        "traced for jit returned a mutable array reference of type Ref{float32\\[\\]}",
    ),
    "returned by a branch": (
        lambda lib, ref: lib.lax.cond(True, lambda: ref, lambda: ref),
        "traced for cond returned a mutable array reference",
    ),
    "carried": (
        lambda lib, ref: lib.lax.scan(lambda c, _: (c, None), ref, None, length=1),
        "traced for scan returned a mutable array reference",
    ),
    "twice": (twice_over_jit, "appeared at both x_ref and y_ref"),
    "closed over and given": (
        lambda lib, ref: lib.jit(lambda y: ref[0] + y[0])(ref),
        "both closed over and passed as the argument y",
    ),
    "twice under vmap": (
        lambda lib, ref: lib.vmap(lambda a, b: None)(ref, ref),
        "only one reference to a mutable array may be passed as an argument to a function",
    ),
    "differentiated": (under_grad, "differentiated value on a non-differentiated array reference"),
    "mapped": (
        lambda lib, ref: lib.vmap(lambda x: ref.__setitem__(0, x))(lib.jnp.ones(2)),
        "vmapped value on an unbatched array reference of type Ref{float32\\[3\\]}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("lib", [OURS, THEIRS], ids=["namoo", "jax"])
def test_errors_have_the_phrases_of_jax(lib, case):
    action, phrase = REFUSED[case]
    with pytest.raises(Exception, match=phrase):
        action(lib, lib.new_ref(lib.jnp.zeros(3)))


OWN_REFUSALS = {
    "an operation": (lambda ref: jnp.sin(ref), TypeError, "sin requires ndarray"),
    "NumPy": (lambda ref: np.asarray(ref), TypeError, r"read it first, with ref\[...\]"),
    "derivatives by it": (
        lambda ref: namoo.grad(lambda r: r[0])(ref),
        TypeError,
        "takes no derivatives by a mutable reference, but argument r is one",
    ),
    "a reference of a reference": (namoo.new_ref, TypeError, r"write new_ref\(ref\[...\]\)"),
    "freed": (lambda ref: (namoo.free_ref(ref), ref[0]), ValueError, "The reference was freed"),
    "freed twice": (
        lambda ref: (namoo.free_ref(ref), namoo.free_ref(ref)),
        ValueError,
        "The reference was freed",
    ),
    "returned by vmap": (
        lambda ref: namoo.vmap(namoo.new_ref)(jnp.ones(2)),
        ValueError,
        "traced for vmap returned a mutable array reference",
    ),
    "made directly": (lambda ref: namoo.Ref(), TypeError, r"use namoo.new_ref\(array\)"),
    "a condition that writes": (
        lambda ref: lax.while_loop(lambda c: (ref.__setitem__(0, c), c < 1)[1], jnp.sin, 0.0),
        ValueError,
        "condition of while_loop writes to a mutable reference",
    ),
    "shard_map": (
        lambda ref: namoo.shard_map(
            lambda r: r[0],
            mesh=namoo.make_mesh((1,), ("i",)),
            in_specs=namoo.P(),
            out_specs=namoo.P(),
        )(ref),
        TypeError,
        "shard_map does not take mutable references",
    ),
    "another structure of references": (
        lambda ref: namoo.vjp(jnp.sin, 1.0)[1].with_refs((ref,)),
        ValueError,
        "with_refs takes a tree of the structure of each argument",
    ),
}


@pytest.mark.parametrize("case", OWN_REFUSALS)
def test_further_errors(case):
    action, error, phrase = OWN_REFUSALS[case]
    with pytest.raises(error, match=phrase):
        action(namoo.new_ref(jnp.zeros(3)))


def test_an_escaped_reference_is_refused():
    kept = []
    namoo.jit(lambda x: kept.append(namoo.new_ref(x)))(1.0)
    with pytest.raises(ValueError, match="was used outside of the function that made it"):
        kept[0][...]


def test_what_is_a_reference():
    ref = namoo.new_ref(jnp.zeros((2, 3)))
    assert isinstance(ref, namoo.Ref)
    assert not isinstance(ref, namoo.Array)
    assert not isinstance(jnp.ones(2), namoo.Ref)
    assert (ref.shape, ref.ndim, ref.size, ref.dtype, len(ref)) == ((2, 3), 2, 6, jnp.float32, 2)
    assert str(namoo.typeof(ref)) == str(jax.typeof(jax.new_ref(np.zeros((2, 3), np.float32))))
    assert repr(namoo.new_ref(1.0)) == repr(jax.new_ref(1.0))
    assert namoo.tree.leaves({"a": ref}) == [ref]


def test_a_backward_function_shows_the_arguments_that_it_keeps():
    x, w = jnp.ones((3, 4)), jnp.full((4, 4), 2.0)
    y, pull = namoo.vjp(lambda x, w, unused: {"y": jnp.sin(x) @ w}, x, w, {"u": 1.0})
    wanted = pull(y)
    assert pull.args_res[1] is w
    assert str([pull.args_res[0], pull.args_res[2]]) == "[NotNeeded(), {'u': NotNeeded()}]"
    assert len(pull.opaque_residuals) == 2
    pull.args_res[1] = None
    with pytest.raises(ValueError, match="args_res is None"):
        pull(y)
    assert len(namoo.tree.leaves(pull)) == 2
    pull.args_res[1] = 2 * w
    found = pull(y)
    np.testing.assert_allclose(found[0], 2 * wanted[0])
    np.testing.assert_allclose(found[1], wanted[1])


def test_cotangents_that_are_not_wanted():
    _, pull = namoo.vjp(lambda x, y, z: x * y * z, 2.0, 3.0, 4.0)
    total = namoo.new_ref(1.0)
    found = pull.with_refs(total, namoo.ad.DontWant(), namoo.ad.GradValue())(1.0)
    assert str(found) == "(GradRef(), DidntWant(), Array(6., dtype=float32, weak_type=True))"
    assert total[...] == 13.0


def test_placeholders_of_cotangents_are_trees_without_leaves():
    def results(lib):
        ones = lib.jnp.ones(3)
        ref = lib.new_ref(lib.jnp.zeros(3))

        def gradients():  # a new function for each call: JAX's adds to the earlier results
            _, pull = lib.vjp(lambda x, y, z: x * y * z, ones, 2 * ones, 3 * ones)
            return pull.with_refs(ref, lib.ad.DontWant(), lib.ad.GradValue())(ones)

        found = gradients(), lib.jit(gradients)()
        kinds = lib.ad.GradRef, lib.ad.DontWant, lib.ad.DidntWant, lib.ad.GradValue
        return str(found), str(ref[...]), [(kind() == kind(), str(kind())) for kind in kinds]

    assert results(OURS) == results(THEIRS)
