"""The alerts of a Prometheus, waited for."""

import asyncio

from tests.lab.waiting import seen
from tests.peers.prometheus import Prometheus


class Watch:
    """Prometheus with the alerts."""

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus
        self.scrape = prometheus.scrape

    async def fires(self, *alerts: str) -> None:
        """Wait until these fire, whichever else do."""
        await seen(
            self._firing, lambda found: {*alerts} <= found, f"{alerts} among the alerts that fire"
        )

    async def clears(self, *alerts: str) -> None:
        """Wait until these do not fire; without any: until nothing fires, or is about to."""
        if alerts:
            await seen(self._firing, lambda found: not {*alerts} & found, f"the end of {alerts}")
        else:
            await seen(self._pending, lambda found: not found, "no alert")

    async def _firing(self) -> set[str]:
        return await self._named('ALERTS{alertstate="firing"}')

    async def _pending(self) -> set[str]:
        return await self._named("ALERTS")

    async def _named(self, promql: str) -> set[str]:
        found = await asyncio.to_thread(self._prometheus.query, promql)
        return {one["metric"]["alertname"].removeprefix("MPIJobElastic") for one in found}
