"""Many processes: who started them, whether all come, and who is named when one is lost."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import namoo
from distributed_group import SECRET, groups, together
from namoo import distributed
from namoo.devices.distributed import health
from namoo.devices.distributed.channel import connect
from namoo.devices.distributed.clusters import CLUSTERS, Launched, detect, first_host
from namoo.devices.distributed.health import PEER_FAILED, Member, parse_address
from namoo.launch import free_address

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_NODELIST": "node[003-007],other",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
LAUNCHED = {
    "NAMOO_COORDINATOR_ADDRESS": "127.0.0.1:99",
    "NAMOO_NUM_PROCESSES": "2",
    "NAMOO_PROCESS_ID": "1",
    "NAMOO_LOCAL_PROCESS_ID": "1",
}
URI = "OMPI_MCA_orte_hnp_uri"
ENVIRONMENTS = [
    ("slurm", SLURM, "node003:1", 8, 5, 1),
    ("slurm", SLURM | {"SLURM_STEP_NODELIST": "alone"}, "alone:1", 8, 5, 1),
    ("slurm", SLURM | {"SLURM_STEP_NODELIST": "a1,b[2-3]"}, "a1:1", 8, 5, 1),
    ("slurm", SLURM | {"SLURM_STEP_NODELIST": "n[01,07-15],h"}, "n01:1", 8, 5, 1),
    ("ompi", OMPI | {URI: "1531576320.0;tcp://10.96.0.1,10.148.0.1:34"}, "10.96.0.1:1", 4, 3, 1),
    ("ompi", OMPI | {URI: "1314521088.0;tcp6://[fe80::b9b,2620:10d::2]:43370"}, "", 4, 3, 1),
    ("ompi", OMPI | {"PMIX_NAMESPACE": "prterun-my-host-4711@1"}, "my-host:1", 4, 3, 1),
    ("namoo", LAUNCHED, "127.0.0.1:99", 2, 1, 1),
    ("namoo", SLURM | LAUNCHED, "127.0.0.1:99", 2, 1, 1),
]  # fmt: skip


def known(environment: dict) -> tuple:
    found = detect(env=environment)
    assert found is not None
    return (
        found.name,
        found.coordinator(environment),
        found.count(environment),
        found.number(environment),
        found.local_number(environment),
    )


@pytest.mark.parametrize("case", ENVIRONMENTS, ids=lambda case: f"{case[0]}-{case[2]}")
def test_environments(case):
    name, environment, address, count, number, local = case
    found = known(environment)
    assert (found[0], *found[2:]) == (name, count, number, local)
    host, port = parse_address(found[1])
    assert 61440 <= port < 65536 or name == "namoo"
    assert not address or host == parse_address(address)[0]


@pytest.mark.parametrize(
    "case", [case for case in ENVIRONMENTS if case[0] == "slurm" or URI in case[1]]
)
def test_environments_as_in_jax(case, monkeypatch):
    from jax._src.clusters import OmpiCluster, SlurmCluster

    for name, value in case[1].items():
        monkeypatch.setenv(name, value)
    theirs = SlurmCluster if case[0] == "slurm" else OmpiCluster
    assert theirs.is_env_present()
    address = theirs.get_coordinator_address(None, None)
    if address.count(":") > 1:
        # JAX writes addresses of the sixth version without the brackets that tell the port.
        host, _, port = address.rpartition(":")
        address = f"[{host}]:{port}"
    assert known(case[1])[1:] == (
        address,
        theirs.get_process_count(),
        theirs.get_process_id(),
        theirs.get_local_process_id(),
    )


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {k: v for k, v in SLURM.items() if k != "SLURM_PROCID"},
        OMPI,
        OMPI | {"PMIX_NAMESPACE": "slurm.pmix.123.0"},
        {k: v for k, v in LAUNCHED.items() if k != "NAMOO_PROCESS_ID"},
    ],
)
def test_nobody_is_known_to_have_started_this(environment):
    assert detect(env=environment) is None


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("a", "a"), ("a,b", "a"), ("a[1-3]", "a1"), ("r[1-2]n[03,05]", "r1n03"), ("x-y[9]z", "x-y9z")],
)  # fmt: skip
def test_first_host(nodes, host):
    assert first_host(nodes) == host


def test_a_way_can_be_chosen():
    assert detect("slurm", LAUNCHED | SLURM) is CLUSTERS[1]
    with pytest.raises(ValueError, match="'ompi', but this process was not started in that way"):
        detect("ompi", SLURM)
    with pytest.raises(ValueError, match="'pbs' is not one of 'namoo', 'slurm', 'ompi'"):
        detect("pbs", SLURM)


def test_an_unreadable_address_is_an_error():
    with pytest.raises(RuntimeError, match="OMPI_MCA_orte_hnp_uri='garbage'"):
        known(OMPI | {URI: "garbage"})


@pytest.fixture
def alone(monkeypatch):
    """An environment in which nobody started this process."""
    for name in [*SLURM, *OMPI, *LAUNCHED, URI]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    """A user's directory in which the secret of processes without a launcher may be made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "coordinator_address, num_processes, process_id must be given"),
        ({"coordinator_address": "a:1", "num_processes": 2}, ValueError, "process_id must be"),
        ({"coordinator_address": "a", "num_processes": 1, "process_id": 0}, ValueError, "host:p"),
        ({"coordinator_address": "a:1", "num_processes": 2, "process_id": 2}, ValueError, "0 to"),
        ({"coordinator_address": "a:1", "num_processes": 2, "process_id": -1}, ValueError, "0 to"),
        ({"coordinator_address": "a:1", "num_processes": "2", "process_id": 0}, TypeError, "'2'"),
        ({"cluster_detection_method": "pbs"}, ValueError, "'pbs'"),
        ({"cluster_detection_method": "deactivate"}, ValueError, "must be given"),
    ],
)  # fmt: skip
def test_arguments(arguments, error, message, alone):
    with pytest.raises(error, match=message):
        distributed.initialize(**arguments)
    assert not distributed.is_initialized()


def test_one_process_needs_no_others(alone):
    distributed.initialize("localhost:0", 1, 0)
    try:
        assert distributed.is_initialized()
        assert (namoo.process_index(), namoo.process_count()) == (0, 1)
        distributed.barrier("alone", 5)
        with pytest.raises(RuntimeError, match="called already"):
            distributed.initialize("localhost:0", 1, 0)
    finally:
        distributed.shutdown()
    assert not distributed.is_initialized()
    distributed.shutdown()


@pytest.mark.parametrize(
    "question",
    [
        "process_allgather(3.0)",
        "process_allgather(np.arange(3))",
        "process_allgather({'a': np.ones((2, 3))}, tiled=True)",
        "broadcast_one_to_all({'a': np.arange(3), 'b': True})",
        "sync_global_devices('x')",
        "assert_equal(np.arange(3), 'no')",
    ],
)
def test_one_process_tells_itself_what_it_does_in_jax(question):
    from jax.experimental import multihost_utils as theirs

    from namoo.experimental import multihost_utils as ours

    found = [repr(eval(f"m.{question}", {"np": np, "m": m})) for m in (ours, theirs)]
    assert found[0] == found[1]


@pytest.fixture
def group():
    with groups() as make:
        yield make


def test_all_come_and_go(group):
    g = group(4)
    g.join_all(range(4))
    assert [g.members[n].welcome for n in range(4)] == [{"word": "hello"}] * 4
    for _ in range(2):
        assert together(lambda n: g.members[n].barrier("x", 5), range(4)) == dict.fromkeys(range(4))
    assert together(lambda n: g.members[n].leave(5), range(4)) == dict.fromkeys(range(4), True)
    assert not g.deaths


def test_the_absent_are_named(group):
    g = group(4)
    errors = together(lambda n: g.join(n, timeout=1.0), [0, 3])
    for error in errors.values():
        assert isinstance(error, TimeoutError)
        assert re.search(r"after 1 s process 1, 2 of 4 has not reached .*127.0.0.1", str(error))


def test_an_absent_coordinator_is_named():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(TimeoutError, match=f"process 0 is not listening at 127.0.0.1:{port}"):
        Member(("127.0.0.1", port), 1, 2, SECRET, timeout=0.3, beat=0.1, silence=1)


def test_contradictions_are_refused(group):
    g = group(2)
    found = together(lambda case: g.join(*case, timeout=1.0), [(0, 2), (1, 3)])
    assert "process 1 expects 3 processes, process 0 expects 2" in str(found[1, 3])
    g = group(3)
    first = threading.Thread(target=lambda: together(lambda n: g.join(n, timeout=1.0), [1]))
    first.start()
    g.until(lambda: g.server._peers)
    with pytest.raises(RuntimeError, match=r"pid \d+ is process 1 already"):
        g.join(1)
    first.join()


def test_who_is_not_at_a_barrier_is_named(group):
    g = group(3)
    g.join_all(range(3))
    errors = together(lambda n: g.members[n].barrier("epoch", 0.5), [0, 2])
    for error in errors.values():
        assert isinstance(error, TimeoutError)
        assert re.search(r"'epoch'\): after 0.5 s these did not arrive: process 1 \(", str(error))


def test_an_ended_connection_is_known_at_once(group):
    g = group(3)
    g.join_all(range(3))
    g.members[1]._over = True
    g.members[1]._channel.close()
    g.until(lambda: len(g.deaths) == 2)
    assert set(g.deaths) == {0, 2}
    for text in g.deaths.values():
        assert re.match(r"process 1 \(host .*, pid \d+\) is lost: its connection ended", text)


def test_silence_is_death(group):
    g = group(2, silence=1.5)
    silent = connect(socket.create_connection(g.address), SECRET)
    silent.send(join={"number": 1, "count": 2, "who": "nobody"})
    g.join(0)
    g.until(lambda: g.deaths)
    assert g.deaths[0].startswith("process 1 (nobody) is lost: no sign of life for 1.5 s")
    silent.close()


def test_a_silent_coordinator_is_dead(group):
    g = group(1, silence=1.5)
    member = g.join(0)
    # The server goes on listening, and says nothing any more.
    g.server._tell = lambda **message: None
    g.until(lambda: g.deaths)
    assert "process 0, the coordinator, is lost: no sign of life for 1.5 s" in g.deaths[0]
    member.close()


def test_errors_are_told(group):
    g = group(2)
    g.join_all(range(2))
    g.members[1].failed("ValueError: wrong")
    g.until(lambda: g.deaths)
    assert g.deaths[0].endswith("is lost: it raised ValueError: wrong")


def test_who_lags_behind_is_named_and_shows_where_it_is(group, capsys):
    g = group(3, stall=0.3)
    started = {0: 7, 1: 4, 2: 7}
    together(lambda n: g.join(n, progress=lambda: started[n]), range(3))
    seen = ""

    def told():
        nonlocal seen
        seen += capsys.readouterr().err
        return seen.count("which has started 4") >= 3 and "which is here" in seen

    g.until(told)
    assert "process 1: others wait for this process, which is here:\n  File " in seen
    assert re.search(r"wait in program 7 .* for process 1 \(host .*\), which has started 4", seen)
    assert not g.deaths


def test_who_ends_before_the_others_is_named(group, monkeypatch):
    monkeypatch.setattr(health, "_LEFT_BEHIND", 0.2)
    g = group(2)
    started = {0: 7, 1: 4}
    together(lambda n: g.join(n, progress=lambda: started[n]), range(2))
    # It may go, with an exit code of its own.
    assert g.members[1].leave(5)
    g.until(lambda: g.deaths)
    assert list(g.deaths) == [0]
    assert "ended after 4 of the programs" in g.deaths[0] and "in number 7" in g.deaths[0]


def test_who_ends_before_a_barrier_is_named(group, monkeypatch):
    monkeypatch.setattr(health, "_LEFT_BEHIND", 0.2)
    g = group(2)
    g.join_all(range(2))
    waiting = threading.Thread(target=lambda: together(lambda n: g.members[n].barrier("b", 3), [0]))
    waiting.start()
    assert g.members[1].leave(5)
    g.until(lambda: g.deaths)
    assert "it ended, and others wait for it at barrier 'b'" in g.deaths[0]
    g.members[0].close()
    waiting.join()


HEAD = """
import os, signal, sys, time
import namoo
from namoo import distributed
me = int(os.environ["NAMOO_PROCESS_ID"])
"""
JOIN = """
silence = int(os.environ.get("SILENCE", 60))
distributed.initialize(initialization_timeout=60, heartbeat_timeout_seconds=silence)
assert me == namoo.process_index()
distributed.barrier("all here", 60)
"""


def launch(tmp_path, code: str, count: int = 3, head: str = HEAD + JOIN) -> tuple[int, str, str]:
    script = tmp_path / "script.py"
    script.write_text(head + textwrap.dedent(code))
    command = [sys.executable, "-m", "namoo.launch", "-n", str(count)]
    command += ["--cpu-devices", "2", "--deadline", "60", "--grace", "1", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


needs_jaxlib = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import jaxlib"], capture_output=True).returncode != 0,
    reason="the XLA engine is an extra",
)


@needs_jaxlib
def test_devices_of_all_processes(tmp_path):
    code = """
    devices, local = namoo.devices(), namoo.local_devices()
    print(namoo.process_count(), len(devices), len(local), [d.process_index for d in devices])
    assert all(d.is_addressable == (d in local) for d in devices)
    mesh = namoo.make_mesh((6,), ("x",))
    assert mesh.is_multi_process and mesh.local_mesh.size == 2
    distributed.shutdown()
    """
    code, out, err = launch(tmp_path, code)
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == [f"[{n}] 3 6 2 [0, 0, 1, 1, 2, 2]" for n in range(3)]


def survivors(
    tmp_path, code: str, victim: int, variables: dict[str, str] | None = None
) -> dict[int, tuple[int, str]]:
    """What three processes without a launcher end with, except one, and what they write."""
    script = tmp_path / "script.py"
    script.write_text(HEAD + JOIN + textwrap.dedent(code))
    address = free_address()
    running = {
        n: subprocess.Popen(
            [sys.executable, str(script)],
            env={**os.environ, **Launched.variables(address, 3, n, n), **(variables or {})},
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    }
    try:
        ends = {n: p.communicate(timeout=60)[1] for n, p in running.items() if n != victim}
        return {n: (running[n].returncode, err) for n, err in ends.items()}
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


@needs_jaxlib
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGKILL, "its connection ended: it crashed or was killed"),
        (signal.SIGSTOP, "no sign of life for 3 s: it is stopped or unreachable"),
    ],
)
@pytest.mark.parametrize("victim", [0, 2])
def test_a_lost_process_is_named_by_the_others(tmp_path, victim, number, reason):
    code = f"""
    if me == {victim}:
        os.kill(os.getpid(), {number})
    time.sleep(60)
    """
    ends = survivors(tmp_path, code, victim, {"SILENCE": "3"} if number == signal.SIGSTOP else None)
    who = r"process 0, the coordinator," if victim == 0 else r"process 2 \(host .*, pid \d+\)"
    told = [
        n for n, (_, err) in ends.items() if re.search(f"process {n}: {who} is lost: {reason}", err)
    ]
    if (victim, number) == (0, signal.SIGKILL):
        # jaxlib aborts when its service is gone, and may be quicker in one of them.
        assert told
    else:
        assert len(told) == 2
        assert {code for code, _ in ends.values()} == {PEER_FAILED}
        assert all(
            re.search(r'it was here:\n  File ".*script.py"', err) for _, err in ends.values()
        )


@needs_jaxlib
def test_the_launcher_tells_who_was_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("SILENCE", "3")
    code = """
    if me == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
    """
    code, _, err = launch(tmp_path, code)
    assert code == PEER_FAILED
    last = err[err.index("namoo.launch: the last lines of process") :]
    assert re.search(r"process 1 \(host .*\) is lost: no sign of life for 3 s", last)


STEP = """
import numpy as np
import namoo.numpy as jnp
from namoo.sharding import NamedSharding, PartitionSpec as P
mesh = namoo.make_mesh((namoo.device_count(),), ("x",))
x = namoo.make_array_from_callback(
    (6,), NamedSharding(mesh, P("x")), lambda index: np.arange(6.0, dtype=np.float32)[index]
)
step = namoo.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))
assert float(step(x)) == 15
"""


@needs_jaxlib
def test_a_process_that_dies_while_others_compute_is_named(tmp_path):
    code = """
    if me == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    print(float(step(x)))
    """
    ends = survivors(tmp_path, STEP + textwrap.dedent(code), 2, {"NAMOO_NUM_CPU_DEVICES": "2"})
    for number, (code, err) in ends.items():
        assert code == PEER_FAILED, err
        assert re.search(rf"process {number}: process 2 \(.*\) is lost: its connection ended", err)


@needs_jaxlib
def test_a_process_that_others_wait_for_is_named_and_shows_where_it_is(tmp_path):
    code = """
    def forgets_the_others():
        time.sleep(4)
    if me == 1:
        forgets_the_others()
    assert float(step(x)) == 15
    """
    join = JOIN.replace("initialize(", "initialize(stall_timeout_seconds=1.5, ")
    code, _, err = launch(tmp_path, STEP + textwrap.dedent(code), head=HEAD + join)
    assert code == 0, err
    for number in (0, 2):
        wait = "others wait in program 2 that all processes run together for process 1"
        assert f"process {number}: for more than 1.5 s {wait}" in err
    assert re.search(r"process 1: others wait for this .*\n(.*\n)*.*forgets_the_others", err)


@needs_jaxlib
def test_an_error_ends_all_and_is_the_one_that_is_told(tmp_path):
    code = """
    if me == 1:
        raise ValueError("wrong")
    distributed.barrier("never", 50)
    """
    code, _, err = launch(tmp_path, code)
    assert code == 1
    assert "namoo.launch: process 1 failed with exit code 1" in err
    assert "namoo.launch:   ValueError: wrong" in err
    assert re.search(r"process 1 \(host .*\) is lost: it raised ValueError: wrong", err)


@needs_jaxlib
def test_it_comes_before_the_first_use_of_devices(alone):
    code = """
import namoo
namoo.config.update("jax_engine", "xla")
namoo.jit(lambda x: x + 1)(1.0)
namoo.distributed.initialize("localhost:0", num_processes=2, process_id=0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "RuntimeError: distributed.initialize must be called before" in done.stderr


@needs_jaxlib
def test_processes_tell_one_another_values(tmp_path):
    code = """
    import numpy as np
    from namoo.experimental import multihost_utils as hosts
    from namoo.sharding import AxisType, PartitionSpec as P

    rows = hosts.process_allgather({"a": np.arange(2) + 10 * me, "b": float(me)})
    assert rows["a"].tolist() == [[0, 1], [10, 11], [20, 21]]
    assert rows["b"].tolist() == [0, 1, 2]
    assert hosts.process_allgather(np.array([me, me]), tiled=True).tolist() == [0, 0, 1, 1, 2, 2]
    assert hosts.broadcast_one_to_all({"x": np.float32(me + 5)})["x"] == 5
    flags = hosts.broadcast_one_to_all(np.array([True, me == 1]), is_source=me == 1)
    assert flags.tolist() == [True, True]
    hosts.sync_global_devices("here")
    hosts.assert_equal({"same": np.ones(3)}, "fine")
    try:
        hosts.assert_equal({"seed": [3, me]}, "seeds")
    except AssertionError as error:
        expected = "seeds: processes [1, 2] differ from process 0 in ['seed'][1]; process 1 has 1"
        assert str(error).startswith(expected), error
    else:
        raise SystemExit("not noticed")
    try:
        hosts.sync_global_devices(f"place {me}")
    except AssertionError as error:
        assert "['place 0', 'place 1', 'place 2']" in str(error)
    else:
        raise SystemExit("not noticed")

    mesh = namoo.make_mesh((6,), ("x",), (AxisType.Auto,))
    own = np.arange(4, dtype=np.float32) + 100 * me
    whole = hosts.host_local_array_to_global_array(own, mesh, P("x"))
    assert whole.shape == (12,)
    total = namoo.jit(lambda x: x.sum())(whole)
    assert float(total) == sum(range(4)) * 3 + 4 * 300
    back = hosts.global_array_to_host_local_array(whole * 2, mesh, P("x"))
    assert np.asarray(back).tolist() == (own * 2).tolist()
    assert hosts.process_allgather(whole, tiled=True)[4] == 100
    """
    code, _, err = launch(tmp_path, code)
    assert (code, err) == (0, "")


def test_a_process_that_does_not_come_is_named(tmp_path):
    code = """
    from pathlib import Path

    # Processes start at their own pace: the time to wait begins when all are there.
    Path(__file__).with_name(f"here{me}").touch()
    while len([*Path(__file__).parent.glob("here*")]) < 3:
        time.sleep(0.01)
    if me == 1:
        time.sleep(60)
    distributed.initialize(initialization_timeout=2)
    """
    code, _, err = launch(tmp_path, code, head=HEAD)
    assert code == 1
    assert re.search(r"TimeoutError: .*after 2 s process 1 of 3 has not reached the coordin", err)
    assert "health.py" not in err


def test_without_jaxlib_nothing_of_it_is_loaded():
    code = """
import sys, os
import namoo
namoo.distributed.initialize("localhost:0", 1, 0)
assert "jaxlib" not in sys.modules
"""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "NAMOO_"))}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
