"""When Python's cyclic garbage collector runs."""

from __future__ import annotations

import gc
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager

# The number of new objects after which the collector runs while a function is traced.
_RELAXED_THRESHOLD = 50_000

_lock = RLock()
_pauses = _relaxations = 0
_was_enabled = False
_thresholds = gc.get_threshold()


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the cyclic garbage collector during a short, allocation-heavy section.

    Scanning the new objects again and again would take a tenth of the time.
    """
    global _pauses, _was_enabled
    with _lock:
        _pauses += 1
        if _pauses == 1:
            _was_enabled = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if not _pauses and _was_enabled:
                gc.enable()


@contextmanager
def gc_relaxed() -> Iterator[None]:
    """Run the collector less often while a user's function allocates many objects that stay.

    It is not disabled: nothing is known about what the function does, and for how long.
    """
    global _relaxations, _thresholds
    with _lock:
        _relaxations += 1
        if _relaxations == 1:
            _thresholds = gc.get_threshold()
            if 0 < _thresholds[0] < _RELAXED_THRESHOLD:
                gc.set_threshold(_RELAXED_THRESHOLD, *_thresholds[1:])
    try:
        yield
    finally:
        with _lock:
            _relaxations -= 1
            if not _relaxations and gc.get_threshold()[0] == _RELAXED_THRESHOLD:
                gc.set_threshold(*_thresholds)


def mark_old() -> None:
    """Move every live object into the oldest generation, unless the collector is switched off.

    Modules stay loaded, so their objects need not be scanned when the collector runs next.
    """
    if _was_enabled and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
