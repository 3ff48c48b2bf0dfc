"""Dynamic dimensions: one program of `jit` for all sizes of marked axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from namoo import tree_util
from namoo._base.caches import cached
from namoo._base.source_context import raised_at
from namoo.core.array import PlacedArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.dimensions.expression import DimExpr, is_symbolic_dim
from namoo.dimensions.parsing import Parser
from namoo.dimensions.scope import SymbolicScope
from namoo.dimensions.solving import Equation, solve
from namoo.errors import InconclusiveDimensionOperation
from namoo.transforms.arguments import argument_names, argument_paths, is_array, signature
from namoo.transforms.refs import Ref
from namoo.tree.compare import broadcast_prefix

Marks = dict[int, Any]
"""The marked axes of an array, each with its symbolic size."""


class Found(NamedTuple):
    """The arguments of a call, as a dynamic program sees them.

    Attributes:
        leaves: the arguments' leaves; those with marked axes are types with symbolic sizes.
        sizes: the size of each dimension variable.
    """

    leaves: list[Any]
    sizes: tuple[tuple[str, int], ...]

    def shapes(self) -> list[Any]:
        """The shapes of the leaves with marked axes, with -1 - k as the size of variable k."""
        numbers = {name: -1 - k for k, (name, _) in enumerate(self.sizes)}
        return [
            tuple(numbers[str(n)] if is_symbolic_dim(n) else n for n in x.shape)
            if type(x) is ShapedArray and any(map(is_symbolic_dim, x.shape))
            else None
            for x in self.leaves
        ]


@cached("api.dynamic scope of names", bound=1, keyed_by="nothing", kept=True)
def _scope_of_names() -> SymbolicScope:
    """The scope of names given as strings: it is one, so that functions can share programs."""
    return SymbolicScope()


class Dynamic:
    """The dynamic dimensions of a function.

    Args:
        fun: the function.
        marks: the marked axes, by the name of the argument: `{0: "b"}`, a symbolic shape such as
            "b, _", or a tree of these that is a prefix of the argument.
        static: the positions of static arguments.
    """

    def __init__(self, fun: Callable, marks: Mapping[str, Any], static: Sequence[int]):
        if not isinstance(marks, Mapping):
            raise TypeError(
                "jit: dynamic must be a dictionary of argument names, such as "
                f'dynamic={{"x": {{0: "b"}}}}, got {marks!r}.'
            )
        self.fun, self.marks, self.static = fun, dict(marks), static
        _require_arguments(fun, self.marks)
        given = {d.scope for d in tree_util.tree_leaves(self.marks) if is_symbolic_dim(d)}
        if len(given) > 1:
            raise ValueError(
                "jit: the dimensions of dynamic= have different scopes; make them with one call of "
                "symbolic_shape, or pass scope=."
            )
        self.scope: SymbolicScope = given.pop() if given else _scope_of_names()
        self.key = _frozen(self.marks)
        self._known: dict[Any, list[Marks | None]] = {}
        self.simple = not self.scope.stated
        """Whether calls are recognised by sizes that are at least 1 and equal where names are."""

    def find(
        self, leaves: Sequence[Any], tree: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Found | None:
        """Find the sizes of a call; None if it needs a program for its own sizes.

        That is so for sizes of 0, for those that the constraints exclude, for arrays on devices
        and for references.

        Raises:
            ValueError: an argument does not have the marked axes, or the sizes contradict.
        """
        for x in leaves:
            if type(x) is PlacedArray or isinstance(x, Ref):
                return None
        marks = self._marks(leaves, tree, args, kwargs)
        sizes: dict[str, int] = {}
        types, equations = list(leaves), []
        for i, axes in enumerate(marks):
            if not axes:
                continue
            aval = aval_of(leaves[i])
            shape = list(aval.shape)
            for axis, dim in axes.items():
                n = shape[axis]
                if is_symbolic_dim(n):
                    return None
                if n < 1:
                    return None
                equations.append((dim, n, i, axis))
                shape[axis] = dim
            types[i] = aval.update(shape=tuple(shape))
        for dim, n, _, _ in equations:
            if len(dim.terms) > 1 or not str(dim).isidentifier():
                self.simple = False
            if dim.variables() == {str(dim)} and sizes.setdefault(str(dim), n) != n:
                self._refuse_sizes(equations, str(dim), args, kwargs)
        if len(sizes) < len(equations) or self.scope.stated:
            named = [
                Equation(dim, n, f"{self._path(i, args, kwargs)}.shape[{axis}]")
                for dim, n, i, axis in equations
            ]
            if not self._allowed(sizes):
                return None
            sizes = solve(named, ", ".join(str(d) for d, *_ in equations))
        return Found(types, tuple(sorted(sizes.items())))

    def _allowed(self, sizes: Mapping[str, int]) -> bool:
        """Whether sizes satisfy the constraints that are about them."""
        for _, sign, difference in self.scope.stated:
            if isinstance(difference, DimExpr) and difference.variables() <= sizes.keys():
                value = difference.evaluate(sizes)
                if value < 0 or sign == "==" and value != 0:
                    return False
        return True

    def _path(self, i: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        return argument_paths(self.fun, args, dict(kwargs))[i]

    def _refuse_sizes(self, equations, name: str, args, kwargs) -> None:
        found = [
            f"{self._path(i, args, kwargs)}.shape[{axis}] is {n}"
            for dim, n, i, axis in equations
            if str(dim) == name
        ]
        raise ValueError(
            f"jit(dynamic=...): the dimension {name!r} has several sizes: {', '.join(found)}. Give "
            "axes of different sizes different names."
        )

    def _marks(self, leaves, tree, args, kwargs) -> list[Marks | None]:
        """The marked axes of each leaf."""
        ranks = tuple([getattr(x, "ndim", 0) for x in leaves])
        try:
            return self._known[tree, ranks]
        except (KeyError, TypeError):
            pass
        count = len(args) + len(self.static)
        numbers = [i for i in range(count) if i not in {n % count for n in self.static if count}]
        names = argument_names(self.fun, range(count))
        given = [(self._spec(names[i]), names[i], x) for i, x in zip(numbers, args, strict=False)]
        given += [(self.marks.get(name), name, kwargs[name]) for name in sorted(kwargs)]
        paths = argument_paths(self.fun, args, dict(kwargs))
        out: list[Marks | None] = []
        for spec, name, value in given:
            title = f"jit: dynamic[{name!r}] does not fit the argument"
            spec = _completed(spec, value)
            for one in broadcast_prefix(spec, value, is_leaf=_is_mark, title=title):
                i = len(out)
                out.append(None if one is None else self._axes(one, leaves[i], paths[i]))
        if len(self._known) > 64:
            self._known.clear()
        self._known[tree, ranks] = out
        return out

    def _spec(self, name: str) -> Any:
        """What marks an argument; `args[1]` is the second of the arguments `*args`."""
        name, _, number = name.partition("[")
        spec = self.marks.get(name)
        if number and isinstance(spec, (list, tuple)) and not _is_mark(spec):
            place = int(number[:-1])
            return spec[place] if place < len(spec) else None
        return spec

    def _axes(self, spec: Any, leaf: Any, path: str) -> Marks:
        """The marked axes of an array, from what marks them."""
        if not is_array(leaf):
            raise TypeError(f"jit: dynamic marks axes of {path}, which is {type(leaf).__name__}.")
        shape = aval_of(leaf).shape
        if isinstance(spec, str):
            spec = Parser(spec, self.scope, shape).shape()
        if isinstance(spec, tuple):
            if len(spec) != len(shape):
                raise ValueError(
                    f"jit: dynamic gives {path} {len(spec)} axes, and it has {len(shape)}."
                )
            spec = {i: d for i, d in enumerate(spec) if is_symbolic_dim(d)}
        axes: Marks = {}
        for axis, dim in spec.items():
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"jit: dynamic marks axis {axis} of {path}, which has the shape {shape}."
                )
            if isinstance(dim, str):
                dim = Parser(dim, self.scope).expression_only()
            if not is_symbolic_dim(dim):
                raise TypeError(
                    f"jit: dynamic gives axis {axis} of {path} the name {dim!r}; names are strings "
                    "such as 'b'."
                )
            axes[axis % len(shape)] = dim
        return axes

    def refusal(self, error: InconclusiveDimensionOperation) -> InconclusiveDimensionOperation:
        """The error for a program that depends on a size: it names the user's line."""
        source = raised_at(error)
        where = (
            f"\n  at {source}" + (f"\n    {source.code}" if source.code else "") if source else ""
        )
        first = str(error).split("\n")[0].rstrip(".")
        return InconclusiveDimensionOperation(
            f"{first}: one program cannot serve all sizes, because this line decides by a size."
            f"{where}\nTo decide while the program runs, make the size an array, "
            "jnp.asarray(x.shape[0]), and use jnp.where, lax.cond or lax.fori_loop. To decide "
            "once, state what holds for all sizes: b, = namoo.export.symbolic_shape('b', "
            'constraints=["b >= 8"]) and dynamic={"x": {0: b}}. Or leave the dimension out of '
            "dynamic=: then each size has a program."
        )


def _is_mark(x: Any) -> bool:
    """Whether a part of a specification is about arrays, and not a tree of specifications."""
    if x is None or isinstance(x, str):
        return True
    if isinstance(x, dict):
        return bool(x) and all(type(k) is int for k in x) and not any(map(_is_tree, x.values()))
    return isinstance(x, tuple) and any(map(is_symbolic_dim, x))


def _completed(spec: Any, value: Any) -> Any:
    """A specification with None for the entries of dictionaries that it leaves out."""
    if _is_mark(spec) or not isinstance(spec, dict) or not isinstance(value, dict):
        return spec
    return {**spec, **{k: _completed(spec.get(k), v) for k, v in value.items()}}


def _is_tree(x: Any) -> bool:
    return x is None or isinstance(x, (dict, list, tuple))


def _frozen(x: Any) -> Any:
    """A hashable key of a specification."""
    if isinstance(x, Mapping):
        return tuple((k, _frozen(v)) for k, v in x.items())
    if isinstance(x, (list, tuple)):
        return tuple(map(_frozen, x))
    return x


def _require_arguments(fun: Callable, marks: Mapping[str, Any]) -> None:
    """Raise if a function has no argument of a name."""
    sig = signature(fun)
    if sig is None:
        return
    parameters = sig.parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in marks:
        if name not in parameters:
            known = ", ".join(parameters)
            raise ValueError(
                f"jit: dynamic names the argument {name!r}, which {getattr(fun, '__name__', fun)} "
                f"does not have. Its arguments are {known}."
            )
