"""Parts of JAX that libraries import at their top: they can be imported, but not used."""

from __future__ import annotations

from typing import Any, NoReturn


def stand_in(name: str, why: str) -> Any:
    """Make a placeholder class for something that namoo does not have.

    Args:
        name: JAX's full name of it.
        why: why namoo does not have it, and what to use instead; a sentence.

    Returns:
        a class; making an instance of it, or calling it like the function that it replaces, raises
        `NotImplementedError`.

    Example:
        >>> kernel = stand_in("jax.kernel", "It needs a TPU.")
        >>> kernel(1)
        Traceback (most recent call last):
        NotImplementedError: jax.kernel can be imported, so that ... It needs a TPU.
    """

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name} can be imported, so that libraries that name it load, but namoo does not have "
            f"it. {why}"
        )

    return type(name.rpartition(".")[2], (), {"__new__": refuse, "__doc__": why})
