"""`sparsify`: apply functions of dense arrays to sparse ones.

The function is traced for dense arrays of the same shapes. Its program is then evaluated equation
by equation, with sparse arrays where there are any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from namoo import lax, tree_util
from namoo._base.source_context import at_user_line
from namoo.api.grad import value_and_grad as dense_value_and_grad
from namoo.control.call import jit_p
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Jaxpr, Literal, literal_value
from namoo.experimental.sparse.arrange import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    divided,
)
from namoo.experimental.sparse.array import (
    BCOO,
    bcoo_dot_general,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_transpose,
)
from namoo.experimental.sparse.bcsr import BCSR
from namoo.transforms.arguments import require_callable
from namoo.transforms.stage import stage


def _is_sparse(x: Any) -> bool:
    return isinstance(x, (BCOO, BCSR))


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """Return a function of sparse arrays, given one written for dense arrays.

    Args:
        f: a function of trees of arrays. It may use sums and differences, products with dense and
            sparse arrays, functions that are 0 at 0, sums over axes, and operations that move
            elements.
        use_tracer: has no effect.

    Returns:
        the function on trees that hold `BCOO` too; its results are sparse where they can be.

    Raises:
        NotImplementedError: an operation whose result is not sparse; the message names it.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> import namoo.numpy as jnp
        >>> f = sparsify(lambda x, v: (2 * x).T @ v)
        >>> f(eye(2), jnp.arange(2.0))
        Array([0., 2.], dtype=float32)
    """
    require_callable(f, "sparsify")

    @functools.wraps(f)
    def sparse_f(*args, **kwargs):
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse)
        leaves = [x.to_bcoo() if isinstance(x, BCSR) else x for x in leaves]
        avals = [
            ShapedArray(x.shape, x.dtype) if isinstance(x, BCOO) else aval_of(x) for x in leaves
        ]
        out_tree: Any = None

        def flat(*tracers):
            nonlocal out_tree
            inner_args, inner_kwargs = tree.unflatten(tracers)
            outs, out_tree = tree_util.tree_flatten(f(*inner_args, **inner_kwargs))
            return outs

        jaxpr, consts = stage(flat, avals, getattr(f, "__name__", "sparsify"), how="sparsify")
        return out_tree.unflatten(_run(jaxpr, consts, leaves))

    return sparse_f


def _run(jaxpr: Jaxpr, consts: Any, args: Any) -> list[Any]:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom):
        return literal_value(atom) if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        operands = [read(a) for a in eqn.invars]
        if not any(isinstance(x, BCOO) for x in operands):
            outs = eqn.primitive.bind(*operands, **eqn.params)
        elif eqn.primitive is jit_p:
            inner = eqn.params["jaxpr"]
            outs = _run(inner.jaxpr, inner.consts, operands)
        else:
            rule = _RULES.get(eqn.primitive.name)
            if rule is None:
                where = f"\n  at {eqn.source}" if eqn.source is not None else at_user_line()
                raise NotImplementedError(
                    f"sparse rule for {eqn.primitive.name} is not implemented: its result for a "
                    "sparse array is not sparse, or not known to be. Use .todense() before it."
                    + where
                )
            outs = rule(*operands, **eqn.params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _unique(mat: BCOO) -> BCOO:
    """Return the array with every element stored once, because f(a + b) is not f(a) + f(b)."""
    return mat if mat.unique_indices else mat.sum_duplicates(nse=mat.nse, remove_zeros=False)


def _elementwise(name: str) -> Callable[..., BCOO]:
    fun = getattr(lax, name)
    return lambda x, **params: (lambda m: m._with(fun(m.data)))(_unique(x))


def _linear(name: str) -> Callable[..., BCOO]:
    fun = getattr(lax, name)
    return lambda x, **params: x._with(fun(x.data))


def _dense(x: Any) -> Any:
    return x.todense() if isinstance(x, BCOO) else x


def _add(x: Any, y: Any) -> Any:
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return x + y
    return lax.add(_dense(x), _dense(y))


def _sub(x: Any, y: Any) -> Any:
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return x - y
    return lax.sub(_dense(x), _dense(y))


def _mul(x: Any, y: Any) -> Any:
    return x * y if isinstance(x, BCOO) else y * x


def _div(x: Any, y: Any) -> Any:
    if isinstance(y, BCOO):
        raise NotImplementedError(
            "Division by a sparse array divides by its zeros: call .todense() on it."
        )
    return divided(x, y)


def _integer_pow(x: BCOO, *, y: int) -> BCOO:
    if y <= 0:
        raise NotImplementedError(
            f"x ** {y} of a sparse array is not sparse: call .todense() on it."
        )
    x = _unique(x)
    return x._with(lax.integer_pow(x.data, y))


def _concatenate(*operands: Any, dimension: int) -> BCOO:
    like = next(x for x in operands if isinstance(x, BCOO))
    parts = [
        x
        if isinstance(x, BCOO)
        else BCOO.fromdense(x, nse=x.size, n_batch=like.n_batch, n_dense=like.n_dense)
        for x in operands
    ]
    return bcoo_concatenate(parts, dimension=dimension)


_RULES: dict[str, Callable[..., Any]] = {
    **{
        name: _elementwise(name)
        for name in (
            "abs asin asinh atan atanh bessel_i1e cbrt ceil erf expm1 floor log1p sign sin sinh "
            "sqrt square tan tanh"
        ).split()
    },
    **{name: _linear(name) for name in ("conj", "imag", "neg", "real")},
    "copy": lambda x: x,
    "convert_element_type": lambda x, *, new_dtype, **params: _unique(x).astype(new_dtype),
    "integer_pow": _integer_pow,
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "dot_general": lambda x, y, *, dimension_numbers, preferred_element_type=None, **params: (
        bcoo_dot_general(
            x,
            y,
            dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
        )
    ),
    "transpose": lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    "reshape": lambda x, *, new_sizes, **params: bcoo_reshape(x, new_sizes=new_sizes),
    "reduce_sum": lambda x, *, axes, **params: bcoo_reduce_sum(x, axes=axes),
    "squeeze": lambda x, *, dimensions: bcoo_squeeze(x, dimensions=dimensions),
    "rev": lambda x, *, dimensions: bcoo_rev(x, dimensions),
    "slice": lambda x, *, start_indices, limit_indices, strides=None: bcoo_slice(
        x, start_indices=start_indices, limit_indices=limit_indices, strides=strides
    ),
    "dynamic_slice": lambda x, *starts, slice_sizes: bcoo_dynamic_slice(x, starts, slice_sizes),
    "concatenate": _concatenate,
    "broadcast_in_dim": lambda x, *, shape, broadcast_dimensions, **params: bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions
    ),
}


def value_and_grad(
    fun: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, **options: Any
) -> Callable:
    """Like `namoo.value_and_grad`, for functions of sparse arrays.

    The derivative with respect to a sparse array is a sparse array with the same indices: only
    stored elements are differentiated.

    Args:
        fun: a function of trees that may hold `BCOO` and `BCSR`, with a scalar result.
        argnums: the arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair of the scalar and something else.
        options: `holomorphic`, `allow_int` and the like.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> import namoo.numpy as jnp
        >>> f = lambda m, v: jnp.sum((m @ v) ** 2)
        >>> value_and_grad(f)(eye(2), jnp.arange(2.0))[1].data
        Array([0., 2.], dtype=float32)
    """
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    def evaluate(*args, **kwargs):
        numbers = [i % len(args) for i in chosen]
        given = tuple(args[i] for i in numbers)
        leaves, tree = tree_util.tree_flatten(given, is_leaf=_is_sparse)
        data = [x.data if _is_sparse(x) else x for x in leaves]

        def rebuilt(values):
            return tree.unflatten(
                [
                    _with_data(x, v) if _is_sparse(x) else v
                    for x, v in zip(leaves, values, strict=True)
                ]
            )

        def of_data(data):
            full = list(args)
            for i, x in zip(numbers, rebuilt(data), strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        value, slopes = dense_value_and_grad(of_data, has_aux=has_aux, **options)(data)
        out = rebuilt(slopes)
        return value, out[0] if isinstance(argnums, int) else out

    return evaluate


def _with_data(mat: Any, data: Any) -> Any:
    children, tree = tree_util.tree_flatten(mat)
    return tree.unflatten([data, *children[1:]])


def grad(
    fun: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, **options: Any
) -> Callable:
    """Like `namoo.grad`, for functions of sparse arrays; see `value_and_grad`.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> import namoo.numpy as jnp
        >>> grad(lambda m: jnp.sum(m.todense() ** 2))(eye(2)).data
        Array([2., 2.], dtype=float32)
    """
    evaluate = value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun)
    def slope(*args, **kwargs):
        value, slopes = evaluate(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return slope


def _getitem(self: BCOO, index: Any) -> Any:
    return sparsify(lambda x: x[index])(self)


def _pow(self: BCOO, power: Any) -> Any:
    return sparsify(lambda x: x**power)(self)


BCOO.__getitem__ = _getitem
BCOO.__abs__ = sparsify(abs)
BCOO.__pow__ = _pow
