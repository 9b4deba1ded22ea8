"""A model of the kubelet: when a launcher sees a change of its ConfigMap.

A kubelet syncs each pod every 60 to 90 s (--sync-frequency of 1 m, jittered by up to a half: pod_workers.go of
pkg/kubelet) and updates its ConfigMap volumes then; on average 38 s after a change, as measured.
It syncs a pod at once when the pod itself changes, for example an annotation: measured 0.3 to 0.7 s.
"""

import math
from random import Random

SYNC = (60.0, 90.0)
AFTER_TOUCH = 0.5


class Mount:
    """A file as the launcher sees it. Times are seconds and never go back; `chance` draws the periods."""

    def __init__(self, *, now: float, content: str, touch: str, chance: Random) -> None:
        self._chance = chance
        self._touch = touch
        self._sync_at = now + chance.uniform(*SYNC)
        self.content = content

    def tick(self, now: float, *, content: str, touch: str) -> None:
        """Let time pass: `content` is the ConfigMap's present content; `touch` changes whenever the pod changes."""
        if touch != self._touch:
            self._touch = touch
            self._sync_at = min(self._sync_at, now + AFTER_TOUCH)
        while self._sync_at <= now:
            self.content = content
            self._sync_at += self._chance.uniform(*SYNC)

    def next_change(self, content: str) -> float:
        """Return when the file changes next if nothing else changes."""
        return math.inf if content == self.content else self._sync_at
