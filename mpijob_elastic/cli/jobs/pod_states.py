"""Put the state of a pod into words, for an explanation; pure.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from collections.abc import Iterable, Iterator

from mpijob_elastic.explain import facts
from mpijob_elastic.explain.facts import Stuck
from mpijob_elastic.observe.pod import ContainerStatus, Pod, Status, ends

# Reasons that every pod passes through (kubelet, pkg/kubelet/kubelet_pods.go).
_PASSING = frozenset({"ContainerCreating", "PodInitializing", ""})


def of(pod: Pod) -> facts.Pod:
    """Return the state of a pod."""
    status = pod.status or Status()
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return facts.Pod(
        unscheduled=_words(status, "PodScheduled"),
        stuck=next(_stuck(containers), None),
        unready=_words(status, "Ready"),
        ended=tuple(f"{name}: {end.reason}" for name, end in ends(containers) if end.reason != "Completed"),
        message=_line(status.message),
    )


def _words(status: Status, kind: str) -> str:
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
