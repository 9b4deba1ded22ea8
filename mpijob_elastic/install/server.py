"""The API server: its version, where each kind is served, and our objects in it.

Ours have our label and a name from the manifests of any overlay.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Identity, Manifest, identity, read
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube import wire
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import Resource

# The oldest minor version of Kubernetes 1 that can be installed into: the first whose webhooks have matchConditions.
OLDEST = 28
# The optional kinds, and the first minor version of Kubernetes 1 that serves each; every other kind is needed.
OPTIONAL_KINDS = {"FlowSchema": 29, "ValidatingAdmissionPolicy": 30, "ValidatingAdmissionPolicyBinding": 30}
DEFINITION = "CustomResourceDefinition"
SELECTOR = f"app.kubernetes.io/name={names.PROGRAM}"


class _Version(msgspec.Struct, rename={"git": "gitVersion"}, kw_only=True):
    """https://kubernetes.io/docs/reference/using-api/."""

    minor: str
    git: str


@dataclass(frozen=True, kw_only=True)
class Server:
    """An API server. version: as `v1.34.4`. served: the resource of every kind that was asked for and is served."""

    version: str
    minor: int
    served: Mapping[tuple[str, str], Resource]

    def path(self, one: Identity) -> str:
        """Return the path of an object, whose kind must be served."""
        return self.served[one.api_version, one.kind].path(one.namespace or None, one.name)


async def examine(client: ApiReader, manifests: Iterable[Manifest]) -> Server:
    """Ask the API server about itself and the kinds of these manifests. Raises `errors.KubeError`."""
    version = msgspec.json.decode(await client.get("/version"), type=_Version)
    wanted = sorted({identity(manifest).api_version for manifest in manifests})
    served: dict[tuple[str, str], Resource] = {}
    for found in await asyncio.gather(*(resources(client, api_version) for api_version in wanted)):
        served |= found
    # Some providers append a plus sign to the number.
    minor = int(re.sub(r"\D", "", version.minor) or 0)
    return Server(version=version.git, minor=minor, served=served)


async def resources(client: ApiReader, api_version: str) -> dict[tuple[str, str], Resource]:
    """Return the resources of an API version such as `apps/v1`, none if it is not served. Raises `errors.KubeError`."""
    group, _, version = api_version.rpartition("/")
    body = await client.find(f"/apis/{api_version}" if group else f"/api/{api_version}")
    if body is None:
        return {}
    return {
        (api_version, one["kind"]): Resource(group=group, version=version, plural=one["name"], kind=one["kind"])
        for one in read(body).get("resources") or ()
        if "/" not in one["name"]
    }


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object in the cluster."""

    identity: Identity
    uid: str


def every_manifest() -> list[Manifest]:
    """Return every manifest of every overlay."""
    return [manifest for name in (overlays.DEFAULT, *Overlay) for manifest in overlays.rendered(name)]


async def look(client: ApiReader) -> tuple[Server, list[Found]]:
    """Return the API server and our objects in it. Raises `errors.KubeError`."""
    known = every_manifest()
    found = await examine(client, known)
    return found, await find(client, found, known)


async def find(client: ApiReader, where: Server, known: Iterable[Manifest]) -> list[Found]:
    """Return the objects of these manifests that exist, in any namespace. Raises `errors.KubeError`."""
    # The namespace is left out: the user chooses where the Role for the jobs is.
    # A definition stays: all that it defines would go with it, whoever uses that.
    wanted = {(one.api_version, one.kind, one.name) for one in map(identity, known) if one.kind != DEFINITION}
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
