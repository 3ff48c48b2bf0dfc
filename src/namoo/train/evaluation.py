"""`evaluate`: apply a step to all batches of a loader, and merge its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from namoo import tree
from namoo.train.metrics import Mean, Metric, compute, merge


def evaluate(step: Callable[[Any, Any], Any], params: Any, loader: Iterable[Any]) -> Any:
    """Apply a step to every batch and merge what it returns.

    Args:
        step: a function `(params, batch)`, compiled or not, that returns a tree of metrics, of
            numbers, or of both. Numbers are means over the batch: they are averaged, with the
            number of examples as the weight.
        params: the parameters.
        loader: batches. A padded `namoo.data.Loader` yields pairs `(batch, mask)`, and the mask
            says which examples count.

    Returns:
        A tree like that of the step, with values instead of metrics.

    Raises:
        ValueError: if there are no batches.

    Example:
        >>> import numpy as np
        >>> from namoo import data
        >>> loader = data.Loader(np.arange(5.0), batch_size=2, last="keep")
        >>> evaluate(lambda w, x: {"mean": (w * x).mean()}, 10.0, loader)
        {'mean': 20.0}
    """
    total: Any = None
    is_padded = getattr(loader, "last", None) == "pad"
    for batch in loader:
        found = _as_metrics(step(params, batch), batch, is_padded)
        total = found if total is None else merge(total, found)
    if total is None:
        raise ValueError(
            "there was no batch to evaluate on. Was the loader already read to its end, or is the "
            "batch size larger than the data? last='pad' or last='keep' give all examples."
        )
    return compute(total)


def _as_metrics(found: Any, batch: Any, is_padded: bool) -> Any:
    """Replace the numbers of a tree by metrics."""

    def metric(x: Any) -> Any:
        if isinstance(x, Metric):
            return x
        return Mean.empty().update(x, np.float32(_examples(batch, is_padded)))

    return tree.map(metric, found, is_leaf=lambda x: isinstance(x, Metric))


def _examples(batch: Any, is_padded: bool) -> int:
    if is_padded:
        return int(np.sum(batch[1]))
    shapes = [np.shape(x) for x in tree.leaves(batch)]
    return next((shape[0] for shape in shapes if shape), 1)
