"""`namoo.compat.report()` lists the libraries that are known to run, from one data file."""

import json

import pytest

import namoo.compat
from namoo.compat import clients


@pytest.fixture
def data(tmp_path, monkeypatch):
    path = tmp_path / "clients.json"
    one = dict(tested="1.0", tests="all tests", jax=1000, namoo=999)
    path.write_text(json.dumps({"numpy": one, "no-such-library": one | {"namoo": 1000}}))
    monkeypatch.setattr(clients, "DATA", path)


def test_only_libraries_of_the_environment_are_listed(data):
    (client,) = namoo.compat.report()
    assert (client.library, client.tested, client.share) == ("numpy", "1.0", 0.999)
    missing, _ = namoo.compat.report(every=True)
    assert (missing.library, missing.installed, missing.share) == ("no-such-library", None, 1.0)


def test_the_report_prints_as_a_table_and_never_rounds_up(data):
    head, line = str(namoo.compat.report()).splitlines()
    assert head.split() == ["library", "installed", "tested", "share", "passed", "tests"]
    assert "99.9 %" in line and "999 of 1000" in line


def test_every_entry_of_the_data_file_is_complete():
    for client in namoo.compat.report(every=True):
        assert client.tested and client.tests
        assert 0 < client.namoo <= client.jax
