"""Ranks in the launcher's log: the worker behind Horovod's `[N]`, and the missing ranks. Pure.

`[N]` is the rank with which a process was started. The process keeps this number when ranks are
dealt again, and a newcomer may be started with the same number. So two workers may print the same
number at a time.

Rank 0 prints, while a stall lasts once in HOROVOD_STALL_CHECK_TIME_SECONDS (60), `Missing ranks:`
and a line for each ([horovod] horovod/common/stall_inspector.cc). These are ranks as they are dealt
now; they equal the ranks of the start if no rank was dealt again since.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

# Seconds. The time of a start is known in whole seconds, so a start looks too early by as much.
TOGETHER = 5.0
# Seconds of the log that are read, so that a stall that is over is not told; and the most lines.
LATELY, MOST_LINES = 150, 500
# horovodrun, perhaps with --prefix-output-with-timestamp; mpirun --tag-output has the number of the
# job before it.
_PREFIX = re.compile(
    rb"^(?:\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})?\[(?:\d{1,9},)?(\d{1,9})\]<std(?:out|err)>:"
)
_BEGINS = re.compile(rb"are waiting for remainder of ranks for more than (\d{1,9}) seconds")
_MISSING = re.compile(rb"(\d{1,9})!?: \[(.*)\]")
# A line of the log with its time, as the API server writes it with `timestamps`.
_TIMED = re.compile(rb"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.\d]{0,11}Z (?P<text>.*)")
# [horovod] horovodrun's last words, after a success too (runner/elastic/registration.py).
_STOPS = b"-> stop running"
# The lines of the log in which these words are looked for, and the most characters of a line.
LAST_LINES, LONGEST_LINE = 100, 300


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """A process of the launcher that holds a rank."""

    #: The number of the process in the launcher.
    pid: int
    #: The rank with which the process was started.
    rank: int
    #: The pod in which the rank runs.
    pod: str
    #: Seconds by the launcher's clock.
    started_at: float


@dataclass(frozen=True, kw_only=True)
class Spawned:
    """The spawns that a look into a launcher shows."""

    #: The time of the look, in seconds by the launcher's clock.
    at: float
    spawns: frozenset[Spawn]

    @property
    def together(self) -> bool:
        """True if all were started at the same time, so that no rank was dealt again since."""
        starts = [spawn.started_at for spawn in self.spawns]
        return not starts or max(starts) - min(starts) < TOGETHER

    def pods(self, rank: int) -> list[str]:
        """Return the pods with a process that was started with this rank, sorted."""
        return sorted({spawn.pod for spawn in self.spawns if spawn.rank == rank})


@dataclass(frozen=True, kw_only=True)
class Stall:
    """Ranks for which the others wait."""

    #: The least time for which the others have waited.
    seconds: int
    #: The tensors that each rank has not submitted.
    missing: Mapping[int, str]


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """The words with which horovodrun stopped."""

    #: Seconds since the epoch.
    at: float
    says: str


@dataclass
class Lives:
    """The spawns of all looks, each with the time of the first look that missed it."""

    _gone_at: dict[Spawn, float | None] = field(default_factory=dict)

    def add(self, look: Spawned) -> None:
        """Take in another look."""
        for spawn, gone_at in self._gone_at.items():
            if gone_at is None and spawn not in look.spawns:
                self._gone_at[spawn] = look.at
        self._gone_at |= dict.fromkeys(look.spawns)

    def pods(self, rank: int, *, at: float) -> list[str]:
        """Return the pods that may have printed `[rank]` at that time, sorted."""
        found = (
            spawn.pod
            for spawn, gone_at in self._gone_at.items()
            if spawn.rank == rank and spawn.started_at <= at and (gone_at is None or at <= gone_at)
        )
        return sorted({*found})

    def has(self, pod: str) -> bool:
        """Tell whether a rank was seen in the pod."""
        return any(spawn.pod == pod for spawn in self._gone_at)


def printed_rank(line: bytes) -> int | None:
    """Return the number in Horovod's prefix of a line; None for the launcher's own lines."""
    match = _PREFIX.match(line)
    return int(match[1]) if match else None


def stall(lines: Iterable[bytes]) -> Stall | None:
    """Return the last stall in lines of a launcher's log; None if there is no stall in them."""
    seconds, missing, printed_by, goes_on = 0, dict[int, str](), None, False
    for line in lines:
        rank, text = printed_rank(line), _PREFIX.sub(b"", line, count=1)
        if begins := _BEGINS.search(text):
            seconds, missing, printed_by, goes_on = int(begins[1]), {}, rank, True
        elif goes_on and rank == printed_by:
            if found := _MISSING.fullmatch(text):
                missing[int(found[1])] = found[2].decode(errors="replace")
            goes_on = found is not None or text == b"Missing ranks:"
    return Stall(seconds=seconds, missing=missing) if missing else None


def stopped(lines: Iterable[bytes]) -> Stopped | None:
    """Return the last words of horovodrun in timed lines of a launcher's log, or None."""
    found = None
    for line in lines:
        timed = _TIMED.fullmatch(line)
        if timed is None or printed_rank(timed["text"]) is not None:
            continue
        at = _seconds(timed["at"])
        if at is not None and timed["text"].rstrip().endswith(_STOPS):
            says = timed["text"].rstrip()[:LONGEST_LINE].decode(errors="replace")
            found = Stopped(at=at, says=says)
    return found


def _seconds(time: bytes) -> float | None:
    """Return a time of the log in seconds since the epoch; None if no calendar holds it."""
    try:
        return datetime.fromisoformat(f"{time.decode()}+00:00").timestamp()
    except ValueError:
        return None
