"""The fingerprint of a program: a text that equal programs share, the key of the program cache.

It contains everything that a `native` rule may read: primitives, parameters with the programs that
they hold, types, the content of constants. A value that cannot be serialised unambiguously (a
function, an instance of a user-defined class) makes a program that is never cached.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from namoo._base.dtypes import ExtendedDType
from namoo._base.runtime import native
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from namoo.core.primitive import Primitive
from namoo.engines.disk_cache import sha256

_PLAIN = frozenset({int, bool, type(None), str, float, complex})
"""Types whose `repr` is unambiguous."""

ROOMS = (
    "_base/dtypes",
    "analysis",
    "control",
    "core",
    "devices",
    "dimensions",
    "engines/native",
    "primitives",
    "transforms",
)
"""Folders of the package that determine the code of a program; other classes are not serialised."""


class Unknown(Exception):
    """A value cannot be serialised unambiguously, so the program is not cacheable."""


class Fingerprint:
    """The identity of a program, and its parts in a fixed order, so that they can be numbered.

    Attributes:
        digest: the hash of the program's text.
        equations: all equations in the order of the text, including those of inner programs.
        arrays: the constants.
    """

    def __init__(self, closed: ClosedJaxpr, options: Mapping[str, Any]):
        self.equations: list[JaxprEqn] = []
        self.arrays: list[np.ndarray] = []
        self._programs: dict[Jaxpr, int] = {}
        self._bodies: list[bytes] = []
        self._sizes: list[tuple[int, ...]] = []
        self._types: dict[Any, int] = {}
        self._primitives: dict[Primitive, tuple[int, Any]] = {}
        self._writers: dict[type, Callable[[Any], str]] = {
            **dict.fromkeys(_PLAIN, repr), tuple: self._items, list: self._items,
            dict: self._mapping, ClosedJaxpr: self._closed, Jaxpr: self._program,
            ShapedArray: self._type_name, EagerArray: self._array, np.ndarray: self._array,
        }  # fmt: skip
        self._short: dict[str, int] = {}
        words = [self._closed(closed), self._mapping(options)]
        text = "\n".join([repr(self._sizes), *words, *self._short]).encode()
        self.digest = sha256(b"".join([text, *self._bodies])).hexdigest()

    # Every text is self-delimiting: names and numbers have no blanks, the others have brackets or
    # quotes, and the bodies of programs have sizes. Two programs with one text are equal.

    def _shortened(self, text: str) -> int:
        """Intern a text that occurs often: return its number.  The texts themselves come last."""
        return self._short.setdefault(text, ~len(self._short))

    def _with_arrays(self, text: str, before: int) -> int:
        """Intern a text that refers to the arrays from number `before` on.

        If the text is known, these arrays are dropped again: which arrays there are follows from
        the text, not from the identity of objects in the program.
        """
        if text in self._short:
            del self.arrays[before:]
        return self._shortened(text)

    def _value(self, value: Any) -> str:
        kind = type(value)
        return (self._writers.get(kind) or self._writer(kind))(value)

    def _writer(self, kind: type) -> Callable[[Any], str]:
        """The function that serialises values of a class."""
        if issubclass(kind, (np.dtype, ExtendedDType)):
            writer: Callable[[Any], str] = self._dtype
        elif issubclass(kind, np.generic):
            writer = lambda v: f"[{self._dtype(v.dtype)}:{_content(np.asarray(v))}]"  # noqa: E731
        elif kind is type:
            writer = self._class
        elif getattr(kind, "is_dimension", False):
            writer = self._dimension
        else:
            name = _class_name(kind)
            if issubclass(kind, enum.Enum):
                writer = lambda v: f"{name}.{v.name}"  # noqa: E731
            elif issubclass(kind, tuple):
                writer = lambda v: name + self._items(tuple(v))  # noqa: E731
            else:
                raise Unknown(f"{name} has no text")
        self._writers[kind] = writer
        return writer

    @staticmethod
    def _dimension(value: Any) -> str:
        return f"<{value!r} {value.scope.constraints!r}>"

    def _class(self, value: type) -> str:
        if not issubclass(value, np.generic):
            raise Unknown(f"{value} has no text")
        return self._dtype(np.dtype(value))

    def _items(self, values) -> str:
        if _PLAIN.issuperset(map(type, values)):
            return repr(values)
        return f"({' '.join(map(self._value, values))})"

    def _mapping(self, values: Mapping[str, Any]) -> str:
        items = [f"{k!r}:{self._value(v)}" for k, v in values.items()]
        return "{" + " ".join(items) + "}"

    def _dtype(self, dtype: Any) -> str:
        known = self._types.get(dtype)
        if known is None:
            if isinstance(dtype, np.dtype) and dtype.names is not None:
                text = repr(dtype.descr)
            else:
                text = repr((_class_name(type(dtype)), dtype.name))
            known = self._types[dtype] = self._shortened(text)
        return f"%{known}"

    def _type(self, aval: Any) -> int:
        key = aval.shape, aval.dtype, aval.weak_type
        known = self._types.get(key)
        if known is None:
            weak = "weak" if aval.weak_type else ""
            text = f"{self._items(aval.shape)}{self._dtype(aval.dtype)}{weak}"
            known = self._types[key] = self._shortened(text)
        return known

    def _type_name(self, aval: Any) -> str:
        return f"%{self._type(aval)}"

    def _array(self, value: Any) -> str:
        array = value if type(value) is np.ndarray else to_numpy(value)
        self.arrays.append(array)
        return f"[{self._items(array.shape)}{self._dtype(array.dtype)}:{_content(array)}]"

    def _closed(self, closed: ClosedJaxpr) -> str:
        return f"<{self._program(closed.jaxpr)} {self._items(closed.consts)}>"

    def _program(self, jaxpr: Jaxpr) -> str:
        """The number of a program, whose equations are a list of numbers."""
        number = self._programs.get(jaxpr)
        if number is None:
            self.equations += jaxpr.eqns
            inputs = [*jaxpr.constvars, *jaxpr.invars]
            ask = self._operation, self._type, self._literal
            body = numbered(inputs, jaxpr.eqns, jaxpr.outvars, *ask)
            number = self._programs[jaxpr] = len(self._bodies)
            self._bodies.append(body)
            parts = jaxpr.constvars, jaxpr.invars, jaxpr.outvars, body
            self._sizes.append(tuple(map(len, parts)))
        return f"@{number}"

    def _literal(self, literal: Literal) -> int:
        before = len(self.arrays)
        text = f"={self._value(literal.val)}{self._type_name(literal.aval)}"
        return self._with_arrays(text, before)

    def _operation(self, eqn: JaxprEqn) -> int:
        """A primitive with its parameters."""
        name, chosen = self._primitive(eqn.primitive)
        if chosen is not None and not chosen and eqn.effectful:
            return self._shortened(f"%{name}!")
        params = eqn.params if chosen is None else {k: eqn.params[k] for k in chosen}
        before = len(self.arrays)
        return self._with_arrays(f"%{name}{self._mapping(params)}", before)

    def _primitive(self, primitive: Primitive) -> tuple[int, Any]:
        """A primitive's name, and the parameters that matter; None if all do."""
        known = self._primitives.get(primitive)
        if known is None:
            if primitive.native is None:
                # The host evaluates the equation of the program at hand, with its own parameters.
                known = self._shortened("host"), ()
            else:
                words = [_class_name(type(primitive)), repr(primitive.name)]
                for value in vars(primitive).values():
                    if isinstance(value, types.FunctionType):
                        words.append(_class_name(value))
                known = self._shortened(" ".join(words)), primitive.value_params
            self._primitives[primitive] = known
        return known


def _numbered(
    inputs: list[Var],
    eqns: list[JaxprEqn],
    outputs: list[Atom],
    operation: Callable[[JaxprEqn], int],
    kind: Callable[[Any], int],
    literal: Callable[[Literal], int],
) -> bytes:
    """Encode a program as integers: for each equation its operation, operands and result types.

    A variable is the position at which it was defined.  Everything else (literals, types,
    operations) is a negative number, from the given functions, which use disjoint ranges.
    """
    from array import array

    words: list[int] = []
    places: dict[Atom, int] = {}
    kinds: dict[int, int] = {}
    # Equations that are copies of one another share the object of their parameters.
    operations: dict[tuple[Primitive, int], int] = {}

    def declare(variables: list[Var]) -> None:
        for v in variables:
            places[v] = len(words)
            number = kinds.get(id(v.aval))
            if number is None:
                number = kinds[id(v.aval)] = kind(v.aval)
            words.append(number)

    def read(atoms: list[Any]) -> None:
        for a in atoms:
            number = places.get(a)
            if number is None:
                number = places[a] = literal(a)
            words.append(number)

    declare(inputs)
    for eqn in eqns:
        key = eqn.primitive, id(eqn.params) if eqn.params else 0
        number = operations.get(key)
        if number is None:
            number = operations[key] = operation(eqn)
        words.append(number)
        read(eqn.invars)
        declare(eqn.outvars)
    read(outputs)
    return array("i", words).tobytes()


numbered: Callable[..., bytes] = _numbered if native is None else native.numbered


def _content(array: np.ndarray) -> str:
    """The bytes of an array, or their hash."""
    if array.dtype.hasobject:
        raise Unknown("an array of objects has no text")
    if array.nbytes <= 64:
        return array.tobytes().hex()
    return "#" + sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()


def _class_name(kind: type | types.FunctionType) -> str:
    """The name of a class or function that this package, or NumPy, defines."""
    package, _, module = kind.__module__.partition(".")
    path = module.replace(".", "/") + "/"
    if package == "namoo" and not path.startswith(tuple(f"{room}/" for room in ROOMS)):
        raise Unknown(f"{kind} is from a part of the package that is not looked at")
    if package not in ("namoo", "numpy", "ml_dtypes", "scipy"):
        raise Unknown(f"{kind} is from elsewhere")
    return f"{kind.__module__}.{kind.__qualname__}"
