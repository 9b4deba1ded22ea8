"""The webhook's Secret and its caBundles on the API server."""

from base64 import b64decode

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from mpijob_elastic.kube.writer import ApiWriter
from tests.product.webhook.objects import Object

SECRET = SECRETS.path(names.NAMESPACE, names.CERTIFICATE_SECRET)
MUTATING, VALIDATING = (
    one.path(name=names.WEBHOOK_CONFIGURATION) for one in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
)


async def _get(client: ApiWriter, path: str) -> Object:
    found: Object = msgspec.json.decode(await client.get(path))
    return found


async def secret(client: ApiWriter, key: str) -> bytes:
    """A part of the Secret; b"" where there is none."""
    try:
        return b64decode((await _get(client, SECRET))["data"].get(key, ""))
    except errors.NotFound:
        return b""


async def bundles(client: ApiWriter) -> set[bytes]:
    """The different caBundles of all our webhooks."""
    found = [
        hook for path in (MUTATING, VALIDATING) for hook in (await _get(client, path))["webhooks"]
    ]
    return {b64decode(hook["clientConfig"].get("caBundle", "")) for hook in found}


async def lose_secret(client: ApiWriter) -> None:
    try:
        await client.delete_object(SECRET)
    except errors.NotFound:
        return
