"""What a program is, as a text that equal programs share: by it a compiled one is found again.

All that a `native` rule may look at is written: primitives, parameters with the programs they
hold, types, the content of constants.  What has no text that is surely its own (a function, an
object of a class from elsewhere) makes a program that is compiled every time.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from namoo._dtypes import ExtendedDType
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from namoo.core.primitive import Primitive
from namoo.engines.cache import sha256

_PLAIN = frozenset({int, bool, type(None), str, float, complex})
"""Types of which Python's own text tells all."""

ROOMS = ("_dtypes", "control", "core", "engines/native", "primitives", "transforms")
"""Parts of the package that decide what a program becomes; rules from elsewhere are not known."""


class Unknown(Exception):
    """Something has no text of its own."""


class Fingerprint:
    """The name of a program, and what it holds by number, to be referred to.

    Attributes:
      digest: the hash of the program's text.
      equations: the equations in the order of the text, those of inner programs included.
      arrays: the constants.
    """

    def __init__(self, closed: ClosedJaxpr, options: Mapping[str, Any]):
        self.equations: list[JaxprEqn] = []
        self.arrays: list[np.ndarray] = []
        self._programs: dict[Jaxpr, str] = {}
        self._types: dict[Any, str] = {}
        self._primitives: dict[Primitive, tuple[str, Any]] = {}
        self._operations: dict[tuple[str, int], str] = {}
        self._literals: dict[Literal, tuple[str, list[np.ndarray]]] = {}
        self._writers: dict[type, Callable[[Any], str]] = {
            **dict.fromkeys(_PLAIN, repr), tuple: self._items, list: self._items,
            dict: self._mapping, ClosedJaxpr: self._closed, Jaxpr: self._program,
            ShapedArray: self._type, EagerArray: self._array, np.ndarray: self._array,
        }  # fmt: skip
        self._short: dict[str, str] = {}
        words = [self._closed(closed), self._mapping(options)]
        self.digest = sha256("\n".join([*words, *self._short]).encode()).hexdigest()

    # Every text says where it ends: names and numbers have no blanks, the others have brackets
    # or are quoted.  Two programs with one text are the same program.

    def _shortened(self, text: str) -> str:
        """A number for a text that comes often; all such texts are at the end, in their order."""
        return self._short.setdefault(text, f"%{len(self._short)}")

    def _value(self, value: Any) -> str:
        kind = type(value)
        return (self._writers.get(kind) or self._writer(kind))(value)

    def _writer(self, kind: type) -> Callable[[Any], str]:
        """What writes values of a class; each is looked at once."""
        if issubclass(kind, (np.dtype, ExtendedDType)):
            writer: Callable[[Any], str] = self._dtype
        elif issubclass(kind, np.generic):
            writer = lambda v: f"[{self._dtype(v.dtype)}:{_content(np.asarray(v))}]"  # noqa: E731
        elif kind is type:
            writer = self._class
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
        text = self._types.get(dtype)
        if text is None:
            if isinstance(dtype, np.dtype) and dtype.names is not None:
                text = repr(dtype.descr)
            else:
                text = repr((_class_name(type(dtype)), dtype.name))
            text = self._types[dtype] = self._shortened(text)
        return text

    def _type(self, aval: Any) -> str:
        known = self._types.get(id(aval))
        if known is None:
            known = self._types[id(aval)] = self._new_type(aval)
        return known

    def _new_type(self, aval: Any) -> str:
        key = aval.shape, aval.dtype, aval.weak_type
        text = self._types.get(key)
        if text is None:
            weak = "weak" if aval.weak_type else ""
            text = self._shortened(f"{self._items(aval.shape)}{self._dtype(aval.dtype)}{weak}")
            self._types[key] = text
        return text

    def _array(self, value: Any) -> str:
        array = value if type(value) is np.ndarray else to_numpy(value)
        self.arrays.append(array)
        return f"[{self._items(array.shape)}{self._dtype(array.dtype)}:{_content(array)}]"

    def _closed(self, closed: ClosedJaxpr) -> str:
        return f"<{self._program(closed.jaxpr)} {self._items(closed.consts)}>"

    def _program(self, jaxpr: Jaxpr) -> str:
        """A program; one that was written before is named by its number."""
        known = self._programs.get(jaxpr)
        if known is not None:
            return known
        self._programs[jaxpr] = f"@{len(self._programs)}"
        numbers: dict[Var, str] = {}
        kinds, primitives, operations = self._types, self._primitives, self._operations
        words = ["{"]

        def declare(variables) -> None:
            for v in variables:
                numbers[v] = f"{len(numbers)}"
                words.append(kinds.get(id(v.aval)) or self._type(v.aval))
            words.append("|")

        def read(atoms) -> None:
            for a in atoms:
                words.append(self._literal(a) if type(a) is Literal else numbers[a])

        declare(jaxpr.constvars)
        declare(jaxpr.invars)
        self.equations += jaxpr.eqns
        for eqn in jaxpr.eqns:
            name, chosen = primitives.get(eqn.primitive) or self._primitive(eqn.primitive)
            if eqn.params or chosen is not None:
                key = name, id(eqn.params)
                name = operations.get(key)
                if name is None:
                    name = operations[key] = self._operation(eqn, key[0], chosen)
            words.append(name)
            read(eqn.invars)
            declare(eqn.outvars)
        read(jaxpr.outvars)
        words.append("}")
        return " ".join(words)

    def _literal(self, literal: Literal) -> str:
        """A literal, which copies of an equation have in common."""
        known = self._literals.get(literal)
        if known is not None:
            text, arrays = known
            self.arrays += arrays
            return text
        before = len(self.arrays)
        text = f"={self._value(literal.val)}{self._type(literal.aval)}"
        self._literals[literal] = text, self.arrays[before:]
        return text

    def _operation(self, eqn: JaxprEqn, name: str, chosen: Sequence[str] | None) -> str:
        """A primitive with its parameters, which copies of an equation have in common."""
        if chosen is None:
            return self._shortened(name + self._mapping(eqn.params))
        if not chosen and eqn.effectful:
            return f"{name}!"
        return self._shortened(name + self._mapping({k: eqn.params[k] for k in chosen}))

    def _primitive(self, primitive: Primitive) -> tuple[str, Any]:
        """A primitive's name, and the parameters that matter; None if all do."""
        known = self._primitives.get(primitive)
        if known is None:
            if primitive.native is None:
                # Python evaluates it: the one of the program at hand, with its parameters.
                known = "host", ()
            else:
                words = [_class_name(type(primitive)), repr(primitive.name)]
                for value in vars(primitive).values():
                    if isinstance(value, types.FunctionType):
                        words.append(_class_name(value))
                known = self._shortened(" ".join(words)), primitive.value_params
            self._primitives[primitive] = known
        return known


def _content(array: np.ndarray) -> str:
    """The bytes of an array, or what stands for them."""
    if array.dtype.hasobject:
        raise Unknown("an array of objects has no text")
    if array.nbytes <= 64:
        return array.tobytes().hex()
    return "#" + sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()


def _class_name(kind: type | types.FunctionType) -> str:
    """The name of a class or function that this package, or NumPy, defines."""
    package, _, room = kind.__module__.partition(".")
    if package == "namoo" and room.partition(".")[0] not in ROOMS:
        raise Unknown(f"{kind} is from a part of the package that is not looked at")
    if package not in ("namoo", "numpy", "ml_dtypes", "scipy"):
        raise Unknown(f"{kind} is from elsewhere")
    return f"{kind.__module__}.{kind.__qualname__}"
