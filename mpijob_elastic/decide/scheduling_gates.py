"""Scheduling gates: when a pod that the webhook held back at its creation may start.

A gate whose reason does not hold is taken off, whatever else may be due for the job: nobody but us would do so.
"""

from mpijob_elastic import names
from mpijob_elastic.decide import suspension
from mpijob_elastic.decide.actions import Gated, Ungate, normal
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker


def lift(state: JobState) -> Ungate | None:
    """Return the gates to take off now, or None; a worker that leaves keeps its gates."""
    view = state.view
    if view.facts.deleting or view.facts.finished or suspension.has_leftovers(view):
        return None
    lifted = tuple(
        Gated(ref=pod.ref, kept=tuple(gate for gate in pod.facts.gates if gate not in _over(view, pod)))
        for pod in view.pods
        if not pod.facts.deleting and state.by_name.get(pod.ref.name) not in state.leaving and _over(view, pod)
    )
    if not lifted:
        return None
    free = [gated.ref.name for gated in lifted if names.GATES.isdisjoint(gated.kept)]
    message = f"{listed(free)} may be scheduled: {view.name} is neither suspended nor queued"
    if not free:
        message = f"{view.name} is not suspended any more, and waits in its queue"
    return Ungate(pods=lifted, note=normal("Resumed", message))


def _over(view: JobView, pod: Worker | Launcher) -> list[str]:
    """Return the gates of ours on a pod whose reason does not hold."""
    is_queued = (
        view.queue is None or bool(view.queue.name) or view.queue.elsewhere
    )  # whose quota is granted, `workloads` starts
    holds = {names.GATE_SUSPENDED: bool(view.suspended_by), names.GATE_QUEUED: is_queued}
    return [gate for gate in pod.facts.gates if holds.get(gate) is False]
