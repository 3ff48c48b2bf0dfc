"""`namoo.profiler`: what a trace has is what happened, and without a trace nothing is different."""

import gzip
import inspect
import json
import os
import re
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request
from pathlib import Path

import jax
import jax.numpy
import jax.profiler
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import profiler
from namoo._base import instrument
from namoo._base.runtime import native
from namoo.api.jit import Jitted
from namoo.api.stages import Compiled
from namoo.core.array import EagerArray
from namoo.profiler import tracing, xplane
from namoo.profiler.session import Session
from namoo.sharding import NamedSharding
from namoo.sharding import PartitionSpec as P

LIBRARIES = {"namoo": (namoo, jnp), "jax": (jax, jax.numpy)}


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    running = instrument.session
    if running is not None:
        tracing._end()
    assert running is None
    assert "__call__" not in vars(Jitted)
    assert sys.getprofile() is None and threading.getprofile() is None


def options(library=namoo, **settings):
    out = library.profiler.ProfileOptions()
    for name, value in settings.items():
        setattr(out, name, value)
    return out


def files(folder, pattern="*.trace.json.gz"):
    return sorted(Path(folder).glob(f"plugins/profile/*/{pattern}"))


def events(folder):
    """The spans of the only trace in a folder."""
    (file,) = files(folder)
    with gzip.open(file, "rt") as text:
        return [e for e in json.load(text)["traceEvents"] if e and e["ph"] == "X"]


def names(folder):
    return [e["name"] for e in events(folder)]


def helper(x):
    return x + 1


def program(library, np_like):
    annotate = library.profiler.annotate_function

    @library.jit
    def compiled(x):
        return np_like.sin(x) * 2

    @annotate
    def annotated(x):
        return helper(x)

    def renamed(x):
        return helper(x)

    renamed = annotate(renamed, name="other name", size=3)
    for step in range(2):
        with library.profiler.StepTraceAnnotation("train", step_num=step):
            compiled(np_like.ones(4))
            with library.profiler.TraceAnnotation("label", a=1, b="text", c=2.5) as span:
                span.set_metadata(d=5)
                annotated(3)
    worker = threading.Thread(target=renamed, args=(4,))
    worker.start()
    worker.join()


OURS = re.compile(r"\$test_profiler\.py:\d+ \w+|train|label|.*annotated|other name|PjitFunction.*")


def test_a_trace_has_what_jax_has(tmp_path):
    found = {}
    for name, (library, np_like) in LIBRARIES.items():
        np_like.ones(4)
        with library.profiler.trace(tmp_path / name):
            program(library, np_like)
        kept = [e for e in events(tmp_path / name) if OURS.fullmatch(e["name"])]
        if name == "jax":  # which has its eager functions under jit
            kept = [e for e in kept if e["name"][:4] != "Pjit" or "compiled" in e["name"]]
        main = next(e["tid"] for e in kept if e["name"] == "train")
        found[name] = {
            (e["name"], tuple(e.get("args", {}).items()), e["tid"] == main) for e in kept
        }
    assert found["namoo"] == found["jax"]
    assert len(found["jax"]) > 8


@pytest.mark.parametrize("name", ["start_trace", "stop_trace", "annotate_function", "trace"])
def test_signatures_are_those_of_jax(name):
    ours, theirs = (inspect.signature(getattr(x.profiler, name)) for x in (namoo, jax))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


def test_options_are_those_of_jax():
    ours, theirs = options(), options(jax)
    public = [name for name in dir(theirs) if not name.startswith("_")]
    assert {name: getattr(ours, name) for name in public} == {
        name: getattr(theirs, name) for name in public
    }


def twice(library, folder):
    library.profiler.start_trace(folder)
    try:
        library.profiler.start_trace(folder)
    finally:
        library.profiler.stop_trace()


@pytest.mark.parametrize(
    "wrong",
    [
        twice,
        lambda library, _: library.profiler.stop_trace(),
        lambda library, folder: library.profiler.start_trace(folder, profiler_options=3),
        lambda library, _: library.profiler.TraceAnnotation(3),
        lambda library, _: library.profiler.TraceAnnotation(),
        lambda library, _: options(library, python_tracer_level="one"),
        lambda library, _: options(library, host_tracer_level=-1),
        lambda library, _: options(library, enable_hlo_proto=1),
        lambda library, _: options(library, session_id=3),
        lambda library, _: library.profiler.device_memory_profile("nowhere"),
    ],
)
def test_errors_are_those_of_jax(wrong, tmp_path):
    raised = []
    for name, (library, _) in LIBRARIES.items():
        with pytest.raises((RuntimeError, TypeError)) as error:
            wrong(library, tmp_path / name)
        raised.append(error.type)
    assert raised[0] is raised[1]


@pytest.mark.parametrize("python", [0, 1])
@pytest.mark.parametrize("host", [0, 1, 2])
def test_levels(host, python, tmp_path):
    namoo.clear_caches()  # equal functions share their programs

    @namoo.jit
    def compiled(x):
        return helper(x)

    with profiler.trace(
        tmp_path, profiler_options=options(host_tracer_level=host, python_tracer_level=python)
    ):
        assert profiler.TraceAnnotation.is_enabled() == (host > 0)
        with profiler.TraceAnnotation("label"):
            compiled(jnp.ones(3))
            compiled.lower(jnp.ones(3)).compile()(jnp.ones(3))
    found = names(tmp_path)
    assert found.count("label") == (host > 0)
    assert found.count("PjitFunction(compiled)") == 2 * (host > 1)
    assert found.count("trace(compiled)") == (host > 1)
    assert (found.count("compile(compiled)") >= 1) == (host > 1)
    assert any(name.endswith(" helper") for name in found) == bool(python)
    assert any(name[0] == "$" for name in found) == bool(python)


def test_the_functions_of_a_compiler_are_left_out(tmp_path):
    with profiler.trace(tmp_path):
        namoo.jit(lambda x: jnp.sin(x) + 1, engine="native")(jnp.ones(3))
        helper(1)
    (span,) = (e for e in events(tmp_path) if e["name"] == "compile(<lambda>)")
    end = span["ts"] + span["dur"]
    assert not [e for e in events(tmp_path) if span["ts"] < e["ts"] < end]
    assert any(name.endswith(" helper") for name in names(tmp_path))


trees = st.recursive(
    st.builds(lambda name: (name, []), st.sampled_from("abc")),
    lambda inner: st.tuples(st.sampled_from("abc"), st.lists(inner, max_size=3)),
    max_leaves=6,
)


def forest(spans):
    """Trees of names, from spans that lie in one another."""
    roots, open_ = [], []
    for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        while open_ and e["ts"] >= open_[-1][0]:
            open_.pop()
        node = (e["name"], [])
        (open_[-1][1] if open_ else roots).append(node)
        open_.append((e["ts"] + e["dur"], node[1]))
    return roots


@settings(max_examples=15)
@given(st.lists(st.lists(trees, max_size=3), min_size=1, max_size=3))
def test_spans_lie_in_one_another_as_they_were_entered(tmp_path_factory, per_thread):
    folder = tmp_path_factory.mktemp("spans")

    def enter(tree):
        with profiler.TraceAnnotation(tree[0]):
            for inner in tree[1]:
                enter(inner)

    with profiler.trace(folder, profiler_options=options(python_tracer_level=0)):
        threads = [
            threading.Thread(target=lambda work=work: [enter(tree) for tree in work])
            for work in per_thread
        ]
        for thread in threads:
            thread.start()
            thread.join()
    rows = {}
    for e in events(folder):
        rows.setdefault(e["tid"], []).append(e)
    assert sorted(map(forest, rows.values())) == sorted(work for work in per_thread if work)


def test_threads_have_their_names(tmp_path):
    def work():
        with profiler.TraceAnnotation("label"):
            pass

    with profiler.trace(tmp_path):
        thread = threading.Thread(target=work, name="loader")
        thread.start()
        thread.join()
    (tid,) = {e["tid"] for e in events(tmp_path) if e["name"] == "label"}
    with gzip.open(files(tmp_path)[0], "rt") as text:
        labels = [e for e in json.load(text)["traceEvents"] if e["name"] == "thread_name"]
    assert {"name": "loader"} in [e["args"] for e in labels if e["tid"] == tid]


def test_annotations_that_are_not_whole_are_no_spans(tmp_path):
    early, late = profiler.TraceAnnotation("early"), profiler.TraceAnnotation("late")
    with early:
        profiler.start_trace(tmp_path)
    session = instrument.session
    with late:
        profiler.stop_trace()
    assert not session.spans
    assert not {"early", "late"} & set(names(tmp_path))


def test_functions_that_have_not_returned_end_with_the_trace(tmp_path):
    def outer():
        helper(1)
        profiler.stop_trace()

    profiler.start_trace(tmp_path)
    outer()
    (span,) = (e for e in events(tmp_path) if e["name"].endswith(" outer"))
    (inside,) = (e for e in events(tmp_path) if e["name"].endswith(" helper"))
    assert span["ts"] < inside["ts"] < inside["ts"] + inside["dur"] < span["ts"] + span["dur"]


def test_who_pauses_the_listener_confuses_nobody(tmp_path):
    def paused():
        listener = sys.getprofile()
        sys.setprofile(None)
        helper(1)
        sys.setprofile(listener)

    def outer():
        paused()
        helper(1)

    with profiler.trace(tmp_path):
        outer()
    found = {e["name"].split()[-1]: e for e in events(tmp_path)}
    order = ("outer", "paused", "getprofile", "helper")
    assert sorted(order, key=lambda name: found[name]["ts"]) == list(order)
    assert [name.split()[-1] for name in names(tmp_path)].count("helper") == 1


def test_errors_in_a_trace_are_as_without(tmp_path):
    @namoo.jit
    def wrong(x):
        raise ValueError("mine")

    def frames():
        with pytest.raises(ValueError, match="mine") as error:
            wrong(jnp.ones(2))
        return [f.name for f in traceback.extract_tb(error.value.__traceback__)]

    before = frames()
    with profiler.trace(tmp_path):
        assert frames() == before
    assert "PjitFunction(wrong)" in names(tmp_path)


def test_a_trace_that_was_forgotten_stops_growing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(Session, "limit", 20)
    with profiler.trace(tmp_path):
        for _ in range(100):
            with profiler.TraceAnnotation("label"):
                helper(1)
    assert len(events(tmp_path)) <= 2 * 20 + 5
    assert names(tmp_path).count("label") == 20
    told = [r.getMessage() for r in caplog.records if "records no more" in r.getMessage()]
    assert len(told) == 2 and all("20" in message for message in told)
    with gzip.open(files(tmp_path)[0], "rt") as text:
        labels = [e["args"]["labels"] for e in json.load(text)["traceEvents"] if "labels" in str(e)]
    assert len(labels) == 2


@pytest.mark.skipif(native is None, reason="only the C++ part has a path of its own")
def test_calls_take_their_short_path_before_and_after(tmp_path, monkeypatch):
    f = namoo.jit(lambda x: x + 1)
    x = jnp.ones(3)
    f(x)
    general = Jitted.general
    seen = []
    monkeypatch.setattr(Jitted, "general", lambda *args: seen.append(1) or general(*args))
    own = vars(Compiled)["__call__"]
    f(x)
    with profiler.trace(tmp_path):
        f(x)
    f(x)
    assert seen == [1]  # in the trace, which has an event for each kernel
    assert vars(Compiled)["__call__"] is own
    assert names(tmp_path).count("PjitFunction(<lambda>)") == 1


def test_another_thread_may_stop_a_trace(tmp_path):
    profiler.start_trace(tmp_path)
    worker = threading.Thread(target=profiler.stop_trace)
    worker.start()
    worker.join()
    helper(1)
    assert sys.getprofile() is None
    assert files(tmp_path)


def test_another_profiler_is_left_alone(tmp_path):
    def listen(*_):
        pass

    sys.setprofile(listen)
    try:
        with pytest.warns(UserWarning, match="another profiler"):
            profiler.start_trace(tmp_path)
        helper(1)
        namoo.jit(helper)(1)
        profiler.stop_trace()
        assert sys.getprofile() is listen
    finally:
        sys.setprofile(None)
    assert "PjitFunction(helper)" in names(tmp_path)
    assert not any(name[0] == "$" for name in names(tmp_path))


FORK = """
import os, sys
import namoo, namoo.numpy as jnp
from namoo import profiler
f = namoo.jit(lambda x: x + 1)
profiler.start_trace(sys.argv[1])
child = os.fork()
f(jnp.ones(2))
if not child:
    try:
        profiler.stop_trace()
    except RuntimeError:
        os._exit(7 if sys.getprofile() is None else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
profiler.stop_trace()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_has_no_part_in_a_trace(tmp_path):
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path)], check=True)
    assert names(tmp_path).count("PjitFunction(<lambda>)") == 1


def test_names_of_folders(tmp_path):
    for _ in range(3):
        with profiler.trace(tmp_path):
            pass
    assert len(files(tmp_path)) == 3  # all in a second or two
    for _ in range(2):
        with profiler.trace(tmp_path / "own", profiler_options=options(session_id="mine")):
            pass
    (file,) = files(tmp_path / "own")
    assert file.parent.name == "mine"


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError("the disk is full")

    profiler.start_trace(tmp_path)
    monkeypatch.setattr(tracing.json, "dumps", fails)
    with pytest.raises(OSError, match="disk is full"):
        profiler.stop_trace()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    monkeypatch.undo()
    with profiler.trace(tmp_path):  # the one that failed is over
        pass
    assert len(files(tmp_path)) == len(files(tmp_path, "*.xplane.pb")) == 1


def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        profiler.start_trace(tmp_path / "file")


def test_jax_reads_the_file_for_tensorboard(tmp_path):
    with profiler.trace(tmp_path):
        program(namoo, jnp)
        with profiler.TraceAnnotation("größe", a=-5, b=2**80, c="", d=-(2**62)):
            pass
    (file,) = files(tmp_path, "*.xplane.pb")
    (plane,) = jax.profiler.ProfileData.from_file(str(file)).planes
    assert plane.name == "/host:CPU"
    read = [(line.name, list(line.events)) for line in plane.lines]
    assert "MainThread" in [name for name, _ in read]
    found = [(e.name, e.start_ns, e.duration_ns) for _, line in read for e in line]
    told = [(e["name"], e["ts"] * 1000, e["dur"] * 1000) for e in events(tmp_path)]
    assert [name for name, *_ in sorted(found)] == [name for name, *_ in sorted(told)]
    np.testing.assert_allclose([t[1:] for t in sorted(found)], [t[1:] for t in sorted(told)])
    stats = [(e.name, list(e.stats)) for _, line in read for e in line if e.stats]
    assert ("train", [("_r", 1), ("step_num", 1)]) in stats
    wide = [("a", -5), ("b", str(2**80)), ("c", ""), ("d", str(-(2**62)))]
    assert ("größe", wide) in stats
    for _, line in read:
        starts = [e.start_ns for e in line]
        assert starts == sorted(starts)


def test_what_begins_together_lies_in_one_another():
    spans = [(1, 0, 5, "in", None), (1, 0, 9, "out", {}), (2, 3, 4, "else", {"a": "b"})]
    file = xplane.space({1: "one", 2: "two"}, spans)
    (plane,) = jax.profiler.ProfileData.from_serialized_xspace(file).planes
    found = {line.name: [e.name for e in line.events] for line in plane.lines}
    assert found == {"one": ["out", "in"], "two": ["else"]}


def test_perfetto_gets_a_file_and_a_link(tmp_path, monkeypatch):
    with profiler.trace(tmp_path / "file", create_perfetto_trace=True):
        helper(1)
    (twin,) = files(tmp_path / "file", "perfetto_trace.json.gz")
    assert twin.read_bytes() == files(tmp_path / "file")[0].read_bytes()

    monkeypatch.setattr(tracing, "_PERFETTO_PORT", 0)
    answers = []

    def browse(text, **_):
        address = text.rpartition("url=")[2]

        def fetch():
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(address + ".other")
            with urllib.request.urlopen(address) as answer:
                answers.append((answer.headers["Access-Control-Allow-Origin"], answer.read()))

        browser = threading.Thread(target=fetch)
        browser.start()
        browsers.append(browser)

    browsers = []
    monkeypatch.setattr(tracing, "print", browse, raising=False)
    with profiler.trace(tmp_path / "link", create_perfetto_link=True):
        helper(1)
    browsers[0].join()
    (twin,) = files(tmp_path / "link", "perfetto_trace.json.gz")
    assert answers == [("*", twin.read_bytes())]


def fields(content):
    """The fields of a protocol buffer: numbers, and bytes."""

    def number():
        nonlocal place
        out = shift = 0
        while True:
            byte = content[place]
            place += 1
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return out

    place, found = 0, {}
    while place < len(content):
        key = number()
        value = number()
        if key & 7 == 2:
            place += value
            value = content[place - value : place]
        found.setdefault(key >> 3, []).append(value)
    return found


def packed(values):
    """Repeated numbers, which may stand in one field."""
    out = []
    for value in values:
        rest = [value] if isinstance(value, int) else list(value)
        while rest and not isinstance(value, int):
            part = [rest.pop(0)]
            while part[-1] > 127:
                part.append(rest.pop(0))
            out.append(sum((byte & 127) << 7 * i for i, byte in enumerate(part)))
        if isinstance(value, int):
            out.append(value)
    return out


def memory(library):
    """The units of a profile, and (function, device, count, bytes) of each of its buffers."""
    profile = fields(gzip.decompress(library.profiler.device_memory_profile()))
    text = [string.decode() for string in profile[6]]
    units = [tuple(text[fields(unit)[i][0]] for i in (1, 2)) for unit in profile[1]]
    functions = {f[1][0]: text[f[2][0]] for f in map(fields, profile.get(5, []))}
    places = {p[1][0]: fields(p[4][0])[1][0] for p in map(fields, profile.get(4, []))}
    buffers = []
    for sample in map(fields, profile.get(2, [])):
        labels = {text[f[1][0]]: text[f[2][0]] for f in map(fields, sample[3])}
        if labels["kind"] == "buffer":
            function = functions[places[packed(sample[1])[0]]]
            buffers.append((function, labels["device"], *packed(sample[2])))
    return units, buffers


def test_memory_is_told_as_jax_tells_it():
    kept = [np_like.ones((31, 17)) for _, np_like in LIBRARIES.values()]
    size = 31 * 17 * 4
    (units, ours), (their_units, theirs) = memory(namoo), memory(jax)
    assert units == their_units
    assert ("float32[31,17]", "cpu:0", 1, size) in ours
    assert any(buffer[1:] == ("cpu:0", 1, size) for buffer in theirs)
    del kept
    assert not any(name == "float32[31,17]" for name, *_ in memory(namoo)[1])


def test_memory_that_arrays_share_counts_once():
    base = np.zeros((53, 7), np.float32)
    kept = [EagerArray(view) for view in (base, base[:3], base.T)]
    shapes = ("float32[53,7]", "float32[3,7]", "float32[7,53]")
    found = [buffer for buffer in memory(namoo)[1] if buffer[0] in shapes]
    assert [buffer[2:] for buffer in found] == [(1, base.nbytes)] and kept


def test_memory_of_arrays_on_several_devices(eight_devices):
    pytest.importorskip("jaxlib")
    mesh = namoo.make_mesh((8,), ("x",))
    x = namoo.device_put(np.zeros((16, 23), np.float32), NamedSharding(mesh, P("x")))
    found = [buffer for buffer in memory(namoo)[1] if buffer[0] == "float32[2,23]"]
    assert sorted(found) == [("float32[2,23]", f"cpu:{i}", 1, 2 * 23 * 4) for i in range(8)]
    assert x.shape == (16, 23)


def test_a_memory_profile_in_a_file(tmp_path):
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert 6 in fields(gzip.decompress((tmp_path / "memory.prof").read_bytes()))
