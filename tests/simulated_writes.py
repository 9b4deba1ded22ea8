"""Simulate the writes of a plan: the objects of a job as the API server has them afterwards.

`apply` does so in a world where nothing else ever happens: pods vanish as soon as they are deleted and the operator
sleeps, so a plan waits for time alone. The model checker has a world of its own, where a pod takes its time to go and
the API server may refuse; it takes the Role and the ConfigMap from here.
"""

from dataclasses import replace

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    Look,
    LowerPodGroup,
    ProbeWorkers,
    RefreshLauncher,
    RollBack,
    TellUser,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model import memory_text
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import Config, JobView, Launcher, Probe, Role


def apply(view: JobView, action: Action | Look, *, now: float) -> JobView:
    """Return the view after an action; a look finds nothing but the main process."""
    match action:
        case WriteRole() if view.role:
            view = replace(view, role=grant(view.role, action))
        case WriteConfig():
            view = _publish(view, action)
        case ProbeWorkers():
            view = _look(view, {worker.name for worker in action.workers}, now=now)
        case DeleteWorkers():
            gone = {removal.worker.name for removal in action.removals}
            view = replace(view, workers=tuple(worker for worker in view.workers if worker.name not in gone))
        case RefreshLauncher() | EndExecs() | DeleteLauncher() if view.launcher:
            view = replace(view, launcher=_launcher(view.launcher, action, now=now))
        case TellUser():
            view = replace(view, notices=action.text)
        case LowerPodGroup() | RollBack():
            view = _set_size(view, action)
        case WriteSelector():
            view = replace(view, selector_due=False)
    return view


def _launcher(
    launcher: Launcher, action: RefreshLauncher | EndExecs | DeleteLauncher, *, now: float
) -> Launcher | None:
    match action:
        case RefreshLauncher():
            return replace(launcher, refreshed=action.digest)
        case EndExecs():
            left = tuple(found for found in launcher.held.frozen if found not in action.execs)
            return replace(launcher, held=replace(launcher.held, frozen=left, tried_at=now))
        case DeleteLauncher():
            return None


def run(view: JobView, *, now: float, looks: int = 300) -> tuple[JobView, list[Action], float]:
    """Carry out plans until nothing is due; return the view then, the actions on the way, and the time."""
    done: list[Action] = []
    for _ in range(looks):
        plan = decide(view, now=now)
        probes = [look for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published]
        for action in (*plan.actions, *probes):
            view = apply(view, action, now=now)
        done += plan.actions
        if not plan.actions and not probes and plan.wake_at is None:
            return view, done, now
        if not plan.actions and not probes and plan.wake_at is not None:
            now = plan.wake_at
    raise AssertionError(
        f"still not at rest after {looks} looks; last: {[type(action).__name__ for action in done[-9:]]}"
    )


def grant(role: Role, action: WriteRole) -> Role:
    """Return the Role after this write."""
    return replace(role, exec_names=action.exec_names)


def publish(config: Config, action: WriteConfig) -> Config:
    """Return the ConfigMap after this write, its memory as the next look reads it."""
    memory = memory_text.parse(memory_text.render(action.memory))
    assert memory == action.memory
    return replace(
        config,
        published=parse_script(action.script),
        script=action.script,
        hostfile=action.hostfile,
        memory=memory,
        writer="mpijob-elastic",
        kubexec=config.kubexec if action.kubexec is None else action.kubexec,
    )


def _publish(view: JobView, action: WriteConfig) -> JobView:
    assert view.config is not None
    config = publish(view.config, action)
    # A probe counts for its occasion only: since the worker left, or got its host name.
    same = {pod.name for pod in view.workers if view.config.occasion(pod.name) == config.occasion(pod.name)}
    workers = [worker if worker.name in same else replace(worker, probe=Probe()) for worker in view.workers]
    return replace(view, config=config, workers=tuple(workers), foreign="")  # no other operator lives here


def _set_size(view: JobView, action: LowerPodGroup | RollBack) -> JobView:
    if isinstance(action, RollBack):
        return replace(view, replicas=action.after)
    assert view.pod_group is not None
    return replace(view, pod_group=replace(view.pod_group, min_member=action.after))


def _look(view: JobView, looked_into: set[str], *, now: float) -> JobView:
    workers = [
        replace(worker, probe=replace(worker.probe, idle_at=now, asked_at=now))
        if worker.name in looked_into
        else worker
        for worker in view.workers
    ]
    return replace(view, workers=tuple(workers))
