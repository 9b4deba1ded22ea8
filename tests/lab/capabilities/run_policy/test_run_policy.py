"""The run policy of a job, which mpi-operator v0.2.3 ignores, takes effect once the job asks for it."""

import time
from datetime import datetime
from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import MPIRUN, Job, Object, State

pytestmark = pytest.mark.lab
ASKED = {RUN_POLICY: "true"}
TTL = 8  # seconds


def deadline(state: State) -> int | None:
    seconds: int | None = (state.launcher or {})["spec"].get("activeDeadlineSeconds")
    return seconds


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_job_that_has_run_for_its_deadline_fails_and_is_cleaned(job: Job) -> None:
    await job.create(replicas=2, annotations=ASKED, run_policy={"activeDeadlineSeconds": 3600})
    assert deadline(await job.settled(2)) == 3600

    # As the kubelet does at that time; tests/real shows the kubelet.
    await job.set_status(f"{job.name}-launcher", {"phase": "Failed", "reason": "DeadlineExceeded"})
    state = await job.until(
        lambda state: "Failed" in state.conditions and not state.workers, "its end"
    )
    assert "Running" not in state.conditions


async def ended(job: Job) -> float:
    """Return when the job ended by its status."""
    raw = await job.client.get(MPI_JOBS.path(job.namespace, job.name))
    status: dict[str, Any] = msgspec.json.decode(raw)["status"]
    return datetime.fromisoformat(status["completionTime"]).timestamp()


async def end(job: Job, phase: str = "Succeeded") -> float:
    """End a job once its launcher runs; return when it ended by its status."""
    await job.until(lambda state: state.launcher_runs, "its launcher running")
    await job.set_status(f"{job.name}-launcher", {"phase": phase})
    await job.until(lambda state: phase in state.conditions, "its end")
    return await ended(job)


@pytest.mark.thorough
@pytest.mark.usefixtures("operator", "elastic")
async def test_of_the_finished_jobs_those_that_ask_are_deleted_in_time(
    client: ApiWriter, namespace: str
) -> None:
    asks, plain, silent, keeps = (
        Job(client=client, namespace=namespace, name=name) for name in "abcd"
    )
    policy: Object = {
        "ttlSecondsAfterFinished": 3600
    }  # so that its end is seen before it goes, however slow this is
    await asks.create(replicas=1, annotations=ASKED, run_policy=policy)
    await plain.create(replicas=1, command=MPIRUN, annotations=ASKED, run_policy=policy)
    await silent.create(replicas=1, run_policy=policy)
    await keeps.create(replicas=1, annotations=ASKED, run_policy={})
    ends = {
        job.name: await end(job, "Failed" if job is plain else "Succeeded")
        for job in (asks, plain, silent, keeps)
    }
    for job in (asks, plain, silent):
        await job.patch({"spec": {"runPolicy": {"ttlSecondsAfterFinished": TTL}}})
    for job in (asks, plain):
        await job.until(lambda state: not state.replicas, "its MPIJob deleted")
        assert time.time() >= ends[job.name] + TTL
        await job.told("FinishedJobDeleted")
        await job.until(
            lambda state: not state.workers and state.launcher is None, "its pods deleted"
        )
    for job in (silent, keeps):
        assert (await job.state()).replicas == 1


def failed(times: int) -> Object:
    """The status of a launcher that waits for a restart after so many failures."""
    ended = {
        "exitCode": 1,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:01Z",
    }
    main: Object = {
        "name": "launcher",
        "image": "x",
        "imageID": "x",
        "ready": False,
        "restartCount": times - 1,
    }
    states: Object = {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    return {"containerStatuses": [main | states]}


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_launcher_is_restarted_in_place_up_to_the_limit(job: Job) -> None:
    """As its kubelet says; tests/real shows the kubelet."""
    await job.create(replicas=2, annotations=ASKED, run_policy={"backoffLimit": 2})
    before = await job.settled(2)
    assert before.launcher is not None
    assert before.launcher["spec"]["restartPolicy"] == "OnFailure"

    await job.set_status(f"{job.name}-launcher", failed(2))
    state = await job.at_rest()
    assert deadline(state) is None
    assert "Running" in state.conditions
    await job.set_status(f"{job.name}-launcher", failed(3))
    await job.told("BackoffLimitExceeded", "train-launcher has failed 3 times (backoffLimit 2)")
    assert deadline(await job.state()) == 1
    await job.set_status(f"{job.name}-launcher", {"phase": "Failed", "reason": "DeadlineExceeded"})
    await job.until(lambda state: "Failed" in state.conditions and not state.workers, "its end")
