"""Select what a user asks for (one job, the jobs of a namespace, all jobs), and read it once: four or five paged lists.

Jobs come first, because they show what is wrong. A list that this user may not read ends the command with a message,
except Roles, Workloads and QueueUnits: few users may read those, and not much depends on them.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import wire as queue_units
from mpijob_elastic.capabilities.kube_queue.facts import Held, QueueUnit
from mpijob_elastic.capabilities.kueue import wire as observed
from mpijob_elastic.capabilities.kueue.facts import Asked, Workload
from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.cli.jobs.snapshot import Snapshot, snapshots
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import ConfigFacts, Role
from mpijob_elastic.observe import facts_config

T = TypeVar("T")


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


_WORKLOADS = Source(resource=resources.WORKLOADS, read=observed.read)
_UNITS = Source(resource=resources.QUEUE_UNITS, read=queue_units.read)


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """Return the jobs, sorted by namespace and name. Raises NotServed and other `errors.KubeError`."""
    found = await jobs(client, selection)
    pods = await _list(client, selection.namespace, selection.pods)
    configs = await _list(client, selection.namespace, selection.configs)
    roles: list[Role] | None = None
    with suppress(errors.Forbidden):
        roles = await _list(client, selection.namespace, selection.roles)
    workloads: list[Workload] | None = None
    if any(job.facts.of(Asked) for job in found):
        with suppress(errors.Forbidden, errors.NotFound):  # of others, too, because they tell the place in the queue
            workloads = await _list(client, selection.namespace, _WORKLOADS)
    units: list[QueueUnit] = []
    if any(job.facts.of(Held) for job in found):
        with suppress(errors.Forbidden, errors.NotFound):
            units = await _list(client, selection.namespace, _UNITS)
    return snapshots(jobs=found, pods=pods, configs=configs, roles=roles, workloads=workloads, units=units)


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


async def _list(client: ApiReader, namespace: str | None, source: Source[T]) -> list[T]:
    return await list_objects(client, source.resource.path(namespace), source.read, query=source.query())
