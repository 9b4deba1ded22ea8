"""Findings on the job as a whole, and so on each of its workers."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import frozen_execs, handover, suspicious_success
from mpijob_elastic.explain import launchers
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Finding, fine, kubectl, waiting, wrong
from mpijob_elastic.explain.pods import OPERATOR
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView

# The operator writes a job's status within a second (seconds).
SLOW = 30.0


def over(view: JobView, facts: Facts, *, now: float) -> Finding | None:
    """Return why no worker needs an explanation, or None."""
    if view.finished:
        logs = kubectl(view, "logs", names.launcher(view.name))
        waited = suspicious_success.after_change(view)
        if waited is not None:
            return wrong("ended-after-resize", suspicious_success.words(waited), step=logs)
        return waiting("ended", f"{view.name} has ended: {facts.state}", step=logs)
    if view.deleting:
        return waiting(
            "deleted", f"{view.name} is being deleted", step=kubectl(view, "get mpijob", view.name, "-o yaml")
        )
    if why := handover.reason(view, now=now):
        said = f"{view.name} is managed by another operator, so mpijob-elastic leaves it alone: {why}"
        return wrong("foreign", said, step=kubectl(view, "describe mpijob", view.name))
    return None


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[Finding]:
    """Yield every finding that holds, in the order in which a job comes to train."""
    if not view.reported:
        age = now - facts.created_at
        said = (
            f"{view.name} was created {durations.render(round(age))} ago, and the operator has not reported its status"
        )
        yield (wrong if age > SLOW else waiting)("no-operator", said, step=OPERATOR)
    if facts.controller:
        step = f"kubectl -n {facts.home} get pods,leases"
        yield wrong("no-controller", f"{facts.controller}, so {view.name} keeps its present size", step=step)
    if facts.webhook:
        said = f"{facts.webhook}, so a launcher created now gets no {names.KEY_DISCOVER_HOSTS}"
        yield wrong("no-webhook", said, step=f"kubectl -n {facts.home} get pods,endpoints")
    if not view.elastic:
        said = (
            f"{view.name} is not elastic: its launcher names neither {names.KEY_DISCOVER_HOSTS} nor "
            f'--host-discovery-script, or the job is annotated {names.ENABLED}="false"'
        )
        yield fine("not-elastic", said)
    yield from launchers.findings(view, facts, now=now)
    yield from _too_few(view, facts)
    yield from _frozen(view, facts)


def _too_few(view: JobView, facts: Facts) -> Iterator[Finding]:
    needed = facts.launch.effective_min_np if facts.launch else None
    slots = len(view.published_pods) * view.slots
    if view.elastic and view.driver_running and needed is not None and slots < needed:
        said = (
            f"{names.launcher(view.name)} waits for {needed} slots (horovodrun's --min-np, or -np), but the published "
            f"workers have {slots}"
        )
        yield wrong("below-min-np", said, step=kubectl(view, "edit mpijob", view.name))


def _frozen(view: JobView, facts: Facts) -> Iterator[Finding]:
    if facts.frozen:
        by_itself = not facts.controller and frozen_execs.endable(view, facts.frozen) == facts.frozen
        end = "the controller ends it within a minute" if by_itself else "end it so that the driver continues"
        said = f"{frozen_execs.words(view, facts.frozen)}; {end}"
        yield wrong("frozen-exec", said, step=frozen_execs.remedy(view, facts.frozen))
