"""Kills a training run at random moments and resumes it: `python kill_training.py 20`.

Every line that any of the runs prints, a loss or the parameters, must be one that the run which
nobody disturbed has printed: the same step, the same bits.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).with_name("resumable.py")


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, SCRIPT, folder], stdout=subprocess.PIPE, text=True)


def lines_of(run: subprocess.Popen[str]) -> set[str]:
    """What a run printed; a line that the kill cut in two has no end."""
    return {line for line in run.communicate()[0].splitlines(keepends=True) if line[-1] == "\n"}


def main(kills: int) -> None:
    choose = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = lines_of(start(folder / "whole"))
        done, runs, printed = 0, 0, set()
        while done < kills:
            # Once a run ends before it is killed, another begins.
            run = start(folder / f"killed-{runs}")
            assert run.stdout is not None
            first = run.stdout.readline()
            time.sleep(choose.uniform(0, 0.2))
            run.kill()
            printed |= lines_of(run) | ({first} if first.endswith("\n") else set())
            assert printed <= whole, printed - whole
            done += run.returncode == -9
            runs += run.returncode == 0
        last = start(folder / f"killed-{runs}")
        printed |= lines_of(last)
        assert last.returncode == 0 and printed == whole, printed ^ whole
    print(f"{done} kills of {runs + 1} runs, {len(whole)} lines: all the same")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
