"""An operator that is elastic itself takes over while we run: we notice, say so, and write nothing more."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from bench.audit import Tail
from lab.cluster import Cluster
from lab.operator import Release
from lab.operator.process import Operator
from mpijob_elastic import names
from mpijob_elastic.decide.handover import PROVEN_AFTER, SILENT_FOR
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab import second_writer
from tests.lab.controllers import controlling, written
from tests.lab.job import Job, State

pytestmark = pytest.mark.lab
THEIRS = "in the form of an elastic operator"
QUICK = {names.DRAIN_TIMEOUT: "1s"}


@pytest.fixture
async def job(client: ApiWriter, cluster: Cluster, namespace: str) -> Job:
    """A job that mpi-operator v0.2.3 made and that we have scaled; the operator has ended."""
    one = Job(client=client, namespace=namespace)
    with Operator.start(cluster, namespace=namespace, qps=0):
        await one.create(replicas=2, annotations=QUICK)
        await one.settled(2)
        await one.scale(3)
        await one.settled(3)
    return one


def shown(cluster: Cluster, job: Job) -> dict[str, object]:
    """Return the output of `mpijob-elastic get`."""
    command = [
        sys.executable,
        "-m",
        "mpijob_elastic",
        "get",
        job.name,
        "-n",
        job.namespace,
        "-o",
        "json",
    ]
    output = subprocess.run(
        [*command, f"--kubeconfig={cluster.kubeconfig}"], check=True, capture_output=True
    ).stdout
    found: dict[str, object] = json.loads(output)
    return found


def handed_over(state: State) -> bool:
    return names.is_handed_over(state.notices)


@pytest.mark.usefixtures("elastic")
async def test_an_elastic_operator_takes_over(
    job: Job, cluster: Cluster, client: ApiWriter
) -> None:
    assert (await asyncio.to_thread(shown, cluster, job))["foreign"] == ""
    tail = Tail(cluster.audit_log)
    with Operator.start(cluster, release=Release.V0_3_0, namespace=job.namespace):
        await job.until(lambda state: handed_over(state) and state.memory == "", "we gave way")
        await job.told(names.REASON_HANDED_OVER, THEIRS)
        report = await asyncio.to_thread(shown, cluster, job)
        assert report["elastic"] is False
        assert THEIRS in str(report["foreign"])
        before = len(written(tail, job.namespace))
        await job.scale(4)
        hosts = [f"{name}:1" for name in job.workers(0, 1, 2, 3)]
        state = await job.until(
            lambda state: state.hosts == hosts, "the operator made a worker and named it"
        )
        await job.scale(1)
        await job.until(
            lambda state: state.exec_names == job.workers(0), "the operator narrowed the Role"
        )
        state = await job.state()
    assert [write.resource for write in written(tail, job.namespace)[before:]] == []
    # It said so once, though it saw more signs since: a worker with that operator's label.
    assert [reason for reason, _ in await job.events()].count(names.REASON_HANDED_OVER) == 1
    assert set(state.workers) >= set(job.workers(0, 1, 2))


@pytest.mark.thorough
@pytest.mark.usefixtures("elastic")
async def test_two_writers_do_not_fight(job: Job, cluster: Cluster) -> None:
    """A writer that leaves our annotation, but has the marks of an operator: we give way until the key is gone."""
    tail = Tail(cluster.audit_log)
    with Operator.start(cluster, namespace=job.namespace, qps=0):
        async with second_writer.writing(cluster.kubeconfig, job.namespace):
            await job.until(handed_over, "we gave way")
            await job.told(names.REASON_HANDED_OVER, THEIRS)
            writes = written(tail, job.namespace)
            assert [write.resource for write in writes].count("configmaps") == 0
            await job.scale(4)
            await job.until(
                lambda state: len(state.hosts) == 4,
                "the operator made a worker, the writer named it",
            )
            await job.scale(3)
            assert written(tail, job.namespace) == writes
    assert (await asyncio.to_thread(shown, cluster, job))["elastic"] is False


def ahead(seconds: float) -> Callable[[], float]:
    return lambda: time.time() + seconds


@pytest.mark.thorough
@pytest.mark.usefixtures("webhook")
async def test_it_is_given_way_to_and_the_job_is_taken_back_after_its_end(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    """The controllers have clocks that are ahead, because nobody waits for ten minutes here.

    Each clock is that of another controller: a job at rest is looked at again when the next one
    starts.
    """
    job = Job(client=client, namespace=namespace)
    async with controlling(cluster.kubeconfig, namespace):
        with Operator.start(cluster, namespace=namespace, qps=0):
            await job.create(replicas=2, annotations={names.DRAIN_TIMEOUT: "1s"})
            await job.settled(2)
        with Operator.start(cluster, release=Release.V0_3_0, namespace=namespace):
            await job.until(handed_over, "we gave way")
            await job.scale(3)
            await job.until(
                lambda state: len(state.hosts) == 3, "the operator made a worker with its label"
            )
    with Operator.start(cluster, namespace=namespace, qps=0):
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR / 2)):
            before = await job.at_rest()
            assert handed_over(before)
            assert before.memory == ""
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR + 60.0)):
            state = await job.until(lambda state: state.memory != "", "our list again")
            assert handed_over(state)
            assert "has not written to it for 20m" in state.notices
        async with controlling(
            cluster.kubeconfig, namespace, now=ahead(SILENT_FOR + 120.0 + PROVEN_AFTER)
        ):
            await job.until(lambda state: not handed_over(state), "it is ours")
            await job.told("TakenBack")
            await job.settled(3)
            await job.scale(1)
            await job.settled(1)
    assert [reason for reason, _ in await job.events()].count(names.REASON_HANDED_OVER) == 1
