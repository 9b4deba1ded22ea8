"""Nodes that are about to go or are gone, and the pods that go with them.

Without permission to read nodes only the pods' own conditions count. Nothing waits long for this watch.
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

# Seconds. A worker that left because of its node must not be published again only because nodes are not listed yet.
PATIENCE = 10.0


class Nodes:
    """Nodes as last seen; `on_change` gets the name of a node whose signs change or that is deleted."""

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
        """Watch for ever; cancel to stop."""
        await self._cache.run()

    async def synced(self) -> None:
        """Wait until nodes have been listed once, but not for ever: reading them may be forbidden."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._cache.synced.wait(), PATIENCE)
        if not self._cache.synced.is_set():
            log.warning("nodes could not be listed yet; grant get, list and watch of nodes, or use --no-node-watch")

    def judge(self, pods: Iterable[PodFacts]) -> list[PodFacts]:
        """Return the pods, marked if their node is about to go or is gone."""
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
        # A node without signs that appears is no news; a deleted node always is.
        if node is not None and (new is None or new.signs != (old.signs if old else ("", ()))):
            self._on_change(node.metadata.name)
