"""The whole policy: from one view of a job and the time to the writes that are due. No IO, no clock, no logging.

`decide` is called again after every write and every change, and gives the next safe step from what it sees alone, so a
crash between any two writes leaves a state that the next call completes. An empty plan means that all is well.

The complexity comes from three sides that do not wait for one another:
- Horovod's driver, which reads the host list once a second and blacklists a host whose rank dies (see pacing, hosts);
- the operator, which creates what is missing and never deletes or updates (see roles, leaving, launchers);
- the user, who edits the size at any time, also back.
"""

from __future__ import annotations

from mpijob_elastic.decide import (
    config_map,
    disruption,
    drain,
    handover,
    launcher_recreate,
    launcher_refresh,
    notices,
    pod_group,
    roles,
    scale_selector,
    scale_timeout,
    suspicious_success,
)
from mpijob_elastic.decide.actions import Action, DeleteWorkers, Plan, ProbeWorkers
from mpijob_elastic.model.job import Config, JobView, LauncherPhase, Role

__all__ = ["decide"]


def decide(view: JobView, *, now: float) -> Plan:
    """What to do for this job at time `now` (seconds since the epoch)."""
    if view.deleting:
        return Plan()
    if why := handover.reason(view, now=now):
        return handover.farewell(view, why)
    if view.finished:
        return _finish(view, now=now)
    if view.launcher and view.launcher.phase is LauncherPhase.FINISHED:
        return Plan()  # the operator will say within a moment whether the job has ended or begins anew
    if view.config is None or view.role is None or not (view.workers or view.launcher):
        return Plan()  # the operator creates them first; pods that another operator made are not seen at all
    return _steps(view, view.config, view.role, now=now)


def _steps(view: JobView, config: Config, role: Role, *, now: float) -> Plan:
    actions: list[Action | None] = []
    wakes: list[float | None] = []

    actions.append(roles.grow(view, role))
    actions.append(pod_group.lower(view))
    change, wake = config_map.write(view, config, now=now)
    actions.append(change)
    wakes += [wake, disruption.wake_at(view, now=now)]
    if change is None:  # everything below relies on what is published now
        actions.append(launcher_refresh.refresh(view, now=now))
        recreated, wake = launcher_recreate.recreate(view, config, now=now)
        actions.append(recreated)
        wakes.append(wake)
        gone = drain.removals(view, now=now)
        actions.append(DeleteWorkers(removals=gone.removals) if gone.removals else None)
        actions.append(ProbeWorkers(workers=gone.probes) if gone.probes else None)
        wakes.append(gone.wake_at)
        actions.append(roles.shrink(view, role))
        told, wake = notices.tell(view, now=now)
        actions.append(told)
        wakes.append(wake)
        actions.append(scale_selector.restore(view))
        back, wake = scale_timeout.roll_back(view, now=now)
        actions.append(back)
        wakes.append(wake)
    return _plan(actions, wakes)


def _finish(view: JobView, *, now: float) -> Plan:
    gone = drain.removals(view, now=now)
    return _plan(
        [DeleteWorkers(removals=gone.removals) if gone.removals else None, suspicious_success.tell(view, now=now)], []
    )


def _plan(actions: list[Action | None], wakes: list[float | None]) -> Plan:
    return Plan(
        actions=tuple(action for action in actions if action is not None),
        wake_at=min((wake for wake in wakes if wake is not None), default=None),
    )
