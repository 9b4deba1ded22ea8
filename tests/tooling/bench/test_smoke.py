"""Each benchmark, small: it gives figures of what really happened, and ends all that it started.

In a lab of their own, because they install and uninstall. No figure's size is judged here.
"""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from bench import drain, fleet, namespaces, scale
from bench.changes import Writer
from bench.fleet import Fleet
from bench.jobs import AGENT
from bench.parts import throughput
from bench.sides import Ours
from lab.cluster import Cluster
from lab.processes import Identity
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter

pytestmark = pytest.mark.lab

SMALL = Fleet(count=2, workers=2)


@pytest.fixture(scope="module")
def bench_lab() -> Iterator[Cluster]:
    with Cluster.start(name=f"bench-{os.getpid()}") as running:
        yield running


@pytest.fixture
async def bench_client(bench_lab: Cluster) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent=AGENT, kubeconfig=bench_lab.kubeconfig) as client:
        yield client


async def test_a_fleet_is_resized_at_once(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    namespace = namespaces.create(bench_lab, "fleet")
    await fleet.make(bench_client, SMALL, namespace=namespace, nodes=3, say=lambda _: None)
    with Ours(qps=0).start(bench_lab) as side:
        burst = await throughput.resize_all(
            bench_lab, bench_client, SMALL, namespace=namespace, replicas=1, pids=side.pids
        )
    assert burst.seconds > 0
    assert burst.writes > 0
    assert burst.cpu.keys() == side.pids.keys()


async def test_one_job_is_edited_and_drained(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    with Ours(qps=0).start(bench_lab) as side:
        identities = [Identity.of(pid) for pid in side.pids.values()]
        with namespaces.passing(bench_lab, "scale") as namespace:
            found = await scale.run(bench_lab, bench_client, side, namespace=namespace)
        assert found.courses["12→2"].writes[Writer.CONTROLLER, "delete pods"] == 10
        assert found.courses["1→12"].writes[Writer.OPERATOR, "create pods"] == 11
        assert set(found.cpu) == {"operator", "webhook", "controller"}
        if bench_lab.exec_offered:
            with namespaces.passing(bench_lab, "drain") as namespace:
                drained = await drain.run(bench_lab, bench_client, namespace=namespace)
            assert drained.killed == 0
            assert drained.after_edit > drain.RANK_SECONDS - 1
    assert not any(identity.alive() for identity in identities)
