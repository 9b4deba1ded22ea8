"""Which Events are written as new, which raise the count of an older one, which are dropped (client-go 0.15).

One difference: more than nine different messages for one reason on one job would be combined there.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from lab.operator.limits import TokenBucket
from lab.operator.status import Event

# A job may send 25 Events at once, then one in five minutes; the operator sends "is running" at every sync, so a job
# that changes often may lack the Event of its end.
BURST = 25
RATE = 1 / 300
REMEMBERED = 4096

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """An Event's object: its name, when it first occurred (RFC 3339), and how often so far."""

    name: str
    first: str
    count: int


class Correlator:
    """Remembers what was sent lately."""

    def __init__(self) -> None:
        self._occurrences: _Recent[tuple[str, Event], Occurrence] = _Recent()
        self._buckets: _Recent[str, TokenBucket] = _Recent()

    def observe(self, event: Event, *, uid: str, new: Occurrence, now: float) -> Occurrence | None:
        """Return the object to write for an Event on the job `uid`: `new`, or an older one with its count raised.

        None if it is to be dropped; it counts nevertheless.
        """
        old = self._occurrences.get((uid, event))
        occurrence = Occurrence(name=old.name, first=old.first, count=old.count + 1) if old else new
        self._occurrences.put((uid, event), occurrence)
        bucket = self._buckets.get(uid) or TokenBucket(rate=RATE, burst=BURST)
        self._buckets.put(uid, bucket)
        return occurrence if bucket.take(now) else None


K = TypeVar("K")


class _Recent(Generic[K, T]):
    """The entries last used."""

    def __init__(self) -> None:
        self._entries: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        return self._entries.get(key)

    def put(self, key: K, value: T) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > REMEMBERED:
            self._entries.popitem(last=False)
