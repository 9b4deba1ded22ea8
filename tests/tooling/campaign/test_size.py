"""The part `size` of the campaign: what it serves, and what it complains about."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import fields
from random import Random

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.observe.caches import Caches, JobKey
from mpijob_elastic.observe.views import never_asked
from tests.campaign.size import GROWS, ROWS, judged, table
from tests.campaign.size_api import SmallApi
from tests.campaign.size_fleet import WORKERS, Fleet, place
from tests.campaign.size_run import Cost

NAMESPACE, JOB = place(1)
LAST = names.worker(JOB, WORKERS - 1)


@pytest.fixture
async def api() -> AsyncIterator[SmallApi]:
    async with SmallApi() as api:
        fleet = Fleet(first=api.version)
        for number in range(60):
            api.load(fleet.job(number))
        yield api


@pytest.fixture
async def client(api: SmallApi) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
        yield client


async def test_the_caches_read_the_fleet_in_pages_and_follow_it(api: SmallApi, client: ApiWriter) -> None:
    woken: list[JobKey] = []
    caches = Caches(client, namespaces=(), enqueue=woken.append, random=Random(1))
    running = asyncio.create_task(caches.run())
    await caches.synced()
    assert len(caches.pods.store.values()) == 60 * (WORKERS + 1)
    view = caches.view(JobKey(NAMESPACE, JOB), probes=never_asked)
    assert view
    state = derive(view, now=view.workers[0].created_at + 60)
    assert [worker.name for worker in state.workers if worker.ready] == [names.worker(JOB, i) for i in range(WORKERS)]
    assert view.elastic
    assert view.driver_running
    assert view.role
    assert view.role.exec_names[-1] == LAST
    api.update(PODS, NAMESPACE, LAST, {"status": {"phase": "Failed"}})
    await client.delete_object(PODS.path(NAMESPACE, names.worker(JOB, 0)), options={"gracePeriodSeconds": 0})
    async with asyncio.timeout(30):
        while not (view and view.workers[-1].terminated and view.workers[0].index == 1):
            await asyncio.sleep(0.01)
            view = caches.view(JobKey(NAMESPACE, JOB), probes=never_asked)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_write_at_another_version_is_refused(client: ApiWriter) -> None:
    path = CONFIG_MAPS.path(NAMESPACE, names.config_map(JOB))
    stale = {"metadata": {"resourceVersion": "1"}}
    with pytest.raises(errors.Conflict):
        await client.patch_object(path, body=stale, content_type=MERGE_PATCH)
    with pytest.raises(errors.Conflict):
        await client.delete_object(PODS.path(NAMESPACE, LAST), resource_version="1")


async def test_a_worker_above_the_size_is_idle(api: SmallApi, client: ApiWriter) -> None:
    async def seen() -> str:
        found = await exec_in_pod(client, NAMESPACE, LAST, container="worker", command=["sh"], timeout=10)
        return found.stdout.strip()

    assert await seen() == "busy"
    api.update(MPI_JOBS, NAMESPACE, JOB, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": WORKERS - 1}}}})
    assert await seen() == "idle"


def cost(workers: int, **changed: float) -> Cost:
    values = {field.name: 1.0 for field in fields(Cost)}
    grown = dict.fromkeys(GROWS, 1.0 + workers / 1000)
    return Cost(**{**values, **grown, **changed})  # type: ignore[arg-type]


def fleets(**of_largest: float) -> dict[int, Cost]:
    return {1_000: cost(1_000), 10_000: cost(10_000), 100_000: cost(100_000, **of_largest)}


@pytest.mark.parametrize(
    ("of_largest", "complaint"),
    [
        ({}, None),
        ({"start_cpu": 140.0}, None),
        ({"start_cpu": 160.0}, "start to ready: CPU, s: a worker costs 0.00166 above 10,000, 0.001 below"),
        ({"events_cpu": 1.6}, "CPU of 1,000 pod events, s: 1.6 at 100,000 workers, 1 before"),
        ({"events_cpu": -0.5}, "CPU of 1,000 pod events, s: -0.5 at 100,000 workers, 1 before"),
        ({"rest_memory": 230.0}, None),
        ({"rest_memory": 240.0}, "100,000 workers: 240 MiB at rest"),
        ({"peak": 513.0}, "100,000 workers: 513 MiB are above the limit of 512 MiB"),
    ],
)
def test_what_grows_faster_than_the_fleet_is_told(of_largest: dict[str, float], complaint: str | None) -> None:
    assert judged(fleets(**of_largest), limit=512) == ([complaint] if complaint else [])


def test_each_cost_is_a_row() -> None:
    assert list(ROWS) == [field.name for field in fields(Cost)]
    assert table(fleets()).splitlines()[0] == "| workers | 1,000 | 10,000 | 100,000 |"
