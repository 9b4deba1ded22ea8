"""A pod as the API server sends it, and the facts of it, such as its progress and mounted files.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import structs

from mpijob_elastic import names
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model import bounds, policy
from mpijob_elastic.model.json_parts import (
    Lifecycle,
    LifecycleHook,
    Owned,
    SchedulingGate,
    SchedulingGroup,
    Volume,
    Wire,
    owned,
    seconds,
    shared,
)
from mpijob_elastic.model.pod import (
    NO_MARKS,
    LauncherFacts,
    LauncherPhase,
    PodFacts,
    Toleration,
    of_driver,
)

# [training-operator] sets labels with this prefix.
_FOREIGN_PREFIX = "training.kubeflow.org/"
# Each condition announces that the pod is about to be deleted. Kubernetes sets the first. A queue
# that counts plain pods sets the second before it deletes them.
_ENDINGS = ("DisruptionTarget", "TerminationTarget")
# The volume's name as it stands in the JSON of a mount: no other text there has quotes around just
# this name.
_CONFIG_MOUNT = f'"{names.CONFIG_VOLUME}"'.encode()
_NONE: frozenset[str] = frozenset()
_TOUCH = frozenset((names.REFRESHED,))
_DEFAULT = names.DEFAULT_CONTAINER
# The scheduler lists every reason of every node.
_LONGEST_OBSTACLE = 200
# A pod may have any number of containers that have ended, with long names.
_LONGEST_STATE = 400
_UNHEALTHY = "Unhealthy"
# A resource whose kubelet gives no name.
_NAMELESS = "a device"
_LONGEST_RESOURCE = 100
# Our marks are short; anybody who may annotate the pod may write a longer mark.
_LONGEST_MARK = 64


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


class ResourceHealth(Wire, frozen=True):
    """The health of one device; its id is not read."""

    #: "Healthy", "Unhealthy" or "Unknown".
    health: str = ""


class ResourceStatus(Wire, frozen=True):
    """One of `allocatedResourcesStatus`."""

    #: The name of a resource, such as that of a GPU, or `claim:` and the name of a claim.
    name: str = ""
    resources: list[ResourceHealth] | None = None


class ContainerStatus(Wire, frozen=True):
    """One of `containerStatuses`."""

    name: str = ""
    state: State | None = None
    last_state: State | None = None
    restart_count: int = 0
    allocated_resources_status: list[ResourceStatus] | None = None


class PodCondition(Wire, frozen=True):
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
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class ReportedProbe(Wire, frozen=True):
    """A probe of a kubelet."""

    exec: LifecycleHook | None = None


class ReportedContainer(Wire, frozen=True):
    """A container; the JSON of what it runs is read only where it is needed."""

    name: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: ReportedProbe | None = None
    readiness_probe: ReportedProbe | None = None
    command: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw()
    env: msgspec.Raw = msgspec.Raw()
    volume_mounts: msgspec.Raw = msgspec.Raw()


class ReportedSpec(Wire, frozen=True):
    """`spec`."""

    node_name: str = ""
    containers: list[ReportedContainer] | None = None
    init_containers: list[ReportedContainer] | None = None
    tolerations: list[Toleration] | None = None
    share_process_namespace: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    volumes: list[Volume] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    restart_policy: str = ""


class ReportedPod(Wire, frozen=True):
    """A pod."""

    metadata: ObjectMeta
    spec: ReportedSpec | None = None
    status: PodStatus | None = None


_decoder = msgspec.json.Decoder(ReportedPod)


def decode(raw: bytes) -> ReportedPod:
    """Return the pod in its JSON. Raises msgspec.DecodeError if that is no pod."""
    return _decoder.decode(raw)


def ends(containers: Iterable[ContainerStatus]) -> Iterator[tuple[str, Detail]]:
    """Yield the name of each container that ended, now or before a restart, and how it ended."""
    for container in containers:
        for state in (container.state, container.last_state):
            if state and state.terminated:
                yield container.name, state.terminated
                break


def read(raw: bytes, *, groups: frozenset[str] = _NONE, marks: frozenset[str] = _NONE) -> PodFacts:
    """Return the facts in a pod's JSON; groups, marks: see `of`.

    Raises msgspec.DecodeError if that is no pod, would take long to read, or is too large to keep.
    """
    meta.check_cost(raw)
    facts = of(decode(raw), groups=groups, marks=marks)
    bounds.kept(facts.gates, most=bounds.LARGEST_GATES)
    return bounds.kept(facts, most=bounds.LARGEST_POD)


class _PartOfMeta(Wire, frozen=True):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _PartOfSpec(Wire, frozen=True):
    scheduling_gates: msgspec.Raw = msgspec.Raw()


class _PartOfStatus(Wire, frozen=True):
    phase: str = ""


class _Part(Wire, frozen=True):
    metadata: _PartOfMeta = _PartOfMeta()
    spec: _PartOfSpec | None = None
    status: _PartOfStatus | None = None


_decode_part = msgspec.json.Decoder(_Part).decode
_NO_GATES = (b"", b"null", b"[]")
# Stands for the gates of a pod that is read in part.
_SOME_GATE = ("unread",)


def read_part(metadata: Owned, raw: bytes | msgspec.Raw) -> PodFacts:
    """Return what is certain of a pod that cannot be read as a whole: whether it runs, and its age.

    Only a few short fields are read, so this costs what it costs to skip the rest. Of a pod that
    cannot be read at all it is taken that it runs.
    """
    try:
        found = _decode_part(raw)
    except (msgspec.DecodeError, RecursionError):
        found = _Part()
    gates = bytes((found.spec or _PartOfSpec()).scheduling_gates)
    return PodFacts(
        metadata=metadata,
        role="",
        phase=shared((found.status or _PartOfStatus()).phase),
        created_at=seconds(found.metadata.creation_timestamp) or 0.0,
        deleting=found.metadata.deletion_timestamp is not None,
        containers=(),
        gates=() if gates in _NO_GATES else _SOME_GATE,
    )


def of(
    pod: ReportedPod, *, groups: frozenset[str] = _NONE, marks: frozenset[str] = _NONE
) -> PodFacts:
    """Return a pod's facts; those of a launcher are `LauncherFacts`.

    groups: labels and annotations by which schedulers know pods that start together. marks:
    annotations that are kept.
    """
    if pod.metadata.labels.get(names.LABEL_JOB_ROLE) != names.ROLE_LAUNCHER:
        return _facts(pod, groups=groups, marks=marks)
    return _of_launcher(pod, _facts(pod, groups=groups, marks=marks))


def _facts(pod: ReportedPod, *, groups: frozenset[str], marks: frozenset[str]) -> PodFacts:
    """Return the facts of any pod."""
    spec, status = pod.spec or ReportedSpec(), pod.status or PodStatus()
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ended = list(ends(status.container_statuses or ()))
    created_at = seconds(pod.metadata.creation_timestamp) or 0.0
    containers = _containers(spec)
    has_choice = len(containers) > 1
    return PodFacts(
        metadata=owned(pod.metadata),
        # Many pods share these texts, and each is kept once: this and `owned` save a third of the
        # memory of a pod.
        role=shared(labels.get(names.LABEL_JOB_ROLE, "")),
        phase=shared(status.phase),
        created_at=created_at,
        deleting=pod.metadata.deleting,
        containers=containers,
        mounting=_mounting(spec) if has_choice else (),
        default_container=shared(annotations.get(_DEFAULT, "")) if has_choice else "",
        ready_at=_ready_at(conditions, created_at),
        unready_at=_unready_at(conditions),
        bound_at=_bound_at(conditions, created_at) if spec.node_name else 0.0,
        last_state=shared(_last_state(spec, status, ended)),
        foreign=names.LABEL_REPLICA_INDEX in labels,
        of_training_operator=_is_of_training_operator(labels),
        node=shared(spec.node_name),
        obstacle=_obstacle(conditions),
        disruption=_disrupted(conditions),
        unhealthy=_unhealthy(status),
        tolerations=_lasting(spec),
        ends_at=seconds(pod.metadata.deletion_timestamp),
        grace=pod.metadata.deletion_grace_period_seconds,
        shares_processes=bool(spec.share_process_namespace or spec.host_pid),
        out_of_memory=_was_out_of_memory(ended),
        pre_stop=_has_pre_stop(spec),
        probed_containers=_probed(spec),
        gates=_gates(spec),
        grouped=_is_grouped(pod, spec, groups),
        marks=_marks(annotations, marks),
        last_words=_last_words(status) if pod.metadata.deleting else "",
    )


def _containers(spec: ReportedSpec) -> tuple[str, ...]:
    """Return the names of the containers, without init containers."""
    return tuple([shared(container.name) for container in spec.containers or ()])


def _gates(spec: ReportedSpec) -> tuple[str, ...]:
    """Return the scheduling gates that hold the pod back."""
    return tuple([shared(gate.name) for gate in spec.scheduling_gates or ()])


def _lasting(spec: ReportedSpec) -> tuple[Toleration, ...]:
    """Return the tolerations that let the pod stay for ever in spite of a taint."""
    return tuple([toleration for toleration in spec.tolerations or () if toleration.may_last])


def _is_of_training_operator(labels: Iterable[str]) -> bool:
    """Tell whether training-operator made the pod."""
    return any(label.startswith(_FOREIGN_PREFIX) for label in labels)


def _was_out_of_memory(ended: Iterable[tuple[str, Detail]]) -> bool:
    """Tell whether a container was killed because it ran out of memory."""
    return any(end.reason == "OOMKilled" for _, end in ended)


def _mounting(spec: ReportedSpec) -> tuple[str, ...]:
    """Return the containers that mount the job's ConfigMap."""
    containers = spec.containers or ()
    mounts = (one.name for one in containers if _CONFIG_MOUNT in bytes(one.volume_mounts))
    return tuple(map(shared, mounts))


def _is_grouped(pod: ReportedPod, spec: ReportedSpec, groups: frozenset[str]) -> bool:
    """Tell whether a mark for the scheduler says that the pod starts together with others."""
    if spec.scheduling_group is not None:
        return True
    return not (
        groups.isdisjoint(pod.metadata.labels) and groups.isdisjoint(pod.metadata.annotations)
    )


def _of_launcher(pod: ReportedPod, facts: PodFacts) -> LauncherFacts:
    """Return the facts of a launcher, given those that any pod has."""
    spec, status = pod.spec or ReportedSpec(), pod.status or PodStatus()
    driver = _driver(status, of_driver(facts.containers, mounting=facts.mounting))
    running = driver.state.running if driver.state else None
    lingering = _lingering(spec, status, driver)
    return LauncherFacts(
        **structs.asdict(facts),
        launcher_phase=_launcher_phase(status, lingering),
        lingering=lingering,
        mounts_discovery=_mounts_discovery(spec),
        names_discovery=_names_discovery(spec),
        mounts_elastic=_mounts_elastic(spec),
        refreshed=_marks(pod.metadata.annotations, _TOUCH).get(names.REFRESHED),
        delivering_since=_delivering_since(status),
        started_at=seconds(running.started_at) if running else None,
        ended_at=_ended_at(status, facts.created_at),
        failures=0 if running else _failures(driver),
        deadline=spec.active_deadline_seconds,
    )


def _driver(status: PodStatus, name: str) -> ContainerStatus:
    """Return the status of the driver's container; an empty one while there is none."""
    found = [each for each in status.container_statuses or () if each.name == name]
    return found[-1] if found else ContainerStatus()


def _failures(driver: ContainerStatus) -> int:
    """Return how often the driver's container has failed, by its last end."""
    for _, end in ends([driver]):
        if end.exit_code:
            return driver.restart_count + 1
    return 0


def _marks(annotations: Mapping[str, str], marks: frozenset[str]) -> Mapping[str, str]:
    found = {key: annotations[key][:_LONGEST_MARK] for key in marks if key in annotations}
    return found or NO_MARKS


def _last_words(status: PodStatus) -> str:
    states = (container.state for container in status.container_statuses or ())
    said = (state.terminated.message.strip() for state in states if state and state.terminated)
    return next(
        (shared(words) for words in said if words in (names.RANKS_LEFT, names.NO_RANK_SEEN)), ""
    )


def _has_pre_stop(spec: ReportedSpec) -> bool:
    # A sidecar is an init container.
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return any(container.lifecycle and container.lifecycle.pre_stop for container in containers)


def _probed(spec: ReportedSpec) -> tuple[str, ...]:
    """Return the containers with a liveness or a readiness probe by exec.

    A startup probe is over before the worker is listed.
    """
    found = []
    for container in spec.containers or ():
        probes = (container.liveness_probe, container.readiness_probe)
        if any(probe and probe.exec for probe in probes):
            found.append(shared(container.name))
    return tuple(found)


def _ready_at(conditions: Mapping[str, PodCondition], created_at: float) -> float | None:
    ready = conditions.get("Ready")
    if ready is None or ready.status != "True":
        return None
    return seconds(ready.last_transition_time) or created_at


def _unready_at(conditions: Mapping[str, PodCondition]) -> float:
    ready, scheduled = conditions.get("Ready"), conditions.get("PodScheduled")
    if ready is not None and ready.status == "True":
        return 0.0
    # A kubelet sets Ready to False when it takes the pod, a moment after PodScheduled is True.
    times = [ready.last_transition_time] if ready is not None else []
    if scheduled is not None and scheduled.status == "True":
        times.append(scheduled.last_transition_time)
    return max((seconds(at) or 0.0 for at in times), default=0.0)


def _bound_at(conditions: Mapping[str, PodCondition], created_at: float) -> float:
    """Return when a pod with a node got it; a pod made with its node has no such condition yet."""
    scheduled = conditions.get("PodScheduled")
    if scheduled is None or scheduled.status != "True":
        return created_at
    return seconds(scheduled.last_transition_time) or created_at


def _obstacle(conditions: Mapping[str, PodCondition]) -> str:
    scheduled = conditions.get("PodScheduled")
    if scheduled is None or scheduled.status != "False":
        return ""
    return f"{scheduled.reason}: {scheduled.message}"[:_LONGEST_OBSTACLE]


def _disrupted(conditions: Mapping[str, PodCondition]) -> str:
    """https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions."""
    found = (conditions[ending] for ending in _ENDINGS if ending in conditions)
    true = next((condition for condition in found if condition.status == "True"), None)
    return f"condition {true.type} ({true.reason})"[:_LONGEST_OBSTACLE] if true else ""


def _unhealthy(status: PodStatus) -> str:
    """Return the first resource of a container with a device that is Unhealthy.

    Since Kubernetes 1.36 (ResourceHealthStatus). Unknown says nothing of the device.
    https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
    """
    for container in status.container_statuses or ():
        for resource in container.allocated_resources_status or ():
            if any(device.health == _UNHEALTHY for device in resource.resources or ()):
                return shared((resource.name or _NAMELESS)[:_LONGEST_RESOURCE])
    return ""


def _last_state(spec: ReportedSpec, status: PodStatus, ended: Iterable[tuple[str, Detail]]) -> str:
    """Return the pod's state or end, and its node, in words; "" if it was never scheduled."""
    if not spec.node_name:
        return ""
    exits = [
        f"{name} exited with {end.exit_code}{f' ({end.reason})' if end.reason else ''}"
        for name, end in ended
    ]
    reason = [status.reason] if status.reason else []
    return (
        "; ".join([status.phase, *reason, *exits])[:_LONGEST_STATE] + f" on node {spec.node_name}"
    )


def _restarts(policy: str, end: Detail) -> bool:
    """Tell whether the kubelet starts a container again that ended so."""
    if policy == "OnFailure":
        return end.exit_code != 0
    return policy != "Never"


def _lingering(spec: ReportedSpec, status: PodStatus, driver: ContainerStatus) -> tuple[str, ...]:
    """Return the containers that run although the driver has ended and is not started again."""
    end = driver.state.terminated if driver.state else None
    if end is None or _restarts(spec.restart_policy, end):
        return ()
    return tuple(
        shared(container.name)
        for container in status.container_statuses or ()
        if container.state and container.state.running
    )


def _launcher_phase(status: PodStatus, lingering: tuple[str, ...]) -> LauncherPhase:
    if status.phase in ("Succeeded", "Failed"):
        return LauncherPhase.FINISHED
    if lingering:
        return LauncherPhase.LINGERING
    states = (
        state for each in status.container_statuses or () for state in (each.state, each.last_state)
    )
    if status.phase == "Running" or any(
        state and (state.running or state.terminated) for state in states
    ):
        return LauncherPhase.STARTED
    return LauncherPhase.WAITING if _delivering_since(status) is None else LauncherPhase.DELIVERING


def _delivering_since(status: PodStatus) -> float | None:
    for container in status.init_container_statuses or ():
        if container.name == names.KUBECTL_DELIVERY and container.state and container.state.running:
            return seconds(container.state.running.started_at) or 0.0
    return None


def _ended_at(status: PodStatus, created_at: float) -> float | None:
    """Return the time when a launcher ended; None unless it did.

    [operator] The eviction of a launcher does not end it, because another launcher follows.
    """
    if status.phase not in ("Succeeded", "Failed") or status.reason == "Evicted":
        return None
    # A pod that ends before any container has run changes only its conditions.
    times = [end.finished_at for _, end in ends(status.container_statuses or ())]
    times += [condition.last_transition_time for condition in status.conditions or ()]
    return max((at for at in map(seconds, times) if at is not None), default=created_at)


def _mounts_discovery(spec: ReportedSpec) -> bool:
    """Return True if the launcher was created to read the host list.

    The webhook mounts the file only in launchers that are elastic at their creation, as an item
    that must exist. With any other mount of the file, the launcher's command must name the file.
    """
    for volume in spec.volumes or ():
        config, key = volume.config_map, names.KEY_DISCOVER_HOSTS
        if volume.name == names.CONFIG_VOLUME and config:
            if not config.items:
                return _names_discovery(spec)
            if any(item.key == item.path == key for item in config.items):
                return not config.optional or _names_discovery(spec)
    return False


def _mounts_elastic(spec: ReportedSpec) -> bool:
    """Tell whether the webhook has given elastic.sh to the launcher."""
    for volume in spec.volumes or ():
        if volume.name == names.CONFIG_VOLUME and volume.config_map:
            items = volume.config_map.items or ()
            return any(item.key == item.path == names.KEY_ELASTIC for item in items)
    return False


def _names_discovery(spec: ReportedSpec) -> bool:
    words = (part for each in spec.containers or () for part in (each.command, each.args, each.env))
    return policy.names_discovery([b"\n".join(words).decode()])
