"""The controller dies at every write while two jobs share a queue of Kueue: both end as without the deaths.

Each controller dies at its first write, before the API server has heard of it or before the answer
comes, and another takes over.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Call, Request, writes
from tests.faults.proxy import FaultProxy
from tests.lab.controllers import controlling
from tests.lab.deaths import bury
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job
from tests.peers.queued_jobs import ONE_GPU, asked, ends_quietly, waits, workloads
from tests.peers.queues import example

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("kueue_serves", "webhook", "operator"),
]
# Writes of each kind that the picture has, and so deaths.
STRUCK = {
    "POST workloads",
    "PATCH pods/train-worker-3",
    "PATCH workloads/train-launcher/status",
    "PATCH workloads/train-worker-3/status",
    "DELETE pods/train-worker-3",
    "PATCH configmaps/train-config",
    "PATCH mpijobs/train",
    "PATCH workloads/rival-launcher/status",
}


def _name(request: Request) -> str:
    """Return the name of a write that concerns the jobs, "" for other requests."""
    _, _, path = request.path.partition("/namespaces/")
    _, _, path = path.partition("/")
    return (
        f"{request.method} {path}"
        if writes(request) and not path.startswith(("leases", "events"))
        else ""
    )


class Mortals:
    """Controllers of a namespace, one after the other, each of which dies at a write.

    after: the API server has done it. Otherwise the next controller may do it, so that the jobs go
    on. deaths: names of the writes.
    """

    def __init__(self, kubeconfig: Path, namespace: str, *, after: bool) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._after = after
        self._spared: set[str] = set()
        self.deaths: list[str] = []

    async def live(self) -> None:
        """Live and die, until cancelled."""
        while True:
            await self._once()

    async def _once(self) -> None:
        dead = asyncio.Event()
        struck = ""

        async def die(request: Request) -> None:
            nonlocal struck
            struck = _name(request)
            dead.set()

        def is_it(request: Request) -> bool:
            return _name(request) not in {"", *self._spared}

        async with (
            FaultProxy(self._kubeconfig) as proxy,
            controlling(proxy.kubeconfig, self._namespace) as controller,
        ):
            with proxy.inject(Call(callback=die, after=self._after), on=is_it, times=1):
                death = asyncio.create_task(dead.wait())
                await asyncio.wait({controller, death}, return_when=asyncio.FIRST_COMPLETED)
                death.cancel()
            await bury(proxy, controller)
            self._spared -= {_name(request) for request in proxy.requests}
        if struck:  # it has not lost its Lease
            self.deaths.append(struck)
            self._spared |= set() if self._after else {struck}


@asynccontextmanager
async def mortal(cluster: Cluster, namespace: str, *, after: bool) -> AsyncIterator[list[str]]:
    mortals = Mortals(cluster.kubeconfig, namespace, after=after)
    lives = asyncio.create_task(mortals.live())
    try:
        yield mortals.deaths
    finally:
        lives.cancel()
        await asyncio.gather(lives, return_exceptions=True)


@pytest.mark.parametrize("after", [False, True], ids=["unheard", "unanswered"])
async def test_two_jobs_share_a_queue_although_the_controller_dies_at_every_write(
    job: Job, cluster: Cluster, client: ApiWriter, queue: str, after: bool
) -> None:
    rival = Job(client=client, namespace=job.namespace, name="rival")
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job=rival.name) as theirs,
        mortal(cluster, job.namespace, after=after) as deaths,
    ):
        body = {**example("job")["MPIJob"]}
        await client.create_object(resources.MPI_JOBS.path(job.namespace), body=body)
        await job.settled(4)
        await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
        await rival.settled(2)
        squeezed = await job.until(
            lambda state: state.hosts == ["train-worker-0:1", "train-worker-1:1"], "two workers"
        )
        assert [waits(squeezed.workers[name]) for name in job.workers(*range(4))] == [
            False,
            False,
            True,
            True,
        ]
        await rival.set_status("rival-launcher", {"phase": "Succeeded"})
        await job.settled(4)
        await ends_quietly(job)
        made = await workloads(job)
        assert {name: asked(one)["workers"] for name, one in made.items()} == {
            "train-launcher": 2,
            "train-worker-2": 1,
            "train-worker-3": 1,
        }
        assert all("admission" in one["status"] for one in made.values())
    assert {*deaths} >= STRUCK
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4
    assert mine.deleted_while_published() == []
    assert mine.mixed_changes() == []
    assert not [
        message for reason, message in await job.events() if reason in ("HostsLost", "DrainTimeout")
    ]
