"""Monitors that all processes of a job are present, alive, and making progress.

Process 0 runs a `Server`. Every process, including process 0, is a `Member` with one connection to
it, on which it sends something at least once per heartbeat. A process that is killed is noticed at
once, because its connection ends; one that is stopped, or whose machine is gone, after the
heartbeat timeout; one that falls behind the others after the stall timeout. In each case the
process is named. jaxlib's own service reports less, and aborts the process.

`channel` defines the format of messages and the authentication. These are the messages:

    member → server    join, beat, barrier, leave, bye, failed
    server → member    absent, welcome, refused, beat, missing, passed, stalled, stacks, dead, done
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import os
import selectors
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from namoo._base.source_context import is_hidden
from namoo.devices.distributed.channel import Channel, ProtocolError, WrongSecret, connect
from namoo.devices.distributed.secret import FILE_VARIABLE, VARIABLE

PEER_FAILED = 70
"""The exit code of a process that ends because another one failed."""

FAREWELL = 0.5
"""Seconds that process 0 keeps running to tell the others why it ends."""

_LEFT_BEHIND = 5.0
"""Seconds that processes may wait for one that has already ended."""

_STRANGER_SECONDS = 10.0
"""Seconds that a connection may take to authenticate and join."""

_STRANGERS = 64
"""The largest number of unauthenticated connections, open at a time and new per heartbeat."""

_NAMED = 16
"""The largest number of members that are named when they miss a barrier."""

_LOG_SECONDS = 1.0
"""Seconds between two lines of the log about connections that were closed."""

_log = logging.getLogger("namoo.distributed")


def where_now() -> str:
    """Return the stack of the main thread, down to the current line of the user's program."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=True)
    dull = ("<frozen importlib", threading.__file__, importlib.__file__)
    shown = [
        each
        for each in stack
        if not is_hidden(each.filename) and not each.filename.startswith(dull)
    ]
    return "".join(traceback.format_list(shown[::-1])).rstrip()


@dataclass(eq=False)
class Peer:
    """The server's state of a connection, which is a stranger's until it has joined."""

    channel: Channel
    address: str
    number: int | None = None
    who: str = ""
    came: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    started: int = 0
    behind: float | None = None
    """When others first started more programs than this member."""
    leaving: bool = False
    gone: bool = False


class Server(threading.Thread):
    """Tracks all members, and notifies them when all have joined or one is lost.

    A connection is a stranger's until it has authenticated and joined. An error of a stranger
    closes only its own connection. Strangers are limited in number, time and rate, so they can
    neither stop the server nor keep it busy.

    Args:
        address: host and port to listen at.
        count: the number of members.
        secret: the secret that members must know.
        beat: seconds between heartbeats.
        silence: seconds without a heartbeat after which a member counts as dead.
        stall: seconds after which a member that falls behind is named.
    """

    def __init__(
        self,
        address: tuple[str, int],
        count: int,
        secret: bytes,
        *,
        beat: float,
        silence: float,
        stall: float,
    ):
        super().__init__(name="namoo health server", daemon=True)
        self._socket = socket.create_server(
            address,
            family=_family(address[0]),
            backlog=count + _STRANGERS,
            # `::` means all addresses, including those of IPv4.
            dualstack_ipv6=address[0] == "::",
        )
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self._count, self._secret = count, secret
        self._beat, self._silence, self._stall = beat, silence, stall
        self._peers: dict[int, Peer] = {}
        self._strangers: dict[Peer, None] = {}
        self._arrivals = self._unlogged = 0
        self._logged = -_LOG_SECONDS
        self._selector = selectors.DefaultSelector()
        self._barriers: dict[str, set[int]] = {}
        self._welcome: dict[str, Any] | None = None
        self._greeted = self._over = False
        self.condemned = threading.Event()
        """Set when the members have been notified that one is lost."""
        self._reported = time.monotonic()
        self._handlers: dict[str, tuple[type, Callable[[Peer, Any], None]]] = {
            "beat": (int, self._on_beat),
            "barrier": (str, self._on_barrier),
            "leave": (bool, self._on_leave),
            "bye": (bool, self._on_bye),
            "failed": (str, self._on_failed),
        }

    def welcome(self, **message: Any) -> None:
        """Set the message that members get when all have joined."""
        self._welcome = message

    def run(self) -> None:
        last = 0.0
        self._selector.register(self._socket, selectors.EVENT_READ, self._accept)
        while not self._over:
            for key, _ in self._selector.select(self._beat / 4):
                key.data()
            now = time.monotonic()
            if now - last >= self._beat:
                last = now
                self._tick(now)
                self._admit(now)
        self._socket.close()
        for key in self._selector.get_map().values():
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def stop(self) -> None:
        """Stop without notifying the members."""
        self._over = True

    def _accept(self) -> None:
        self._arrivals += 1
        try:
            connection, address = self._socket.accept()
        except OSError as error:
            # The connection has ended already, or this process has no file descriptor left.
            self._warn(f"a connection could not be accepted: {error}")
            self._arrivals += self._limit
        else:
            self._greet(connection, f"{address[0]}:{address[1]}")
        if self._arrivals >= self._limit:
            # The others wait until the next heartbeat.
            self._selector.unregister(self._socket)

    @property
    def _limit(self) -> int:
        return self._count + _STRANGERS

    def _greet(self, connection: socket.socket, address: str) -> None:
        # A client that does not read must not block the server.
        connection.settimeout(self._beat)
        try:
            peer = Peer(Channel(connection, self._secret, Channel.as_coordinator), address)
        except OSError:
            connection.close()
            return
        self._strangers[peer] = None
        self._selector.register(connection, selectors.EVENT_READ, partial(self._hear, peer))
        if len(self._strangers) > self._limit:
            self._reject(next(iter(self._strangers)), "there are too many that have not joined")

    def _admit(self, now: float) -> None:
        """Accept connections again; close those that have not joined in time."""
        if self._arrivals >= self._limit:
            self._selector.register(self._socket, selectors.EVENT_READ, self._accept)
        self._arrivals = 0
        for peer in list(self._strangers):
            if now - peer.came > _STRANGER_SECONDS:
                self._reject(peer, f"it did not join within {_STRANGER_SECONDS:g} s")

    def _reject(self, peer: Peer, why: str) -> None:
        """Close the connection of a stranger."""
        self._forget(peer)
        self._warn(f"closed a connection from {peer.address}: {why}")

    def _warn(self, text: str) -> None:
        """Log at a limited rate."""
        now = time.monotonic()
        if now - self._logged < _LOG_SECONDS:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more like this were not logged)" if self._unlogged else ""
        self._logged, self._unlogged = now, 0
        _log.warning("%s%s", text, more)

    def _tell(self, **message: Any) -> None:
        # Process 0 comes last: if the message makes it end, the others have got it already.
        for number in sorted(self._peers, reverse=True):
            self._peers[number].channel.send(**message)

    def _forget(self, peer: Peer) -> None:
        """End a connection."""
        self._selector.unregister(peer.channel.socket)
        peer.channel.close()
        self._strangers.pop(peer, None)
        peer.gone = True

    def _hear(self, peer: Peer) -> None:
        if peer.gone:
            # It was closed after the selector had reported it.
            return
        try:
            messages = peer.channel.receive()
            if messages is None:
                self._lose(peer, "its connection ended: it crashed or was killed")
                return
            peer.heard = time.monotonic()
            for what, value in messages:
                if not peer.gone:
                    self._take(peer, what, value)
        except ProtocolError as error:
            self._lose(peer, str(error))

    def _lose(self, peer: Peer, why: str) -> None:
        if peer in self._strangers:
            self._reject(peer, why)
            return
        self._forget(peer)
        if peer.number is not None and self._peers.pop(peer.number, None):
            self._condemn(peer, why)

    def _take(self, peer: Peer, what: str, value: Any) -> None:
        if peer.number is None:
            if what != "join":
                raise ProtocolError(f"it sent {what[:40]!r} before it joined")
            self._join(peer, value)
            return
        kind, handler = self._handlers.get(what, (None, None))
        if handler is None or type(value) is not kind:
            raise ProtocolError(f"its message {what[:40]!r} is not understood")
        handler(peer, value)

    def _join(self, peer: Peer, value: Any) -> None:
        match value:
            case {"number": int(number), "count": int(count), "who": str(who)}:
                refused = self._objection(number, count)
            case _:
                raise ProtocolError("its message 'join' is not understood")
        if refused:
            peer.channel.send(refused=refused)
            self._forget(peer)
            return
        peer.number, peer.who = number, who
        del self._strangers[peer]
        self._peers[number] = peer

    def _objection(self, number: int, count: int) -> str | None:
        """Return why a process may not join, or None."""
        if count != self._count:
            return f"process {number} expects {count} processes, process 0 expects {self._count}"
        if number in self._peers:
            return f"{self._peers[number].who} is process {number} already"
        return None if 0 <= number < count else f"there is no process {number} among {count}"

    def _on_beat(self, peer: Peer, started: int) -> None:
        if started != peer.started:
            peer.started, peer.behind = started, None

    def _on_barrier(self, peer: Peer, name: str) -> None:
        arrived = self._barriers.setdefault(name, set())
        assert peer.number is not None
        arrived.add(peer.number)
        if len(arrived) == self._count:
            del self._barriers[name]
            self._tell(passed=name)
        else:
            peer.channel.send(missing=[name, self._missing(arrived)])

    def _missing(self, arrived: set[int]) -> list[str]:
        """Describe the members that did not reach a barrier; a few are named."""
        missing = [i for i in range(self._count) if i not in arrived]
        more = len(missing) - _NAMED
        return [*map(self._named, missing[:_NAMED]), *([f"{more} more"] if more > 0 else [])]

    def _on_leave(self, peer: Peer, value: Any) -> None:
        peer.leaving = True
        if len(self._peers) == self._count and all(p.leaving for p in self._peers.values()):
            self._tell(done=True)

    def _on_bye(self, peer: Peer, value: Any) -> None:
        assert peer.number is not None
        self._peers.pop(peer.number, None)
        self._forget(peer)
        self._over = not self._peers

    def _on_failed(self, peer: Peer, why: str) -> None:
        assert peer.number is not None
        if self._peers.pop(peer.number, None):
            self._condemn(peer, f"it raised {why}")

    def _named(self, number: int) -> str:
        known = self._peers.get(number)
        return f"process {number} ({known.who})" if known else f"process {number}"

    def _condemn(self, peer: Peer, why: str) -> None:
        """Tell all members that one is lost."""
        self._tell(dead=f"process {peer.number} ({peer.who}) is lost: {why}")
        self.condemned.set()

    def _let_go(self, peer: Peer, why: str) -> None:
        """Report that a member has ended before the others; the member itself may go."""
        assert peer.number is not None
        del self._peers[peer.number]
        peer.channel.send(done=True)
        self._condemn(peer, why)

    def _tick(self, now: float) -> None:
        """Send a heartbeat, and check for members that send none."""
        if not self._greeted:
            absent = [i for i in range(self._count) if i not in self._peers]
            if absent or self._welcome is None:
                self._tell(absent=absent)
                return
            self._greeted = True
            self._tell(welcome=self._welcome)
        self._tell(beat=0)
        for name, arrived in self._barriers.items():
            self._tell(missing=[name, self._missing(arrived)])
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
        """Report which members the others wait for, and ask them for their stacks."""
        for peer in late:
            peer.channel.send(stacks=True)
        names = " and ".join(
            f"process {peer.number} ({peer.who}), which has started {peer.started}" for peer in late
        )
        self._tell(
            stalled=f"for more than {self._stall:g} s others wait in program {ahead} that all "
            f"processes run together for {names}"
        )


def parse_address(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    Example:
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
    """Return the address of this machine to listen at, so that others reach it as `host`.

    Raises:
        RuntimeError: `host` is not an address of this machine.
    """
    if host in ("localhost", "::1") or host.startswith("127."):
        return host
    found: list[str] = []
    with contextlib.suppress(OSError):
        known = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        found = [str(info[4][0]) for info in known]
    outside = [text for text in found if not ipaddress.ip_address(text).is_loopback]
    if found and not outside:
        # Some systems resolve their own name to 127.0.1.1; other machines know the real address.
        return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    for text in outside:
        with contextlib.suppress(OSError), socket.create_server((text, 0), family=_family(text)):
            return text
    raise RuntimeError(
        f"distributed.initialize: process 0 cannot listen at {host}, which is not an address of "
        "its machine. Where others reach the machine by an address that it does not have itself, "
        "give coordinator_bind_address='10.0.0.1:1234', with one that it has."
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def whoami() -> str:
    """Return a description of this process for messages."""
    return f"host {socket.gethostname()}, pid {os.getpid()}"


class Member:
    """This process as a member of the job.

    Args:
        address: where the server listens.
        number: the number of this process.
        count: the number of processes.
        secret: the secret that both ends must know.
        timeout: seconds to wait until all have joined.
        beat: seconds between heartbeats.
        silence: seconds without a heartbeat after which the server counts as dead.
        progress: returns the number of programs of all processes that this process has started.
        on_death: called in a thread with a text that names a lost process; by default this process
            prints it and ends.

    Raises:
        TimeoutError: not all joined in time; the message names the missing ones.
        RuntimeError: the server refused: number, count or secret contradict those of the others.
    """

    def __init__(
        self,
        address: tuple[str, int],
        number: int,
        count: int,
        secret: bytes,
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
        self._handlers: dict[str, Callable[[Any], None]] = {
            "beat": lambda value: None,
            "dead": self._lost,
            "stalled": self._say,
            "stacks": self._show_where,
            "passed": self._on_passed,
            "missing": lambda value: self._learn(f"missing {value[0]}", value[1]),
        }
        for what in ("absent", "welcome", "refused", "done"):
            self._handlers[what] = partial(self._learn, what)
        self._channel = self._connect(address, secret, until, timeout)
        self._channel.send(join={"number": number, "count": count, "who": whoami()})
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
                f"reached the coordinator at {address[0]}:{address[1]}. Was it started with the "
                "same coordinator_address, and can it reach it?"
            )
        self.welcome: dict[str, Any] = self._told["welcome"]

    @staticmethod
    def _connect(address: tuple[str, int], secret: bytes, until: float, timeout: float) -> Channel:
        """Connect to the server, which may not have started yet."""
        name = f"{address[0]}:{address[1]}"
        error: OSError | None = None
        while time.monotonic() < until:
            left = max(until - time.monotonic(), 0.01)
            try:
                connection = socket.create_connection(address, timeout=left)
                connection.settimeout(min(left, _STRANGER_SECONDS))
                if connection.getsockname() == connection.getpeername():
                    # A port that is not in use may be assigned to this very connection, which then
                    # meets itself.
                    connection.close()
                    continue
                return connect(connection, secret)
            except OSError as failure:
                error = failure
                time.sleep(min(0.1, left))
            except WrongSecret as failure:
                raise RuntimeError(
                    f"distributed.initialize: process 0 at {name} has a different secret than this "
                    f"process, or belongs to another job: {failure}. Set {VARIABLE} to the same "
                    f"text in all processes, or {FILE_VARIABLE} to the path of a file with it."
                ) from None
            except ProtocolError as failure:
                raise RuntimeError(
                    f"distributed.initialize: what listens at {name} is not process 0 of this "
                    f"job: {failure}. Is coordinator_address right?"
                ) from None
        raise TimeoutError(
            f"distributed.initialize: after {timeout:g} s process 0 is not listening at "
            f"{name} ({error}). Was it started, is the address that of its "
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
        """Handle messages until this process leaves or the server is lost."""
        self._channel.socket.settimeout(self._silence)
        why = None
        while not self._over and why is None:
            why = self._hear()
        if not self._over:
            self._lost(f"process 0, the coordinator, is lost: {why}")

    def _hear(self) -> str | None:
        """Handle the next messages; return the reason if the server is lost."""
        began = time.monotonic()
        try:
            messages = self._channel.receive()
            for what, value in messages or ():
                self._take(what, value)
        except ProtocolError as error:
            return str(error)
        if messages is not None:
            return None
        if time.monotonic() - began >= self._silence:
            return f"no sign of life for {self._silence:g} s: it is stopped or unreachable"
        return "its connection ended: it crashed or was killed"

    def _take(self, what: str, value: Any) -> None:
        handler = self._handlers.get(what)
        if handler is None:
            raise ProtocolError(f"its message {what[:40]!r} is not understood")
        handler(value)

    def _learn(self, what: str, value: Any) -> None:
        with self._changed:
            self._told[what] = value
            self._changed.notify_all()

    def _on_passed(self, name: str) -> None:
        with self._changed:
            self._passed[name] = self._passed.get(name, 0) + 1
            self._changed.notify_all()

    def _show_where(self, value: Any) -> None:
        self._say(f"others wait for this process, which is here:\n{where_now()}")

    def _talk(self) -> None:
        while not self._over:
            self._channel.send(beat=self._progress())
            time.sleep(self._beat)

    def _lost(self, text: str) -> None:
        if "refused" in self._told:
            return
        self._learn("dead", text)
        if not self._over:
            self._on_death(text)

    def _say(self, text: str) -> None:
        # One write, so that output is not interleaved.
        sys.stderr.write(f"namoo.distributed, process {self.number}: {text}\n")
        sys.stderr.flush()

    def _end_of_all(self, text: str) -> None:
        """Print which process is lost and the stack of this one, and end: it cannot continue."""
        # The name comes first: jaxlib may abort this process at any moment for the same reason.
        self._say(f"{text}. This process ends, too.")
        self._say(f"it was here:\n{where_now()}")
        sys.stdout.flush()
        if self.number == 0:
            # The others are notified by this process.
            time.sleep(FAREWELL)
        os._exit(PEER_FAILED)

    def barrier(self, name: str, timeout: float) -> None:
        """Wait until all processes have reached this call.

        Raises:
            TimeoutError: not all arrived in time; the message names the missing ones.
        """
        with self._changed:
            before = self._passed.get(name, 0)
        self._channel.send(barrier=name)
        with self._waiting(time.monotonic() + timeout) as arrived:
            if arrived(lambda: self._passed.get(name, 0) > before):
                return
            missing = self._told.get(f"missing {name}", [])
        raise TimeoutError(
            f"distributed.barrier({name!r}): after {timeout:g} s these did not arrive: "
            f"{', '.join(missing)}."
        )

    def failed(self, why: str) -> None:
        """Tell the others that this process ends with an error."""
        self._over = True
        self._channel.send(failed=why)
        self._channel.close()

    def leave(self, timeout: float) -> bool:
        """Wait until all processes are about to end; return whether all are."""
        self._channel.send(leave=True)
        with self._waiting(time.monotonic() + timeout) as arrived:
            return arrived(lambda: "done" in self._told)

    def await_verdict(self, timeout: float) -> None:
        """Wait for a report about the others; if one comes, `on_death` has been called."""
        with self._waiting(time.monotonic() + timeout) as arrived:
            arrived(lambda: "dead" in self._told)

    def close(self) -> None:
        """Close the connection after `leave`."""
        self._over = True
        self._channel.send(bye=True)
        self._channel.close()
