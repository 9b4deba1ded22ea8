"""Result of training: steps that count, and steps that were lost.

A step counts as much of itself as there are GPUs of those wanted: with half of them half a step, for the batch of each
GPU is fixed. A commit keeps what was done until then for a ring that breaks; a checkpoint for a job that ends.
"""

from __future__ import annotations

import math

from bench.spot.costs import Costs


class Tally:
    """The count of one job through all its restarts. Times are seconds and never go back."""

    def __init__(self, *, costs: Costs, size: int) -> None:
        self._costs = costs
        self._size = size
        self._base = 0.0
        self._saved = 0.0
        self._since: float | None = None
        self._world = 0
        self._gpu_seconds = 0.0
        self.lost = 0.0

    def begin(self, at: float, world: int) -> None:
        """A ring of so many GPUs trains from now on."""
        assert self._since is None, "a ring trains already"
        self._since, self._world = at, world

    def useful(self, now: float) -> float:
        """Steps that count, those since the last commit included."""
        return self._until(now)

    def gpu_seconds(self, now: float) -> float:
        """For how long GPUs have trained."""
        return self._gpu_seconds + (0.0 if self._since is None else (now - self._since) * self._world)

    def next_commit(self, now: float) -> float:
        """Return when the training ring commits next, which may be now."""
        assert self._since is not None, "only a ring that trains commits"
        return self._since + math.ceil((now - self._since) / self._costs.commit) * self._costs.commit

    def pause(self, at: float) -> None:
        """The ring ends at a commit: nothing is lost."""
        self._end(at, kept=self._until(at))

    def cut(self, at: float) -> None:
        """The ring breaks: what was done since the last commit is lost."""
        if self._since is not None:
            commits = math.floor((at - self._since) / self._costs.commit)
            self._end(at, kept=self._until(self._since + commits * self._costs.commit))

    def fail(self, at: float) -> None:
        """The job ends: what was done since the last checkpoint is lost."""
        self._end(at, kept=self._checkpoint(at))

    def _until(self, at: float) -> float:
        if self._since is None:
            return self._base
        return self._base + (at - self._since) / self._costs.step * self._world / self._size

    def _checkpoint(self, at: float) -> float:
        """Steps in the last checkpoint; they are written at multiples of their interval, by a ring that trains."""
        last = math.floor(at / self._costs.checkpoint) * self._costs.checkpoint
        return self._saved if self._since is None or last < self._since else self._until(last)

    def _end(self, at: float, *, kept: float) -> None:
        self._saved = min(self._checkpoint(at), kept)
        self._gpu_seconds = self.gpu_seconds(at)
        self.lost += self._until(at) - kept
        self._base, self._since = kept, None
