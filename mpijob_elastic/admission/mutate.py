"""Add the files of elastic jobs to the operator's new ConfigMap and launcher.

All functions are pure. mpi-operator v0.3.0 adds discover_hosts.sh to both objects itself, so its
objects, and objects that were patched before, stay unchanged. An object that is not clearly
v0.2.3's is left alone; the controller reports what was missed.

A launcher that names elastic.sh gets this driver, and a folder where the driver writes, whatever
the annotations of its MPIJob say: without them its container could not start. With `enabled:
"false"` nobody keeps the host list. So it names all workers from the start, and the driver runs its
command on these for as long as the job lives.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.kube.meta import ObjectMeta, OwnerReference
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import elastic_script, job_facts, policy
from mpijob_elastic.model.job import hostfile_slots
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Lifecycle, SchedulingGate, SchedulingGroup, Volume, Wire
from mpijob_elastic.model.mpijob import Container, MPIJob

_MPI_JOBS_VERSION = MPI_JOBS.api_version
# Bytes in a ConfigMap: the API server would refuse a larger one, and the operator makes no job
# without it. elastic.sh and discover_hosts.sh without hosts need less than is kept free for them.
_LARGEST_DATA, _ROOM_FOR_OTHERS = 2**20, 2**16


class VolumeMount(Wire, frozen=True):
    """A mount of a container."""

    name: str
    mount_path: str


class PodContainer(Container, frozen=True):
    """A container of a pod."""

    volume_mounts: list[VolumeMount] | None = None
    env_from: list[Any] | None = None
    lifecycle: Lifecycle | None = None
    restart_policy: str | None = None  # "Always" makes an init container a sidecar
    security_context: dict[str, Any] | None = None

    def mounts(self, path: str) -> str:
        """Return the volume that is mounted at a path; "" if there is none."""
        for mount in self.volume_mounts or ():
            if mount.mount_path.rstrip("/") == path:
                return mount.name
        return ""

    @property
    def finds_files(self) -> bool:
        """True if the operator's files are where it mounts them."""
        return self.mounts(names.MOUNT_PATH) == names.CONFIG_VOLUME


class PreferredNodes(Wire, frozen=True):
    """A term by which a pod prefers nodes."""

    weight: int = 0
    preference: dict[str, Any] | None = None


class NodeAffinity(Wire, frozen=True):
    """What a pod asks of its node."""

    preferred: list[PreferredNodes] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """Where a pod is to run."""

    node_affinity: NodeAffinity | None = None


class AdmittedSpec(Wire, frozen=True):
    """A pod's `spec`."""

    containers: list[PodContainer] | None = None
    init_containers: list[PodContainer] | None = None
    security_context: dict[str, Any] | None = None
    termination_grace_period_seconds: int = 30  # as the API server sets it
    volumes: list[Volume] | None = None
    active_deadline_seconds: int | None = None
    restart_policy: str | None = None
    node_name: str = ""
    scheduling_gates: list[SchedulingGate] | None = None
    scheduler_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    affinity: Affinity | None = None
    share_process_namespace: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_network: bool | None = None


class AdmittedPod(Wire, frozen=True):
    """A pod about to be created."""

    metadata: ObjectMeta
    spec: AdmittedSpec


class ConfigMap(Wire, frozen=True):
    """A ConfigMap about to be created."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None

    def has(self, key: str) -> bool:
        """Tell whether a key is there."""
        return key in (self.data or ()) or key in (self.binary_data or ())

    def has_room(self, text: str) -> bool:
        """Tell whether a text as long as the hostfile, and what else we add, fits as well.

        Names of workers are ASCII, as all of what the operator writes is.
        """
        there = sum(map(len, (self.data or {}).values()))
        return there + len(text) <= _LARGEST_DATA - _ROOM_FOR_OTHERS

    @property
    def hostfile(self) -> str:
        """The operator's list of workers; "" if absent."""
        return (self.data or {}).get(names.KEY_HOSTFILE, "")


def launcher(pod: AdmittedPod, job: JobFacts | None) -> Patch:
    """Return a patch that mounts discover_hosts.sh, executable, in an elastic launcher.

    A launcher that names elastic.sh gets that file, too. The launcher must be the operator's. The
    items are not optional: a kubelet starts no container before it has the whole ConfigMap, so no
    driver finds an empty /etc/mpi. The items also tell the controller, for as long as the pod
    lives, that the pod's driver is elastic, and which one it is. `job`: the MPIJob as last seen.
    """
    owner = owner_of_launcher(pod.metadata)
    if owner is None or not _is_elastic(pod, owner, job):
        return ()
    keys = [names.KEY_DISCOVER_HOSTS]
    if _names_elastic(pod):
        keys.append(names.KEY_ELASTIC)
    for index, volume in enumerate(pod.spec.volumes or ()):
        config = volume.config_map
        if volume.name == names.CONFIG_VOLUME and config:
            items = config.items or ()
            has_it = any(names.KEY_DISCOVER_HOSTS in (item.key, item.path) for item in items)
            # Without items all keys are files already; with another ConfigMap the volume is not the
            # operator's.
            if has_it or not items or config.name != names.config_map(owner.name):
                return ()
            at = f"/spec/volumes/{index}/configMap/items"
            return tuple(
                operation
                for position, key in enumerate(keys, start=len(items))
                for operation in json_patch.adding(at=f"{at}/{position}", value=_item(key))
            )
    return ()


def _item(key: str) -> dict[str, Any]:
    return {"key": key, "mode": names.MODE_EXECUTABLE, "path": key}


def elastic_folder(pod: AdmittedPod) -> Patch:
    """Return a patch that mounts the folder where elastic.sh writes.

    The image may have a read-only root, and any user. The folder is for each container of a
    launcher that names elastic.sh and finds it in /etc/mpi. What the template mounts there stays.
    """
    if owner_of_launcher(pod.metadata) is None or not _names_elastic(pod):
        return ()
    volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
    name = _elastic_volume(volumes)
    if not name:
        return ()
    patch: Patch = ()
    for index, container in enumerate(pod.spec.containers or ()):
        mounts = container.volume_mounts or []
        mount = {"name": name, "mountPath": names.ELASTIC_FOLDER}
        if container.finds_files and not container.mounts(names.ELASTIC_FOLDER):
            at = f"/spec/containers/{index}/volumeMounts/{len(mounts)}"
            patch += json_patch.adding(at=at, value=mount)
    if patch and name not in volumes:
        value = {"name": name, "emptyDir": {}}
        patch += json_patch.adding(at=f"/spec/volumes/{len(volumes)}", value=value)
    return patch


def _elastic_volume(volumes: Mapping[str, Volume]) -> str:
    """Return the name of the volume where elastic.sh writes; "" if a template has taken all names.

    A volume of that name that is no emptyDir is not ours, and may not be written.
    """
    for name in (names.ELASTIC_VOLUME, names.ELASTIC_SECOND_VOLUME):
        volume = volumes.get(name)
        if volume is None or volume.empty_dir is not None:
            return name
    return ""


def edl_mount(pod: AdmittedPod) -> Patch:
    """Return a patch that mounts the operator's files at /etc/edl, too.

    It is for containers of a launcher that name that path. discover_hosts.sh prints what
    et-operator's prints; the hostfile has lines `NAME slots=N` instead of `NAME:N`.
    """
    if owner_of_launcher(pod.metadata) is None:
        return ()
    return tuple(
        operation
        for index, container in enumerate(pod.spec.containers or ())
        if any(f"{names.EDL_PATH}/" in text for text in container.texts())
        for operation in _mount_again(container, at=f"/spec/containers/{index}/volumeMounts")
    )


def _mount_again(container: PodContainer, *, at: str) -> Patch:
    if not container.finds_files or container.mounts(names.EDL_PATH):
        return ()
    mount = {"name": names.CONFIG_VOLUME, "mountPath": names.EDL_PATH}
    return json_patch.adding(at=f"{at}/{len(container.volume_mounts or ())}", value=mount)


def config_map(config: ConfigMap, job: JobFacts | None) -> Patch:
    """Return a patch that adds a discover_hosts.sh, and elastic.sh to a job that names it.

    So the files exist from the start. No worker is Ready when a job's ConfigMap is created, and the
    controller publishes each worker that becomes Ready. If the job is not known yet, the controller
    adds elastic.sh a moment later.
    """
    owner = job_of(config.metadata)
    if owner is None or config.metadata.name != names.config_map(owner.name) or config.data is None:
        return ()
    if config.has(names.KEY_DISCOVER_HOSTS):
        return ()
    known = job if job and job.metadata.uid == owner.uid else None
    patch = json_patch.adding(
        at=f"/data/{names.KEY_DISCOVER_HOSTS}", value=_first_list(config, known)
    )
    if known and known.names_elastic and not config.has(names.KEY_ELASTIC):
        patch += json_patch.adding(at=f"/data/{names.KEY_ELASTIC}", value=elastic_script.TEXT)
    return patch


def _first_list(config: ConfigMap, job: JobFacts | None) -> str:
    """Return the first discover_hosts.sh: without hosts, unless nobody keeps the list.

    [operator] The launcher of such a job waits until all workers of the hostfile run.
    """
    if job is None or not job.names_elastic or job.policy.enabled is not False:
        return names.discover_hosts([], slots=1)
    hosts = _hosts(config, job.metadata.name)
    text = names.discover_hosts(list(hosts), slots=hostfile_slots(config.hostfile) or 1)
    return text if config.has_room(text) else names.discover_hosts([], slots=1)


def startup_hostfile(config: ConfigMap, job: JobFacts | None) -> Patch:
    """Return a patch that shortens the hostfile of a new job.

    The job may start at its smallest size, or skip workers. [operator] The operator writes a line
    for each worker, and its launcher waits for all of them. With a hostfile that is shortened
    before the launcher is created, the launcher waits only for the smallest size. If the job is not
    known yet, the controller does the same a moment later (decide/launcher_start).
    """
    owner = config.metadata.controller
    if job is None or owner is None or owner.uid != job.metadata.uid or not job.elastic:
        return ()
    skips = job.skips
    lines = config.hostfile.splitlines(keepends=True)
    if len(_hosts(config, owner.name)) != len(lines):
        return ()
    wanted = [line for index, line in enumerate(lines) if index not in skips]
    wanted = wanted[: job.startup_workers]
    if len(wanted) == len(lines):
        return ()
    return json_patch.replacing(at=f"/data/{names.KEY_HOSTFILE}", value="".join(wanted))


def _hosts(config: ConfigMap, job: str) -> Sequence[str]:
    """Return the workers of the hostfile as the operator writes it; none if it is another one."""
    lines = config.hostfile.splitlines()
    hosts = [names.worker(job, index) for index in range(len(lines))]
    pairs = zip(lines, hosts, strict=True)
    return hosts if all(line.startswith(f"{host} slots=") for line, host in pairs) else ()


def selector(job: MPIJob) -> Patch:
    """Return a patch that puts the workers' selector back into a job's status.

    [operator] UpdateStatus drops fields that its Go type does not know. The scale subresource reads
    the selector there, and an HPA without it does nothing. It selects only workers, because an HPA
    would count the launcher's load too.
    """
    if not job.lacks_selector or not job.metadata.name:
        return ()
    return json_patch.adding(
        at="/status/replicaStatuses/Worker/selector", value=names.worker_selector(job.metadata.name)
    )


def gates(pod: AdmittedPod, job: JobFacts | None) -> Patch:
    """Return a patch that adds the gates of a launcher or worker that must not start yet.

    A pod gets gates at its creation or never; the controller takes them off (decide/stop). job: as
    last seen. https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
    """
    # The API server refuses gates on a pod whose node is chosen.
    if job is None or not job.gates or pod.spec.node_name or not role_of(pod, job):
        return ()
    there = [gate.name for gate in pod.spec.scheduling_gates or ()]
    new = [{"name": gate} for gate in job.gates if gate not in there]
    if not there:
        return json_patch.adding(at="/spec/schedulingGates", value=new)
    return tuple(
        operation
        for gate in new
        for operation in json_patch.adding(at="/spec/schedulingGates/-", value=gate)
    )


def _is_elastic(pod: AdmittedPod, owner: OwnerReference, job: JobFacts | None) -> bool:
    """Tell whether the launcher reads the host list.

    Its own command says so, or an annotation of its MPIJob.
    """
    if policy.names_discovery(_texts(pod)):
        return True
    return job is not None and job.metadata.uid == owner.uid and job.policy.enabled is True


def _names_elastic(pod: AdmittedPod) -> bool:
    """Tell whether a container of the pod names elastic.sh."""
    return job_facts.runs_elastic(pod.spec.containers or ())


def _texts(pod: AdmittedPod) -> Iterator[str]:
    """Yield the texts of a pod's containers that may name a file."""
    for container in pod.spec.containers or ():
        yield from container.texts()


def role_of(pod: AdmittedPod, job: JobFacts) -> str:
    """Return a pod's role in this job, as the operator labels and names it; "" if it has none."""
    owner = job_of(pod.metadata)
    if owner is None or owner.uid != job.metadata.uid:
        return ""
    # Each rule for new pods asks, so only the name of the role that the label says is looked at.
    role = pod.metadata.labels.get(names.LABEL_JOB_ROLE, "")
    if role == names.ROLE_LAUNCHER:
        return role if pod.metadata.name == names.launcher(owner.name) else ""
    if role == names.ROLE_WORKER:
        is_worker = names.worker_index(pod.metadata.name, job=owner.name) is not None
        return role if is_worker else ""
    return ""


def owner_of_launcher(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the MPIJob whose launcher a pod is, by its labels and name; None for another pod."""
    owner, labels = job_of(metadata), metadata.labels
    said = labels.get(names.LABEL_GROUP_NAME), labels.get(names.LABEL_JOB_ROLE)
    is_launcher = said == (names.GROUP, names.ROLE_LAUNCHER)
    return owner if owner and is_launcher and metadata.name == names.launcher(owner.name) else None


def job_of(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the reference to the MPIJob that controls an object; None if none does."""
    owner = metadata.controller
    if owner is None or owner.kind != MPI_JOBS.kind or owner.api_version != _MPI_JOBS_VERSION:
        return None
    return owner
