"""`Logger`: the numbers of a run, on the console and in files that survive a crash."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from namoo.train.events import EventWriter
from namoo.train.progress import aside

KINDS = ("console", "csv", "jsonl", "tensorboard")


class Logger:
    """Record the numbers of a run, and write them to the console and to files.

    Every call appends one line to a file, in a single write: a run that is killed leaves complete
    lines, and a partial one is removed when the run is resumed. `history` has all lines, including
    those of an earlier run in the same folder.

    Args:
        folder: where the files are: `log.csv`, `log.jsonl`, and those of TensorBoard.
        kinds: which of "console", "csv", "jsonl", "tensorboard" to write.
        file: the stream for "console"; the standard output by default.

    Raises:
        ValueError: if a kind is unknown, or needs a folder and there is none.

    Example:
        >>> log = Logger(kinds=["console"])
        >>> for step in (10, 20):
        ...     log(step, loss=1 / step, accuracy=0.5)
        step 10  loss 0.1  accuracy 0.5
        step 20  loss 0.05  accuracy 0.5
        >>> log.history
        [{'step': 10, 'loss': 0.1, 'accuracy': 0.5}, {'step': 20, 'loss': 0.05, 'accuracy': 0.5}]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        kinds: Iterable[str] = ("console", "jsonl"),
        *,
        file: Any = None,
    ):
        self.kinds = tuple(kinds)
        for kind in self.kinds:
            if kind not in KINDS:
                raise ValueError(f"a logger writes {', '.join(KINDS)}, not {kind!r}.")
            if kind != "console" and folder is None:
                raise ValueError(f"{kind!r} needs a folder: Logger('runs/first', ...).")
        self.file = file
        self.history: list[dict[str, Any]] = []
        self._lines: list[_Lines] = []
        self._events: EventWriter | None = None
        self.started = time.time()
        self.folder: Path | None = None
        if folder is None:
            return
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        # CSV first, so that the history comes from JSON where both exist: it preserves types.
        for kind, form in (("csv", _Csv), ("jsonl", _Jsonl)):
            if kind in self.kinds:
                self._lines.append(form(self.folder / f"log.{kind}"))
                self.history = self._lines[-1].read()
        if "tensorboard" in self.kinds:
            self._events = EventWriter(self.folder)

    def __call__(self, step: int, **values: Any) -> None:
        """Log numbers at a step; arrays of one element are read, and strings are kept."""
        row = {"step": int(step), **{name: _plain(name, x) for name, x in values.items()}}
        self.history.append(row)
        for lines in self._lines:
            lines.append(row)
        if self._events is not None:
            numbers = {k: v for k, v in row.items() if k != "step" and not isinstance(v, str)}
            self._events.write(row["step"], numbers)
        if "console" in self.kinds:
            with aside():
                print("  ".join(f"{k} {_short(v)}" for k, v in row.items()), file=self.file)

    def rewind(self, step: int) -> None:
        """Remove what was logged at a step and after it, for a run that is resumed there.

        TensorBoard's file keeps it; the new values are drawn over the old ones.

        Args:
            step: the first step that is to be logged again.
        """
        kept = [row for row in self.history if row["step"] < step]
        if len(kept) < len(self.history):
            self.history = kept
            for lines in self._lines:
                lines.rewrite(kept)

    def close(self) -> None:
        """Close the files."""
        for lines in self._lines:
            lines.close()
        if self._events is not None:
            self._events.close()

    def __repr__(self) -> str:
        names = list(dict.fromkeys(name for row in self.history for name in row if name != "step"))
        where = f" in {self.folder}" if self.folder is not None else ""
        last = f", the last at step {self.history[-1]['step']}" if self.history else ""
        return f"<Logger of {', '.join(names) or 'nothing'}: {len(self.history)} rows{last}{where}>"

    def _repr_html_(self) -> str:
        from namoo.train.charts import history_html

        return history_html(self)

    def __enter__(self) -> Logger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _plain(name: str, value: Any) -> Any:
    """Convert a value to a Python number or string."""
    if hasattr(value, "item") and hasattr(value, "shape"):
        if math.prod(value.shape) != 1:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}: a logger takes single numbers. Log its "
                "mean, or each of its elements under a name."
            )
        value = value.item()
    if isinstance(value, (str, int, float)):
        return value
    if not hasattr(value, "__float__"):
        raise TypeError(f"a logger takes numbers and texts, and {name} is {value!r:.60}.")
    return float(value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Lines(ABC):
    """A file that grows by complete lines."""

    def __init__(self, path: Path):
        self.path = path
        self._repair()
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self.path, flags, 0o666)

    def _repair(self) -> None:
        """Remove a last line that is incomplete."""
        if self.path.exists():
            data = self.path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(self.path, whole)

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def replace(self, text: str) -> None:
        """Replace the content atomically."""
        new = self.path.with_name(self.path.name + ".new")
        with open(new, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.close()
        os.replace(new, self.path)
        self._open()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @abstractmethod
    def append(self, row: dict[str, Any]) -> None:
        """Add a row."""

    @abstractmethod
    def rewrite(self, rows: list[dict[str, Any]]) -> None:
        """Replace all rows."""

    @abstractmethod
    def read(self) -> list[dict[str, Any]]:
        """Return all rows."""


class _Jsonl(_Lines):
    """One JSON object per line; NaN and infinity, which JSON lacks, are written as strings."""

    def append(self, row: dict[str, Any]) -> None:
        self.write(self.text(row))

    def rewrite(self, rows: list[dict[str, Any]]) -> None:
        self.replace("".join(map(self.text, rows)))

    def text(self, row: dict[str, Any]) -> str:
        finite = {
            k: str(v) if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in row.items()
        }
        return json.dumps(finite, allow_nan=False) + "\n"

    def read(self) -> list[dict[str, Any]]:
        texts = self.path.read_text(encoding="utf-8").splitlines()
        return [{k: _number(v) for k, v in json.loads(text).items()} for text in texts]


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _number(value: Any) -> Any:
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


class _Csv(_Lines):
    """A table whose first line has the names; a new name rewrites the table."""

    def __init__(self, path: Path):
        super().__init__(path)
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
        self.names: list[str] = rows[0] if rows else []

    def append(self, row: dict[str, Any]) -> None:
        if unknown := [name for name in row if name not in self.names]:
            earlier = self.read()
            self.names += unknown
            self.replace(self.text([*earlier, row], heads=True))
        else:
            self.write(self.text([row], heads=False))

    def rewrite(self, rows: list[dict[str, Any]]) -> None:
        self.replace(self.text(rows, heads=True))

    def text(self, rows: list[dict[str, Any]], heads: bool) -> str:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, self.names, lineterminator="\n")
        if heads:
            writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def read(self) -> list[dict[str, Any]]:
        if not self.names:
            return []
        rows = csv.DictReader(io.StringIO(self.path.read_text(encoding="utf-8")))
        return [{k: _parsed(v) for k, v in row.items() if v not in ("", None)} for row in rows]


def _parsed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
