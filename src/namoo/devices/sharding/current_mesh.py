"""The current mesh, which a bare `PartitionSpec` refers to. Each thread has one."""

from __future__ import annotations

from typing import Any

from namoo._base.config import Scope, config
from namoo.core.trace import EvalTrace, context
from namoo.devices.sharding.mesh import (
    EMPTY_ABSTRACT_MESH,
    EMPTY_MESH,
    AbstractMesh,
    AxisType,
    Mesh,
)


def _refuse_in_trace(what: str, instead: str) -> None:
    if not isinstance(context.trace, EvalTrace):
        raise ValueError(f"{what} can only be used outside of jit and other transforms; {instead}.")


class set_mesh:
    """Set the mesh that a bare `PartitionSpec` refers to, in this thread.

    A call sets it permanently, a `with` block for its duration.

    Args:
        mesh: the mesh; None for none.

    Raises:
        ValueError: not a mesh of devices, or inside of a transformed function.

    Example:
        >>> import namoo
        >>> with namoo.set_mesh(namoo.make_mesh((1,), ("data",))):
        ...     print(namoo.sharding.get_mesh())
        Mesh('data': 1, axis_types=(Explicit,))
    """

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh takes a Mesh, as from namoo.make_mesh, or None; got {mesh!r} of type "
                f"{type(mesh).__name__}."
            )
        _refuse_in_trace("set_mesh", "set the mesh around the call")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(
                f"set_mesh: {mesh} contains manual axes {mesh.manual_axes}, which only shard_map "
                "makes; give the mesh axes of type Auto or Explicit."
            )
        self._scopes = [Scope("mesh", mesh), Scope("abstract_mesh", None)]
        for scope in self._scopes:
            scope.__enter__()

    def __enter__(self) -> None:
        """Do nothing: the constructor has set the mesh."""

    def __exit__(self, *exc: object) -> None:
        for scope in reversed(self._scopes):
            scope.__exit__(*exc)


def get_mesh() -> Mesh:
    """Return the mesh of `set_mesh`; an empty one if there is none.

    Raises:
        ValueError: inside of a transformed function.
    """
    _refuse_in_trace("get_mesh", "write get_abstract_mesh() there")
    return concrete_mesh()


def concrete_mesh() -> Mesh:
    """Return the current mesh of devices, also inside of a trace."""
    return EMPTY_MESH if config.mesh is None else config.mesh


class use_abstract_mesh:
    """Set the names and sizes of the current mesh for a `with` block, without devices.

    Args:
        mesh: an `AbstractMesh`; inside another one, of the same size.

    Raises:
        ValueError: not an AbstractMesh, or of another size than the enclosing one.

    Example:
        >>> with use_abstract_mesh(AbstractMesh((4,), ("x",))):
        ...     get_abstract_mesh()
        AbstractMesh('x': 4, axis_types=(Auto,))
    """

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"use_abstract_mesh takes an AbstractMesh, as mesh.abstract_mesh; got {mesh!r} of "
                f"type {type(mesh).__name__}."
            )
        self._mesh = mesh
        self._scopes: list[Any] = []

    def __enter__(self) -> None:
        around = get_abstract_mesh()
        if not around.empty and not self._mesh.empty and around.size != self._mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the number of devices: {around} has "
                f"{around.size}, {self._mesh} has {self._mesh.size}."
            )
        scope = Scope("abstract_mesh", self._mesh)
        scope.__enter__()
        self._scopes.append(scope)

    def __exit__(self, *exc: object) -> None:
        self._scopes.pop().__exit__(*exc)


def get_abstract_mesh() -> AbstractMesh:
    """Return the names and sizes of the current mesh; an empty one if there is none.

    Inside of a `shard_map` it is the mesh of the `shard_map`, and the axes that it maps over have
    type Manual.

    Example:
        >>> get_abstract_mesh()
        AbstractMesh((), axis_types=())
    """
    mesh = config.abstract_mesh
    if mesh is None:
        around = config.mesh if context.mesh is None else context.mesh
        mesh = EMPTY_ABSTRACT_MESH if around is None else around.abstract_mesh
    if context.mesh is None:
        return mesh
    manual = {name: AxisType.Manual for name in mesh.axis_names if name in context.axes}
    return mesh.update_axis_types(manual) if manual else mesh


def mesh_here() -> Mesh | AbstractMesh:
    """Return the current mesh with its devices, if it has any, and the types of its axes here."""
    mesh, here = concrete_mesh(), get_abstract_mesh()
    if mesh.empty or mesh.axis_names != here.axis_names:
        return here
    return mesh.update(axis_types=here.axis_types)
