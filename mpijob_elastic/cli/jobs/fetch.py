"""Jobs read once: four paged lists, whether one job is asked for or all; jobs first, for they tell what is wrong.

What cannot be read ends the command with a message, except Roles: many users may not read those, and only the plan
needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.cli.jobs.selection import Selection, Selectors
from mpijob_elastic.cli.jobs.snapshot import Objects, Snapshot
from mpijob_elastic.kube import errors, resources, wire
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.observe import facts_config
from mpijob_elastic.observe.facts_config import RoleFacts

T = TypeVar("T")

PAGE = 500


class NotServed(errors.KubeError):
    """The cluster does not know MPIJobs as the operator we stand beside does."""


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """The jobs, sorted by namespace and name. Raises NotServed and other `errors.KubeError`."""
    namespace = selection.namespace
    return Objects(
        jobs=await _jobs(client, selection),
        pods=await _list(client, resources.PODS, namespace, selection.pods, shown_facts.read_pod),
        configs=await _list(client, resources.CONFIG_MAPS, namespace, selection.configs, facts_config.read_config),
        roles=await _roles(client, selection),
    ).snapshots()


async def job_names(client: ApiReader, namespace: str | None) -> list[str]:
    """The names of all jobs there, for a hint to whoever asked for one that is not."""
    jobs = await _jobs(client, Selection(namespace=namespace))
    return [job.metadata.name for job in jobs]


async def _jobs(client: ApiReader, selection: Selection) -> list[shown_facts.SeenJob]:
    kind = resources.MPI_JOBS
    try:
        return await _list(client, kind, selection.namespace, selection.jobs, shown_facts.read_job)
    except errors.NotFound as error:
        raise NotServed(
            f"{client.host} does not serve {kind.kind} {kind.api_version}; install mpi-operator v0.2.3, "
            "or choose another cluster with --context"
        ) from error


async def _roles(client: ApiReader, selection: Selection) -> list[RoleFacts] | None:
    try:
        return await _list(client, resources.ROLES, selection.namespace, selection.roles, facts_config.read_role)
    except errors.Forbidden:
        return None


async def _list(
    client: ApiReader, resource: Resource, namespace: str | None, selectors: Selectors, read: Callable[[bytes], T]
) -> list[T]:
    query = {**selectors.query(), "limit": str(PAGE)}
    found: list[T] = []
    while True:
        page = wire.read_page(await client.get(resource.path(namespace), query=query))
        found += [read(raw) for raw in page.items or ()]
        if not page.metadata.continue_:
            return found
        query["continue"] = page.metadata.continue_
