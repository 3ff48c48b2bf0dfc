"""Fixtures for pytest: write `pytest_plugins = ["namoo.pytest_plugin"]` in `conftest.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from namoo.api import trace_counts


@pytest.fixture
def max_traces() -> Iterator[Callable[[Any, int], None]]:
    """A function `max_traces(f, limit)`: the test fails if `f` is traced more often."""
    with contextlib.ExitStack() as stack:
        yield lambda fun, limit: stack.enter_context(trace_counts.max_traces(fun, limit))
