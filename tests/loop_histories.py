"""Random histories in which somebody works against the controller: nothing may be written again and again.

The webhook is away or knows an old version of the jobs now and then, and another operator makes the
pods. These histories are not to end well, but to end.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide.state import DELETED
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, Resource
from tests.doubles.api import Object
from tests.free_histories import FreeHistory
from tests.queued_cluster import NAMESPACE, Cluster
from tests.queued_histories import ROUND, Step

# Seconds of the quiet time, and most deletions of one pod in it by DELETED; the pause grows to 300 s.
QUIET = 600.0
MOST_DELETIONS = 1 + sum(sum(DELETED.delays[:count]) < QUIET for count in range(1, 11))
# The most other writes of the controller for each job in the second half of it.
MOST_WRITES = 30


class Loops(Cluster):
    """A cluster whose webhook may be away, or know an old version of the jobs; newer: v0.3.0 makes the pods."""

    away, newer = False, False

    def __init__(self, quota: int = 0) -> None:
        self.old: dict[str, bytes] = {}
        super().__init__(quota)

    def remember(self) -> None:
        """Let the webhook see the jobs as they are now, and no later version."""
        self.old = {
            job["metadata"]["name"]: self.objects.text(
                MPI_JOBS.path(NAMESPACE, job["metadata"]["name"])
            )
            for job in self.all(MPI_JOBS)
        }

    def _admitted(self, resource: Resource, made: Object) -> Object:
        if self.newer and resource is PODS:
            made["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = "0"
        return made if self.away else super()._admitted(resource, made)

    def _facts(self, namespace: str, name: str) -> Any:
        if name in self.old:
            return capabilities.read(self.old[name])
        return super()._facts(namespace, name)


class LoopHistory(FreeHistory):
    """A history as it goes on."""

    KIND = Loops
    KINDS: ClassVar[Sequence[str]] = (
        *("park",) * 8,
        *("old",) * 3,
        *("size", "suspend", "away", "newer", "scale") * 2,
        *("fail", "lose", "relaunch", "queue", "lag", "finish", "template"),
    )
    cluster: Loops

    def _step(self, kind: str, name: str, number: int) -> None:
        if kind == "away":
            self.cluster.away = not self.cluster.away
        elif kind == "newer":
            self.cluster.newer = not self.cluster.newer
        elif kind == "old":
            if self.cluster.old:
                self.cluster.old = {}
            else:
                self.cluster.remember()
        else:
            super()._step(kind, name, number)

    def _watch(self) -> None:
        """Nothing: without its webhook a job may run past its queue."""

    async def play(self, steps: Sequence[Step]) -> list[str]:
        """Play the steps and a quiet time; return what the controller does too often in it."""
        for kind, job, number in [("pass", 0, 0), *steps]:
            self._step(kind, f"j{job}", number)
            for _ in range(1 + number % 3):
                await self._round()
        self._calm()
        began = self.cluster.now
        for _ in range(int(QUIET / ROUND)):
            await self._round()
        self.wrong += self._loops(began)
        return self.wrong

    def _loops(self, began: float) -> list[str]:
        wrong = [
            f"{pod} was deleted {len(times)} times in {QUIET:.0f} s"
            for pod, times in self.cluster.pods_deleted(since=began).items()
            if len(times) > MOST_DELETIONS
        ]
        written = self.cluster.written(since=began + QUIET / 2)
        if written.total() > MOST_WRITES * self.jobs:
            wrong.append(f"{written.total()} writes: {written.most_common(3)}")
        return wrong
