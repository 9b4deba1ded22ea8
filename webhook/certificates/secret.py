"""The Secret `names.CERTIFICATE_SECRET` that all replicas share; its resourceVersion is the precondition of a write."""

from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import SECRETS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from webhook.certificates import content
from webhook.certificates.content import Content


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The content as it was read; version: "" without a Secret."""

    version: str
    content: Content


class _Secret(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, bytes] | None = None


async def read(client: ApiReader, *, namespace: str) -> Stored:
    """Return the Secret as it is now, empty if absent. Raises as `ApiReader` does otherwise."""
    body = await client.find(SECRETS.path(namespace, names.CERTIFICATE_SECRET))
    if body is None:
        return Stored(version="", content=Content())
    secret = msgspec.json.decode(body, type=_Secret)
    return Stored(version=secret.metadata.resource_version, content=content.parse(secret.data or {}))


async def write(client: ApiWriter, before: Stored, wanted: Content, *, namespace: str) -> None:
    """Make the Secret hold `wanted`. Raises `errors.Conflict` if it has changed since it was read."""
    # msgspec writes bytes as base64, which is what the API asks for.
    data = content.render(wanted)
    if before.version:
        path = SECRETS.path(namespace, names.CERTIFICATE_SECRET)
        patch = {"metadata": {"resourceVersion": before.version}, "data": data}
        await client.patch_object(path, body=patch, content_type=MERGE_PATCH)
        return
    secret = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": names.CERTIFICATE_SECRET,
            "labels": {"app.kubernetes.io/name": names.PROGRAM, "app.kubernetes.io/component": "webhook"},
        },
        "type": "Opaque",
        "data": {key: value for key, value in data.items() if value is not None},
    }
    await client.create_object(SECRETS.path(namespace), body=secret)
