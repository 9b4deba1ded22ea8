"""An MPIJob without a number of workers, which admission missed: the operator has crashed, the job stays as it is."""

import asyncio
import subprocess
import sys

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.processes import Identity
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.launchers import UNMUTATED, label
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

MISSING = "spec.mpiReplicaSpecs.Worker.replicas: is missing; write the number of workers"


@pytest.mark.usefixtures("elastic")
async def test_nothing_is_drained_and_all_say_so_until_the_size_is_back(
    job: Job, client: ApiWriter, cluster: Cluster
) -> None:
    with Operator.start(cluster, namespace=job.namespace, qps=0) as operator:
        await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "0s"})
        before = await job.settled(2)
        await label(client, job.namespace, UNMUTATED)
        process = Identity.of(operator.pid)
        await job.patch({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": None}}}})
        state = await job.until(lambda state: "SizeUnknown" in state.notices, "the user is told")
        assert MISSING in state.notices
        await asyncio.to_thread(until, lambda: not process.alive())
    after = await job.at_rest()
    assert (after.hosts, after.running) == (before.hosts, before.running)
    assert "desired unknown, ready 2, published 2" in await said(cluster, job, "get")
    explained = await said(cluster, job, "explain")
    assert "size-unknown" in explained
    assert f"kubectl -n {job.namespace} edit mpijob {job.name}" in explained
    assert "workers train" not in explained

    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    await job.scale(2)
    with Operator.start(cluster, namespace=job.namespace, qps=0):
        await job.until(lambda state: not state.notices, "nothing is left to say")
        assert (await job.settled(2)).hosts == before.hosts


async def said(cluster: Cluster, job: Job, command: str) -> str:
    """Return what a command of ours says of the job."""
    words = [sys.executable, "-m", "mpijob_elastic", command, job.name, "-n", job.namespace]
    words.append(f"--kubeconfig={cluster.kubeconfig}")
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=False)
    return done.stdout
