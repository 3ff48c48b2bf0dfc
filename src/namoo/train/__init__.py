"""The parts of a training loop; the loop itself stays the user's."""

from namoo._lazy import lazy as _lazy

_TABLE = {
    "train.state": "TrainState",
}

__getattr__, __dir__ = _lazy(__name__, _TABLE)
