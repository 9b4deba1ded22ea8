"""What holds for the job as a whole, and so for each of its workers."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import frozen_execs, handover, suspicious_success
from mpijob_elastic.explain import launchers
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Finding, Level, kubectl
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView

# The operator writes a job's status within a second (seconds).
SLOW = 30.0
OPERATOR = "kubectl get pods -A | grep mpi-operator"


def over(view: JobView, facts: Facts, *, now: float) -> tuple[Finding, ...]:
    """Why there is nothing to explain of workers; nothing where there is."""
    if view.finished:
        return (_ended(view, facts),)
    if view.deleting:
        shown = kubectl(view, "get mpijob", view.name, "-o yaml")
        return (Finding(cause="deleted", says="the job is being deleted", next_step=shown, level=Level.WAITING),)
    if why := handover.reason(view, now=now):
        said = f"another operator looks after this job, and mpijob-elastic leaves it alone: {why}"
        return (Finding(cause="foreign", says=said, next_step=kubectl(view, "describe mpijob", view.name)),)
    return ()


def _ended(view: JobView, facts: Facts) -> Finding:
    logs = kubectl(view, "logs", names.launcher(view.name))
    waited = suspicious_success.after_change(view)
    if waited is not None:
        return Finding(cause="ended-after-resize", says=suspicious_success.words(waited), next_step=logs)
    return Finding(cause="ended", says=f"the job has ended: {facts.state}", next_step=logs, level=Level.WAITING)


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[Finding]:
    """Everything that holds, in the order in which a job comes to train."""
    yield from _unreported(view, facts, now=now)
    yield from _trouble(facts)
    yield from _inelastic(view)
    yield from launchers.findings(view, facts, now=now)
    yield from _too_few(view, facts)
    yield from _frozen(view, facts)


def _unreported(view: JobView, facts: Facts, *, now: float) -> Iterator[Finding]:
    if view.reported:
        return
    age = now - facts.created_at
    said = f"the operator has said nothing of this job since it was created {durations.render(round(age))} ago"
    level = Level.WRONG if age > SLOW else Level.WAITING
    yield Finding(cause="no-operator", says=said, next_step=OPERATOR, level=level)


def _trouble(facts: Facts) -> Iterator[Finding]:
    if facts.controller:
        said = f"{facts.controller}, so the job keeps the size it has"
        yield Finding(cause="no-controller", says=said, next_step=f"kubectl -n {facts.home} get pods,leases")
    if facts.webhook:
        said = f"{facts.webhook}, so a launcher that is created now has no {names.KEY_DISCOVER_HOSTS}"
        yield Finding(cause="no-webhook", says=said, next_step=f"kubectl -n {facts.home} get pods,endpoints")


def _inelastic(view: JobView) -> Iterator[Finding]:
    if not view.elastic:
        said = (
            f"the job is not elastic: its launcher names neither {names.KEY_DISCOVER_HOSTS} nor "
            f'--host-discovery-script, or it is annotated {names.ENABLED}="false"'
        )
        yield Finding(cause="not-elastic", says=said, level=Level.FINE)


def _too_few(view: JobView, facts: Facts) -> Iterator[Finding]:
    fewest = facts.launch.effective_min_np if facts.launch else None
    slots = len(view.published_pods) * view.slots
    if view.elastic and view.driver_running and fewest is not None and slots < fewest:
        said = f"horovodrun waits for {fewest} slots (--min-np, or -np), and the published workers have {slots}"
        yield Finding(cause="below-min-np", says=said, next_step=kubectl(view, "edit mpijob", view.name))


def _frozen(view: JobView, facts: Facts) -> Iterator[Finding]:
    if facts.frozen:
        by_itself = not facts.controller and frozen_execs.endable(view, facts.frozen) == facts.frozen
        end = "the controller ends it within a minute" if by_itself else "ending it lets the driver go on"
        said = f"{frozen_execs.words(view, facts.frozen)}; {end}"
        yield Finding(cause="frozen-exec", says=said, next_step=frozen_execs.remedy(view, facts.frozen))
