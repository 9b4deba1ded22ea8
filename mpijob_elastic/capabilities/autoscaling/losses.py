"""Losses: for a while after one, idle nodes do not make a job larger than it was before.

After a failure the next one is often near: the node that failed comes back and fails again, or the
provider takes more spot nodes. Each worker that is taken and lost again costs training two pauses.
So a job that fills waits. It still grows to its size before the loss, because a smaller size that
was set meanwhile only gave back workers for which there was no node. Replacements do not change the
size, so they never wait; neither does a size that a user or an HPA sets.

Nothing is remembered for this: the job's history (model.history) is written together with the list
that loses a worker, and has the time of the loss and the size before it.
"""

from dataclasses import dataclass

from mpijob_elastic.capabilities.autoscaling.facts import (
    AUTOSCALE,
    GROW_AFTER_LOSS,
    scaling,
)
from mpijob_elastic.decide.actions import Note, normal
from mpijob_elastic.decide.state import honest
from mpijob_elastic.model import history, phrases
from mpijob_elastic.model.job import JobView


@dataclass(frozen=True, kw_only=True)
class Pause:
    """The time after a loss in which a job that fills does not grow beyond its size before."""

    #: The largest size for now.
    most: int
    #: The end of the pause, in seconds since the epoch.
    until: float
    #: The last loss, in words; "" if unknown.
    why: str


def pause(view: JobView, *, now: float) -> Pause | None:
    """Return the pause in which a job that fills is; None if it may grow."""
    asked = scaling(view.facts)
    if not asked.fill or view.config is None:
        return None
    wait = asked.pause_after_loss
    # A loss takes hosts off the list. Most jobs need no look into their history.
    if now >= honest(view.memory.removed_at, now=now) + wait:
        return None
    text = view.config.facts.history.decode(errors="replace")
    losses = [change for change in history.entries(text) if change.is_loss]
    recent = [loss for loss in losses if now < honest(loss.at, now=now) + wait]
    if not recent:
        return None
    last = max(recent, key=lambda loss: loss.at)
    return Pause(
        most=view.facts.size_down(max(loss.before for loss in recent)),
        until=last.at + wait,
        # Anybody who may edit the ConfigMap may have written the note.
        why=history.short(last.note, most=history.LONGEST_NOTE),
    )


def note(view: JobView, found: Pause) -> Note:
    """Return the notice on a job that waits."""
    why = f" ({found.why})" if found.why else ""
    most = phrases.workers(max(view.replicas, found.most))
    wait = phrases.duration(scaling(view.facts).pause_after_loss)
    return normal(
        "GrowthWaits",
        f"the job has lost workers{why}, so {AUTOSCALE} makes the job no larger than {most} until "
        f"{wait} after the loss; {GROW_AFTER_LOSS} sets that time",
    )
