"""Programs as object files for other languages: one C function, which needs nothing of Python.

It runs on one thread and does not check for signals: the object file defines trivial versions of
the two runtime functions. Products are kernels of our own; those that have none, such as complex
ones, are plain loops in place of BLAS. The only external functions are from the C library:
`memcpy`, `fmod`, and `floor` on old processors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn
from namoo.engines.native import pipeline
from namoo.engines.native.emit.call_list import PARALLEL
from namoo.engines.native.kernels.matmul.dot import without_blas
from namoo.engines.native.kernels.matmul.matrix_layout import BLAS
from namoo.engines.native.link import llvm

ALIGNMENT = 64
"""The alignment of the arena and of the weights, in bytes."""

_ESCAPED = [f"\\{byte:02x}" for byte in range(256)]
"""The bytes in strings of LLVM IR."""

_ALONE = {
    PARALLEL: """define internal i32 @namoo_parallel(ptr %kernel, ptr %table, i64 %n, i64, i64) {
  call void %kernel(ptr %table, i64 0, i64 %n)
  ret i32 0
}""",
    "declare i32 @namoo_interrupted() cold": """define internal i32 @namoo_interrupted() {
  ret i32 0
}""",
}

# out = left · right in column-major order, with the signature of BLAS, for alpha = 1 and beta = 0.
# `{zero}` to `{put}` depend on the element type.
_GEMM = """define internal void @namoo_{name}(
  ptr %ta, ptr %tb, ptr %pm, ptr %pn, ptr %pk, ptr, ptr %a, ptr %plda, ptr %b, ptr %pldb, ptr,
  ptr %c, ptr %pldc
) {{
start:
  %m = load i32, ptr %pm
  %n = load i32, ptr %pn
  %k = load i32, ptr %pk
  %lda0 = load i32, ptr %plda
  %ldb0 = load i32, ptr %pldb
  %ldc0 = load i32, ptr %pldc
  %lda = sext i32 %lda0 to i64
  %ldb = sext i32 %ldb0 to i64
  %ldc = sext i32 %ldc0 to i64
  %la = load i8, ptr %ta
  %lb = load i8, ptr %tb
  %an = icmp eq i8 %la, 78
  %bn = icmp eq i8 %lb, 78
  %a.i = select i1 %an, i64 1, i64 %lda
  %a.p = select i1 %an, i64 %lda, i64 1
  %b.p = select i1 %bn, i64 1, i64 %ldb
  %b.j = select i1 %bn, i64 %ldb, i64 1
  br label %column
column:
  %j = phi i32 [0, %start], [%j1, %column.end]
  %jw = zext i32 %j to i64
  %bj = mul i64 %jw, %b.j
  %cj = mul i64 %jw, %ldc
  br label %row
row:
  %i = phi i32 [0, %column], [%i1, %row.end]
  %iw = zext i32 %i to i64
  %ai = mul i64 %iw, %a.i
  br label %term
term:
  %p = phi i32 [0, %row], [%p1, %term]
{sums}
  %pw = zext i32 %p to i64
  %ap = mul i64 %pw, %a.p
  %bp = mul i64 %pw, %b.p
  %ao = add i64 %ai, %ap
  %bo = add i64 %bj, %bp
  %x = getelementptr {element}, ptr %a, i64 %ao
  %y = getelementptr {element}, ptr %b, i64 %bo
{add}
  %p1 = add i32 %p, 1
  %more = icmp slt i32 %p1, %k
  br i1 %more, label %term, label %row.end
row.end:
  %co = add i64 %cj, %iw
  %z = getelementptr {element}, ptr %c, i64 %co
{put}
  %i1 = add i32 %i, 1
  %rows = icmp slt i32 %i1, %m
  br i1 %rows, label %row, label %column.end
column.end:
  %j1 = add i32 %j, 1
  %columns = icmp slt i32 %j1, %n
  br i1 %columns, label %column, label %end
end:
  ret void
}}"""
_REAL = {
    "element": "{t}",
    "sums": "  %s = phi {t} [0.0, %row], [%s1, %term]",
    "add": """  %xv = load {t}, ptr %x
  %yv = load {t}, ptr %y
  %xy = fmul {t} %xv, %yv
  %s1 = fadd {t} %s, %xy""",
    "put": "  store {t} %s1, ptr %z",
}
_COMPLEX = {
    "element": "[2 x {t}]",
    "sums": "  %s = phi {t} [0.0, %row], [%s1, %term]\n  %r = phi {t} [0.0, %row], [%r1, %term]",
    "add": """  %xip = getelementptr {t}, ptr %x, i64 1
  %yip = getelementptr {t}, ptr %y, i64 1
  %xr = load {t}, ptr %x
  %xi = load {t}, ptr %xip
  %yr = load {t}, ptr %y
  %yi = load {t}, ptr %yip
  %rr = fmul {t} %xr, %yr
  %ii = fmul {t} %xi, %yi
  %ri = fmul {t} %xr, %yi
  %ir = fmul {t} %xi, %yr
  %re = fsub {t} %rr, %ii
  %im = fadd {t} %ri, %ir
  %s1 = fadd {t} %s, %re
  %r1 = fadd {t} %r, %im""",
    "put": """  %zip = getelementptr {t}, ptr %z, i64 1
  store {t} %s1, ptr %z
  store {t} %r1, ptr %zip""",
}


def _product(name: str) -> str:
    """A function of BLAS as plain loops."""
    parts = _REAL if name[0] in "sd" else _COMPLEX
    kind = "float" if name[0] in "sc" else "double"
    return _GEMM.format(name=name, **{k: v.format(t=kind) for k, v in parts.items()})


for _name in BLAS.values():
    _ALONE[f"declare void @namoo_{_name}({', '.join(['ptr'] * 13)})"] = _product(_name)


@dataclass
class Standalone:
    """A program as an object file.

    Attributes:
        data: the object file; its only function is the one with the given name.
        arena: bytes that a call needs for intermediate values.
        weights: the constants; empty if they are in the object file.
    """

    data: bytes
    arena: int
    weights: bytes


def host_equations(closed: ClosedJaxpr) -> list[JaxprEqn]:
    """The equations of a program that Python would evaluate."""
    with without_blas():
        return pipeline.result_of("emit", pipeline.Source(closed)).host


def standalone(
    closed: ClosedJaxpr, name: str, *, weights_inside: bool, static_arena: bool
) -> Standalone:
    """Compile a program that needs no host.

    The function takes a pointer to each input and to each output, then one to the weights, unless
    they are in the object file, and one to the arena, unless it is static. It returns 0.
    """
    with without_blas():
        module = pipeline.result_of("emit", pipeline.Source(closed))
    assert not module.host
    consts = [np.ascontiguousarray(c) for _, c in module.plan.graph.consts]
    text = module.text()
    for declared, defined in _ALONE.items():
        text = text.replace(declared, defined)
    text = re.sub(r"^define (?!internal|private)", "define internal ", text, flags=re.MULTILINE)
    graph = module.plan.graph
    counts = len(graph.inputs), len(graph.outputs)
    size = module.plan.arena_size
    wrapper = _wrapper(name, counts, consts, size, weights_inside, static_arena)
    data = llvm.linkable_object("\n\n".join([text, *wrapper]))
    return Standalone(data, size, b"" if weights_inside else _packed(consts)[0])


def _packed(consts: Sequence[np.ndarray]) -> tuple[bytes, list[int]]:
    """Concatenate the constants, each aligned; return the bytes and the offset of each."""
    out, starts = bytearray(), []
    for c in consts:
        out += bytes(-len(out) % ALIGNMENT)
        starts.append(len(out))
        out += c.tobytes()
    return bytes(out), starts


def _wrapper(
    name: str,
    counts: tuple[int, int],
    consts: Sequence[np.ndarray],
    size: int,
    weights_inside: bool,
    static_arena: bool,
) -> list[str]:
    """The C function, and the globals that it uses, as LLVM IR."""
    inputs = [f"%i{i}" for i in range(counts[0])]
    outputs = [f"%o{i}" for i in range(counts[1])]
    packed, starts = _packed(consts)
    parameters = [*inputs, *outputs]
    texts, arena, weights = [], "%arena", "%weights"
    if weights_inside:
        weights = "@weights"
        kind = f"[{max(len(packed), 1)} x i8]"
        content = 'c"' + "".join(map(_ESCAPED.__getitem__, packed or b"\0")) + '"'
        texts.append(f"@weights = private constant {kind} {content}, align {ALIGNMENT}")
    else:
        parameters.append(weights)
    if static_arena:
        arena = "@arena"
        kind = f"[{max(size, 1)} x i8]"
        texts.append(f"@arena = private global {kind} zeroinitializer, align {ALIGNMENT}")
    else:
        parameters.append(arena)
    lines = [f"define i32 @{name}({', '.join(f'ptr {p}' for p in parameters)}) nounwind {{"]
    pointers = [*inputs, *(f"%w{i}" for i in range(len(consts))), *outputs]
    lines.append(f"  %table = alloca [{max(len(pointers), 1)} x ptr], align 8")
    lines += [f"  %w{i} = getelementptr i8, ptr {weights}, i64 {at}" for i, at in enumerate(starts)]
    for i, pointer in enumerate(pointers):
        lines.append(f"  %t{i} = getelementptr ptr, ptr %table, i64 {i}")
        lines.append(f"  store ptr {pointer}, ptr %t{i}, align 8")
    lines.append(f"  %code = call i32 @entry(ptr %table, ptr {arena}, ptr null)")
    return [*texts, "\n".join([*lines, "  ret i32 %code", "}"])]
