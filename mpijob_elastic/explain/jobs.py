"""Findings on the job as a whole, and so on each of its workers."""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import config_map, handover, notices
from mpijob_elastic.decide.notices import REFRESH_REFUSED
from mpijob_elastic.explain import launchers, stalled_ranks
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, fine, waiting, wrong
from mpijob_elastic.explain.pods import OPERATOR
from mpijob_elastic.model import durations

# The operator writes a job's status within a second (seconds).
SLOW = 30.0
# So long after a change of size it may still make a worker of the former size, which it began before (seconds).
UNDER_WAY = 5.0
# In the operator's own manifest.
_RESTART = "kubectl -n mpi-operator rollout restart deployment/mpi-operator"


def over(job: Case) -> Finding | None:
    """Return why no worker needs an explanation, or None."""
    if job.view.facts.finished:
        if note := notices.suspicious_success(job.view):
            return job.noted(note)
        said = f"{job.name} has ended: {job.facts.state}"
        return waiting("ended", said, next_step=job.kubectl("logs", job.launcher))
    if job.view.facts.deleting:
        return waiting("deleted", f"{job.name} is being deleted", next_step=job.on_job("get", "-o yaml"))
    if why := job.state.foreign:
        said = f"{job.name} is managed by another operator, so mpijob-elastic leaves it alone: {why}"
        said = f"{said}. {handover.outlook(job.view)}"
        return wrong("foreign", said, next_step=job.on_job("describe"))
    if not job.view.facts.size_known:
        return job.noted(notices.size_unknown(job.view))
    return None


def findings(job: Case) -> Iterator[Finding]:
    """Yield the notices, and then every other finding that holds, in the order in which a job comes to train."""
    facts, notes = job.facts, list(notices.of_job(job.state))
    yield from map(job.noted, notes)
    if not job.view.facts.reported:
        age = job.state.now - facts.created_at
        said = (
            f"{job.name} was created {durations.render(round(age))} ago, and the operator has not reported its status"
        )
        yield (wrong if age > SLOW else waiting)("no-operator", said, next_step=OPERATOR)
    yield from _former_size(job)
    if facts.controller:
        step = f"kubectl -n {facts.home} get pods,leases"
        yield wrong("no-controller", f"{facts.controller}, so {job.name} keeps its present size", next_step=step)
    if facts.webhook:
        said = f"{facts.webhook}, so a launcher created now gets no {names.KEY_DISCOVER_HOSTS}"
        yield wrong("no-webhook", said, next_step=f"kubectl -n {facts.home} get pods,endpoints")
    yield from _edited(job)
    if not (job.view.elastic or job.view.blind or any(note.reason == notices.NOT_ELASTIC for note in notes)):
        said = (
            f"{job.name} is not elastic: its launcher names neither {names.KEY_DISCOVER_HOSTS} nor "
            f'--host-discovery-script, or the job is annotated {names.ENABLED}="false"'
        )
        yield fine("not-elastic", said)
    refused = next(
        (line for line in job.view.facts.notices.splitlines() if line.startswith(f"{REFRESH_REFUSED}: ")), ""
    )
    if refused and job.state.launcher.refresh_due:
        yield wrong("refresh-refused", refused.partition(": ")[2], next_step=job.controller_log)
    yield from launchers.findings(job)
    slots = len(job.view.published_pods) * job.view.facts.slots
    needed = (facts.launch and facts.launch.effective_min_np) or 0
    if job.view.elastic and job.view.driver_running and slots < needed:
        said = (
            f"{job.launcher} waits for {needed} slots (horovodrun's --min-np, or -np); published workers have {slots}"
        )
        yield wrong("below-min-np", said, next_step=job.on_job("edit"))
    yield from stalled_ranks.finding(job)


def _former_size(job: Case) -> Iterator[Finding]:
    """Yield that the operator has been making workers since before it could know the size, and still does.

    [operator] It makes all missing workers of a size in one go, at its client's limit of 5 a second.
    """
    since = job.facts.resized_at
    at, pod = max(((at, pod) for pod, at in job.facts.surplus.items()), default=(0.0, ""))
    if since and at > since + UNDER_WAY and job.state.now - at < SLOW:
        after = f"{durations.render(round(at - since))} after the size became {job.view.replicas}"
        said = f"mpi-operator is still making workers of a former size of {job.name}: {pod} was created {after}"
        said += ". Other jobs wait meanwhile; a restart of mpi-operator ends it"
        yield wrong("former-size", said, next_step=_RESTART)


def _edited(job: Case) -> Iterator[Finding]:
    config, at = job.view.config, job.state.mends_at
    contested, _ = handover.contested(job.state)
    if contested:
        yield job.noted(contested)
    elif config and (job.state.edited or at) and config_map.write(job.state, config)[0]:
        when = f"in {durations.render(at - job.state.now)}" if at > job.state.now else "at once"
        said = f"{job.name}: {handover.changed(config)}; the controller puts it right {when}"
        step = job.kubectl("get configmap", names.config_map(job.name), "--show-managed-fields -o yaml")
        yield waiting("edited", said, next_step=step)
