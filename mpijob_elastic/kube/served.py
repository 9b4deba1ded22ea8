"""What the API serves, which may come and go: a watch of a resource, and the server's version.

We ask the API every minute whether it serves the resource; a watch would fail until then.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Never

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.watch import WatchCache, Watches

log = logging.getLogger(__name__)

# Seconds between two questions.
EVERY = 60.0
# Seconds between two questions while nothing is known, because no question was answered yet.
SOON = 2.0


class _Found(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Found] = []


class _Minor(msgspec.Struct):
    minor: str = ""


@dataclass(eq=False)
class ServerVersion:
    """The minor version of the API server, asked every minute: a cluster may be upgraded."""

    client: ApiReader
    #: Called when `minor` changes.
    on_change: Callable[[], None] = lambda: None
    #: Seconds between two questions.
    every: float = EVERY
    #: The minor version of Kubernetes 1, as 35; 0 if the API server does not tell it, None while
    #: the API server has not answered.
    minor: int | None = field(default=None, init=False)

    async def run(self) -> Never:
        """Ask for ever; cancel to stop."""
        while True:
            minor = await _minor(self.client)
            if minor is not None and minor != self.minor:
                self.minor = minor
                self.on_change()
            await asyncio.sleep(self.every if self.minor is not None else min(self.every, SOON))


async def _minor(client: ApiReader) -> int | None:
    """Return the minor version; 0 if the API server does not tell it, None without an answer."""
    try:
        found = msgspec.json.decode(await client.get("/version"), type=_Minor)
    except (errors.NotFound, errors.Forbidden, msgspec.DecodeError):
        return 0
    except errors.KubeError as error:
        log.debug("could not ask for the version: %s", error)
        return None
    # Some providers write `35+`.
    digits = re.match(r"[0-9]{1,4}", found.minor)
    return int(digits[0]) if digits else 0


@dataclass(eq=False)
class WhileServed:
    """Runs a cache while its resource is served."""

    client: ApiReader
    resource: Resource
    cache: WatchCache[Any] | Watches[Any]
    #: Called when `known` changes.
    on_change: Callable[[], None] = lambda: None
    #: Seconds between two questions.
    every: float = EVERY
    #: True once the objects are listed, False while they are not served, None while neither is
    #: known.
    known: bool | None = field(default=None, init=False)

    async def run(self) -> Never:
        """Watch while the resource is served; cancel to stop.

        Raises any error of the watch: that is a fault in this program.
        """
        watching: list[asyncio.Task[None]] = []
        try:
            while True:
                served = await serves(self.client, self.resource)
                if served is False:
                    _cancel(watching)
                    watching = []
                    self._now(known=False)
                elif served and not watching:
                    self.cache.restart()
                    watching = [
                        asyncio.create_task(self.cache.run()),
                        asyncio.create_task(self._listed()),
                    ]
                is_known = served is not None or watching or self.known is not None
                await _pause(self.every if is_known else min(self.every, SOON), watching)
        finally:
            _cancel(watching)

    async def _listed(self) -> None:
        await self.cache.synced.wait()
        self._now(known=True)

    def _now(self, *, known: bool) -> None:
        if known is not self.known:
            self.known = known
            self.on_change()


@dataclass(eq=False)
class Served:
    """Asks again and again whether a resource is served."""

    client: ApiReader
    resource: Resource
    #: Seconds between two questions.
    every: float = EVERY
    #: The last answer; None before the first.
    known: bool | None = field(default=None, init=False)

    async def run(self) -> Never:
        """Ask for ever; cancel to stop."""
        while True:
            answer = await serves(self.client, self.resource)
            if answer is not None:
                self.known = answer
            await asyncio.sleep(min(self.every, SOON) if self.known is None else self.every)


async def serves(client: ApiReader, resource: Resource) -> bool | None:
    """Tell whether a resource is served; None if nobody knows."""
    try:
        found = msgspec.json.decode(
            await client.get(f"/apis/{resource.api_version}"), type=_Resources
        )
    except errors.NotFound:
        return False
    except (errors.KubeError, msgspec.DecodeError) as error:
        log.debug("could not ask if %s are served: %s", resource.plural, error)
        return None
    return any(one.name == resource.plural for one in found.resources)


async def _pause(seconds: float, watching: Collection[asyncio.Task[None]]) -> None:
    """Let some time pass, but none after a task has failed. Raises the error of that task."""
    if not watching:
        return await asyncio.sleep(seconds)
    done, _ = await asyncio.wait(watching, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
    return None


def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
