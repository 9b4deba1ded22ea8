"""What of ours is in the cluster: objects that have our label and a name from the manifests of any overlay."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Identity, Manifest
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube import wire
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader

SELECTOR = f"app.kubernetes.io/name={names.PROGRAM}"

Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object in the cluster."""

    identity: Identity
    uid: str


def manifests() -> list[Manifest]:
    """Every manifest of every overlay."""
    return [one for name in (overlays.DEFAULT, *Overlay) for one in overlays.rendered(name)]


def key(one: Identity) -> Key:
    """What is known of an object beforehand: in which namespace the jobs' Role is, is the user's choice."""
    return one.api_version, one.kind, one.name


async def find(client: ApiReader, server: Server, known: Iterable[Key]) -> list[Found]:
    """Which of these are there, in any namespace. Raises `errors.KubeError`."""
    wanted = frozenset(known)
    kinds = sorted({(version, kind) for version, kind, _ in wanted} & server.served.keys())
    lists = await asyncio.gather(*(_list(client, server, kind) for kind in kinds))
    return [one for found in lists for one in found if key(one.identity) in wanted]


async def metadata(client: ApiReader, path: str, *, selector: str = "") -> list[ObjectMeta]:
    """The metadata of every object in a collection. Raises `errors.KubeError`."""
    return [found.metadata for found in await list_objects(client, path, wire.read_stub, selector=selector)]


async def _list(client: ApiReader, server: Server, kind: tuple[str, str]) -> list[Found]:
    found = await metadata(client, server.served[kind].path(), selector=SELECTOR)
    return [
        Found(identity=Identity(api_version=kind[0], kind=kind[1], namespace=one.namespace, name=one.name), uid=one.uid)
        for one in found
    ]
