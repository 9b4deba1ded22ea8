"""The controller dies at a write, before the API server has heard of it or before the answer comes; another takes over.

Every write of a scale-out and a scale-in is struck in both ways. What another controller makes of it must be the same
as without the death, and on the way no worker may go while it is published.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Call, Request, Reset, writes
from tests.faults.proxy import FaultProxy
from tests.lab.controllers import controlling
from tests.lab.history import recorded
from tests.lab.job import Job

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook", "operator")]

# Role, list, touch; list, touch, two deletions.
MOST_WRITES = 7
AT_ONCE = 6


@asynccontextmanager
async def namespaces(cluster: Cluster, count: int) -> AsyncIterator[list[str]]:
    names = [f"crash-{secrets.token_hex(4)}" for _ in range(count)]
    for name in names:
        await asyncio.to_thread(cluster.kubectl, "create", "namespace", name)
    try:
        yield names
    finally:
        await asyncio.to_thread(cluster.kubectl, "delete", "namespace", *names, "--wait=false")


def on_job(request: Request) -> bool:
    """Writes that concern the job; Lease and Events are others' matter."""
    return writes(request) and "/leases" not in request.path and "/events" not in request.path


async def survive(cluster: Cluster, client: ApiWriter, namespace: str, *, write: int, after: bool) -> bool:
    """Run the scenario with a death at that write; whether it came to it."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "0s"})
    async with controlling(cluster.kubeconfig, namespace):
        await job.settled(2)
    async with recorded(client, namespace, job=job.name) as history:
        died = await _die_at(cluster, job, write=write, after=after)
        async with controlling(cluster.kubeconfig, namespace):
            await job.scale(1)
            await job.settled(1)
    assert history.deleted_while_published() == []
    assert history.mixed_changes() == []
    return died


async def _die_at(cluster: Cluster, job: Job, *, write: int, after: bool) -> bool:
    dead = asyncio.Event()

    async def die(_: Request) -> None:
        dead.set()

    async with FaultProxy(cluster.kubeconfig) as proxy, controlling(proxy.kubeconfig, job.namespace) as controller:

        def is_the_one(request: Request) -> bool:
            nth = proxy.count(lambda other: on_job(other) and other.number <= request.number)
            return on_job(request) and nth == write

        with proxy.inject(Call(callback=die, after=after), on=is_the_one):
            await job.scale(3)
            done = asyncio.create_task(_up_and_down(job))
            await asyncio.wait({done, asyncio.create_task(dead.wait())}, return_when=asyncio.FIRST_COMPLETED)
            done.cancel()
        with proxy.inject(Reset()):
            proxy.cut()
            controller.cancel()
            await asyncio.wait({controller})
    return dead.is_set()


async def _up_and_down(job: Job) -> None:
    await job.settled(3)
    await job.scale(1)
    await job.settled(1)


@pytest.mark.parametrize(
    "after",
    [pytest.param(False, id="unheard", marks=pytest.mark.thorough), pytest.param(True, id="unanswered")],
)
async def test_a_death_at_any_write_changes_nothing(cluster: Cluster, client: ApiWriter, after: bool) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(namespace: str, write: int) -> bool:
        async with limit:
            return await survive(cluster, client, namespace, write=write, after=after)

    async with namespaces(cluster, MOST_WRITES) as names:
        died = await asyncio.gather(*(one(name, write + 1) for write, name in enumerate(names)))
    assert all(died), f"the scenario has fewer writes than {MOST_WRITES}: {died}"
