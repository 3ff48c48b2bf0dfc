"""Programs without Python: an object file with a C header, to call from other languages."""

from __future__ import annotations

import dataclasses
import keyword
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, entry_point
from namoo.analysis.specialising import sized, specialised
from namoo.api.jit import Jitted, jit
from namoo.core.avals import ShapedArray, aval_of
from namoo.dimensions.expression import is_symbolic_dim
from namoo.engines.native.ir import target as targets
from namoo.engines.native.link import standalone
from namoo.export import c_texts, calling
from namoo.export.exported import Exported, export

_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while arena weights main count words code stored given written "
    "aligned opened read_all"
).split()


@entry_point
def to_c(
    fun: Any,
    *args: Any,
    path: str | os.PathLike[str],
    name: str | None = None,
    target: str | None = None,
    weights: str = "inside",
    arena: str = "caller",
) -> Path:
    """Compile a function to an object file that needs no Python, with a C header.

    Writes `name.o`, `name.h`, `main.c`, `CMakeLists.txt` and, with `weights="file"`,
    `name.weights`. The code comes from the native engine. It runs on one thread, allocates no
    memory, and calls only a few functions of the C library, such as `memcpy` and `fmod`.

    Args:
        fun: a function, the result of `jit`, or an `Exported`.
        args: its arguments, or `ShapeDtypeStruct`s in place of arrays; an `Exported` needs them
            only if it has symbolic dimensions.
        path: the directory to write to; it is created if it does not exist.
        name: the name of the C function; by default that of `fun`.
        target: the processor, such as "x86-64-v3" or "aarch64-linux"; by default that of this
            machine.
        weights: "inside" puts the program's constants into the object file; "file" puts them into
            a separate file, which the caller loads and passes.
        arena: where intermediate values are stored: "caller" takes memory from the caller;
            "static" reserves it in the library, which then runs one call at a time.

    Returns:
        The directory.

    Raises:
        ValueError: the program has operations that only Python can run; the message lists their
            source lines.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> w = jnp.ones((3, 2))
        >>> def net(x):
        ...     return jnp.tanh(x @ w)
        >>> folder = to_c(net, jnp.ones(3), path=tempfile.mkdtemp())
        >>> sorted(file.name for file in folder.iterdir())
        ['CMakeLists.txt', 'main.c', 'net.h', 'net.o']
    """
    if weights not in ("inside", "file") or arena not in ("caller", "static"):
        raise ValueError(
            f"weights is 'inside' or 'file' and arena is 'caller' or 'static', not {weights!r} and "
            f"{arena!r}"
        )
    exported = _program(fun, args)
    inputs = _argument_names(exported, getattr(fun, "_fun", fun))
    return compile_to_c(exported, Path(path), name, target, weights, arena, inputs, None)


def compile_to_c(
    exported: Exported,
    folder: Path,
    name: str | None,
    target: str | None,
    weights: str,
    arena: str,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> Path:
    """Like `to_c`, for an exported function, with names for its inputs and outputs."""
    _require_no_host(exported)
    name = _identifier(name or exported.fun_name)
    inputs = inputs or _argument_names(exported, None)
    names = _distinct([*inputs, *(outputs or _result_names(exported))], name)
    given, results = names[: len(inputs)], names[len(inputs) :]
    options = {"name": name, "weights": weights, "arena": arena}
    if target is not None and target != targets.chosen():
        return _in_another_process(exported, folder, target, given, results, options)
    return _write(exported, folder, given, results, **options)


def _write(
    exported: Exported,
    folder: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    name: str,
    weights: str,
    arena: str,
) -> Path:
    """Write the files of a program without symbolic dimensions, for this process's target."""
    made = standalone.standalone(
        exported.jaxpr, name, weights_inside=weights == "inside", static_arena=arena == "static"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.o").write_bytes(made.data)
    if weights == "file":
        (folder / f"{name}.weights").write_bytes(made.weights)
    entry = c_texts.Entry(
        name,
        [*zip(inputs, exported.jaxpr.in_avals, strict=True)],
        [*zip(outputs, exported.jaxpr.out_avals, strict=True)],
        arena_bytes=made.arena,
        static_arena=arena == "static",
        weight_bytes=len(made.weights) if weights == "file" else None,
    )
    (folder / f"{name}.h").write_text(c_texts.header(entry))
    (folder / "main.c").write_text(c_texts.main(entry))
    (folder / "CMakeLists.txt").write_text(c_texts.cmake(entry))
    return folder


def _program(fun: Any, args: tuple) -> Exported:
    """Export a function for given arguments, without symbolic dimensions."""
    if not isinstance(fun, Exported):
        fun = fun if isinstance(fun, Jitted) else jit(fun)
        return export(fun)(*args)
    if not fun.uses_global_constants:
        return fun
    leaves, tree = tree_util.tree_flatten((args, {}))
    if tree != fun.in_tree:
        raise ValueError(
            f"'{fun.fun_name}' was exported with symbolic dimensions: pass arguments, or "
            "ShapeDtypeStructs, with the sizes to compile for."
        )
    avals = [aval_of(x) for x in leaves]
    return at_sizes(fun, calling.sizes_of(fun, avals))


def at_sizes(exported: Exported, sizes: dict[str, int]) -> Exported:
    """Replace the symbolic dimensions of an exported function by sizes."""

    def replaced(avals: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
        return tuple(sized(a, sizes) for a in avals)

    return dataclasses.replace(
        exported,
        in_avals=replaced(exported.in_avals),
        out_avals=replaced(exported.out_avals),
        jaxpr=specialised(exported.jaxpr, tuple(sizes.items())),
        _get_vjp=None,
    )


def _require_no_host(exported: Exported) -> None:
    if any(is_symbolic_dim(n) for a in exported.in_avals for n in a.shape):
        raise ValueError("The shapes have symbolic dimensions, but a C library has fixed sizes.")
    found = standalone.host_equations(exported.jaxpr)
    if found:
        listed = "".join(f"\n'{e.primitive.name}'{at_user_line(e.source)}" for e in found[:10])
        raise ValueError(
            f"'{exported.fun_name}' cannot be compiled to C: {len(found)} of its operations have "
            f"no native code and run in Python:{listed}"
        )


def _in_another_process(
    exported: Exported,
    folder: Path,
    target: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    options: dict[str, str],
) -> Path:
    """Write the files for another processor, in a process that generates code for it."""
    if target not in targets.PROCESSORS:
        known = ", ".join(targets.PROCESSORS)
        raise ValueError(f"target={target!r} is not a known processor: use one of {known}")
    flat = lambda avals: tree_util.tree_structure((0,) * len(avals))  # noqa: E731
    plain = dataclasses.replace(
        exported,
        in_tree=tree_util.tree_structure(((0,) * len(exported.in_avals), {})),
        out_tree=flat(exported.out_avals),
    )
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "program.bin"
        file.write_bytes(plain.serialize())
        command = [sys.executable, "-m", "namoo.export", str(file), "--c", str(folder)]
        command += ["--inputs", ",".join(inputs), "--outputs", ",".join(outputs)]
        command += [word for key, value in options.items() for word in (f"--{key}", value)]
        environment = {**os.environ, "NAMOO_TARGET_CPU": target}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"compiling for {target} failed:\n{done.stderr}")
    return folder


def _identifier(text: str) -> str:
    """Make a C identifier from a text."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not found or found[0].isdigit():
        found = f"f_{found}".rstrip("_")
    return f"{found}_" if found in _WORDS or keyword.iskeyword(found) else found


def _distinct(names: Sequence[str], function: str) -> list[str]:
    """Append numbers to names that would be equal, or whose macros would be."""
    taken, out = {function.lower()}, []
    for name in map(_identifier, names):
        number, free = 1, name
        while free.lower() in taken:
            number, free = number + 1, f"{name}_{number + 1}"
        taken.add(free.lower())
        out.append(free)
    return out


def _argument_names(exported: Exported, fun: Any) -> list[str]:
    """Return a name for each input of the program: the parameter's name and the path in it."""
    names = calling.argument_names(exported, fun)
    kept = zip(names, exported.in_avals, strict=True)
    return [name for name, aval in kept if aval.dtype != dtypes.float0]


def _result_names(exported: Exported) -> list[str]:
    example = exported.out_tree.unflatten([0] * exported.out_tree.num_leaves)
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(example)[0]]
    kept = zip(paths, exported.out_avals, strict=True)
    return [f"out{path}" for path, aval in kept if aval.dtype != dtypes.float0]
