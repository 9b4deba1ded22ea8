"""The watches whose silence counts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from mpijob_elastic.kube.resources import NODES
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.disruption_signs import signs
from mpijob_elastic.observe import nodes
from mpijob_elastic.observe.caches import Caches
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
