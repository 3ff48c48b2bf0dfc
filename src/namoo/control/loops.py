"""Loops over trees: `scan`, `while_loop`, `fori_loop`, `map`, `associative_scan`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from namoo import errors, tree_util
from namoo._base import dtypes
from namoo._base.caches import per_program
from namoo._base.config import config
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point
from namoo.analysis.mesh_types import MeshArray
from namoo.control.bounded_loop import bind_bounded
from namoo.control.collective_primitives import vary_p
from namoo.control.scan import scan_p
from namoo.control.trees import as_arrays, carry_differences, leaf_avals
from namoo.control.while_loop import while_p
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import as_value
from namoo.primitives.elementwise import add, lt
from namoo.primitives.elementwise import max as maximum
from namoo.primitives.resharding import with_type
from namoo.primitives.shape import convert_element_type, expand_dims, reshape, rev, shape_of
from namoo.primitives.slicing import concatenate, dynamic_index_in_dim, pad, slice_in_dim
from namoo.transforms.batch import Axis, batch, batch_to
from namoo.transforms.refs import refuse_aliases
from namoo.transforms.staged import Staged, argument_names, staged


def _scan_length(xs: Any, length: Any) -> int:
    """The length of a loop over the leading axes of a tree, which must agree."""
    leaves = tree_util.tree_leaves_with_path(xs)
    sizes: dict[int, str] = {}
    for path, x in leaves:
        where = f"xs{tree_util.keystr(path)}"
        if not shape_of(x):
            raise ValueError(
                f"scan got value with no leading axis to scan over: {where} has shape (). Values "
                "that are the same in every step belong in the carry or a closure; for a number "
                f"of steps without values, write scan(f, init, None, length={short(x)})."
            )
        sizes.setdefault(shape_of(x)[0], where)
    if length is not None:
        if isinstance(length, Tracer):
            raise errors.ConcretizationTypeError(
                "The `length` argument to `scan` expects a concrete `int` value, but it is traced. "
                f"{length.origin()}\n{length.static_remedy() or 'Mark its argument static.'} For a "
                "loop whose length is not known, write lax.fori_loop." + at_user_line()
            )
        length = int(length)
        if length < 0:
            raise ValueError(f"The `length` argument of scan must not be negative, got {length}.")
        for size, where in sizes.items():
            if size != length:
                raise ValueError(
                    f"scan got `length` argument of {length} which disagrees with leading axis "
                    f"sizes {[*sizes]}: {where} has length {size}."
                )
        return length
    if not sizes:
        raise ValueError(
            "scan got no values to scan over and `length` not provided: pass xs, or length=n."
        )
    if len(sizes) > 1:
        shown = ", ".join(f"{where} has {size}" for size, where in sizes.items())
        raise ValueError(f"scan got values with different leading axis sizes: {shown}.")
    return next(iter(sizes))


def _promote(leaves: list[Any], out_avals: list[ShapedArray]) -> list[Any] | None:
    """Convert the carry to the types that the body returns; None if nothing changes.

    A weakly typed value takes the body's dtype.  A value that is equal on all devices along a mesh
    axis is marked as varying along it, if the body's result varies.
    """
    changed, out = False, []
    for x, wanted in zip(leaves, out_avals, strict=True):
        aval = aval_of(x)
        if aval.weak_type and aval.shape == wanted.shape and aval.dtype != wanted.dtype:
            dtype, _ = dtypes.lattice_result_type(aval, wanted)
            if dtype != aval.dtype:
                x, changed = convert_element_type(x, dtype), True
        if type(wanted) is MeshArray and type(aval) is not MeshArray and wanted.split is not None:
            x, changed = with_type(x, wanted), True
        if extra := wanted.vma - aval.vma:
            x, changed = vary_p.bind(x, axes=tuple(sorted(extra, key=str))), True
        out.append(x)
    return out if changed else None


def _stage_loop_body(
    name: str,
    stage_body: Callable[[list[Any]], Staged],
    init: Any,
    carry_of: Callable[..., Any],
    part: int | None = None,
):
    """Stage a body until the types of its carry agree with what goes in.

    Weak types give way: an initial 0.0 in a loop over float16 arrays becomes float16.

    Args:
        name: the function that the user called.
        stage_body: takes the types of the carry, and returns the program of the body.
        init: the initial carry.
        carry_of: takes the program, and returns its carry and how many leaves that has.
        part: the element of the carry that is the user's; all of it by default.
    """
    leaves, carry_tree = tree_util.tree_flatten(init)
    while True:
        avals = [aval_of(x) for x in leaves]
        program = stage_body(avals)
        carry_out, n = carry_of(program)
        if tree_util.tree_structure(carry_out) == carry_tree:
            promoted = _promote(leaves, program.out_avals[:n])
            if promoted is not None:
                leaves = promoted
                continue
        carry_in = carry_tree.unflatten(avals)
        if part is not None:
            carry_in, carry_out = carry_in[part], carry_out[part]
        differences = carry_differences(carry_in, carry_out)
        if differences:
            same = tree_util.tree_structure(carry_out) == tree_util.tree_structure(carry_in)
            what = "equal types" if same else "the same pytree structure"
            message = tree_util.mismatch(
                f"{name} body function carry input and carry output must have {what}, but they "
                f"differ: in {program.name!r}",
                differences,
            ).args[0]
            if carry_out is None and carry_in is not None:
                message = (
                    f"{message.splitlines()[0]}\n  {program.name!r} returned None: does it lack a "
                    "return statement?"
                )
            raise TypeError(message + at_user_line())
        return leaves, carry_tree, program


@entry_point
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Loop over the leading axis of `xs`, carrying state and stacking results.

        def scan(f, init, xs):
            carry, ys = init, []
            for x in xs:
                carry, y = f(carry, x)
                ys.append(y)
            return carry, stack(ys)

    Args:
        f: a function `(carry, x) -> (carry, y)`; the carry keeps its structure and types.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays with equal leading axes, or None with `length`.
        length: the number of steps.
        reverse: run from the last slice to the first; results keep their places.
        unroll: how many steps to write out per iteration; results are the same.

    Returns:
        the last carry, and the results stacked along a new leading axis.

    Raises:
        TypeError: the carry changes its structure or its types; the message says where.
        ValueError: the leading axes of `xs` differ.

    Example:
        >>> import namoo.numpy as jnp
        >>> scan(lambda total, x: (total + x, total * x), 0, jnp.array([1, 2, 3]))
        (Array(6, dtype=int32), Array([0, 2, 9], dtype=int32))
    """
    return _scan(f, init, xs, length, reverse, unroll)


def _scan(f, init, xs, length, reverse=False, unroll=1, of=None, *variant) -> Any:
    """`scan`, of a function that does no more than to call the user's function `of`."""
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    if isinstance(unroll, Tracer):
        raise errors.ConcretizationTypeError(
            "The `unroll` argument to `scan` expects a concrete `int` or `bool` value, but it is "
            "traced." + at_user_line()
        )
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    x_leaves, x_tree = tree_util.tree_flatten(xs)
    leaf_avals(xs, "the xs of scan")
    leaf_avals(init, "the initial carry of scan")
    length = _scan_length(xs, length)
    if config.disable_jit:
        return _scan_eagerly(f, init, x_leaves, x_tree, length, reverse)
    x_avals = [aval_of(x) for x in x_leaves]
    slices = [a.update(shape=a.shape[1:]) for a in x_avals]
    _refuse_split_steps(x_avals)

    given = [*tree_util.tree_leaves(init), *x_leaves]
    in_tree = tree_util.treedef_tuple([tree_util.tree_structure(init), x_tree])
    name = getattr(f, "__name__", "scan")
    refuse_aliases(name, "scan", given, lambda: argument_names(f, in_tree))

    def body(carry_avals):
        program = staged(f, in_tree, [*carry_avals, *slices], "scan", of, *variant)
        program.refuse_aliases(f, in_tree, given)
        return program

    def carry_of(program):
        result = program.out_types()
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(
                "scan body output must be a pair, got "
                f"{_shown(result)}. Return (carry, y) from {program.name!r}"
                + (": it has no return statement." if result is None else ".")
                + at_user_line()
            )
        return result[0], len(tree_util.tree_leaves(result[0]))

    name, part = ("fori_loop", 1) if variant == (fori_loop,) else ("scan", None)
    leaves, _, program = _stage_loop_body(name, body, init, carry_of, part)
    num_consts = len(program.consts)
    fixed = _unchanged(program.closed, num_consts, len(leaves))
    kept, moving = _parted(leaves, fixed)
    outs = scan_p.bind(
        *program.consts,
        *kept,
        *moving,
        *x_leaves,
        jaxpr=_with_constants(program.closed, num_consts, fixed),
        length=length,
        reverse=bool(reverse),
        num_consts=num_consts + len(kept),
        num_carry=len(moving),
        unroll=int(unroll),
    )
    n = len(moving)
    return program.out_tree.unflatten([*_joined(fixed, kept, outs[:n]), *outs[n:]])


def _refuse_split_steps(avals: list[ShapedArray]) -> None:
    """Raise if the dimension that is looped over is split over devices."""
    for aval in avals:
        if type(aval) is MeshArray and aval.split is not None and aval.split.spec.partitions[0]:
            raise ValueError(
                "0th dimension of all xs should be replicated. Got an array of type "
                f"{aval.str_short()}: gather its first dimension with namoo.sharding.reshard."
            )


def _shown(types: Any) -> str:
    """A tree of types, as `float32[3]`."""
    shown = tree_util.tree_map(lambda a: f"{a.dtype}{[*a.shape]}".replace(" ", ""), types)
    return str(shown).replace("'", "")


def _unchanged(body: ClosedJaxpr, first: int, count: int) -> tuple[bool, ...]:
    """Which carries the body returns as they came; the first of them is input `first`."""
    invars = body.jaxpr.invars[first : first + count]
    return tuple([a is b for a, b in zip(invars, body.jaxpr.outvars, strict=False)])


def _with_constants(
    closed: ClosedJaxpr, first: int, fixed: tuple[bool, ...], returns: bool = True
) -> ClosedJaxpr:
    """A program that takes the carries in `fixed` as constants, and does not return them, if it
    returns carries: a condition does not."""
    return _with_constant_carries(closed, first, fixed, returns) if True in fixed else closed


@per_program("loop with constant carries", keyed_by="which carries are constant")
def _with_constant_carries(closed, first, fixed, returns):
    jaxpr, last = closed.jaxpr, first + len(fixed)
    kept, moving = _parted(jaxpr.invars[first:last], fixed)
    invars = [*jaxpr.invars[:first], *kept, *moving, *jaxpr.invars[last:]]
    outvars = jaxpr.outvars
    if returns:
        outvars = [*_parted(outvars[: len(fixed)], fixed)[1], *outvars[len(fixed) :]]
    return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars))


def _parted(items: Sequence[Any], fixed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Those that are fixed, and the others."""
    pairs = [*zip(items, fixed, strict=True)]
    return [x for x, f in pairs if f], [x for x, f in pairs if not f]


def _joined(fixed: Sequence[bool], kept: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
    """All carries, in order."""
    rest, others = iter(as_arrays(list(kept))), iter(moving)
    return [next(rest if f else others) for f in fixed]


def _scan_eagerly(f, init, x_leaves, x_tree, length, reverse):
    """The loop in Python, for `disable_jit`: every step sees concrete values."""
    carry, ys = as_arrays(init), []
    for i in reversed(range(length)) if reverse else range(length):
        x = x_tree.unflatten([dynamic_index_in_dim(x, i, keepdims=False) for x in x_leaves])
        carry, y = f(carry, x)
        ys.append(y)
    if not length:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the "
            "output type is unknown."
        )
    ys = ys[::-1] if reverse else ys
    stack = lambda *leaves: concatenate([expand_dims(y, (0,)) for y in leaves], 0)  # noqa: E731
    return carry, tree_util.tree_map(stack, *ys)


@entry_point
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
) -> Any:
    """Repeat `body_fun` while `cond_fun` holds.

        def while_loop(cond_fun, body_fun, val):
            while cond_fun(val):
                val = body_fun(val)
            return val

    Args:
        cond_fun: a function of the value that returns a boolean scalar.
        body_fun: a function of the value that returns the next one, of the same type.
        init_val: the first value, a tree of arrays.
        max_steps: the loop stops after so many iterations, even if the condition still holds. With
            it, the loop can be differentiated in reverse (`grad`, `vjp`): the backward pass keeps
            some of the values and computes the others again, so that its memory grows as the
            logarithm of `max_steps`. None for no bound. JAX does not have this argument.

    Returns:
        the value for which the condition fails first, or the one after `max_steps` iterations.

    Example:
        >>> while_loop(lambda n: n < 100, lambda n: 2 * n, 3)
        Array(192, dtype=int32, weak_type=True)
        >>> import namoo
        >>> double = lambda x: while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, x, max_steps=50)
        >>> namoo.value_and_grad(double)(3.0)
        (Array(192., dtype=float32, weak_type=True), Array(64., dtype=float32, weak_type=True))
    """
    if max_steps is not None:
        max_steps = _bound(max_steps)
    return _while_loop(cond_fun, body_fun, init_val, max_steps=max_steps)


def _bound(max_steps: Any) -> int:
    """The bound of a loop as a Python integer."""
    if isinstance(max_steps, Tracer):
        raise errors.ConcretizationTypeError(
            "The `max_steps` argument of `while_loop` is a Python integer, but it is traced. "
            f"{max_steps.origin()}\n{max_steps.static_remedy() or 'Mark its argument static.'} "
            "A number of iterations that is computed belongs in the condition." + at_user_line()
        )
    try:
        bound = operator.index(max_steps)
    except TypeError:
        bound = -1
    if bound < 0 or max_steps is True or max_steps is False:
        raise ValueError(
            "The `max_steps` argument of `while_loop` is a number of iterations, an integer that "
            f"is not negative; got {short(max_steps)}." + at_user_line()
        )
    return bound


def _while_loop(cond_fun, body_fun, init_val, of=None, *variant, max_steps=None) -> Any:
    """`while_loop`, of a body that does no more than to call the user's function `of`."""
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaf_avals(init_val, "the initial value of while_loop")
    if config.disable_jit:
        value = as_arrays(init_val)
        steps = itertools.count() if max_steps is None else range(max_steps)
        try:
            for _ in steps:
                if not cond_fun(value):
                    break
                value = body_fun(value)
            return value
        except errors.ConcretizationTypeError:
            pass  # under `vmap`, each example has its own number of iterations

    def body(avals):
        tree = _one(tree_util.tree_structure(init_val))
        program = staged(body_fun, tree, avals, "while_loop", of, *variant)
        program.refuse_aliases(body_fun, tree, tree_util.tree_leaves(init_val))
        return program

    leaves, tree, program = _stage_loop_body(
        *("fori_loop" if variant else "while_loop", body, init_val),
        lambda s: (s.out_types(), len(s.out_avals)),
        2 if variant else None,
    )
    avals = [aval_of(x) for x in leaves]
    condition = staged(cond_fun, _one(tree), avals, "while_loop")
    outs = condition.out_avals
    one = len(outs) == 1 and tree_util.treedef_is_leaf(condition.out_tree)
    if not one or outs[0].shape or outs[0].dtype != np.bool_:
        raise TypeError(
            "cond_fun must return a boolean scalar, but got "
            + (f"output type(s) {[*outs]}" if one else f"pytree {condition.out_tree}")
            + f". The function is {condition.name!r}."
            + " Reduce it with jnp.any or jnp.all." * (one and bool(outs[0].shape))
            + at_user_line()
        )
    cond_consts, body_consts = condition.consts, program.consts
    fixed = _unchanged(program.closed, len(body_consts), len(leaves))
    kept, moving = _parted(leaves, fixed)
    bind = while_p.bind if max_steps is None else partial(bind_bounded, max_steps=max_steps)
    outs = bind(
        *cond_consts,
        *kept,
        *body_consts,
        *kept,
        *moving,
        cond_jaxpr=_with_constants(condition.closed, len(cond_consts), fixed, returns=False),
        body_jaxpr=_with_constants(program.closed, len(body_consts), fixed),
        cond_nconsts=len(cond_consts) + len(kept),
        body_nconsts=len(body_consts) + len(kept),
    )
    return tree.unflatten(_joined(fixed, kept, outs))


def _one(tree):
    return tree_util.treedef_tuple([tree])


@entry_point
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeat `val = body_fun(i, val)` for `i` from `lower` to `upper` - 1.

    With Python integers as bounds the loop is a `scan`, and can be differentiated in reverse.

    Args:
        lower: the first index, a number.
        upper: the index to stop before.
        body_fun: a function `(i, val) -> val`.
        init_val: the first value, a tree of arrays.
        unroll: how many steps to write out per iteration; results are the same.

    Returns:
        the last value.

    Example:
        >>> fori_loop(0, 5, lambda i, total: total + i, 0)
        Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    lower, upper = as_value(lower), as_value(upper)
    low_type, high_type = aval_of(lower), aval_of(upper)
    for name, aval in (("lower", low_type), ("upper", high_type)):
        if aval.shape or aval.dtype.kind not in "iuf":
            raise TypeError(
                f"lower and upper arguments to fori_loop must be scalars, but {name} is "
                f"{aval.str_short()}."
            )
    apart = (low_type.dtype.kind == "f") != (high_type.dtype.kind == "f")
    weak = low_type.weak_type or high_type.weak_type
    if apart or (low_type.dtype != high_type.dtype and not weak):
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{low_type.dtype} and {high_type.dtype}. Write integers for both."
        )
    dtype, _ = dtypes.lattice_result_type(low_type, high_type)
    try:
        first, stop = int(lower), int(upper)
        known = True
    except errors.ConcretizationTypeError:
        first = stop = 0
        known = False
    if known:
        length = max(stop - first, 0)
        # The bounds are known integers, so the index has the default integer type.
        dtype = dtypes.default_int_dtype()
        if config.disable_jit:
            value = as_arrays(init_val)
            for i in range(first, first + length):
                value = body_fun(EagerArray(np.asarray(i, dtype), True), value)
            return value
        start = EagerArray(np.asarray(first, dtype), True)

        def scan_body(carry, _):
            i, value = carry
            return (add(i, EagerArray(np.ones((), dtype), True)), body_fun(i, value)), None

        (_, out), _ = _scan(
            _named(scan_body, body_fun),
            (start, init_val),
            None,
            length,
            False,
            unroll or 1,
            body_fun,
            fori_loop,
        )
        return out
    if unroll is not None:
        raise ValueError("Can only use `unroll` in fori_loop with a loop whose bounds are known.")
    # Beside a traced bound, a Python number still counts as one: `c + i` has the type of `c`.
    low, high = (
        convert_element_type(x, dtype, aval.weak_type and aval.dtype == dtype)
        for x, aval in ((lower, low_type), (upper, high_type))
    )

    def body(state):
        i, end, value = state
        return add(i, EagerArray(np.ones((), dtype), True)), end, body_fun(i, value)

    state = low, high, init_val
    _, _, out = _while_loop(_goes_on, _named(body, body_fun), state, body_fun, fori_loop)
    return out


def _goes_on(state):
    i, end, _ = state
    return lt(i, end)


def _named(fun, like):
    fun.__name__ = getattr(like, "__name__", type(like).__name__)
    return fun


@entry_point
def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each slice along the leading axis, one after another.

    Args:
        f: a function of one slice.
        xs: a tree of arrays with equal leading axes.
        batch_size: how many slices to compute at once, as `vmap` does.

    Returns:
        the results stacked along a new leading axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> map(lambda x: x**2, jnp.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
    """
    if not batch_size:
        return _scan(lambda _, x: ((), f(x)), (), xs, None)[1]
    leaves, tree = tree_util.tree_flatten(xs)
    length = _scan_length(xs, None)
    count, rest = divmod(length, batch_size)

    def many(chunk):
        return _map_batch(f, chunk)

    parts = []
    if count:
        head = [
            reshape(slice_in_dim(x, 0, count * batch_size), (count, batch_size, *shape_of(x)[1:]))
            for x in leaves
        ]
        out = scan(lambda _, x: ((), many(x)), (), tree.unflatten(head))[1]
        join = lambda y: reshape(y, (count * batch_size, *shape_of(y)[2:]))  # noqa: E731
        parts.append(tree_util.tree_map(join, out))
    if rest:
        tail = [slice_in_dim(x, count * batch_size, length) for x in leaves]
        parts.append(many(tree.unflatten(tail)))
    return (
        parts[0]
        if len(parts) == 1
        else tree_util.tree_map(lambda a, b: concatenate([a, b], 0), *parts)
    )


def _map_batch(f: Callable[..., Any], xs: Any) -> Any:
    """`vmap` of a function of one tree over leading axes."""
    leaves, tree = tree_util.tree_flatten(xs)
    axis = Axis(shape_of(leaves[0])[0])
    out_tree: Any = None

    def flat(*args):
        nonlocal out_tree
        outs, out_tree = tree_util.tree_flatten(f(tree.unflatten(args)))
        return outs

    outs, dims = batch(flat, axis, leaves, [0] * len(leaves))
    return out_tree.unflatten([batch_to(axis, x, d) for x, d in zip(outs, dims, strict=True)])


@entry_point
def associative_scan(
    fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of an associative operation, in a number of steps that grows as log n.

    Args:
        fn: an associative function `(a, b) -> c` on trees of arrays, for many pairs at once.
        elems: a tree of arrays with axes of equal length.
        reverse: take suffixes instead.
        axis: the axis to scan along.

    Returns:
        a tree like `elems`, whose i-th slices combine the first i + 1 of `elems`.

    Example:
        >>> import namoo.numpy as jnp
        >>> associative_scan(jnp.add, jnp.arange(1, 5))
        Array([ 1,  3,  6, 10], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_util.tree_flatten(elems)
    if not leaves:
        return elems
    ndim = len(shape_of(leaves[0]))
    if not -ndim <= axis < ndim:
        raise ValueError(f"associative_scan: axis {axis} is out of range for {ndim} dimensions")
    axis %= ndim
    sizes = {shape_of(x)[axis] for x in leaves}
    if len(sizes) > 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same length along the scanned axis, "
            f"got shapes {[shape_of(x) for x in leaves]}."
        )
    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]

    def combine(a, b):
        outs, out_tree = tree_util.tree_flatten(fn(tree.unflatten(a), tree.unflatten(b)))
        if out_tree != tree:
            raise ValueError(
                "associative_scan: fn must return a tree of the structure of elems, "
                f"{tree}, got {out_tree}."
            )
        return outs

    def part(xs, start, stop, stride=1):
        return [slice_in_dim(x, start, stop, stride, axis) for x in xs]

    def prefixes(xs):
        n = shape_of(xs[0])[axis]
        if n < 2:
            return xs
        pairs = combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2))
        odd = prefixes(pairs)
        stop = shape_of(odd[0])[axis] - (n % 2 == 0)
        even = combine(part(odd, 0, stop), part(xs, 2, n, 2))
        even = [concatenate([a, b], axis) for a, b in zip(part(xs, 0, 1), even, strict=True)]
        return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]

    out = prefixes(leaves)
    if reverse:
        out = [rev(x, (axis,)) for x in out]
    return tree.unflatten(out)


def _interleave(a, b, axis):
    """Interleave the elements of a and b; a has as many as b, or one more."""
    na, nb = shape_of(a)[axis], shape_of(b)[axis]

    def spread(x, before, after):
        widths = [(0, 0, 0)] * len(shape_of(x))
        widths[axis] = (before, after, 1)
        return pad(x, np.zeros((), aval_of(x).dtype), widths)

    a, b = spread(a, 0, na == nb), spread(b, 1, na != nb)
    return maximum(a, b) if aval_of(a).dtype == np.bool_ else add(a, b)
