"""Check what a job depends on: a leading controller, nodes that stay, warning Events.

An object that this user may not read counts as fine, because nothing is known about it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli import rights
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import BUDGETS, EVENTS, MPI_JOBS, NODES, PODS
from mpijob_elastic.model import budgets, pod_labels
from mpijob_elastic.model.budgets import BudgetFacts
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.model.node import NodeSign
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.nodes import reading

T = TypeVar("T")

# Why nobody carries out changes, in a sentence without a period.
# The most objects whose Events or nodes are read.
MOST = 16
# Seconds without a line after which a watch counts as broken.
SILENT_FOR = 10.0
# In the scheduler's words, of a pod that an anti-affinity keeps from nodes.
_ANTI_AFFINITY = "anti-affinity"


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _About(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    uid: str = ""


class Event(msgspec.Struct, rename="camel", frozen=True):
    """An Event, of the controller or of anybody else."""

    metadata: Identity
    involved_object: _About = _About()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: _Source = _Source()
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> str:
        """The time of the Event, "" where the Event has no time."""
        return self.last_timestamp or self.event_time or ""

    @property
    def words(self) -> str:
        """The message in one line."""
        return " ".join(self.message.split())


read_event = msgspec.json.Decoder(Event).decode


async def warnings(client: ApiReader, namespace: str, uids: Mapping[str, str]) -> dict[str, str]:
    """Return the newest warning of each of the first MOST objects, as `REASON: message`, by name.

    Warnings of the controller do not count. If Events cannot be listed, the words say so. uids: the
    uid of each object, by name.
    """
    chosen = list(uids.items())[:MOST]
    found = await asyncio.gather(*(_warning(client, namespace, uid) for _, uid in chosen))
    return {name: words for (name, _), words in zip(chosen, found, strict=True) if words}


async def own_warnings(
    client: ApiReader, namespace: str, uid: str
) -> dict[str, tuple[str, str]] | None:
    """Return reason and message of the controller's warnings on an object, by the Event's name.

    None if Events cannot be listed.
    """
    try:
        found = await _events(client, namespace, uid)
    except errors.KubeError:
        return None
    ours = (event for event in found if event.source.component == names.PROGRAM)
    return {event.metadata.name: (event.reason, event.words) for event in ours}


async def new_rules(
    client: ApiReader, view: JobView, unscheduled: Mapping[str, str]
) -> dict[str, str]:
    """Return the rule that keeps a pod from every node because of labels that were put back.

    unscheduled: why no node takes a pod, by the pod's name. Returned in words, by the name of each
    of the first MOST pods for which it holds: the scheduler names an anti-affinity, and the pod has
    the labels.
    """
    apart = [name for name, why in unscheduled.items() if _ANTI_AFFINITY in why][:MOST]
    path = MPI_JOBS.path(view.namespace, view.name)
    job = await _read(client, path, pod_labels.read) if apart else None
    rules = list(job.own_rules()) if job else []
    if job is None or not rules:
        return {}
    found = await asyncio.gather(
        *(_read(client, PODS.path(view.namespace, name), facts_pod.decode) for name in apart)
    )
    return {pod.metadata.name: rules[0] for pod in found if pod and job.is_restored(pod.metadata)}


async def refusing_budgets(client: ApiReader, view: JobView) -> tuple[BudgetFacts, ...]:
    """Return the PodDisruptionBudgets that may count pods which only hold their place.

    Empty if no pod of the job does, or if this user may not list budgets.
    """
    if not budgets.waiting(view):
        return ()
    with suppress(errors.KubeError):
        return tuple(await list_objects(client, BUDGETS.path(view.namespace), budgets.read))
    return ()


async def surplus(client: ApiReader, view: JobView) -> dict[str, float]:
    """Watch the pods for a second; return the creation times of workers beyond the size, by pod.

    The controller deletes such a worker at once, so a list hardly ever contains such a worker. The
    placeholder of a parked worker is below the size, and rightly made.
    """
    query = {
        "labelSelector": names.worker_selector(view.name),
        "watch": "true",
        "timeoutSeconds": "1",
    }
    found = {}
    with suppress(errors.KubeError, msgspec.DecodeError):
        async with client.stream(
            PODS.path(view.namespace), query=query, silence=SILENT_FOR
        ) as lines:
            async for line in lines:
                pod = facts_pod.read(envelopes.read_line(line).object)
                index = names.worker_index(pod.metadata.name, job=view.name)
                if (
                    index is not None
                    and index >= view.facts.replicas
                    and pod.metadata.job_uid == view.ref.uid
                ):
                    found[pod.metadata.name] = pod.created_at
    return found


async def threats(client: ApiReader, pods: Iterable[PodFacts]) -> dict[str, NodeSign]:
    """Return the signs that nodes are about to go, by pod, for the first MOST pods with a node."""
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
    try:
        events = await _events(client, namespace, uid)
    except errors.Forbidden:
        return "unknown, as Events cannot be listed with your rights"
    except errors.KubeError as error:
        return f"unknown, as Events cannot be listed: {rights.in_words(error)}"
    theirs = [event for event in events if event.source.component != names.PROGRAM]
    newest = max(theirs, key=lambda event: seconds(event.at) or 0.0, default=None)
    return f"{newest.reason}: {newest.words}" if newest else ""


async def _events(client: ApiReader, namespace: str, uid: str) -> list[Event]:
    """Return the warnings on an object. Raises `errors.KubeError`."""
    selector = f"involvedObject.uid={uid},type=Warning"
    return await list_objects(
        client, EVENTS.path(namespace), read_event, query={"fieldSelector": selector}
    )


async def _read(client: ApiReader, path: str, decode: Callable[[bytes], T]) -> T | None:
    """Return an object; None if it does not exist or cannot be read."""
    try:
        return decode(await client.get(path))
    except (errors.KubeError, msgspec.DecodeError):
        return None
