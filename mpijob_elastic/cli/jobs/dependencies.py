"""What a job depends on outside itself: a controller that leads, a webhook that answers, what Events warn of.

What this user may not read counts as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease_record import LeaseObject
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import ENDPOINT_SLICES, EVENTS, LEASES, MUTATING_WEBHOOKS, NODES
from mpijob_elastic.model import durations
from mpijob_elastic.model.disruption_signs import signs
from mpijob_elastic.observe import facts_node
from mpijob_elastic.observe.facts_pod import PodFacts
from mpijob_elastic.observe.times import seconds

T = TypeVar("T")
Registration = Mapping[str, Any]

# A leader renews every 2 s, and at the latest after 10 s.
RENEWED_WITHIN = 10.0
# Of so many objects the Events are read.
MOST = 16


class _Source(msgspec.Struct):
    component: str = ""


class _Event(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    reason: str = ""
    message: str = ""
    source: _Source = msgspec.field(default_factory=_Source)
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> float:
        return seconds(self.last_timestamp) or seconds(self.event_time) or 0.0


class _Events(msgspec.Struct):
    items: list[_Event]


async def registration(client: ApiReader) -> Registration | None:
    """How the API server asks the webhook, empty where it does not; None where that cannot be read."""
    try:
        return _decode(await client.get(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION)))
    except errors.NotFound:
        return {}
    except errors.KubeError:
        return None


def home(registered: Registration | None) -> str:
    """The namespace that the webhook is served in, and so the controller; the usual one where that cannot be seen."""
    services = (hook["clientConfig"].get("service") for hook in (registered or {}).get("webhooks", ()))
    return next((str(service["namespace"]) for service in services if service), names.NAMESPACE)


async def lease(client: ApiReader, namespace: str) -> LeaseObject | None:
    """The controllers' Lease there, without a name where there is none; None where it cannot be read."""
    try:
        raw = await client.get(LEASES.path(namespace, names.LEASE))
    except errors.NotFound:
        return LeaseObject(metadata=ObjectMeta())
    except errors.KubeError:
        return None
    return msgspec.json.decode(raw, type=LeaseObject)


async def controller_trouble(read: Callable[[], Awaitable[LeaseObject | None]], *, namespace: str, now: float) -> str:
    """Why no controller is at work, "" where one is or that cannot be told; `read` gives the Lease of that namespace.

    Where the Lease looks old it is read once more, so that a clock that is wrong here accuses nobody.
    """
    first = await read()
    if first is None:
        return ""
    if first.metadata.name == "":
        return (
            f"mpijob-elastic is not installed in namespace {namespace} (there is no Lease {names.LEASE}; "
            "where it is elsewhere, say so with --controller-namespace)"
        )
    if not first.spec.holder_identity:
        return "no controller of mpijob-elastic leads (its Lease has no holder)"
    age = now - (seconds(first.spec.renew_time) or 0.0)
    if 0.0 <= age < RENEWED_WITHIN:
        return ""
    await asyncio.sleep(RENEWED_WITHIN)
    again = await read()
    if again is None or again.metadata.resource_version != first.metadata.resource_version:
        return ""
    return (
        "no controller of mpijob-elastic is at work (the last leader renewed its Lease "
        f"{durations.render(round(max(RENEWED_WITHIN, age)))} ago)"
    )


async def webhook_trouble(client: ApiReader, registered: Registration | None) -> str:
    """Why the API server cannot ask the webhook about a launcher, "" where it can or that cannot be told."""
    if registered is None:
        return ""
    if not registered:
        return "the API server asks no webhook of mpijob-elastic (there is no MutatingWebhookConfiguration)"
    config: dict[str, Any] = next((hook["clientConfig"] for hook in registered.get("webhooks", ())), {})
    if not config.get("caBundle"):
        return "the API server cannot trust the webhook (caBundle is empty)"
    service = config.get("service")
    if service and await _endpoints(client, service["namespace"], service["name"]) == 0:
        return "no replica of the webhook is ready"
    return ""


async def warnings(client: ApiReader, namespace: str, uids: Mapping[str, str]) -> dict[str, str]:
    """The newest warning that is not ours, as `REASON: message`, on each of the first MOST objects, by their names."""
    chosen = list(uids.items())[:MOST]
    found = await asyncio.gather(*(_warning(client, namespace, uid) for _, uid in chosen))
    return {name: words for (name, _), words in zip(chosen, found, strict=True) if words}


async def threats(client: ApiReader, pods: Iterable[PodFacts]) -> dict[str, str]:
    """Why the nodes of these pods are about to go, by pod, of the first MOST of them."""
    chosen = [pod for pod in pods if pod.node][:MOST]
    nodes = {pod.node for pod in chosen}
    read = facts_node.reading(signs())
    found = dict(
        zip(nodes, await asyncio.gather(*(_read(client, NODES.path(name=one), read) for one in nodes)), strict=True)
    )
    said = {pod.metadata.name: node.threat(pod.tolerations) for pod in chosen if (node := found[pod.node])}
    return {name: threat for name, threat in said.items() if threat}


async def _warning(client: ApiReader, namespace: str, uid: str) -> str:
    query = {"fieldSelector": f"involvedObject.uid={uid},type=Warning"}
    events = await _read(client, EVENTS.path(namespace), msgspec.json.Decoder(_Events).decode, query=query)
    theirs = [one for one in (events.items if events else ()) if one.source.component != names.PROGRAM]
    newest = max(theirs, key=lambda one: one.at, default=None)
    return f"{newest.reason}: {' '.join(newest.message.split())}" if newest else ""


async def _endpoints(client: ApiReader, namespace: str, service: str) -> int | None:
    """How many endpoints of a Service are ready, None where that cannot be read."""
    query = {"labelSelector": f"kubernetes.io/service-name={service}"}
    found = await _read(client, ENDPOINT_SLICES.path(namespace), _decode, query=query)
    if found is None:
        return None
    ends = [end for one in found["items"] for end in one.get("endpoints") or ()]
    return sum(end.get("conditions", {}).get("ready") is not False for end in ends)


def _decode(raw: bytes) -> dict[str, Any]:
    return msgspec.json.decode(raw, type=dict[str, Any])


async def _read(
    client: ApiReader, path: str, decode: Callable[[bytes], T], *, query: Mapping[str, str] | None = None
) -> T | None:
    try:
        return decode(await client.get(path, query=query))
    except errors.KubeError:
        return None
