"""A coordinator and its members as threads of this process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from namoo.devices.distributed.health import Member, Server

SECRET = b"known to the members of these groups"


class Group:
    """A server and its members, with the messages that they received."""

    def __init__(self, count: int, **times):
        times = {"beat": 0.05, "silence": 60.0, "stall": 60.0, **times}
        self.server = Server(("127.0.0.1", 0), count, SECRET, **times)
        self.server.welcome(word="hello")
        self.server.start()
        self.count, self.times = count, times
        self.members: dict[int, Member] = {}
        self.deaths: dict[int, str] = {}

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.port

    def join(
        self, number: int, count: int | None = None, timeout=60.0, progress=int, secret=SECRET
    ) -> Member:
        member = Member(
            self.address,
            number,
            count or self.count,
            secret,
            timeout=timeout,
            beat=0.05,
            silence=self.times["silence"],
            progress=progress,
            on_death=lambda text: self.deaths.__setitem__(number, text),
        )
        self.members[number] = member
        return member

    def join_all(self, numbers, **options) -> None:
        together(lambda n: self.join(n, **options), numbers)

    def until(self, condition) -> None:
        for _ in range(3000):
            if condition():
                return
            time.sleep(0.02)
        raise AssertionError(self.deaths)


def together(call, numbers) -> dict:
    """Return the results, or errors, of simultaneous calls in threads."""
    found = {}

    def run(number):
        try:
            found[number] = call(number)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@contextmanager
def groups() -> Iterator:
    """Make groups; all are closed at the end."""
    made: list[Group] = []

    def make(count: int, **times) -> Group:
        made.append(Group(count, **times))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            for member in each.members.values():
                member.close()
            each.server.stop()
            each.server.join()
