"""The definition of QueueUnits comes, as KubeQueue had it before koord-queue, and goes, while a controller runs."""

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.capabilities.kube_queue.kube_queue import Scheduler, served
from tests.lab.controllers import controlling
from tests.lab.job import Job
from tests.lab.suspended import held
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("operator", "webhook")]

UNIT = "train-mpi-qu"


async def test_a_job_that_is_held_waits_in_kube_queue_while_it_is_installed(
    cluster: Cluster, client: ApiWriter, job: Job
) -> None:
    scheduler = Scheduler(client, job.namespace)

    async def phase(expected: str) -> None:
        await seen(
            lambda: scheduler.phase(UNIT), lambda found: found == expected, f"phase {expected}"
        )

    async with controlling(cluster.kubeconfig, job.namespace):
        await job.create(replicas=2, annotations={KUBEQUEUE_SUSPEND: "true"})
        await job.until(lambda state: held(state, 2) and "Suspended" in state.notices, "gated pods")
        assert "Enqueued" not in (await job.at_rest()).notices
        with served(cluster, subresource=False):
            await phase("Enqueued")  # as we wrote it
            await scheduler.say(UNIT, "Dequeued")
            await job.settled(2)
            await phase("Running")
        await job.patch({"metadata": {"annotations": {KUBEQUEUE_SUSPEND: "true"}}})
        await job.until(lambda state: held(state, 2), "gated pods")
        await job.patch({"metadata": {"annotations": {KUBEQUEUE_SUSPEND: None}}})
        await job.settled(2)
