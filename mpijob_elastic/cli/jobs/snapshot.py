"""Read what a user asks for: one job, the jobs of a namespace, all jobs. `live` follows them.

Each job comes as a snapshot: the controller's view, and some facts for people. Lists are paged, jobs first, because
they show what is wrong. A list that this user may not read ends the command with a message, except Roles and what shows
capabilities: few users may read those, and not much depends on them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.decide import derive
from mpijob_elastic.decide.wishes import See
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import ConfigFacts, JobView, Role
from mpijob_elastic.model.wire import Fact
from mpijob_elastic.observe import facts_config, views

T = TypeVar("T", bound=KubeObject)
F = TypeVar("F", bound=Fact)
# What the objects of a capability say of a job, and those of each job.
Seeing = tuple[See[Any], Mapping[tuple[str, str], list[Any]]]


class NotServed(errors.KubeError):
    """The cluster does not serve the MPIJobs of mpi-operator v0.2.3."""


@dataclass(frozen=True, kw_only=True)
class Source(Generic[T]):
    """Objects of one resource, how their JSON is read, and the selectors of a list or a watch."""

    resource: Resource
    read: Callable[[bytes], T]
    label: str | None = None
    field: str | None = None

    def query(self) -> dict[str, str]:
        """Return the selectors as parameters of a request."""
        given = {"labelSelector": self.label, "fieldSelector": self.field}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """namespace: None for all. job: None for every job there."""

    namespace: str | None
    job: str | None = None

    @property
    def jobs(self) -> Source[SeenJob]:
        """The MPIJobs."""
        field = f"metadata.name={self.job}" if self.job else None
        return Source(resource=resources.MPI_JOBS, read=shown_facts.read_job, field=field)

    @property
    def pods(self) -> Source[SeenPod]:
        """Their pods."""
        mine = f",{names.LABEL_JOB_NAME}={self.job}" if self.job else ""
        return Source(resource=resources.PODS, read=shown_facts.read_pod, label=names.POD_SELECTOR + mine)

    @property
    def configs(self) -> Source[ConfigFacts]:
        """Their ConfigMaps."""
        return self._side(resources.CONFIG_MAPS, facts_config.read_config, names.config_map)

    @property
    def roles(self) -> Source[Role]:
        """The Roles of their launchers."""
        return self._side(resources.ROLES, facts_config.read_role, names.launcher)

    def _side(self, resource: Resource, read: Callable[[bytes], T], name_of: Callable[[str], str]) -> Source[T]:
        if self.job:
            return Source(resource=resource, read=read, field=f"metadata.name={name_of(self.job)}")
        return Source(resource=resource, read=read, label=names.LABEL_APP)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """pods: by name. role_readable: this user may read Roles."""

    view: JobView
    job: SeenJob
    pods: Mapping[str, SeenPod]
    role_readable: bool


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """Return the jobs, sorted by namespace and name. Raises NotServed and other `errors.KubeError`."""
    found = await jobs(client, selection)
    pods = await _list(client, selection.namespace, selection.pods)
    configs = await _list(client, selection.namespace, selection.configs)
    roles: list[Role] | None = None
    with suppress(errors.Forbidden):
        roles = await _list(client, selection.namespace, selection.roles)
    seeing: list[Seeing] = []
    for each in capabilities.ALL:
        if reading := next(filter(None, (each.reading(job.facts) for job in found)), None):
            with suppress(errors.Forbidden, errors.NotFound):
                objects = await list_objects(client, reading.resource.path(selection.namespace), reading.read)
                seeing.append((reading.seeing(objects), grouped(objects)))
    return snapshots(jobs=found, pods=pods, configs=configs, roles=roles, seeing=seeing)


async def jobs(client: ApiReader, selection: Selection) -> list[SeenJob]:
    """Return the MPIJobs alone. Raises as `fetch` does."""
    kind = resources.MPI_JOBS
    try:
        return await _list(client, selection.namespace, selection.jobs)
    except errors.NotFound as error:
        raise NotServed(
            f"{client.host} does not serve {kind.kind} {kind.api_version}; install mpi-operator v0.2.3, "
            "or choose another cluster with --context"
        ) from error


def snapshots(
    *,
    jobs: Iterable[SeenJob],
    pods: Collection[SeenPod],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] | None,
    seeing: Collection[Seeing] = (),
) -> list[Snapshot]:
    """Return each job with its objects, sorted by namespace and name.

    roles: None where this user may not read them. seeing: by which capabilities are seen.
    """
    ordered = sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    facts = [pod.facts for pod in pods]
    found = views.each([job.facts for job in ordered], pods=facts, configs=configs, roles=roles or ())
    pods_of, result = grouped(pods), []
    for job, plain in zip(ordered, found, strict=True):
        key = (plain.namespace, plain.name)
        view = capabilities.told(plain, seen=(see(plain, of_job[key]) for see, of_job in seeing))
        mine = {pod.metadata.name: pod for pod in pods_of[key]}
        result.append(Snapshot(view=view, job=_named(job, view), pods=mine, role_readable=roles is not None))
    return result


def grouped(found: Iterable[F]) -> Mapping[tuple[str, str], list[F]]:
    """Return the objects of each job, by its namespace and name."""
    grouped: dict[tuple[str, str], list[F]] = defaultdict(list)
    for one in found:
        grouped[one.metadata.namespace, one.metadata.job].append(one)
    return grouped


def _named(job: SeenJob, view: JobView) -> SeenJob:
    """Return the job with the state that a capability knows better than the operator."""
    state = derive(view, now=time.time())
    words = (one.state_word(state) for one in state.wishes.capabilities)
    return msgspec.structs.replace(job, state=next(filter(None, words), job.state))


async def _list(client: ApiReader, namespace: str | None, source: Source[T]) -> list[T]:
    return await list_objects(client, source.resource.path(namespace), source.read, query=source.query())
