"""Hostile MPIJobs that the real API server stores cost a watch cache themselves alone."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from mpijob_elastic import capabilities
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job_facts import JobFacts
from tests.faults.waiting import eventually
from tests.lab.waiting import LIMITS

pytestmark = pytest.mark.lab

# Python 3.11 reads 900 levels, 3.12 1,400 and 3.13 9,900; the API server stores 10,000.
DEEP = b"[" * 9_900 + b"]" * 9_900
WIDE = b"[" + b",".join([b"{}"] * 300_000) + b"]"
SCRIPT = b'[{"name":"a","command":["sh","-c","' + b"a;" * 400_000 + b'"]}]'


def job(name: str, containers: bytes) -> bytes:
    """An MPIJob with these containers in its launcher's template."""
    return (
        b'{"apiVersion":"kubeflow.org/v1","kind":"MPIJob","metadata":{"name":"%s"},"spec":{"mpiReplicaSpecs":{'
        b'"Worker":{"replicas":1,"template":{}},"Launcher":{"replicas":1,"template":{"spec":{"containers":%s}}}}}}'
    ) % (name.encode(), containers)


@pytest.mark.thorough
async def test_jobs_that_the_api_server_stores(client: ApiWriter, namespace: str) -> None:
    path = MPI_JOBS.path(namespace)
    for name, containers in {"a": b"[]", "deep": DEEP, "wide": WIDE, "z": SCRIPT}.items():
        await client.create_object(path, body=job(name, containers), limits=LIMITS)
    cache: WatchCache[JobFacts] = WatchCache(
        client,
        MPI_JOBS,
        decode=capabilities.read,
        on_change=lambda _old, _new: None,
        random=Random(1),
        namespace=namespace,
    )

    def seen() -> list[str]:
        return sorted(one.metadata.name for one in cache.store.values())

    task = asyncio.create_task(cache.run())
    try:
        await eventually(cache.synced.is_set)
        assert (seen(), cache.unreadable) == (["a", "z"], 2)
        for name, containers in {"deeper": DEEP, "b": b"[]"}.items():
            await client.create_object(path, body=job(name, containers), limits=LIMITS)
        await eventually(lambda: seen() == ["a", "b", "z"])
        assert cache.unreadable == 3
        await client.delete_object(f"{path}/deep", limits=LIMITS)
        await eventually(lambda: cache.unreadable == 2)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
