"""Simulate the writes of a plan: the objects of a job as the API server has them afterwards.

`apply` does so in a world where nothing else ever happens: pods vanish as soon as they are deleted and the operator
sleeps, so a plan waits for time alone. The model checker has a world of its own, where a pod takes its time to go and
the API server may refuse; it takes the Role and the ConfigMap from here.
"""

from collections.abc import Iterator
from dataclasses import replace

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    Action,
    DeleteJob,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    EndLauncher,
    Fill,
    Look,
    LowerPodGroup,
    MakePodGroup,
    ProbeWorkers,
    RefreshLauncher,
    ReleaseWorker,
    RollBack,
    TellUser,
    TunePodGroup,
    Ungate,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model import eviction, memory_text
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import Config, JobView, Launcher, LauncherPhase, PodGroup, Probe, Role, Worker


def apply(view: JobView, action: Action | Look, *, now: float) -> JobView:
    """Return the view after an action; a look finds nothing but the main process."""
    match action:
        case WriteRole() if view.role:
            view = replace(view, role=grant(view.role, action))
        case WriteConfig():
            view = _publish(view, action)
        case ProbeWorkers():
            view = _look(view, {worker.name for worker in action.workers}, told=action.drained, now=now)
        case DeleteWorkers() | ReleaseWorker():
            view = replace(view, workers=tuple(_workers(view, action)))
        case RefreshLauncher() | EndExecs() | EndLauncher() | DeleteLauncher() if view.launcher:
            view = replace(view, launcher=_launcher(view.launcher, action, now=now))
        case TellUser():
            view = replace(view, notices=action.text)
        case MakePodGroup() | LowerPodGroup() | TunePodGroup() | RollBack() | Fill():
            view = _set_size(view, action)
        case Ungate():
            view = _ungate(view, action)
        case WriteSelector() | DeleteJob():
            is_over = isinstance(action, DeleteJob)
            view = replace(view, deleting=True) if is_over else replace(view, selector_due=False)
    return view


def _workers(view: JobView, action: DeleteWorkers | ReleaseWorker) -> Iterator[Worker]:
    gone = {removal.worker.name for removal in action.removals} if isinstance(action, DeleteWorkers) else set()
    for one in view.workers:
        if isinstance(action, ReleaseWorker) and one.ref == action.worker.ref:
            yield replace(one, eviction=eviction.parse(action.mark))
        elif one.name not in gone:
            yield one


def _launcher(
    launcher: Launcher, action: RefreshLauncher | EndExecs | EndLauncher | DeleteLauncher, *, now: float
) -> Launcher | None:
    match action:
        case RefreshLauncher():
            return replace(launcher, refreshed=action.digest)
        case EndExecs():
            left = tuple(found for found in launcher.held.frozen if found not in action.execs)
            return replace(launcher, held=replace(launcher.held, frozen=left, tried_at=now))
        case EndLauncher():
            return replace(launcher, phase=LauncherPhase.FINISHED)
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


def _ungate(view: JobView, action: Ungate) -> JobView:
    kept = {gated.ref.name: gated.kept for gated in action.pods}
    workers = tuple(replace(one, gates=kept.get(one.name, one.gates)) for one in view.workers)
    launcher = view.launcher and replace(view.launcher, gates=kept.get(view.launcher.ref.name, view.launcher.gates))
    return replace(view, workers=workers, launcher=launcher)


def _set_size(view: JobView, action: MakePodGroup | LowerPodGroup | TunePodGroup | RollBack | Fill) -> JobView:
    if isinstance(action, RollBack | Fill):
        return replace(view, replicas=action.after)
    return replace(view, pod_group=_pod_group(view.pod_group, action))


def _pod_group(group: PodGroup | None, action: MakePodGroup | LowerPodGroup | TunePodGroup) -> PodGroup:
    if isinstance(action, MakePodGroup):
        asked = action.gang
        made = PodGroup(ref=action.job, min_member=action.min_member, queue=asked.queue or "default")
        return replace(made, annotations=asked.annotations)
    assert group is not None
    if isinstance(action, LowerPodGroup):
        return replace(group, min_member=action.after)
    return replace(group, queue=action.queue, annotations={**group.annotations, **action.annotations})


def _look(view: JobView, looked_into: set[str], *, told: bool, now: float) -> JobView:
    workers = [
        replace(worker, probe=replace(worker.probe, idle_at=now, asked_at=now, told=told))
        if worker.name in looked_into
        else worker
        for worker in view.workers
    ]
    return replace(view, workers=tuple(workers))
