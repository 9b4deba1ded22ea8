"""Read jobs once: four paged lists, for one job or for all. Jobs come first, because they show what is wrong.

An object that cannot be read ends the command with a message, except Roles: few users may read those, and only the plan
needs them.
"""

from typing import TypeVar

from mpijob_elastic.cli.jobs.selection import Selection, Source
from mpijob_elastic.cli.jobs.shown_facts import SeenJob
from mpijob_elastic.cli.jobs.snapshot import Snapshot, snapshots
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.observe.facts_config import RoleFacts

T = TypeVar("T")


class NotServed(errors.KubeError):
    """The cluster does not serve the MPIJobs of mpi-operator v0.2.3."""


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """Return the jobs, sorted by namespace and name. Raises NotServed and other `errors.KubeError`."""
    namespace = selection.namespace
    return snapshots(
        jobs=await _jobs(client, selection),
        pods=await _list(client, namespace, selection.pods),
        configs=await _list(client, namespace, selection.configs),
        roles=await _roles(client, selection),
    )


async def job_names(client: ApiReader, namespace: str | None) -> list[str]:
    """Return the names of all jobs there, as a hint for a user who asked for another."""
    return [job.metadata.name for job in await _jobs(client, Selection(namespace=namespace))]


async def _jobs(client: ApiReader, selection: Selection) -> list[SeenJob]:
    kind = resources.MPI_JOBS
    try:
        return await _list(client, selection.namespace, selection.jobs)
    except errors.NotFound as error:
        raise NotServed(
            f"{client.host} does not serve {kind.kind} {kind.api_version}; install mpi-operator v0.2.3, "
            "or choose another cluster with --context"
        ) from error


async def _roles(client: ApiReader, selection: Selection) -> list[RoleFacts] | None:
    try:
        return await _list(client, selection.namespace, selection.roles)
    except errors.Forbidden:
        return None


async def _list(client: ApiReader, namespace: str | None, source: Source[T]) -> list[T]:
    return await list_objects(client, source.resource.path(namespace), source.read, query=source.query())
