"""Solutions that are differentiated by what they solve: `custom_linear_solve`, `custom_root`.

How a solution was found does not matter to its derivative.  From A x = b follows
A dx = db - dA x, and from f(x, θ) = 0 follows ∂f/∂x dx = -∂f/∂θ dθ: again linear equations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from namoo import tree_util
from namoo._base.source_context import entry_point
from namoo.control.scan import cut
from namoo.control.trees import leaf_avals
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr, jaxpr_as_fun
from namoo.core.primitive import Zero, is_linear, is_zero
from namoo.primitives.arithmetic import neg, sub
from namoo.primitives.shape import instantiate, zeros
from namoo.transforms.batch import batch_jaxpr, batch_to, to_front
from namoo.transforms.custom import custom_jvp
from namoo.transforms.jvp import jvp, jvp_jaxpr
from namoo.transforms.linear import linearize
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import stage_closed
from namoo.transforms.staged import Staged, with_consts
from namoo.transforms.transpose import transpose_jaxpr


class Solve(NamedTuple):
    """One item for each program of a linear solve: the product with the matrix and with its
    transpose, and the solution with each; the transposed ones may be missing."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> Solve:
        return Solve(self.vecmat, self.matvec, self.transpose_solve, self.solve)


class LinearSolve(ProgramPrimitive):
    """The solution x of A x = b; operands are the constants of each program, and then b.

    Results after those for x are auxiliary data of the solver.
    """

    name = "custom_linear_solve"

    def evaluate(self, *values, const_lengths, jaxprs):
        *consts, b = cut(values, *const_lengths)
        return self.executable(jaxprs.solve)([*Solve(*consts).solve, *b])

    def native(self, emit, *operands, const_lengths, jaxprs):
        *consts, b = cut(operands, *const_lengths)
        return emit.inline(jaxprs.solve, [*Solve(*consts).solve, *b])

    def stablehlo(self, hlo, *operands, const_lengths, jaxprs):
        *consts, b = cut(operands, *const_lengths)
        return hlo.call(jaxprs.solve, [*Solve(*consts).solve, *b], "solve")

    def abstract(self, *avals, jaxprs, **rest):
        return jaxprs.solve.out_avals

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["jaxprs"].solve.out_avals]

    def jvp(self, primals, tangents, *, const_lengths, jaxprs):
        *consts, b = cut(primals, *const_lengths)
        *const_tangents, b_dot = cut(tangents, *const_lengths)
        outs = self.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
        x, aux = outs[: len(b)], outs[len(b) :]
        dots = Solve(*const_tangents).matvec
        nonzeros = [not is_zero(t) for t in dots]
        if any(nonzeros):
            program, nonzero_out = jvp_jaxpr(jaxprs.matvec, [*nonzeros, *[False] * len(x)])
            given = [t for t in dots if not is_zero(t)]
            moved = iter(jaxpr_as_fun(program)(*Solve(*consts).matvec, *x, *given)[len(b) :])
            b_dot = [
                _difference(t, next(moved)) if nz else t
                for t, nz in zip(b_dot, nonzero_out, strict=True)
            ]
        x_dot: list[Any] = [Zero.of(v) for v in x]
        if not all(map(is_zero, b_dot)):
            args = [*(c for group in consts for c in group), *map(instantiate, b_dot)]
            x_dot = self.bind(*args, const_lengths=const_lengths, jaxprs=jaxprs)[: len(b)]
        return outs, [*x_dot, *map(Zero.of, aux)]

    def transpose(self, cts, *operands, const_lengths, jaxprs):
        *consts, b = cut(operands, *const_lengths)
        if jaxprs.transpose_solve is None:
            raise TypeError(
                "transpose_solve required for backwards mode automatic differentiation (grad, vjp) "
                "of custom_linear_solve. Pass transpose_solve=..., or symmetric=True if the matrix "
                "is."
            )
        unknown = [None] * (len(operands) - len(b))
        cts = cts[: len(b)]
        if all(map(is_zero, cts)):
            return [*unknown, *(Zero(x.aval.tangent()) if is_linear(x) else None for x in b)]
        known = [c for group in Solve(*consts).transposed() for c in group]
        outs = self.bind(
            *known,
            *map(instantiate, cts),
            const_lengths=const_lengths.transposed(),
            jaxprs=jaxprs.transposed(),
        )
        return [*unknown, *outs[: len(b)]]

    def batch(self, xs, dims, *, axis, const_lengths, jaxprs):
        xs, batched = to_front(xs, dims)
        *flags, b_batched = cut(batched, *const_lengths)
        *consts, b = cut(xs, *const_lengths)
        b = [batch_to(axis, x, 0 if flag else None) for x, flag in zip(b, b_batched, strict=True)]
        programs = [
            None if p is None else batch_jaxpr(p, axis, [*own, *[True] * len(b)], force=True)[0]
            for p, own in zip(jaxprs, flags, strict=True)
        ]
        known = [c for group in consts for c in group]
        outs = self.bind(*known, *b, const_lengths=const_lengths, jaxprs=Solve(*programs))
        return outs, [0] * len(outs)


linear_solve_p = LinearSolve()


def _difference(t: Any, moved: Any) -> Any:
    return neg(moved) if is_zero(t) else sub(t, moved)


def _check_output(what: str, out: Any, tree: Any, wanted: list[Any]) -> None:
    found, out_tree = tree_util.tree_flatten(out)
    if out_tree != tree:
        raise TypeError(
            f"custom_linear_solve: {what}() output pytree structure must match b, got {out_tree} "
            f"and {tree}."
        )
    if [a.shape for a in found] != [a.shape for a in wanted]:
        raise ValueError(
            f"custom_linear_solve: {what}() output shapes must match b, got "
            f"{[a.shape for a in found]} and {[a.shape for a in wanted]}."
        )


@entry_point
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear equation `matvec(x) = b` by a method of your own, differentiably.

        A dx = db - dA x

    The method is not differentiated; derivatives are solutions of further equations with the same
    matrix (forward mode), or its transpose (reverse mode).

    Args:
        matvec: a linear function of a tree like `b`: the product with the matrix.
        b: the right side, a tree of arrays.
        solve: a function `(matvec, b) -> x`.
        transpose_solve: a function `(vecmat, b) -> x` that solves with the transpose; needed for
          reverse mode.
        symmetric: the matrix is its own transpose, so `solve` serves for both.
        has_aux: `solve` and `transpose_solve` return pairs `(x, auxiliary data)`.

    Returns:
        the solution, a tree like `b`; with `has_aux` a pair.

    Raises:
        ValueError: `matvec` or `solve` returns other shapes than those of `b`.
        TypeError: one of them returns a tree of another structure than `b`; or, in reverse mode,
          there is no `transpose_solve`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> halve = lambda matvec, b: b / 2
        >>> solve = lambda a, b: custom_linear_solve(lambda x: a * x, b, halve, halve)
        >>> namoo.grad(solve)(2.0, 6.0)
        Array(-1.5, dtype=float32, weak_type=True)
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    avals = leaf_avals(b, "the right side b of custom_linear_solve")
    leaves, tree = tree_util.tree_flatten(b)
    in_tree = tree_util.treedef_tuple([tree])
    product = Staged(matvec, in_tree, avals, "custom_linear_solve")
    _check_output("matvec", product.out_types(), tree, avals)
    products, consts = ClosedJaxpr(with_consts(product.jaxpr)), product.consts

    def stage_solver(solver, own_matvec, name):
        staged = Staged(functools.partial(solver, own_matvec), in_tree, avals, name)
        out = staged.out_types()
        if has_aux:
            if not (isinstance(out, (tuple, list)) and len(out) == 2):
                raise ValueError(
                    f"custom_linear_solve: with has_aux=True {name}() must return a pair (x, "
                    f"auxiliary data), got {type(out).__name__}."
                )
            out = out[0]
        _check_output(name, out, tree, avals)
        return staged

    forward = stage_solver(solve, matvec, "solve")
    programs = Solve(products, None, ClosedJaxpr(with_consts(forward.jaxpr)), None)
    lengths = Solve(len(consts), 0, len(forward.consts), 0)
    operands = [*consts, *forward.consts]
    if transpose_solve is not None:
        transposed = products if symmetric else _transposed(products, len(consts))

        def vecmat(x):
            outs = jaxpr_as_fun(transposed)(*consts, *tree_util.tree_leaves(x))
            return tree.unflatten(outs)

        back = stage_solver(transpose_solve, matvec if symmetric else vecmat, "transpose_solve")
        programs = programs._replace(
            vecmat=transposed, transpose_solve=ClosedJaxpr(with_consts(back.jaxpr))
        )
        lengths = lengths._replace(vecmat=len(consts), transpose_solve=len(back.consts))
        operands = [*consts, *consts, *forward.consts, *back.consts]
    outs = linear_solve_p.bind(*operands, *leaves, const_lengths=lengths, jaxprs=programs)
    n = len(leaves)
    if not has_aux:
        return tree.unflatten(outs)
    _, aux_tree = forward.out_tree.children()
    return tree.unflatten(outs[:n]), aux_tree.unflatten(outs[n:])


def _transposed(products: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """The program of the product with the transpose, constants first."""
    avals = products.in_avals[num_consts:]
    linear = [False] * num_consts + [True] * len(avals)
    program, nonzero = transpose_jaxpr(products, linear, [True] * len(products.out_avals))

    def fun(*args):
        outs = iter(jaxpr_as_fun(program)(*args))
        return [next(outs) if nz else zeros(a) for nz, a in zip(nonzero, avals, strict=True)]

    return stage_closed(fun, program.in_avals, products.jaxpr.name)


@entry_point
def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of `f` by a method of your own, differentiably.

        ∂f/∂x dx = -∂f/∂θ dθ    where f closes over θ

    The method is not differentiated: derivatives follow from `f` being zero at the root.

    Args:
        f: a function of a tree of arrays that returns a tree of the same structure.
        initial_guess: where the method starts; the result does not depend on it.
        solve: a function `(f, initial_guess) -> x` with f(x) = 0.
        tangent_solve: a function `(g, y) -> x` that solves the linear equation g(x) = y.
        has_aux: `solve` returns a pair `(x, auxiliary data)`.

    Returns:
        the root; with `has_aux` a pair.

    Raises:
        TypeError: `f`, `solve` or `tangent_solve` returns another structure than that of the guess.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> def square_root(a):
        ...     f = lambda x: x**2 - a
        ...     solve = lambda f, x: jnp.sqrt(a)
        ...     return custom_root(f, a, solve, lambda g, y: y / g(1.0))
        >>> namoo.grad(square_root)(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    avals = leaf_avals(initial_guess, "the initial guess of custom_root")
    guess, tree = tree_util.tree_flatten(initial_guess)
    in_tree = tree_util.treedef_tuple([tree])
    n = len(guess)

    def check(what, found, wanted="initial_guess"):
        if found != tree:
            raise TypeError(
                f"custom_root: {what}() output pytree structure must match {wanted}, got {found} "
                f"and {tree}."
            )

    equation = Staged(f, in_tree, avals, "custom_root")
    check("f", equation.out_tree)
    method = Staged(functools.partial(solve, f), in_tree, avals, "solve")
    out_tree = method.out_tree
    if has_aux:
        parts = out_tree.children()
        if len(parts) != 2:
            raise TypeError(
                "custom_root: with has_aux=True solve() must return a pair (x, auxiliary data), "
                f"got a result of structure {out_tree}."
            )
        check("solve", parts[0])
    else:
        check("solve", out_tree)

    # Only inexact values have tangents: derivatives with respect to integers are float0.
    moves = [a.tangent().dtype == a.dtype for a in avals]

    def linear_solution(x, y):
        """The solution of ∂f/∂x dx = y at the root x."""
        values = tree_util.tree_leaves(x)
        _, _, linear, residuals = linearize(
            lambda *v: eval_jaxpr(equation.jaxpr, equation.consts, *v), values, moves, force=moves
        )

        def g(y):
            given = [t for t, m in zip(tree_util.tree_leaves(y), moves, strict=True) if m]
            return tree.unflatten(_full(moves, values, eval_jaxpr(linear, residuals, *given)))

        return tangent_solve(g, y)

    # It may close over values that are being differentiated, so those are made operands.
    tangent = Staged(
        linear_solution,
        tree_util.treedef_tuple([tree, tree]),
        [*avals, *(a.tangent() for a in avals)],
        "tangent_solve",
    )
    check("tangent_solve", tangent.out_tree, "x")

    @custom_jvp
    def root(consts, method_consts, tangent_consts, guess):
        return eval_jaxpr(method.jaxpr, method_consts, *guess)

    @root.defjvp
    def root_jvp(primals, tangents):
        consts, consts_dot = primals[0], tangents[0]
        outs = root(*primals)
        x = outs[:n]
        _, rhs = jvp(
            lambda *values: eval_jaxpr(equation.jaxpr, values, *x),
            consts,
            [_symbolic(c, t) for c, t in zip(consts, consts_dot, strict=True)],
        )
        x_dot = eval_jaxpr(tangent.jaxpr, primals[2], *x, *map(instantiate, rhs))
        x_dot = [neg(t) if m else t for t, m in zip(x_dot, moves, strict=True)]
        return outs, [*x_dot, *(zeros(aval_of(a).tangent()) for a in outs[n:])]

    outs = root(equation.consts, method.consts, tangent.consts, guess)
    return out_tree.unflatten(outs)


def _full(moves: list[bool], x: list[Any], tangents: list[Any]) -> list[Any]:
    rest = iter(tangents)
    return [next(rest) if m else zeros(aval_of(v).tangent()) for m, v in zip(moves, x, strict=True)]


def _symbolic(x: Any, t: Any) -> Any:
    """The tangent of a constant; that of an integer is a symbolic zero."""
    zero = Zero.of(x)
    return t if zero.aval.dtype == aval_of(x).dtype else zero
