"""Causes in a pod itself: it is missing, is ending, has failed, has no node, does not start, is not Ready.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.frozen_execs import LATE_AFTER
from mpijob_elastic.decide.notices import AGAIN, given_up
from mpijob_elastic.decide.state import Standing, WorkerState
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.facts import Stuck
from mpijob_elastic.explain.findings import Finding, waiting, wrong
from mpijob_elastic.model import durations
from mpijob_elastic.model.pod import Worker

# The command that finds the operator.
OPERATOR = "kubectl get pods -A | grep mpi-operator"
# Reasons of a waiting container (kubelet, pkg/kubelet/images/types.go and kuberuntime).
_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CRASH = "CrashLoopBackOff"


def causes(case: Case) -> Iterator[Finding]:
    """Yield the causes that hold; the first counts."""
    worker = case.worker
    if worker is None:
        yield _missing(case)
        return
    pod = worker.pod
    if worker.stopped and not pod.facts.deleting:
        yield waiting("suspending", "is deleted once the launcher is gone, because the job is suspended")
    if pod.facts.deleting:
        yield _terminating(case, pod)
    if pod.terminated:
        yield _failed(case, worker)
    yield from startup(case)
    if not pod.running:
        where = f" on node {pod.facts.node}" if pod.facts.node else ""
        event = case.facts.events.get(case.name)
        warning = f". Its last warning: {event}" if event else ""
        yield waiting("starting", f"is starting{where}{warning}", next_step=case.describe)
    if not pod.ready:
        why = case.seen.unready or "its readiness probe fails, or its node does not respond"
        yield wrong("not-ready", f"is running but not Ready: {why}", next_step=case.describe)


def startup(case: Case) -> Iterator[Finding]:
    """Yield what keeps a pod from starting."""
    if case.held_back and (case.state.wishes.stop or case.of(case.launcher).held_back):
        yield waiting("job-waits", "waits, as the whole job does (see above)")
    elif case.held_back:
        why = case.state.wishes.held.get(case.name) or "mpijob-elastic frees it next"
        yield waiting("gated", f"is held back: {why}")
    elif case.gates:
        yield waiting("gated", f"is held back by scheduling gates: {', '.join(case.gates)}", next_step=case.describe)
    if case.seen.unscheduled:
        yield wrong("not-scheduled", f"cannot be scheduled: {case.seen.unscheduled}", next_step=case.describe)
    if case.seen.stuck:
        yield _stuck(case, case.seen.stuck)


def _missing(case: Case) -> Finding:
    event = case.facts.events.get(case.view.name)
    why = "If that lasts for more than a few seconds, check that mpi-operator is running"
    why = f"Its last warning: {event}. {AGAIN}" if event else why
    said = f"does not exist: the operator has not created it. {why}"
    return wrong("missing", said, next_step=case.on_job("describe") if event else OPERATOR)


def _terminating(case: Case, pod: Worker) -> Finding:
    why = f" ({pod.facts.disruption})" if pod.facts.disruption else ""
    if pod.facts.ends_at is None or case.state.now < pod.facts.ends_at + LATE_AFTER:
        return waiting("terminating", f"is being deleted{why}; the operator recreates it once it is gone")
    late = durations.render(round(case.state.now - pod.facts.ends_at))
    force = case.kubectl("delete pod", case.name, "--grace-period=0 --force")
    said = (
        f"should have been gone {late} ago{why}, but its node {pod.facts.node} has not confirmed it: the node is lost, "
        "or a finalizer holds the pod. Until the pod is gone, the operator cannot recreate it. If the machine is "
        f"really off, free the name with `{force}`"
    )
    return wrong("lost-node", said, next_step=f"kubectl describe node {pod.facts.node}")


def _failed(case: Case, worker: WorkerState) -> Finding:
    pod = worker.pod
    message = f": {case.seen.message}" if case.seen.message else ""
    how = f"({pod.facts.last_state or 'it has ended'}{message})"
    wait = durations.render(round(max(0.0, (worker.due_at or case.state.now) - case.state.now)))
    cause = "out-of-memory" if pod.facts.out_of_memory else "failed"
    if worker.standing is Standing.GIVEN_UP:
        return case.noted(given_up(case.view, worker))
    if worker.standing is Standing.FAILED:
        return waiting(cause, f"has failed {how}; the controller replaces it in {wait}", next_step=case.describe)
    return wrong(cause, f"has ended {how} and is not replaced: {_why_not_replaced(case)}", next_step=case.describe)


def _why_not_replaced(case: Case) -> str:
    if not case.view.elastic:
        return "the job is not elastic"
    if case.view.policy.replace_failed_workers is False:
        return f'the job is annotated {names.REPLACE_FAILED_WORKERS}="false"'
    return "the launcher cannot see the host list"


def _stuck(case: Case, stuck: Stuck) -> Finding:
    if stuck.reason in _IMAGE:
        return wrong("image", f"cannot pull its image: {stuck}", next_step=case.describe)
    if stuck.reason != _CRASH:
        return wrong("cannot-start", f"cannot start: {stuck}", next_step=case.describe)
    logs = case.kubectl("logs", case.name, "-c", stuck.container, "--previous")
    ended = f" (last exit: {'; '.join(case.seen.ended)})" if case.seen.ended else ""
    cause = "out-of-memory" if case.pod and case.pod.facts.out_of_memory else "crashing"
    return wrong(cause, f"crashes repeatedly in container {stuck.container}{ended}", next_step=logs)
