"""A stream of JSON lines that keeps only the newest line of each part, so that a slow reader costs no memory.

A line is `{"part": ..., "value": ...}`. A line that repeats the last one of its part is not sent.
"""

import asyncio
from collections.abc import AsyncGenerator

import msgspec

# Seconds after which an empty line shows that the stream lives.
HEARTBEAT = 2.0


class Channel:
    """Parts to send, by name."""

    def __init__(self) -> None:
        self._sent: dict[str, bytes] = {}
        self._due: dict[str, bytes] = {}
        self._changed = asyncio.Event()

    @property
    def empty(self) -> bool:
        """True if nothing is to be sent."""
        return not self._due

    def put(self, part: str, value: object) -> None:
        """Send the value, unless the reader has it."""
        line = msgspec.json.encode(value)
        if self._due.get(part, self._sent.get(part)) != line:
            self._due[part] = line
            self._changed.set()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield what is to be sent, several lines at once. Endless."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._changed.wait()
            except TimeoutError:
                yield b"\n"
                continue
            self._changed.clear()
            due, self._due = self._due, {}
            self._sent |= due
            yield b"".join(
                b'{"part":%b,"value":%b}\n' % (msgspec.json.encode(part), line) for part, line in due.items()
            )
