"""Files of all versions of the format are read, and compute what they computed when written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import namoo
from namoo.export import container, deserialize

FOLDER = Path(__file__).parents[1] / "data" / "exports"
FILES = sorted(FOLDER.glob("*.bin"))


def test_every_version_has_files():
    versions = {int(file.suffixes[0].removeprefix(".v")) for file in FILES}
    assert versions == {*range(1, container.VERSION + 1)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_stored_export(file):
    exported = deserialize(file.read_bytes())
    stored = np.load(file.with_suffix(".npz"))
    args = [stored[f"arg{i}"] for i in range(len(exported.in_avals))]
    results = namoo.tree.leaves(exported.call(*args))
    for i, found in enumerate(results):
        wanted = stored[f"result{i}"]
        assert found.shape == wanted.shape
        # Other machines round sums and exponentials in other places.
        np.testing.assert_allclose(np.asarray(found, wanted.dtype), wanted, rtol=1e-4, atol=1e-5)
    if exported.has_vjp():
        cotangents = [np.zeros(x.shape, a.tangent().dtype) for x, a in
                      zip(results, exported.out_avals, strict=True)]  # fmt: skip
        found = exported.vjp().call(*args, *cotangents)
        assert all(not np.asarray(x).any() for x in found if x.dtype == "float32")
