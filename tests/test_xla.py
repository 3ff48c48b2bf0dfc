"""The XLA engine against eager evaluation: every primitive, and what the host still computes."""

import pytest

import engines
import namoo
from conformance.harness import all_primitives

pytest.importorskip("jaxlib")

from namoo.engines.xla.engine import xla  # noqa: E402


@pytest.fixture(autouse=True)
def wide_types():
    with namoo.enable_x64(True):
        yield


@pytest.mark.parametrize("jobs", engines.groups(40), ids=lambda jobs: str(jobs[0][0]))
def test_every_primitive_has_the_value_of_eager_mode(jobs):
    engines.check(xla, jobs)


# ---- what the host computes


ON_THE_HOST = {}


def test_the_host_computes_only_what_xla_cannot():
    without = {p.name for p in all_primitives().values() if p.stablehlo is None}
    assert without == set(ON_THE_HOST)
