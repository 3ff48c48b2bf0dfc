"""Programs: a jaxpr is a list of equations over variables, with inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from namoo._base.caches import per_program
from namoo._base.source_context import Source, replays_equations, source_context
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray
from namoo.core.pretty import format_eqn, format_jaxpr
from namoo.core.primitive import Primitive


class Var:
    """A variable of a program."""

    __slots__ = ("aval",)
    dropped = False

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Var({id(self) & 0xFFFF:x}:{self.aval.str_short()})"


class DropVar(Var):
    """A result that nothing uses."""

    __slots__ = ()
    dropped = True


class Literal:
    """A scalar constant written into an equation."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val: Any = val
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.str_short()}"


Atom = Var | Literal


class Effect:
    """A side effect of an operation; effects with the same name are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str | None = None):
        self.name: str = name or type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


Effects = Set[Effect]
no_effects: frozenset[Effect] = frozenset()


Primitive.effects_of = lambda self, eqn: frozenset([Effect(self.name)])


class JaxprEqn:
    """One operation, `outvars = primitive[params] invars`, and the user's line it comes from."""

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict[str, Any],
        source: Source | None = None,
    ):
        self.invars: list[Atom] = invars if type(invars) is list else list(invars)
        self.outvars: list[Var] = outvars if type(outvars) is list else list(outvars)
        self.primitive: Primitive = primitive
        self.params: dict[str, Any] = params
        self.source: Source | None = source

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields changed."""
        if "source_info" in changes:
            changes["source"] = changes["source_info"]
        fields = ("invars", "outvars", "primitive", "params", "source")
        return JaxprEqn(*(changes.get(name, getattr(self, name)) for name in fields))

    def known_source(self) -> list[Source | None] | None:
        """The user's line, in a list, if it holds for all operations that the equation binds."""
        return [self.source] if self.primitive.rules_are_pure and self.source is not None else None

    @property
    def effectful(self) -> bool:
        """Whether the equation must run even if its results are not used."""
        if self.primitive.effectful or self.primitive.rules_are_pure:
            return self.primitive.effectful
        return any(sub.effectful for sub in subjaxprs(self.params))

    @property
    def effects(self) -> Effects:
        """The effects of the operation and of the programs it holds, by the operations' names."""
        own = self.primitive.effects_of(self) if self.primitive.effectful else no_effects
        return own.union(*(sub.effects for sub in subjaxprs(self.params)))

    @property
    def source_info(self) -> Source | None:
        """JAX's name for `source`."""
        return self.source

    def __repr__(self) -> str:
        return format_eqn(self)


class DebugInfo(NamedTuple):
    """The function that a program was traced from, with JAX's fields; names may be unknown."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | Callable[[], tuple[str, ...]] | None = None


class Jaxpr:
    """A program.  `constvars` are inputs whose values `ClosedJaxpr` carries along."""

    __slots__ = ("_effectful", "cache", "constvars", "eqns", "invars", "name", "outvars")
    _is_immutable = True

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Effects = no_effects,
        debug_info: DebugInfo | None = None,
        name: str = "",
    ):
        # `effects` is there for compatibility with JAX: the effects follow from the equations.
        self.constvars: list[Var] = list(constvars)
        self.invars: list[Var] = list(invars)
        self.outvars: list[Atom] = list(outvars)
        self.eqns: list[JaxprEqn] = list(eqns)
        self.name: str = name if debug_info is None else debug_info.func_src_info
        self.cache: dict[Any, Any] = {}
        """Programs derived from this one; see `namoo._base.caches.per_program`."""
        self._effectful: bool | None = None

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def effectful(self) -> bool:
        if self._effectful is None:
            kinds = {eqn.primitive for eqn in self.eqns}
            kinds = {p for p in kinds if p.effectful or not p.rules_are_pure}
            found = [eqn for eqn in self.eqns if eqn.primitive in kinds] if kinds else ()
            self._effectful = any(eqn.effectful for eqn in found)
        return self._effectful

    @property
    def effects(self) -> Effects:
        """The effects of all equations."""
        return (
            no_effects.union(*(eqn.effects for eqn in self.eqns)) if self.effectful else no_effects
        )

    @property
    def debug_info(self) -> DebugInfo:
        """The function that the program was traced from."""
        return DebugInfo("jit", self.name, None, None)

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields changed."""
        fields = ("constvars", "invars", "outvars", "eqns", "name")
        kept = {name: changes.get(name, getattr(self, name)) for name in fields}
        return Jaxpr(**kept, debug_info=changes.get("debug_info"))

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.constvars, self.invars, self.outvars, self.eqns)
        return Jaxpr, (*fields, no_effects, None, self.name)

    def __repr__(self) -> str:
        return format_jaxpr(self)


class ClosedJaxpr:
    """A program together with the values of its constants."""

    __slots__ = ("consts", "jaxpr")
    _is_immutable = True

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        self.jaxpr: Jaxpr = jaxpr
        self.consts: list[Any] = list(consts)

    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    eqns = property(lambda self: self.jaxpr.eqns)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    effectful = property(lambda self: self.jaxpr.effectful)
    effects = property(lambda self: self.jaxpr.effects)
    literals = property(lambda self: self.consts)
    cache = property(lambda self: self.jaxpr.cache)

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """A copy with some fields changed."""
        return ClosedJaxpr(changes.get("jaxpr", self.jaxpr), changes.get("consts", self.consts))

    def __repr__(self) -> str:
        return repr(self.jaxpr)


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs held in an equation's parameters."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


@replays_equations
def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a program by binding each of its operations under the current trace."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    last = last_uses(jaxpr)

    def read(atom):
        return literal_value(atom) if type(atom) is Literal else env[atom]

    location = source_context
    before = location.eqn, location.operation
    try:
        for i, eqn in enumerate(jaxpr.eqns):
            location.eqn, location.operation = eqn, eqn.known_source()
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            for var, value in zip(
                eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True
            ):
                env[var] = value
            for var in last[i]:
                del env[var]
    finally:
        location.eqn, location.operation = before
    return [read(v) for v in jaxpr.outvars]


def literal_value(literal: Literal) -> Any:
    """The value of a literal as an array."""
    return EagerArray(literal.val, literal.aval.weak_type)


@per_program("last uses")
def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """For each equation, the variables that nothing needs after it."""
    uses: list[list[Var]] = [[] for _ in jaxpr.eqns]
    needed = {v for v in jaxpr.outvars if type(v) is not Literal}
    for i in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[i]
        for var in (*eqn.outvars, *eqn.invars):
            if isinstance(var, Var) and var not in needed:
                needed.add(var)
                uses[i].append(var)
    return uses


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The program as a function of its inputs that returns a list."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)
