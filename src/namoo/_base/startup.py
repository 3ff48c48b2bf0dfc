"""Settings for the time of import: garbage collection is paused, and NumPy's BLAS configured."""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager

from namoo._base.gc_policy import gc_paused, mark_old

LOADED_AT = time.time_ns()
"""When this process began to load the package: a file that is newer is not the one that runs."""

# Threads of OpenBLAS that find no work sleep after 2**n clock ticks. The default is 26: each thread
# occupies a core for as long as a whole first training step takes. With 20, half a millisecond,
# they are still awake for the next product of a program. OpenBLAS reads it when it is loaded.
_TIMEOUT, _TICKS = "OPENBLAS_THREAD_TIMEOUT", "20"

_lock = RLock()
_loads = 0
_shortened = False


@contextmanager
def loading() -> Iterator[None]:
    """Import modules inside: the collector is paused, and OpenBLAS reads the shorter timeout."""
    global _loads, _shortened
    with _lock:
        _loads += 1
        if _loads == 1:
            _shortened = "numpy" not in sys.modules and _TIMEOUT not in os.environ
            if _shortened:
                os.environ[_TIMEOUT] = _TICKS
    with gc_paused():
        try:
            yield
        finally:
            with _lock:
                _loads -= 1
                if not _loads:
                    if _shortened:
                        os.environ.pop(_TIMEOUT, None)
                    mark_old()
