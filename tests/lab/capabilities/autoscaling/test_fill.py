"""Jobs that take what lies idle, and give it back, on nodes with few GPUs and the real scheduler."""

from dataclasses import replace

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.peers.gpus import few, on_gpu

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("elastic", "operator")]

FILLS = {
    "mpijob-elastic/drain-timeout": "1s",
    "mpijob-elastic/autoscale": "fill",
    "mpijob-elastic/min-replicas": "1",
    "mpijob-elastic/max-replicas": "8",
}
# A step has a pause of a minute after it, and after an error mpi-operator may put a job off for
# minutes (docs/troubleshooting.md).
STEP = 300.0


async def test_a_job_takes_idle_gpus_and_gives_back_as_many_as_another_waits_for(
    job: Job, client: ApiWriter
) -> None:
    async with few(client) as pool:
        await job.create(replicas=3, annotations=FILLS, worker_spec=on_gpu(pool))
        await job.until(lambda state: len(state.hosts) == 4, "it has all GPUs", patience=STEP)
        rival = replace(job, name="rival")
        await rival.create(replicas=2, worker_spec=on_gpu(pool))
        await rival.until(
            lambda state: len(state.hosts) == 2, "the rival trains", patience=2 * STEP
        )
        state = await job.state()
        assert (state.replicas, len(state.hosts)) == (2, 2)
        await job.told("SizeFilled", "other jobs wait for nodes for 2 of their workers")
