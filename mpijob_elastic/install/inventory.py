"""Our objects in the cluster: those with our label and a name from the manifests of any overlay."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import overlays, server
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube import wire
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader

SELECTOR = f"app.kubernetes.io/name={names.PROGRAM}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object in the cluster."""

    identity: Identity
    uid: str


def manifests() -> list[Manifest]:
    """Return every manifest of every overlay."""
    return [manifest for name in (overlays.DEFAULT, *Overlay) for manifest in overlays.rendered(name)]


async def look(client: ApiReader, others: Iterable[Manifest] = ()) -> tuple[Server, list[Found]]:
    """Return the API server, with the kinds of `others` too, and our objects in it. Raises `errors.KubeError`."""
    known = manifests()
    found = await server.examine(client, [*known, *others])
    return found, await find(client, found, known)


async def find(client: ApiReader, where: Server, known: Iterable[Manifest]) -> list[Found]:
    """Return the objects of these manifests that exist, in any namespace. Raises `errors.KubeError`."""
    # The namespace is left out: the user chooses where the Role for the jobs is.
    wanted = {(one.api_version, one.kind, one.name) for one in map(identity, known)}
    kinds = sorted({(version, kind) for version, kind, _ in wanted} & where.served.keys())
    lists = await asyncio.gather(*(metadata(client, where.served[kind].path(), SELECTOR) for kind in kinds))
    return [
        Found(identity=Identity(api_version=version, kind=kind, namespace=meta.namespace, name=meta.name), uid=meta.uid)
        for (version, kind), found in zip(kinds, lists, strict=True)
        for meta in found
        if (version, kind, meta.name) in wanted
    ]


async def metadata(client: ApiReader, path: str, selector: str = "") -> list[ObjectMeta]:
    """Return the metadata of every object in a collection. Raises `errors.KubeError`."""
    return [found.metadata for found in await list_objects(client, path, wire.read_stub, selector=selector)]
