"""The eviction of a worker, as the annotation `EVICTION_MARK` of its pod stores it.

The evictor is told to try again, while the worker leaves the host list and drains. Then the
controller releases the pod, and the next try deletes it. Nobody removes the mark: if nobody tries
again, the mark ends by its time. An evictor that tries again later finds the worker in the list,
and the worker leaves once more, but then stays out for long enough.
"""

import math
import re
from typing import NamedTuple

from mpijob_elastic.decide.state import SKEW
from mpijob_elastic.model.json_parts import seconds, timestamp
from mpijob_elastic.names import PREFIX

# On a worker pod, written by the webhook and the controller.
EVICTION_MARK = f"{PREFIX}eviction"
# Seconds for which a released worker is kept out of the list. Most evictions are tried again after
# 1 to 30 s.
RETRIED_WITHIN = 60
# Seconds between two tries above which the tries have nothing to do with each other.
LONGEST_PAUSE = 3600
_REQUESTED, _RELEASED = "requested", "released"
_TEXT = re.compile(rf"({_REQUESTED}|{_RELEASED}) ([0-9:T-]{{19}}Z)(?: for ([0-9]{{1,4}})s)?")


class Eviction(NamedTuple):
    """An eviction that was tried, or one to which its pod is released."""

    #: The pod is released to the next try.
    released: bool
    #: When it was tried or released, in seconds since the epoch.
    at: float
    #: Seconds for which a released worker is kept out of the list.
    kept: int = RETRIED_WITHIN

    def ends_at(self, *, drain_timeout: float) -> float:
        """Return the time at which the worker is used again if nobody evicts it."""
        return self.at + self.kept + (0.0 if self.released else drain_timeout)

    def is_live(self, *, drain_timeout: float, now: float) -> bool:
        """Return True if the worker is to leave; False as well for a mark from the future."""
        return self.at - SKEW <= now < self.ends_at(drain_timeout=drain_timeout)


def parse(text: str | None) -> Eviction | None:
    """Return the eviction in the annotation; None without one, and for a text that is not ours."""
    match = _TEXT.fullmatch(text or "")
    at = seconds(match[2]) if match else None
    if match is None or at is None:
        return None
    return Eviction(released=match[1] == _RELEASED, at=at, kept=int(match[3] or RETRIED_WITHIN))


def following(before: Eviction | None, *, drain_timeout: float, now: float) -> Eviction:
    """Return the mark for an eviction that is tried now.

    `before`: the pod's earlier mark, which is over; None without one.
    """
    ago = now - before.at if before else math.inf
    if before is None or not 0.0 <= ago <= LONGEST_PAUSE:
        return Eviction(released=False, at=now)
    # At least the pause since the first try: the mark of a release does not say when the first try
    # was.
    paused = min(ago + (drain_timeout if before.released else 0.0), LONGEST_PAUSE)
    return Eviction(released=False, at=now, kept=RETRIED_WITHIN + math.ceil(paused))


def text(asked: Eviction) -> str:
    """Return the annotation."""
    kept = "" if asked.kept == RETRIED_WITHIN else f" for {asked.kept}s"
    return f"{_RELEASED if asked.released else _REQUESTED} {timestamp(asked.at)}{kept}"
