"""Save and load trees: safetensors and JSON, no pickle.

Example:
    >>> import tempfile, namoo, namoo.numpy as jnp
    >>> from namoo import checkpoints
    >>> path = tempfile.mkdtemp() + "/model"
    >>> checkpoints.save(path, {"w": jnp.ones(2), "key": namoo.random.key(0), "name": "tiny"})
    >>> checkpoints.load(path)
    {'key': Array((), dtype=key<fry>) overlaying: [0 0], 'name': 'tiny', 'w': Array([1., 1.], ...)}

`save` and `load` hold one tree; `Checkpoints` those of a run. `load_safetensors` reads the files of
PyTorch and Hugging Face. A file is never trusted: its content is checked before anything is
allocated, and nothing is imported or called because of its content.

(`namoo.checkpoint`, without the s, is JAX's rematerialisation.)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.manager import Checkpoints
from namoo.checkpoints.plain_safetensors import load_safetensors, save_safetensors
from namoo.checkpoints.saving import Info, Saving, info, load, save

_guard(globals())

__all__ = [
    "CheckpointError",
    "Checkpoints",
    "Info",
    "Saving",
    "info",
    "load",
    "load_safetensors",
    "save",
    "save_safetensors",
]
__dir__ = __all__.copy
