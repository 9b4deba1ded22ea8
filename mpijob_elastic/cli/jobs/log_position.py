"""How far a log has been read, so that reading goes on there after any break: no line twice, none lost. Pure.

The kubelet begins at a whole second (`sinceTime`), so some lines come again. Two lines may be equal up to their time,
and lines of stdout and stderr may be out of order by a moment. So reading begins a second earlier than it must, and
every line since then is known.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import NamedTuple

from mpijob_elastic.model.wire import seconds, timestamp

# Seconds.
OVERLAP = 1


class Line(NamedTuple):
    """A line of a log without its end. at: seconds since the epoch by the clock of the node."""

    at: float
    text: bytes


class Position:
    """The position in the log of a pod, also through restarts of its container.

    first: parameters of the first request, which choose how much of the past is wanted.
    """

    def __init__(self, first: Mapping[str, str]) -> None:
        self._first = first
        self._newest = 0.0
        self._is_again = self._is_asked = False
        self._oldest: float | None = None
        self._recent: deque[tuple[float, bytes]] = deque()
        self._known: Counter[bytes] = Counter()

    def query(self, *, waited: float) -> dict[str, str]:
        """Return the parameters of the next request, and be ready for its lines; `waited`: seconds since the first."""
        self._known = Counter(raw for _, raw in self._recent)
        self._is_again = self._newest > 0.0
        if self._is_again:
            return {"sinceTime": timestamp(self._begin)}
        is_first, self._is_asked = not self._is_asked, True
        since = {key: str(int(back) + math.ceil(waited)) for key, back in self._first.items() if key == "sinceSeconds"}
        return {**self._first} if is_first else since

    def take(self, raw: bytes) -> Line | None:
        """Return a line that came with its time, None if it came before, or lies before the first that was wanted."""
        if self._known[raw] > 0:
            self._known[raw] -= 1
            return None
        stamp, _, text = raw.partition(b" ")
        at = seconds(stamp.decode(errors="replace"))
        if at is None:  # words of the kubelet, which have no time
            at, text = self._newest, raw
        if self._oldest is None:
            self._oldest = at
        elif at <= self._oldest and self._is_again and "tailLines" in self._first:
            return None
        self._newest = max(self._newest, at)
        self._recent.append((at, raw))
        while self._recent[0][0] < self._begin:
            self._recent.popleft()
        return Line(at, text)

    @property
    def _begin(self) -> float:
        return math.floor(self._newest) - OVERLAP
