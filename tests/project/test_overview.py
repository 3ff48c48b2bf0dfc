"""`python -m namoo` tells what is there."""

import os
import subprocess
import sys

import pytest

import namoo


def overview(**variables: str) -> dict[str, str]:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-W", "error", "-m", "namoo"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows: dict[str, str] = {}
    name = ""
    for line in done.stdout.splitlines():
        name = line[:10].strip() or name
        rows[name] = f"{rows.get(name, '')} {line[10:]}".strip()
    return rows


def test_the_rows():
    rows = overview()
    assert list(rows) == ["namoo", "python", "C++ part", "engines", "devices", "cache", "settings"]
    assert rows["namoo"] == namoo.__version__
    assert "native (llvmlite " in rows["engines"] and "interpreter (numpy " in rows["engines"]
    assert rows["devices"].startswith("cpu:0")


@pytest.mark.parametrize(
    ("variables", "row", "text"),
    [
        ({"NAMOO_CACHE": "off"}, "cache", "off"),
        ({"NAMOO_ENABLE_X64": "1"}, "settings", "enable_x64 = True"),
        ({"NAMOO_ENGINE": "interpreter"}, "settings", "engine = 'interpreter'"),
        ({"NAMOO_RUNTIME": "python"}, "C++ part", "no: trees and calls are slower"),
    ],
)
def test_what_the_environment_changes(variables, row, text):
    assert text in overview(**variables)[row]


def test_the_folder_of_the_cache(tmp_path):
    assert overview(NAMOO_CACHE_DIR=str(tmp_path / "new"))["cache"] == str(tmp_path / "new")
