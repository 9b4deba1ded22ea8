"""What has to go although its launcher cannot be told: quota that is wanted back, and a Stop.

Somebody else waits for the quota of a worker with the wish END, and for all of a job that stops. A
worker leaves the list first, and drains. But the tenant can prevent that for good: by a ConfigMap
that cannot change or is edited all day, by a pod that cannot be read, or by a policy that refuses
the touch. So the drain counts as over after the drain-timeout, counted from the moment at which
this process first saw that something hinders the worker.

What may be skipped after that, and only for such workers (safety rule 2):
- the worker is still in discover_hosts.sh, or the launcher was not touched since it left;
- a pod that cannot be read was not probed.

What is never skipped: the job is elastic and ours, the decision is made again from live objects,
each pod is deleted at its uid and resourceVersion, and quota is given back only once nothing runs
any more for which it was meant. A worker that leaves for the size, for a node or as a failure waits
as long as it takes: nobody waits for its quota.
"""

from collections.abc import Iterator

from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.state import JobState, deletable_at
from mpijob_elastic.decide.step import first_after
from mpijob_elastic.decide.wishes import LeaveKind, Wishes
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts

# The least seconds to the next look, if the drain-timeout is shorter.
SOON = 1.0


def must_go(view: JobView, wishes: Wishes) -> bool:
    """Tell whether somebody waits for a worker of the job, or for all of the job, to go."""
    if view.foreign or view.facts.deleting or view.ended:
        return False
    if wishes.suspend:
        return True
    return wishes.wanted_back and view.elastic


def is_hindered(state: JobState) -> bool:
    """Tell whether something must go, and something keeps it from going in order."""
    if state.foreign or not must_go(state.view, state.wishes):
        return False
    if _is_unknown(state.view) or state.view.unseen:
        return True
    if state.edited or state.mends_at > 0.0:
        return True  # another program writes the list
    return _is_refused(state)


def _is_unknown(view: JobView) -> bool:
    """Tell whether no list can be written, so that nobody knows who was told to leave."""
    if view.config is None or view.role is None:
        return True
    return not view.facts.size_known


def is_overdue(view: JobView, wishes: Wishes) -> bool:
    """Tell whether that has lasted for the drain-timeout."""
    if view.hindered_for is None or view.hindered_for < view.policy.drain_timeout:
        return False
    return must_go(view, wishes)


def wake_at(state: JobState) -> float | None:
    """Return the time at which the drain-timeout is over, or the next unread pod may be deleted.

    None if nothing hinders, or if nobody measures since when something hinders.
    """
    seen_for = state.view.hindered_for
    if seen_for is None or not is_hindered(state):
        return None
    if state.overdue:
        times = [deletable_at(pod, now=state.now) for pod in _unread(state)]
        return first_after(state.now, times)
    return state.now + max(SOON, state.view.policy.drain_timeout - seen_for)


def goes(state: JobState, pod: str) -> bool:
    """Tell whether a worker has to go although its launcher could not be told."""
    if not state.overdue:
        return False
    return state.wishes.suspend is not None or is_wanted_back(state, pod)


def is_wanted_back(state: JobState, pod: str) -> bool:
    """Tell whether somebody waits for the quota of this worker alone; a job stops as a whole."""
    leave = state.wishes.leaves.get(pod)
    if leave is None or state.wishes.suspend:
        return False
    return leave.kind is LeaveKind.END


def hidden(state: JobState) -> Iterator[PodFacts]:
    """Yield pods that cannot be read and have to go now."""
    return (pod for pod in _unread(state) if deletable_at(pod, now=state.now) <= state.now)


def _unread(state: JobState) -> Iterator[PodFacts]:
    """Yield pods that cannot be read and have to go, now or once they are old enough."""
    for name, pod in state.view.hidden.items():
        if pod.idle or pod.deleting:
            continue
        if goes(state, name):
            yield pod


def _is_refused(state: JobState) -> bool:
    """Tell whether the API server refuses to change the list, or to show it to the launcher."""
    if WriteConfig in state.view.refused:
        return True
    return state.launcher.refused > 0 and state.launcher.refresh_due
