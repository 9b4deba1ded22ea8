"""Workers that the size does not ask for (any more)."""

from __future__ import annotations

from mpijob_elastic.decide import drain, history
from mpijob_elastic.explain.cases import Case
from mpijob_elastic.explain.facts import Look
from mpijob_elastic.explain.findings import Finding, Level
from mpijob_elastic.model import durations


def kept(case: Case) -> Finding | None:
    """The job is not elastic, so it stays."""
    if case.view.elastic:
        return None
    return Finding(
        cause="kept",
        says=f"{case.view.replicas} workers are asked for, but this job is not elastic, so it keeps running",
        level=Level.FINE,
    )


def deleted(case: Case) -> Finding | None:
    """It is on its way out."""
    if case.worker is None or not case.worker.deleting:
        return None
    return Finding(cause="leaving", says="is being deleted", level=Level.WAITING)


def listed(case: Case) -> Finding | None:
    """It is too many, but still in the list."""
    if not case.published:
        return None
    step = case.known.following
    if step.wake_at is not None and case.name in step.hosts:
        when = f"in {durations.render(max(0.0, step.wake_at - case.now))}, for an earlier change must settle"
    else:
        when = "next"
    return Finding(cause="leaving", says=f"is too many; it leaves discover_hosts.sh {when}", level=Level.WAITING)


def drains(case: Case) -> Finding | None:
    """It is out of the list, and waits to be empty."""
    if case.worker is None or case.worker.unscheduled:
        return None
    left = history.left(case.view, case.worker, now=case.now)
    if left is None:
        return None
    since = durations.render(round(max(0.0, case.now - left.at)))
    began = drain.drain_began(case.view, left, now=case.now)
    if began is None:
        until = "the launcher has yet to be told"
    else:
        until = f"at most {durations.render(max(0, round(began + case.view.policy.drain_timeout - case.now)))} more"
    return Finding(
        cause="draining",
        says=f"leaves: drains for {since}, {until}{_still(case.look)}",
        level=Level.WAITING,
    )


def _still(look: Look | None) -> str:
    if look is None or look.error:
        return ""
    return f"; {', '.join(look.processes)} still runs in it" if look.processes else "; nothing runs in it any more"


def unused(_: Case) -> Finding:
    """It never trained."""
    return Finding(cause="leaving", says="is too many and is deleted next; it never trained", level=Level.WAITING)


ORDER = (kept, deleted, listed, drains, unused)
