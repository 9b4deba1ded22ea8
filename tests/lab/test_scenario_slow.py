"""A slow API server: what a user changes while a long batch of writes is under way."""

import asyncio
import secrets

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Delay, Meanwhile, Request
from tests.faults.proxy import FaultProxy
from tests.lab.controllers import controlling
from tests.lab.job import Job

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook", "operator")]
WORKERS = 34
# Seconds for a deletion: 32 of them, 4 at once, take 1.6 s.
SLOW = 0.2


def deletes_pod(request: Request) -> bool:
    return request.method == "DELETE" and "/pods/" in request.path


@pytest.mark.thorough
async def test_workers_wanted_again_in_the_middle_of_a_large_scale_in_stay(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace, name=f"slow-{secrets.token_hex(2)}")
    await job.create(replicas=WORKERS, annotations={"mpijob-elastic/drain-timeout": "0s"})
    began = asyncio.Event()

    async def begin() -> None:
        began.set()

    async with FaultProxy(cluster.kubeconfig) as proxy, controlling(proxy.kubeconfig, namespace):
        before = await job.settled(WORKERS)
        with proxy.inject(Meanwhile(callback=begin), on=deletes_pod), proxy.inject(Delay(seconds=SLOW), on=deletes_pod):
            await job.scale(2)
            await began.wait()
            await asyncio.sleep(SLOW)
            await job.scale(WORKERS)
            after = await job.settled(WORKERS)
    stayed = [name for name, pod in after.workers.items() if uid(pod) == uid(before.workers[name])]
    assert len(stayed) > WORKERS // 2, f"only {len(stayed)} of {WORKERS} workers stayed"


def uid(pod: dict[str, dict[str, str]]) -> str:
    return pod["metadata"]["uid"]
