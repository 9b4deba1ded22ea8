"""A pod as the API server sends it: the fields that we use.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from collections.abc import Iterable, Iterator

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.pod import Toleration
from mpijob_elastic.model.wire import Lifecycle, SchedulingGate, SchedulingGroup, Volume, Wire


class Detail(Wire, frozen=True):
    """Why a container waits, since when it runs, or how it ended."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    started_at: str | None = None
    finished_at: str | None = None


class State(Wire, frozen=True):
    """The state of a container."""

    waiting: Detail | None = None
    running: Detail | None = None
    terminated: Detail | None = None


class ContainerStatus(Wire, frozen=True):
    """One of `containerStatuses`."""

    name: str = ""
    state: State | None = None
    last_state: State | None = None
    restart_count: int = 0


class Condition(Wire, frozen=True):
    """One of `status.conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Wire, frozen=True):
    """`status`."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Container(Wire, frozen=True):
    """A container; the JSON of what it runs is read only where it is needed."""

    name: str = ""
    lifecycle: Lifecycle | None = None
    command: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw()
    env: msgspec.Raw = msgspec.Raw()
    volume_mounts: msgspec.Raw = msgspec.Raw()


class Spec(Wire, frozen=True):
    """`spec`."""

    node_name: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    tolerations: list[Toleration] | None = None
    share_process_namespace: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    volumes: list[Volume] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None


class Pod(Wire, frozen=True):
    """A pod."""

    metadata: ObjectMeta
    spec: Spec | None = None
    status: PodStatus | None = None


_decoder = msgspec.json.Decoder(Pod)


def decode(raw: bytes) -> Pod:
    """Return the pod in its JSON. Raises msgspec.DecodeError where it is none."""
    return _decoder.decode(raw)


def ends(containers: Iterable[ContainerStatus]) -> Iterator[tuple[str, Detail]]:
    """Yield the containers that ended, now or before a restart, by name, and how."""
    for container in containers:
        for state in (container.state, container.last_state):
            if state and state.terminated:
                yield container.name, state.terminated
                break
