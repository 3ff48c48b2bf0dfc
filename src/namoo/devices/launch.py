"""`python -m namoo.launch -n 4 script.py args…`: run a program in several local processes.

The launcher sets environment variables with the coordinator's address, the number of each process
and the count, which `namoo.distributed.initialize()` reads. It merges their output line by line,
with the number of the process in front. The first process that fails stops the others, and its last
lines are repeated at the end. No process outlives the launcher.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, BinaryIO

from namoo._base.terminal import colors_wanted
from namoo.devices.distributed.clusters import Launched
from namoo.devices.distributed.health import PEER_FAILED
from namoo.devices.distributed.secret import VARIABLE, given, new_secret

LAST_LINES = 20
DEADLINE_CODE = 124
"""The exit code after the deadline, as that of `timeout`."""

_POLL = 0.05
_FOLLOWED = 2.0
_PR_SET_PDEATHSIG = 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m namoo.launch",
        description="Run a program in several processes of this machine.",
        epilog="On several machines: the same command on each, with --total, --first and "
        "--coordinator, an address on the machine of process 0.",
    )
    made.add_argument("-n", "--processes", type=_positive, required=True, help="how many here")
    made.add_argument("-m", "--module", action="store_true", help="run a module, as python -m does")
    made.add_argument("--total", type=_positive, help="how many on all machines (default: -n)")
    made.add_argument("--first", type=int, default=0, help="number of the first one here")
    made.add_argument("--coordinator", help="host:port that process 0 listens at")
    made.add_argument("--cpu-devices", type=_positive, help="simulated CPU devices of each process")
    made.add_argument("--deadline", type=float, help="seconds after which all are stopped")
    made.add_argument(
        "--grace", type=float, default=5.0, help="seconds from asking to stop to killing"
    )
    made.add_argument("script", help="the script, or with -m the module")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def free_address() -> str:
    """Return an address on this machine that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _dies_with(parent: int) -> Any:
    """Make the kernel kill this child when its parent dies, even if the parent is killed."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def arrange() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before; then no signal will come.
        if os.getppid() != parent:
            os._exit(1)

    return arrange


class Lines:
    """Splits the output of a process, which arrives in pieces of any size, into whole lines.

    Text that a carriage return would overwrite on a terminal is dropped.

    Example:
        >>> lines = Lines()
        >>> list(lines.feed(b"one\\ntw")), list(lines.feed(b"o\\n10%\\r20%")), list(lines.rest())
        ([b'one'], [b'two'], [b'20%'])
    """

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        *whole, self._pending = (self._pending + data).split(b"\n")
        yield from map(self._shown, whole)
        # A progress bar that never ends its line must not fill the memory.
        ended = self._pending.endswith(b"\r")
        self._pending = self._shown(self._pending) + b"\r" * ended

    def rest(self) -> Iterator[bytes]:
        """Return the last line, if it has no line end yet."""
        if self._pending:
            yield self._shown(self._pending)
        self._pending = b""

    @staticmethod
    def _shown(line: bytes) -> bytes:
        return line.rstrip(b"\r").rpartition(b"\r")[2]


class Process:
    """One of the processes, with its last lines of output."""

    def __init__(self, number: int, command: Sequence[str], environment: dict[str, str]):
        self.number = number
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        # A group of its own: Ctrl-C at the terminal is for the launcher, and whatever the process
        # starts is stopped together with it.
        self.popen = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
            preexec_fn=_dies_with(os.getpid()),
        )

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    @property
    def code(self) -> int:
        """The exit code as a shell reports it: 128 plus the signal if the process was killed."""
        code = self.popen.returncode
        return 128 - code if code < 0 else code

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        # They may have ended already.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, number)

    def end(self) -> str:
        """Describe how it ended."""
        code = self.popen.returncode
        if code >= 0:
            return f"failed with exit code {code}"
        return f"was killed by {signal.Signals(-code).name}"


class Launcher:
    """Starts processes, merges their output, and makes sure that they all end.

    Args:
        processes: the number of processes.
        command: the command that each runs.
        total: the number of processes on all machines.
        first: the number of the first process here.
        coordinator: the address that process 0 listens at.
        cpu_devices: the number of simulated CPU devices of each process.
        deadline: seconds after which all are stopped.
        grace: seconds from asking a process to stop to killing it.
        out: where lines of standard output go.
        err: where lines of standard error go, and the launcher's own.
    """

    def __init__(
        self,
        processes: int,
        command: Sequence[str],
        *,
        total: int | None = None,
        first: int = 0,
        coordinator: str | None = None,
        cpu_devices: int | None = None,
        deadline: float | None = None,
        grace: float = 5.0,
        out: BinaryIO | None = None,
        err: BinaryIO | None = None,
    ):
        self._count, self._command = processes, command
        self._total = processes if total is None else total
        self._first = first
        self._coordinator = coordinator or free_address()
        # Launchers on several machines cannot agree on a secret of their own.
        own = self._total == processes and not given(os.environ)
        self._secret = {VARIABLE: new_secret()} if own else {}
        self._cpu_devices = cpu_devices
        self._deadline, self._grace = deadline, grace
        self._out = (out or sys.stdout.buffer, out is None and colors_wanted(sys.stdout))
        self._err = (err or sys.stderr.buffer, err is None and colors_wanted(sys.stderr))
        self._selector = selectors.DefaultSelector()
        self._processes: list[Process] = []
        self._asked: int | None = None
        self._hurry = False

    def run(self) -> int:
        """Start all, wait for all, and return the exit code."""
        began = time.monotonic()
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            for place in range(self._count):
                self._start(place)
            return self._watch(began)
        finally:
            # However this ends, no process is left behind.
            for process in self._processes:
                process.signal(signal.SIGKILL)
                process.popen.wait()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # The second signal stops immediately.
        self._hurry = self._asked is not None
        self._asked = number

    def _environment(self, place: int) -> dict[str, str]:
        # Processes share the cores: each gets its share of the threads.
        share = str(max(1, (os.cpu_count() or 1) // self._count))
        made = {
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            "OMP_NUM_THREADS": share,
            "OPENBLAS_NUM_THREADS": share,
            **os.environ,
            **Launched.variables(self._coordinator, self._total, self._first + place, place),
        }
        made |= self._secret
        if self._cpu_devices is not None:
            made["NAMOO_NUM_CPU_DEVICES"] = str(self._cpu_devices)
        return made

    def _start(self, place: int) -> None:
        process = Process(self._first + place, self._command, self._environment(place))
        self._processes.append(process)
        for pipe, target in ((process.popen.stdout, self._out), (process.popen.stderr, self._err)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, (process, Lines(), target))

    def _watch(self, began: float) -> int:
        """Forward output until all have ended; stop the others when one fails."""
        first_seen = 0.0
        while any(process.running for process in self._processes):
            self._forward(_POLL)
            if failed := self._failed():
                now = time.monotonic()
                first_seen = first_seen or now
                # The process that caused the others to fail may not have ended yet.
                if failed[0].code != PEER_FAILED or now - first_seen > _FOLLOWED:
                    self._stop(signal.SIGTERM)
                    return self._tell_failure(failed, first_seen - began)
            if self._asked is not None:
                name = signal.Signals(self._asked).name
                self._say(f"{name}: stopping {self._count} processes.")
                self._stop(signal.SIGTERM)
                return 128 + self._asked
            if self._deadline is not None and time.monotonic() - began > self._deadline:
                return self._tell_deadline()
        self._drain()
        failed = self._failed()
        return self._tell_failure(failed, time.monotonic() - began) if failed else 0

    def _failed(self) -> list[Process]:
        """Return the processes that failed; those that failed because of another come last."""
        found = [p for p in self._processes if not p.running and p.popen.returncode]
        return sorted(found, key=lambda p: p.popen.returncode == PEER_FAILED)

    def _stop(self, number: int) -> None:
        """Ask all processes to end, and kill the remaining ones after the grace time."""
        for process in self._processes:
            if process.running:
                process.signal(number)
        until = time.monotonic() + self._grace
        self._hurry = False
        while any(process.running for process in self._processes):
            if time.monotonic() > until or self._hurry:
                break
            self._forward(_POLL)
        for process in self._processes:
            if process.running:
                process.signal(signal.SIGKILL)
                process.popen.wait()
        self._drain()

    def _forward(self, timeout: float) -> bool:
        """Forward new lines; return whether there were any."""
        events = self._selector.select(timeout) if self._selector.get_map() else []
        if not events and not self._selector.get_map():
            time.sleep(timeout)
        for key, _ in events:
            process, lines, target = key.data
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
            for line in lines.feed(data) if data else lines.rest():
                self._write(process, line, target)
        return bool(events)

    def _drain(self) -> None:
        """Forward what is left in the pipes, and lines without an end."""
        # A grandchild may hold a pipe open forever: read only what is available now.
        while self._forward(0):
            pass
        for key in list(self._selector.get_map().values()):
            process, lines, target = key.data
            for line in lines.rest():
                self._write(process, line, target)

    def _write(self, process: Process, line: bytes, target: tuple[BinaryIO, bool]) -> None:
        process.last.append(line.decode(errors="replace"))
        stream, colored = target
        width = len(str(self._total - 1))
        prefix = f"[{process.number:>{width}}]".encode()
        if colored:
            prefix = b"\x1b[%dm%s\x1b[0m" % (31 + process.number % 6, prefix)
        # One write per line, so that lines are not interleaved.
        stream.write(prefix + b" " + line + b"\n")
        stream.flush()

    def _say(self, text: str) -> None:
        stream = self._err[0]
        stream.write(f"namoo.launch: {text}\n".encode())
        stream.flush()

    def _tell_failure(self, failed: list[Process], seconds: float) -> int:
        first = failed[0]
        others = "" if self._total == 1 else " The others were stopped."
        more = "".join(
            f" Process {each.number} {each.end()}, too."
            for each in failed[1:]
            if each.code != PEER_FAILED
        )
        self._say(f"process {first.number} {first.end()} after {seconds:.1f} s.{more}{others}")
        if first.last:
            self._say(f"the last lines of process {first.number}:")
            for line in first.last:
                self._say(f"  {line}")
        return first.code

    def _tell_deadline(self) -> int:
        late = [process for process in self._processes if process.running]
        names = ", ".join(str(process.number) for process in late)
        self._say(
            f"the deadline of {self._deadline:g} s is over; still running: process {names}. "
            "The stack of each:"
        )
        # Python's fault handler writes the stacks of all threads on this signal.
        self._stop(signal.SIGABRT)
        return DEADLINE_CODE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = parser().parse_args(arguments)
    if os.name != "posix":
        raise SystemExit("namoo.launch needs a POSIX system: Linux or macOS.")
    command = [sys.executable, *(["-m"] if options.module else []), options.script]
    return Launcher(
        options.processes,
        [*command, *options.arguments],
        total=options.total,
        first=options.first,
        coordinator=options.coordinator,
        cpu_devices=options.cpu_devices,
        deadline=options.deadline,
        grace=options.grace,
    ).run()
