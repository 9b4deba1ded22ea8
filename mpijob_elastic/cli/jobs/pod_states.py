"""How a pod is, for an explanation, read from its JSON; pure.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.mpijob import Wire

# Every pod passes through these (kubelet, pkg/kubelet/kubelet_pods.go).
_PASSING = frozenset({"ContainerCreating", "PodInitializing", ""})


class _Reason(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class _State(Wire, frozen=True):
    waiting: _Reason | None = None
    terminated: _Reason | None = None


class _Container(Wire, frozen=True):
    name: str = ""
    state: _State = _State()
    last_state: _State = _State()


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(Wire, frozen=True):
    message: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class _Spec(Wire, frozen=True):
    node_name: str = ""


class _Pod(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decoder = msgspec.json.Decoder(_Pod)


def read(raw: bytes) -> Pod:
    """The state in a pod's JSON. Raises msgspec.DecodeError where it is none."""
    pod = _decoder.decode(raw)
    status = pod.status
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return Pod(
        node=pod.spec.node_name,
        unscheduled=_words(status, "PodScheduled", "False"),
        stuck=next(_stuck(containers), None),
        unready=_words(status, "Ready", "False"),
        ended=tuple(_ended(containers)),
        message=_line(status.message),
        disrupted=_words(status, "DisruptionTarget", "True"),
    )


def _words(status: _Status, kind: str, value: str) -> str:
    for one in status.conditions or ():
        if (one.type, one.status) == (kind, value):
            return _line(one.message) or one.reason
    return ""


def _stuck(containers: Iterable[_Container]) -> Iterator[Stuck]:
    for one in containers:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in _PASSING:
            yield Stuck(container=one.name, reason=waiting.reason, message=_line(waiting.message))


def _ended(containers: Iterable[_Container]) -> Iterator[str]:
    for one in containers:
        ends = [state.terminated for state in (one.state, one.last_state) if state.terminated]
        if ends and ends[0].reason != "Completed":
            yield f"{one.name}: {ends[0].reason}"


def _line(text: str) -> str:
    return " ".join(text.split())
