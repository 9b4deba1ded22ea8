"""Causes of workers beyond the desired size."""

from __future__ import annotations

from mpijob_elastic.decide import drain, history
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.facts import Look
from mpijob_elastic.explain.findings import Finding, fine, waiting
from mpijob_elastic.model import durations


def kept(case: Case) -> Finding | None:
    """Report a worker that stays because the job is not elastic."""
    if case.view.elastic:
        return None
    return fine("kept", f"keeps running although {case.view.replicas} workers are desired: the job is not elastic")


def deleted(case: Case) -> Finding | None:
    """Report a worker that is being deleted."""
    return waiting("leaving", "is being deleted") if case.worker and case.worker.deleting else None


def listed(case: Case) -> Finding | None:
    """Report a worker that is still in the list."""
    if not case.published:
        return None
    step = case.following
    when = "next"
    if step.wake_at is not None and case.name in step.hosts:
        when = f"in {durations.render(max(0.0, step.wake_at - case.now))}, after an earlier change has settled"
    return waiting("leaving", f"is surplus; it leaves discover_hosts.sh {when}")


def drains(case: Case) -> Finding | None:
    """Report a worker that is out of the list but not yet deleted."""
    if case.worker is None or case.worker.unscheduled:
        return None
    left = history.left(case.view, case.worker, now=case.now)
    if left is None:
        return None
    since = durations.render(round(max(0.0, case.now - left.at)))
    began = drain.drain_began(case.view, left, now=case.now)
    if began is None:
        until = "its drain-timeout starts once the launcher is refreshed"
    else:
        until = f"at most {durations.render(max(0, round(began + case.view.policy.drain_timeout - case.now)))} more"
    return waiting("draining", f"has been draining for {since}, {until}{_running(case.look)}")


def _running(look: Look | None) -> str:
    if look is None or look.error:
        return ""
    return f"; still running: {', '.join(look.processes)}" if look.processes else "; no process is left in it"


def unused(_: Case) -> Finding:
    """Report a worker that never trained."""
    return waiting("leaving", "is surplus and never trained; the controller deletes it next")


ORDER = (kept, deleted, listed, drains, unused)
