"""Read the state of a pod from its JSON, for an explanation; pure.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.model.wire import Wire

# Reasons that every pod passes through (kubelet, pkg/kubelet/kubelet_pods.go).
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


class _Pod(Wire, frozen=True):
    status: _Status = _Status()


_decoder = msgspec.json.Decoder(_Pod)


def read(raw: bytes) -> Pod:
    """Read a pod's JSON. Raises msgspec.DecodeError where it is none."""
    status = _decoder.decode(raw).status
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return Pod(
        unscheduled=_words(status, "PodScheduled"),
        stuck=next(_stuck(containers), None),
        unready=_words(status, "Ready"),
        ended=tuple(_ended(containers)),
        message=_line(status.message),
    )


def _words(status: _Status, kind: str) -> str:
    found = (
        condition for condition in status.conditions or () if (condition.type, condition.status) == (kind, "False")
    )
    return next((_line(condition.message) or condition.reason for condition in found), "")


def _stuck(containers: Iterable[_Container]) -> Iterator[Stuck]:
    for container in containers:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in _PASSING:
            yield Stuck(container=container.name, reason=waiting.reason, message=_line(waiting.message))


def _ended(containers: Iterable[_Container]) -> Iterator[str]:
    for container in containers:
        ends = [state.terminated for state in (container.state, container.last_state) if state.terminated]
        if ends and ends[0].reason != "Completed":
            yield f"{container.name}: {ends[0].reason}"


def _line(text: str) -> str:
    return " ".join(text.split())
