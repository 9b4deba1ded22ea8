"""Our objects in the cluster: those with our label and a name from the manifests of any overlay."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import overlays
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


async def find(client: ApiReader, server: Server, known: Iterable[Manifest]) -> list[Found]:
    """Return the objects of these manifests that exist, in any namespace. Raises `errors.KubeError`."""
    # The namespace is left out: the user chooses where the Role for the jobs is.
    wanted = {(one.api_version, one.kind, one.name) for one in map(identity, known)}
    kinds = sorted({(version, kind) for version, kind, _ in wanted} & server.served.keys())
    lists = await asyncio.gather(*(metadata(client, server.served[kind].path(), SELECTOR) for kind in kinds))
    return [
        Found(identity=Identity(api_version=version, kind=kind, namespace=meta.namespace, name=meta.name), uid=meta.uid)
        for (version, kind), found in zip(kinds, lists, strict=True)
        for meta in found
        if (version, kind, meta.name) in wanted
    ]


async def metadata(client: ApiReader, path: str, selector: str = "") -> list[ObjectMeta]:
    """Return the metadata of every object in a collection. Raises `errors.KubeError`."""
    return [found.metadata for found in await list_objects(client, path, wire.read_stub, selector=selector)]
