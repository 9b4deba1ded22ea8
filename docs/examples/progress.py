"""Tell mpijob-elastic how far a training is: one line in memory after each step.

Copy this file beside your program. docs/progress.md explains the line. On each rank:

    progress = Progress(total=4000)  # once, after MPI_Init or hvd.init()
    progress.begin()  # each time a ring has formed: at the top of Horovod's elastic function
    progress.step(step, samples=batch * ranks, ranks=ranks, began=began, own=own)  # after a step
    progress.saved()  # right before a commit, or after a checkpoint is written

Only the first rank of each worker writes: others pass `writes=False`.
"""

import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from statistics import median

FILE = Path(os.environ.get("MPIJOB_ELASTIC_PROGRESS", "/dev/shm/mpijob-elastic"))
# The usual time of a step is the median of so many steps.
USUAL = 32


class Progress:
    """What a rank has done since its pod started; seconds. A restart in the same pod goes on."""

    def __init__(self, total: int = 0, *, writes: bool = True) -> None:
        """total: the steps of the whole training; 0 if unknown."""
        self.total, self.writes = total, writes
        # The process, by its id and its start in ticks: field 22 of proc_pid_stat(5).
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        self.process = f"{os.getpid()} {started}"
        self.since, self.times, self.own = 0.0, deque(maxlen=USUAL), deque(maxlen=USUAL)
        before = FILE.read_text().split() if FILE.exists() else []
        self.last, self.first, self.again = 0, 0.0, 0
        self.kept = self.repeated = self.open = 0.0
        if before[:1] == ["v1"]:
            self.last, self.first, self.again = int(before[3]), float(before[9]), int(before[13])
            self.kept, self.repeated, self.open = map(float, (*before[11:13], before[14]))

    def begin(self) -> None:
        """A ring has formed: the next step is its first."""
        self.since = 0.0

    def step(self, step: int, *, samples: int, ranks: int, began: float, own: float = 0.0) -> None:
        """A step is done; `began` is its time.time(), `own` the seconds without other ranks."""
        now = time.time()
        self.since = self.since or began
        self.first = self.first or began
        if step <= self.last:  # the steps since the last commit are done again
            self.again += self.last - step + 1
            self.repeated, self.open = self.repeated + self.open, 0.0
        self.last = step
        self.open += self._usual(now - began)
        self.own.append(own)
        self.line = (
            f"v1 {self.process} {step} {samples} {ranks} {now:.3f} "
            f"{1000 * median(self.times):.1f} {1000 * median(self.own):.1f} "
            f"{self.first:.3f} {self.since:.3f}"
        )
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
        if not self.writes or not self.since:
            return
        sums = f"{self.kept:.3f} {self.repeated:.3f} {self.again} {self.open:.3f} {self.total}"
        new = FILE.with_suffix(".new")
        with suppress(OSError):  # no training ends because nobody hears of it
            new.write_text(f"{self.line} {sums}\n")
            new.rename(FILE)
