"""/healthz, /readyz and /metrics, on their own port without TLS: kubelet and Prometheus do not have our CA."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from webhook.certificates.serving import Serving
from webhook.metrics import Metrics

_PROMETHEUS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


def application(
    *, serving: Serving, draining: asyncio.Event, metrics: Metrics, wall: Callable[[], datetime]
) -> web.Application:
    """Return the three paths: this replica is alive, is ready for reviews, and its metrics."""
    metrics.expiry.set_function(serving.expires_at)

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if draining.is_set():
            return web.Response(status=503, text="draining\n")
        if not serving.valid(now=wall()):
            return web.Response(status=503, text="no valid certificate\n")
        return web.Response(text="ok\n")

    async def measured(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers=_PROMETHEUS)

    paths = web.Application()
    for path, answer in (("/healthz", alive), ("/readyz", ready), ("/metrics", measured)):
        paths.router.add_get(path, answer)
    return paths
