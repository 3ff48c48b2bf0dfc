"""A plugin for pytest that runs one in CLIENT_PART tests, always the same ones."""

import os
import zlib


def pytest_collection_modifyitems(config, items):
    part = int(os.environ.get("CLIENT_PART", "1"))
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % part == 0]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
