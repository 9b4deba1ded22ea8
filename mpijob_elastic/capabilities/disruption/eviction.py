"""The eviction of a worker, as the annotation `EVICTION_MARK` of its pod says it.

Whoever evicts is told to try again, while the worker leaves the host list and drains. Then the controller releases the
pod, and the next try deletes it. Nobody takes the mark away: where nobody tries again, it ends by its time.
"""

import re
from typing import NamedTuple

from mpijob_elastic.model.wire import seconds, timestamp
from mpijob_elastic.names import PREFIX

# On a worker pod, written by the webhook and the controller.
EVICTION_MARK = f"{PREFIX}eviction"
# Seconds for which a released worker is kept out of the list. Evictions are tried again after 1 to 30 s.
RETRIED_WITHIN = 60.0
# The clocks of webhook and controller may differ by this many seconds.
_SKEW = 5.0
_REQUESTED, _RELEASED = "requested", "released"
_TEXT = re.compile(rf"({_REQUESTED}|{_RELEASED}) ([0-9:T-]{{19}}Z)")


class Eviction(NamedTuple):
    """An eviction that was tried, or one whose pod is released to it; `at` in seconds since the epoch."""

    released: bool
    at: float

    def ends_at(self, *, drain_timeout: float) -> float:
        """Return when the worker is used again if nobody evicts it."""
        return self.at + RETRIED_WITHIN + (0.0 if self.released else drain_timeout)

    def is_live(self, *, drain_timeout: float, now: float) -> bool:
        """Return True if the worker is to leave; False as well for a mark from the future."""
        return self.at - _SKEW <= now < self.ends_at(drain_timeout=drain_timeout)


def parse(text: str | None) -> Eviction | None:
    """Return the eviction in the annotation; None without one, and for what is none of ours."""
    match = _TEXT.fullmatch(text or "")
    at = seconds(match[2]) if match else None
    return Eviction(released=match[1] == _RELEASED, at=at) if match and at is not None else None


def requested(now: float) -> str:
    """Return the annotation of a pod whose eviction is tried first."""
    return f"{_REQUESTED} {timestamp(now)}"


def released(now: float) -> str:
    """Return the annotation of a pod that may be evicted."""
    return f"{_RELEASED} {timestamp(now)}"
