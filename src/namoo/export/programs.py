"""Programs as JSON.

A program is `{"name", "constants", "inputs", "equations", "outputs"}`. Constants are numbers of
arrays, and inputs are numbers of types. Variables have numbers: first the constants, then the
inputs, then the results of the equations in their order. An equation is
`[operation, parameters, operands, types of the results]`; an operand, and an output, is the number
of a variable or a literal, `[dtype, bytes in hexadecimal, whether it is weak]`. A program comes
after those that its parameters refer to.

The types of results are written, and computed again by the operations' rules when a file is read: a
program whose types do not follow from its operands is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo._base.source_context import at_user_line
from namoo.analysis.mesh_types import MeshArray
from namoo.core.array import to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from namoo.core.trace import Tracer
from namoo.dimensions.expression import DimExpr, is_symbolic_dim
from namoo.export.elements import array_bytes, dtype_name, read_array, read_dtype
from namoo.export.holders import check_programs
from namoo.export.operations import NAMES, operation
from namoo.export.params import Unwritable, read_dimension, read_param, write_param

_MAX_RANK = 32
_MAX_SIZE = 1 << 62


def plain(eqn: JaxprEqn) -> tuple[str, dict[str, Any]]:
    """Return the operation and parameters of an equation, without custom derivatives.

    The derivative of an exported program is exported as a program, so custom derivatives and
    `checkpoint` are not needed in it.
    """
    program = eqn.primitive.inlined(eqn.params)
    if program is not None:
        return "closed_call", {"jaxpr": program}
    match eqn.primitive.name:
        case "custom_vmap_call":
            return "closed_call", {"jaxpr": eqn.params["call"]}
        case "checkpoint":
            return "checkpoint", {**eqn.params, "policy": None}
    return eqn.primitive.name, eqn.params


class ProgramWriter:
    """Writes programs, each of them once.

    Attributes:
        types: the types of the variables.
        arrays: the constants.
        programs: the programs as JSON; a program comes after those that it refers to.
        scope: the scope of the symbolic dimensions; None if there are none.
    """

    def __init__(self) -> None:
        self.types: list[Any] = []
        self.arrays: list[Any] = []
        self.programs: list[Any] = []
        self.scope: Any = None
        self._types: dict[Any, int] = {}
        self._arrays: dict[int, int] = {}
        self._numbers: dict[tuple[int, ...], int] = {}

    def type_of(self, aval: ShapedArray) -> int:
        """Return the number of a type.

        Raises:
            ValueError: it belongs to a `shard_map`, or has symbolic dimensions of another scope.
        """
        if type(aval) is MeshArray:
            raise ValueError(
                "A program that names several devices cannot be exported. Export the function of "
                "one device." + at_user_line()
            )
        key = aval.shape, aval.dtype, aval.weak_type
        if key not in self._types:
            for size in aval.shape:
                if isinstance(size, DimExpr):
                    self.scope = self.scope or size.scope
                    if size.scope is not self.scope:
                        raise ValueError(
                            f"The dimension '{size}' is of another symbolic scope. Make all "
                            "shapes with one call of symbolic_shape, or pass scope=."
                        )
            shape = [str(n) if is_symbolic_dim(n) else int(n) for n in aval.shape]
            self._types[key] = len(self.types)
            self.types.append([dtype_name(aval.dtype), shape, bool(aval.weak_type)])
        return self._types[key]

    def _array(self, x: Any) -> int:
        if isinstance(x, Tracer):
            raise ValueError("A function that closes over traced values cannot be exported.")
        if id(x) not in self._arrays:
            self._arrays[id(x)] = len(self.arrays)
            self.arrays.append(x)
        return self._arrays[id(x)]

    def number_of(self, closed: ClosedJaxpr) -> int:
        """Return the number of a program, which is written if it is new."""
        key = (id(closed.jaxpr), *map(id, closed.consts))
        if key not in self._numbers:
            written = self._program(closed)
            self._numbers[key] = len(self.programs)
            self.programs.append(written)
        return self._numbers[key]

    def _program(self, closed: ClosedJaxpr) -> dict[str, Any]:
        jaxpr = closed.jaxpr
        places: dict[Var, int] = {}
        for var in (*jaxpr.constvars, *jaxpr.invars):
            places[var] = len(places)

        def atom(a: Any) -> Any:
            if type(a) is not Literal:
                return places[a]
            digits = array_bytes(to_numpy(a.val)).hex()
            return [dtype_name(a.aval.dtype), digits, bool(a.aval.weak_type)]

        equations = []
        for eqn in jaxpr.eqns:
            operands = [atom(a) for a in eqn.invars]
            name, params = self._operation(eqn)
            for var in eqn.outvars:
                places[var] = len(places)
            types = [self.type_of(v.aval) for v in eqn.outvars]
            equations.append([name, params, operands, types])
        return {
            "name": jaxpr.name,
            "constants": [self._array(x) for x in closed.consts],
            "inputs": [self.type_of(v.aval) for v in jaxpr.invars],
            "equations": equations,
            "outputs": [atom(a) for a in jaxpr.outvars],
        }

    def _operation(self, eqn: JaxprEqn) -> tuple[str, dict[str, Any]]:
        name, params = plain(eqn)
        if name not in NAMES or (name == eqn.primitive.name and operation(name) != eqn.primitive):
            raise ValueError(
                f"Cannot serialize the operation '{name}': it depends on this process (a callback "
                "or a user-defined primitive) or on several devices. An exported program can only "
                f"have namoo's operations on one device.{at_user_line(eqn.source)}"
            )
        try:
            return name, {k: write_param(v, self.number_of) for k, v in params.items()}
        except Unwritable as error:
            raise ValueError(
                f"Cannot serialize the operation '{name}': {error} is among its parameters."
                + at_user_line(eqn.source)
            ) from None


class ProgramReader:
    """Reads programs in their order, and checks them.

    Args:
        types: the types in the file.
        arrays: the constants in the file.
        scope: the scope of the symbolic dimensions.
    """

    def __init__(self, types: Any, arrays: Sequence[Any], scope: Any):
        self.arrays = arrays
        self.scope = scope
        self.types = [self._type(t) for t in _list(types)]
        self.programs: list[ClosedJaxpr] = []

    def _type(self, written: Any) -> ShapedArray:
        match written:
            case [name, list(shape), bool(weak)] if len(shape) <= _MAX_RANK:
                return ShapedArray(tuple(map(self._size, shape)), read_dtype(name), weak)
        raise ValueError(f"invalid type {written!r:.80}")

    def _size(self, size: Any) -> Any:
        if type(size) is str:
            return read_dimension(size, self.scope)
        if type(size) is not int or not 0 <= size < _MAX_SIZE:
            raise ValueError(f"invalid size {size!r:.80}")
        return size

    def type_of(self, number: Any) -> ShapedArray:
        """Return the type with a number."""
        return _entry(self.types, number, "type")

    def program(self, number: Any) -> ClosedJaxpr:
        """Return the program with a number, among those that have been read."""
        return _entry(self.programs, number, "program")

    def read(self, written: Any) -> None:
        """Read the next program.

        Raises:
            ValueError: it is not a program, or its types do not follow from its operations.
        """
        match written:
            case {
                "name": str(name),
                "constants": list(constants),
                "inputs": list(inputs),
                "equations": list(equations),
                "outputs": list(outputs),
            }:
                pass
            case _:
                raise ValueError(f"invalid program {written!r:.80}")
        consts = [_entry(self.arrays, n, "array") for n in constants]
        variables = [Var(aval_of(x)) for x in consts]
        variables += [Var(self.type_of(n)) for n in inputs]
        inner = variables[len(consts) :]
        eqns: list[JaxprEqn] = []
        for i, equation in enumerate(equations):
            try:
                eqn = self._equation(equation, variables)
            except Exception as error:  # a rule of an operation may raise anything
                raise ValueError(
                    f"equation {i} of program {len(self.programs)}, {equation!r:.100}, is not "
                    f"possible: {error}"
                ) from error
            eqns.append(eqn)
            variables += eqn.outvars
        outvars = [self._atom(a, variables) for a in outputs]
        jaxpr = Jaxpr(variables[: len(consts)], inner, outvars, eqns, name=name)
        self.programs.append(ClosedJaxpr(jaxpr, consts))

    def _atom(self, written: Any, variables: list[Var]) -> Any:
        match written:
            case [name, str(digits), bool(weak)]:
                dtype = read_dtype(name)
                value = read_array(bytes.fromhex(digits), dtype, ())._value
                return Literal(value, ShapedArray((), dtype, weak))
        return _entry(variables, written, "variable")

    def _equation(self, written: Any, variables: list[Var]) -> JaxprEqn:
        match written:
            case [str(name), dict(params), list(operands), list(types)]:
                pass
            case _:
                raise ValueError("it must be a list of operation, parameters, operands and types")
        primitive = operation(name)
        read = {k: read_param(v, self.scope, self.program) for k, v in params.items()}
        atoms = [self._atom(a, variables) for a in operands]
        avals = [a.aval for a in atoms]
        check_programs(name, avals, read)
        found = primitive.abstract(*avals, **read)
        found = list(found) if primitive.multiple_results else [found]
        wanted = [self.type_of(n) for n in types]
        if found != wanted:
            raise ValueError(f"its results are {found}, but the file says {wanted}")
        return JaxprEqn(atoms, [Var(aval) for aval in wanted], primitive, read)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"a list was expected, not {value!r:.80}")
    return value


def _entry(items: Sequence[Any], number: Any, what: str) -> Any:
    if type(number) is not int or not 0 <= number < len(items):
        raise ValueError(f"there is no {what} with the number {number!r:.80}")
    return items[number]
