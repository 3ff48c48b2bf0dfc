"""Messages on a connection whose two ends have proved that they know the same secret.

The coordinator speaks first:

    coordinator → member    MAGIC, challenge             48 bytes
    member → coordinator    MAGIC, challenge, proof      80 bytes
    coordinator → member    proof, or zeros: denied      32 bytes

A challenge is random.  A proof, and the key of each direction, is an HMAC-SHA256 under the secret
of a word for its purpose and both challenges, so nothing that was recorded on one connection is
valid on another, or in the other direction.  From then on a message is

    length (4 bytes), tag (32 bytes), a JSON object with one key

where the tag is the HMAC, under the key of its direction, of the message's number and text: it can
be neither changed, repeated, left out nor made up.  Nothing is encrypted.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any

MAGIC = b"namoo.health/2\r\n"
LONGEST = 1 << 22
"""The largest number of bytes of a message."""

_CHALLENGE = _TAG = 32
_DENIED = bytes(_TAG)

Reader = Generator[int, bytes, None]
"""A generator that yields the number of bytes it needs next, and receives them."""


class ProtocolError(Exception):
    """The other end does not follow the protocol."""


class WrongSecret(ProtocolError):
    """The other end knows another secret, or none."""


def _hmac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), "sha256")


class Channel:
    """One end of a connection.

    Args:
        connection: the socket.
        secret: the secret that both ends know.
        handshake: `Channel.as_coordinator` or `Channel.as_member`.
    """

    def __init__(
        self,
        connection: socket.socket,
        secret: bytes,
        handshake: Callable[[Channel, bytes], Reader],
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.trusted = False
        """Whether the other end has proved that it knows the secret."""
        self._pending = b""
        self._arrived: list[tuple[str, Any]] = []
        self._lock = threading.Lock()
        self._key = b""
        self._sent = 0
        self._reader = handshake(self, secret)
        self._wanted = next(self._reader)

    def as_coordinator(self, secret: bytes) -> Reader:
        """Challenge the other end, and answer its challenge."""
        mine = secrets.token_bytes(_CHALLENGE)
        self.socket.sendall(MAGIC + mine)
        # The first bytes alone are enough to recognise another protocol, even if it sends little.
        if (yield len(MAGIC)) != MAGIC:
            raise ProtocolError("it uses another protocol")
        theirs = yield _CHALLENGE
        proof = yield _TAG
        if not hmac.compare_digest(proof, _hmac(secret, b"member", mine, theirs)):
            self.socket.sendall(_DENIED)
            raise WrongSecret("it does not know the secret of this job")
        self.socket.sendall(_hmac(secret, b"coordinator", mine, theirs))
        self._key = _hmac(secret, b"to member", mine, theirs)
        yield from self._messages(_hmac(secret, b"to coordinator", mine, theirs))

    def as_member(self, secret: bytes) -> Reader:
        """Answer the coordinator's challenge, and challenge it."""
        if (yield len(MAGIC)) != MAGIC:
            raise ProtocolError("it uses another protocol")
        theirs = yield _CHALLENGE
        mine = secrets.token_bytes(_CHALLENGE)
        self.socket.sendall(MAGIC + mine + _hmac(secret, b"member", theirs, mine))
        proof = yield _TAG
        if not hmac.compare_digest(proof, _hmac(secret, b"coordinator", theirs, mine)):
            raise WrongSecret("it denied the secret" if proof == _DENIED else "it gave no proof")
        self._key = _hmac(secret, b"to coordinator", theirs, mine)
        yield from self._messages(_hmac(secret, b"to member", theirs, mine))

    def _messages(self, key: bytes) -> Reader:
        self.trusted = True
        received = 0
        while True:
            length = int.from_bytes((yield 4), "big")
            if length > LONGEST:
                raise ProtocolError(f"its message of {length} bytes is too long")
            tag = yield _TAG
            text = yield length
            if not hmac.compare_digest(tag, _hmac(key, received.to_bytes(8, "big"), text)):
                raise ProtocolError("its message was not made with the key of this connection")
            received += 1
            self._arrived.append(_decoded(text))

    def send(self, **message: Any) -> None:
        """Send a message; `receive` reports whether the other end is still connected."""
        text = json.dumps(message).encode()
        with self._lock:
            tag = _hmac(self._key, self._sent.to_bytes(8, "big"), text)
            self._sent += 1
            try:
                self.socket.sendall(len(text).to_bytes(4, "big") + tag + text)
            except OSError:
                # Part of the message may have been sent: nothing after it could be understood.
                self._shut()

    def receive(self) -> list[tuple[str, Any]] | None:
        """Return the messages that arrived; None if the connection has ended.

        Raises:
            ProtocolError: the data is not a message of this connection.
        """
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self._pending += data
        while len(self._pending) >= self._wanted:
            piece, self._pending = self._pending[: self._wanted], self._pending[self._wanted :]
            try:
                self._wanted = self._reader.send(piece)
            except OSError:
                return None
        arrived, self._arrived = self._arrived, []
        return arrived

    def _shut(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection."""
        self._shut()
        self.socket.close()


def _decoded(text: bytes) -> tuple[str, Any]:
    try:
        ((what, value),) = json.loads(text).items()
    except (ValueError, AttributeError, RecursionError):
        raise ProtocolError("its message is not a JSON object with one key") from None
    return what, value


def connect(connection: socket.socket, secret: bytes) -> Channel:
    """Return the member's end of a connection, once both ends have proved themselves.

    Raises:
        ConnectionError: the connection ended.
        ProtocolError: the other end is not a coordinator, or that of another job.
    """
    channel = Channel(connection, secret, Channel.as_member)
    try:
        while not channel.trusted:
            if channel.receive() is None:
                raise ConnectionError("the connection ended")
    except BaseException:
        channel.close()
        raise
    return channel
