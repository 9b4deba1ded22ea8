"""Scale timeout: a size that cannot be reached is set back to the last size that worked.

Only a scale-out is taken back, and only while the job trains: what it starts with is what its author asked for. A
worker counts as soon as it is Ready, whether it is published already or not, and workers that became Ready stay.
"""

from mpijob_elastic.capabilities.autoscaling import growth
from mpijob_elastic.capabilities.autoscaling.actions import RollBack
from mpijob_elastic.capabilities.autoscaling.facts import Scaling
from mpijob_elastic.decide.actions import warning
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.model import durations
from mpijob_elastic.model.phrases import listed


def roll_back(state: JobState) -> tuple[RollBack | None, float | None]:
    """Return the write that is due, or None; and when it may become due."""
    view, now = state.view, state.now
    size, timeout = growth.remembered(view), (view.facts.of(Scaling) or Scaling()).scale_timeout
    if size is None or timeout is None or not view.elastic or not view.driver_running:
        return None, None
    if view.skips:  # of a smaller size others than the last would leave
        return None, None
    if size.asked != view.replicas or not 0 < size.worked < view.replicas:
        return None, None
    missing = [pod for pod in view.wanted_names if pod not in state.by_name or not state.by_name[pod].ready]
    # The operator knows a size only, not which workers are meant: all below it must be Ready.
    unbroken = view.wanted_names.index(missing[0]) if missing else view.replicas
    reachable = view.facts.size_down(max(size.worked, view.policy.min_replicas or 1, unbroken))
    if not missing or reachable >= view.replicas or size.at != honest(size.at, now=now):
        return None, None
    if now < size.at + timeout:
        return None, size.at + timeout
    limit = durations.render(timeout)
    message = (
        f"{listed(missing)} not Ready {limit} after the scale-out to {view.replicas} workers "
        f"({_why(state, missing[0])}); Worker.replicas returns to {reachable}, the last size that worked"
    )
    note = warning("ScaleTimeout", message)
    return RollBack(ref=view.ref, before=view.replicas, after=reachable, note=note), None


def _why(state: JobState, pod: str) -> str:
    worker = state.view.worker(pod)
    if worker is None:
        return f"{pod} was not created; see the operator's Events"
    if held := state.wishes.held.get(pod):
        return held
    return worker.facts.obstacle or worker.facts.last_state or f"see `kubectl describe pod {pod}`"
