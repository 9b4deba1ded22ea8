"""Causes in a pod itself: it is not there, ends, has failed, has no node, does not start, is not Ready.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from mpijob_elastic.decide import failed_workers
from mpijob_elastic.decide.stuck_pods import LATE_AFTER
from mpijob_elastic.explain.cases import Case
from mpijob_elastic.explain.facts import Stuck
from mpijob_elastic.explain.findings import Finding, Level
from mpijob_elastic.model import durations

# Reasons of a waiting container (kubelet, pkg/kubelet/images/types.go and kuberuntime).
_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CRASH = "CrashLoopBackOff"


def missing(case: Case) -> Finding | None:
    """Nobody has created it."""
    if case.worker is not None:
        return None
    event = case.facts.events.get(case.view.name)
    if event:
        said = f"the operator has not created it; its last warning was: {event}"
        return Finding(cause="missing", says=said, next_step=case.kubectl("describe mpijob", case.view.name))
    return Finding(
        cause="missing",
        says="the operator has not created it; if that lasts longer than some seconds, no mpi-operator is at work",
        next_step="kubectl get pods -A | grep mpi-operator",
    )


def terminating(case: Case) -> Finding | None:
    """Somebody deleted it, and it is still there."""
    worker = case.worker
    if worker is None or not worker.deleting:
        return None
    why = f" ({case.pod.disrupted})" if case.pod.disrupted else ""
    if worker.ends_at is None or case.now < worker.ends_at + LATE_AFTER:
        said = f"is being deleted{why}; the operator creates it anew once it is gone"
        return Finding(cause="terminating", says=said, level=Level.WAITING)
    late = durations.render(round(case.now - worker.ends_at))
    return Finding(
        cause="lost-node",
        says=f"was to be gone {late} ago{why}, but its node {worker.node} does not say so: the node is lost, or a "
        "finalizer holds the pod; until it is gone the operator cannot create it anew. If the machine is really off, "
        f"`{case.kubectl('delete pod', case.name, '--grace-period=0 --force')}` frees the name",
        next_step=f"kubectl describe node {worker.node}",
    )


def failed(case: Case) -> Finding | None:
    """It has ended."""
    worker = case.worker
    if worker is None or not worker.terminated:
        return None
    message = f": {case.pod.message}" if case.pod.message else ""
    how = f"{worker.last_state or 'it has ended'}{message}"
    describe = case.kubectl("describe pod", worker.name)
    if worker in failed_workers.given_up(case.view):
        again = case.kubectl("delete pod", worker.name)
        said = f"failed {len(failed_workers.BACKOFFS) + 1} times ({how}) and is given up for {_wait(case)}"
        return Finding(cause="given-up", says=said, next_step=again)
    cause = "out-of-memory" if worker.out_of_memory else "failed"
    if not failed_workers.is_wanted(case.view, worker):
        said = f"has ended ({how}), and is not replaced{_why_not_replaced(case)}"
        return Finding(cause=cause, says=said, next_step=describe)
    said = f"has failed ({how}); it is replaced in {_wait(case)}"
    return Finding(cause=cause, says=said, next_step=describe, level=Level.WAITING)


def _wait(case: Case) -> str:
    due = failed_workers.due_at(case.view, case.worker, now=case.now) if case.worker else None
    return durations.render(round(max(0.0, (due or case.now) - case.now)))


def _why_not_replaced(case: Case) -> str:
    if case.worker is not None and case.worker.succeeded:
        return ": it ended as a success; its main process is not meant to end"
    if not case.view.elastic:
        return ": the job is not elastic"
    if case.view.policy.replace_failed_workers is False:
        return ", as the job's annotation says"
    return ": the launcher cannot see the host list"


def unscheduled(case: Case) -> Finding | None:
    """No node takes it."""
    if not case.pod.unscheduled:
        return None
    return Finding(
        cause="not-scheduled",
        says=f"no node takes it: {case.pod.unscheduled}",
        next_step=case.kubectl("describe pod", case.name),
    )


def stuck(case: Case) -> Finding | None:
    """A container of it does not start."""
    found = case.pod.stuck
    if found is None:
        return None
    describe = case.kubectl("describe pod", case.name)
    if found.reason in _IMAGE:
        return Finding(cause="image", says=f"its image cannot be had: {_words(found)}", next_step=describe)
    if found.reason == _CRASH:
        logs = case.kubectl("logs", case.name, "-c", found.container, "--previous")
        ended = f" (last time: {'; '.join(case.pod.ended)})" if case.pod.ended else ""
        cause = "out-of-memory" if case.worker and case.worker.out_of_memory else "crashing"
        return Finding(cause=cause, says=f"its container {found.container} ends again and again{ended}", next_step=logs)
    return Finding(cause="cannot-start", says=f"it cannot start: {_words(found)}", next_step=describe)


def _words(found: Stuck) -> str:
    return f"{found.reason}: {found.message}" if found.message else found.reason


def starting(case: Case) -> Finding | None:
    """It is on its way."""
    if case.worker is None or case.worker.running:
        return None
    where = f" on node {case.pod.node}" if case.pod.node else ""
    event = case.facts.events.get(case.name)
    return Finding(
        cause="starting",
        says=f"it starts{where}{f'; its last warning was: {event}' if event else ''}",
        next_step=case.kubectl("describe pod", case.name),
        level=Level.WAITING,
    )


def not_ready(case: Case) -> Finding | None:
    """It runs, but is not Ready."""
    if case.worker is None or case.worker.ready:
        return None
    why = f": {case.pod.unready}" if case.pod.unready else "; its readiness probe fails, or its node does not answer"
    return Finding(
        cause="not-ready", says=f"runs, but is not Ready{why}", next_step=case.kubectl("describe pod", case.name)
    )


ORDER = (missing, terminating, failed, unscheduled, stuck, starting, not_ready)
