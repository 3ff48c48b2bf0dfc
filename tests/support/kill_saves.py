"""Kill processes while they save, and check what remains: `python kill_saves.py 200`.

One process forks all others, so that namoo is imported once. A child saves over a good checkpoint
and is killed by SIGKILL: at the n-th line of the saving code, for many n, and then at random
moments of a loop. Each time, the old or the new checkpoint must load completely, and the next save
must work and leave nothing behind.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from namoo import checkpoints
from namoo.checkpoints import Checkpoints


def tree(version: int) -> dict:
    """Return a tree in which each part shows its version."""
    arrays = [np.full(200 + i, version, np.int32) for i in range(3)]
    return {"version": version, "arrays": arrays}


def version_of(loaded: dict) -> int:
    version = loaded["version"]
    assert all((array == version).all() for array in loaded["arrays"]), "a mixture"
    return version


def child(work) -> int:
    """Run work in a child process; return its pid."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def killed(pid: int) -> bool:
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def die_at(n: int):
    """Return a trace function that kills the process at the n-th line inside the package."""
    count = 0
    inside = os.path.dirname(checkpoints.__file__)

    def lines(frame, event, argument):
        nonlocal count
        if event == "line":
            count += 1
            if count == n:
                os.kill(os.getpid(), signal.SIGKILL)
        return lines

    return lambda frame, event, argument: (
        lines if frame.f_code.co_filename.startswith(inside) else None
    )


def at_lines(folder: Path, stride: int) -> int:
    """Kill at every stride-th line of a save; return the number of kills."""
    path = folder / "model"
    checkpoints.save(path, tree(0), max_file_bytes=1000)
    kills, version, n = 0, 0, 1
    while True:
        new = version + 1

        def work(new=new, n=n):
            sys.settrace(die_at(n))
            checkpoints.save(path, tree(new), max_file_bytes=1000)

        if not killed(child(work)):
            break
        kills, n = kills + 1, n + stride
        version = version_of(checkpoints.load(path))
        assert version in (new - 1, new), (version, new)
    checkpoints.save(path, tree(new), max_file_bytes=1000)
    assert len(os.listdir(path)) == 4, os.listdir(path)
    return kills


def at_random(folder: Path, times: int) -> int:
    """Kill a loop of rotating saves at random moments; return the last saved step."""
    run = Checkpoints(folder / "run", keep=2, max_file_bytes=1000)
    choose = random.Random(0)
    last = -1
    for _ in range(times):
        first = last + 1

        def work(first=first):
            for step in range(first, first + 10_000):
                Checkpoints(folder / "run", keep=2, max_file_bytes=1000).save(step, tree(step))

        pid = child(work)
        time.sleep(choose.uniform(0.001, 0.08))
        os.kill(pid, signal.SIGKILL)
        assert killed(pid)
        latest = run.latest
        if latest is not None:
            assert latest >= last and version_of(run.load()) == latest
            last = latest
    return last


def main(times: int, stride: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kills = at_lines(Path(folder), stride)
        last = at_random(Path(folder), times)
    print(f"{kills} kills at lines, {times} at random moments, {last + 1} checkpoints: none lost")


if __name__ == "__main__":
    main(*[int(a) for a in sys.argv[1:2]] or [200], *[int(a) for a in sys.argv[2:3]] or [1])
