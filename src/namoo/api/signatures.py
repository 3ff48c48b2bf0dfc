"""How transformations change the types of functions; only type checkers read this.

`jit` keeps the parameters and the result of a function: a `JittedFunction[P, R]` is called like it,
and has the methods of `api.jit.Jitted` besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, overload

from namoo.api.retrace import Explanation
from namoo.api.stages import Lowered, Traced

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class JitOptions(TypedDict, total=False):
    """The keyword arguments of `jit`."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    inline: bool
    device: Any
    backend: str | None
    engine: str | None
    in_shardings: Any
    out_shardings: Any
    abstracted_axes: Any
    compiler_options: dict[str, Any] | None
    dynamic: Mapping[str, Any] | None


class JittedFunction(Protocol[P, R_co]):
    """A function under `jit`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    # Decorated in a class, the function is a method.
    @overload
    def __get__(self, instance: None, owner: Any = None) -> JittedFunction[P, R_co]: ...
    @overload
    def __get__(
        self: JittedFunction[Concatenate[Any, Q], R_co], instance: object, owner: Any = None
    ) -> Callable[Q, R_co]: ...

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...
    @property
    def __name__(self) -> str: ...

    def explain(self) -> Explanation: ...
    def clear_cache(self) -> None: ...
    # `ShapeDtypeStruct`s take the place of arrays here, so that any argument is allowed.
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    # A jitted function has the attributes of the function.
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...


class JitDecorator(Protocol):
    """`jit` with its options given, as in `@jit(static_argnums=1)`."""

    def __call__(self, fun: Callable[P, R], /) -> JittedFunction[P, R]: ...
