"""The losses of a job by node: which losses count against a node, and for how long; pure.

A loss is what the core calls one (`lost_ranks.lost`): a worker left the list although nobody asked
it to leave. It counts against its node unless something else is known to be at fault:
- Somebody deletes the pod, or its node was announced to go: the loss was meant.
- The node is gone: it takes no pod any more, and a node that comes back under its name is mostly
  another machine.
- A container ran out of memory, or ended with 0: the program did that.
- Ranks are lost on several nodes at once: program, network and storage do that, and no single node.

Beyond this a program at fault looks like a node at fault. The exit code of a rank goes to the
driver and is in no object, and whether a rank crashed or its GPU did looks the same from outside.
"""

from collections.abc import Collection, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import lost_ranks
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import LARGEST_OWN, Time, Try
from mpijob_elastic.model.pod import PodFacts

NAME = "losses"
# A node is avoided once it has lost so many workers of the job: one loss is an accident.
ENOUGH = 2
# Seconds after the last loss of a node in which its losses count. A repair or a reboot takes hours,
# and then the node deserves its work again; a node that fails less than daily costs a job little.
FORGOTTEN_AFTER = 86_400.0
# Nodes that are remembered, those with the latest losses: a large job loses many single workers.
MOST = 8


class NodeLosses(msgspec.Struct, frozen=True, kw_only=True):
    """The workers that were lost on one node."""

    #: Their number.
    count: Try
    #: The time of the last loss, in seconds since the epoch.
    at: Time


_decoder = msgspec.json.Decoder(dict[str, NodeLosses])
_encoder = msgspec.json.Encoder(order="sorted")


def may_come(view: JobView) -> bool:
    """Tell whether a listed worker may be about to be lost by its node; mostly none is."""
    unwell = (pod for pod in view.workers if not pod.ready or pod.probe.idle_at is not None)
    return any(pod.name in view.host_of and _counts(pod.facts) for pod in unwell)


def avoided(view: JobView, *, now: float) -> tuple[str, ...]:
    """Return the names of the nodes that new workers are to avoid, in order."""
    found = _remembered(view, now=now)
    return tuple(sorted(node for node, known in found.items() if known.count >= ENOUGH))


def ends_at(view: JobView, *, now: float) -> float | None:
    """Return when a node is avoided no more (seconds since the epoch); None if none is avoided."""
    found = _remembered(view, now=now)
    times = [known.at + FORGOTTEN_AFTER for known in found.values() if known.count >= ENOUGH]
    return min(times, default=None)


def entry(state: JobState, published: Collection[str]) -> bytes | None:
    """Return the entry of the memory once these pods are published; None if there is none.

    It stays as it is until the list loses a worker, so that forgetting takes no write of its own.
    """
    nodes = _at_fault(state, published)
    if not nodes:
        return state.view.memory.own.get(NAME)
    found = dict(_remembered(state.view, now=state.now))
    for node in nodes:
        before = found[node].count if node in found else 0
        found[node] = NodeLosses(count=before + 1, at=round(state.now, 1))
    return _bounded(found)


def _remembered(view: JobView, *, now: float) -> Mapping[str, NodeLosses]:
    """Return the losses that count, by node; none if they cannot be read.

    Anybody who may edit the ConfigMap may write any name there.
    """
    text = view.memory.own.get(NAME)
    if text is None:
        return {}
    try:
        found = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    recent = {
        node: known
        for node, known in found.items()
        if now < honest(known.at, now=now) + FORGOTTEN_AFTER
    }
    return {node: known for node, known in recent.items() if names.is_object_name(node)}


def _at_fault(state: JobState, published: Collection[str]) -> list[str]:
    """Return the node that loses workers with this list, once for each worker; () without one."""
    view = state.view
    removed = [pod for pod in view.host_of if pod not in published]
    if not removed or not view.driver_running or state.edited:
        return []
    lost = [state.by_name[pod] for pod in lost_ranks.lost(state, removed) if pod in state.by_name]
    nodes = [worker.pod.facts.node for worker in lost if _counts(worker.pod.facts)]
    return nodes if len(set(nodes)) == 1 else []


def _counts(facts: PodFacts) -> bool:
    """Tell whether the loss of this pod counts against its node."""
    if facts.deleting or facts.disruption or facts.node_gone_at:
        return False
    if facts.out_of_memory or facts.phase == "Succeeded":
        return False
    return names.is_object_name(facts.node)


def _bounded(found: Mapping[str, NodeLosses]) -> bytes:
    """Return the JSON of the latest losses that may be remembered."""
    nodes = sorted(found, key=lambda node: found[node].at)[-MOST:]
    json = _encoder.encode({node: found[node] for node in nodes})
    while len(json) > LARGEST_OWN:
        nodes = nodes[1:]
        json = _encoder.encode({node: found[node] for node in nodes})
    return json
