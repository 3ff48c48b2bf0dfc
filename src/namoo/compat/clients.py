"""The libraries that are known to run with namoo standing in for JAX."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).with_name("clients.json")
"""One entry for each library, written by `make clients`."""


class Client(NamedTuple):
    """A library, and how many of its own tests pass.

    Attributes:
        library: The name of its distribution; `flax.nnx` is the part `nnx` of Flax.
        installed: The version in this environment, or None.
        tested: The version whose tests were run.
        tests: Which of its tests were run.
        jax: The number of tests that pass with JAX.
        namoo: The number of those that pass with namoo standing in for JAX.
    """

    library: str
    installed: str | None
    tested: str
    tests: str
    jax: int
    namoo: int

    @property
    def share(self) -> float:
        """The share of the tests that pass with JAX and also pass with namoo."""
        return self.namoo / self.jax if self.jax else 0.0


class Report(list[Client]):
    """The rows of `report()`; it prints as a table."""

    def __repr__(self) -> str:
        head = ("library", "installed", "tested", "share", "passed", "tests")
        rows = [
            (
                client.library,
                client.installed or "-",
                client.tested,
                percent(client),
                f"{client.namoo} of {client.jax}",
                client.tests,
            )
            for client in self
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *rows)
        )


def percent(client: Client) -> str:
    """The share as text, rounded down: 100 % means that every test passes."""
    return f"{int(client.share * 1000) / 10:.1f} %"


def report(*, every: bool = False) -> Report:
    """Return which libraries of this environment are known to run, and how many tests pass.

    Args:
        every: Also list the libraries that are not installed here.

    Returns:
        A list of `Client`, in the order of their names. It prints as a table.

    Example:
        >>> import namoo.compat
        >>> [client.library for client in namoo.compat.report(every=True) if client.share > 1]
        []
    """
    clients = []
    for library, entry in sorted(json.loads(DATA.read_text(encoding="utf-8")).items()):
        try:
            installed = importlib.metadata.version(library.partition(".")[0])
        except importlib.metadata.PackageNotFoundError:
            installed = None
        if every or installed is not None:
            clients.append(Client(library, installed, **entry))
    return Report(clients)
