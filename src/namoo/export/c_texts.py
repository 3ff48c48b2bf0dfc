"""The text files next to an object file: a C header, a program that calls it, a build file."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import ShapedArray
from namoo.engines.native.link.standalone import ALIGNMENT

_TYPES = {
    "bool": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "float",
    "complex128": "double",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}


class Entry(NamedTuple):
    """The C function, and what its caller has to know.

    Attributes:
        name: the name of the function and of the files.
        inputs: names and types.
        outputs: names and types.
        arena_bytes: memory for intermediate values.
        static_arena: whether the library reserves that memory itself.
        weight_bytes: the size of the weights file; None if the object file contains the weights.
    """

    name: str
    inputs: list[tuple[str, ShapedArray]]
    outputs: list[tuple[str, ShapedArray]]
    arena_bytes: int
    static_arena: bool
    weight_bytes: int | None


class _Array(NamedTuple):
    """An array in C: the type of its numbers, how many there are, and a comment about it."""

    kind: str
    count: int
    about: str


def _array(aval: ShapedArray) -> _Array:
    shape, dtype = "".join(f"[{n}]" for n in aval.shape) or " (one number)", aval.dtype
    if isinstance(dtype, dtypes.KeyDType):
        words = math.prod(dtype.key_shape)
        return _Array("uint32_t", math.prod(aval.shape) * words, f"random keys{shape}")
    name = np.dtype(dtype).name
    pairs = 2 if name.startswith("complex") else 1
    about = f"{name}{shape}" + (", real and imaginary parts interleaved" if pairs == 2 else "")
    if name in ("float16", "bfloat16"):
        about += ", as bits"
    return _Array(_TYPES.get(name, "uint8_t"), math.prod(aval.shape) * pairs, about)


def _prefix(entry: Entry) -> str:
    return entry.name.upper()


def _parameters(entry: Entry) -> list[tuple[str, str]]:
    """Return the parameters of the function, each with a description."""
    out = []
    for qualifier, arrays in (("const ", entry.inputs), ("", entry.outputs)):
        for name, aval in arrays:
            array = _array(aval)
            out.append((f"{qualifier}{array.kind} *{name}", array.about))
    p = _prefix(entry)
    if entry.weight_bytes is not None:
        text = f"the content of {entry.name}.weights: {p}_WEIGHT_BYTES bytes"
        out.append(("const void *weights", f"{text}, aligned to {ALIGNMENT}"))
    if not entry.static_arena:
        text = f"{p}_ARENA_BYTES bytes of any content, aligned to {ALIGNMENT}"
        out.append(("void *arena", text))
    return out


def header(entry: Entry) -> str:
    """The C header."""
    p = _prefix(entry)
    about = [f" *   {declared.split('*')[-1]}: {text}" for declared, text in _parameters(entry)]
    counts = [
        f"#define {p}_{name.upper()}_COUNT {_array(aval).count}"
        for name, aval in (*entry.inputs, *entry.outputs)
    ]
    declared = ",\n    ".join(text for text, _ in _parameters(entry)) or "void"
    sizes = [f"#define {p}_ARENA_BYTES {entry.arena_bytes}"]
    if entry.weight_bytes is not None:
        sizes.append(f"#define {p}_WEIGHT_BYTES {entry.weight_bytes}")
    once = "one call at a time" if entry.static_arena else "from several threads at once"
    lines = [
        f"/* {entry.name}: written by namoo.export.to_c.",
        " *",
        " * All arrays are contiguous in row-major order. Inputs are not modified. Outputs must",
        " * not overlap other arguments. The function allocates no memory, keeps no state,",
        f" * returns 0, and may be called {once}.",
        " *",
        *about,
        " */",
        f"#ifndef {p}_H",
        f"#define {p}_H",
        "",
        "#include <stdint.h>",
        "",
        *counts,
        *sizes,
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"int {entry.name}(",
        f"    {declared});",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


_MAIN = """/* Calls {name} once: ./{name}_main [inputs [outputs]]
 *
 * The inputs file contains all input arrays, one after the other; without it they are zeros. The
 * outputs are written to a file in the same way, and the first number of each is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "{name}.h"

static void *aligned(size_t bytes) {{
    size_t rounded = (bytes / {alignment} + 1) * {alignment};
    void *memory = aligned_alloc({alignment}, rounded);
    if (memory == NULL) {{
        fprintf(stderr, "out of memory\\n");
        exit(1);
    }}
    memset(memory, 0, rounded);
    return memory;
}}

static FILE *opened(const char *path, const char *mode) {{
    FILE *file = fopen(path, mode);
    if (file == NULL) {{
        perror(path);
        exit(1);
    }}
    return file;
}}

static void read_all(FILE *file, void *memory, size_t bytes) {{
    if (fread(memory, 1, bytes, file) != bytes) {{
        fprintf(stderr, "an input file is too short\\n");
        exit(1);
    }}
}}

int main(int count, char **words) {{
{body}
    return code;
}}
"""


def main(entry: Entry) -> str:
    """A C program that calls the function."""
    p, lines = _prefix(entry), []
    for name, aval in (*entry.inputs, *entry.outputs):
        kind = _array(aval).kind
        lines.append(f"{kind} *{name} = aligned({p}_{name.upper()}_COUNT * sizeof({kind}));")
    arguments = [name for name, _ in (*entry.inputs, *entry.outputs)]
    if entry.weight_bytes is not None:
        lines.append(f"void *weights = aligned({p}_WEIGHT_BYTES);")
        lines.append(f'FILE *stored = opened("{entry.name}.weights", "rb");')
        lines.append(f"read_all(stored, weights, {p}_WEIGHT_BYTES);")
        lines.append("fclose(stored);")
        arguments.append("weights")
    if not entry.static_arena:
        lines.append(f"void *arena = aligned({p}_ARENA_BYTES);")
        arguments.append("arena")
    lines += ["if (count > 1) {", '    FILE *given = opened(words[1], "rb");']
    for name, _ in entry.inputs:
        lines.append(f"    read_all(given, {name}, {p}_{name.upper()}_COUNT * sizeof(*{name}));")
    lines += ["    fclose(given);", "}", f"int code = {entry.name}({', '.join(arguments)});"]
    for name, aval in entry.outputs:
        array = _array(aval)
        if array.count:
            lines.append(f'printf("{name}[0] = %g\\n", (double){name}[0]);')
    lines += ["if (count > 2) {", '    FILE *written = opened(words[2], "wb");']
    for name, _ in entry.outputs:
        size = f"{p}_{name.upper()}_COUNT"
        lines.append(f"    fwrite({name}, sizeof(*{name}), {size}, written);")
    lines += ["    fclose(written);", "}"]
    body = "\n".join(f"    {line}" for line in lines)
    return _MAIN.format(name=entry.name, alignment=ALIGNMENT, body=body)


def cmake(entry: Entry) -> str:
    """The CMake file: the library (shared with BUILD_SHARED_LIBS, else static) and the program."""
    name = entry.name
    return f"""cmake_minimum_required(VERSION 3.16)
project({name} C)

add_library({name} {name}.o)
set_source_files_properties({name}.o PROPERTIES EXTERNAL_OBJECT TRUE)
set_target_properties({name} PROPERTIES LINKER_LANGUAGE C)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})

add_executable({name}_main main.c)
target_link_libraries({name}_main {name} m)
"""
