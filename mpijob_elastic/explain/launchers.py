"""Causes in the launcher: no worker trains without a launcher that runs and sees the host list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import disruption, launcher_refresh, phrases
from mpijob_elastic.explain import case, pods
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Finding, kubectl, waiting, wrong
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView, Launcher, LauncherPhase


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[Finding]:
    """Yield what keeps the launcher from starting or from seeing the list."""
    launcher, name = view.launcher, names.launcher(view.name)
    if launcher is None:
        said = f"{name} does not exist yet: the operator creates it after the workers"
        yield waiting("no-launcher", said, step=kubectl(view, "describe mpijob", view.name))
    elif launcher.phase is LauncherPhase.DELIVERING:
        yield _delivering(view, launcher, now=now)
    elif launcher.phase is LauncherPhase.WAITING:
        yield _not_started(view, facts, now=now)
    elif launcher.phase is LauncherPhase.FINISHED:
        said = f"{name} has ended; within seconds the operator reports whether the job has"
        yield waiting("launcher-ended", said, step=kubectl(view, "logs", name))
    elif view.elastic and not launcher_refresh.sees_hosts(view):
        said = (
            f"{name} started without {names.DISCOVER_HOSTS_PATH}: before mpijob-elastic was installed, or while its "
            "webhook was down. The running job cannot change its size until it has a new launcher; training then "
            "restarts from its last checkpoint"
        )
        yield wrong("blind-launcher", said, step=kubectl(view, "delete pod", name))
    why = launcher and (launcher.disruption or facts.threats.get(name, ""))
    if launcher and why and view.elastic and not launcher.deleting:
        said = f"{name} is about to be taken away ({why}); {disruption.KEEP_LAUNCHER}"
        yield wrong("launcher-disrupted", said, step=kubectl(view, "edit mpijob", view.name))


def _delivering(view: JobView, launcher: Launcher, *, now: float) -> Finding:
    """[operator] kubectl-delivery waits until each pod of the hostfile has been seen Running."""
    listed = [line.split(" ")[0] for line in (view.config.hostfile if view.config else "").splitlines()]
    running = {worker.name for worker in view.workers if worker.running}
    waits = [name for name in listed if name not in running]
    since = launcher.delivering_since
    age = f" for {durations.render(round(max(0.0, now - since)))}" if since else ""
    what = (
        f"until these pods run: {phrases.listed(waits)}" if waits else "a moment more: every pod of its hostfile runs"
    )
    said = f"{launcher.ref.name} waits in its init container{age} {what}"
    return waiting("launcher-init", said, step=kubectl(view, "describe pod", waits[0] if waits else launcher.ref.name))


def _not_started(view: JobView, facts: Facts, *, now: float) -> Finding:
    pod = replace(case.of_job(view, facts, now=now), name=names.launcher(view.name))
    found = case.first((pods.unscheduled, pods.stuck), pod)
    if found is None:
        return waiting("launcher-starting", f"{pod.name} has not started yet", step=pod.describe)
    return msgspec.structs.replace(found, cause="launcher-stuck")
