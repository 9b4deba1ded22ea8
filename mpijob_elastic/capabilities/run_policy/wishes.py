"""The end of a launcher that has failed too often, and the deletion of a job that has finished.

[operator] A launcher pod that fails ends its job for good: Failed, with a completionTime. So the pod must not fail
before the last attempt. The webhook lets its kubelet restart the container in place, with the kubelet's own pauses, and
here the restarts are counted. A container that runs is never ended: while nobody counted, it may have become the
attempt that succeeds.

A finished job is deleted at the very version that was decided on, so that an edit of the field in time is obeyed.
"""

from mpijob_elastic.capabilities.run_policy.actions import DeleteJob
from mpijob_elastic.decide.actions import EndLauncher, normal, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import End
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase


def end(view: JobView, limit: int) -> End | None:
    """Return the wish that the launcher ends, if it has failed more than `limit` times."""
    launcher = view.launcher
    if launcher is None or launcher.phase is not LauncherPhase.STARTED or launcher.facts.deleting:
        return None
    if launcher.facts.failures <= limit or launcher.facts.deadline == EndLauncher.DEADLINE:
        return None
    message = f"{launcher.ref.name} has failed {launcher.facts.failures} times (backoffLimit {limit}), so it is ended"
    return End(note=warning("BackoffLimitExceeded", message))


def delete(state: JobState, ttl: int) -> tuple[DeleteJob | None, float | None]:
    """Return the deletion that is due `ttl` seconds after the end, or None; and when it may become due."""
    view = state.view
    # Whatever the status says, a launcher that runs has not finished.
    if view.facts.ended_at is None or view.driver_may_run:
        return None, None
    due_at = view.facts.ended_at + ttl
    if state.now < due_at:
        return None, due_at
    after = f"{durations.render(ttl)} after its end (ttlSecondsAfterFinished)"
    message = f"{view.name} is deleted with all that it owns, {after}"
    return DeleteJob(ref=view.ref, note=normal("FinishedJobDeleted", message)), None
