"""Each benchmark, small: it gives figures of what really happened, and ends all that it started.

In a lab of their own, because they install and uninstall. No figure's size is judged here.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench import (
    admission,
    admission_overhead,
    controller_start,
    drain,
    fleet,
    jobs,
    namespaces,
    reviews,
    scale,
    throughput,
)
from bench.admission_overhead import Ground, Pattern
from bench.changes import Writer
from bench.fleet import Fleet
from bench.jobs import AGENT
from bench.sides import Ours, Peer
from bench.spot import contenders, contest
from bench.spot.costs import Costs
from bench.spot.trace import Instance, Trace
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
NODES = 3


@pytest.fixture(scope="module")
def bench_lab() -> Iterator[Cluster]:
    with Cluster.start(name=f"bench-{os.getpid()}") as running:
        yield running


@pytest.fixture
async def bench_client(bench_lab: Cluster) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent=AGENT, kubeconfig=bench_lab.kubeconfig) as client:
        yield client


@pytest.fixture
def no_other_jobs(bench_lab: Cluster) -> None:
    """What the tests before have left is gone.

    An operator makes the pods of every job, and they may take the GPU of a machine that a trace gives to another job.
    Workers of jobs of the same name, in any namespace, keep v0.3.0 from deleting workers.
    """
    bench_lab.kubectl("delete", "mpijobs", "--all", "--all-namespaces", "--cascade=foreground", "--timeout=120s")


async def make_fleet(cluster: Cluster, client: ApiWriter) -> str:
    namespace = namespaces.create(cluster, "fleet")
    await fleet.make(client, SMALL, namespace=namespace, nodes=NODES, say=lambda _: None)
    return namespace


async def test_a_controller_starts_beside_a_fleet(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    namespace = await make_fleet(bench_lab, bench_client)
    installed = install_into(bench_lab)
    try:
        start = await controller_start.run(bench_lab, installed, namespace=namespace)
    finally:
        uninstall_from(bench_lab, installed)
    assert start.ready > 0
    assert start.leads > 0
    assert start.peak >= start.resident > 0
    for job in SMALL.names:
        assert (await jobs.look(bench_client, namespace, job)).lacks(job, SMALL.workers) == ""


async def test_a_fleet_is_resized_at_once(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    namespace = await make_fleet(bench_lab, bench_client)
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
    bench_lab: Cluster, bench_client: ApiWriter, tmp_path: Path
) -> None:
    installed = install_into(bench_lab)
    registration.unregister(bench_lab)
    namespace = namespaces.create(bench_lab, "webhook")
    try:
        with Webhook.start(bench_lab, installed) as webhook:
            pods = await admission.pods(bench_client, namespace)
            await admission.make_evictable(bench_client, namespace, pods[names.ROLE_WORKER])
            review = tmp_path / "review.json"
            launcher = await admission.try_create(bench_client, namespace, pods[names.ROLE_LAUNCHER])
            review.write_bytes(admission.review_of(launcher, namespace))
            ground = Ground(cluster=bench_lab, installed=installed, client=bench_client, namespace=namespace, pods=pods)
            found = await admission_overhead.run(ground, Pattern(callers=2, interval=0.01, creations=4))
            worker = Pattern(callers=2, interval=0.01, creations=4, role=names.ROLE_WORKER)
            assert (await admission_overhead.run(ground, worker)).p50_without > 0
            evictions = Pattern(callers=2, interval=0.01, creations=4, role=names.ROLE_WORKER, evicts=True)
            assert (await admission_overhead.run(ground, evictions)).p50_without > 0
            rate = await reviews.run(
                webhook.process.pid, installed.webhook_port, connections=2, review=review, seconds=0.5
            )
    finally:
        uninstall_from(bench_lab, installed)
    assert found.p50_without > 0
    assert rate.a_cpu_second > 0


@pytest.mark.usefixtures("no_other_jobs")
async def test_a_spot_trace_is_played_to_two_sides(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    """One of two machines is taken without a word and another comes; the minutes between are skipped."""
    machines = (Instance(name="0", up=0), Instance(name="1", up=0, gone=1205), Instance(name="2", up=1505))
    trace = Trace(source="test", size=2, horizon=3000, instances=machines)
    sides = [contenders.rigid(), contenders.elastic(Ours(qps=0))]
    found = await contest.run(bench_lab, bench_client, trace, sides, costs=Costs(), seed=1, say=print)
    rigid, ours = found.values()
    assert [one.endswith(" was lost") for one in rigid.failures] == [True]
    assert rigid.killed == 0
    assert [point.world for point in rigid.points] == [0, 2, 0, 2, 2]
    assert ours.failures == ()
    assert ours.points[1].world == 2
    assert 1 in {point.world for point in ours.points}
    assert ours.useful > rigid.useful
    assert rigid.real_seconds + ours.real_seconds < trace.horizon


@pytest.mark.usefixtures("no_other_jobs")
async def test_one_job_is_edited_beside_the_peer(bench_lab: Cluster, bench_client: ApiWriter) -> None:
    with (
        Peer(flags=("--kube-api-qps=-1",)).start(bench_lab) as side,
        namespaces.passing(bench_lab, "scale") as namespace,
    ):
        found = await scale.run(bench_lab, bench_client, side, namespace=namespace)
    # v0.3.0 deletes by what its cache says, so a pod that is ending already may be deleted again.
    assert found.courses["12→2"].writes[Writer.OPERATOR, "delete pods"] >= 10
    assert set(found.cpu) == {"operator"}


def test_another_peer_runs_alone(bench_lab: Cluster, tmp_path: Path) -> None:
    operator = tmp_path / "operator"
    told = tmp_path / "flags"
    operator.write_text(f'#!/bin/sh\necho "$*" > {told}\necho Started workers\nexec sleep 60\n')
    operator.chmod(0o755)
    with Peer(binary=operator, flags=("--kube-api-qps=50",)).start(bench_lab) as side:
        identity = Identity.of(side.pids["operator"])
        assert set(side.pids) == {"operator"}
        assert told.read_text().split()[-1] == "--kube-api-qps=50"
    assert not identity.alive()
