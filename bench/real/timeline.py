"""The course of a change of size of a training job: writes, what the launcher saw, what ranks printed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.audit import Write
from bench.real.visibility import Sight
from lab.training.job import NAME, workers
from lab.training.log import Told, first_with, longest_pause
from mpijob_elastic import names


@dataclass(frozen=True, kw_only=True)
class Course:
    """Times in seconds; None if it never happened.

    visible: from the last write of the host list until the launcher saw it. listed: from the edit until then. trained:
    from the edit to the first step of all ranks. pause: the longest time without a step until then.
    """

    title: str
    visible: float | None
    listed: float | None
    trained: float | None
    pause: float


def course(
    *, old: int, new: int, edited: float, writes: Sequence[Write], sights: Sequence[Sight], steps: Sequence[Told]
) -> Course:
    """Return the course so far of a change that began at `edited` (seconds since the epoch)."""
    seen = next((sight.at for sight in sights if sight.at >= edited and sight.hosts == workers(new)), None)
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


def _published(writes: Sequence[Write], *, edited: float, seen: float) -> float:
    """Return when the API server received the last write of the ConfigMap before the launcher saw it."""
    config = [write for write in writes if (write.resource, write.name) == ("configmaps", names.config_map(NAME))]
    return max(write.received for write in config if edited <= write.received <= seen)
