"""So many a second, and no more: whoever wants something gets a turn of his own."""

from __future__ import annotations

import asyncio


class Rate:
    """Turns, evenly spaced; `a_second`: how many."""

    def __init__(self, a_second: float) -> None:
        self._pause = 1.0 / a_second
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next one."""
        loop = asyncio.get_running_loop()
        mine = max(self._next, loop.time())
        self._next = mine + self._pause
        await asyncio.sleep(mine - loop.time())
