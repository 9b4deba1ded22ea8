"""Too few workers: at the start, while nodes go, and when a size cannot be reached."""

import time
from datetime import UTC, datetime

import pytest

from mpijob_elastic.model.json_parts import timestamp
from tests.lab.job import HOLD, Job, Object, State

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic")]

HELD = {HOLD: "yes"}


def uid(state: State) -> str | None:
    value: str | None = state.launcher["metadata"]["uid"] if state.launcher else None
    return value


def delivering() -> Object:
    running = {"running": {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}
    facts = {"ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    return {"initContainerStatuses": [{"name": "kubectl-delivery", "state": running, **facts}]}


@pytest.mark.usefixtures("operator")
async def test_a_job_starts_with_its_least_size_whichever_workers_come_first(job: Job) -> None:
    await job.create(
        replicas=4,
        annotations={"mpijob-elastic/min-replicas": "2"},
        launcher_annotations=HELD,
        worker_annotations=HELD,
    )
    first = [f"{name} slots=1" for name in job.workers(0, 1)]
    state = await job.until(
        lambda state: state.hostfile == first and state.launcher is not None, "two are awaited"
    )
    before = uid(state)
    await job.set_status(
        f"{job.name}-launcher", delivering()
    )  # its init container waits for workers 0 and 1
    for pod in job.workers(1, 3):
        await job.annotate_pod(pod, {HOLD: None})
    now = [f"{name} slots=1" for name in job.workers(1, 3)]
    await job.until(lambda state: state.hostfile == now, "those that run are awaited")
    await job.until(
        lambda state: uid(state) not in (None, before), "a launcher that reads the true hostfile"
    )
    await job.told("LauncherRecreated")
    await job.annotate_pod(f"{job.name}-launcher", {HOLD: None})
    await job.until(
        lambda state: state.hosts == [f"{name}:1" for name in job.workers(1, 3)], "it trains on two"
    )
    for pod in job.workers(0, 2):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(4)


@pytest.mark.usefixtures("operator")
async def test_a_command_that_counts_the_hostfile_finds_all_workers_from_the_start(
    job: Job,
) -> None:
    """Else it would train with --max-np 1 for as long as the job lives."""
    count = "NP=$(wc -l < /etc/mpi/hostfile)"
    run = "horovodrun -np $NP --min-np 1 --max-np $NP --host-discovery-script"
    await job.create(
        replicas=4,
        command=["sh", "-c", f"{count}; {run} /etc/mpi/discover_hosts.sh python train.py"],
        annotations={"mpijob-elastic/min-replicas": "1"},
        launcher_annotations=HELD,
        worker_annotations=HELD,
    )
    lines = [f"{name} slots=1" for name in job.workers(0, 1, 2, 3)]
    await job.until(
        lambda state: state.launcher is not None and state.hostfile == lines,
        "the launcher is there, beside a whole hostfile",
    )
    for pod in job.workers(2, 0):
        await job.annotate_pod(pod, {HOLD: None})
    await job.until(lambda state: len(state.hosts) == 2, "two of four are Ready")
    assert (await job.state()).hostfile == lines
    for pod in (*job.workers(1, 3), f"{job.name}-launcher"):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(4)
    assert (await job.state()).hostfile == lines


def ended(ago: float) -> Object:
    """The status of a launcher that succeeded so many seconds ago, as its kubelet writes it."""
    at = timestamp(time.time() - ago)
    state = {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    }
    facts = {"name": "launcher", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    return {"phase": "Succeeded", "containerStatuses": [{**facts, "state": state}]}


@pytest.mark.usefixtures("operator")
@pytest.mark.thorough
async def test_refused_workers_are_told_and_the_others_go_with_the_job_though_the_operator_waits(
    job: Job,
) -> None:
    await job.create(replicas=2)
    await job.settled(2)
    await job.limit(pods=4)
    await job.scale(4)  # one more than the quota takes
    # Each event of a job that the operator cannot sync doubles its pause, from 5 ms up to 1,000 s.
    # One by one: of edits at once the API server begins most again, several times, each time with
    # both webhooks.
    for number in range(30):
        await job.patch({"metadata": {"annotations": {f"somebody/{number}": "edits"}}})
    await job.told("WorkersRefused", "the operator has not created train-worker-3")
    assert "at most 1,000 s after each refusal" in (await job.state()).notices
    await job.set_status(f"{job.name}-launcher", ended(ago=28.0))
    await job.told(
        "SurplusDeleted",
        "the job has ended, cleanPodPolicy is Running and the operator has not deleted it",
    )
    state = await job.until(lambda state: not state.workers, "no worker left")
    assert "Succeeded" not in state.conditions  # it waits still


@pytest.mark.usefixtures("operator")
async def test_where_kubernetes_serves_no_pod_groups_the_pods_start_one_by_one(job: Job) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/gang": "kubernetes"})
    await job.settled(2)
    notices = (
        await job.until(lambda state: "GangUnavailable" in state.notices, "a word about it")
    ).notices
    assert "Kubernetes 1.37 serves them with the gate GenericWorkload" in notices
    assert "GangMissed" not in notices


@pytest.mark.usefixtures("operator")
async def test_a_size_that_cannot_be_reached_is_taken_back(job: Job) -> None:
    await job.create(
        replicas=2,
        annotations={"mpijob-elastic/scale-timeout": "1h"},
        worker_annotations=HELD,
    )
    await job.until(lambda state: len(state.workers) == 2, "two workers")
    for pod in job.workers(0, 1):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(2)
    await job.scale(5)
    await job.until(lambda state: len(state.workers) == 5, "three that stay Pending")
    await job.annotate_pod(job.workers(2)[0], {HOLD: None})
    await job.until(lambda state: len(state.hosts) == 3, "one of them trains")
    await job.annotate(scale_timeout="5s")
    await job.settled(3)
    await job.told("ScaleTimeout", "Worker.replicas returns to 3")
    assert (await job.state()).replicas == 3
