"""Turns at a fixed rate, in the order of the requests."""

import asyncio


class Rate:
    """Evenly spaced turns, `a_second` of them in a second."""

    def __init__(self, a_second: float) -> None:
        self._pause = 1.0 / a_second
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next turn."""
        loop = asyncio.get_running_loop()
        mine = max(self._next, loop.time())
        self._next = mine + self._pause
        await asyncio.sleep(mine - loop.time())
