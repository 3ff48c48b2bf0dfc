"""`Checkpoints`: the checkpoints of a run; the latest and the best are kept."""

from __future__ import annotations

import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

from namoo._base.source_context import entry_class
from namoo.checkpoints import files
from namoo.checkpoints.saving import MANIFEST, Saving, info, load, save

_STEP = re.compile(r"step-(\d{10,})")


@entry_class
class Checkpoints:
    """The checkpoints of a run, by step, in one folder.

        checkpoints = Checkpoints("run/checkpoints", keep=3, best="min")
        state = checkpoints.load(like=state) if checkpoints.latest is not None else state
        for step in range(int(state.step), 10_000):
            …
            if step % 100 == 0:
                checkpoints.save(step, state, metric=loss)
        checkpoints.wait()

    A checkpoint becomes visible when it is complete and invisible before it is removed: whenever
    the process is killed, `latest` can be loaded.

    Args:
        folder: the folder of the checkpoints.
        keep: how many of the last to keep; None keeps all.
        best: 'min' or 'max', to also keep those with the best metric.
        keep_best: how many of the best.
        background: save in a thread. An error there is raised by the next call, or by `wait`.
        max_file_bytes: as in `save`.

    Raises:
        ValueError: if an option is invalid.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> checkpoints = Checkpoints(tempfile.mkdtemp(), keep=2, best="min")
        >>> for step, loss in enumerate([0.5, 0.1, 0.4, 0.3]):
        ...     checkpoints.save(step, {"w": jnp.array(loss)}, metric=loss)
        >>> checkpoints.steps, checkpoints.latest, checkpoints.best
        ([1, 2, 3], 3, 1)
        >>> checkpoints.load(step=checkpoints.best)
        {'w': Array(0.1, dtype=float32, weak_type=True)}
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        best: str | None = None,
        keep_best: int = 1,
        background: bool = False,
        max_file_bytes: int = 4 * 2**30,
    ):
        if best not in (None, "min", "max"):
            raise ValueError(f"best is 'min', 'max' or None, not {best!r}")
        if (keep is not None and keep < 1) or keep_best < 1:
            raise ValueError(f"at least one checkpoint is kept, not {keep=} and {keep_best=}")
        self.folder = Path(os.path.abspath(folder))
        self._keep, self._best, self._keep_best = keep, best, keep_best
        self._background, self._max_file_bytes = background, max_file_bytes
        self._metrics: dict[int, float | None] = {}
        self._saving: Saving | None = None

    def path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint, which `namoo.checkpoints.load` can load."""
        return self.folder / f"step-{step:010d}"

    @property
    def steps(self) -> list[int]:
        """The steps that have a complete checkpoint."""
        self.wait()
        return self._steps()

    def _steps(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        found = [_STEP.fullmatch(name) for name in os.listdir(self.folder)]
        return sorted(int(m[1]) for m in found if m and (self.folder / m[0] / MANIFEST).is_file())

    @property
    def latest(self) -> int | None:
        """The latest step that has a checkpoint, or None."""
        return max(self.steps, default=None)

    @property
    def best(self) -> int | None:
        """The step with the best metric (the later of equals), or None if none has a metric.

        Raises:
            ValueError: if `best` was not given.
        """
        if self._best is None:
            raise ValueError("which metric is best? Write Checkpoints(folder, best='min') or 'max'")
        return next(iter(self._ranked(self.steps)), None)

    def _ranked(self, steps: list[int]) -> list[int]:
        """Return the steps that have a metric, best first."""
        sign = -1 if self._best == "max" else 1
        scores = {step: self._metric(step) for step in reversed(steps)}
        known = {step: sign * score for step, score in scores.items() if score is not None}
        return sorted(known, key=known.__getitem__)

    def _metric(self, step: int) -> float | None:
        if step not in self._metrics:
            text = info(self.path(step)).metadata.get("metric")
            value = float(text) if isinstance(text, (int, float, str)) else None
            self._metrics[step] = None if value is None or math.isnan(value) else value
        return self._metrics[step]

    def save(self, step: int, tree: Any, metric: Any = None) -> None:
        """Save a tree as the checkpoint of a step, and remove those that are not kept.

        Args:
            step: the step; an earlier checkpoint of it is replaced.
            tree: any tree.
            metric: a number to choose the best by. NaN is never the best.

        Raises:
            TypeError: if a leaf cannot be saved.
            Exception: what went wrong with the last save in the background.
        """
        self.wait()
        step = int(step)
        if step < 0:
            raise ValueError(f"a step must not be negative, got {step}")
        number = None if metric is None else float(metric)
        # As text, because JSON has no infinity, and a loss may be infinite.
        metadata = {"step": step, "metric": None if number is None else repr(number)}
        self._saving = save(
            self.path(step),
            tree,
            metadata=metadata,
            background=self._background,
            max_file_bytes=self._max_file_bytes,
        )
        self._metrics[step] = None if number is None or math.isnan(number) else number
        if self._saving is None:
            self._prune()

    def wait(self) -> None:
        """Wait for a background save.

        Raises:
            Exception: what went wrong with it.
        """
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.wait()
            self._prune()

    def load(self, step: int | None = None, like: Any = None, **options: Any) -> Any:
        """Load the checkpoint of a step, or the latest.

        Args:
            step: the step.
            like: a template.
            **options: as in `namoo.checkpoints.load`.

        Returns:
            The tree.

        Raises:
            FileNotFoundError: if there is no such checkpoint.
            CheckpointError: if it is damaged.
            TreeMismatchError: if it does not fit the template.
        """
        steps = self.steps
        if not steps or (step is not None and step not in steps):
            raise FileNotFoundError(
                f"{self.folder} has no checkpoint"
                + ("" if step is None else f" of step {step}; there are {steps}")
            )
        return load(self.path(steps[-1] if step is None else step), like, **options)

    def _prune(self) -> None:
        """Remove checkpoints that are not kept, and the remains of incomplete ones."""
        steps = self._steps()
        kept = set(steps if self._keep is None else steps[-self._keep :])
        if self._best is not None:
            kept.update(self._ranked(steps)[: self._keep_best])
        for name in os.listdir(self.folder):
            match = _STEP.fullmatch(name)
            if match and int(match[1]) not in kept:
                self._remove(self.folder / name)
                self._metrics.pop(int(match[1]), None)

    def _remove(self, folder: Path) -> None:
        # The manifest goes first: a half-removed folder is not a checkpoint.
        with files.locked(folder, exclusive=True):
            (folder / MANIFEST).unlink(missing_ok=True)
            files.sync_folder(folder)
            shutil.rmtree(folder)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.wait()
