"""Controllers in this process, so that a test has their clock and can end them at any moment; and who leads."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.audit import Tail, Write
from lab.replicas import Controller as Replica
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.signs import NodeSigns
from mpijob_elastic.controller.process import Controller, ControllerSettings
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.lease import LeaseTimes
from tests.lab.waiting import until

# Short, so that a test need not wait long for the next leader.
TIMES = LeaseTimes(duration=5.0, renew_deadline=4.0, retry=0.5, attempt=2.0, look=0.2)


@asynccontextmanager
async def controlling(
    kubeconfig: Path,
    namespace: str,
    *,
    now: Callable[[], float] = time.time,
    everywhere: bool = False,
    times: LeaseTimes = TIMES,
) -> AsyncIterator[asyncio.Task[None]]:
    """Run a controller for one namespace, or everywhere with its Lease there; `now` is its clock.

    It ends with the block, cleanly unless it was cancelled.
    """
    stop = asyncio.Event()
    async with _made(
        kubeconfig, namespace, now=now, everywhere=everywhere, times=times
    ) as controller:
        task = asyncio.create_task(controller.run(stop))
        try:
            yield task
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def leading(
    kubeconfig: Path, namespace: str, *, now: Callable[[], float] = time.time
) -> AsyncIterator[Controller]:
    """Run a controller for one namespace, which must end cleanly with the block; `now` is its clock."""
    stop = asyncio.Event()
    async with _made(kubeconfig, namespace, now=now) as controller:
        task = asyncio.create_task(controller.run(stop))
        try:
            yield controller
        finally:
            stop.set()
            await task


@asynccontextmanager
async def _made(
    kubeconfig: Path,
    namespace: str,
    *,
    now: Callable[[], float],
    everywhere: bool = False,
    times: LeaseTimes = TIMES,
) -> AsyncIterator[Controller]:
    settings = settings_for(namespace, everywhere=everywhere, times=times)
    async with await connect(user_agent="mpijob-elastic-test", kubeconfig=kubeconfig) as client:
        yield Controller(client, settings, now=now)


def settings_for(
    namespace: str,
    *,
    everywhere: bool = False,
    times: LeaseTimes = TIMES,
    signs: NodeSigns | None = None,
) -> ControllerSettings:
    """Return the settings of a controller for one namespace, or for all, with its Lease in that one."""
    return ControllerSettings(
        identity=secrets.token_hex(4),
        jobs_namespaces=() if everywhere else (namespace,),
        lease_namespace=namespace,
        health_host="127.0.0.1",
        health_port=0,
        signs=signs,
        lease_times=times,
    )


def written(tail: Tail, namespace: str) -> list[Write]:
    """Return what an installed controller wrote in a namespace, but for Events."""
    found = (
        write
        for write in tail.writes()
        if write.namespace == namespace and write.user == names.CONTROLLER_USER
    )
    return [write for write in found if write.resource != "events"]


def awaited_leader(controllers: Iterable[Replica]) -> Replica:
    """Wait until a replica leads, and return it."""
    leaders: list[Replica] = []

    def found() -> bool:
        leaders.extend(one for one in controllers if _leads(one))
        return bool(leaders)

    until(found)
    return leaders[0]


def _leads(replica: Replica) -> bool:
    with suppress(OSError):  # no answer yet
        return "\nmpijob_elastic_leader 1.0\n" in replica.metrics()
    return False
