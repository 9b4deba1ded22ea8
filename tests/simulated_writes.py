"""What a plan's actions change in a view, in a world where nothing else ever happens.

Pods vanish as soon as they are deleted and the operator sleeps, so what a plan waits for is time alone.
"""

from __future__ import annotations

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
from mpijob_elastic.model.job import JobView, Launcher, Probe


def apply(view: JobView, action: Action | Look, *, now: float) -> JobView:
    """The view after that action; a look finds nothing but the main process."""
    match action:
        case WriteRole() if view.role:
            view = replace(view, role=replace(view.role, exec_names=action.exec_names))
        case WriteConfig():
            view = _publish(view, action)
        case ProbeWorkers():
            view = _look(view, {one.name for one in action.workers}, now=now)
        case DeleteWorkers():
            gone = {removal.worker.name for removal in action.removals}
            view = replace(view, workers=tuple(one for one in view.workers if one.name not in gone))
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
    """The view once nothing is due any more, the actions on the way, and when that was."""
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


def _publish(view: JobView, action: WriteConfig) -> JobView:
    assert view.config is not None
    config = replace(
        view.config,
        published=parse_script(action.script),
        script=action.script,
        hostfile=action.hostfile,
        memory=memory_text.parse(memory_text.render(action.memory)),
        kubexec=view.config.kubexec if action.kubexec is None else action.kubexec,
    )
    assert config.memory == action.memory
    # What was seen of a worker counts since it left, or came under its name; another occasion starts anew.
    same = {one.name for one in view.workers if view.config.occasion(one.name) == config.occasion(one.name)}
    workers = [one if one.name in same else replace(one, probe=Probe()) for one in view.workers]
    return replace(view, config=config, workers=tuple(workers))


def _set_size(view: JobView, action: LowerPodGroup | RollBack) -> JobView:
    if isinstance(action, RollBack):
        return replace(view, replicas=action.replicas)
    assert view.pod_group is not None
    return replace(view, pod_group=replace(view.pod_group, min_member=action.min_member))


def _look(view: JobView, looked_into: set[str], *, now: float) -> JobView:
    workers = [
        replace(one, probe=replace(one.probe, idle_at=now, asked_at=now)) if one.name in looked_into else one
        for one in view.workers
    ]
    return replace(view, workers=tuple(workers))
