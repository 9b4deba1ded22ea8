"""Read and correct the caBundles of the webhook configurations; the package says in which order, and why.

The path of reviews of evictions goes with them: like the bundle it follows from the CA.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, ApiWriter
from webhook.certificates import pairs


class _Service(msgspec.Struct, frozen=True, kw_only=True):
    path: str = ""


class _ClientConfig(msgspec.Struct, frozen=True, kw_only=True, rename={"ca_bundle": "caBundle"}):
    ca_bundle: bytes = b""
    service: _Service | None = None
    url: str = ""


class _Hook(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    client_config: _ClientConfig

    def changes(self, bundle: bytes, secret_path: str) -> Iterator[tuple[str, object]]:
        """Yield each field of `clientConfig` that must change, and its value."""
        config = self.client_config
        if config.ca_bundle != bundle:
            yield "caBundle", bundle
        if self.name == names.EVICTIONS_HOOK and config.service and config.service.path != secret_path:
            yield "service/path", secret_path
        if self.name == names.EVICTIONS_HOOK and config.url:
            url = urlsplit(config.url)._replace(path=secret_path).geturl()
            if url != config.url:
                yield "url", url


class _Configuration(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    webhooks: list[_Hook] | None = None


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A webhook configuration as it was read."""

    resource: Resource
    version: str
    hooks: tuple[_Hook, ...]


def carried(registered: Sequence[Registered]) -> list[tuple[x509.Certificate, ...]]:
    """Return the CAs in each bundle."""
    return [pairs.parse_bundle(hook.client_config.ca_bundle) for before in registered for hook in before.hooks]


async def read(client: ApiReader) -> list[Registered]:
    """Return our webhook configurations that exist. Raises as `ApiReader` does."""
    registered = []
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        if body := await client.find(resource.path(name=names.WEBHOOK_CONFIGURATION)):
            found = msgspec.json.decode(body, type=_Configuration)
            hooks = tuple(found.webhooks or ())
            registered.append(Registered(resource=resource, version=found.metadata.resource_version, hooks=hooks))
    return registered


async def distribute(client: ApiWriter, registered: Sequence[Registered], bundle: bytes, *, secret_path: str) -> int:
    """Put `bundle` into every webhook that has another, and the path of reviews of evictions into the one for them.

    Returns the number of configurations written. Raises `errors.Conflict` if one has changed since it was read.
    """
    written = 0
    for before in registered:
        changes = [
            # msgspec writes bytes as base64.
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/{field}", "value": value}
            for index, hook in enumerate(before.hooks)
            for field, value in hook.changes(bundle, secret_path)
        ]
        if changes:
            # The API server refuses an old version with a conflict, as in an update.
            guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": before.version}
            path = before.resource.path(name=names.WEBHOOK_CONFIGURATION)
            await client.patch_object(path, body=[guard, *changes], content_type=JSON_PATCH)
            written += 1
    return written
