"""The nodes that are about to go or are gone, and which pods go with them.

Where nodes may not be read, only what is said of a pod itself counts; the work never waits for this watch for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Never

import msgspec

from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.disruption_signs import Signs
from mpijob_elastic.observe import facts_node
from mpijob_elastic.observe.facts_node import NodeFacts
from mpijob_elastic.observe.facts_pod import PodFacts

log = logging.getLogger(__name__)

# Seconds; a worker that left for its node's sake must not be published again because that is not known yet.
PATIENCE = 10.0


class Nodes:
    """As last seen; `on_change` is called with the name of a node that begins or ceases to go, or is deleted."""

    def __init__(self, client: ApiReader, *, signs: Signs, on_change: Callable[[str], None], random: Random) -> None:
        self._on_change = on_change
        self._cache: WatchCache[NodeFacts] = WatchCache(
            client,
            NODES,
            decode=facts_node.reading(signs),
            on_change=self._changed,
            random=random,
        )

    async def run(self) -> Never:
        """Follow them for ever; cancel to stop."""
        await self._cache.run()

    async def synced(self) -> None:
        """Wait until they have been listed once, but not for ever: they may be forbidden."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._cache.synced.wait(), PATIENCE)
        if not self._cache.synced.is_set():
            log.warning("nodes are not known yet; grant get, list and watch of nodes, or use --no-node-watch")

    def judge(self, pods: Iterable[PodFacts]) -> list[PodFacts]:
        """The pods, each with why it is about to go where its node says so, and whether it has a node any more."""
        return [self._judged(pod) for pod in pods]

    def _judged(self, pod: PodFacts) -> PodFacts:
        node = self._cache.get("", pod.node)
        if node is None:
            is_gone = bool(pod.node) and self._cache.synced.is_set()
            return msgspec.structs.replace(pod, node_gone=True) if is_gone else pod
        threat = "" if pod.disrupted else node.threat(pod.tolerations)
        return msgspec.structs.replace(pod, disrupted=threat) if threat else pod

    def _changed(self, old: NodeFacts | None, new: NodeFacts | None) -> None:
        node = new or old
        if node is not None and _is_news(old, new):
            self._on_change(node.metadata.name)


def _is_news(old: NodeFacts | None, new: NodeFacts | None) -> bool:
    if old is None:
        return new is not None and new.is_going
    return new is None or new.signs != old.signs
