"""Find our traces on the objects of a job, and which of them may go; pure.

A key that a live launcher mounts must stay: without it the kubelet can no longer refresh the volume, and never restarts
a container of that pod. Our memory stays with the key, so that a later upgrade knows the key as ours. The line in
kubexec.sh that finds the pods of numbered host names stays too, because the key may hold such names. The key of a job
that was handed over belongs to the other operator.
https://kubernetes.io/docs/concepts/storage/volumes/#configmap
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model import job_facts, kubexec
from mpijob_elastic.observe import facts_config, facts_pod
from mpijob_elastic.observe.facts_pod import PodFacts
from upgrade import json_patch
from upgrade.json_patch import Patch

Object = Mapping[str, Any]

_NO_HOSTS = names.discover_hosts([], slots=1)
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A patch that removes our traces from an object; subresource: "" for the object itself."""

    resource: Resource
    namespace: str
    name: str
    patch: Patch
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path for the patch."""
        return self.resource.path(self.namespace, self.name, self.subresource or None)

    def __str__(self) -> str:
        gone = [operation["path"] for operation in self.patch if operation["op"] == "remove"]
        return f"{self.resource.kind} {self.namespace}/{self.name}: {', '.join(map(_readable, gone))}"


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The traces that may go, and what stays.

    kept: jobs (namespace/name) whose live launcher mounts the key. surplus: running workers (namespace/name) beyond the
    size of their job, which nobody will remove without us.
    """

    removals: tuple[Removal, ...] = ()
    kept: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return what stays and why, for people."""
        lines = [
            f"{job}: {names.KEY_DISCOVER_HOSTS} and its annotation stay in the ConfigMap while the launcher, which "
            "mounts it, is alive; run this again when the job has ended, or delete the job"
            for job in self.kept
        ]
        return lines + [
            f"pod {worker} is beyond the size of its job; it has left the host list or is about to; it stays until the "
            "job is deleted"
            for worker in self.surplus
        ]


def find(*, jobs: Iterable[Object], config_maps: Iterable[Object], pods: Iterable[Object]) -> Traces:
    """Return our traces on these MPIJobs, ConfigMaps and pods."""
    jobs, pods = list(jobs), list(pods)
    launchers = [pod for pod in pods if pod["metadata"]["labels"].get(names.LABEL_JOB_ROLE) == names.ROLE_LAUNCHER]
    given = {job["metadata"]["uid"] for job in jobs if names.is_handed_over(_said(job))}
    mounting = {_job(pod) for pod in map(_pod, launchers) if pod.mounts_discovery and pod.phase not in _ENDED}
    removals: list[Removal | None] = [_without_annotation(PODS, pod, names.REFRESHED) for pod in launchers]
    kept = []
    for config in filter(_is_ours, config_maps):
        owner = _job(facts_config.read_config(msgspec.json.encode(config)))
        if owner[2] in given:
            removals.append(_without_annotation(CONFIG_MAPS, config, names.MEMORY))
        elif owner in mounting:
            kept.append("/".join(owner[:2]))
        else:
            removals.append(_without_key(config))
    # Jobs last: after an interruption they still tell whose the keys are.
    for job in jobs:
        removals += [_without_annotation(MPI_JOBS, job, names.STATUS), _without_selector(job)]
    return Traces(
        removals=tuple(removal for removal in removals if removal),
        kept=tuple(sorted(kept)),
        surplus=tuple(sorted(_surplus(jobs, pods))),
    )


def _surplus(jobs: Iterable[Object], pods: Iterable[Object]) -> Iterator[str]:
    sizes = {}
    for job in map(job_facts.read, map(msgspec.json.encode, jobs)):
        sizes[job.metadata.namespace, job.metadata.name, job.metadata.uid] = job.replicas
    for pod in map(_pod, pods):
        size = sizes.get(_job(pod))
        index = names.worker_index(pod.metadata.name, job=pod.metadata.job)
        if size is not None and index is not None and index >= size and pod.phase not in _ENDED:
            yield f"{pod.metadata.namespace}/{pod.metadata.name}"


def _is_ours(config: Object) -> bool:
    facts = facts_config.read_config(msgspec.json.encode(config))
    named = facts.metadata.job and facts.metadata.name == names.config_map(facts.metadata.job)
    return bool(named) and (facts.memory is not None or facts.script == _NO_HOSTS)


def _said(job: Object) -> str:
    text: str = job["metadata"].get("annotations", {}).get(names.STATUS, "")
    return text


def _pod(pod: Object) -> PodFacts:
    return facts_pod.read(msgspec.json.encode(pod))


def _job(facts: PodFacts | facts_config.ConfigFacts) -> tuple[str, str, str]:
    return facts.metadata.namespace, facts.metadata.job, facts.metadata.job_uid


def _without_annotation(resource: Resource, one: Object, key: str) -> Removal | None:
    annotations = one["metadata"].get("annotations", {})
    if key not in annotations:
        return None
    rest = {name: value for name, value in annotations.items() if name != key}
    return _removal(resource, one, {**one, "metadata": {**one["metadata"], "annotations": rest}})


def _without_selector(job: Object) -> Removal | None:
    """Return the removal. The operator drops the selector at its next status update, but never for an ended job."""
    # [operator] replicaStatuses is null until the operator has counted the pods.
    status = job.get("status") or {}
    worker = (status.get("replicaStatuses") or {}).get("Worker") or {}
    if worker.get("selector") != names.worker_selector(job["metadata"]["name"]):
        return None
    rest = {key: value for key, value in worker.items() if key != "selector"}
    after = {**job, "status": {**status, "replicaStatuses": {**status["replicaStatuses"], "Worker": rest}}}
    return replace(_removal(MPI_JOBS, job, after), subresource="status")


def _without_key(config: Object) -> Removal | None:
    metadata = config["metadata"]
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != names.MEMORY}
    data = {key: value for key, value in config.get("data", {}).items() if key != names.KEY_DISCOVER_HOSTS}
    if names.KEY_KUBEXEC in data:
        data[names.KEY_KUBEXEC] = kubexec.unmapped(data[names.KEY_KUBEXEC])
    kept = {**metadata, "annotations": annotations} if "annotations" in metadata else metadata
    return _removal(CONFIG_MAPS, config, {**config, "metadata": kept, "data": data})


def _removal(resource: Resource, before: Object, after: Object) -> Removal:
    metadata = before["metadata"]
    same = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
    patch = (same, *json_patch.guarded(before, after))
    return Removal(resource=resource, namespace=metadata["namespace"], name=metadata["name"], patch=patch)


def _readable(path: str) -> str:
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
