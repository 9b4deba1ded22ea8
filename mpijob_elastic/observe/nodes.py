"""Nodes that are about to go or are gone, and the pods that go with them.

Without permission to read nodes, only the pods' own conditions count. Nothing waits long for this
watch.

A node counts as gone only if this process saw the node and then its deletion: a node that the cache
lacks may be newer than the last news of a watch that hangs. A name can come back, so `is_gone` asks
the API server just before anything relies on that.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from random import Random
from typing import Never, TypeVar

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.json_parts import Owned, owned
from mpijob_elastic.model.node import Node, NodeSign, Signs
from mpijob_elastic.model.pod import PodFacts, Taint, Toleration

log = logging.getLogger(__name__)
P = TypeVar("P", bound=PodFacts)

# Seconds. A worker that left because of its node must not be published again only because nodes are
# not listed yet.
PATIENCE = 10.0
# Number of names of deleted nodes that are kept, the latest ones; pods that outlive their node are
# collected within minutes.
MOST_GONE = 1000


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node."""

    metadata: Owned
    #: The signs of its end that count whatever a pod tolerates.
    named: tuple[NodeSign, ...] = ()
    #: Taints that make some pods leave.
    evicting: tuple[Taint, ...] = ()

    @property
    def signs(self) -> tuple[tuple[NodeSign, ...], tuple[Taint, ...]]:
        """All signs, for comparison."""
        return self.named, self.evicting

    def threat(self, tolerations: Collection[Toleration]) -> NodeSign | None:
        """Return the sign by which a pod with these tolerations goes first; None if it stays."""
        evicting = [
            NodeSign(words=f"taint {taint.key}:{taint.effect}")
            for taint in self.evicting
            if not any(one.lasts_against(taint) for one in tolerations)
        ]
        signs = (*self.named, *evicting)
        begins_at = min((sign.begins_at for sign in signs), default=0.0)
        soonest = [sign for sign in signs if sign.begins_at == begins_at]
        if not soonest:
            return None
        can_wait = all(sign.can_wait for sign in soonest)
        return NodeSign(words=soonest[0].words, begins_at=begins_at, can_wait=can_wait)


_decoder = msgspec.json.Decoder(Node)


def reading(signs: Signs) -> Callable[[bytes], NodeFacts]:
    """Return a reader of a node's JSON that looks for these signs.

    The reader raises msgspec.DecodeError if the JSON is no node.
    """

    def read(raw: bytes) -> NodeFacts:
        node = _decoder.decode(raw)
        taints = (node.spec.taints if node.spec else None) or ()
        return NodeFacts(
            metadata=owned(node.metadata),
            named=signs.of(node),
            evicting=tuple(taint for taint in taints if signs.evicts(taint.key, taint.effect)),
        )

    return read


def threatened(pod: P, sign: NodeSign | None) -> P:
    """Return the pod, marked if this sign stands on its node.

    A pod that is itself about to go keeps its own reason.
    """
    if sign is None or pod.disruption:
        return pod
    return msgspec.structs.replace(
        pod, disruption=sign.words, disruption_from=sign.begins_at, can_wait=sign.can_wait
    )


class Nodes:
    """Nodes as last seen.

    `on_change` gets the name of each node that is deleted or whose signs change.
    """

    def __init__(
        self,
        client: ApiReader,
        *,
        signs: Signs,
        on_change: Callable[[str], None],
        random: Random,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._now = now
        # When each deleted node was seen to be deleted, by name.
        self._gone: dict[str, float] = {}
        self._cache: WatchCache[NodeFacts] = WatchCache(
            client, NODES, decode=reading(signs), on_change=self._changed, random=random
        )

    async def run(self) -> Never:
        """Watch for ever; cancel to stop."""
        await self._cache.run()

    async def synced(self) -> None:
        """Wait until nodes have been listed, `PATIENCE` at most: reading them may be forbidden."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._cache.synced.wait(), PATIENCE)
        if not self._cache.synced.is_set():
            log.warning(
                "nodes could not be listed yet; "
                "grant get, list and watch of nodes, or use --no-node-watch"
            )

    def age(self) -> float | None:
        """Return the seconds since the watch's last sign of life; None before its first list."""
        return self._cache.age() if self._cache.synced.is_set() else None

    async def is_gone(self, name: str) -> bool:
        """Ask the API server now if a node does not exist; False if the server cannot say."""
        try:
            is_gone = await self._client.find(NODES.path(name=name)) is None
        except errors.KubeError as error:
            log.warning("node %s cannot be read, so it does not count as gone: %s", name, error)
            return False
        if not is_gone:
            self._gone.pop(name, None)
        return is_gone

    def judge(self, pods: Iterable[PodFacts]) -> list[PodFacts]:
        """Return the pods, marked if their node is about to go or is gone."""
        return [self._judged(pod) for pod in pods]

    def _judged(self, pod: PodFacts) -> PodFacts:
        node = self._cache.store.get("", pod.node)
        if node is None:
            gone_at = self._gone.get(pod.node)
            return pod if gone_at is None else msgspec.structs.replace(pod, node_gone_at=gone_at)
        return threatened(pod, node.threat(pod.tolerations))

    def _changed(self, old: NodeFacts | None, new: NodeFacts | None) -> None:
        node = new or old
        if node is None:
            return
        self._gone.pop(node.metadata.name, None)
        if new is None:
            self._gone[node.metadata.name] = self._now()
            if len(self._gone) > MOST_GONE:
                del self._gone[next(iter(self._gone))]
        # A new node without signs is no news; a deleted node always is.
        if new is None or new.signs != (old.signs if old else ((), ())):
            self._on_change(node.metadata.name)
