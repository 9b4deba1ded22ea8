"""Each benchmark, small: it gives figures of what really happened, and ends all that it started.

In a lab of their own, because they install and uninstall. No figure's size is judged here.
"""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from bench import admission, admission_overhead, drain, fleet, namespaces, scale
from bench.admission_overhead import Ground, Pattern
from bench.changes import Writer
from bench.fleet import Fleet
from bench.jobs import AGENT
from bench.parts import throughput
from bench.sides import Ours
from lab import registration
from lab.cluster import Cluster
from lab.install import install_into, uninstall_from
from lab.processes import Identity
from lab.replicas import Webhook
from mpijob_elastic import names
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


async def test_the_webhook_is_asked_and_not_asked_by_turns(
    bench_lab: Cluster, bench_client: ApiWriter
) -> None:
    installed = install_into(bench_lab)
    registration.unregister(bench_lab)
    namespace = namespaces.create(bench_lab, "webhook")
    try:
        with Webhook.start(bench_lab, installed) as webhook:
            pods = await admission.pods(bench_client, namespace)
            await admission.make_evictable(bench_client, namespace, pods[names.ROLE_WORKER])
            pid = webhook.process.pid
            ground = Ground(
                cluster=bench_lab,
                installed=installed,
                pid=pid,
                client=bench_client,
                namespace=namespace,
                pods=pods,
            )
            for role, evicts in (
                (names.ROLE_LAUNCHER, False),
                (names.ROLE_WORKER, False),
                (names.ROLE_WORKER, True),
            ):
                pattern = Pattern(callers=2, interval=0.01, creations=4, role=role, evicts=evicts)
                found = await admission_overhead.run(ground, pattern)
                assert found.p50_without > 0
                assert found.a_cpu_second > 0
    finally:
        uninstall_from(bench_lab, installed)
