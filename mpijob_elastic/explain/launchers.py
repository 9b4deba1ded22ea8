"""Causes in the launcher: without one that runs and sees the host list, no worker trains."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import disruption, launcher_refresh
from mpijob_elastic.explain import pods
from mpijob_elastic.explain.cases import Case, first, known
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Finding, Level, kubectl
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView, Launcher, LauncherPhase


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[Finding]:
    """What keeps it from starting, or from seeing the list."""
    launcher = view.launcher
    if launcher is None:
        said = "there is no launcher: the operator creates it after the workers"
        step = kubectl(view, "describe mpijob", view.name)
        yield Finding(cause="no-launcher", says=said, next_step=step, level=Level.WAITING)
    elif launcher.phase is LauncherPhase.DELIVERING:
        yield _delivering(view, launcher, now=now)
    elif launcher.phase is LauncherPhase.WAITING:
        yield _not_started(view, facts, launcher, now=now)
    elif launcher.phase is LauncherPhase.FINISHED:
        said = f"{launcher.ref.name} has ended; the operator says within seconds whether the job has"
        step = kubectl(view, "logs", launcher.ref.name)
        yield Finding(cause="launcher-ended", says=said, next_step=step, level=Level.WAITING)
    elif view.elastic and not launcher_refresh.sees_hosts(view):
        yield _blind(view, launcher)
    yield from _disrupted(view, facts)


def _delivering(view: JobView, launcher: Launcher, *, now: float) -> Finding:
    """[operator] kubectl-delivery waits until each pod of the hostfile has been seen Running."""
    listed = [line.split(" ")[0] for line in (view.config.hostfile if view.config else "").splitlines()]
    running = {worker.name for worker in view.workers if worker.running}
    waits = [name for name in listed if name not in running]
    since = launcher.delivering_since
    age = f" for {durations.render(round(max(0.0, now - since)))}" if since else ""
    what = f"until {', '.join(waits[:8])} run" if waits else "a moment more: every pod of its hostfile runs"
    return Finding(
        cause="launcher-init",
        says=f"{launcher.ref.name} waits in its init container{age} {what}",
        next_step=kubectl(view, "describe pod", waits[0] if waits else launcher.ref.name),
        level=Level.WAITING,
    )


def _not_started(view: JobView, facts: Facts, launcher: Launcher, *, now: float) -> Finding:
    case = Case(known=known(view, facts, now=now), name=launcher.ref.name, worker=None)
    found = first((pods.unscheduled, pods.stuck), case)
    step = kubectl(view, "describe pod", launcher.ref.name)
    if found is None:
        said = f"{launcher.ref.name} has not started yet"
        return Finding(cause="launcher-starting", says=said, next_step=step, level=Level.WAITING)
    return Finding(cause="launcher-stuck", says=f"{launcher.ref.name}: {found.says}", next_step=found.next_step)


def _disrupted(view: JobView, facts: Facts) -> Iterator[Finding]:
    launcher = view.launcher
    if launcher is None or launcher.deleting or not view.elastic:
        return
    if why := launcher.disruption or facts.threats.get(launcher.ref.name, ""):
        said = f"{launcher.ref.name} is about to be taken away ({why}); {disruption.KEEP_LAUNCHER}"
        yield Finding(cause="launcher-disrupted", says=said, next_step=kubectl(view, "edit mpijob", view.name))


def _blind(view: JobView, launcher: Launcher) -> Finding:
    return Finding(
        cause="blind-launcher",
        says=f"{launcher.ref.name} started without {names.DISCOVER_HOSTS_PATH}, before mpijob-elastic or while its "
        "webhook was away, so the running job cannot change its size; a new launcher can (training starts again from "
        "its last checkpoint)",
        next_step=kubectl(view, "delete pod", launcher.ref.name),
    )
