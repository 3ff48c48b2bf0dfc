"""Einstein's summation: any product of tensors, written with letters.

`opt_einsum` chooses the order of the products, or NumPy where it is not installed; each of them
becomes one `dot_general`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import array_of, as_type
from namoo.numpy.reductions import refuse_out
from namoo.primitives import shape as lax
from namoo.primitives.contract import dot_general
from namoo.primitives.reduction import reduce_or
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.slicing import slice_in_dim

Step = tuple[tuple[int, ...], str]


def _optimizer(optimize: Any, count: int) -> Any:
    """The argument for `opt_einsum`; False means from left to right."""
    if optimize is True:
        return "optimal"
    return [(0, 1)] * (count - 1) if optimize is False and count > 1 else optimize


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
    _dot_general: Callable[..., Any] = dot_general,
) -> Array:
    """Multiply tensors, and sum over the axes whose letters are not in the result.

    Args:
        subscripts: letters for the axes of each operand, and of the result after '->', such as
            'ij,jk->ik'; '...' stands for any axes. Without '->' the letters that occur once, in
            alphabetic order, are kept. Or the first operand, followed by lists of integers.
        operands: the tensors.
        out: not supported.
        optimize: how the order of products is chosen: what `opt_einsum.contract_path` takes.
        precision, preferred_element_type: as for `dot`.
        out_sharding: the sharding of the result; it has no effect on one device.
        _dot_general: a function that computes the products instead of `lax.dot_general`.

    Raises:
        ValueError: letters that do not fit the operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> m = jnp.array([[1, 2], [3, 4]])
        >>> jnp.einsum("ij,j->i", m, jnp.array([1, 10])), jnp.einsum("ii", m)
        (Array([21, 43], dtype=int32), Array(5, dtype=int32))
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            einsum,
            subscripts,
            *operands,
            out=out,
            optimize=optimize,
            precision=precision,
            preferred_element_type=preferred_element_type,
            _dot_general=_dot_general,
        )
    refuse_out("einsum", out)
    options = {
        "optimize": optimize,
        "precision": precision,
        "preferred_element_type": preferred_element_type,
    }
    if _dot_general is dot_general:
        return _default_einsum(subscripts, *operands, **options)
    # A user's function is called every time: it may have side effects.
    return _einsum(subscripts, *operands, **options, product=_dot_general)


def _einsum(
    subscripts: Any,
    *operands: Any,
    optimize: Any,
    precision: Any,
    preferred_element_type: Any,
    product: Callable[..., Any] = dot_general,
) -> Array:
    if isinstance(subscripts, str):
        given = [array_of("einsum", x) for x in operands]
        text = _full_formula(subscripts, tuple(x.shape for x in given))
    else:
        text, given = _parsed(subscripts, operands)
    arrays = list(given)  # products take operands of different types
    if preferred_element_type is None:
        dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    else:
        dtype, weak = dtypes.check_user_dtype_supported(preferred_element_type, "einsum"), False
    key = optimize if isinstance(optimize, (str, bool)) else None
    shapes = tuple(x.shape for x in arrays)
    plan = _plan(text, shapes, key) if key is not None else _make_plan(text, shapes, optimize)
    for places, formula in plan:
        taken = [arrays.pop(i) for i in places]
        arrays.append(_contract(formula, taken, precision, dtype, product))
    return as_type(arrays[0], dtype, weak)


def _default_einsum(subscripts: Any, *operands: Any, **options: Any) -> Array:
    return _einsum(subscripts, *operands, **options)


def _parsed(subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, list[Array]]:
    """The formula in full, without '...', and the operands, from lists of integers."""
    items = [subscripts, *operands]
    count = len(items) // 2
    arrays = [array_of("einsum", x) for x in items[: 2 * count : 2]]
    lists = items[1 : 2 * count : 2]
    labels = sorted({n for axes in lists for n in axes if n is not Ellipsis})
    letters = {label: _letter(i) for i, label in enumerate(labels)} | {Ellipsis: "..."}
    text = ",".join("".join(letters[n] for n in axes) for axes in lists)
    if len(items) % 2:
        text += "->" + "".join(letters[n] for n in items[-1])
    return _full_formula(text, tuple(x.shape for x in arrays)), arrays


def _letter(i: int) -> str:
    return (string.ascii_letters + "".join(map(chr, range(192, 1000))))[i]


@cached("numpy.einstein formulas", bound=512, keyed_by="subscripts, shapes")
def _full_formula(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> str:
    """The formula with letters instead of '...', and with the letters of the result."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, "
            f"{len(shapes)}."
        )
    for term in (*terms, output):
        if not (letters := term.replace("...", "", 1)).isalpha() and letters:
            raise ValueError(f"einsum: '{term}' has characters that are not letters.")
    names = [letter for letter in map(_letter, range(200)) if letter not in text]
    more = [len(s) - len(t) + 3 if "..." in t else 0 for t, s in zip(terms, shapes, strict=True)]
    if min(more) < 0:
        i = more.index(min(more))
        raise ValueError(
            f"einsum: operand of shape {shapes[i]} has {len(shapes[i])} axes, but its subscripts "
            f"'{terms[i]}' have {len(terms[i]) - 3} and more."
        )
    rest = "".join(names[: max(more)])
    full = [t.replace("...", rest[len(rest) - n :]) for t, n in zip(terms, more, strict=True)]
    if arrow:
        output = output.replace("...", rest)
    else:
        letters = inputs.replace(",", "").replace(".", "")
        output = rest + "".join(n for n in sorted(letters) if letters.count(n) == 1)
    if len(set(output)) != len(output):
        raise ValueError(f"einsum: an axis occurs twice in the result '{output}' of '{text}'.")
    if not set(output) <= set("".join(full)):
        raise ValueError(f"einsum: a letter of the result '{output}' is in no operand of '{text}'.")
    return f"{','.join(full)}->{output}"


@cached("numpy.einstein plans", bound=512, keyed_by="formula, shapes, optimize")
def _plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[Step]:
    return _make_plan(text, shapes, optimize)


def _make_plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[Step]:
    """Which operands are multiplied in each step, and by which formula."""
    if len(shapes) < 3 and isinstance(optimize, (str, bool)):
        _check_sizes(text, shapes)
        return [(tuple(range(len(shapes)))[::-1], _flipped(text))]
    steps: Any
    try:
        import opt_einsum
    except ModuleNotFoundError:
        _check_sizes(text, shapes)
        return _numpy_plan(text, shapes, optimize)
    structs = [ShapeDtypeStruct(shape, "float32") for shape in shapes]
    _, steps = opt_einsum.contract_path(
        text, *structs, einsum_call=True, use_blas=True, optimize=_optimizer(optimize, len(shapes))
    )
    return [(tuple(step[0]), step[2]) for step in steps]


def _empty(shape: tuple[int, ...]) -> np.ndarray:
    """An array of a shape that takes no memory."""
    return np.broadcast_to(np.float32(0), shape)


def _numpy_plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[Step]:
    """The plan by the order that NumPy chooses."""
    order = _numpy_path(text, shapes, optimize)[0][1:]
    inputs, output = text.split("->")
    terms, steps = inputs.split(","), []
    for step, places in enumerate(order, 1):
        taken = tuple(sorted(places, reverse=True))
        used = [terms.pop(i) for i in taken]
        later = output + "".join(terms)
        kept = "".join(dict.fromkeys(n for n in "".join(used[::-1]) if n in later))
        kept = output if step == len(order) else kept
        terms.append(kept)
        steps.append((taken, f"{','.join(used)}->{kept}"))
    return steps


def _numpy_path(text: str, shapes: Sequence[tuple[int, ...]], optimize: Any) -> Any:
    optimize = _optimizer(optimize, len(shapes))
    if isinstance(optimize, list):
        optimize = ["einsum_path", *optimize]
    elif optimize not in ("greedy", "optimal"):
        optimize = "greedy"
    return np.einsum_path(text, *map(_empty, shapes), optimize=optimize)


def _flipped(text: str) -> str:
    """The formula with its operands in the order of multiplication: the last one first."""
    inputs, output = text.split("->")
    return f"{','.join(inputs.split(',')[::-1])}->{output}"


def _check_sizes(text: str, shapes: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[str, int] = {}
    inputs, output = text.split("->")
    terms = inputs.split(",")
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(
                f"einsum: operand of shape {shape} has {len(shape)} axes, but its subscripts "
                f"'{term}' have {len(term)}."
            )
        for letter, size in zip(term, shape, strict=True):
            known = sizes.get(letter, 1)
            if size != 1 and known not in (1, size):
                raise ValueError(
                    f"einsum: size of label '{letter}' for operand of shape {shape} is {size}, "
                    f"which does not match the size {known} it has elsewhere."
                )
            sizes[letter] = size if known == 1 else known
    for letter in output:
        if letter not in sizes:
            raise ValueError(f"einsum: output label '{letter}' is in no operand of '{text}'.")


def _contract(
    formula: str, taken: list[Array], precision: Any, dtype: Any, product: Callable[..., Any]
) -> Array:
    """One step: of one operand, or the product of two."""
    inputs, output = formula.split("->")
    terms = inputs.split(",")
    if len(taken) == 1:
        x, names = _on_diagonals(taken[0], terms[0])
        return _arranged(*_summed(x, names, output, dtype), output)
    if len(taken) > 2:
        first = _contract(
            f"{terms[0]},{terms[1]}->{_kept(terms, output)}", taken[:2], precision, dtype, product
        )
        rest = ",".join([_kept(terms, output), *terms[2:]])
        return _contract(f"{rest}->{output}", [first, *taken[2:]], precision, dtype, product)
    # In reverse order: the first operand of the formula is the left operand of the product.
    (y, y_names), (x, x_names) = (
        _on_diagonals(v, term) for v, term in zip(taken, terms, strict=True)
    )
    x, x_names, y, y_names = _without_ones(x, x_names, y, y_names)
    x, x_names = _summed(x, x_names, output + y_names, dtype)
    y, y_names = _summed(y, y_names, output + x_names, dtype)
    common = [n for n in x_names if n in y_names]
    batch, contracted = _split(common, output)
    numbers = tuple(
        tuple(tuple(names.index(n) for n in group) for names in (x_names, y_names))
        for group in (contracted, batch)
    )
    result = product(x, y, numbers, precision=precision, preferred_element_type=dtype)
    names = "".join(batch) + "".join(n for n in x_names + y_names if n not in common)
    return _arranged(result, names, output)


def _kept(terms: list[str], output: str) -> str:
    """The letters of the first two operands that are still needed after their product."""
    later = output + "".join(terms[2:])
    return "".join(dict.fromkeys(n for n in terms[0] + terms[1] if n in later))


def _split(common: list[str], output: str) -> tuple[list[str], list[str]]:
    return [n for n in common if n in output], [n for n in common if n not in output]


def _on_diagonals(x: Array, names: str) -> tuple[Array, str]:
    """Letters that occur twice mean the diagonal of their axes."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            n = x.shape[i]
            x = lax.moveaxis(lax.moveaxis(x, j, x.ndim - 1), i, x.ndim - 2)
            names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            # The diagonal is every (n + 1)-th element of the flattened matrix.
            x = lax.reshape(x, (*x.shape[:-2], n * n))
            x = slice_in_dim(x, 0, n * n, n + 1, axis=x.ndim - 1)
    return x, names


def _summed(x: Array, names: str, needed: str, dtype: Any) -> tuple[Array, str]:
    """Sum over the axes that nothing else needs, in the result's type where it is wider."""
    axes = [i for i, n in enumerate(names) if n not in needed]
    if not axes:
        return x, names
    if dtypes.result_type(x.dtype, dtype) != x.dtype:
        x = as_type(x, dtype)
    total = reduce_or(x, axes) if x.dtype == np.bool_ else lax.reduce_sum(x, axes)
    return total, "".join(n for n in names if n in needed)


def _without_ones(x, x_names, y, y_names):
    """Drop an axis of length 1 if a longer one has the same letter."""

    def dropped(v, names, w, others):
        axes = [
            i
            for i, n in enumerate(names)
            if n in others and v.shape[i] == 1 and w.shape[others.index(n)] != 1
        ]
        return lax.squeeze(v, axes), "".join(n for i, n in enumerate(names) if i not in axes)

    new_x = dropped(x, x_names, y, y_names)
    return *new_x, *dropped(y, y_names, x, x_names)


def _arranged(x: Array, names: str, output: str) -> Array:
    return lax.transpose(x, [names.index(n) for n in output])


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[Any, Any]:
    """The order in which `einsum` would multiply its operands.

    Args:
        subscripts, operands, optimize: as for `einsum`.

    Returns:
        A list of tuples of the operands' positions, and an object that prints as a report.

    Example:
        >>> import namoo.numpy as jnp
        >>> a, b, c = jnp.ones((2, 100)), jnp.ones((100, 3)), jnp.ones((3, 100))
        >>> jnp.einsum_path("ij,jk,kl->il", a, b, c)[0]
        [(0, 1), (0, 1)]
    """
    if isinstance(subscripts, str):
        arrays = [array_of("einsum_path", x) for x in operands]
        text = _full_formula(subscripts, tuple(x.shape for x in arrays))
    else:
        text, arrays = _parsed(subscripts, operands)
    try:
        import opt_einsum
    except ModuleNotFoundError:
        path, report = _numpy_path(text, [x.shape for x in arrays], optimize)
        return path[1:], report
    structs = [ShapeDtypeStruct(x.shape, "float32") for x in arrays]
    return opt_einsum.contract_path(text, *structs, optimize=_optimizer(optimize, len(arrays)))


attach_shortcuts(globals())
