"""Simulate the writes of a plan: the objects of a job as the API server has them afterwards.

`apply` does so in a world where nothing else ever happens: pods vanish as soon as they are deleted
and the operator sleeps, so a plan waits for time alone. The model checker has a world of its own,
where a pod takes its time to go and the API server may refuse; it takes the Role and the ConfigMap
from here.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    EndLauncher,
    Look,
    LookAtDriver,
    ProbeWorkers,
    RefreshLauncher,
    ReleaseWorker,
    TellUser,
    Ungate,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import Config, JobView, Role, parse_script, script_fingerprint
from mpijob_elastic.model.memory import parse_memory, render_memory
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Probe, Worker
from tests.builders import but
from tests.room_words import rooms

# What is done to a launcher.
OfLauncher = RefreshLauncher | EndExecs | EndLauncher | DeleteLauncher | LookAtDriver


def apply(view: JobView, action: Action | Look, *, now: float) -> JobView:
    """Return the view after an action.

    A look finds nothing but the main process, and elastic.sh on the list that is published.
    """
    match action:
        case WriteRole() if view.role:
            view = but(view, role=grant(view.role, action))
        case WriteConfig():
            view = _publish(view, action)
        case ProbeWorkers():
            view = _look(
                view, {worker.name for worker in action.workers}, told=action.drained, now=now
            )
        case DeleteWorkers() | ReleaseWorker():
            view = but(view, workers=tuple(_workers(view, action)))
        case _ if view.launcher and isinstance(action, OfLauncher):
            view = but(view, launcher=_launcher(view, view.launcher, action, now=now))
        case TellUser():
            view = but(view, notices=action.text)
        case Ungate():
            view = _ungate(view, action)
        case WriteSelector():
            view = but(view, selector_due=False)
    for do in (words.done[type(action)] for words in rooms() if type(action) in words.done):
        view = do(view, action)
    return view


def _workers(view: JobView, action: DeleteWorkers | ReleaseWorker) -> Iterator[Worker]:
    gone = (
        {removal.worker.name for removal in action.removals}
        if isinstance(action, DeleteWorkers)
        else set()
    )
    for one in view.workers:
        if isinstance(action, ReleaseWorker) and one.ref == action.ref:
            yield but(one, marks={action.key: action.text})
        elif one.name not in gone:
            yield one


def _launcher(
    view: JobView, launcher: Launcher, action: OfLauncher, *, now: float
) -> Launcher | None:
    match action:
        case RefreshLauncher():
            return but(launcher, refreshed=action.text)
        case EndExecs():
            left = tuple(found for found in launcher.held.frozen if found not in action.execs)
            return but(launcher, held=but(launcher.held, frozen=left, tried_at=now))
        case EndLauncher():
            return but(launcher, phase=LauncherPhase.FINISHED)
        case LookAtDriver() if view.config and view.config.published:
            listed = view.config.published
            found = Acknowledgement(
                asked_at=now, number=listed.number, busy=frozenset(listed.hosts)
            )
            return but(launcher, acknowledged=found)
        case DeleteLauncher():
            return None
    return launcher


def run(view: JobView, *, now: float, looks: int = 300) -> tuple[JobView, list[Action], float]:
    """Carry out plans until nothing is due; return the view then, the actions on the way, and the time."""
    done: list[Action] = []
    for _ in range(looks):
        plan = decide(view, now=now)
        probes = [
            look
            for look in plan.looks
            if isinstance(look, LookAtDriver)
            or (isinstance(look, ProbeWorkers) and not look.published)
        ]
        due: tuple[Action | Look, ...] = (*plan.actions, *probes)
        for action in due:
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
    return but(role, exec_names=action.exec_names)


def publish(config: Config, action: WriteConfig) -> Config:
    """Return the ConfigMap after this write, its memory as the next look reads it."""
    memory = parse_memory(render_memory(action.memory))
    assert memory == action.memory
    return but(
        config,
        published=parse_script(action.script),
        script=action.script,
        hostfile=action.hostfile,
        memory=memory,
        history=action.annotations.get(names.HISTORY, config.facts.history.decode()).encode(),
        writer="mpijob-elastic",
        kubexec=config.facts.kubexec if action.kubexec is None else action.kubexec,
        elastic=config.facts.elastic
        if action.elastic is None
        else script_fingerprint(action.elastic),
    )


def _publish(view: JobView, action: WriteConfig) -> JobView:
    assert view.config is not None
    config = publish(view.config, action)
    # A probe counts for its occasion only: since the worker left, or got its host name.
    same = {
        pod.name
        for pod in view.workers
        if view.config.occasion(pod.name) == config.occasion(pod.name)
    }
    workers = [
        worker if worker.name in same else but(worker, probe=Probe()) for worker in view.workers
    ]
    return but(
        view, config=config, workers=tuple(workers), foreign=""
    )  # no other operator lives here


def _ungate(view: JobView, action: Ungate) -> JobView:
    kept = {gated.ref.name: gated.kept for gated in action.pods}
    workers = tuple(but(one, gates=kept.get(one.name, one.facts.gates)) for one in view.workers)
    launcher = view.launcher and but(
        view.launcher, gates=kept.get(view.launcher.ref.name, view.launcher.facts.gates)
    )
    return but(view, workers=workers, launcher=launcher)


def _look(view: JobView, looked_into: set[str], *, told: bool, now: float) -> JobView:
    workers = [
        but(worker, probe=but(worker.probe, idle_at=now, asked_at=now, told=told))
        if worker.name in looked_into
        else worker
        for worker in view.workers
    ]
    return but(view, workers=tuple(workers))
