"""`namoo.inspect`: which lines became which kernels, what they cost, and how a report is shown."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.engines.native import perf_map
from namoo.engines.native.emit.timed import FIRST, WORDS
from namoo.engines.native.engine import native
from namoo.engines.native.timed import TimedProgram

pytestmark = pytest.mark.skipif(namoo.config.engine != "native", reason="measures native code")


def layer(h, w):
    h = jnp.tanh(h @ w)  # layer
    return h, jnp.sum(h)


def loss(w, x):
    h = x @ w  # product
    h = jnp.sin(h) * 2.0  # sine
    return jnp.sum(h**2)  # sum


def looped(w, x):
    h, sums = lax.scan(layer, x, jnp.stack([w] * 3))  # scan
    return jnp.sum(h) + jnp.mean(sums)


def repeated(w, x):
    def body(c):
        return c[0] + 1, jnp.tanh(c[1] @ w)  # body

    return lax.while_loop(lambda c: c[0] < 5, body, (0, x))[1]


def chosen(w, x):
    return lax.cond(x[0, 0] > 0, lambda: jnp.sort(x @ w, axis=0), lambda: x - w[0])


def on_host(w, x):
    return namoo.pure_callback(lambda y: np.asarray(y) * 2, x, x) @ w  # host


def in_registers(w, x):
    return lax.fori_loop(0, 7, lambda i, c: c * 1.5 + i, x[0, 0])


W, X = jnp.full((64, 64), 0.01), jnp.linspace(-1, 1, 128 * 64).reshape(128, 64)
PROGRAMS = {
    "loss": loss,
    "gradient": namoo.value_and_grad(loss),
    "scan": looped,
    "gradient of a scan": namoo.grad(looped),
    "while": repeated,
    "cond": chosen,
    "host": on_host,
    "registers": in_registers,
    "vmap": namoo.vmap(lambda w, x: jnp.cumsum(x[:64] * w), (None, 1)),
}


def traced(fun):
    return namoo.jit(fun).trace(W, X)._traced.program


def line(report, comment):
    (found,) = [one for one in report.lines if one.code.endswith(f"# {comment}")]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_timers_change_no_result_and_add_up_to_the_call(name):
    program = traced(PROGRAMS[name])
    values = [np.asarray(x) for x in (W, X)][-len(program.in_avals) :]
    timed = TimedProgram(program)
    outs, _ = timed.measure(values)
    for found, wanted in zip(outs, native.compile(program)(values), strict=True):
        np.testing.assert_array_equal(found, wanted)
    begin, end, *words = timed.words.tolist()
    assert len(words) == WORDS * len(timed.timers) == len(timed.words) - FIRST
    assert sum(words[::WORDS]) == end - begin > 0
    assert any(words[1::WORDS])


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_have_all_the_time_of_kernels(name):
    report = namoo.inspect(PROGRAMS[name], W, X)
    assert report.seconds == pytest.approx(sum(kernel.seconds for kernel in report.kernels))
    assert report.timed_wall is not None and 0 < report.seconds <= report.timed_wall
    for kernel in report.kernels:
        assert kernel.number in {n for one in report.lines for n in one.kernels}
    assert all(one.file == __file__ for one in report.lines)


@pytest.mark.parametrize(
    ("fun", "comment", "forward", "backward"),
    [
        (loss, "product", 2 * 128 * 64 * 64, 0),
        (namoo.grad(loss), "product", 2 * 128 * 64 * 64, 2 * 128 * 64 * 64),
        (looped, "layer", 3 * 2 * 128 * 64 * 64, 0),
        (repeated, "body", 5 * 2 * 128 * 64 * 64, 0),
    ],
)
def test_operations_of_products(fun, comment, forward, backward):
    found = line(namoo.inspect(fun, W, X), comment)
    # A tanh in the same line is 16 operations an element.
    assert forward <= found.forward.flops <= 1.2 * forward
    assert backward <= found.backward.flops <= 1.2 * backward + 1


@pytest.mark.parametrize(
    ("fun", "runs"), [(loss, 1), (looped, 3), (repeated, 5), (namoo.grad(looped), 3)]
)
def test_kernels_count_their_runs(fun, runs):
    report = namoo.inspect(fun, W, X)
    assert {kernel.runs for kernel in report.kernels if kernel.kind == "dot"} == {runs}


def test_forward_and_backward_are_told_apart():
    report = namoo.inspect(namoo.grad(loss), W, X)
    found = {eqn.name: eqn.backward for eqn in line(report, "sine").equations}
    assert (found["sin"] if "sin" in found else False, found["cos"]) == (False, False)
    assert [e.name for e in line(report, "product").equations] == ["dot_general", "dot_general"]
    assert [e.backward for e in line(report, "product").equations] == [False, True]
    assert not any(e.backward for one in namoo.inspect(loss, W, X).lines for e in one.equations)


def test_a_rule_of_the_user_is_backward_at_its_own_line():
    @namoo.custom_vjp
    def square(x):
        return x * x

    square.defvjp(
        lambda x: (square(x), x),
        lambda x, ct: (ct * 2.0 * x,),  # rule
    )
    report = namoo.inspect(namoo.grad(lambda x: jnp.sum(square(x))), X)
    found = line(report, "rule")
    assert found.backward.flops > 0 and found.forward.flops == 0


def test_a_copy_of_what_a_loop_carries_belongs_to_the_loop():
    assert all(one.file for one in namoo.inspect(looped, W, X).lines)


def test_types_are_enough_for_all_but_the_time():
    types = [namoo.ShapeDtypeStruct(x.shape, x.dtype) for x in (W, X)]
    report = namoo.inspect(loss, *types)
    assert report.wall is None and report.covered is None and report.rounds == 0
    assert line(report, "product").forward.flops == 2 * 128 * 64 * 64
    assert "not run" in str(report)


@pytest.mark.parametrize(
    ("fun", "args", "message"),
    [
        (3, (), "inspect"),
        (lambda ref: ref[...] + 1, (lambda: namoo.new_ref(X),), "mutable references"),
    ],
)
def test_what_cannot_be_inspected(fun, args, message):
    with pytest.raises(TypeError, match=message):
        namoo.inspect(fun, *[make() for make in args])


def test_memory_by_line():
    compiled = namoo.jit(namoo.grad(looped)).lower(W, X).compile()
    memory = compiled.memory_analysis()
    arrays = memory.arrays_at_peak()
    assert 0.9 * memory.peak_memory_in_bytes <= sum(a.size for a in arrays)
    assert sum(a.size for a in arrays) <= memory.peak_memory_in_bytes
    stacked = [a for a in arrays if a.what == "float32[3, 128, 64]"]
    assert stacked and all(a.source.code.endswith("# scan") for a in stacked)
    assert {a.role for a in arrays} == {"argument", "result", "temporary"}
    assert "temporary float32[3, 128, 64] at" in str(memory)


def test_a_donated_argument_and_its_result_are_one_array():
    step = namoo.jit(lambda w, x: w - 0.1 * namoo.grad(loss)(w, x), donate_argnums=0)
    memory = step.lower(W, X).compile().memory_analysis()
    assert memory.alias_size_in_bytes == W.nbytes
    assert [a.role for a in memory.arrays_at_peak() if a.what == "float32[64, 64]"].count(
        "result"
    ) == 0


def test_text_names_lines_forward_and_backward():
    text = str(namoo.inspect(namoo.grad(loss), W, X))
    assert re.search(r"h = x @ w  # product +\S+ [nµm]?s +\S+ [nµm]?s", text)
    assert "└ dot_general f32[128,64]" in text
    assert "└ backward: dot_general f32[64,64]" in text
    assert "└ backward" not in str(namoo.inspect(loss, W, X))


def test_fused_text_names_lines():
    compiled = namoo.jit(namoo.grad(loss)).lower(W, X).compile()
    number = next(one.number for one in namoo.inspect(loss, W, X).lines if "product" in one.code)
    first = compiled.as_text("fused").split("\n")[0]
    assert f"test_inspect.py:{number}" in first
    assert f"test_inspect.py:{number} ←" in compiled.as_text("fused")


def test_data_is_json():
    report = namoo.inspect(namoo.grad(loss), W, X)
    data = json.loads(json.dumps(report.as_dict()))
    assert data["memory"]["peak"] == report.memory.peak_memory_in_bytes
    assert len(data["kernels"]) == len(report.kernels)
    assert data["lines"][0]["forward"]["flops"] == report.lines[0].forward.flops


def test_a_page_needs_no_network(tmp_path):
    report = namoo.inspect(namoo.grad(loss), W, X)
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|<script src|<link|@import|url\(", page)
    assert "prefers-color-scheme:dark" in page
    assert page.count("id='kernel-") == len(report.kernels)
    assert "dot_general f32[128,64] f32[64,64]" in page
    assert report._repr_html_().startswith('<div class="namoo">')


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_page_in_chromium(tmp_path):
    report = namoo.inspect(namoo.grad(loss), W, X)
    report.save(tmp_path / "page.html")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update --enable-logging=stderr"
    )
    done = subprocess.run(
        ["chromium", *flags.split(), f"--user-data-dir={tmp_path}/profile", "--dump-dom",
         f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.count('<tr class="cost"') == len(report.lines)
    assert "CONSOLE" not in done.stderr


SCRIPT = """
import namoo, namoo.numpy as jnp

@namoo.jit
def step(w, x):
    return w - jnp.tanh(x @ w).sum()

def unused(x):
    return x

for _ in range(2):
    step(jnp.ones((4, 4)), jnp.ones((2, 4)))
"""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["::step"], "return w - jnp.tanh(x @ w).sum()"),
        (["::unused"], "--args"),
        (["::unused", "--args", "jnp.ones(3)"], "unused: "),
        (["::missing"], "defines no 'missing'"),
        ([""], "must be an existing file"),
        (["::step", "--html", "page.html", "--json", "data.json"], ""),
    ],
)
def test_command_line(words, wanted, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    first, *rest = words
    done = subprocess.run(
        [sys.executable, "-m", "namoo.inspect", f"script.py{first}", *rest],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert wanted in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if "--html" in rest:
        assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
        assert json.loads((tmp_path / "data.json").read_text())["name"] == "step"


def test_a_profile_has_an_event_for_each_kernel(tmp_path):
    step = namoo.jit(namoo.grad(loss))
    wanted = step(W, X)
    kernels = namoo.inspect(step, W, X).kernels
    with namoo.profiler.trace(tmp_path):
        for _ in range(3):
            np.testing.assert_array_equal(step(W, X), wanted)
    (file,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    named = [e for e in events if "lines" in e.get("args", {})]
    assert len(named) == 3 * len(kernels)
    assert all("test_inspect.py:" in e["name"] for e in named)
    calls = [e for e in events if e["name"] == "PjitFunction(loss)"]
    assert len(calls) == 3
    for call in calls:
        inside = [e for e in named if call["ts"] <= e["ts"] < call["ts"] + call["dur"]]
        assert len(inside) == len(kernels)


def test_programs_have_no_timers_without_a_profile():
    program = namoo.jit(namoo.grad(loss)).lower(W, X).compile()._run
    assert "readcyclecounter" not in program.as_text("llvm")


def test_symbols_for_perf():
    program = native.compile(traced(namoo.grad(loss)))
    symbols = perf_map.symbols(program)
    assert len(symbols) == program.kernels + 1
    kernels = [name for _, _, name in symbols if " entry" not in name]
    assert all(re.match(r"loss k\d+ \w+ test_inspect.py:\d+", name) for name in kernels)
    ranges = sorted((at, at + size) for at, size, _ in symbols)
    assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:], strict=False))
    assert all(size > 0 for _, size, _ in symbols)


PEAK = """
import namoo, namoo.numpy as jnp

def peak(what):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(what))

def product(w, x):
    return jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

def elementwise(w, x):
    return jnp.cumsum(jnp.sin(w), axis=0) * jnp.cos(w).T + x[0, 0]

fun = {fun}
f = namoo.jit(fun)
f(jnp.ones((8, 8)), jnp.ones((8, 8)))  # what is loaded once
w, x = jnp.ones((2048, 2048)), jnp.ones((4096, 2048))
compiled = f.lower(w, x).compile()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before = peak("VmRSS") - w.nbytes - x.nbytes
results = compiled(w, x)
print(compiled.memory_analysis().peak_memory_in_bytes / (peak("VmHWM") - before))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux")
@pytest.mark.parametrize("fun", ["namoo.value_and_grad(product)", "elementwise"])
def test_the_predicted_peak_is_the_measured_one(fun):
    done = subprocess.run(
        [sys.executable, "-c", PEAK.replace("{fun}", fun)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert 0.95 <= float(done.stdout) <= 1.05, done.stderr
