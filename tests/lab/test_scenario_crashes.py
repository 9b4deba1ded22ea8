"""The controller dies at a write, before the API server has heard of it or before the answer comes; another takes over.

Writes of a scale-out and a scale-in, and of a suspension, are struck (tests/lab/deaths.py says
which). What another controller makes of it must be the same as without the death, and on the way no
worker may go while it is published.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Request, writes
from tests.faults.proxy import FaultProxy
from tests.lab.controllers import controlling
from tests.lab.deaths import died, naming, struck
from tests.lab.history import recorded
from tests.lab.job import Job
from tests.lab.suspended import held

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook", "operator")]

# Role, list, touch; list, touch, two deletions.
MOST_WRITES = 7
# List, touch, notice, a deletion; the launcher's; list, a deletion.
WRITES_TO_SUSPEND = 7
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


async def survive(
    cluster: Cluster,
    client: ApiWriter,
    namespace: str,
    *,
    write: int,
    after: bool,
    suspends: bool = False,
) -> bool:
    """Run a scenario with a death at that write; whether it came to it."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "0s"})
    async with controlling(cluster.kubeconfig, namespace):
        await job.settled(2)
    async with recorded(client, namespace, job=job.name) as history:
        play = _suspend(job) if suspends else _up_and_down(job)
        async with (
            FaultProxy(cluster.kubeconfig) as proxy,
            controlling(proxy.kubeconfig, namespace) as controller,
        ):
            is_dead = await died(proxy, controller, play, at=on_job, nth=write, after=after)
        async with controlling(cluster.kubeconfig, namespace):
            if suspends:
                await _suspend(job)
                await job.annotate(suspend=None)
            await job.scale(1)
            await job.settled(1)
    assert history.deleted_while_published() == []
    assert history.mixed_changes() == []
    return is_dead


async def _up_and_down(job: Job) -> None:
    await job.scale(3)
    await job.settled(3)
    await job.scale(1)
    await job.settled(1)


async def _suspend(job: Job) -> None:
    await job.annotate(suspend="true")
    await job.until(lambda state: held(state, 2) and not state.hosts, "gated pods only")


@pytest.mark.parametrize(
    ("after", "suspends"),
    [
        pytest.param(False, False, id="unheard", marks=pytest.mark.thorough),
        pytest.param(True, False, id="unanswered"),
        pytest.param(True, True, id="unanswered-suspension", marks=pytest.mark.thorough),
    ],
)
async def test_a_death_at_any_write_changes_nothing(
    cluster: Cluster, client: ApiWriter, after: bool, suspends: bool
) -> None:
    limit, most = asyncio.Semaphore(AT_ONCE), WRITES_TO_SUSPEND if suspends else MOST_WRITES

    async def one(namespace: str, write: int) -> None:
        async with limit:
            with naming(write):
                is_dead = await survive(
                    cluster, client, namespace, write=write, after=after, suspends=suspends
                )
                assert is_dead, f"the scenario has fewer writes than {most}"

    writes = struck(most)
    async with namespaces(cluster, len(writes)) as names:
        await asyncio.gather(*map(one, names, writes))
