"""Reads what train.py (docs/examples/elastic-pytorch) and horovodrun logged, and says how training went; pure.

log = parse(text)
[(phase.size, phase.hosts) for phase in phases(log.steps)], longest_pause(log.steps), problems(log)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import msgspec

KILLED = 137  # 128 + SIGKILL, as a shell and kubectl exec tell it

# horovodrun puts `[RANK]<stdout>:` before each line of a rank; the flat JSON object is what
# train.py printed. What Horovod's own threads print at the same time may stand before and behind it
# on that line.
_OUTPUT = re.compile(r"\[\d+\]<stdout>:.*")
TOLD = re.compile(r'\{"event": [^{}]*\}')
# Of horovod/runner/gloo_run.py and horovod/runner/elastic/discovery.py; the latter only with
# --log-level INFO.
_EXIT = re.compile(r"Process \d+ exit with status code (-?\d+)\.")
_BLACKLISTED = re.compile(r"blacklist(?:ing)? (?:failing )?host:? (\S+)", re.IGNORECASE)
# Of horovod/runner/elastic/driver.py, only with --log-level INFO.
_LAUNCHED = re.compile(r"start worker process: (\S+)\[\d+\]")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A line of train.py; times in seconds since the epoch.

    Only of a step: `hosts`: of all ranks, by rank; `began`: its begin; `saved`: it is saved next.
    """

    event: str
    time: float
    host: str
    rank: int
    size: int
    step: int = 0
    hosts: tuple[str, ...] = ()
    began: float = 0.0
    saved: bool = False
    loss: float = 0.0
    reached: bool = False


@dataclass(frozen=True, kw_only=True)
class Log:
    """Lines of a log, in order; `exits`: exit codes of ranks that did not end with 0.

    `launched`: the hosts in which Horovod's driver started ranks.
    """

    starts: tuple[Told, ...]
    steps: tuple[Told, ...]
    ends: tuple[Told, ...]
    exits: tuple[int, ...]
    blacklisted: tuple[str, ...]
    launched: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps one after the other on the same hosts; `first` and `last` are the times of its first and last step."""

    hosts: tuple[str, ...]
    first: float
    last: float
    steps: int

    @property
    def size(self) -> int:
        """Number of ranks that trained."""
        return len(self.hosts)


def parse(text: str) -> Log:
    """Read the log of a launcher.

    Raises msgspec.ValidationError for a line of train.py that is not as it should be.
    """
    told = [
        msgspec.json.decode(found, type=Told)
        for line in _OUTPUT.findall(text)
        for found in TOLD.findall(line)
    ]
    return Log(
        starts=_of(told, "start"),
        steps=_of(told, "step"),
        ends=_of(told, "end"),
        exits=tuple(int(code) for code in _EXIT.findall(text)),
        blacklisted=tuple(_BLACKLISTED.findall(text)),
        launched=tuple(_LAUNCHED.findall(text)),
    )


def _of(told: Sequence[Told], event: str) -> tuple[Told, ...]:
    return tuple(one for one in told if one.event == event)


def phases(steps: Sequence[Told]) -> list[Phase]:
    """Return the phases of training, in order."""
    grouped = ((hosts, list(group)) for hosts, group in groupby(steps, key=lambda step: step.hosts))
    return [
        Phase(hosts=hosts, first=group[0].time, last=group[-1].time, steps=len(group))
        for hosts, group in grouped
    ]


def longest_pause(steps: Sequence[Told]) -> float:
    """The longest time between two steps, in seconds; 0 where there are not two."""
    return max((after.time - before.time for before, after in pairwise(steps)), default=0.0)


def lost_steps(steps: Sequence[Told]) -> int:
    """The most steps that had to be done again at one time: 0 if every step followed on the one before."""
    return max((before.step + 1 - after.step for before, after in pairwise(steps)), default=0)


def first_with(steps: Sequence[Told], *, size: int, since: float) -> Told | None:
    """The first step of `size` ranks at or after a time, or None."""
    return next((step for step in steps if step.size == size and step.time >= since), None)


def harm(log: Log) -> list[str]:
    """Return what a change of the workers did to training, in words; empty if every rank could leave in time."""
    found = [f"a rank was killed (exit code {KILLED})" for code in log.exits if code == KILLED]
    found += [f"Horovod blacklisted {host}" for host in log.blacklisted]
    if lost := lost_steps(log.steps):
        found.append(f"{lost} steps were lost and done again")
    return found


def problems(log: Log) -> list[str]:
    """Return what went wrong with training that has ended, in words; empty if training went as it should."""
    found = harm(log) if log.ends else [*harm(log), "no rank said that it has ended"]
    found += [
        f"the rank in {end.host} ended with a loss of {end.loss}"
        for end in log.ends
        if not end.reached
    ]
    return found


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Seconds from the loss to the first step without the lost rank, and to the first step of all ranks."""

    went_on: float
    full: float


def recovery(log: Log, host: str, *, size: int, since: float) -> Recovery | None:
    """Return the recovery of training with `size` ranks from the loss of the rank in `host`; None before that."""
    back = next((one.time for one in log.starts if one.host == host and one.time >= since), None)
    full = first_with(log.steps, size=size, since=back) if back else None
    if back is None or full is None:
        return None
    # The last steps of all ranks may have been told after `since`.
    without = (
        one.time for one in log.steps if one.time >= since and (one.size < size or one.time >= back)
    )
    return Recovery(went_on=next(without) - since, full=full.time - since)
