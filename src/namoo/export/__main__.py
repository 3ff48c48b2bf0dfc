"""Compile an exported function to a C library: `python -m namoo.export model.bin --c out/`."""

from __future__ import annotations

import argparse
from pathlib import Path

from namoo.engines.native.ir import target as targets
from namoo.export import c_library
from namoo.export.exported import deserialize


def _sizes(text: str) -> dict[str, int]:
    return {name: int(size) for name, _, size in (part.partition("=") for part in text.split(","))}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m namoo.export", description=__doc__)
    parser.add_argument("file", type=Path, help="what Exported.serialize wrote")
    parser.add_argument("--c", type=Path, required=True, metavar="FOLDER", help="where to write")
    parser.add_argument("--name", help="the name of the C function")
    parser.add_argument("--target", choices=[*targets.PROCESSORS], help="the processor")
    parser.add_argument("--weights", choices=["inside", "file"], default="inside")
    parser.add_argument("--arena", choices=["caller", "static"], default="caller")
    parser.add_argument("--sizes", type=_sizes, help="sizes of symbolic dimensions: b=8,n=128")
    parser.add_argument("--inputs", help="names of the inputs in C, comma-separated")
    parser.add_argument("--outputs", help="names of the outputs in C, comma-separated")
    options = parser.parse_args()
    exported = deserialize(options.file.read_bytes())
    if options.sizes:
        exported = c_library.at_sizes(exported, options.sizes)
    names = [text and text.split(",") for text in (options.inputs, options.outputs)]
    c_library.compile_to_c(
        exported,
        options.c,
        options.name,
        options.target,
        options.weights,
        options.arena,
        *names,
    )


if __name__ == "__main__":
    main()
