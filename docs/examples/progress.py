"""Tell mpijob-elastic how far a training is: one line in memory after each step.

Copy this file beside your program. docs/progress.md explains the line. On each rank:

    progress = Progress(total=4000)  # once, after MPI_Init or hvd.init()
    progress.begin()  # each time a ring has formed: at the top of Horovod's elastic function
    progress.step(step, samples=batch * ranks, ranks=ranks, began=began, own=own)  # after a step
    progress.saved()  # right before a commit, or after a checkpoint is written

Only the first rank of each worker writes: others pass `writes=False`. No call raises an error or
waits for anybody, because no training may end over its progress.
"""

import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from statistics import median

FILE = Path(os.environ.get("MPIJOB_ELASTIC_PROGRESS") or "/dev/shm/mpijob-elastic")  # noqa: S108
# The largest number of a file that is believed.
LARGEST = 1e12
# The usual time of a step is the median of so many steps.
USUAL = 32
# Seconds between two writes, so that the shortest steps pay nothing.
PAUSE = 0.1


class Progress:
    """What a rank has done since its pod started; seconds. A restart in the same pod goes on."""

    def __init__(self, total: int = 0, *, writes: bool = True) -> None:
        """total: the steps of the whole training; 0 if unknown."""
        self.process = _this_process()
        self.total, self.writes = total, writes and bool(self.process)
        self.times: deque[float] = deque(maxlen=USUAL)
        self.own: deque[float] = deque(maxlen=USUAL)
        self.about = ""  # the last step; empty before the first of this ring
        self.since = 0.0
        self.paused_until = 0.0
        self.is_new = True
        (self.last, self.again), (self.first, self.kept, self.repeated, self.open) = _earlier()

    def begin(self) -> None:
        """A ring has formed: the next step is its first, and has another usual time."""
        self.since, self.about = 0.0, ""
        self.times.clear()
        self.own.clear()

    def step(self, step: int, *, samples: int, ranks: int, began: float, own: float = 0.0) -> None:
        """A step is done; `began` is its time.time(), `own` the seconds without other ranks."""
        if not self.writes:
            return
        now = time.time()
        # A rank that comes back later than the others does not do again itself what it has lost.
        comes_later = self.is_new and step > self.last + 1
        if step <= self.last:
            self.again += self.last - step + 1
        if step <= self.last or comes_later:  # the steps since the last save are done again
            self.repeated, self.open = self.repeated + self.open, 0.0
        self.last, self.is_new = step, False
        self.open += self._usual(max(0.0, now - began))
        self.own.append(max(0.0, own))
        # A clock may go back.
        self.first = self.first or began
        self.since = self.since or max(began, self.first)
        self.about = (
            f"{step} {samples} {ranks} {max(now, self.since):.3f} {1000 * median(self.times):.1f} "
            f"{1000 * median(self.own):.1f} {self.first:.3f} {self.since:.3f}"
        )
        if time.monotonic() >= self.paused_until:
            self._write()

    def saved(self) -> None:
        """All steps so far survive a failure."""
        self.kept, self.open = self.kept + self.open, 0.0
        self._write()

    def _usual(self, spent: float) -> float:
        """Return the seconds that count: what is above the usual is a stall, not training."""
        self.times.append(spent)
        usual = median(self.times)
        spread = median(abs(one - usual) for one in self.times)
        return usual if spent > usual + 3 * spread else spent

    def _write(self) -> None:
        if not self.about:
            return
        self.paused_until = time.monotonic() + PAUSE
        sums = f"{self.kept:.3f} {self.repeated:.3f} {self.again} {self.open:.3f} {self.total}"
        new = Path(f"{FILE}.{os.getpid()}")
        with suppress(OSError):
            new.write_text(f"v1 {self.process} {self.about} {sums}\n")
            new.rename(FILE)


def _this_process() -> str:
    """Return the process's id and its start in ticks; empty where nobody could look it up."""
    with suppress(OSError, IndexError):
        stat = Path("/proc/self/stat").read_text(errors="replace")
        return f"{os.getpid()} {stat.rpartition(')')[2].split()[19]}"  # field 22: proc_pid_stat(5)
    return ""


def _earlier() -> "tuple[tuple[int, int], tuple[float, float, float, float]]":
    """Return what an earlier process of the pod has left: LAST AGAIN, FIRST KEPT REPEATED OPEN."""
    nothing = (0, 0), (0.0, 0.0, 0.0, 0.0)
    words = []
    with suppress(OSError):
        if FILE.is_file():  # to open a pipe may take for ever
            with FILE.open(errors="replace") as file:
                words = file.read(256).split()
    if words[:1] != ["v1"] or len(words) != 16:
        return nothing
    try:
        counts = int(words[3]), int(words[13])
        first, kept, repeated, still = (float(words[place]) for place in (9, 11, 12, 14))
    except ValueError:
        return nothing
    sums = first, kept, repeated, still
    is_possible = all(0 <= one < LARGEST for one in (*counts, *sums))
    return (counts, sums) if is_possible and first <= time.time() else nothing
