"""Workers whose kubelet runs commands in them: an exec probe looks like a rank while it runs, and holds a drain no longer."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from tests.lab.job import Job
from tests.lab.ranks import in_pod, start_rank

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]
# What a probe runs: it takes half of the time until the next one.
PROBE, PAUSE = "sleep 0.5", 0.5


@contextmanager
def probed(cluster: Cluster, job: Job, pod: str) -> Iterator[None]:
    """Run a command in a pod again and again, as the kubelet of a livenessProbe with `exec` does."""
    over = threading.Event()

    def probe() -> None:
        while not over.wait(PAUSE):
            with contextlib.suppress(LabError):  # the pod goes at last
                in_pod(cluster, job, pod, PROBE)

    kubelet = threading.Thread(target=probe)
    kubelet.start()
    try:
        yield
    finally:
        over.set()
        kubelet.join()


async def test_a_worker_with_an_exec_probe_drains_once_its_rank_has_gone(
    job: Job, cluster: Cluster
) -> None:
    assert cluster.exec_offered
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1h"})
    await job.settled(2)
    stays, leaves = job.workers(0, 1)
    rank = await asyncio.to_thread(start_rank, cluster, job, leaves)
    with probed(cluster, job, leaves):
        await job.scale(1)
        await job.until(lambda state: state.hosts == [f"{stays}:1"], "worker-1 left the list")
        await asyncio.to_thread(in_pod, cluster, job, leaves, f"kill {rank}")
        await job.until(lambda state: leaves not in state.running, "worker-1 is deleted")
    await job.settled(1)
    await job.told("SurplusDeleted", "drained after")
