"""What training and its interruptions cost, and the count of useful and lost steps.

A step counts in proportion to the wanted GPUs that train: half of them make half a step, because
each GPU has a fixed batch. A commit keeps the steps so far for a ring that breaks; a checkpoint
keeps them for a job that ends.

"Measured" is Horovod 0.28.1 with PyTorch 1.13 on CPUs, a real kubelet and steps of 0.25 s. A large
model on GPUs takes longer to start, so each interruption costs every side more. Low values favour
the side that restarts most.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The parameters of the model, in seconds, each with its source.

    step: a step, at every world size (the batch of each GPU is fixed); chosen. commit: between two
    `state.commit()`; chosen, because an elastic script should not commit at every batch.
    checkpoint: between two checkpoints that outlive the job; chosen. poll: between two runs of
    discover_hosts.sh (horovod/runner/elastic/driver.py, DISCOVER_HOSTS_FREQUENCY_SECS). reset: from
    a killed rank, or a commit with leaving ranks, to training with the rest; measured. start: added
    by new ranks: process, imports, broadcast; measured 4.9 s minus `reset` and `poll`.
    elastic_timeout: the driver ends after this time without a host (HOROVOD_ELASTIC_TIMEOUT).
    """

    step: float = 0.25
    commit: float = 10.0
    checkpoint: float = 15 * 60.0
    poll: float = 1.0
    reset: float = 1.2
    start: float = 2.5
    elastic_timeout: float = 600.0


class Tally:
    """The count of a job through all its restarts. Times are seconds and never go back."""

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
        """Record that a ring of `world` GPUs trains from now on."""
        assert self._since is None, "a ring trains already"
        self._since, self._world = at, world

    def useful(self, now: float) -> float:
        """Return the useful steps, with the steps since the last commit."""
        return self._until(now)

    def gpu_seconds(self, now: float) -> float:
        """Return the time that GPUs have trained."""
        return self._gpu_seconds + (
            0.0 if self._since is None else (now - self._since) * self._world
        )

    def next_commit(self, now: float) -> float:
        """Return the time of the ring's next commit; `now` if it is due."""
        assert self._since is not None, "only a ring that trains commits"
        return (
            self._since + math.ceil((now - self._since) / self._costs.commit) * self._costs.commit
        )

    def pause(self, at: float) -> None:
        """End the ring at a commit: nothing is lost."""
        self._end(at, kept=self._until(at))

    def cut(self, at: float) -> None:
        """Break the ring: the steps since the last commit are lost."""
        if self._since is not None:
            commits = math.floor((at - self._since) / self._costs.commit)
            self._end(at, kept=self._until(self._since + commits * self._costs.commit))

    def fail(self, at: float) -> None:
        """End the job: the steps since the last checkpoint are lost."""
        self._end(at, kept=self._checkpoint(at))

    def _until(self, at: float) -> float:
        if self._since is None:
            return self._base
        return self._base + (at - self._since) / self._costs.step * self._world / self._size

    def _checkpoint(self, at: float) -> float:
        """Return the steps in the last checkpoint.

        A ring writes checkpoints at multiples of their interval.
        """
        last = math.floor(at / self._costs.checkpoint) * self._costs.checkpoint
        return self._saved if self._since is None or last < self._since else self._until(last)

    def _end(self, at: float, *, kept: float) -> None:
        self._saved = min(self._checkpoint(at), kept)
        self._gpu_seconds = self.gpu_seconds(at)
        self.lost += self._until(at) - kept
        self._base, self._since = kept, None
