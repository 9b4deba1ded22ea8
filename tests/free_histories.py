"""Random histories of jobs without a queue: those of `queued_histories`, with parked workers and lists of sizes.

A job in a queue parks no workers, so these jobs begin without a queue. They may join one.
"""

from collections.abc import Sequence
from typing import ClassVar

from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.names import PARKED, SIZES
from tests.queued_cluster import parked, size_of
from tests.queued_histories import MOST, History, least_of

SLOW = 40.0  # seconds between the starts of two pods: shorter than what counts as rest


class FreeHistory(History):
    """A history as it goes on."""

    LABELS: ClassVar = {}
    KINDS: ClassVar[Sequence[str]] = (
        *("park",) * 6,
        *("size", "sizes") * 3,
        *(
            "least",
            "suspend",
            "fail",
            "lose",
            "relaunch",
            "queue",
            "crash",
            "lag",
            "pass",
            "finish",
            "delete",
            "forge",
        ),
        *("crash", "lag", "fail", "lose", "slow", "slow", "slow", "hang"),
        *("scale",) * 6,
    )

    def _create(self, name: str, *, least: int, **more: str) -> None:
        """Create a job: one has workers parked from the beginning and no least size, the next certain sizes."""
        if least > 1:
            super()._create(name, least=least, **{SIZES: "2,4"}, **more)
            return
        super()._create(name, least=least, **{PARKED: "0,3"}, **more)
        job = self.cluster.get(MPI_JOBS, name)
        assert job is not None
        self.cluster.change(MPI_JOBS, job, metadata={"annotations": {names.MIN_REPLICAS: None}})

    def _step(self, kind: str, name: str, number: int) -> None:
        """Do a step; a slow cluster starts one pod after the other, so a list could grow by one."""
        if kind == "slow":
            self.cluster.slow = SLOW - self.cluster.slow
        elif kind == "scale":
            job = self.cluster.get(MPI_JOBS, name)
            if job is not None:
                self.cluster.scale(job, 1 + number % MOST)
        else:
            super()._step(kind, name, number)

    def _watch(self) -> None:
        super()._watch()
        self._watch_parked()

    def _watch_parked(self) -> None:
        """Note a job of which more workers are parked than may be, as edits and scales allow it."""
        for job in self.cluster.all(MPI_JOBS):
            left, size = size_of(job) - len(parked(job)), size_of(job)
            if left < min(least_of(job), size) and not self.wrong:
                name = job["metadata"]["name"]
                self.wrong.append(f"{left} of {size} workers of {name} are left by parking")
