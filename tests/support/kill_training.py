"""Kill training runs at random steps and resume them: `python kill_training.py 20`.

Every line that a run prints, a loss or the parameters, must be a line of the undisturbed run: the
same step, the same bits, from the same examples. A resumed run may have other workers than the one
that was killed.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import resumable_training

SCRIPT = Path(resumable_training.__file__)


def start(folder: Path, source: str, workers: str) -> subprocess.Popen[str]:
    command = [sys.executable, SCRIPT, folder, source, workers]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def lines_of(run: subprocess.Popen[str]) -> list[str]:
    """Return the remaining lines of a run, without one that the kill truncated."""
    return [line for line in run.communicate()[0].splitlines(keepends=True) if line[-1] == "\n"]


def killed(folder: Path, source: str, choose: random.Random) -> tuple[list[str], int]:
    """Kill a run after a random step; return what it printed and its exit code."""
    run = start(folder, source, choose.choice(list(resumable_training.WORKERS)))
    assert run.stdout is not None
    lines = [run.stdout.readline() for _ in range(choose.randint(1, resumable_training.STEPS // 2))]
    time.sleep(choose.uniform(0, 0.02))
    run.kill()
    # Workers that outlived the run would keep its output open, and this would hang.
    return [*filter(None, lines), *lines_of(run)], run.returncode


def main(kills: int, sources: list[str]) -> None:
    choose = random.Random(0)
    done = runs = count = 0
    with tempfile.TemporaryDirectory() as name:
        for i, source in enumerate(sources):
            whole = lines_of(start(Path(name) / source, source, "none"))
            assert len(whole) > resumable_training.STEPS
            printed: set[str] = set()
            while done < kills * (i + 1) // len(sources):
                # When a run ends before it is killed, start another one.
                lines, code = killed(Path(name) / f"killed-{runs}", source, choose)
                printed.update(lines)
                assert printed <= set(whole), printed - set(whole)
                done += code == -9
                runs += code == 0
            last = start(Path(name) / f"killed-{runs}", source, "threads")
            printed.update(lines_of(last))
            assert last.returncode == 0 and printed == set(whole), printed ^ set(whole)
            runs, count = runs + 1, count + len(whole)
    print(f"{done} kills of {runs} runs, {count} lines: all the same")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 20,
        sys.argv[2:] or list(resumable_training.SOURCES),
    )
