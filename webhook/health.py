"""/healthz, /readyz and /metrics, on their own port without TLS: kubelet and Prometheus do not have our CA."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from webhook.certificates.serving import Serving
from webhook.metrics import Metrics

_PROMETHEUS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


class Health:
    """Answers if this replica is alive, and ready for reviews."""

    def __init__(
        self, *, serving: Serving, draining: asyncio.Event, metrics: Metrics, wall: Callable[[], datetime]
    ) -> None:
        self._serving = serving
        self._draining = draining
        self._metrics = metrics
        self._wall = wall

    def application(self) -> web.Application:
        """Return the three paths."""
        application = web.Application()
        application.router.add_get("/healthz", self._alive)
        application.router.add_get("/readyz", self._ready)
        application.router.add_get("/metrics", self._measured)
        return application

    def unready(self) -> str:
        """Return why this replica should get no reviews now, or ""."""
        if self._draining.is_set():
            return "draining"
        return "" if self._serving.valid(now=self._wall()) else "no valid certificate"

    async def _alive(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _: web.Request) -> web.Response:
        reason = self.unready()
        return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")

    async def _measured(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.render(), headers=_PROMETHEUS)
