"""Variables by which any mpirun starts its ranks in the workers; pure.

[operator] A launcher gets two variables, which Open MPI reads up to version 4: the remote shell and
the hostfile. Open MPI 5, MPICH and Intel MPI read others. Without these, their mpirun starts all
ranks in the launcher, and nobody is told. Workers have no kubectl, so none of them may start
others, as a tree does above 64 hosts.

MPICH and Intel MPI (their mpirun is hydra) read lines `NAME:N`, and refuse the operator's hostfile.
Such a file is a key of the job's ConfigMap. Hydra ends with an error if its file is missing. The
volume is optional all the same: a ConfigMap that was made while the webhook was away, or by an
earlier version, lacks the key, and a launcher must start that brings its own list of hosts. Drivers
that follow discover_hosts.sh get no such file: elastic.sh writes one for each start.

Hydra in a worker connects to the launcher, whose name no worker can resolve; with the name of an
interface hydra gives its address. A pod that has a network of its own calls it eth0.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, ConfigMap, PodContainer, job_of, role_of
from mpijob_elastic.model.job_facts import JobFacts

_AGENT = f"{names.MOUNT_PATH}/{names.KEY_KUBEXEC}"
_INTERFACE = "eth0"


@dataclass(frozen=True)
class Group:
    """Variables that mean something only together: none is set where a user has set one."""

    #: Name and value of each.
    values: Mapping[str, str]
    #: Other names by which a user says the same.
    synonyms: Collection[str] = ()

    def missing_in(self, container: PodContainer) -> Mapping[str, str]:
        """Return the variables that a container should get."""
        known = {*self.values, *self.synonyms}
        if any(name in known for name, _ in container.variables()):
            return {}
        return self.values


_GROUPS = (
    Group({"OMPI_MCA_plm_rsh_no_tree_spawn": "1"}),
    Group({"PRTE_MCA_plm_ssh_agent": _AGENT}, ["PRTE_MCA_plm_rsh_agent"]),
    Group({"PRTE_MCA_prte_default_hostfile": names.HOSTFILE_PATH}),
    Group({"PRTE_MCA_plm_ssh_no_tree_spawn": "1"}, ["PRTE_MCA_plm_rsh_no_tree_spawn"]),
    Group(
        {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": _AGENT},
        ["HYDRA_BOOTSTRAP", "HYDRA_BOOTSTRAP_EXEC"],
    ),
    Group({"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": _AGENT}),
    Group({"I_MPI_HYDRA_BRANCH_COUNT": "0"}),
)
_OF_OWN_NETWORK = (
    Group({"HYDRA_IFACE": _INTERFACE}),
    Group({"I_MPI_HYDRA_IFACE": _INTERFACE}),
)
_OF_HOSTFILE = (
    Group({"HYDRA_HOST_FILE": names.HYDRA_HOSTFILE_PATH}),
    Group({"I_MPI_HYDRA_HOST_FILE": names.HYDRA_HOSTFILE_PATH}, ["I_MPI_HYDRA_HOSTS_GROUP"]),
)


def launcher(pod: AdmittedPod, job: JobFacts | None) -> Patch:
    """Return a patch that sets the variables, and mounts the hostfile for hydra.

    They are for the containers that have the operator's files. What a template sets stays; where it
    mounts something else in place of the hostfile, no variable names that file.

    Variables of a whole object (envFrom) are not in the pod, and count less than ours would: such a
    container gets ours only if an annotation asks for them. `job`: the MPIJob as last seen.
    """
    if job is None or not _wants(job) or role_of(pod, job) != names.ROLE_LAUNCHER:
        return ()
    containers = [
        (index, container)
        for index, container in enumerate(pod.spec.containers or ())
        if container.finds_files and (job.policy.mpi_variables or not container.env_from)
    ]
    groups = _GROUPS if pod.spec.host_network else (*_GROUPS, *_OF_OWN_NETWORK)
    readers = {
        index: container for index, container in containers if _gets_file(container, pod, job)
    }
    patch: Patch = ()
    for index, container in containers:
        of_file = _OF_HOSTFILE if index in readers else ()
        patch += _setting(container, (*groups, *of_file), at=f"/spec/containers/{index}/env")
    return patch + _mounting(pod, job, readers)


def _gets_file(container: PodContainer, pod: AdmittedPod, job: JobFacts) -> bool:
    """Tell whether a container has the hostfile for hydra, which fails without a named file."""
    has_room = container.mounts(names.HYDRA_FOLDER) in ("", names.HYDRA_VOLUME)
    return has_room and not _follows_list(job) and _may_mount(pod, job)


def _may_mount(pod: AdmittedPod, job: JobFacts) -> bool:
    """Tell whether the pod has no volume of that name, or the one that it got from us."""
    config = names.config_map(job.metadata.name)
    return all(
        volume.config_map is not None and volume.config_map.name == config
        for volume in pod.spec.volumes or ()
        if volume.name == names.HYDRA_VOLUME
    )


def _setting(container: PodContainer, groups: Iterable[Group], *, at: str) -> Patch:
    new = [
        {"name": name, "value": value}
        for group in groups
        for name, value in group.missing_in(container).items()
    ]
    if container.env is None:
        return json_patch.adding(at=at, value=new) if new else ()
    return tuple(
        operation
        for position, one in enumerate(new, start=len(container.env))
        for operation in json_patch.adding(at=f"{at}/{position}", value=one)
    )


def _mounting(pod: AdmittedPod, job: JobFacts, readers: Mapping[int, PodContainer]) -> Patch:
    patch: Patch = ()
    for index, container in readers.items():
        if not container.mounts(names.HYDRA_FOLDER):
            at = f"/spec/containers/{index}/volumeMounts/{len(container.volume_mounts or ())}"
            value = {"name": names.HYDRA_VOLUME, "mountPath": names.HYDRA_FOLDER}
            patch += json_patch.adding(at=at, value=value)
    volumes = pod.spec.volumes or []
    if patch and all(volume.name != names.HYDRA_VOLUME for volume in volumes):
        patch += json_patch.adding(at=f"/spec/volumes/{len(volumes)}", value=_volume(job))
    return patch


def _volume(job: JobFacts) -> Mapping[str, Any]:
    key = names.KEY_HYDRA_HOSTFILE
    config = {
        "name": names.config_map(job.metadata.name),
        "items": [{"key": key, "mode": names.MODE_READABLE, "path": key}],
        "optional": True,
    }
    return {"name": names.HYDRA_VOLUME, "configMap": config}


def config_map(config: ConfigMap, job: JobFacts | None) -> Patch:
    """Return a patch that adds the hostfile for hydra to a job's new ConfigMap.

    It names the hosts of the operator's hostfile. A job that is not known yet gets it: its launcher
    may need it.
    """
    owner = job_of(config.metadata)
    if owner is None or config.data is None or config.has(names.KEY_HYDRA_HOSTFILE):
        return ()
    is_known = job is not None and job.metadata.uid == owner.uid
    if job is not None and is_known and (_follows_list(job) or not _wants(job)):
        return ()
    lines = [line.split(" slots=") for line in config.hostfile.splitlines()]
    if any(len(line) != 2 for line in lines):
        return ()  # nobody knows what these lines mean
    text = "".join(f"{host}:{slots}\n" for host, slots in lines)
    if not config.has_room(text):
        return ()
    return json_patch.adding(at=f"/data/{names.KEY_HYDRA_HOSTFILE}", value=text)


def _wants(job: JobFacts) -> bool:
    """Tell whether a job's launcher gets the variables.

    With `enabled: "false"` the job's pods stay as the operator makes them, unless the annotation
    asks for the variables.
    """
    if job.policy.mpi_variables is None:
        return job.policy.enabled is not False
    return job.policy.mpi_variables


def _follows_list(job: JobFacts) -> bool:
    """Tell whether the launcher's program reads discover_hosts.sh."""
    return job.elastic or job.names_elastic
