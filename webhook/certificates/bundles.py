"""Read and correct the caBundles of the webhook configurations; the package says in which order, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from cryptography import x509

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from webhook.rules.certificates import pairs


class _ClientConfig(msgspec.Struct, frozen=True, kw_only=True, rename={"ca_bundle": "caBundle"}):
    ca_bundle: bytes = b""


class _Hook(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    client_config: _ClientConfig


class _Configuration(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    webhooks: list[_Hook] | None = None


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A webhook configuration as it was read, with the bundle of each of its webhooks."""

    resource: Resource
    version: str
    bundles: tuple[bytes, ...]


def carried(registered: Sequence[Registered]) -> list[tuple[x509.Certificate, ...]]:
    """Return the CAs in each bundle."""
    return [pairs.parse_bundle(bundle) for configuration in registered for bundle in configuration.bundles]


async def read(client: ApiReader) -> list[Registered]:
    """Return our webhook configurations that exist. Raises as `ApiReader` does."""
    registered = []
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        if body := await client.find(resource.path(name=names.WEBHOOK_CONFIGURATION)):
            found = msgspec.json.decode(body, type=_Configuration)
            bundles = tuple(hook.client_config.ca_bundle for hook in found.webhooks or ())
            registered.append(Registered(resource=resource, version=found.metadata.resource_version, bundles=bundles))
    return registered


async def distribute(client: ApiWriter, registered: Sequence[Registered], bundle: bytes) -> int:
    """Put `bundle` into every webhook that has another; return the number of configurations written.

    Raises `errors.Conflict` if a configuration has changed since it was read.
    """
    stale = [before for before in registered if any(found != bundle for found in before.bundles)]
    for before in stale:
        # msgspec writes bytes as base64. The API server refuses an old version with a conflict, as in an update.
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": before.version}
        changes = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index, found in enumerate(before.bundles)
            if found != bundle
        ]
        path = before.resource.path(name=names.WEBHOOK_CONFIGURATION)
        await client.patch_object(path, body=[guard, *changes], content_type=JSON_PATCH)
    return len(stale)
