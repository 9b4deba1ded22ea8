"""Read jobs once: four paged lists, for one job or for all. Jobs come first, because they show what is wrong.

An object that cannot be read ends the command with a message, except Roles: few users may read those, and only the plan
needs them.
"""

from contextlib import suppress
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
    found = await jobs(client, selection)
    pods = await _list(client, selection.namespace, selection.pods)
    configs = await _list(client, selection.namespace, selection.configs)
    roles: list[RoleFacts] | None = None
    with suppress(errors.Forbidden):
        roles = await _list(client, selection.namespace, selection.roles)
    return snapshots(jobs=found, pods=pods, configs=configs, roles=roles)


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
