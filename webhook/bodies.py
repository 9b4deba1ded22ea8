"""The bodies that are being read: bounded in memory, so that no caller can hold up the others.

Any pod may call, and the address of the API server is not known. So nobody waits for a place, and a body that is
announced but does not come costs nothing. When the bytes that have come are too many, the caller that holds the most
gives up its largest body.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class Crowded(Exception):
    """A body was given up because its caller holds the most bytes."""


@dataclass(eq=False, kw_only=True)
class _Reading:
    peer: str
    limit: asyncio.Timeout
    held: int = 0
    given_up: bool = False


class Bodies:
    """The bodies being read, of at most `most` bytes together."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._readings: set[_Reading] = set()

    @contextmanager
    def reading(self, peer: str, limit: asyncio.Timeout) -> Iterator[Callable[[int], None]]:
        """Count a body while it is read; call what is given with the length of each part.

        Raises `Crowded` in place of the cancellation that the end of `limit`, the timeout around it, brings.
        """
        mine = _Reading(peer=peer, limit=limit)
        self._readings.add(mine)

        def grew(length: int) -> None:
            mine.held += length
            self._make_room()

        try:
            yield grew
        except asyncio.CancelledError:
            if mine.given_up:
                raise Crowded from None
            raise
        finally:
            self._readings.discard(mine)

    def _make_room(self) -> None:
        held: Counter[str] = Counter()
        for reading in self._readings:
            held[reading.peer] += reading.held
        if held.total() > self._most:
            greediest, _ = held.most_common(1)[0]
            victim = max((one for one in self._readings if one.peer == greediest), key=lambda one: one.held)
            self._readings.discard(victim)
            victim.given_up = True
            if not victim.limit.expired():
                victim.limit.reschedule(0.0)
