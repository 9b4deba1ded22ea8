"""The webhook as the API server knows it: registered, trusted, with replicas that are ready.

Where this user may not read an object, nothing is wrong with it as far as can be told.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import ENDPOINT_SLICES, MUTATING_WEBHOOKS

Registration = Mapping[str, Any]

_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def read(client: ApiReader) -> Registration | None:
    """Return the webhook's registration, empty where there is none; None where it cannot be read."""
    try:
        raw = await client.find(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION))
    except errors.KubeError:
        return None
    return {} if raw is None else _decode(raw)


def home(registered: Registration | None) -> str:
    """Return the namespace of webhook and controller, the default where the registration does not show it."""
    services = (hook["clientConfig"].get("service") for hook in (registered or {}).get("webhooks", ()))
    return next((str(service["namespace"]) for service in services if service), names.NAMESPACE)


async def trouble(client: ApiReader, registered: Registration | None) -> str:
    """Return why the API server cannot call the webhook, "" if it can or if nobody knows."""
    if registered is None:
        return ""
    if not registered:
        return "the API server does not call the webhook of mpijob-elastic (no MutatingWebhookConfiguration)"
    config: dict[str, Any] = next((hook["clientConfig"] for hook in registered.get("webhooks", ())), {})
    if not config.get("caBundle"):
        return "the API server cannot trust the webhook (caBundle is empty)"
    service = config.get("service")
    if service and not await _is_ready(client, service["namespace"], service["name"]):
        return "no replica of the webhook is ready"
    return ""


async def _is_ready(client: ApiReader, namespace: str, service: str) -> bool:
    """Return True if the Service has a ready endpoint, or if its endpoints cannot be read."""
    selector = f"kubernetes.io/service-name={service}"
    try:
        slices = await list_objects(client, ENDPOINT_SLICES.path(namespace), _decode, selector=selector)
    except errors.KubeError:
        return True
    # An absent condition means ready.
    ends = [end for part in slices for end in part.get("endpoints") or ()]
    return any(end.get("conditions", {}).get("ready") is not False for end in ends)
