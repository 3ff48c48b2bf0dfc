"""`progress`: show how far a loop has come, on a terminal or in a notebook."""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class progress:
    """Show how far a loop has come, its speed, the remaining time, and numbers such as the loss.

    The line is drawn a few times per second, by tqdm if it is installed. A number is read only when
    it is drawn. Nothing is written to files and pipes, only to terminals and notebooks.

    Args:
        iterable: what to loop over.
        total: the number of items; by default the length of the iterable, if it has one.
        description: the text in front.
        file: where to draw; the standard error by default.
        interval: the minimum number of seconds between two updates.

    Example:
        >>> shown = progress(range(3), description="epoch 1")
        >>> for step in shown:
        ...     shown(loss=1 / (step + 1))
        >>> shown.count
        3
    """

    def __init__(
        self,
        iterable: Iterable[Any],
        total: int | None = None,
        *,
        description: str = "",
        file: TextIO | None = None,
        interval: float = 0.1,
    ):
        self.iterable, self.description, self.interval = iterable, description, interval
        self.file = sys.stderr if file is None else file
        self.total = _length(iterable) if total is None else total
        self.count = 0
        self.numbers: dict[str, Any] = {}

    def __call__(self, **numbers: Any) -> None:
        """Set the numbers to show."""
        self.numbers.update(numbers)

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("the total is not known.")
        return self.total

    def __iter__(self) -> Iterator[Any]:
        self.count = 0
        if not _is_watched(self.file):
            for item in self.iterable:
                yield item
                self.count += 1
            return
        draw = _tqdm(self) if importlib.util.find_spec("tqdm") else _Line(self)
        due = 0.0
        _drawn.append(draw)
        try:
            for item in self.iterable:
                if (now := time.perf_counter()) >= due:
                    draw(self.count)
                    due = now + self.interval
                yield item
                self.count += 1
        finally:
            _drawn.remove(draw)
            draw(self.count)
            draw.close()

    def shown_numbers(self) -> str:
        """Return the text of the numbers."""
        return ", ".join(f"{name} {_short(value)}" for name, value in self.numbers.items())


_drawn: list[_Line | _tqdm] = []


@contextmanager
def aside() -> Iterator[None]:
    """Context manager: clear the line so that other text can be written, then draw it again."""
    for draw in _drawn:
        draw.clear()
    yield
    for draw in _drawn:
        draw(draw.of.count)


def _is_watched(file: TextIO | None) -> bool:
    """Return whether output is visible while it is written: on a terminal or in a notebook."""
    if file is None:  # a program without a console has no standard error
        return False
    return file.isatty() or type(file).__module__.partition(".")[0] == "ipykernel"


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{float(value):.4g}"


class _Line:
    """A line that overwrites itself."""

    def __init__(self, of: progress):
        self.of, self.start, self.first = of, time.perf_counter(), of.count
        self.width = 0

    def __call__(self, count: int) -> None:
        self.write(line(self.of, count - self.first, time.perf_counter() - self.start))

    def write(self, text: str) -> None:
        self.of.file.write("\r" + text.ljust(self.width))
        self.of.file.flush()
        self.width = len(text)

    def clear(self) -> None:
        self.write("")
        self.of.file.write("\r")
        self.of.file.flush()

    def close(self) -> None:
        self.of.file.write("\n")
        self.of.file.flush()


def line(of: progress, done: int, seconds: float) -> str:
    """Return the text of a loop that has done `done` steps in `seconds`.

    Example:
        >>> line(progress(range(4), description="fit"), 1, 2.0)
        'fit  1/4  25%  0.50 steps/s  0:06 left'
    """
    rate = done / seconds if seconds > 0 else 0.0
    parts = [of.description] if of.description else []
    if of.total is None:
        parts.append(str(of.count or done))
    else:
        parts += [f"{done}/{of.total}", f"{done / max(of.total, 1):.0%}"]
    parts.append(f"{rate:.{0 if rate >= 100 else 2}f} steps/s")
    if of.total is not None and rate > 0:
        parts.append(f"{clock((of.total - done) / rate)} left")
    if of.numbers:
        parts.append(of.shown_numbers())
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Format seconds like a clock.

    Example:
        >>> clock(59.6), clock(3725)
        ('1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _tqdm:
    """A progress bar of tqdm."""

    def __init__(self, of: progress):
        with warnings.catch_warnings():
            # Without ipywidgets it warns, and draws a line of text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm

        self.of = of
        self.bar = tqdm(total=of.total, desc=of.description or None, file=of.file, unit="step")

    def __call__(self, count: int) -> None:
        self.bar.set_postfix_str(self.of.shown_numbers(), refresh=False)
        self.bar.n = count
        self.bar.refresh()

    def clear(self) -> None:
        self.bar.clear()

    def close(self) -> None:
        self.bar.close()
