"""Read an MPIJob and a pod to show them: the controller's facts, and some for people."""

from collections.abc import Iterable, Iterator

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.model import mpijob
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.wire import Owned
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.pod import ContainerStatus, PodStatus, decode, ends

# [operator] pkg/apis/kubeflow/v1/common_types.go. Running comes first: an evicted worker sets Failed for ever, although
# the job goes on.
_STATES = ("Running", names.CONDITION_FAILED, "Restarting", "Created")
# Reasons to wait that every pod passes through (kubelet, pkg/kubelet/kubelet_pods.go).
_PASSING = frozenset({"ContainerCreating", "PodInitializing", ""})


class SeenJob(msgspec.Struct, frozen=True, kw_only=True):
    """An MPIJob. state: a word for its conditions. priority: of its workers. resized_at: see `MPIJob`."""

    metadata: Owned
    facts: JobFacts
    state: str
    priority: str
    resized_at: float


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of an MPIJob. state: its state for an explanation."""

    metadata: Owned
    facts: PodFacts
    state: Pod


def read_job(raw: bytes) -> SeenJob:
    """Read an MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    job = mpijob.decode(raw)
    facts = capabilities.of(job)
    return SeenJob(
        metadata=facts.metadata,
        facts=facts,
        state=_job_state(job, facts),
        priority=job.pod(names.ROLE_WORKER).priority_class_name or "",
        resized_at=job.resized_at,
    )


def read_pod(raw: bytes) -> SeenPod:
    """Read a pod's JSON. Raises msgspec.DecodeError where it is none."""
    pod = decode(raw)
    facts = facts_pod.of(pod, groups=capabilities.GROUPS, marks=capabilities.POD_MARKS)
    return SeenPod(metadata=facts.metadata, facts=facts, state=_pod_state(pod.status or PodStatus()))


def _job_state(job: MPIJob, facts: JobFacts) -> str:
    if facts.deleting:
        return "Terminating"
    if job.condition(names.CONDITION_SUCCEEDED):
        return names.CONDITION_SUCCEEDED
    if facts.finished:
        return names.CONDITION_FAILED
    if facts.suspended:
        return "Suspended"
    return next((state for state in _STATES if job.condition(state)), "Pending")


def _pod_state(status: PodStatus) -> Pod:
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return Pod(
        unscheduled=_words(status, "PodScheduled"),
        stuck=next(_stuck(containers), None),
        unready=_words(status, "Ready"),
        ended=tuple(f"{name}: {end.reason}" for name, end in ends(containers) if end.reason != "Completed"),
        message=_line(status.message),
    )


def _words(status: PodStatus, kind: str) -> str:
    found = (
        condition for condition in status.conditions or () if (condition.type, condition.status) == (kind, "False")
    )
    return next((_line(condition.message) or condition.reason for condition in found), "")


def _stuck(containers: Iterable[ContainerStatus]) -> Iterator[Stuck]:
    for container in containers:
        waiting = container.state and container.state.waiting
        if waiting and waiting.reason not in _PASSING:
            yield Stuck(container=container.name, reason=waiting.reason, message=_line(waiting.message))


def _line(text: str) -> str:
    return " ".join(text.split())
