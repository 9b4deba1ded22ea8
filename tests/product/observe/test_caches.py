"""The watches whose silence counts, and the changes that wake a job."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import msgspec
import pytest

from mpijob_elastic.kube.resources import NODES, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.disruption_signs import signs
from mpijob_elastic.observe import nodes
from mpijob_elastic.observe.caches import Caches, JobKey
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy

NEEDED = {"mpijobs", "pods", "configmaps", "roles"}


@asynccontextmanager
async def running(client: ApiWriter, *, node_watch: bool = True) -> AsyncIterator[Caches]:
    caches = Caches(
        client,
        namespace=None,
        enqueue=lambda _: None,
        random=Random(1),
        signs=signs() if node_watch else None,
    )
    task = asyncio.create_task(caches.run())
    await caches.synced()
    yield caches
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_watch_of_nodes_has_an_age_like_the_others(client: ApiWriter) -> None:
    async with running(client) as caches:
        assert caches.ages().keys() == NEEDED | {"nodes"}
        assert all(0.0 <= age < 60.0 for age in caches.ages().values())


async def test_nodes_that_may_not_be_read_make_nobody_unhealthy(
    client: ApiWriter, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_nodes(request: Request) -> bool:
        return request.path == NODES.path()

    monkeypatch.setattr(nodes, "PATIENCE", 0.01)
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=of_nodes):
        async with running(client) as caches:
            assert caches.ages().keys() == NEEDED


async def test_nodes_that_are_not_watched_have_no_age(client: ApiWriter) -> None:
    async with running(client, node_watch=False) as caches:
        assert caches.ages().keys() == NEEDED


def pod_of(job: str, *, version: int, **status: Any) -> bytes:
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": job, "uid": "job", "controller": True}
    metadata = {"name": f"{job}-worker-0", "namespace": "n", "uid": "pod", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": {**metadata, "ownerReferences": [owner]}, "status": status})


async def test_only_what_is_read_of_a_pod_wakes_its_job(client: ApiWriter) -> None:
    woken: list[JobKey] = []
    caches = Caches(client, namespace=None, enqueue=woken.append, random=Random(1))
    caches.see(PODS, pod_of("train", version=1, phase="Pending"))
    caches.see(PODS, pod_of("train", version=2, phase="Pending", podIP="10.0.0.1"))
    assert woken == [("n", "train")]
    caches.see(PODS, pod_of("train", version=3, phase="Running", podIP="10.0.0.1"))
    caches.see(PODS, pod_of("train", version=4, phase="Running", podIP="10.0.0.2"))
    assert woken == [("n", "train")] * 2
    [pod] = caches.pods.store.values()
    assert pod.metadata.resource_version == "4"
