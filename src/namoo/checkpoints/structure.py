"""Write the structure of a tree as JSON, and read it back.

The nodes are a flat list, parents first, so that deep trees do not need deep JSON. A class is
written as `module:name` and looked up in the modules that the program has imported and in those of
namoo that define layers and optimisers. Nothing else is imported, called or evaluated because a
file says so. The activation functions of `namoo.nn` are written by name. Other functions, and
static values that JSON cannot represent, are not written: they come from a template.
"""

from __future__ import annotations

import re
import reprlib
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.lazy import load_module
from namoo.checkpoints.errors import CheckpointError
from namoo.module.form import DATA, Fixed, Form, Mixed, Tied, Ties
from namoo.module.module import Module
from namoo.nn import activations
from namoo.numpy import dtypes_ns
from namoo.tree.registry import node_type
from namoo.tree.treedef import PyTreeDef

MAX_DEPTH = 900

# Containers that are written without a class name.
_PLAIN: dict[str, type] = {
    "none": type(None),
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
}
_KIND_OF_PLAIN = {cls: kind for kind, cls in _PLAIN.items()}
_FACTORIES: dict[str, type] = {
    cls.__name__: cls for cls in (bool, dict, float, int, list, set, str, tuple)
}
# The modules that a checkpoint may import for their classes.
_OWN = re.compile(r"namoo\.(nn|optim|train|mixed|scipy)(\.[a-z_0-9]+)*")
# The current modules of classes that older files name by another module.
_MOVED = {
    "namoo.optim.accumulation": "namoo.optim.transforms.accumulation",
    "namoo.optim.adams": "namoo.optim.transforms.adam",
    "namoo.optim.adding": "namoo.optim.transforms.adding",
    "namoo.optim.backtracking": "namoo.optim.linesearch",
    "namoo.optim.combine": "namoo.optim.transforms.combining",
    "namoo.optim.conditional": "namoo.optim.transforms.conditionality",
    "namoo.optim.constraining": "namoo.optim.transforms.constraining",
    "namoo.optim.masking": "namoo.optim.transforms.masking",
    "namoo.optim.momentum": "namoo.optim.transforms.momentum",
    "namoo.optim.monitoring": "namoo.optim.transforms.monitoring",
    "namoo.optim.quasi_newton": "namoo.optim.transforms.lbfgs",
    "namoo.optim.scaling": "namoo.optim.transforms.scaling",
    "namoo.optim.second_moments": "namoo.optim.transforms.rms",
    "namoo.optim.sign_steps": "namoo.optim.transforms.rprop",
    "namoo.optim.slow_weights": "namoo.optim.lookahead",
    "namoo.optim.zoom": "namoo.optim.linesearch",
}
_TEMPLATE = (
    "Load it into a template: load(path, like=tree), with a tree of the same structure, such as "
    "the one that training starts from"
)


def class_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def write_structure(treedef: PyTreeDef) -> list[Any]:
    """Return the nodes of a tree, parents first; a leaf is `"*"`."""
    out: list[Any] = []
    todo = [treedef]
    while todo:
        node = todo.pop()
        data = node.node_data()
        if data is None:
            out.append("*")
            continue
        cls, meta = data
        children = node.children()
        kind = _KIND_OF_PLAIN.get(cls)
        if kind is not None:
            meta = tuple(meta) if isinstance(meta, list) else meta
            out.append([kind, None, write_value(meta), len(children)])
        else:
            entry = node_type(cls)
            assert entry is not None
            if entry.kind == "namedtuple":
                meta = tuple(cls._fields)  # type: ignore[attr-defined]
            elif entry.meta_names is not None and type(meta) is tuple:
                meta = dict(zip(entry.meta_names, meta, strict=True))
            out.append([entry.kind, class_name(cls), write_value(meta), len(children)])
        todo += reversed(children)
    return out


def read_structure(nodes: Any, types: Iterable[type] = ()) -> PyTreeDef:
    """Return the structure that `write_structure` wrote.

    Args:
        nodes: what was read from a file.
        types: classes to look among, before those that are imported.

    Raises:
        CheckpointError: if it is not a structure, or cannot be made without a template.
    """
    known = {class_name(cls): cls for cls in types}
    if not isinstance(nodes, list):
        raise CheckpointError("the structure of the tree is not a list of nodes")
    leaf = PyTreeDef.make_from_node_data_and_children(None, None, ())
    # Parents come before their children, so read from the end: a parent finds them on the stack.
    stack: list[tuple[PyTreeDef, int]] = []
    for node in reversed(nodes):
        if node == "*":
            stack.append((leaf, 1))
            continue
        match node:
            case [str(kind), str() | None as name, meta, int(count)] if 0 <= count <= len(stack):
                pass
            case _:
                raise CheckpointError(f"the structure of the tree has no node {node!r:.80}")
        children = [stack.pop() for _ in range(count)]
        depth = 1 + max((depth for _, depth in children), default=0)
        if depth > MAX_DEPTH:
            raise CheckpointError(f"the tree is more than {MAX_DEPTH} nodes deep")
        data = _node_data(kind, name, meta, count, known)
        structures = [structure for structure, _ in children]
        try:
            made = PyTreeDef.make_from_node_data_and_children(None, data, structures)
        except (TypeError, ValueError, AssertionError) as error:
            raise CheckpointError(f"the node {node!r:.80} cannot be made: {error}") from error
        stack.append((made, depth))
    if len(stack) != 1:
        raise CheckpointError(f"the structure of the tree has {len(stack)} roots")
    return stack[0][0]


def _node_data(
    kind: str, name: str | None, meta: Any, count: int, known: dict[str, type]
) -> tuple[type, Any]:
    value = read_value(meta, known)
    if name is None:
        cls = _PLAIN.get(kind)
        keys = value[1] if kind == "defaultdict" and _is_pair(value) else value
        is_right = (
            (keys is None if kind in ("none", "list", "tuple") else isinstance(keys, tuple))
            and (keys is None or len(keys) == count)
            and (kind != "none" or count == 0)
        )
        if cls is None or not is_right:
            raise CheckpointError(f"a node of kind {kind!r:.40} has metadata {value!r:.80}")
        try:
            hash(value)
        except TypeError as error:
            raise CheckpointError(f"a {kind} has an invalid key: {error}") from None
        return cls, list(value) if kind == "dict" else value
    cls = _find_class(name, known)
    entry = node_type(cls)
    if entry is None or entry.kind != kind:
        raise CheckpointError(
            f"the tree has a node of the class {name}, saved as a {kind}; in this program it is "
            f"{'a leaf' if entry is None else 'a ' + entry.kind}. {_TEMPLATE}."
        )
    if kind == "namedtuple":
        fields = cls._fields  # type: ignore[attr-defined]
        if value != fields or count != len(fields):
            raise CheckpointError(
                f"the named tuple {name} had the fields {value!r:.200}; now it has {fields}. "
                f"{_TEMPLATE}."
            )
        return cls, None
    if issubclass(cls, Module) or isinstance(value, Form):
        fields = value.__getnewargs__()[0] if isinstance(value, Form) else ()
        if not issubclass(cls, Module) or tuple(fields) != cls._fields:
            raise CheckpointError(
                f"{name} was saved with the fields {fields!r:.200}; now it has others. {_TEMPLATE}."
            )
    elif entry.meta_names is not None:
        if not isinstance(value, dict) or set(value) != set(entry.meta_names):
            raise CheckpointError(
                f"{name} had other static fields than now: {value!r:.200}; now "
                f"{entry.meta_names}. {_TEMPLATE}."
            )
        value = tuple(value[n] for n in entry.meta_names)
    if entry.fields is not None and len(entry.fields[0]) != count:
        raise CheckpointError(
            f"{name} was saved with {count} fields of data; now it has {entry.fields[0]}. "
            f"{_TEMPLATE}."
        )
    return cls, value


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _find_class(name: str, known: dict[str, type]) -> type:
    """Return an imported class, or one of namoo's own, importing its module.

    A file must not trigger any other import: that would run code that the program did not choose.
    """
    module, _, qualname = name.partition(":")
    module = _MOVED.get(module, module)
    name = f"{module}:{qualname}"
    if name in known:
        return known[name]
    if module not in sys.modules and _OWN.fullmatch(module):
        try:
            load_module(module)
        except ModuleNotFoundError:
            pass  # written by another version; reported below as a missing class
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        # Look in the object's own dict: a module's `__getattr__` could import other modules.
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if not isinstance(found, type) or class_name(found) != name:
        raise CheckpointError(
            f"the tree has a node of the class {name!r:.200}, which the program has not imported. "
            f"Import it first, or name it: load(path, types=[…]). {_TEMPLATE}."
        )
    return found


def write_value(value: Any) -> Any:
    """Return a static value as JSON: the value, or a list of a tag and parts."""
    cls = type(value)
    if value is None or cls in (bool, str):
        return value
    if cls is int:
        return value if abs(value) < 2**53 else ["int", hex(value)]
    if cls is float:
        return ["float", repr(value)]
    if cls is complex:
        return ["complex", repr(value.real), repr(value.imag)]
    if cls is bytes:
        return ["bytes", value.hex()]
    if cls in (tuple, list):
        return [cls.__name__, *map(write_value, value)]
    if cls is frozenset:
        return ["frozenset", *sorted(map(write_value, value), key=repr)]
    if cls is dict:
        return ["dict", *([write_value(k), write_value(v)] for k, v in value.items())]
    if isinstance(value, np.dtype):
        return ["dtype", value.name] if value.name in ELEMENTS else _opaque(value)
    if isinstance(value, dtypes_ns.ScalarType):
        return ["scalar_type", np.dtype(value).name]  # type: ignore[call-overload]
    if isinstance(value, type) and issubclass(value, np.generic):
        name = np.dtype(value).name if value.__name__ in ELEMENTS else ""
        return ["numpy_type", name] if name else _opaque(value)
    if isinstance(value, dtypes.KeyDType):
        return ["key_dtype", value.impl]
    if isinstance(value, type) and _FACTORIES.get(value.__name__) is value:
        return ["class", value.__name__]
    if isinstance(value, PyTreeDef):
        return ["structure", write_structure(value)]
    if value is DATA:
        return ["data"]
    if cls is Fixed:
        return ["fixed", write_value(value.value)]
    if cls is Tied:
        return ["tied"]
    if cls is Form:
        fields, values, mixed, ties = value.__getnewargs__()
        containers = [[n, write_value(m.outline), list(m.flags)] for n, m in mixed.items()]
        tied = ties and [write_value(ties.whole), write_value(ties.hidden), list(ties.index)]
        return ["form", list(fields), [write_value(v) for v in values], containers, tied]
    if (name := activation_name(value)) is not None:
        return ["activation", name]
    return _opaque(value)


def _opaque(value: Any) -> list[str]:
    name = getattr(value, "__qualname__", None) if callable(value) else None
    what = f"function {value.__module__}.{name}" if name else ""
    return ["opaque", what or f"{type(value).__name__} {reprlib.repr(value)}"]


def activation_name(value: Any) -> str | None:
    """Return the name of an activation function of `namoo.nn`, or None for anything else."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and _activation(name) is value else None


def _activation(name: str) -> Any:
    found = vars(activations).get(name)
    is_own = getattr(found, "__module__", None) == activations.__name__
    return found if is_own and not name.startswith("_") else None


def read_value(value: Any, known: dict[str, type]) -> Any:
    """Return the static value that `write_value` wrote."""
    try:
        return _read_value(value, known)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{value!r:.80} is not a static value ({error})") from error
    except RecursionError:
        raise CheckpointError("a static value is nested too deeply") from None


def _read_value(value: Any, known: dict[str, type]) -> Any:
    if value is None or type(value) in (bool, str, int):
        return value
    read = lambda part: _read_value(part, known)  # noqa: E731
    match value:
        case ["int", str(digits)]:
            return int(digits, 16)
        case ["float", str(digits)]:
            return float(digits)
        case ["complex", str(real), str(imag)]:
            return complex(float(real), float(imag))
        case ["bytes", str(digits)]:
            return bytes.fromhex(digits)
        case ["tuple", *parts]:
            return tuple(map(read, parts))
        case ["list", *parts]:
            return [*map(read, parts)]
        case ["frozenset", *parts]:
            return frozenset(map(read, parts))
        case ["dict", *pairs]:
            return {read(k): read(v) for k, v in pairs}
        case ["dtype", str(name)]:
            return ELEMENTS[name]
        case ["scalar_type", str(name)]:
            return _SCALAR_TYPES[name]
        case ["numpy_type", str(name)]:
            return ELEMENTS[name].type
        case ["key_dtype", str(impl)]:
            return dtypes.KeyDType(impl)
        case ["class", str(name)]:
            return _FACTORIES[name]
        case ["structure", nodes]:
            return read_structure(nodes, known.values())
        case ["activation", str(name)]:
            found = _activation(name)
            if found is None:
                raise ValueError(f"namoo.nn has no such function as {name!r:.40}")
            return found
        case ["data"]:
            return DATA
        case ["fixed", part]:
            return Fixed(read(part))
        case ["tied"]:
            return Tied()
        case ["form", list(fields), list(values), list(containers), ties]:
            mixed = {n: Mixed(read(outline), tuple(flags)) for n, outline, flags in containers}
            if ties is not None:
                ties = Ties(read(ties[0]), read(ties[1]), tuple(ties[2]))
            if len(fields) != len(values):
                raise ValueError("a module needs a value for each field")
            return Form(fields, [read(v) for v in values], mixed, ties)
        case ["opaque", str(what)]:
            raise CheckpointError(
                f"the tree has a static value that a file cannot hold: {what!r:.200}. {_TEMPLATE}."
            )
    raise ValueError("its form is unknown")


_SCALAR_TYPES: dict[str, Any] = {
    np.dtype(thing).name: thing  # type: ignore[call-overload]
    for thing in vars(dtypes_ns).values()
    if isinstance(thing, dtypes_ns.ScalarType)
}
ELEMENTS: dict[str, np.dtype] = {name: np.dtype(thing) for name, thing in _SCALAR_TYPES.items()}
