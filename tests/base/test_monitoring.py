"""`namoo.monitoring`: listeners hear what is recorded, and namoo tells when it traces and compiles.

Also `namoo.version`, which is as small.
"""

import inspect
import threading
import tomllib
from pathlib import Path

import jax
import jax.monitoring
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import monitoring

ONES = np.ones(3, np.float32)
TRACE, COMPILE = monitoring.TRACE, monitoring.COMPILE


@pytest.fixture(autouse=True)
def _nobody_listens_afterwards():
    yield
    monitoring.clear_event_listeners()


# What records, what listens, what stops listening, and what a listener is given.
KINDS = {
    "event": (
        "record_event",
        "register_event_listener",
        "unregister_event_listener",
        (),
    ),
    "duration": (
        "record_event_duration_secs",
        "register_event_duration_secs_listener",
        "unregister_event_duration_listener",
        (1.5,),
    ),
    "time span": (
        "record_event_time_span",
        "register_event_time_span_listener",
        "unregister_event_time_span_listener",
        (1.0, 2.5),
    ),
    "scalar": (
        "record_scalar",
        "register_scalar_listener",
        "unregister_scalar_listener",
        (7,),
    ),
}


@pytest.mark.parametrize("module", [monitoring, jax.monitoring], ids=["namoo", "jax"])
@pytest.mark.parametrize("kind", KINDS)
def test_listeners_of_a_kind_hear_what_is_recorded(module, kind):
    record, register, unregister, values = KINDS[kind]
    record = getattr(module, record)
    heard = []

    def first(*args, **kwargs):
        heard.append(("first", args, kwargs))

    def second(*args, **kwargs):
        heard.append(("second", args, kwargs))

    for listener in (first, second):
        getattr(module, register)(listener)
    record("/my/event", *values, colour="red")
    got = ("/my/event", *values), {"colour": "red"}
    assert heard == [("first", *got), ("second", *got)]
    heard.clear()
    getattr(module, unregister)(first)
    record("/my/event", *values)
    assert heard == [("second", ("/my/event", *values), {})]
    getattr(module, unregister)(second)
    with pytest.raises(AssertionError):
        getattr(module, unregister)(second)


def test_unregistering_a_stranger_says_what_was_missing():
    with pytest.raises(AssertionError, match="not given to register_scalar_listener"):
        monitoring.unregister_scalar_listener(print)


def test_clear_forgets_listeners_of_every_kind():
    for record, register, _, values in KINDS.values():
        getattr(monitoring, register)(lambda *args: pytest.fail(f"heard {args}"))
        monitoring.clear_event_listeners()
        getattr(monitoring, record)("/my/event", *values)


def test_a_listener_may_leave_while_it_is_called():
    heard = []

    def once(event):
        heard.append(event)
        monitoring.unregister_event_listener(once)

    monitoring.register_event_listener(once)
    monitoring.register_event_listener(heard.append)
    monitoring.record_event("/my/event")
    monitoring.record_event("/my/event")
    assert heard == ["/my/event"] * 3


def test_names_and_parameters_are_those_of_jax():
    for name in (n for n in dir(jax.monitoring) if not n.startswith("_")):
        ours = inspect.signature(getattr(monitoring, name))
        theirs = inspect.signature(getattr(jax.monitoring, name))
        assert [*ours.parameters] == [*theirs.parameters], name


class Heard(list):
    """What a library records of tracing and compiling while a block runs."""

    def __init__(self, module):
        self.module = module

    def duration(self, event, seconds, **kwargs):
        assert seconds >= 0
        self.append(("duration", event, kwargs))

    def span(self, event, start, end, **kwargs):
        assert start <= end
        self.append(("span", event, kwargs))

    def scalar(self, event, value, **kwargs):
        self.append(("scalar", event, kwargs))

    def __enter__(self):
        self.module.register_event_duration_secs_listener(self.duration)
        self.module.register_event_time_span_listener(self.span)
        self.module.register_scalar_listener(self.scalar)
        return self

    def __exit__(self, *_):
        self.module.unregister_event_duration_listener(self.duration)
        self.module.unregister_event_time_span_listener(self.span)
        self.module.unregister_scalar_listener(self.scalar)
        self[:] = [entry for entry in self if entry[1] in (TRACE, COMPILE)]


def called_twice(lib):
    def f(x):
        return x * 2 + 1

    f = lib.jit(f)
    f(ONES)
    f(ONES)


def of_another_shape(lib):
    def f(x):
        return x * 2 + 1

    f = lib.jit(f)
    f(ONES)
    f(ONES[:2])


def nested(lib):
    def inner(x):
        return x * 2

    def outer(x):
        return lib.jit(inner)(x) + 1

    lib.jit(outer)(ONES)


def ahead_of_time(lib):
    def f(x):
        return x * 3

    lib.jit(f).lower(ONES).compile()


def lowered_only(lib):
    def f(x):
        return x * 3

    lib.jit(f).trace(ONES)


def failing(lib):
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        lib.jit(f)(ONES)


@pytest.mark.parametrize(
    "use", [called_twice, of_another_shape, nested, ahead_of_time, lowered_only, failing]
)
def test_what_is_told_of_jit_is_what_jax_tells(use):
    namoo.config.update("engine", "native")  # the interpreter makes inner programs ready one by one
    with Heard(monitoring) as ours:
        use(namoo)
    with Heard(jax.monitoring) as theirs:
        use(jax)
    assert ours == theirs != []


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_every_engine_tells(engine):
    namoo.config.update("engine", engine)
    with Heard(monitoring) as heard:
        namoo.jit(lambda x: x - 7)(jnp.ones(4))
    assert [event for kind, event, _ in heard if kind == "duration"] == [TRACE, COMPILE]


def test_programs_on_several_devices_tell(eight_devices):
    mesh = namoo.make_mesh((8,), ("x",))
    placed = namoo.device_put(jnp.arange(8.0), namoo.NamedSharding(mesh, namoo.P("x")))

    @namoo.jit
    def f(x):
        return x + 5

    with Heard(monitoring) as heard:
        f(placed)
        f(placed)
    durations = [(event, more) for kind, event, more in heard if kind == "duration"]
    assert durations == [(TRACE, {"fun_name": "f"}), (COMPILE, {"fun_name": "jit(f)"})]


def test_threads_tell_of_their_own_work():
    """What one thread is doing does not hide what another one does."""
    inside, done = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        assert done.wait(60)
        return x + 1

    def quick(x):
        return x + 2

    with Heard(monitoring) as heard:
        worker = threading.Thread(target=lambda: namoo.jit(slow)(ONES))
        worker.start()
        assert inside.wait(60)
        namoo.jit(quick)(ONES)
        done.set()
        worker.join()
    traced = [m["fun_name"] for kind, event, m in heard if (kind, event) == ("duration", TRACE)]
    assert traced == ["quick", "slow"]


def test_the_version_is_told_once():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert namoo.__version__ == namoo.version.__version__ == project["version"]
    assert namoo.__version_info__ is namoo.version.__version_info__
    assert namoo.__version__ == ".".join(map(str, namoo.__version_info__))
    assert type(namoo.__version_info__) is type(jax.__version_info__)
