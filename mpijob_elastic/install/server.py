"""The API server: its version, and where each kind is served.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic.install.objects import Identity, Manifest, identity, read
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource

# The oldest minor version of Kubernetes 1 that can be installed into: the first whose webhooks have matchConditions.
OLDEST = 28
# The optional kinds, and the first minor version of Kubernetes 1 that serves each; every other kind is needed.
OPTIONAL_KINDS = {"FlowSchema": 29, "ValidatingAdmissionPolicy": 30, "ValidatingAdmissionPolicyBinding": 30}


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

    def serves(self, manifest: Manifest) -> bool:
        """Return True if the manifest's kind is served."""
        return (manifest["apiVersion"], manifest["kind"]) in self.served


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
