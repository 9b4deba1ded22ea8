"""Turns at a fixed rate, in the order of the requests."""

import asyncio
import math


class Rate:
    """`a_second` turns in a second: evenly spaced, or `together` at once with longer pauses."""

    def __init__(self, a_second: float, *, together: int = 1) -> None:
        self._together = together
        self._pause = together / a_second
        self._at = -math.inf
        self._left = 0

    async def turn(self) -> None:
        """Wait for the next turn."""
        loop = asyncio.get_running_loop()
        if not self._left or loop.time() >= self._at + self._pause:
            self._at = max(self._at + self._pause, loop.time())
            self._left = self._together
        self._left -= 1
        await asyncio.sleep(self._at - loop.time())
