"""The PodGroups of jobs, watched while the cluster has a gang scheduler.

Their definition may come and go, so the API is asked every minute if it serves them; a watch would fail until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Never

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import POD_GROUPS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.observe import facts_pod_group
from mpijob_elastic.observe.facts_pod_group import GangFacts

log = logging.getLogger(__name__)

# Seconds. Before a gang scheduler is installed there are no gangs.
EVERY = 60.0
_PATH = f"/apis/{POD_GROUPS.group}/{POD_GROUPS.version}"


class _Served(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Served] = []


class Gangs:
    """PodGroups as last seen; `on_change(old, new)` as in WatchCache. every: seconds between questions."""

    def __init__(
        self,
        client: ApiReader,
        *,
        namespace: str | None,
        on_change: Callable[[GangFacts | None, GangFacts | None], None],
        random: Random,
        every: float = EVERY,
    ) -> None:
        self._client = client
        self._every = every
        self.cache: WatchCache[GangFacts] = WatchCache(
            client, POD_GROUPS, decode=facts_pod_group.read, on_change=on_change, random=random, namespace=namespace
        )

    async def run(self) -> Never:
        """Watch PodGroups while they are served; cancel to stop."""
        watching: asyncio.Task[Never] | None = None
        try:
            while True:
                served = await self._is_served(before=watching is not None)
                if served and watching is None:
                    watching = asyncio.create_task(self.cache.run())
                elif watching is not None and not served:
                    watching.cancel()
                    watching = None
                await asyncio.sleep(self._every)
        finally:
            if watching is not None:
                watching.cancel()

    async def _is_served(self, *, before: bool) -> bool:
        try:
            raw = await self._client.get(_PATH)
            found = msgspec.json.decode(raw, type=_Resources)
        except errors.NotFound:
            return False
        except (errors.KubeError, msgspec.DecodeError) as error:
            log.debug("could not ask if PodGroups are served: %s", error)
            return before
        return any(resource.name == POD_GROUPS.plural for resource in found.resources)
