"""The Secret that all replicas share, read and written with its resourceVersion as precondition."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import SECRETS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from webhook.rules.certificates import content
from webhook.rules.certificates.content import Content


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The content as it was read; version: "" without a Secret."""

    version: str
    content: Content


class _Secret(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, bytes] | None = None


class SharedSecret:
    """The Secret `names.CERTIFICATE_SECRET` of one namespace."""

    def __init__(self, client: ApiWriter, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read(self) -> Stored:
        """Return the Secret as it is now, empty if absent. Raises as `ApiReader` does otherwise."""
        path = SECRETS.path(self._namespace, names.CERTIFICATE_SECRET)
        try:
            body = await self._client.get(path)
        except errors.NotFound:
            return Stored(version="", content=Content())
        secret = msgspec.json.decode(body, type=_Secret)
        return Stored(version=secret.metadata.resource_version, content=content.parse(secret.data or {}))

    async def write(self, before: Stored, wanted: Content) -> None:
        """Make the Secret hold `wanted`. Raises `errors.Conflict` if it has changed since it was read."""
        # msgspec writes bytes as base64, which is what the API asks for.
        data = content.render(wanted)
        if before.version:
            path = SECRETS.path(self._namespace, names.CERTIFICATE_SECRET)
            patch = {"metadata": {"resourceVersion": before.version}, "data": data}
            await self._client.patch_object(path, body=patch, content_type=MERGE_PATCH)
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
        await self._client.create_object(SECRETS.path(self._namespace), body=secret)
