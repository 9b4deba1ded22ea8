"""A job that ended well just after its host list changed: maybe too well.

Elastic Horovod stops the whole job as a success as soon as any rank exits with 0 (runner/elastic/registration.py).
A rank whose neighbour goes may do so: TensorFlow 1.15 was seen to (horovod#1994, #3852), and so was `kubectl exec`
where its connection breaks (kubernetes#73056). Nobody can tell that from a training that has reached its end, so its
author is asked to look.
"""

from __future__ import annotations

from mpijob_elastic.decide import clock
from mpijob_elastic.decide.actions import Note, TellUser
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView

# An end so many seconds after a change is worth a second look: a ring forms within some seconds, or after a long step.
SUSPICIOUS_WITHIN = 60.0
# For so long (seconds) an end is news; later, a controller that was away says nothing of it any more.
NEWS_FOR = 900.0


def after_change(view: JobView) -> float | None:
    """How many seconds after a change of its host list the job succeeded; None where it did not, or not soon."""
    changed_at = _changed_at(view)
    if view.succeeded_at is None or not changed_at or not view.elastic:
        return None
    waited = view.succeeded_at - changed_at
    return max(0.0, waited) if -clock.SKEW <= waited <= SUSPICIOUS_WITHIN else None


def words(waited: float) -> str:
    """What is said of it."""
    return (
        f"the job succeeded {durations.render(round(waited))} after its host list had changed; if the training had not "
        "reached its end, a rank may have exited with 0 at the change, which Horovod takes for the end of the whole "
        "job; see the last steps in the launcher's log"
    )


def tell(view: JobView, *, now: float) -> TellUser | None:
    """What is due to be said, once; whatever else was said of the job does not hold any more."""
    waited = after_change(view)
    if waited is None or view.succeeded_at is None or not now - NEWS_FOR <= view.succeeded_at:
        return None
    note = Note(reason="EndedAfterResize", message=words(waited), warning=True)
    text = f"{note.reason}: {note.message}"
    return None if text == view.notices else TellUser(ref=view.ref, text=text, notes=(note,))


def _changed_at(view: JobView) -> float:
    """When hosts were last published or taken out, 0 where that was only to begin with."""
    memory = view.memory
    is_change = memory.removed_at or (memory.scale and memory.scale.before)
    return max(memory.added_at, memory.removed_at) if is_change else 0.0
