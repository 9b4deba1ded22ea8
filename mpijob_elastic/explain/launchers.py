"""Causes in the launcher: no worker trains without a launcher that runs and sees the host list."""

from collections.abc import Iterator

from msgspec.structs import replace

from mpijob_elastic.explain import pods
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, waiting
from mpijob_elastic.model import durations, phrases
from mpijob_elastic.model.pod import Launcher, LauncherPhase


def findings(job: Case) -> Iterator[Finding]:
    """Yield what keeps the launcher from starting or from seeing the list."""
    launcher, name = job.view.launcher, job.launcher
    if launcher is None:
        event = job.facts.events.get(job.view.name)
        warning = f". Its last warning: {event}" if event else ""
        said = f"{name} does not exist yet: the operator creates it after the workers{warning}"
        yield waiting("no-launcher", said, next_step=job.on_job("describe"))
    elif launcher.phase is LauncherPhase.DELIVERING:
        yield _delivering(job, launcher)
    elif launcher.phase is LauncherPhase.WAITING and job.of(name).held_back:
        turns = filter(None, (one.turn(job.state) for one in job.state.wishes.capabilities))
        if not (job.state.wishes.stop or any(turn.says for turn in turns)):  # else a notice says it
            why = job.state.wishes.held.get(name) or "ranks of the launcher before may still run"
            yield waiting("launcher-held", f"{name} is held back: {why}", next_step=job.controller_log)
    elif launcher.phase is LauncherPhase.WAITING:
        pod = job.of(name)
        if stuck := next(pods.startup(pod), None):
            yield replace(stuck.about(name), cause="launcher-stuck")
        else:
            yield waiting("launcher-starting", f"{name} has not started yet", next_step=pod.describe)
    elif launcher.phase is LauncherPhase.FINISHED:
        said = f"{name} has ended; within seconds the operator reports whether the job has"
        yield waiting("launcher-ended", said, next_step=job.kubectl("logs", name))


def _delivering(job: Case, launcher: Launcher) -> Finding:
    """[operator] kubectl-delivery waits until each pod of the hostfile has been seen Running."""
    listed = [line.split(" ")[0] for line in (job.view.config.facts.hostfile if job.view.config else "").splitlines()]
    running = {worker.name for worker in job.view.workers if worker.running}
    waits = [name for name in listed if name not in running]
    since = launcher.facts.delivering_since
    age = f" for {durations.render(round(max(0.0, job.state.now - since)))}" if since else ""
    until = (
        f" until these pods run: {phrases.listed(waits)}"
        if waits
        else ": every pod of its hostfile runs, so it starts in a moment"
    )
    said = f"{job.launcher} waits in its init container{age}{until}"
    return waiting("launcher-init", said, next_step=job.of(waits[0] if waits else job.launcher).describe)
