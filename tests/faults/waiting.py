"""Waiting for something to become true, without a guess at how long that takes."""

import asyncio
from collections.abc import Callable

# Long enough for the busiest machine; only a test that fails waits for it.
PATIENCE = 120.0


async def eventually(condition: Callable[[], object]) -> None:
    """Return once `condition` holds. Raises TimeoutError where it never does."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)
