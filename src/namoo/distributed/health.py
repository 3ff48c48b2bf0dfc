"""Whether all processes that work together are there, alive, and getting on.

Process 0 runs a `Server`; every process, process 0 included, is a `Member` with one connection to
it, on which each says something at least once in every beat.  So a process that was killed is known
at once, because its connection ends; one that is stopped, or whose machine is gone, after the
heartbeat's timeout; and one that lags behind the others after the stall's timeout.  Each time it is
named.  jaxlib's own service knows less, and answers by aborting the process.

Messages are lines of JSON, each an object with one key.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from namoo import errors

PEER_FAILED = 70
"""The exit code of a process that ends because another one failed."""

FAREWELL = 0.5
"""Seconds that process 0 stays to tell the others why it ends."""

_LEFT_BEHIND = 5.0
"""Seconds that processes may wait for one that has ended before them."""


def where_now() -> str:
    """The line that the main thread is in, with those that led there, of the user's program."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=True)
    dull = ("<frozen importlib", threading.__file__, importlib.__file__)
    shown = [
        each
        for each in stack
        if not errors.is_hidden(each.filename) and not each.filename.startswith(dull)
    ]
    return "".join(traceback.format_list(shown[::-1])).rstrip()


class Line:
    """A connection that carries messages."""

    def __init__(self, connection: socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self._pending = b""
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        """Say something; whether the other end is there still is found out by listening."""
        with self._lock, contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[tuple[str, Any]] | None:
        """The messages that came; None where the connection has ended."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *whole, self._pending = (self._pending + data).split(b"\n")
        return [next(iter(json.loads(line).items())) for line in whole]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@dataclass(eq=False)
class Peer:
    """What the server knows of a member."""

    line: Line
    number: int | None = None
    who: str = ""
    heard: float = field(default_factory=time.monotonic)
    started: int = 0
    behind: float | None = None
    """Since when others have started more than this one."""
    leaving: bool = False


class Server(threading.Thread):
    """Knows all members, tells them when all have come, and who is gone.

    Args:
      address: host and port to listen at.
      count: how many members there are.
      beat: seconds between signs of life.
      silence: seconds without a sign of life after which a member counts as dead.
      stall: seconds after which a member that lags behind is named.
    """

    def __init__(
        self, address: tuple[str, int], count: int, *, beat: float, silence: float, stall: float
    ):
        super().__init__(name="namoo health server", daemon=True)
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(
            address,
            family=family,
            backlog=count + 8,
            # `::` stands for all addresses, old ones included.
            dualstack_ipv6=address[0] == "::",
        )
        self.port = self._socket.getsockname()[1]
        self._count, self._beat, self._silence, self._stall = count, beat, silence, stall
        self._peers: dict[int, Peer] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._barriers: dict[str, set[int]] = {}
        self._welcome: dict[str, Any] | None = None
        self._greeted = self._over = False
        self.condemned = threading.Event()
        """Set when it was told that a member is lost."""
        self._reported = time.monotonic()

    def welcome(self, **told: Any) -> None:
        """What members are told when all have come."""
        self._welcome = told

    def run(self) -> None:
        last = 0.0
        while not self._over:
            for key, _ in self._selector.select(self._beat / 4):
                if key.data is None:
                    self._accept()
                else:
                    self._hear(key.data)
            if time.monotonic() - last >= self._beat:
                last = time.monotonic()
                self._tick(last)
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                self._forget(key.data)
        self._selector.close()
        self._socket.close()

    def stop(self) -> None:
        """End, without telling anyone."""
        self._over = True

    def _accept(self) -> None:
        connection, _ = self._socket.accept()
        peer = Peer(Line(connection))
        # A member that does not read shall not hold up the server.
        connection.settimeout(self._beat)
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _tell(self, **message: Any) -> None:
        # Process 0 comes last: if it ends for what it hears, the others have heard it.
        for number in sorted(self._peers, reverse=True):
            self._peers[number].line.send(**message)

    def _forget(self, peer: Peer) -> None:
        self._selector.unregister(peer.line.socket)
        peer.line.close()

    def _hear(self, peer: Peer) -> None:
        messages = peer.line.receive()
        if messages is None:
            self._forget(peer)
            if peer.number is not None and self._peers.pop(peer.number, None):
                self._condemn(peer, "its connection ended: it crashed or was killed")
            return
        peer.heard = time.monotonic()
        for what, value in messages:
            getattr(self, f"_on_{what}")(peer, value)

    def _on_join(self, peer: Peer, value: dict[str, Any]) -> None:
        number, count = value["number"], value["count"]
        refused = None
        if count != self._count:
            refused = f"process {number} was told of {count} processes, process 0 of {self._count}"
        elif number in self._peers:
            refused = f"{self._peers[number].who} is process {number} already"
        if refused:
            peer.line.send(refused=refused)
            self._forget(peer)
            return
        peer.number, peer.who = number, value["who"]
        self._peers[number] = peer

    def _on_beat(self, peer: Peer, started: int) -> None:
        if started != peer.started:
            peer.started, peer.behind = started, None

    def _on_barrier(self, peer: Peer, name: str) -> None:
        arrived = self._barriers.setdefault(name, set())
        assert peer.number is not None
        arrived.add(peer.number)
        missing = [self._named(i) for i in range(self._count) if i not in arrived]
        if missing:
            self._tell(missing=[name, missing])
        else:
            del self._barriers[name]
            self._tell(passed=name)

    def _on_leave(self, peer: Peer, value: Any) -> None:
        peer.leaving = True
        if len(self._peers) == self._count and all(p.leaving for p in self._peers.values()):
            self._tell(done=True)

    def _on_bye(self, peer: Peer, value: Any) -> None:
        if peer.number is not None:
            self._peers.pop(peer.number, None)
        self._forget(peer)
        self._over = not self._peers

    def _on_failed(self, peer: Peer, why: str) -> None:
        if peer.number is not None and self._peers.pop(peer.number, None):
            self._condemn(peer, f"it raised {why}")

    def _named(self, number: int) -> str:
        known = self._peers.get(number)
        return f"process {number} ({known.who})" if known else f"process {number}"

    def _condemn(self, peer: Peer, why: str) -> None:
        """Tell everyone that a member is lost."""
        self._tell(dead=f"process {peer.number} ({peer.who}) is lost: {why}")
        self.condemned.set()

    def _let_go(self, peer: Peer, why: str) -> None:
        """Tell that a member has ended before the others; it itself may go."""
        assert peer.number is not None
        del self._peers[peer.number]
        peer.line.send(done=True)
        self._condemn(peer, why)

    def _tick(self, now: float) -> None:
        """Give a sign of life, and look for those who do not."""
        if not self._greeted:
            absent = [i for i in range(self._count) if i not in self._peers]
            if absent or self._welcome is None:
                self._tell(absent=absent)
                return
            self._greeted = True
            self._tell(welcome=self._welcome)
        self._tell(beat=0)
        for peer in list(self._peers.values()):
            if now - peer.heard > self._silence:
                assert peer.number is not None
                del self._peers[peer.number]
                self._condemn(
                    peer, f"no sign of life for {self._silence:g} s: it is stopped or unreachable"
                )
        self._look_for_laggards(now)

    def _look_for_laggards(self, now: float) -> None:
        ahead = max((peer.started for peer in self._peers.values()), default=0)
        waited_for: dict[Peer, str] = {}
        for name, arrived in self._barriers.items():
            for peer in self._peers.values():
                if peer.leaving and peer.number not in arrived:
                    waited_for[peer] = f"it ended, and others wait for it at barrier {name!r}"
        for peer in self._peers.values():
            if peer.started < ahead:
                waited_for[peer] = (
                    f"it ended after {peer.started} of the programs that all processes run "
                    f"together, and others wait for it in number {ahead}"
                )
        for peer in self._peers.values():
            peer.behind = (peer.behind or now) if peer in waited_for else None
        late = []
        for peer, why in waited_for.items():
            waited = now - (peer.behind or now)
            if peer.leaving and waited > _LEFT_BEHIND:
                self._let_go(peer, why)
                return
            if waited > self._stall:
                late.append(peer)
        if late and now - self._reported > self._stall:
            self._reported = now
            self._report(late, ahead)

    def _report(self, late: list[Peer], ahead: int) -> None:
        """Tell whom others wait for, and ask them where they are."""
        for peer in late:
            peer.line.send(stacks=True)
        names = " and ".join(
            f"process {peer.number} ({peer.who}), which has started {peer.started}" for peer in late
        )
        self._tell(
            stalled=f"for more than {self._stall:g} s others wait in program {ahead} that all "
            f"processes run together for {names}"
        )


def parse_address(address: str) -> tuple[str, int]:
    """Host and port.

    >>> parse_address("10.0.0.1:1234"), parse_address("[::1]:80")
    (('10.0.0.1', 1234), ('::1', 80))
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not host:
        raise ValueError(
            f"distributed.initialize: coordinator_address={address!r} is not of the form "
            "'host:port', as '10.0.0.1:1234'."
        )
    return host.strip("[]"), int(port)


def listening(host: str) -> str:
    """The address of this machine to listen at, to be reached as `host`.

    Processes of one machine are nobody else's affair: they use the address inside of it.
    """
    if host in ("localhost", "::1") or host.startswith("127."):
        return host
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"


def whoami() -> str:
    """This process, for people."""
    return f"host {socket.gethostname()}, pid {os.getpid()}"


class Member:
    """This process among those that work together.

    Args:
      address: where the server listens.
      number: the number of this process.
      count: how many there are.
      timeout: seconds to wait until all have come.
      beat: seconds between signs of life.
      silence: seconds without a sign of life after which the server counts as dead.
      progress: how many programs this process has started that all processes run together.
      on_death: called, in a thread, with a text that names a process that is lost; by default this
        process tells it and ends.

    Raises:
      TimeoutError: not all came in time; the message names the absent.
      RuntimeError: the server refused: number or count contradict what others were told.
    """

    def __init__(
        self,
        address: tuple[str, int],
        number: int,
        count: int,
        *,
        timeout: float,
        beat: float,
        silence: float,
        progress: Callable[[], int] = int,
        on_death: Callable[[str], None] | None = None,
    ):
        self.number, self._count = number, count
        self._beat, self._silence = beat, silence
        self._progress = progress
        self._on_death = on_death or self._end_of_all
        self._changed = threading.Condition()
        self._told: dict[str, Any] = {}
        self._passed: dict[str, int] = {}
        self._over = False
        until = time.monotonic() + timeout
        self._line = Line(self._connect(address, until, timeout))
        self._line.send(join={"number": number, "count": count, "who": whoami()})
        threading.Thread(target=self._listen, name="namoo health", daemon=True).start()
        threading.Thread(target=self._talk, name="namoo heartbeat", daemon=True).start()
        with self._waiting(until) as arrived:
            there = arrived(lambda: "welcome" in self._told or "refused" in self._told)
        if "refused" in self._told:
            self.close()
            raise RuntimeError(
                f"distributed.initialize: {self._told['refused']}. Every process needs the same "
                "num_processes and a process_id of its own."
            )
        if not there:
            self.close()
            absent = ", ".join(map(str, self._told.get("absent", [])))
            raise TimeoutError(
                f"distributed.initialize: after {timeout:g} s process {absent} of {count} has not "
                f"come to the coordinator at {address[0]}:{address[1]}. Is it started, with the "
                "same coordinator_address, and can it reach it?"
            )
        self.welcome: dict[str, Any] = self._told["welcome"]

    @staticmethod
    def _connect(address: tuple[str, int], until: float, timeout: float) -> socket.socket:
        error: OSError | None = None
        while time.monotonic() < until:
            try:
                left = max(until - time.monotonic(), 0.01)
                return socket.create_connection(address, timeout=left)
            except OSError as failure:
                # Process 0 may be still about to start.
                error = failure
                time.sleep(min(0.1, left))
        raise TimeoutError(
            f"distributed.initialize: after {timeout:g} s process 0 does not listen at "
            f"{address[0]}:{address[1]} ({error}). Is it started, is the address that of its "
            "machine, and can it be reached from here?"
        )

    @contextlib.contextmanager
    def _waiting(self, until: float) -> Iterator[Callable[[Callable[[], bool]], bool]]:
        with self._changed:
            yield (
                lambda done: (
                    self._changed.wait_for(
                        lambda: done() or self._over, max(0.0, until - time.monotonic())
                    )
                    and done()
                )
            )

    def _listen(self) -> None:
        self._line.socket.settimeout(self._silence)
        while not self._over:
            began = time.monotonic()
            messages = self._line.receive()
            if self._over:
                return
            if messages is None:
                silent = time.monotonic() - began >= self._silence
                why = (
                    f"no sign of life for {self._silence:g} s: it is stopped or unreachable"
                    if silent
                    else "its connection ended: it crashed or was killed"
                )
                self._lost(f"process 0, the coordinator, is lost: {why}")
                return
            for what, value in messages:
                self._take(what, value)

    def _take(self, what: str, value: Any) -> None:
        if what == "dead":
            self._lost(value)
        elif what == "stalled":
            self._say(value)
        elif what == "stacks":
            self._say(f"others wait for this process, which is here:\n{where_now()}")
        elif what != "beat":
            with self._changed:
                if what == "passed":
                    self._passed[value] = self._passed.get(value, 0) + 1
                elif what == "missing":
                    self._told[f"missing {value[0]}"] = value[1]
                else:
                    self._told[what] = value
                self._changed.notify_all()

    def _talk(self) -> None:
        while not self._over:
            self._line.send(beat=self._progress())
            time.sleep(self._beat)

    def _lost(self, text: str) -> None:
        if "refused" in self._told:
            return
        with self._changed:
            self._told["dead"] = text
            self._changed.notify_all()
        if not self._over:
            self._on_death(text)

    def _say(self, text: str) -> None:
        # One write, so that nothing comes between.
        sys.stderr.write(f"namoo.distributed, process {self.number}: {text}\n")
        sys.stderr.flush()

    def _end_of_all(self, text: str) -> None:
        """Tell who is lost and where this process waited, and end: what waits cannot go on."""
        # The name first: jaxlib may be about to abort the process for the same reason.
        self._say(f"{text}. This process ends, too.")
        self._say(f"it was here:\n{where_now()}")
        sys.stdout.flush()
        if self.number == 0:
            # The others hear it from here.
            time.sleep(FAREWELL)
        os._exit(PEER_FAILED)

    def barrier(self, name: str, timeout: float) -> None:
        """Wait until all processes are here.

        Raises:
          TimeoutError: not all came in time; the message names those who did not.
        """
        with self._changed:
            before = self._passed.get(name, 0)
        self._line.send(barrier=name)
        with self._waiting(time.monotonic() + timeout) as arrived:
            if arrived(lambda: self._passed.get(name, 0) > before):
                return
            missing = self._told.get(f"missing {name}", [])
        raise TimeoutError(
            f"distributed.barrier({name!r}): after {timeout:g} s there did not arrive: "
            f"{', '.join(missing)}."
        )

    def failed(self, why: str) -> None:
        """Tell the others that this process ends with an error."""
        self._over = True
        self._line.send(failed=why)
        self._line.close()

    def leave(self, timeout: float) -> bool:
        """Wait until all processes are about to end; whether all are."""
        self._line.send(leave=True)
        with self._waiting(time.monotonic() + timeout) as arrived:
            return arrived(lambda: "done" in self._told)

    def await_verdict(self, timeout: float) -> None:
        """Give the others' fate some time to be known; then `on_death` has been called."""
        with self._waiting(time.monotonic() + timeout) as arrived:
            arrived(lambda: "dead" in self._told)

    def close(self) -> None:
        """End, as agreed."""
        self._over = True
        self._line.send(bye=True)
        self._line.close()
