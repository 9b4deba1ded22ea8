"""/healthz, /readyz and /metrics of the controller, over plain HTTP.

Healthy: the watches give signs of life. Ready: the caches have been filled once. A standby is ready too, because its
caches are warm and it can take over at once.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from mpijob_elastic.observe.caches import Caches

# Seconds. Well above the 75 s after which a dead watch is replaced, and the backoff after that.
DEAD_AFTER = 300.0


@asynccontextmanager
async def serving(
    *, host: str | None, port: int, caches: Caches, registry: CollectorRegistry, before_scrape: Callable[[], None]
) -> AsyncIterator[int]:
    """Serve while the context lasts; yield the port. Raises OSError if the port is taken."""

    async def healthz(_: web.Request) -> web.Response:
        silent = {name: age for name, age in caches.ages().items() if age > DEAD_AFTER}
        if silent:
            return web.Response(status=503, text=f"no sign of life of the watches of {', '.join(silent)}\n")
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if not caches.is_synced():
            return web.Response(status=503, text="the first lists are not complete\n")
        return web.Response(text="ok\n")

    async def metrics(_: web.Request) -> web.Response:
        before_scrape()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
