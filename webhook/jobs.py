"""The MPIJobs behind scales, kept in memory by a watch; a replica that cannot watch answers reviews all the same."""

from __future__ import annotations

from random import Random
from typing import Protocol

from mpijob_elastic.kube.client import Client
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.watch import WatchCache
from webhook import sized
from webhook.sized import Sized


class Jobs(Protocol):
    """Looks a job up, and keeps up to date in `run`."""

    def get(self, namespace: str, name: str, /) -> Sized | None:
        """The job as last seen; None where it is not known."""

    async def run(self) -> None:
        """Follow the cluster; cancel to stop."""


class NoJobs:
    """Where scales are not to be checked."""

    def get(self, _namespace: str, _name: str, /) -> None:
        """Nothing is known."""

    async def run(self) -> None:
        """Nothing is to be followed."""


class WatchedJobs:
    """All MPIJobs; until the first list is complete none is known."""

    def __init__(self, client: Client, *, random: Random) -> None:
        self._cache: WatchCache[Sized] = WatchCache(
            client, MPI_JOBS, decode=sized.read, on_change=lambda _old, _new: None, random=random
        )

    def get(self, namespace: str, name: str, /) -> Sized | None:
        """The job as last seen; None where it is not known (yet)."""
        return self._cache.get(namespace, name)

    async def run(self) -> None:
        """Follow for ever."""
        await self._cache.run()
