"""The parts of a training loop; the loop itself is written by the user.

Example:
    >>> import namoo, namoo.numpy as jnp, numpy as np
    >>> from namoo import data, optim, random, train
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)
    >>> loader = data.Loader((x, 3 * x), batch_size=16, key=random.key(0))
    >>> state = train.TrainState.create(params=jnp.array(0.0), tx=optim.sgd(0.5))
    >>> @namoo.jit
    ... def step(state, batch):
    ...     x, y = batch
    ...     loss, grads = namoo.value_and_grad(lambda w: jnp.mean((w * x - y) ** 2))(state.params)
    ...     return state.apply_gradients(grads), loss
    >>> log, due = train.Logger(kinds=["console"]), train.every(20)
    >>> for i, batch in enumerate(shown := train.progress(loader.steps(40), total=40), 1):
    ...     state, loss = step(state, batch)
    ...     shown(loss=loss)
    ...     if due(i):
    ...         log(i, w=round(float(state.params), 2))
    step 20  w 3
    step 40  w 3
"""

from namoo._base.lazy import lazy as _lazy

_TABLE = {
    "train.accumulation": "accumulate",
    "train.early_stopping": "EarlyStopping",
    "train.ema": "EMA",
    "train.evaluation": "evaluate",
    "train.events": "EventWriter read_events",
    "train.logger": "Logger",
    "train.metrics": "AUC Accuracy Confusion F1 Mean Metric Perplexity TopK compute merge",
    "train.periodic": "every",
    "train.plots": "plot",
    "train.progress": "progress",
    "train.report": "Timings report",
    "train.state": "TrainState",
}

__getattr__, __dir__ = _lazy(__name__, _TABLE, guarded=True)
