"""Check what a job depends on: a leading controller, nodes that stay, warning Events.

Where this user may not read an object, nothing is wrong with it as far as can be told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.lease import LeaseObject
from mpijob_elastic.kube.meta import Identity, ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import EVENTS, LEASES, NODES, PODS
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.wire import seconds
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.nodes import reading

T = TypeVar("T")

# A leader renews every 2 s, and at the latest after 10 s.
RENEWED_WITHIN = 10.0
# Events and nodes are read for so many objects.
MOST = 16


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _About(msgspec.Struct, frozen=True):
    name: str = ""


class Event(msgspec.Struct, rename="camel", frozen=True):
    """An Event, as others or the controller send it."""

    metadata: Identity
    involved_object: _About = _About()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: _Source = _Source()
    count: int | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> str:
        """When it was, "" where it does not say."""
        return self.last_timestamp or self.event_time or ""

    @property
    def words(self) -> str:
        """The message in a line."""
        return " ".join(self.message.split())


read_event = msgspec.json.Decoder(Event).decode
_LEASE = msgspec.json.Decoder(LeaseObject)


async def lease(client: ApiReader, namespace: str) -> LeaseObject | None:
    """Return the controllers' Lease there, without a name where there is none; None where it cannot be read."""
    none = LeaseObject(metadata=ObjectMeta())
    return await _read(client, LEASES.path(namespace, names.LEASE), _LEASE.decode, missing=none)


async def controller_trouble(
    read: Callable[[], Awaitable[LeaseObject | None]], *, namespace: str, now: float
) -> str:
    """Return why no controller is at work, "" if a controller is or if nobody knows; `read` returns the Lease.

    A Lease that looks old is read once more, because the clock of this machine may be wrong.
    """
    first = await read()
    if first is None:
        return ""
    if first.metadata.name == "":
        return f"mpijob-elastic is not installed in namespace {namespace} (no Lease {names.LEASE})"
    if not first.spec.holder_identity:
        return "no controller of mpijob-elastic is the leader (the Lease has no holder)"
    age = now - (seconds(first.spec.renew_time) or 0.0)
    if 0.0 <= age < RENEWED_WITHIN:
        return ""
    await asyncio.sleep(RENEWED_WITHIN)
    again = await read()
    if again is None or again.metadata.resource_version != first.metadata.resource_version:
        return ""
    return (
        "no controller of mpijob-elastic is running (the last leader renewed the Lease "
        f"{phrases.duration(round(max(RENEWED_WITHIN, age)))} ago)"
    )


async def warnings(client: ApiReader, namespace: str, uids: Mapping[str, str]) -> dict[str, str]:
    """Return the newest warning of others, as `REASON: message`, on each of the first MOST objects, by their names.

    If Events cannot be listed, the words say so.
    """
    chosen = list(uids.items())[:MOST]
    found = await asyncio.gather(*(_warning(client, namespace, uid) for _, uid in chosen))
    return {name: words for (name, _), words in zip(chosen, found, strict=True) if words}


async def own_warnings(client: ApiReader, namespace: str, uid: str) -> dict[str, tuple[str, str]]:
    """Return reason and message of our warnings on an object, by the names of their Events; none if they are hidden."""
    found = await _events(client, namespace, uid) or ()
    ours = (event for event in found if event.source.component == names.PROGRAM)
    return {event.metadata.name: (event.reason, event.words) for event in ours}


async def surplus(client: ApiReader, view: JobView) -> dict[str, float]:
    """Return when each worker beyond the size was created that is there at some time within a second.

    The controller deletes such a worker at once, so a list hardly ever shows one.
    """
    query = {
        "labelSelector": names.worker_selector(view.name),
        "watch": "true",
        "timeoutSeconds": "1",
    }
    found = {}
    with suppress(errors.KubeError, msgspec.DecodeError):
        async with client.stream(
            PODS.path(view.namespace), query=query, silence=RENEWED_WITHIN
        ) as lines:
            async for line in lines:
                pod = facts_pod.read(wire.read_line(line).object)
                index = names.worker_index(pod.metadata.name, job=view.name)
                if (
                    index is not None
                    and index not in view.wanted
                    and pod.metadata.job_uid == view.ref.uid
                ):
                    found[pod.metadata.name] = pod.created_at
    return found


async def threats(client: ApiReader, pods: Iterable[PodFacts]) -> dict[str, str]:
    """Return why the nodes of these pods are about to go, by pod, for the first MOST of them."""
    chosen = [pod for pod in pods if pod.node][:MOST]
    node_names = {pod.node for pod in chosen}
    read = reading(capabilities.node_signs())
    found = await asyncio.gather(
        *(_read(client, NODES.path(name=node), read) for node in node_names)
    )
    nodes = dict(zip(node_names, found, strict=True))
    said = {
        pod.metadata.name: node.threat(pod.tolerations)
        for pod in chosen
        if (node := nodes[pod.node])
    }
    return {name: threat for name, threat in said.items() if threat}


async def _warning(client: ApiReader, namespace: str, uid: str) -> str:
    events = await _events(client, namespace, uid)
    if events is None:
        return "unknown, as Events cannot be listed with your rights"
    theirs = [event for event in events if event.source.component != names.PROGRAM]
    newest = max(theirs, key=lambda event: seconds(event.at) or 0.0, default=None)
    return f"{newest.reason}: {newest.words}" if newest else ""


async def _events(client: ApiReader, namespace: str, uid: str) -> list[Event] | None:
    """Return the warnings on an object, None if they cannot be listed."""
    selector = f"involvedObject.uid={uid},type=Warning"
    try:
        return await list_objects(
            client, EVENTS.path(namespace), read_event, query={"fieldSelector": selector}
        )
    except errors.KubeError:
        return None


async def _read(
    client: ApiReader, path: str, decode: Callable[[bytes], T], *, missing: T | None = None
) -> T | None:
    """Return an object, `missing` where it does not exist, None where it cannot be read."""
    try:
        return decode(await client.get(path))
    except errors.NotFound:
        return missing
    except errors.KubeError:
        return None
