"""Random histories in which a tenant keeps the controller from telling a launcher who leaves.

A ConfigMap that cannot change, a launcher that cannot be touched, or a host list that somebody else
writes again and again: they stay to the end of the history. Nobody else pays for that: quota that
is wanted back is given back, a job that is suspended stops, and nothing is written ever faster.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.names import SUSPEND
from tests.loop_histories import QUIET, LoopHistory
from tests.queued_cluster import NAMESPACE, holds, pods_of
from tests.queued_histories import History, Step, may_run

# What a tenant writes into its host list all day.
CONTESTED = "#!/bin/sh\necho nobody:1\n"


class HinderedHistory(LoopHistory):
    """A history as it goes on."""

    LABELS: ClassVar = History.LABELS
    KINDS: ClassVar[Sequence[str]] = (
        *("freeze",) * 6,
        *("preempt", "suspend", "size") * 4,
        *("least", "fail", "lose", "relaunch", "queue", "crash", "lag", "hang", "pass", "sizes"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        #: Names of jobs whose host list somebody else writes.
        self.contested: set[str] = set()

    def _create(self, name: str, *, least: int, **more: str) -> None:
        History._create(self, name, least=least, **more)

    def _step(self, kind: str, name: str, number: int) -> None:
        if kind != "freeze":
            super()._step(kind, name, number)
        elif number % 3 == 0:
            self.contested.add(name)
        else:
            config = CONFIG_MAPS.path(NAMESPACE, names.config_map(name))
            launcher = PODS.path(NAMESPACE, names.launcher(name))
            self.cluster.frozen ^= {(config, launcher)[number % 3 - 1]}

    async def _round(self) -> None:
        for name in self.contested:
            config = self.cluster.get(CONFIG_MAPS, names.config_map(name))
            if config is not None:
                self.cluster.change(CONFIG_MAPS, config, data={names.KEY_DISCOVER_HOSTS: CONTESTED})
        await super()._round()

    async def play(self, steps: Sequence[Step]) -> list[str]:
        """Play the steps and a quiet time; return what somebody else still waits for."""
        return await super().play(steps) or [*self._kept()]

    def _kept(self) -> Iterator[str]:
        for one in self.cluster.all(WORKLOADS):
            if holds(one, "QuotaReserved") and holds(one, "Evicted"):
                yield f"quota of {one['metadata']['name']} is not given back in {QUIET:.0f} s"
        for job in self.cluster.all(MPI_JOBS):
            if not job["metadata"]["annotations"].get(SUSPEND):
                continue
            if job["status"].get("completionTime"):
                continue
            name = job["metadata"]["name"]
            for pod in pods_of(self.cluster, name):
                if may_run(pod):
                    yield f"{pod['metadata']['name']} runs while suspended"
