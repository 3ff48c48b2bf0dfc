"""Background work on another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Job(threading.Thread):
    """A function call on another thread.

    Example:
        >>> Job(max, 3, 5).result()
        5
    """

    # `concurrent.futures` takes longer to import than a cached program takes to load.

    def __init__(self, function: Callable[..., Any], *args: Any):
        super().__init__(daemon=True)
        self._call = function, args
        self._value: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        function, args = self._call
        try:
            self._value = function(*args)
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        """Wait for the function; return its result, or raise its exception."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._value
