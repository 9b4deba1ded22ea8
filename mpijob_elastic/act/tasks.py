"""Tasks that nobody waits for where they are begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


async def end(running: Iterable[asyncio.Task[None]]) -> None:
    """Cancel them all, and wait for their ends."""
    tasks = list(running)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
