"""A stranger can neither join nor stop nor hang a job; processes know their job by its secret."""

import contextlib
import json
import logging
import os
import random
import re
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from distributed_group import SECRET, groups, together
from namoo import distributed
from namoo.devices.distributed import channel, health, secret
from namoo.devices.distributed.channel import MAGIC, Channel, ProtocolError, connect
from namoo.devices.distributed.health import Member, listening
from namoo.devices.distributed.secret import FILE_VARIABLE, VARIABLE, find_secret


@pytest.fixture
def group():
    with groups() as make:
        yield make


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes the connection, soon."""
    connection.settimeout(20)
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    connection.close()
    return True


def works(g) -> bool:
    """Whether all members of a group are there and meet."""
    met = together(lambda n: g.members[n].barrier("still here", 20), range(g.count))
    return met == dict.fromkeys(range(g.count)) and not g.deaths


JOIN = json.dumps({"join": {"number": 1, "count": 2, "who": "a stranger"}}).encode() + b"\n"
FOREIGN = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303") + bytes(160),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "list": b"[1]\n" * 8,
    "join": JOIN,
    "failed": b'{"failed": "ValueError"}\n',
    "barrier": b'{"barrier": "x"}\n',
    "not JSON": b"\xff\xfe{{{{\n" * 3,
    "nested": b"[" * 100_000,
    "no end": b"x" * 1_000_000,
    "proof": MAGIC + bytes(64),
    "proof and message": MAGIC + bytes(64) + bytes(36) + JOIN,
    "huge length": MAGIC + bytes(64) + b"\xff" * 40,
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
def test_other_protocols_close_their_connection_alone(group, data, caplog):
    g = group(2)
    waiting = threading.Thread(target=lambda: together(g.join, [0]))
    waiting.start()
    with caplog.at_level(logging.WARNING, "namoo.distributed"):
        for _ in range(2):
            stranger = socket.create_connection(g.address)
            with contextlib.suppress(ConnectionError):
                stranger.sendall(data)
            assert is_closed(stranger)
            # Once while the job waits for a member, once while it runs.
            if 1 not in g.members:
                assert 1 not in g.server._peers
                g.join(1)
                waiting.join()
    assert works(g)
    g.until(lambda: "closed a connection from 127.0.0.1" in caplog.text)


def test_silent_strangers_are_closed(group, monkeypatch):
    monkeypatch.setattr(health, "_STRANGER_SECONDS", 0.2)
    g = group(2)
    g.join_all(range(2))
    silent = [socket.create_connection(g.address) for _ in range(3)]
    silent[1].sendall(MAGIC[:5])
    # One that knows the secret must join as well.
    silent.append(connect(socket.create_connection(g.address), SECRET).socket)
    assert all(map(is_closed, silent))
    assert works(g)


def test_many_strangers_do_not_keep_a_member_out(group, caplog):
    g = group(2)
    first = threading.Thread(target=lambda: together(g.join, [0]))
    first.start()
    limit = health._STRANGERS + g.count
    crowd = [socket.create_connection(g.address) for _ in range(2 * limit)]
    g.join(1)
    first.join()
    assert works(g)
    assert len(g.server._strangers) <= limit
    # The oldest were closed, with a line of the log for many.
    assert is_closed(crowd[0])
    lines = [r for r in caplog.records if "too many" in r.getMessage()]
    assert len(lines) <= 3
    for each in crowd:
        each.close()


def test_the_log_is_not_flooded(group, caplog):
    g = group(1)
    g.join(0)
    for _ in range(40):
        stranger = socket.create_connection(g.address)
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert is_closed(stranger)
    assert 1 <= len(caplog.records) <= 20
    assert works(g)


def test_no_descriptor_is_left(group, monkeypatch):
    g = group(2)
    accepted = []

    class Exhausted:
        """A listening socket whose `accept` fails at first."""

        def __init__(self, real):
            self.real = real

        def accept(self):
            accepted.append(1)
            if len(accepted) < 4:
                raise OSError(24, "Too many open files")
            return self.real.accept()

        def __getattr__(self, name):
            return getattr(self.real, name)

    g.server._socket = Exhausted(g.server._socket)
    g.join_all(range(2))
    assert works(g)


# What a member says wrongly.

MESSAGES = {
    "unknown": {"dance": 1},
    "private": {"tick": 0.0},
    "barrier": {"barrier": "x"},
    "bye": {"bye": True},
    "failed": {"failed": "ValueError"},
    "beat": {"beat": 3},
    "join a list": {"join": [1]},
    "join without a number": {"join": {"count": 2, "who": "x"}},
    "join as a text": {"join": {"number": "1", "count": 2, "who": "x"}},
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_before_it_joined_a_mistake_ends_a_connection_alone(group, message):
    g = group(2)
    g.join_all(range(2))
    odd = connect(socket.create_connection(g.address), SECRET)
    odd.send(**message)
    assert is_closed(odd.socket)
    assert works(g)


@pytest.mark.parametrize(
    ("number", "count", "answer"),
    [(1, 3, "expects 3"), (-1, 2, "no process -1"), (2, 2, "no process 2"), (0, 2, "already")],
)
def test_contradictions_are_refused(group, number, count, answer):
    g = group(2)
    g.join_all(range(2))
    odd = connect(socket.create_connection(g.address), SECRET)
    odd.send(join={"number": number, "count": count, "who": "x"})
    ((what, why),) = odd.receive() or []
    assert what == "refused" and answer in why
    assert is_closed(odd.socket)
    assert works(g)


@pytest.mark.parametrize(
    "message", [{"dance": 1}, {"beat": "x"}, {"barrier": [1]}, {"join": {}}, {"a": 1, "b": 2}, {}]
)
def test_a_member_that_is_not_understood_is_named(group, message):
    g = group(2)
    odd = connect(socket.create_connection(g.address), SECRET)
    odd.send(join={"number": 1, "count": 2, "who": "an odd one"})
    g.join(0)
    odd.send(**message)
    g.until(lambda: g.deaths)
    odd.close()
    assert re.match(r"process 1 \(an odd one\) is lost: its message .*is not ", g.deaths[0])


# Recorded and changed bytes.


@contextlib.contextmanager
def tapped(g, change=lambda data: data):
    """A member of a group by way of another connection, which may change what the member sends.

    Yields the member's channel, and what member and coordinator have sent.
    """
    said = {"member": b"", "coordinator": b""}

    def copy(name, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                said[name] += data
                target.sendall(change(data) if name == "member" else data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        inner = socket.create_connection(listener.getsockname())
        near, _ = listener.accept()
    with near, socket.create_connection(g.address) as far:
        ways = [("member", near, far), ("coordinator", far, near)]
        threads = [threading.Thread(target=copy, args=way) for way in ways]
        for thread in threads:
            thread.start()
        joined = connect(inner, SECRET)
        joined.send(join={"number": 1, "count": 2, "who": "the other"})
        g.join(0)
        yield joined, said
        joined.close()
        for thread in threads:
            thread.join()


def test_what_was_recorded_cannot_be_sent_again(group):
    g = group(2)
    with tapped(g) as (other, said):
        other.send(failed="for the record")
        g.until(lambda: g.deaths)
    assert g.deaths[0].endswith("is lost: it raised for the record")
    again = group(2)
    first = threading.Thread(target=lambda: together(again.join, [0]))
    first.start()
    for recorded in said.values():
        stranger = socket.create_connection(again.address)
        stranger.sendall(recorded)
        assert is_closed(stranger)
    assert set(again.server._peers) <= {0}
    again.join(1)
    first.join()
    assert works(again)


@pytest.mark.parametrize(
    "change", [lambda data: data[:-3] + b"?" + data[-2:], lambda data: data + data]
)
def test_a_changed_or_repeated_message_ends_the_connection(group, change):
    g = group(2)
    changing = threading.Event()
    with tapped(g, lambda data: change(data) if changing.is_set() else data) as (other, _):
        changing.set()
        other.send(beat=1)
        g.until(lambda: g.deaths)
    assert "its message was not made with the key of this connection" in g.deaths[0]


# Which coordinator.


def test_a_member_with_another_secret_is_told(group):
    g = group(2)
    with pytest.raises(RuntimeError, match=f"a different secret than this process.*{VARIABLE}"):
        g.join(1, secret=b"the secret of another job")
    assert not g.server._peers


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not process 0 of this job: it uses another"),
        (MAGIC + bytes(32) + b"x" * 32, "a different secret than this process.*it gave no proof"),
    ],
)
def test_a_member_knows_its_coordinator(answer, message):
    def pretend():
        connection, _ = listener.accept()
        connection.sendall(answer)
        with contextlib.suppress(OSError):
            connection.recv(1000)
            time.sleep(0.2)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=pretend, daemon=True).start()
        with pytest.raises(RuntimeError, match=message):
            Member(listener.getsockname(), 1, 2, SECRET, timeout=20, beat=0.1, silence=9)


def test_a_member_tries_again_when_it_was_cut_off(group):
    g = group(1)
    real, tries = health.connect, []

    def cut_off(connection, secret):
        tries.append(1)
        if len(tries) < 3:
            connection.close()
            raise ConnectionError("cut off")
        return real(connection, secret)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(health, "connect", cut_off)
        g.join(0)
    assert len(tries) == 3 and works(g)


# Anything at all.


def handshake(rng: random.Random) -> bytes:
    """What a stranger may send: noise, or something that is nearly right."""
    noise = rng.randbytes(rng.choice([0, 1, 15, 16, 79, 80, 81, 500]))
    if rng.random() < 0.5:
        return noise
    made = bytearray(MAGIC + rng.randbytes(64) + noise)
    for _ in range(rng.randrange(3)):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made[: rng.randrange(1, len(made) + 1)])


def visit(address, rng: random.Random) -> None:
    """Connect, send something, and leave in one way or another."""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as stranger:
        stranger.settimeout(0.2)
        data = handshake(rng)
        if rng.random() < 0.3:
            stranger.recv(rng.randrange(1, 60))
        for start in range(0, len(data), max(1, len(data) // rng.randrange(1, 4))):
            stranger.sendall(data[start : start + max(1, len(data) // 3)])
        if rng.random() < 0.5:
            # Reset instead of an orderly end.
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def test_random_strangers_while_a_group_works(group):
    g = group(3)
    rng = random.Random(0)
    over = threading.Event()

    def crowd():
        for _ in range(300):
            visit(g.address, rng)
        over.set()

    threading.Thread(target=crowd, daemon=True).start()
    g.join_all(range(3))
    met = 0
    while not over.is_set() or not met:
        assert works(g)
        met += 1
    assert together(lambda n: g.members[n].leave(20), range(3)) == dict.fromkeys(range(3), True)
    assert not g.deaths and g.server.is_alive()


def test_random_messages_are_errors_of_the_protocol():
    """Whatever arrives on a trusted connection, `receive` returns or raises one exception."""
    rng = random.Random(1)
    for _ in range(300):
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            reader = Channel.__new__(Channel)
            reader.socket, reader._pending, reader._arrived = left, b"", []
            key = bytes(32)
            reader._reader = reader._messages(key)
            reader._wanted = next(reader._reader)
            text = rng.choice([b'{"beat": 1}', b"[1]", b"{}", b"null", b"[" * 5000, b"\xff", b""])
            tag = channel._hmac(key, bytes(8), text)
            sent = bytearray(len(text).to_bytes(4, "big") + tag + text)
            if rng.random() < 0.5:
                sent[rng.randrange(len(sent))] ^= 1 << rng.randrange(8)
            right.sendall(sent)
            try:
                assert reader.receive() in ([("beat", 1)], [])
            except ProtocolError:
                pass


# Where process 0 listens.


def test_it_listens_at_the_named_address_alone(monkeypatch):
    answers = {
        "head": ["10.1.2.3", "127.0.0.1"],
        "here": ["127.0.0.5"],
        "debian": ["127.0.1.1"],
        "away": ["203.0.113.7"],
    }

    def resolve(host, port, **options):
        if host not in answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, 0)) for a in answers[host]]

    own = []

    def listen(address, **options):
        own.append(address[0])
        if address[0] != "10.1.2.3":
            raise OSError(99, "Cannot assign requested address")
        return contextlib.nullcontext()

    monkeypatch.setattr(health.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(health.socket, "create_server", listen)
    assert listening("localhost") == "localhost" and listening("127.0.0.1") == "127.0.0.1"
    assert not own
    assert listening("head") == "10.1.2.3"
    assert listening("debian") in ("::", "0.0.0.0")
    for host in ("away", "unknown"):
        with pytest.raises(RuntimeError, match=f"listen at {host}, .*coordinator_bind_address"):
            listening(host)


# The secret.


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without a secret."""
    for name in (VARIABLE, FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_secret_of_the_environment_comes_first(home):
    file = home / "mine"
    file.touch(mode=0o600)
    file.write_text("the secret of a file\n")
    named = {FILE_VARIABLE: str(file)}
    assert find_secret(named) == b"the secret of a file"
    assert find_secret(named | {VARIABLE: "the secret of this job"}) == b"the secret of this job"
    assert not (home / "state").exists()


def test_a_user_has_a_secret(home):
    file = home / "state" / "namoo" / "coordinator.secret"
    found = together(lambda n: find_secret(os.environ), range(16))
    assert len(set(found.values())) == 1 and len(found[0]) == 64
    assert file.read_bytes().strip() == found[0]
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_can_read_is_refused(home, mode):
    file = home / "mine"
    file.write_text("the secret of a file\n")
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"not yours alone.*chmod 600 {file}"):
        find_secret({FILE_VARIABLE: str(file)})


def test_odd_files_are_refused(home):
    pipe = home / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(PermissionError, match="not yours alone"):
        find_secret({FILE_VARIABLE: str(pipe)})
    with pytest.raises(FileNotFoundError):
        find_secret({FILE_VARIABLE: str(home / "none")})
    (home / "state").write_text("not a folder")
    with pytest.raises(RuntimeError, match=f"need a secret .* Set {VARIABLE}"):
        find_secret(os.environ)


@pytest.mark.parametrize("text", ["short", "x" * 5000])
def test_a_secret_has_a_length(home, text):
    with pytest.raises(ValueError, match=rf"{VARIABLE} has {len(text)} characters; it needs 16"):
        find_secret({VARIABLE: text})


def test_one_process_needs_no_secret(home):
    distributed.initialize("localhost:0", 1, 0)
    distributed.shutdown()
    assert not (home / "state").exists()


# The launcher.

PROGRAM = """
import os, pathlib, sys, time
from namoo import distributed
folder, me = pathlib.Path({folder!r}), int(os.environ["NAMOO_PROCESS_ID"])
secret = os.environ.get("NAMOO_COORDINATOR_SECRET", "")
seen = [p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline")] if {proc} else []
print(secret, any(secret.encode() in line for line in seen))
"""


def run(tmp_path, code: str, *options: str, **variables: str) -> subprocess.Popen:
    script = tmp_path / "script.py"
    head = PROGRAM.format(folder=str(tmp_path), proc=sys.platform == "linux")
    script.write_text(head + textwrap.dedent(code))
    command = [sys.executable, "-m", "namoo.launch", "--deadline", "90", *options, str(script)]
    return subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def secrets_of(running: subprocess.Popen) -> set[str]:
    out, err = running.communicate(timeout=100)
    assert running.returncode == 0, err
    return {line.partition("] ")[2] for line in out.splitlines()}


def test_the_launcher_gives_each_job_a_secret(tmp_path, home):
    one, two = (secrets_of(run(tmp_path, "", "-n", "2")) for _ in range(2))
    assert len(one) == len(two) == 1 and one != two
    assert re.fullmatch(r"[0-9a-f]{64} False", one.pop())
    # One that is given is kept; launchers on several machines do not each make their own.
    given = {VARIABLE: "the secret of two machines"}
    assert secrets_of(run(tmp_path, "", "-n", "1", **given)) == {given[VARIABLE] + " False"}
    assert secrets_of(run(tmp_path, "", "-n", "1", "--total", "2")) == {" True"}
    assert secret.given(given) and not secret.given({VARIABLE: ""})


def test_a_job_runs_among_strangers(tmp_path, home):
    code = """
    if me == 0:
        (folder / "address").write_text(os.environ["NAMOO_COORDINATOR_ADDRESS"])
    while not (folder / "strangers").exists():
        time.sleep(0.01)
    distributed.initialize(initialization_timeout=60)
    for step in range(20):
        distributed.barrier("step", 60)
        time.sleep(0.02)
    distributed.shutdown()
    print("done")
    """
    running = run(tmp_path, code, "-n", "2", "--cpu-devices", "1")
    file, rng = tmp_path / "address", random.Random(2)
    while not (file.exists() and file.read_text()):
        time.sleep(0.05)
    host, _, port = file.read_text().partition(":")
    (tmp_path / "strangers").touch()
    for data in [*FOREIGN.values()] * 2:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))) as odd:
            odd.sendall(data)
    for _ in range(2000):
        visit((host, int(port)), rng)
        if running.poll() is not None:
            break
    out, err = running.communicate(timeout=100)
    assert running.returncode == 0, err
    assert out.count("done") == 2
    assert "is lost" not in err
