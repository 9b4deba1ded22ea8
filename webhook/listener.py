"""A port that answers HTTP, with bounds on the cost of a connection."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

# Seconds to read and discard the rest of a refused body, so that the caller sees the answer and no reset.
_LINGERING = 2.0


@asynccontextmanager
async def listening(
    application: web.Application,
    *,
    host: str | None,
    port: int,
    idle_seconds: float,
    finish_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve `application` during the context; yields the port, a free port if `port` is 0.

    A connection without a whole request head for `idle_seconds` is closed. The end closes idle connections and gives
    requests in flight `finish_seconds`. Raises OSError if the port is taken.
    """
    runner = web.AppRunner(
        application,
        access_log=None,
        # Compressed bodies are not accepted: nothing may grow after its size was checked.
        auto_decompress=False,
        keepalive_timeout=idle_seconds,
        lingering_time=_LINGERING,
        shutdown_timeout=finish_seconds,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls, backlog=1024)
        await site.start()
        yield site.port
    finally:
        await runner.cleanup()
