"""Leader election by two processes and a real API server, which says who wrote what while who held the Lease.

Both are read from one etcd, so resourceVersions of Lease and ConfigMap put all writes into one
order. That is not promised by the API (versions of different resources need not compare), but true
of a server with one etcd.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import envelopes
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.meta import ObjectMeta, revision
from mpijob_elastic.kube.resources import CONFIG_MAPS, LEASES, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Answer, Fault, Freeze, everything
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.lab.kube_candidate import NAME, TIMES


class Watched(msgspec.Struct, rename="camel"):
    """Either of the two objects."""

    metadata: ObjectMeta
    data: dict[str, str] = {}
    spec: dict[str, object] = {}


class Record:
    """Who held the Lease and who wrote, by resourceVersion, straight from the server."""

    def __init__(self) -> None:
        self.holders: dict[int, str] = {}
        self.writers: dict[int, str] = {}

    async def follow(
        self, client: ApiWriter, namespace: str, resource: Resource, version: str
    ) -> None:
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={NAME}",
            "resourceVersion": version,
        }
        async with client.stream(resource.path(namespace), query=query, silence=120) as lines:
            async for text in lines:
                line = envelopes.read_line(text)
                if line.type != "BOOKMARK":
                    self.note(msgspec.json.decode(line.object, type=Watched))

    def note(self, seen: Watched) -> None:
        at = revision(seen.metadata.resource_version)
        if "writer" in seen.data:
            self.writers[at] = seen.data["writer"]
        elif seen.spec:
            self.holders[at] = str(seen.spec.get("holderIdentity") or "")

    @property
    def writer(self) -> str:
        return self.writers[max(self.writers)] if self.writers else ""

    def held(self) -> list[str]:
        """Who held the Lease, in turn; "" for nobody."""
        return [name for name, _ in groupby(self.holders[at] for at in sorted(self.holders))]

    def leaders(self) -> list[str]:
        """Who wrote, in turn."""
        return [name for name, _ in groupby(self.writers[at] for at in sorted(self.writers))]

    async def other_writer_than(self, name: str) -> None:
        await eventually(lambda: self.writer != name)

    async def strays(self, client: ApiWriter, namespace: str) -> list[tuple[int, str, str]]:
        """Writes by somebody who did not hold the Lease when the server did them.

        Two watches tell of them, one perhaps later than the other: both are awaited first.
        """
        for resource, seen in ((LEASES, self.holders), (CONFIG_MAPS, self.writers)):
            answer = await client.get(resource.path(namespace, NAME))
            last = revision(msgspec.json.decode(answer, type=Watched).metadata.resource_version)
            await eventually(partial(_has_seen, seen, last))
        held = sorted(self.holders)
        return [
            (at, writer, holder)
            for at, writer in self.writers.items()
            if (holder := next((self.holders[then] for then in reversed(held) if then < at), ""))
            != writer
        ]


def _has_seen(seen: dict[int, str], last: int) -> bool:
    return max(seen, default=0) >= last


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="admin", kubeconfig=cluster.kubeconfig) as client:
        yield client


@pytest.fixture
async def record(admin: ApiWriter, namespace: str) -> AsyncIterator[Record]:
    """Yield the server's record, from the creation of both objects on; the Lease is there as it would be installed."""
    body = {"metadata": {"name": NAME}}
    await admin.create_object(CONFIG_MAPS.path(namespace), body=body)
    answer = await admin.create_object(LEASES.path(namespace), body=body)
    version = msgspec.json.decode(answer, type=Watched).metadata.resource_version
    record = Record()
    following = [
        asyncio.create_task(record.follow(admin, namespace, resource, version))
        for resource in (CONFIG_MAPS, LEASES)
    ]
    yield record
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)


@asynccontextmanager
async def candidate(
    kubeconfig: Path, namespace: str, identity: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A candidate's process; killed in the end if it still runs."""
    arguments = ["-m", "tests.lab.kube_candidate", str(kubeconfig), namespace, identity]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=Path(__file__).parents[2]
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.thorough
async def test_a_frozen_leader_is_followed_and_writes_nothing_when_it_wakes(
    cluster: Cluster, namespace: str, record: Record, admin: ApiWriter
) -> None:
    async with (
        candidate(cluster.kubeconfig, namespace, "a") as first,
        candidate(cluster.kubeconfig, namespace, "b") as second,
    ):
        processes = {"a": first, "b": second}
        for _ in range(4):
            await eventually(lambda: record.writer)
            frozen = record.writer
            os.kill(processes[frozen].pid, signal.SIGSTOP)
            await record.other_writer_than(frozen)
            os.kill(processes[frozen].pid, signal.SIGCONT)
            await asyncio.sleep(0.5)
    assert len(record.leaders()) >= 5
    assert await record.strays(admin, namespace) == []


@pytest.mark.thorough
async def test_a_clean_stop_hands_over_at_once_and_a_kill_after_the_lease_has_run_out(
    cluster: Cluster, namespace: str, record: Record, admin: ApiWriter
) -> None:
    async with candidate(cluster.kubeconfig, namespace, "a") as first:
        await eventually(lambda: record.writer == "a")
        async with candidate(cluster.kubeconfig, namespace, "b") as second:
            first.terminate()
            assert await first.wait() == 0
            await eventually(lambda: record.writer == "b")
            await eventually(lambda: record.held()[-1:] == ["b"])
            assert record.held()[-3:] == ["a", "", "b"]
            second.kill()
            async with candidate(cluster.kubeconfig, namespace, "c"):
                await eventually(lambda: record.writer == "c")
    lease = msgspec.json.decode(await admin.get(LEASES.path(namespace, NAME)), type=Watched)
    assert (lease.spec["leaseTransitions"], lease.spec["leaseDurationSeconds"]) == (
        2,
        TIMES.duration,
    )
    assert await record.strays(admin, namespace) == []


@pytest.mark.parametrize("fault", [Freeze(), Answer(status=500), Answer(status=429, retry_after=1)])
@pytest.mark.thorough
async def test_a_leader_cut_off_from_the_server_is_followed_and_writes_nothing_later(
    cluster: Cluster, namespace: str, record: Record, admin: ApiWriter, fault: Fault
) -> None:
    async with FaultProxy(cluster.kubeconfig) as proxy, candidate(proxy.kubeconfig, namespace, "a"):
        await eventually(lambda: record.writer == "a")
        async with candidate(cluster.kubeconfig, namespace, "b") as second:
            with proxy.inject(fault, on=everything):
                await eventually(lambda: record.writer == "b")
                if isinstance(fault, Freeze):
                    fault.thaw()
            second.terminate()
            await second.wait()
            await eventually(lambda: record.writer == "a")
    assert await record.strays(admin, namespace) == []
