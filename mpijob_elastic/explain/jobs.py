"""Findings on the job as a whole and on its launcher, and so on each of its workers."""

from collections.abc import Iterator

from msgspec.structs import replace

from mpijob_elastic import names
from mpijob_elastic.decide import disruption, frozen_execs, notices
from mpijob_elastic.explain import pods
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, fine, waiting, wrong
from mpijob_elastic.model import durations, phrases
from mpijob_elastic.model.job import Launcher, LauncherPhase

# The operator writes a job's status within a second (seconds).
SLOW = 30.0


def over(job: Case) -> Finding | None:
    """Return why no worker needs an explanation, or None."""
    if job.view.finished:
        logs = job.kubectl("logs", job.launcher)
        waited = notices.after_change(job.view)
        if waited is not None:
            return wrong("ended-after-resize", notices.ended_after_change(job.name, waited), next_step=logs)
        return waiting("ended", f"{job.name} has ended: {job.facts.state}", next_step=logs)
    if job.view.deleting:
        return waiting("deleted", f"{job.name} is being deleted", next_step=job.on_job("get", "-o yaml"))
    if why := job.state.foreign:
        said = f"{job.name} is managed by another operator, so mpijob-elastic leaves it alone: {why}"
        return wrong("foreign", said, next_step=job.on_job("describe"))
    return None


def findings(job: Case) -> Iterator[Finding]:
    """Yield every finding that holds, in the order in which a job comes to train."""
    facts = job.facts
    if not job.view.reported:
        age = job.state.now - facts.created_at
        said = (
            f"{job.name} was created {durations.render(round(age))} ago, and the operator has not reported its status"
        )
        yield (wrong if age > SLOW else waiting)("no-operator", said, next_step=pods.OPERATOR)
    if facts.controller:
        step = f"kubectl -n {facts.home} get pods,leases"
        yield wrong("no-controller", f"{facts.controller}, so {job.name} keeps its present size", next_step=step)
    if facts.webhook:
        said = f"{facts.webhook}, so a launcher created now gets no {names.KEY_DISCOVER_HOSTS}"
        yield wrong("no-webhook", said, next_step=f"kubectl -n {facts.home} get pods,endpoints")
    if not job.view.elastic:
        said = (
            f"{job.name} is not elastic: its launcher names neither {names.KEY_DISCOVER_HOSTS} nor "
            f'--host-discovery-script, or the job is annotated {names.ENABLED}="false"'
        )
        yield fine("not-elastic", said)
    yield from _launcher(job)
    slots = len(job.view.published_pods) * job.view.slots
    needed = (facts.launch and facts.launch.effective_min_np) or 0
    if job.view.elastic and job.view.driver_running and slots < needed:
        said = (
            f"{job.launcher} waits for {needed} slots (horovodrun's --min-np, or -np); published workers have {slots}"
        )
        yield wrong("below-min-np", said, next_step=job.on_job("edit"))
    if facts.frozen:
        by_itself = not facts.controller and frozen_execs.endable(job.view, facts.frozen) == facts.frozen
        end = "The controller ends it within a minute" if by_itself else "End it so that the driver continues"
        said = f"{frozen_execs.words(job.view, facts.frozen)}. {end}"
        yield wrong("frozen-exec", said, next_step=frozen_execs.remedy(job.view, facts.frozen))


def _launcher(job: Case) -> Iterator[Finding]:
    """Yield what keeps the launcher from starting or from seeing the list: without it no worker trains."""
    launcher, name = job.view.launcher, job.launcher
    if launcher is None:
        said = f"{name} does not exist yet: the operator creates it after the workers"
        yield waiting("no-launcher", said, next_step=job.on_job("describe"))
    elif launcher.phase is LauncherPhase.DELIVERING:
        yield _delivering(job, launcher)
    elif launcher.phase is LauncherPhase.WAITING:
        pod = job.of(name)
        if stuck := next(pods.startup(pod), None):
            yield replace(stuck.about(name), cause="launcher-stuck")
        else:
            yield waiting("launcher-starting", f"{name} has not started yet", next_step=pod.describe)
    elif launcher.phase is LauncherPhase.FINISHED:
        said = f"{name} has ended; within seconds the operator reports whether the job has"
        yield waiting("launcher-ended", said, next_step=job.kubectl("logs", name))
    elif job.view.elastic and not job.state.launcher.sees_hosts:
        said = (
            f"{name} started without {names.DISCOVER_HOSTS_PATH}: before mpijob-elastic was installed, or while its "
            "webhook was down. The running job cannot change its size until it has a new launcher; training then "
            "restarts from its last checkpoint"
        )
        yield wrong("blind-launcher", said, next_step=job.kubectl("delete pod", name))
    why = launcher and (launcher.disruption or job.facts.threats.get(name, ""))
    if launcher and why and job.view.elastic and not launcher.deleting:
        said = f"{name} is about to be deleted ({why}): {disruption.KEEP_LAUNCHER}"
        yield wrong("launcher-disrupted", said, next_step=job.on_job("edit"))


def _delivering(job: Case, launcher: Launcher) -> Finding:
    """[operator] kubectl-delivery waits until each pod of the hostfile has been seen Running."""
    listed = [line.split(" ")[0] for line in (job.view.config.hostfile if job.view.config else "").splitlines()]
    running = {worker.name for worker in job.view.workers if worker.running}
    waits = [name for name in listed if name not in running]
    since = launcher.delivering_since
    age = f" for {durations.render(round(max(0.0, job.state.now - since)))}" if since else ""
    until = (
        f"until these pods run: {phrases.listed(waits)}" if waits else "a moment more: every pod of its hostfile runs"
    )
    said = f"{job.launcher} waits in its init container{age} {until}"
    return waiting("launcher-init", said, next_step=job.of(waits[0] if waits else job.launcher).describe)
