"""Causes in a pod itself: it is missing, is ending, has failed, has no node, does not start, is not Ready.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import failed_workers
from mpijob_elastic.decide.stuck_pods import LATE_AFTER
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, waiting, wrong
from mpijob_elastic.model import durations

# The command that finds the operator.
OPERATOR = "kubectl get pods -A | grep mpi-operator"
# Reasons of a waiting container (kubelet, pkg/kubelet/images/types.go and kuberuntime).
_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CRASH = "CrashLoopBackOff"


def missing(case: Case) -> Finding | None:
    """Report a pod that does not exist."""
    if case.worker is not None:
        return None
    said = "does not exist: the operator has not created it"
    event = case.facts.events.get(case.view.name)
    if event:
        step = case.kubectl("describe mpijob", case.view.name)
        return wrong("missing", f"{said}. Its last warning: {event}", step=step)
    said += ". If that lasts for more than a few seconds, check that mpi-operator is running"
    return wrong("missing", said, step=OPERATOR)


def terminating(case: Case) -> Finding | None:
    """Report a pod that somebody deleted and that still exists."""
    worker = case.worker
    if worker is None or not worker.deleting:
        return None
    why = f" ({case.pod.disrupted})" if case.pod.disrupted else ""
    if worker.ends_at is None or case.now < worker.ends_at + LATE_AFTER:
        return waiting("terminating", f"is being deleted{why}; the operator recreates it once it is gone")
    late = durations.render(round(case.now - worker.ends_at))
    force = case.kubectl("delete pod", case.name, "--grace-period=0 --force")
    said = (
        f"should have been gone {late} ago{why}, but its node {worker.node} has not confirmed it: the node is lost, or "
        "a finalizer holds the pod. Until the pod is gone, the operator cannot recreate it. If the machine is really "
        f"off, free the name with `{force}`"
    )
    return wrong("lost-node", said, step=f"kubectl describe node {worker.node}")


def failed(case: Case) -> Finding | None:
    """Report a pod that has ended."""
    worker = case.worker
    if worker is None or not worker.terminated:
        return None
    message = f": {case.pod.message}" if case.pod.message else ""
    how = f"({worker.last_state or 'it has ended'}{message})"
    if worker in failed_workers.given_up(case.view):
        said = f"failed {len(failed_workers.BACKOFFS) + 1} times {how} and is not replaced for {_wait(case)}"
        return wrong("given-up", said, step=case.kubectl("delete pod", worker.name))
    cause = "out-of-memory" if worker.out_of_memory else "failed"
    if not failed_workers.is_wanted(case.view, worker):
        return wrong(cause, f"has ended {how} and is not replaced: {_why_not_replaced(case)}", step=case.describe)
    return waiting(cause, f"has failed {how}; the controller replaces it in {_wait(case)}", step=case.describe)


def _wait(case: Case) -> str:
    due = failed_workers.due_at(case.view, case.worker, now=case.now) if case.worker else None
    return durations.render(round(max(0.0, (due or case.now) - case.now)))


def _why_not_replaced(case: Case) -> str:
    if case.worker is not None and case.worker.succeeded:
        return "it ended with success, but the main process of a worker should not end"
    if not case.view.elastic:
        return "the job is not elastic"
    if case.view.policy.replace_failed_workers is False:
        return f'the job is annotated {names.REPLACE_FAILED_WORKERS}="false"'
    return "the launcher cannot see the host list"


def unscheduled(case: Case) -> Finding | None:
    """Report a pod that no node takes."""
    if not case.pod.unscheduled:
        return None
    return wrong("not-scheduled", f"cannot be scheduled: {case.pod.unscheduled}", step=case.describe)


def stuck(case: Case) -> Finding | None:
    """Report a pod with a container that does not start."""
    found = case.pod.stuck
    if found is None:
        return None
    if found.reason in _IMAGE:
        return wrong("image", f"cannot pull its image: {found}", step=case.describe)
    if found.reason != _CRASH:
        return wrong("cannot-start", f"cannot start: {found}", step=case.describe)
    logs = case.kubectl("logs", case.name, "-c", found.container, "--previous")
    ended = f" (last exit: {'; '.join(case.pod.ended)})" if case.pod.ended else ""
    cause = "out-of-memory" if case.worker and case.worker.out_of_memory else "crashing"
    return wrong(cause, f"crashes repeatedly in container {found.container}{ended}", step=logs)


def starting(case: Case) -> Finding | None:
    """Report a pod that is starting."""
    if case.worker is None or case.worker.running:
        return None
    where = f" on node {case.pod.node}" if case.pod.node else ""
    event = case.facts.events.get(case.name)
    said = f"is starting{where}{f'. Its last warning: {event}' if event else ''}"
    return waiting("starting", said, step=case.describe)


def not_ready(case: Case) -> Finding | None:
    """Report a pod that runs but is not Ready."""
    if case.worker is None or case.worker.ready:
        return None
    why = case.pod.unready or "its readiness probe fails, or its node does not respond"
    return wrong("not-ready", f"is running but not Ready: {why}", step=case.describe)


ORDER = (missing, terminating, failed, unscheduled, stuck, starting, not_ready)
