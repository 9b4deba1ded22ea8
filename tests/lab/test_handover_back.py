"""A job that was handed over to the real mpi-operator v0.3.0 is ours again once that operator has been silent.

The controllers of this test have clocks that are ahead, because nobody waits for ten minutes here. Each clock is that
of another controller: a job at rest is looked at again when the next one starts.
"""

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
from tests.lab.controllers import controlling
from tests.lab.job import Job, State

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("webhook")]


def ahead(seconds: float) -> Callable[[], float]:
    return lambda: time.time() + seconds


def handed_over(state: State) -> bool:
    return names.is_handed_over(state.notices)


async def test_it_is_given_way_to_and_the_job_is_taken_back_after_its_end(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    async with controlling(cluster.kubeconfig, namespace):
        with Operator.start(cluster, namespace=namespace, qps=0):
            await job.create(replicas=2, annotations={names.DRAIN_TIMEOUT: "1s"})
            await job.settled(2)
        with Operator.start(cluster, release=Release.V0_3_0, namespace=namespace):
            await job.until(handed_over, "we gave way")
            await job.scale(3)
            await job.until(lambda state: len(state.hosts) == 3, "the operator made a worker with its label")
    with Operator.start(cluster, namespace=namespace, qps=0):
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR - 120.0)):
            before = await job.at_rest()
            assert handed_over(before)
            assert before.memory == ""
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR + 60.0)):
            state = await job.until(lambda state: state.memory != "", "our list again")
            assert handed_over(state)
            assert "has not written to it for 20m" in state.notices
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR + 120.0 + PROVEN_AFTER)):
            await job.until(lambda state: not handed_over(state), "it is ours")
            await job.told("TakenBack")
            await job.settled(3)
            await job.scale(1)
            await job.settled(1)
    assert [reason for reason, _ in await job.events()].count(names.REASON_HANDED_OVER) == 1


async def test_an_operator_that_lives_keeps_the_job_and_a_try_is_a_single_write(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    with Operator.start(cluster, namespace=namespace, qps=0):
        async with controlling(cluster.kubeconfig, namespace):
            await job.create(replicas=2)
            await job.settled(2)
    with Operator.start(cluster, release=Release.V0_3_0, namespace=namespace):
        async with controlling(cluster.kubeconfig, namespace):
            await job.until(handed_over, "we gave way")
            await job.at_rest()
        tail = Tail(cluster.audit_log)
        async with controlling(cluster.kubeconfig, namespace, now=ahead(SILENT_FOR + 60.0)):
            await job.until(lambda state: "has not written to it for 20m" in state.notices, "a try")
            state = await job.at_rest()
    assert handed_over(state)
    assert state.memory == ""
    assert state.hosts == [f"{name}:1" for name in job.workers(0, 1)]
    writes = [write for write in tail.writes() if write.resource == "configmaps" and write.namespace == namespace]
    assert [write.verb for write in writes] == ["patch", "update"]  # ours, and theirs
