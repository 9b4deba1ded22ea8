"""Find our traces on the objects of jobs, and remove those that may go.

Nothing of ours runs any more by then. A key that a live launcher mounts must stay: without it the
kubelet can no longer refresh the volume, and never restarts a container of that pod. Our memory
stays with the key, so that a later installation knows the key as ours. The line in kubexec.sh that
finds the pods of numbered host names stays too, because the key may hold such names. The hostfile
for hydra stays with any live launcher, which may start another mpirun. The key of a job that was
handed over belongs to the other operator.
https://kubernetes.io/docs/concepts/storage/volumes/#configmap
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpijob_elastic import capabilities, names
from mpijob_elastic.install import ATTEMPTS
from mpijob_elastic.install.objects import Say
from mpijob_elastic.install.server import check_rights
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.reader import LARGE_PAGE, ApiReader, list_objects
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from mpijob_elastic.model import kubexec, mpijob
from mpijob_elastic.model.job import ConfigFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import LauncherFacts, PodFacts
from mpijob_elastic.observe import facts_config, facts_pod

Patch = list[dict[str, Any]]

# What the controller writes on an MPIJob.
_OF_JOBS = (names.STATUS, names.PHASE, names.CHANGE, names.SCALED_BY)
_NO_HOSTS = names.discover_hosts([], slots=1)
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class TraceRemoval:
    """A JSON patch that removes our traces from an object.

    The uid is tested first, and each value before it goes: a change that somebody else makes
    meanwhile is never undone. Texts that nobody else writes go whatever they are.
    """

    resource: Resource
    ref: Identity
    patch: Patch
    #: "" for the object itself.
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path for the patch."""
        return self.resource.path(self.ref.namespace, self.ref.name, self.subresource)

    def __str__(self) -> str:
        paths = [str(operation["path"]) for operation in self.patch if operation["op"] == "remove"]
        gone = [path.rsplit("/", 1)[-1].replace("~1", "/") for path in paths]
        return f"{self.resource.kind} {self.ref.namespace}/{self.ref.name}: {', '.join(gone)}"


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The traces that may go, and what stays."""

    removals: tuple[TraceRemoval, ...] = ()
    #: Jobs (namespace/name) whose live launcher mounts the key.
    kept: tuple[str, ...] = ()
    #: Jobs whose live launcher may read the hostfile for hydra.
    kept_hostfiles: tuple[str, ...] = ()
    #: Running workers (namespace/name) beyond the size of their job, which nobody will remove
    #: without us.
    surplus: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return lines, for people, on what stays and why."""
        lines = [
            f"{job}: {names.KEY_DISCOVER_HOSTS} and its annotation stay in the "
            "ConfigMap while the launcher, which mounts it, is alive; run this again "
            "when the job has ended, or delete the job"
            for job in self.kept
        ]
        lines += [
            f"{job}: {names.KEY_HYDRA_HOSTFILE} stays in the ConfigMap while the launcher, which "
            "may read it, is alive; run this again when the job has ended, or delete the job"
            for job in self.kept_hostfiles
        ]
        return lines + [
            f"pod {worker} is beyond the size of its job; it has left the host list or is about "
            "to; it stays until the job is deleted"
            for worker in self.surplus
        ]


async def check(client: ApiReader) -> None:
    """Raise `Refused` if this account lacks a right to find or remove our traces."""
    traced = (MPI_JOBS, CONFIG_MAPS, PODS)
    await check_rights(
        client, [(resource, "", verb) for resource in traced for verb in ("list", "patch")]
    )


async def read_all(client: ApiReader) -> tuple[list[MPIJob], list[ConfigFacts], list[PodFacts]]:
    """Return all MPIJobs, and the ConfigMaps and pods of jobs. Raises `errors.KubeError`."""
    jobs = await list_objects(client, MPI_JOBS.path(), mpijob.decode, size=LARGE_PAGE)
    return jobs, *await read_parts(client)


async def read_parts(client: ApiReader) -> tuple[list[ConfigFacts], list[PodFacts]]:
    """Return the ConfigMaps and pods of all jobs. Raises `errors.KubeError`."""
    listed = partial(list_objects, client, size=LARGE_PAGE)
    read_pod = partial(facts_pod.read, marks=capabilities.POD_MARKS)
    return (
        await listed(CONFIG_MAPS.path(), facts_config.read_config, selector=names.LABEL_APP),
        await listed(PODS.path(), read_pod, selector=names.POD_SELECTOR),
    )


async def look(client: ApiReader) -> Traces:
    """Find our traces in all namespaces. Raises `errors.KubeError`."""
    jobs, configs, pods = await read_all(client)
    return find(jobs=jobs, configs=configs, pods=pods)


async def sweep(client: ApiWriter, *, say: Say, said: Collection[str] = ()) -> list[str]:
    """Remove our traces, and say what stays; return a line for each trace that was not removed.

    A refusal holds up no other object. What changed meanwhile is looked at again. said: the lines
    on what stays that the user has read. Raises `errors.KubeError` if the API server is away.
    """
    refused: dict[str, errors.ApiError] = {}
    left = Traces()
    for _ in range(ATTEMPTS):
        try:
            left = await look(client)
        except errors.ApiError as error:
            if errors.is_away(error):
                raise
            return [f"Our annotations and keys on jobs were not removed: {error}"]
        refused = {}
        for trace in left.removals:
            if why := await _remove(client, trace, say=say):
                refused[str(trace)] = why
        if not any(map(_may_have_changed, refused.values())):
            break
    for line in left.lines():
        if line not in said:
            say(line)
    return [f"Not removed from {trace}: {why}" for trace, why in refused.items()]


def find(
    *, jobs: Sequence[MPIJob], configs: Iterable[ConfigFacts], pods: Sequence[PodFacts]
) -> Traces:
    """Return our traces on these MPIJobs, ConfigMaps and pods; pure."""
    launchers = [pod for pod in pods if isinstance(pod, LauncherFacts)]
    handed_over = {
        job.metadata.uid
        for job in jobs
        if names.is_handed_over(job.metadata.annotations.get(names.STATUS, ""))
    }
    live = [pod for pod in launchers if pod.phase not in _ENDED]
    alive = {_job(pod) for pod in live}
    mounting = {_job(pod) for pod in live if pod.mounts_discovery}
    removals: list[TraceRemoval] = []
    kept = []
    ours = list(filter(_is_ours, configs))

    def remove(resource: Resource, one: Identity, patch: Patch, *, subresource: str = "") -> None:
        if patch:
            uid = {"op": "test", "path": "/metadata/uid", "value": one.uid}
            removals.append(
                TraceRemoval(
                    resource=resource, ref=one, patch=[uid, *patch], subresource=subresource
                )
            )

    for pod in pods:
        marks: dict[str, str | None] = {**pod.marks}
        if isinstance(pod, LauncherFacts):
            marks[names.REFRESHED] = pod.refreshed
        remove(PODS, pod.metadata, _annotations(marks, marks))
    for config in ours:
        memory = _without(config.memory, _annotation(names.MEMORY))
        # nobody else reads the history, so it goes whatever it is; the patch also holds where there
        # is none
        if memory:
            path = _annotation(names.HISTORY)
            memory += [{"op": "add", "path": path, "value": ""}, {"op": "remove", "path": path}]
        if config.metadata.job_uid in handed_over:
            remove(CONFIG_MAPS, config.metadata, memory)
        elif _job(config) in mounting:
            kept.append(f"{config.metadata.namespace}/{config.metadata.job}")
        else:
            files = _files(config, is_read=_job(config) in alive)
            remove(CONFIG_MAPS, config.metadata, memory + files + _unmapped(config.kubexec))
    # Jobs come last: after an interruption they still tell whose the keys are.
    for job in jobs:
        remove(MPI_JOBS, job.metadata, _annotations(job.metadata.annotations, _OF_JOBS))
        # The operator drops the selector at its next status update, but never for an ended job.
        remove(
            MPI_JOBS,
            job.metadata,
            _without(_selector(job), f"/{'/'.join(names.SELECTOR_PATH)}"),
            subresource="status",
        )
    return Traces(
        removals=tuple(removals),
        kept=tuple(sorted(kept)),
        kept_hostfiles=tuple(sorted(_kept_hostfiles(ours, alive))),
        surplus=tuple(sorted(_surplus(jobs, pods))),
    )


async def _remove(client: ApiWriter, trace: TraceRemoval, *, say: Say) -> errors.ApiError | None:
    """Remove a trace; return why it was refused, None if it is gone.

    Raises `errors.KubeError` if the API server is away.
    """
    try:
        await client.patch_object(trace.path, body=trace.patch, content_type=JSON_PATCH)
    except errors.NotFound:
        return None
    except errors.ApiError as error:
        if errors.is_away(error):
            raise
        return error
    say(f"removed from {trace}")
    return None


def _may_have_changed(error: errors.ApiError) -> bool:
    """Tell whether somebody may have changed exactly this, or made another object of that name."""
    return isinstance(error, errors.Conflict | errors.Invalid)


def _surplus(jobs: Iterable[MPIJob], pods: Iterable[PodFacts]) -> Iterator[str]:
    sizes = {
        (job.metadata.namespace, job.metadata.name, job.metadata.uid): job.replicas for job in jobs
    }
    for pod in pods:
        size = sizes.get(_job(pod))
        index = names.worker_index(pod.metadata.name, job=pod.metadata.job)
        if size is not None and index is not None and index >= size and pod.phase not in _ENDED:
            yield f"{pod.metadata.namespace}/{pod.metadata.name}"


def _is_ours(config: ConfigFacts) -> bool:
    named = config.metadata.job and config.metadata.name == names.config_map(config.metadata.job)
    return bool(named) and (_has_our_list(config) or config.has_hydra)


def _has_our_list(config: ConfigFacts) -> bool:
    """Tell whether the list of hosts is ours; nobody else gives a job elastic.sh of any version."""
    return config.memory is not None or config.script == _NO_HOSTS or config.elastic != ""


def _kept_hostfiles(
    configs: Iterable[ConfigFacts], alive: Collection[tuple[str, str, str]]
) -> Iterator[str]:
    for config in configs:
        if config.has_hydra and _job(config) in alive:
            yield f"{config.metadata.namespace}/{config.metadata.job}"


def _files(config: ConfigFacts, *, is_read: bool) -> Patch:
    """Return the operations that remove our files; is_read: the launcher may read the hostfile."""
    patch: Patch = []
    if _has_our_list(config):
        patch += _without(config.script, f"/data/{names.KEY_DISCOVER_HOSTS}")
    if config.elastic:
        patch.append(_removed(names.KEY_ELASTIC))
    if config.has_hydra and not is_read:
        patch.append(_removed(names.KEY_HYDRA_HOSTFILE))
    return patch


def _removed(key: str) -> dict[str, Any]:
    """Return the operation that removes a key of ours whose text is not kept."""
    return {"op": "remove", "path": f"/data/{key}"}


def _job(facts: PodFacts | ConfigFacts) -> tuple[str, str, str]:
    return facts.metadata.namespace, facts.metadata.job, facts.metadata.job_uid


def _selector(job: MPIJob) -> str | None:
    """Return the selector in the job's status if it is ours."""
    statuses = job.status.replica_statuses if job.status else None
    selector = statuses.worker.selector if statuses and statuses.worker else None
    return selector if selector == names.worker_selector(job.metadata.name) else None


def _annotation(key: str) -> str:
    """Return the path of an annotation; no key of ours holds a tilde."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


def _annotations(said: Mapping[str, str | None], keys: Iterable[str]) -> Patch:
    """Return the operations that remove those annotations that have a value."""
    return [part for key in keys for part in _without(said.get(key), _annotation(key))]


def _without(value: str | None, path: str) -> Patch:
    """Return the operations that remove the field at this path if it still has this value.

    There are none without a value.
    """
    return (
        []
        if value is None
        else [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}]
    )


def _unmapped(script: str | None) -> Patch:
    """Return the operations that take our line out of kubexec.sh, if it is there."""
    if script is None or not kubexec.is_mapped(script):
        return []
    path = f"/data/{names.KEY_KUBEXEC}"
    own = kubexec.unmapped(script)
    return [
        {"op": "test", "path": path, "value": script},
        {"op": "replace", "path": path, "value": own},
    ]
