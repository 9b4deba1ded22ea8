"""What replicas and API server share: a Secret, and the caBundles of our configurations.

The Secret is `names.CERTIFICATE_SECRET`. The resourceVersion that was read is the precondition of
each write; the package says in which order they are done, and why. The path of reviews of evictions
goes with the bundles: like them it follows from the CA.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import SECRETS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from webhook.certificates import pairs
from webhook.certificates.apart import CONFIGURATIONS
from webhook.certificates.decision import Content


class _Secret(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, bytes] | None = None


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
        if (
            self.name == names.EVICTIONS_HOOK
            and config.service
            and config.service.path != secret_path
        ):
            yield "service/path", secret_path
        if self.name == names.EVICTIONS_HOOK and config.url:
            url = urlsplit(config.url)._replace(path=secret_path).geturl()
            if url != config.url:
                yield "url", url


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook configuration as it was read."""

    metadata: ObjectMeta
    webhooks: list[_Hook] | None = None


async def read(client: ApiReader, *, namespace: str) -> tuple[Content, str]:
    """Return the content of the Secret and its version; "" as the version if there is none.

    Raises as `ApiReader` does otherwise.
    """
    body = await client.find(SECRETS.path(namespace, names.CERTIFICATE_SECRET))
    if body is None:
        return Content(), ""
    secret = msgspec.json.decode(body, type=_Secret)
    return Content.parse(secret.data or {}), secret.metadata.resource_version


async def write(client: ApiWriter, wanted: Content, *, version: str, namespace: str) -> None:
    """Make the Secret hold `wanted`.

    Raises `errors.Conflict` if it has changed since that version was read.
    """
    # msgspec writes bytes as base64, which is what the API asks for.
    data = wanted.render()
    if version:
        path = SECRETS.path(namespace, names.CERTIFICATE_SECRET)
        patch = {"metadata": {"resourceVersion": version}, "data": data}
        await client.patch_object(path, body=patch, content_type=MERGE_PATCH)
        return
    secret = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": names.CERTIFICATE_SECRET,
            "labels": {
                "app.kubernetes.io/name": names.PROGRAM,
                "app.kubernetes.io/component": "webhook",
            },
        },
        "type": "Opaque",
        "data": {key: value for key, value in data.items() if value is not None},
    }
    await client.create_object(SECRETS.path(namespace), body=secret)


async def registered(client: ApiReader) -> dict[Resource, Configuration]:
    """Return our webhook configurations that exist. Raises as `ApiReader` does."""
    found = {}
    for resource in CONFIGURATIONS:
        if body := await client.find(resource.path(name=names.WEBHOOK_CONFIGURATION)):
            found[resource] = msgspec.json.decode(body, type=Configuration)
    return found


def versions(found: Mapping[Resource, Configuration]) -> list[str]:
    """Return the version of each of our configurations, "" for one that does not exist."""
    return [
        found[resource].metadata.resource_version if resource in found else ""
        for resource in CONFIGURATIONS
    ]


def carried(found: Mapping[Resource, Configuration]) -> list[tuple[x509.Certificate, ...]]:
    """Return the CAs in each bundle."""
    hooks = (hook for before in found.values() for hook in before.webhooks or ())
    return [pairs.parse_bundle(hook.client_config.ca_bundle) for hook in hooks]


async def distribute(
    client: ApiWriter, found: Mapping[Resource, Configuration], bundle: bytes, *, secret_path: str
) -> int:
    """Put `bundle` into every webhook that has another, and the secret path into that of evictions.

    Returns the number of configurations written. Raises `errors.Conflict` if one has changed since
    it was read.
    """
    written = 0
    for resource, before in found.items():
        changes = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/{field}", "value": value}
            for index, hook in enumerate(before.webhooks or ())
            for field, value in hook.changes(bundle, secret_path)
        ]
        if changes:
            # The API server refuses an old version with a conflict, as in an update.
            version = before.metadata.resource_version
            guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
            path = resource.path(name=names.WEBHOOK_CONFIGURATION)
            await client.patch_object(path, body=[guard, *changes], content_type=JSON_PATCH)
            written += 1
    return written
