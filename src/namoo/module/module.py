"""`Module`: a class with annotated fields becomes a frozen dataclass and a tree."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from abc import ABCMeta
from typing import Any, ClassVar, TypeVar, dataclass_transform

from namoo import tree
from namoo._base.hints import MODULE_ATTRIBUTES, attribute_message
from namoo._base.source_context import (
    at_user_line,
    entry_point,
    hide_internal_frames,
    is_hidden,
)
from namoo.module.bound import BoundMethod, Method
from namoo.module.failing_layer import name_layer
from namoo.module.form import Form, make_form
from namoo.module.pretty import pretty
from namoo.module.update import At
from namoo.struct import field, is_static
from namoo.tree.keys import GetAttrKey
from namoo.tree.registry import NodeType, register_entry

Self = TypeVar("Self", bound="Module")

_NEW: Any = "new"
_INITIALISING: Any = "initialising"
_put = object.__setattr__


# Not declared frozen to type checkers, which would reject `self.x = …` in `__init__`, too.
@dataclass_transform(eq_default=False, field_specifiers=(field, dataclasses.field))
class Module(metaclass=ABCMeta):
    """A model as a tree: the annotated fields are its parts, the methods are functions of it.

    The value of a field decides its role. Arrays, modules and containers of them are children.
    Everything else (functions, strings, numbers, None) is configuration, part of the structure, so
    that `jit`, `grad`, `vmap`, `scan` and `checkpoint` accept a model directly, and a gradient has
    the structure of the model. Numbers are configuration, too; parameters are arrays.

    A class without `__init__` gets that of a dataclass. Instances are immutable: `replace` and `at`
    return new ones. The same array in two fields is one parameter, and remains one. After
    `__init__`, `__check_init__` of the class and of each base class is called, if it exists.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> class Affine(namoo.Module):
        ...     w: namoo.Array
        ...     b: namoo.Array
        ...     activation: Callable = jnp.tanh
        ...     def __call__(self, x):
        ...         return self.activation(self.w * x + self.b)
        >>> model = Affine(jnp.array(2.0), jnp.array(1.0))
        >>> model
        Affine(w=f32[], b=f32[], activation=tanh)
        >>> namoo.jit(namoo.grad(lambda model, x: model(x)))(model, 0.0).w
        Array(0., dtype=float32, weak_type=True)
        >>> model.at[lambda m: m.w].set(jnp.array(3.0)).w
        Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("__dict__", "__weakref__", "_form")

    _form: Form
    _fields: ClassVar[tuple[str, ...]] = ()
    _static: ClassVar[frozenset[str]] = frozenset()
    _converters: ClassVar[dict[str, Any]] = {}
    _has_generated_init: ClassVar[bool] = True
    # `jit` reads this: the same object always means the same program.
    _is_immutable: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__()
        has_own = "__init__" in cls.__dict__
        if has_own and "__post_init__" in cls.__dict__:
            raise TypeError(
                f"{cls.__name__} defines both __init__ and __post_init__. The second is called by "
                "the __init__ that a dataclass makes, so it would never run: move its code into "
                "__init__, or into __check_init__, which always runs."
            )
        # A class with its own `__init__` passes it on to its subclasses.
        cls._has_generated_init = not has_own and cls._has_generated_init
        dataclasses.dataclass(init=cls._has_generated_init, repr=False, eq=False, **kwargs)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls._fields = tuple(f.name for f in fields)
        cls._static = frozenset(f.name for f in fields if is_static(f))
        cls._converters = {
            f.name: f.metadata["converter"] for f in fields if "converter" in f.metadata
        }
        for name, thing in list(vars(cls).items()):
            is_special = name.startswith("__") and name.endswith("__")
            if inspect.isfunction(thing) and not is_special and name not in cls._fields:
                setattr(cls, name, Method(thing))
        call = vars(cls).get("__call__")
        if call is not None and is_hidden(call.__code__.co_filename):
            setattr(cls, "__call__", _layer_call(call))  # noqa: B010
        if "__init__" in cls.__dict__:
            cls.__init__ = _finishing(cls.__init__)  # type: ignore[method-assign]
        _register(cls)

    def __new__(cls, *args: Any, **kwargs: Any):
        self = object.__new__(cls)
        _put(self, "_form", _NEW)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._set(name, value)
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _set(self, name: str, value: Any) -> None:
        cls = type(self)
        if self._form is not _INITIALISING:
            raise dataclasses.FrozenInstanceError(
                f"cannot set {cls.__name__}.{name}: a module cannot be changed. Make a new one: "
                f"model = model.replace({name}=…), or model.at[lambda m: m.{name}].set(…)."
                + at_user_line()
            )
        if name not in cls._fields:
            near = difflib.get_close_matches(name, cls._fields, 1)
            raise AttributeError(
                f"cannot set {cls.__name__}.{name} in __init__: it is not a field. "
                + (f"Did you mean {near[0]!r}? " if near else "")
                + f"Declare it in the class, as in `{name}: {type(value).__name__}`."
                + at_user_line()
            )
        if isinstance(value, BoundMethod) and value.__self__ is self:
            raise ValueError(
                f"cannot set {cls.__name__}.{name} to the method {value.__name__!r} of the object "
                "itself: it would hold a copy of the unfinished object. Define a method "
                f"`{name}(self, …)` that calls it." + at_user_line()
            )
        convert = cls._converters.get(name)
        vars(self)[name] = value if convert is None else convert(value)

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(
            f"cannot delete {type(self).__name__}.{name}: a module cannot be changed"
        )

    @property
    def at(self: Self) -> At[Self]:
        """Select leaves or subtrees of the model to change, by a function or a pattern.

            model.at[lambda m: m.layers[0].weight].set(w)
            model.at[lambda m: (m.a, m.b)].set((1.0, 2.0))
            model.at["**/bias"].apply(jnp.zeros_like)

        Returns:
            An object to index with a function of the model, or a pattern as in `namoo.paths`; it
            then has the methods `set(value)`, `apply(function)` and `get()`.
        """
        return At(self)

    def replace(self: Self, **changes: Any) -> Self:
        """Return a copy of the module with other values for some of its fields.

        Args:
            **changes: new values by name. They are used unchanged: `__init__` is not called.

        Returns:
            The new module.

        Raises:
            TypeError: if there is no such field.
        """
        cls = type(self)
        for name in changes:
            if name not in cls._fields:
                near = difflib.get_close_matches(name, cls._fields, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Its fields are {cls._fields}."
                raise TypeError(f"{cls.__name__} has no field {name!r}. {hint}")
        values = {**self.__dict__, **changes}
        # Data stay data, whatever the new values are: a mask has booleans instead of arrays.
        return _build(cls, make_form(cls, values, cls._fields, cls._static, self._form), values)

    @entry_point
    def __getattr__(self, name: str) -> Any:
        message = attribute_message(self, name, MODULE_ATTRIBUTES)
        raise AttributeError(message, name=name, obj=self)

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        mine, structure = tree.flatten(self)
        others, other_structure = tree.flatten(other)
        if structure != other_structure:
            return False
        return all(_equal(a, b) for a, b in zip(mine, others, strict=True))

    def __hash__(self) -> int:
        leaves, structure = tree.flatten(self)
        return hash((structure, *leaves))

    def __repr__(self) -> str:
        return pretty(self)

    def _repr_html_(self) -> str:
        from namoo.module.notebook import tree_html  # for notebooks only

        return tree_html(self)

    def __rich_repr__(self) -> Any:
        return ((name, self.__dict__.get(name)) for name in type(self)._fields)

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from treescope.repr_lib import render_object_constructor  # it calls this itself

        fields = {name: self.__dict__.get(name) for name in type(self)._fields}
        return render_object_constructor(type(self), fields, path, subtree_renderer)

    def __getstate__(self) -> tuple[dict[str, Any], Form]:
        return dict(self.__dict__), self._form

    def __setstate__(self, state: tuple[dict[str, Any], Form]) -> None:
        values, form = state
        vars(self).update(values)
        _put(self, "_form", form)


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if getattr(a, "shape", ()) != getattr(b, "shape", ()):
        return False
    if getattr(a, "dtype", None) != getattr(b, "dtype", None):
        return False
    same = a == b
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def _finishing(init: Any) -> Any:
    """Wrap an `__init__` so that the outermost one completes and freezes the module."""

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        is_outermost = self._form is _NEW
        if is_outermost:
            _put(self, "_form", _INITIALISING)
        try:
            init(self, *args, **kwargs)
            if is_outermost:
                _finish(self)
        except Exception as error:
            hide_internal_frames(error)
            raise

    return __init__


def _layer_call(call: Any) -> Any:
    """Wrap the `__call__` of a layer of namoo, so that an error says which layer it was."""

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):
        try:
            return call(self, *args, **kwargs)
        except Exception as error:
            name_layer(error, self, Module)
            hide_internal_frames(error)
            raise

    return __call__


def _finish(self: Any) -> None:
    """Fill in defaults, check that no field is missing, and decide which fields are data."""
    cls = type(self)
    values = self.__dict__
    for f in dataclasses.fields(cls):
        if f.name in values:
            continue
        if f.default is not dataclasses.MISSING:
            setattr(self, f.name, f.default)
        elif f.default_factory is not dataclasses.MISSING:
            setattr(self, f.name, f.default_factory())
    missing = [name for name in cls._fields if name not in values]
    if missing:
        raise TypeError(
            f"{cls.__name__}.__init__ did not set {', '.join(missing)}: every field that the class "
            f"declares needs a value. Write `self.{missing[0]} = …`, or give it a default."
            + at_user_line()
        )
    _put(self, "_form", make_form(cls, values, cls._fields, cls._static))
    for base in reversed(cls.__mro__):
        check = base.__dict__.get("__check_init__")
        if check is not None:
            check(self)


def _build(cls: type, form: Form, values: dict[str, Any]) -> Any:
    node = object.__new__(cls)
    _put(node, "_form", form)
    node.__dict__.update(values)
    return node


def _register(cls: type[Module]) -> None:
    names: dict[tuple[str, ...], list[GetAttrKey]] = {}

    def flatten(node):
        form, values = node._form, node.__dict__
        if type(form) is not Form:
            raise ValueError(
                f"a {cls.__name__} was used as a tree before its __init__ had ended. Call "
                "functions of the whole object after it is made."
            )
        if form.is_plain:
            return [values[name] for name in form.names], form
        return form.hide(values), form

    def unflatten(form, children):
        node = object.__new__(cls)
        _put(node, "_form", form)
        values = vars(node)
        values.update(form.static)
        if form.is_plain:
            values.update(zip(form.names, children, strict=True))
        else:
            values.update(form.show(children))
        return node

    def keys(form, count):
        if form.names not in names:
            names[form.names] = [GetAttrKey(name) for name in form.names]
        return names[form.names]

    register_entry(NodeType(cls, "dataclass", flatten, unflatten, keys, meta_names=cls._fields))
