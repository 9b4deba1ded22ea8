"""What an upgrade needs that the installer does not check: the definition, the record, and the traces on jobs."""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.install import server
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.preflight import check_rights
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MPI_JOBS,
    PODS,
    SECRETS,
    Resource,
)

_NEEDED = (
    (SECRETS, names.NAMESPACE, ("get", "create", "patch", "delete")),
    (CUSTOM_RESOURCE_DEFINITIONS, "", ("get", "patch")),
    (MPI_JOBS, "", ("list", "create", "patch", "delete")),
    (CONFIG_MAPS, "", ("list", "patch")),
    (PODS, "", ("list", "patch")),
)


async def check(client: ApiReader) -> None:
    """Raise `InstallError` where this account may not do all of it; needs no rights itself."""
    wanted = [_identity(resource, namespace) for resource, namespace, _ in _NEEDED]
    asked = [{"apiVersion": one.api_version, "kind": one.kind, "metadata": {"name": one.name}} for one in wanted]
    found = await server.examine(client, asked)
    for one, (_, _, verbs) in zip(wanted, _NEEDED, strict=True):
        await check_rights(client, found, [one], verbs=verbs)


def _identity(resource: Resource, namespace: str) -> Identity:
    return Identity(api_version=resource.api_version, kind=resource.kind, namespace=namespace, name=resource.plural)
