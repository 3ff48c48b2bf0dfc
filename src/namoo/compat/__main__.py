"""Run a program with namoo instead of JAX: `python -m namoo.compat train.py …`."""

from __future__ import annotations

import os
import runpy
import sys

from namoo.compat.alias import install

USAGE = "usage: python -m namoo.compat (script.py | -m module | -c code) [arguments ...]"


def main(argv: list[str]) -> None:
    """Run what the arguments name, as `python` would."""
    install()
    match argv:
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            sys.path[0] = ""
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            sys.path[0] = ""
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case [script, *rest] if not script.startswith("-"):
            sys.argv = [script, *rest]
            sys.path[0] = os.path.dirname(os.path.abspath(script))
            runpy.run_path(script, run_name="__main__")
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
