"""Expiry: the deletion of a finished job after its ttlSecondsAfterFinished, if it asks for its run policy.

act.writer deletes the very version that was decided on, so that an edit of the field in time is obeyed.
"""

from mpijob_elastic.decide.actions import DeleteJob, normal
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import durations


def delete(state: JobState) -> tuple[DeleteJob | None, float | None]:
    """Return the deletion that is due, or None; and when it may become due."""
    view = state.view
    # Whatever the status says, a launcher that runs has not finished.
    if view.facts.run_policy.ttl is None or view.facts.ended_at is None or view.driver_may_run:
        return None, None
    if view.queue and view.queue.prebuilt:
        return None, None  # MultiKueue deletes its copy once it knows the end, and runs one that is gone again
    due_at = view.facts.ended_at + view.facts.run_policy.ttl
    if state.now < due_at:
        return None, due_at
    after = f"{durations.render(view.facts.run_policy.ttl)} after its end (ttlSecondsAfterFinished)"
    message = f"{view.name} is deleted with all that it owns, {after}"
    return DeleteJob(ref=view.ref, note=normal("FinishedJobDeleted", message)), None
