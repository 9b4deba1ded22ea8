"""A webhook of somebody else that hangs, and is to be ignored: our writes pass as users' edits do, or that is told."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.cluster import Cluster
from tests.lab.job import Job
from tests.lab.policy_engine import Engine, policy_engine
from tests.lab.ranks import in_pod, start_rank
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("elastic", "operator")]
# Seconds; far above what a write takes that waits 10 s for the webhook, and far below a test's end.
SOON = 90.0
SLOW = "did not finish this write within"


@contextmanager
def hanging(
    cluster: Cluster, directory: Path, job: Job, *kinds: str, times: int = 1
) -> Iterator[Engine]:
    """Have our writes to such objects, and to launchers, wait for webhooks that never answer."""
    with policy_engine(
        cluster, directory, namespace=job.namespace, failure_policy="Ignore", times=times
    ) as engine:
        engine.kinds, engine.hangs = kinds, True
        until(lambda: is_asked(cluster, job, engine))
        yield engine


def is_asked(cluster: Cluster, job: Job, engine: Engine) -> bool:
    """Tell whether the API server knows the webhook by now."""
    cluster.kubectl("create", "configmap", "canary", "-n", job.namespace, "--dry-run=server")
    return engine.asked > 0


async def test_a_job_is_resized_although_each_touch_of_its_launcher_takes_ten_seconds(
    job: Job, cluster: Cluster, tmp_path: Path
) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1s"})
    await job.settled(2)
    with hanging(cluster, tmp_path, job, "Pod"):
        async with asyncio.timeout(SOON):
            await job.scale(1)
            await job.settled(1)
            await job.scale(2)
            await job.settled(2)


async def test_ranks_that_have_left_are_seen_to_while_each_notice_takes_ten_seconds(
    job: Job, cluster: Cluster, tmp_path: Path
) -> None:
    """The looks of a round do not wait for it, so the worker is no more killed at its drain-timeout."""
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "300s"})
    await job.settled(2)
    [last] = job.workers(1)
    rank = start_rank(cluster, job, last)
    with hanging(cluster, tmp_path, job, "MPIJob"):
        async with asyncio.timeout(SOON):
            await job.scale(1)
            await job.until(lambda state: len(state.hosts) == 1, "one host")
            await asyncio.sleep(8.0)  # in which the phase is due, which is a write to the MPIJob
            in_pod(cluster, job, last, f"kill {rank}")
            await job.until(lambda state: last not in state.running, "the worker gone")
            await job.told("SurplusDeleted", "drained after")
            await job.until(lambda state: not state.phase, "no phase any more")


async def test_where_admission_is_slower_than_a_write_may_be_it_is_told_for_good(
    job: Job, cluster: Cluster, tmp_path: Path
) -> None:
    """Two such webhooks take 20 s. No write takes place after we gave up, and nothing is drained."""
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1s"})
    await job.settled(2)
    before = (await job.state()).refreshed
    with hanging(cluster, tmp_path, job, "Pod", times=2) as engine:
        async with asyncio.timeout(SOON):
            await job.scale(1)
            await job.told("RefreshRefused", SLOW)
            await job.until(lambda state: SLOW in state.notices, "the notice")
        await asyncio.sleep(10.0)  # in which a write that was not given up would take place
        state = await job.state()
        assert (state.refreshed, state.running) == (before, job.workers(0, 1))
        engine.ended.set()
        await job.settled(1)  # the touch is tried again within a minute
        await job.until(lambda state: not state.notices, "no notice")
