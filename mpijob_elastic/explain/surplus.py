"""Causes of workers beyond the desired size."""

from collections.abc import Iterator

from mpijob_elastic.decide.state import Drain
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, fine, waiting
from mpijob_elastic.model import durations


def causes(case: Case) -> Iterator[Finding]:
    """Yield the causes that hold; the first counts."""
    pod, drain = case.pod, case.worker.drain if case.worker else None
    if not case.view.elastic:
        yield fine("kept", f"keeps running although {case.view.replicas} workers are desired: the job is not elastic")
    if pod and pod.facts.deleting:
        yield waiting("leaving", "is being deleted")
    why = "is to leave (see above)" if pod and pod.index in case.view.wanted else "is surplus"
    if case.name in case.view.host_of:
        yield waiting("leaving", f"{why}; it leaves discover_hosts.sh {_when(case)}")
    if drain and not (pod and pod.unscheduled):
        since = durations.render(round(max(0.0, case.state.now - drain.since)))
        said = f"has been draining for {since}, {_until(drain, now=case.state.now)}{_running(case)}"
        yield waiting("draining", said)
    yield waiting("leaving", f"{why} and never trained; the controller deletes it next")


def _when(case: Case) -> str:
    step = case.following
    if step.wake_at is None or case.name not in step.hosts:
        return "next"
    return f"in {durations.render(max(0.0, step.wake_at - case.state.now))}, after an earlier change has settled"


def _until(drain: Drain, *, now: float) -> str:
    if drain.deadline is None:
        return "its drain-timeout starts once the launcher is refreshed"
    return f"at most {durations.render(max(0, round(drain.deadline - now)))} more"


def _running(case: Case) -> str:
    look = case.facts.looks.get(case.name)
    if look is None or look.error:
        return ""
    return f"; still running: {', '.join(look.processes)}" if look.processes else "; no process is left in it"
