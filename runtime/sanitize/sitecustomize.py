"""Found by Python under `make sanitize`: takes the C++ part from the build that watches memory."""

import importlib.util
import sys
from pathlib import Path

[path] = (Path(__file__).parents[2] / "build" / "sanitize").glob("_runtime*.so")
spec = importlib.util.spec_from_file_location("namoo._runtime", path)
assert spec is not None and spec.loader is not None
module = sys.modules["namoo._runtime"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
