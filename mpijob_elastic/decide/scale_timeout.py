"""A size that cannot be reached: after the job's scale-timeout it is set back to the last that worked.

Only a scale-out is taken back, and only while the job trains: what it starts with is what its author asked for. A
worker counts as soon as it is Ready, whether it is published already or not, and those that became Ready stay.
"""

from __future__ import annotations

from collections.abc import Collection

from mpijob_elastic.decide import clock
from mpijob_elastic.decide.actions import Note, RollBack
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Growth, Memory


def growth(view: JobView, old: Memory, published: Collection[str], *, now: float) -> Growth | None:
    """What is to be remembered of the size, once these pods are published; None where there is no scale-timeout."""
    if view.policy.scale_timeout is None or not view.elastic:
        return None
    before = old.growth or Growth(worked=old.scale.after if old.scale else 0, asked=view.replicas, at=now)
    wanted = view.wanted_names
    whole = bool(wanted) and set(wanted) <= set(published)
    worked = view.replicas if whole else min(before.worked, view.replicas)
    believed = before.asked == view.replicas and before.at == clock.honest(before.at, now=now)
    return Growth(worked=worked, asked=view.replicas, at=before.at if believed else now)


def roll_back(view: JobView, *, now: float) -> tuple[RollBack | None, float | None]:
    """The write that is due, or None; and when it may become due."""
    size, timeout = view.memory.growth, view.policy.scale_timeout
    if size is None or timeout is None or not view.elastic or not view.driver_running:
        return None, None
    if size.asked != view.replicas or not 0 < size.worked < view.replicas:
        return None, None
    missing = _missing(view)
    reachable = max(size.worked, view.policy.min_replicas or 1, _unbroken(view, missing))
    if not missing or reachable >= view.replicas or size.at != clock.honest(size.at, now=now):
        return None, None
    if now < size.at + timeout:
        return None, size.at + timeout
    return RollBack(ref=view.ref, before=view.replicas, replicas=reachable, note=_note(view, missing, reachable)), None


def _missing(view: JobView) -> list[str]:
    """Wanted workers that are not Ready, in numeric order."""
    ready = {worker.name for worker in view.workers if worker.ready}
    return [pod for pod in view.wanted_names if pod not in ready]


def _unbroken(view: JobView, missing: list[str]) -> int:
    """The size all of whose workers are Ready: the operator knows a size only, not which workers are meant."""
    return view.wanted_names.index(missing[0]) if missing else view.replicas


def _note(view: JobView, missing: list[str], size: int) -> Note:
    limit = durations.render(view.policy.scale_timeout or 0.0)
    pods = ", ".join(missing[:8])
    message = (
        f"{view.replicas} workers asked for, but after {limit} {pods} {'is' if len(missing) == 1 else 'are'} not Ready "
        f"({_why(view, missing[0])}); Worker.replicas is set back to {size}, the last size that worked"
    )
    return Note(reason="ScaleTimeout", message=message, warning=True)


def _why(view: JobView, pod: str) -> str:
    worker = view.worker(pod)
    if worker is None:
        return f"{pod} was not created; see the operator's Events"
    return worker.obstacle or worker.last_state or f"see `kubectl describe pod {pod}`"
