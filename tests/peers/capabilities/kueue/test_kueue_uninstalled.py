"""`uninstall` beside jobs in a queue of the real Kueue: what it says of their quota is true.

On a lab of its own.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.install import install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.command_line import UNINSTALL, CommandLine
from tests.lab.job import Job
from tests.lab.waiting import seen, until
from tests.peers.queued_jobs import ONE_GPU, QUICK, waits, workloads

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("kueue_serves"),
]

BATCH_JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        Cluster.start(name=f"pytest-{os.getpid()}-kueue-uninstalled") as running,
        Operator.start(running, qps=0),
    ):
        yield running


@pytest.fixture
def ours(cluster: Cluster) -> Iterator[ExitStack]:
    """Controller and webhook; they end with the stack, as their pods do."""
    one = install_into(cluster)
    with ExitStack() as running:
        running.enter_context(Webhook.start(cluster, one))
        until(lambda: called(cluster))
        running.enter_context(Controller.start(cluster, one))
        yield running


@asynccontextmanager
async def rival_in(
    client: ApiWriter, namespace: str, queue: str
) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """A job of Kueue's own that needs all four GPUs; tells whether it may start."""
    limits = {"nvidia.com/gpu": "4"}
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "1", **limits}, "limits": limits},
    }
    body = {
        "apiVersion": BATCH_JOBS.api_version,
        "kind": BATCH_JOBS.kind,
        "metadata": {"name": "rival", "labels": {LABEL_QUEUE: queue}},
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }

    async def workload() -> dict[str, Any] | None:
        raw = await client.get(WORKLOADS.path(namespace))
        found = msgspec.json.decode(raw)["items"]
        return next(
            (item for item in found if item["metadata"]["name"].startswith("job-rival")), None
        )

    async def starts() -> bool:
        found = await workload()
        return found is not None and is_admitted(found)

    await client.create_object(BATCH_JOBS.path(namespace), body=body)
    await seen(workload, lambda found: found is not None, "its Workload")
    yield starts
    await client.delete_object(
        BATCH_JOBS.path(namespace, "rival"), options={"propagationPolicy": "Background"}
    )


def is_admitted(workload: dict[str, Any]) -> bool:
    conditions = workload.get("status", {}).get("conditions", [])
    return any((one["type"], one["status"]) == ("Admitted", "True") for one in conditions)


async def finished(job: Job) -> None:
    await job.set_status(f"{job.name}-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: not state.workers, "no workers")


async def ends_and_stays(job: Job, commands: CommandLine) -> None:
    await finished(job)
    assert await workloads(job), "nobody gives it back"
    said = await asyncio.to_thread(commands.done, *UNINSTALL)
    assert f"is given back, because nothing of them runs: {job.namespace}/train." in said


async def is_deleted(job: Job, _commands: CommandLine) -> None:
    await job.delete()


@pytest.mark.parametrize("end", [is_deleted, ends_and_stays])
async def test_quota_of_running_jobs_is_free_when_it_says_so(
    job: Job,
    cluster: Cluster,
    queue: str,
    ours: ExitStack,
    end: Callable[[Job, CommandLine], Awaitable[None]],
) -> None:
    commands, labels = CommandLine(cluster), {LABEL_QUEUE: queue}
    over, waiting = (
        Job(client=job.client, namespace=job.namespace, name=name) for name in ("over", "waiting")
    )
    await job.create(replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    await job.settled(3)
    await over.create(replicas=1, worker_spec=ONE_GPU, job_labels=labels)
    await over.settled(1)
    await waiting.create(replicas=2, worker_spec=ONE_GPU, job_labels=labels)
    await waiting.until(lambda state: waits(state.launcher), "a launcher at the gate")
    refused = await asyncio.to_thread(commands.refused, *UNINSTALL)
    assert f"{job.namespace}/waiting-launcher" in refused
    await waiting.delete()
    await seen(lambda: workloads(waiting), lambda found: not found, "no Workload")

    await asyncio.to_thread(ours.close)
    await finished(over)
    shown = await asyncio.to_thread(commands.done, "uninstall", "--dry-run")
    said = await asyncio.to_thread(commands.done, *UNINSTALL)
    for told in (shown, said):
        assert f"is given back, because nothing of them runs: {job.namespace}/over." in told
        assert (
            f"because their pods run: {job.namespace}/train. It is free when the job is deleted"
            in told
        )
    # What is deleted stays until Kueue takes its finalizer off.
    await seen(lambda: workloads(over), lambda found: not found, "no Workload")
    assert sorted(await workloads(job)) == ["train-launcher", "train-worker-2"]
    again = await asyncio.to_thread(commands.done, *UNINSTALL)
    assert "Nothing is installed." in again
    assert f"because their pods run: {job.namespace}/train." in again

    async with rival_in(job.client, job.namespace, queue) as starts:
        await asyncio.sleep(5)
        assert not await starts()
        await end(job, commands)
        await seen(starts, bool, "quota for the rival")
    await seen(lambda: workloads(job), lambda found: not found, "no Workload")
    assert "uota" not in await asyncio.to_thread(commands.done, *UNINSTALL)
