"""The PodGroups of jobs, watched while the cluster has a gang scheduler.

Their definition may come and go, so the API is asked every minute if it serves them; a watch would fail until then.
https://github.com/volcano-sh/apis/blob/master/pkg/apis/scheduling/v1beta1/types.go
"""

import asyncio
import logging
from typing import Never

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import POD_GROUPS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.wire import Owned, Wire, owned

log = logging.getLogger(__name__)

# Seconds. Before a gang scheduler is installed there are no gangs.
EVERY = 60.0
_PATH = f"/apis/{POD_GROUPS.group}/{POD_GROUPS.version}"


class _Served(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Served] = []


class _Spec(Wire, frozen=True):
    min_member: int = 0


class _PodGroup(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None


class GangFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A PodGroup; min_member: 0 if it waits for none."""

    metadata: Owned
    min_member: int


_decoder = msgspec.json.Decoder(_PodGroup)


def read(raw: bytes) -> GangFacts:
    """Return the facts in a PodGroup's JSON. Raises msgspec.DecodeError if it is none."""
    group = _decoder.decode(raw)
    return GangFacts(metadata=owned(group.metadata), min_member=group.spec.min_member if group.spec else 0)


class Gangs:
    """Runs the cache of PodGroups while they are served. every: seconds between questions."""

    def __init__(self, client: ApiReader, cache: WatchCache[GangFacts], *, every: float = EVERY) -> None:
        self._client = client
        self._every = every
        self.cache = cache

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
