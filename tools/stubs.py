"""Write the stubs of all namespaces, and the index of names that they are made from.

A namespace loads its names lazily, from a table of modules (`namoo._base.lazy`). Editors and type
checkers read the same table as imports, from a `.pyi` file next to it. Some tables take all public
names of a folder: its modules have an `__all__`, and `_base/public_names.py` is the index of them,
so that a namespace knows its names without importing anything.

    python tools/stubs.py            write the files that are not current
    python tools/stubs.py --check    list them, and fail if there are any
"""

import ast
import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "namoo"
INDEX = PACKAGE / "_base" / "public_names.py"

FOLDERS = (
    "optim",
    "optim.losses",
    "optim.transforms",
    "optim.tree_utils",
    "primitives",
    "primitives.linalg",
    "primitives.random",
    "primitives.special",
)
"""The folders whose modules declare their public names."""


def declared(path: Path) -> list[str]:
    """`__all__` of a module, read from its text."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return ast.literal_eval(node.value)
    return []


def index() -> str:
    """The text of `_base/public_names.py`."""
    lines = [
        '"""`__all__` of the modules, by folder.  Written by `make stubs`."""',
        "",
        "PUBLIC = {",
    ]
    for folder in FOLDERS:
        lines.append(f"    {folder!r}: {{")
        for path in sorted((PACKAGE / folder.replace(".", "/")).glob("*.py")):
            if names := declared(path):
                *first, last = textwrap.wrap(" ".join(names), 82)
                text = "\n".join([*(repr(words + " ") for words in first), repr(last)])
                lines.append(f"        {f'{folder}.{path.stem}'!r}: ({text}),")
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


def stub(path: Path) -> str:
    """The text of a namespace's stub: the table of its module, as imports."""
    from namoo._base.lazy import names_of

    source = path.with_suffix(".py")
    parts = source.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    # `import x as x` is public in a stub; a plain `import x` only serves the stub itself.
    imports, rest = {}, ["_TABLE: dict[str, str]"]
    for public, (home, own) in names_of(module._TABLE).items():
        package, _, name = f"namoo.{home}.{own}".rstrip(".").rpartition(".")
        line = f"from {package} import {name}"
        if name == public:
            imports[line] = f" as {name}"
        else:
            imports.setdefault(line, "")
            rest.append(f"{public} = {name}")
    for name, value in vars(module).items():
        if name.isupper() and not name.startswith("_"):
            rest.append(f"{name}: {type(value).__name__}")
    return "\n".join([*map("".join, imports.items()), "", *sorted(rest, key=str.lower), ""])


def tidy(text: str, path: Path) -> str:
    """The text as the linter and the formatter leave it."""
    for options in (["check", "--quiet", "--fix", "--select=I"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *options, f"--stdin-filename={path}", "-"]
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = run.stdout
    return text


def update(path: Path, text: str, check: bool) -> bool:
    """Write a file if it is out of date, unless `check` is set; return whether it was."""
    text = tidy(text, path)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    print(path.relative_to(ROOT))
    if not check:
        path.write_text(text, encoding="utf-8")
    return True


def main(check: bool) -> int:
    old = update(INDEX, index(), check)
    sys.path.insert(0, str(PACKAGE.parent))
    old = sum([update(path, stub(path), check) for path in sorted(PACKAGE.rglob("*.pyi"))], old)
    if check and old:
        print("These are not current: run `make stubs`.")
    return int(check and old > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
