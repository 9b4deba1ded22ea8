"""The course of a change of size of a training job: writes, what the launcher saw, what ranks printed."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import jobs
from bench.audit import Write
from lab.training.allocated import Allocated
from lab.training.job import NAME, workers
from lab.training.log import Told, first_with, longest_pause
from mpijob_elastic import names

# Read the file fifty times a second, which costs half a percent of a core, and print each change on
# a line.
LOOP = """
import sys, time
seen = None
while True:
    with open(sys.argv[1]) as file:
        now = file.read()
    if now != seen:
        print(time.time(), repr(now), flush=True)
        seen = now
    time.sleep(0.02)
"""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """A new content of the file; at: seconds since the epoch.

    Node and machine have the same clock.
    """

    at: float
    content: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of a discover_hosts.sh."""
        return jobs.hosts(self.content)


def sights(output: Path) -> list[Sight]:
    """Return all sights so far, in order: without an incomplete line, and without messages of kubectl."""
    text = output.read_text()
    lines = [
        line for line in text.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()
    ]
    told = (line.rstrip("\n").partition(" ") for line in lines)
    return [Sight(at=float(at), content=str(ast.literal_eval(content))) for at, _, content in told]


@dataclass(frozen=True, kw_only=True)
class Course:
    """Times in seconds; None if it never happened.

    visible: from the last write of the host list until the launcher saw it. listed: from the edit
    until then. trained: from the edit to the first step of all ranks. pause: the longest time
    without a step until then. lost: worker-seconds from the edit to that first step in which no
    step was done, or until now if there is none. limit: the same if nothing but one import of each
    new rank and one forming of the ring were lost; 0 until that is known.
    """

    title: str
    visible: float | None
    listed: float | None
    trained: float | None
    pause: float
    lost: float = 0.0
    limit: float = 0.0


def course(
    *,
    old: int,
    new: int,
    edited: float,
    writes: Sequence[Write],
    sights: Sequence[Sight],
    steps: Sequence[Told],
) -> Course:
    """Return the course so far of a change that began at `edited` (seconds since the epoch)."""
    seen = next(
        (sight.at for sight in sights if sight.at >= edited and sight.hosts == workers(new)), None
    )
    trained = first_with(steps, size=new, since=edited)
    until = trained.time if trained else float("inf")
    # The step before the edit counts, because the pause may have begun with it.
    before = [step for step in steps if step.time < edited][-1:]
    during = [step for step in steps if edited <= step.time <= until]
    return Course(
        title=f"{old}→{new}",
        visible=None if seen is None else seen - _published(writes, edited=edited, seen=seen),
        listed=None if seen is None else seen - edited,
        trained=trained.time - edited if trained else None,
        pause=longest_pause([*before, *during]),
    )


def lost(held: Allocated, steps: Sequence[Told], *, edited: float, until: float) -> float:
    """Return the worker-seconds between two times in which no step was done that counts by then."""
    done = 0.0
    least = float("inf")
    for step in reversed([step for step in steps if step.time <= until]):
        counts = step.step < least
        least = min(least, step.step)
        if counts:
            done += step.size * max(0.0, min(step.time, until) - max(step.began, edited))
    return held.seconds(since=edited, until=until) - done


def limited(courses: Sequence[Course], *, imports: float) -> list[Course]:
    """Return the courses with their limits; imports: seconds that a rank imports.

    How long a ring forms tells the shortest pause of a change that adds no rank.
    """
    sizes = [tuple(map(int, one.title.split("→"))) for one in courses]
    pauses = [
        one.pause
        for one, (old, new) in zip(courses, sizes, strict=True)
        if new < old and one.trained is not None
    ]
    if not pauses:
        return list(courses)
    forming = min(pauses)
    limits = [max(0, new - old) * imports + new * forming for old, new in sizes]
    return [replace(one, limit=limit) for one, limit in zip(courses, limits, strict=True)]


def _published(writes: Sequence[Write], *, edited: float, seen: float) -> float:
    """Return when the API server received the last write of the ConfigMap before the launcher saw it."""
    config = [
        write
        for write in writes
        if (write.resource, write.name) == ("configmaps", names.config_map(NAME))
    ]
    return max(write.received for write in config if edited <= write.received <= seen)
