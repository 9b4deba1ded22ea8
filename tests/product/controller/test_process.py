"""The controller process: what it holds, also while it does not lead, and namespaces that are closed to it."""

import asyncio
import contextlib
import ssl
import tracemalloc
from asyncio import sslproto
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench import jobs
from mpijob_elastic import names
from mpijob_elastic.controller.process import (
    Controller,
    ControllerSettings,
    closed_to,
    end_once_open,
    spare_memory,
)
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request, Reset
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

NAMESPACE = "n"
JOBS, LEASE = MPI_JOBS.path(NAMESPACE), LEASES.path(NAMESPACE)
SPEC = jobs.manifest("train", replicas=2, drain_timeout="0s")["spec"]
OTHER = {"holderIdentity": "other", "leaseDurationSeconds": 3600, "leaseTransitions": 0}
TIMES = LeaseTimes(duration=1.0, renew_deadline=0.8, retry=0.1, attempt=0.5, look=0.1)


@asynccontextmanager
async def running(client: ApiWriter) -> AsyncIterator[Controller]:
    settings = ControllerSettings(
        identity="mine",
        jobs_namespaces=(NAMESPACE,),
        lease_namespace=NAMESPACE,
        health_host="127.0.0.1",
        health_port=0,
        lease_times=TIMES,
    )
    controller, stop = Controller(client, settings), asyncio.Event()
    task = asyncio.create_task(controller.run(stop))
    try:
        yield controller
    finally:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def shown(controller: Controller) -> list[str]:
    """The jobs that the gauges show."""
    families = [family for gauge in controller._metrics.of_jobs for family in gauge.collect()]
    return sorted({sample.labels["job"] for family in families for sample in family.samples})


async def test_a_standby_gathers_no_keys_of_jobs_that_come_and_go(
    api: TinyApi, client: ApiWriter
) -> None:
    await api.create(LEASE, names.LEASE, spec=OTHER)
    async with running(client) as controller:
        for number in range(5):
            await api.create(JOBS, f"train-{number}", spec=SPEC)
            await eventually(lambda: len(controller._caches.jobs.store.values()) == 1)
            await api.delete(JOBS, f"train-{number}")
            await eventually(lambda: not controller._caches.jobs.store.values())
        assert controller._queue.depth == 0


async def test_roll_calls_take_their_turns_among_the_looks_into_published_workers(
    client: ApiWriter,
) -> None:
    async with running(client) as controller:
        assert controller._execs.calls is controller._prober.published


async def test_a_former_leader_shows_no_jobs_and_remembers_none_that_is_gone(
    api: TinyApi, client: ApiWriter
) -> None:
    await api.create(JOBS, "train", spec=SPEC)
    async with running(client) as controller:
        await eventually(lambda: shown(controller) == ["train"])
        controller._reconciler.drains._first[NAMESPACE, "train"] = {}
        await api.update(LEASE, names.LEASE, spec=OTHER)
        await eventually(lambda: not controller._lease.held())
        await eventually(lambda: shown(controller) == [])
        await api.delete(JOBS, "train")
        await eventually(lambda: not controller._reconciler.drains._first)


async def test_a_standby_that_leads_looks_at_jobs_that_came_before(
    api: TinyApi, client: ApiWriter
) -> None:
    await api.create(LEASE, names.LEASE, spec=OTHER)
    async with running(client) as controller:
        await api.create(JOBS, "train", spec=SPEC)
        await eventually(controller._caches.jobs.store.values)
        await eventually(lambda: controller._lease._found)
        await api.update(LEASE, names.LEASE, spec={"holderIdentity": ""})
        await eventually(lambda: shown(controller) == ["train"])


def of(namespace: str, request: Request) -> bool:
    return request.path == MPI_JOBS.path(namespace)


async def test_only_a_refusal_closes_a_namespace(proxy: FaultProxy, client: ApiWriter) -> None:
    with (
        proxy.inject(Answer(status=403, reason="Forbidden"), on=lambda request: of("a", request)),
        proxy.inject(Reset(), on=lambda request: of("b", request)),
        proxy.inject(Answer(status=503), on=lambda request: of("c", request)),
    ):
        assert await closed_to(client, ["a", "b", "c", "d"]) == ["a"]
    assert await closed_to(client, ["a"]) == []


async def test_the_process_ends_once_a_namespace_is_open(
    proxy: FaultProxy, client: ApiWriter
) -> None:
    stop = asyncio.Event()
    with proxy.inject(Answer(status=403, reason="Forbidden")):
        waiting = asyncio.create_task(end_once_open(client, ["a"], stop, every=0.01))
        await eventually(lambda: len(proxy.requests) >= 3)
        assert not stop.is_set()
    async with asyncio.timeout(60):
        await stop.wait()
    waiting.cancel()


async def test_a_connection_takes_less_than_asyncio_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size
    )  # put back at the end
    spare_memory()
    context = ssl.create_default_context()
    tracemalloc.start()
    try:
        _held = sslproto.SSLProtocol(
            asyncio.get_running_loop(), asyncio.Protocol(), context, asyncio.Future()
        )
        assert tracemalloc.get_traced_memory()[0] < 100 * 2**10
    finally:
        tracemalloc.stop()
