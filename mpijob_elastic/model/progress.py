"""The line of progress: what the first rank of a worker writes after its steps (docs/progress.md).

    v1 PID TICKS STEP SAMPLES RANKS TIME STEP_MS OWN_MS FIRST SINCE KEPT REPEATED AGAIN OPEN TOTAL

Anybody in the worker may write anything there, so each number is bounded, and a text of any other
form counts as no line. Times are seconds since the epoch by the clock of the worker's node.
"""

import re
from collections.abc import Iterable

import msgspec

from mpijob_elastic.model.bounds import LATEST

# Where the line is, unless the variable in the worker's container names another file. /dev/shm is
# in memory, and is the pod's own.
VARIABLE, PATH = "MPIJOB_ELASTIC_PROGRESS", "/dev/shm/mpijob-elastic"  # noqa: S108 - of the pod
# Bytes of the file that are read.
LONGEST = 256
# Samples per second that are believed.
MOST_SAMPLES = 1e10

_COUNT, _SECONDS = r"(\d{1,15})", r"(\d{1,12}(?:\.\d{1,6})?)"
_LINE = re.compile(
    rf"(alive|ended) v1 \d{{1,10}} (\d{{1,20}}) {_COUNT} {_COUNT} {_COUNT} {_SECONDS} {_SECONDS} "
    rf"{_SECONDS} {_SECONDS} {_SECONDS} {_SECONDS} {_SECONDS} {_COUNT} {_SECONDS} {_COUNT}",
    re.ASCII,
)


class ProgressLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a rank has written last, and when we read it."""

    #: When the line was read, by our clock.
    asked_at: float
    #: The process that wrote the line still runs.
    alive: bool
    #: The start of the process, in ticks since its node booted.
    process: int
    #: Number of the last step.
    step: int
    #: Samples of all ranks in a step.
    samples: int
    #: Ranks of the ring.
    ranks: int
    #: Time of the last step's end.
    at: float
    #: Usual milliseconds of a step.
    step_ms: float
    #: The same without the time in which the rank waits for other ranks; 0 if unknown.
    own_ms: float
    #: Time at which the first step of the pod began.
    first: float
    #: Time at which the first step of this ring began.
    since: float
    #: Seconds of steps that are saved, since the pod started.
    kept: float
    #: Seconds of steps that were lost before they were saved, and are done again.
    repeated: float
    #: The number of these steps.
    again: int
    #: Seconds of steps that are not saved yet.
    open: float
    #: Steps of the whole training; 0 if unknown.
    total: int

    def may_be_of(self, bound_at: float, *, skew: float) -> bool:
        """Tell whether a pod that got its node then may have written the line.

        A file on a shared volume may be another's. skew: seconds by which clocks may differ.
        """
        return self.first >= bound_at - skew and self.at <= self.asked_at + skew

    @property
    def is_last(self) -> bool:
        """True if the last step of the whole training is done, as far as the line says."""
        return 0 < self.total <= self.step

    @property
    def done(self) -> float:
        """Seconds of steps that count, as far as is known now."""
        return self.kept + self.open

    @property
    def steps_per_second(self) -> float:
        """Steps per second; 0 if the line does not say."""
        return 1000.0 / self.step_ms if self.step_ms else 0.0

    @property
    def samples_per_second(self) -> float:
        """Samples per second of all ranks; 0 if the line does not say, or cannot be right."""
        rate = self.samples * self.steps_per_second
        return rate if rate <= MOST_SAMPLES else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the last step at this pace; None if the line does not say."""
        if not self.total or not self.step_ms:
            return None
        return max(0, self.total - self.step) * self.step_ms / 1000.0


def parse(text: str, *, asked_at: float) -> ProgressLine | None:
    """Return the line in the answer of a look (`act/worker_scripts`); None for any other text."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    line = ProgressLine(
        asked_at=asked_at,
        alive=found[1] == "alive",
        process=int(found[2]),
        step=int(found[3]),
        samples=int(found[4]),
        ranks=int(found[5]),
        at=float(found[6]),
        step_ms=float(found[7]),
        own_ms=float(found[8]),
        first=float(found[9]),
        since=float(found[10]),
        kept=float(found[11]),
        repeated=float(found[12]),
        again=int(found[13]),
        open=float(found[14]),
        total=int(found[15]),
    )
    return line if _is_possible(line) else None


def newest(lines: Iterable[ProgressLine]) -> ProgressLine | None:
    """Return the line with the last step; None without one.

    Containers may share the file, and only one of them shows that its process runs.
    """
    return max(lines, key=lambda line: (line.at, line.alive), default=None)


def _is_possible(line: ProgressLine) -> bool:
    """Tell whether the times of a line agree with one another."""
    return 0.0 < line.first <= line.since <= line.at <= LATEST
