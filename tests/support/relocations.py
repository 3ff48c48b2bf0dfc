"""The relocations of object files: how their code refers to other symbols.

`python relocations.py` compiles a program with threads, special functions and products for the
processor in `NAMOO_TARGET_CPU`, and prints the relocations of its object files.
"""

from __future__ import annotations

import struct
import sys

# What a number means, by the processor in the header; from the ELF, Mach-O and COFF specifications.
KINDS = {
    "elf aarch64": {
        257: "ABS64", 258: "ABS32", 260: "PREL64", 261: "PREL32",
        263: "MOVW_UABS_G0", 264: "MOVW_UABS_G0_NC",
        265: "MOVW_UABS_G1", 266: "MOVW_UABS_G1_NC", 267: "MOVW_UABS_G2", 268: "MOVW_UABS_G2_NC",
        269: "MOVW_UABS_G3", 275: "ADR_PREL_PG_HI21", 277: "ADD_ABS_LO12_NC",
        278: "LDST8_ABS_LO12_NC", 282: "JUMP26", 283: "CALL26", 284: "LDST16_ABS_LO12_NC",
        285: "LDST32_ABS_LO12_NC", 286: "LDST64_ABS_LO12_NC", 299: "LDST128_ABS_LO12_NC",
        311: "ADR_GOT_PAGE", 312: "LD64_GOT_LO12_NC",
    },
    "macho aarch64": {
        0: "UNSIGNED", 1: "SUBTRACTOR", 2: "BRANCH26", 3: "PAGE21", 4: "PAGEOFF12",
        5: "GOT_LOAD_PAGE21", 6: "GOT_LOAD_PAGEOFF12",
    },
    "macho x86-64": {
        0: "UNSIGNED", 1: "SIGNED", 2: "BRANCH", 3: "GOT_LOAD", 4: "GOT", 5: "SUBTRACTOR",
        6: "SIGNED_1", 7: "SIGNED_2", 8: "SIGNED_4",
    },
    "coff x86-64": {
        1: "ADDR64", 2: "ADDR32", 3: "ADDR32NB", 4: "REL32", 5: "REL32_1", 6: "REL32_2",
        7: "REL32_3", 8: "REL32_4", 9: "REL32_5", 10: "SECTION", 11: "SECREL",
    },
}  # fmt: skip


def relocations(data: bytes) -> tuple[str, set[str]]:
    """The format of an object file, and the kinds of its relocations."""
    if data[:4] == b"\x7fELF":
        return _elf(data)
    return _macho(data) if data[:4] == b"\xcf\xfa\xed\xfe" else _coff(data)


def _named(kind: str, numbers: set[int]) -> tuple[str, set[str]]:
    return kind, {KINDS[kind].get(n, str(n)) for n in numbers}


def _elf(data: bytes) -> tuple[str, set[str]]:
    (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    numbers = set()
    for section in range(count):
        (kind,) = struct.unpack_from("<I", data, start + 64 * section + 4)
        offset, size = struct.unpack_from("<QQ", data, start + 64 * section + 24)
        if kind == 4:  # with addends
            numbers |= {
                struct.unpack_from("<I", data, at + 8)[0] for at in range(offset, offset + size, 24)
            }
    return _named("elf aarch64", numbers)


def _macho(data: bytes) -> tuple[str, set[str]]:
    processor, commands = struct.unpack_from("<I8xI", data, 4)
    at, numbers = 32, set()
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0x19:  # a segment, with its sections
            (sections,) = struct.unpack_from("<I", data, at + 64)
            for section in range(sections):
                place, count = struct.unpack_from("<II", data, at + 72 + 80 * section + 56)
                for i in range(count):
                    numbers.add(struct.unpack_from("<I", data, place + 8 * i + 4)[0] >> 28)
        at += size
    return _named("macho aarch64" if processor == 0x0100000C else "macho x86-64", numbers)


def _coff(data: bytes) -> tuple[str, set[str]]:
    processor, sections, header = struct.unpack_from("<HH12xH", data, 0)
    assert processor == 0x8664
    numbers = set()
    for section in range(sections):
        place, count = struct.unpack_from("<I4xH", data, 20 + header + 40 * section + 24)
        for i in range(count):
            numbers.add(struct.unpack_from("<H", data, place + 10 * i + 8)[0])
    return _named("coff x86-64", numbers)


def main() -> None:
    """Print the relocations of a program that is compiled to run in this process."""
    import namoo as jax
    import namoo.numpy as jnp
    from namoo.engines.native import pipeline
    from namoo.engines.native.link.code import object_files

    def program(x):
        y = jnp.exp(x) @ jnp.sin(x.T) + jax.scipy.special.erf(x)
        return jnp.sort(y, axis=0), jnp.linalg.inv(y), jnp.cumsum(y)

    compiled = []
    optimise = pipeline.PASSES[pipeline.NAMES.index("optimise")]

    def kept(module):
        compiled.append(optimise(module))
        return compiled[-1]

    pipeline.optimise = kept
    pipeline.PASSES = tuple(kept if step is optimise else step for step in pipeline.PASSES)
    x = jnp.arange(90_000.0).reshape(300, 300) / 90_000
    try:
        jax.jit(program, engine="native")(x)
    except RuntimeError as error:
        if "another kind of processor" not in str(error):
            raise
    for code in compiled:
        for _, data in object_files(code.data):
            kind, names = relocations(data)
            print(kind, *sorted(names))


if __name__ == "__main__":
    sys.exit(main())
