"""The checks, platforms and calling conventions of exported functions."""

from __future__ import annotations

from namoo.devices.available import default_backend

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def require_version(version: int) -> int:
    """Return a calling convention version if it is supported.

    Raises:
        ValueError: it is not supported.
    """
    low = minimum_supported_calling_convention_version
    high = maximum_supported_calling_convention_version
    if not low <= version <= high:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of "
            f"supported versions [{low}..{high}]"
        )
    return version


def default_export_platform() -> str:
    """The platform that functions are exported for: "cpu", "cuda", "rocm" or "tpu".

    Example:
        >>> default_export_platform()
        'cpu'
    """
    platform = default_backend()
    return "cuda" if platform == "gpu" else platform


class DisabledSafetyCheck:
    """A check to turn off.

    Example:
        >>> DisabledSafetyCheck.platform()
        platform
        >>> DisabledSafetyCheck.custom_call("io_callback").is_custom_call()
        'io_callback'
    """

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls on platforms that the function was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow a function with this operation to be exported, for calls in this process."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the operation that is allowed, or None if this is not a `custom_call`."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" and name else None

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)
