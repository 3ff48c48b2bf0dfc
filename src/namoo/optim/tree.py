"""The functions of `namoo.optim.tree_utils` by their short names.

Example:
    >>> from namoo.optim import tree
    >>> tree.add({"a": 1.0}, {"a": 2.0})
    {'a': 3.0}
"""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

# `tree_add` is `add`.
_TABLE = {
    module: " ".join(
        f"{name.removeprefix('tree_')}={name}" for name in names.split() if name.startswith("tree_")
    )
    for module, names in _PUBLIC["optim.tree_utils"].items()
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
