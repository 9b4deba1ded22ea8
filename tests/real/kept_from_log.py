"""Where the time of a training went, computed from its own log: nothing of the product is used.

The log has a JSON line of rank 0 for each step, with its begin, its end and the hosts of all ranks:

    {"event": "step", "began": 8.0, "time": 8.25, "step": 7, "hosts": ["a", "b"]}

A step counts once: if its number comes again, what was done before is repeated. What a step takes
above the median of its ring by more than 3 median deviations is a stall. Steps of the same hosts
without a gap in the numbers are of one ring. `python kept_from_log.py < LOG` prints the figures.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

_TOLD = re.compile(r'\{"event": "step"[^{}]*\}')
# Deviations above the median from which on a step has stalled.
DEVIATIONS = 3


@dataclass(frozen=True, kw_only=True)
class Done:
    """A step; began, ended: seconds since the epoch."""

    number: int
    began: float
    ended: float
    hosts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a worker did; kept, repeated: seconds of steps that count, and of those done again later."""

    kept: float = 0.0
    repeated: float = 0.0
    #: Numbers of these steps.
    steps: int = 0
    again: int = 0


def done(log: str) -> list[Done]:
    """Return the steps in the order in which they ended; of two logs of the same lines, each once."""
    told = [json.loads(text) for text in dict.fromkeys(_TOLD.findall(log))]
    steps = [
        Done(
            number=one["step"],
            began=one["began"],
            ended=one["time"],
            hosts=tuple(host.partition(".")[0] for host in one["hosts"]),
        )
        for one in told
    ]
    return sorted(steps, key=lambda step: step.ended)


def rings(steps: Sequence[Done]) -> list[list[Done]]:
    """Return the steps of each ring."""
    found = [[step] for step in steps[:1]]
    for before, step in pairwise(steps):
        follows = step.hosts == before.hosts and step.number == before.number + 1
        if follows:
            found[-1].append(step)
        else:
            found.append([step])
    return found


def seconds(ring: Sequence[Done]) -> list[float]:
    """Return the seconds of each step of a ring without its stalls."""
    spent = [step.ended - step.began for step in ring]
    usual = median(spent)
    most = usual + DEVIATIONS * median(abs(one - usual) for one in spent)
    return [usual if one > most else one for one in spent]


def lost(steps: Sequence[Done]) -> list[bool]:
    """Tell of each step whether a later one has its number."""
    found = [False] * len(steps)
    least = steps[-1].number + 1 if steps else 0
    for place in reversed(range(len(steps))):
        found[place] = steps[place].number >= least
        least = min(least, steps[place].number)
    return found


def shares(log: str) -> Mapping[str, Share]:
    """Return the share of each worker, by the name of its pod."""
    steps = done(log)
    spent = [one for ring in rings(steps) for one in seconds(ring)]
    by_host = dict[str, Share]()
    for step, took, is_lost in zip(steps, spent, lost(steps), strict=True):
        for host in step.hosts:
            by_host[host] = _more(by_host.get(host, Share()), took, is_lost=is_lost)
    return by_host


def total(found: Iterable[Share]) -> Share:
    """Return the sum; steps are those of all workers together."""
    every = list(found)
    return Share(
        kept=sum(one.kept for one in every),
        repeated=sum(one.repeated for one in every),
        steps=sum(one.steps for one in every),
        again=sum(one.again for one in every),
    )


def _more(share: Share, took: float, *, is_lost: bool) -> Share:
    if is_lost:
        return Share(
            kept=share.kept,
            repeated=share.repeated + took,
            steps=share.steps,
            again=share.again + 1,
        )
    return Share(
        kept=share.kept + took,
        repeated=share.repeated,
        steps=share.steps + 1,
        again=share.again,
    )


def main() -> None:
    """Print a line for each worker, and one for all."""
    found = shares(sys.stdin.read())
    for name, share in [*sorted(found.items()), ("all", total(found.values()))]:
        print(  # noqa: T201
            f"{name}: {share.steps} steps kept in {share.kept:.1f} s, {share.again} repeated in "
            f"{share.repeated:.1f} s"
        )


if __name__ == "__main__":
    main()
