"""The Secret that all replicas share, read and written with its resourceVersion as precondition."""

from __future__ import annotations

from base64 import b64encode
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
            return _stored(await self._client.get(path))
        except errors.NotFound:
            return Stored(version="", content=Content())

    async def write(self, before: Stored, wanted: Content) -> Stored:
        """Make the Secret hold `wanted`. Raises `errors.Conflict` if it has changed since it was read."""
        data = {key: _base64(value) for key, value in content.render(wanted).items()}
        if before.version:
            return await self._replace(before.version, data)
        return await self._create({key: value for key, value in data.items() if value is not None})

    async def _create(self, data: dict[str, str]) -> Stored:
        secret = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": names.CERTIFICATE_SECRET,
                "labels": {"app.kubernetes.io/name": names.PROGRAM, "app.kubernetes.io/component": "webhook"},
            },
            "type": "Opaque",
            "data": data,
        }
        return _stored(await self._client.create_object(SECRETS.path(self._namespace), body=secret))

    async def _replace(self, version: str, data: dict[str, str | None]) -> Stored:
        path = SECRETS.path(self._namespace, names.CERTIFICATE_SECRET)
        patch = {"metadata": {"resourceVersion": version}, "data": data}
        return _stored(await self._client.patch_object(path, body=patch, content_type=MERGE_PATCH))


def _stored(body: bytes) -> Stored:
    secret = msgspec.json.decode(body, type=_Secret)
    return Stored(version=secret.metadata.resource_version, content=content.parse(secret.data or {}))


def _base64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()
