"""The launcher: what processes are told, how their output is merged, and that all of them end."""

import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from namoo.launch import Lines, parser

# Each tells its number on the disk, to be looked for afterwards, and may wait for the others'.
HEAD = """
import os, pathlib, signal, sys, time
me, folder = int(os.environ["NAMOO_PROCESS_ID"]), pathlib.Path({folder!r})
(folder / f"pid{{me}}").write_text(str(os.getpid()))

def wait_for(count):
    while sum(bool(file.read_text()) for file in folder.glob("pid*")) < count:
        time.sleep(0.01)

"""


def launch(tmp_path, code: str, *options: str, arguments=()) -> subprocess.Popen:
    """A launcher of a script, under way."""
    script = tmp_path / "script.py"
    script.write_text(HEAD.format(folder=str(tmp_path)) + textwrap.dedent(code))
    command = [sys.executable, "-m", "namoo.launch", *options, str(script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(running: subprocess.Popen, timeout=120) -> tuple[int, str, str]:
    out, err = running.communicate(timeout=timeout)
    return running.returncode, out, err


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie is its parent's affair, and this one's parent is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(tmp_path, count: int) -> list[int]:
    """The numbers of the processes, once they have all started."""
    files = [tmp_path / f"pid{i}" for i in range(count)]
    for _ in range(1200):
        if all(file.exists() and file.read_text() for file in files):
            return [int(file.read_text()) for file in files]
        time.sleep(0.05)
    raise AssertionError("the processes did not start")


def all_gone(found: list[int]) -> bool:
    """Whether none of the processes runs, soon."""
    for _ in range(600):
        if not any(map(alive, found)):
            return True
        time.sleep(0.05)
    return False


def test_processes_know_one_another(tmp_path):
    code = """
    from namoo.devices.distributed.clusters import detect
    known = detect()
    print(known.coordinator(os.environ), known.count(os.environ), known.number(os.environ),
          known.local_number(os.environ), sys.argv[1:], os.environ["NAMOO_NUM_CPU_DEVICES"])
    """
    running = launch(tmp_path, code, "-n", "3", "--cpu-devices", "2", arguments=["-n", "a b"])
    code, out, err = finish(running)
    assert (code, err) == (0, "")
    lines = sorted(out.splitlines())
    assert [line[:4] for line in lines] == ["[0] ", "[1] ", "[2] "]
    address = lines[0].split()[1]
    assert re.fullmatch(r"127.0.0.1:\d+", address)
    for i, line in enumerate(lines):
        assert line == f"[{i}] {address} 3 {i} {i} ['-n', 'a b'] 2"


def test_some_of_the_processes_of_several_machines(tmp_path):
    names = "COORDINATOR_ADDRESS", "LOCAL_PROCESS_ID", "NUM_PROCESSES", "PROCESS_ID"
    code = f"print(*(os.environ['NAMOO_' + name] for name in {names}))"
    options = ["-n", "2", "--total", "12", "--first", "10", "--coordinator", "head:1234"]
    code, out, _ = finish(launch(tmp_path, code, *options))
    lines = sorted(out.splitlines())
    assert lines == ["[10] head:1234 0 12 10", "[11] head:1234 1 12 11"]


def test_a_module(tmp_path):
    command = [sys.executable, "-m", "namoo.launch", "-n", "1", "-m", "platform"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[0] ") and not done.stderr


def test_lines_are_whole_and_streams_apart(tmp_path):
    code = """
    for i in range(200):
        for piece in (f"out {me} ", str(i), " " + "x" * 3000, "\\n"):
            sys.stdout.write(piece)
        sys.stderr.write(f"err {me} {i}\\n")
    print("no end", end="")
    """
    code, out, err = finish(launch(tmp_path, code, "-n", "4"))
    assert code == 0
    for number in range(4):
        mine = [line for line in out.splitlines() if line.startswith(f"[{number}] ")]
        assert mine[:-1] == [f"[{number}] out {number} {i} {'x' * 3000}" for i in range(200)]
        assert mine[-1] == f"[{number}] no end"
        errors = [line for line in err.splitlines() if line.startswith(f"[{number}] ")]
        assert errors == [f"[{number}] err {number} {i}" for i in range(200)]
    assert len(out.splitlines()) == 804 and len(err.splitlines()) == 800


def test_the_first_failure_stops_all_and_is_told(tmp_path):
    code = """
    if me == 2:
        wait_for(4)
        print("before", flush=True)
        raise SystemExit(7)
    time.sleep(100)
    """
    code, out, err = finish(launch(tmp_path, code, "-n", "4"))
    assert code == 7
    assert re.search(r"process 2 failed with exit code 7 after [\d.]+ s. The others were", err)
    assert "the last lines of process 2:\nnamoo.launch:   before\n" in err
    assert all_gone(pids(tmp_path, 4))


def test_what_raises_shows_its_error(tmp_path):
    code, _, err = finish(launch(tmp_path, "1 / (me - 1) if me == 1 else time.sleep(9)", "-n", "2"))
    assert code == 1
    assert "namoo.launch:   ZeroDivisionError: division by zero" in err


def test_a_killed_process_is_named(tmp_path):
    code = """
    if me == 1:
        wait_for(2)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)
    """
    code, _, err = finish(launch(tmp_path, code, "-n", "2"))
    assert code == 128 + signal.SIGKILL
    assert "process 1 was killed by SIGKILL" in err
    assert all_gone(pids(tmp_path, 2))


def test_who_ignores_the_request_is_killed(tmp_path):
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if me == 0:
        while len(list(pathlib.Path(sys.argv[1]).glob("ready*"))) < 2:
            time.sleep(0.02)
        raise SystemExit(3)
    pathlib.Path(sys.argv[1], f"ready{me}").touch()
    while True:
        time.sleep(1)
    """
    running = launch(tmp_path, code, "-n", "3", "--grace", "0.3", arguments=[str(tmp_path)])
    assert finish(running)[0] == 3
    assert all_gone(pids(tmp_path, 3))


def test_what_processes_started_ends_with_them(tmp_path):
    code = """
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    pathlib.Path(sys.argv[1], "pid1").write_text(str(child.pid))
    raise SystemExit(5)
    """
    code, _, _ = finish(launch(tmp_path, code, "-n", "1", arguments=[str(tmp_path)]))
    assert code == 5
    assert all_gone(pids(tmp_path, 2))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_launcher_stops_all(tmp_path, number):
    running = launch(tmp_path, "time.sleep(100)", "-n", "3")
    found = pids(tmp_path, 3)
    running.send_signal(number)
    code, _, err = finish(running)
    assert code == 128 + number
    assert f"{number.name}: stopping 3 processes" in err
    assert all_gone(found)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells children")
def test_processes_do_not_outlive_a_killed_launcher(tmp_path):
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)"
    running = launch(tmp_path, code, "-n", "3")
    found = pids(tmp_path, 3)
    running.kill()
    running.wait()
    assert all_gone(found)
    finish(running)


def test_a_deadline_tells_who_is_late_and_where(tmp_path):
    code = """
    def waits_for_ever():
        time.sleep(100)
    if me == 1:
        waits_for_ever()
    """
    running = launch(tmp_path, code, "-n", "3", "--deadline", "4", "--grace", "2")
    code, _, err = finish(running)
    assert code == 124
    assert "the deadline of 4 s is over; still running: process 1." in err
    assert "in waits_for_ever" in err
    assert all_gone(pids(tmp_path, 3))


def test_help_and_mistakes(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["-n", "0", "script.py"])
    assert "0 is not at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["script.py"])
    assert "-n" in capsys.readouterr().err


@given(pieces=st.lists(st.text(alphabet="ab\n", max_size=6)))
def test_lines_are_the_same_however_they_come(pieces):
    lines = Lines()
    found = [line for piece in pieces for line in lines.feed(piece.encode())] + list(lines.rest())
    assert found == "".join(pieces).encode().splitlines()


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["10%\r20%\r", "30%\n"], ["30%"]),
        (["windows\r\n", "too\r", "\n"], ["windows", "too"]),
        (["a\rb"], ["b"]),
        (["1%\r" * 1000, "2%"], ["2%"]),
    ],
)
def test_bars_show_their_last_state(pieces, expected):
    lines = Lines()
    found = [line for piece in pieces for line in lines.feed(piece.encode())]
    assert len(lines._pending) < 10
    assert [line.decode() for line in [*found, *lines.rest()]] == expected
