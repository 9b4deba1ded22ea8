"""Namespaces that are closed to a controller that starts."""

import asyncio

from mpijob_elastic.controller import namespaces
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Answer, Request, Reset
from tests.faults.proxy import FaultProxy


def of(namespace: str, request: Request) -> bool:
    return request.path == MPI_JOBS.path(namespace)


async def test_only_a_refusal_closes_a_namespace(proxy: FaultProxy, client: ApiWriter) -> None:
    with (
        proxy.inject(Answer(status=403, reason="Forbidden"), on=lambda request: of("a", request)),
        proxy.inject(Reset(), on=lambda request: of("b", request)),
        proxy.inject(Answer(status=503), on=lambda request: of("c", request)),
    ):
        assert await namespaces.closed(client, ["a", "b", "c", "d"]) == ["a"]
    assert await namespaces.closed(client, ["a"]) == []


async def test_the_process_ends_once_a_namespace_is_open(proxy: FaultProxy, client: ApiWriter) -> None:
    stop = asyncio.Event()
    with proxy.inject(Answer(status=403, reason="Forbidden")):
        waiting = asyncio.create_task(namespaces.end_once_open(client, ["a"], stop, every=0.01))
        async with asyncio.timeout(60):
            while len(proxy.requests) < 3:
                await asyncio.sleep(0.01)
        assert not stop.is_set()
    async with asyncio.timeout(60):
        await stop.wait()
    waiting.cancel()
