"""A job is suspended, and resumed."""

import asyncio

import pytest

from tests.lab.job import Job
from tests.lab.suspended import held, pods

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator", "elastic")]


async def test_a_job_that_is_created_suspended_starts_when_it_is_resumed(job: Job) -> None:
    await job.create(replicas=3, annotations={"mpijob-elastic/suspend": "true"})
    await job.until(lambda state: held(state, 3) and "Suspended: " in state.notices, "gated pods")
    await job.scale(2)
    await job.until(lambda state: held(state, 2), "the size that was edited meanwhile")
    await asyncio.sleep(2)
    assert held(await job.state(), 2)
    await job.annotate(suspend=None)
    await job.settled(2)
    await job.told("Resumed")
    assert (await job.at_rest()).notices == ""


async def test_a_running_job_stops_and_starts_again_with_the_size_that_was_edited_meanwhile(
    job: Job,
) -> None:
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "10s"})
    before = await job.settled(3)
    await job.patch({"spec": {"slotsPerWorker": 2}})
    await job.until(
        lambda state: "suspend the job, and resume it" in state.notices, "the slots wait for that"
    )
    await job.annotate(suspend="true")
    stopped = await job.until(lambda state: held(state, 3) and not state.hosts, "gated pods only")
    assert "Failed" not in stopped.conditions
    assert {pod["metadata"]["uid"] for pod in pods(stopped)}.isdisjoint(
        pod["metadata"]["uid"] for pod in pods(before)
    )
    await job.told("LauncherSuspended")
    await job.told("WorkerSuspended")
    await job.scale(4)
    await job.until(
        lambda state: held(state, 4) and "pods wait" in state.notices, "four gated workers"
    )
    await job.annotate(suspend="false")
    again = await job.settled(4, slots=2)
    assert again.hosts == [f"{worker}:2" for worker in job.workers(0, 1, 2, 3)]
    assert (await job.at_rest()).notices == ""
