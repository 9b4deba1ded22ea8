"""The backoff limit: the end of a launcher that has failed more often than its run policy allows.

[operator] A launcher pod that fails ends its job for good: Failed, with a completionTime. So the pod must not fail
before the last attempt. The webhook lets its kubelet restart the container in place, with the kubelet's own pauses, and
here the restarts are counted. A container that runs is never ended: while nobody counted, it may have become the
attempt that succeeds.
"""

from mpijob_elastic.decide.actions import EndLauncher, warning
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase


def end(view: JobView) -> EndLauncher | None:
    """Return the end of the launcher if that is due."""
    launcher, limit = view.launcher, view.facts.run_policy.backoff_limit
    if not limit or launcher is None or launcher.phase is not LauncherPhase.STARTED or launcher.facts.deleting:
        return None
    if launcher.facts.failures <= limit or launcher.facts.deadline == EndLauncher.DEADLINE:
        return None
    message = f"{launcher.ref.name} has failed {launcher.facts.failures} times (backoffLimit {limit}), so it is ended"
    return EndLauncher(ref=launcher.ref, note=warning("BackoffLimitExceeded", message))
