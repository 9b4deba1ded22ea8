"""Who scales is told: bounds and their source, doubts, what a dry run would do; seen as kubectl shows it."""

import asyncio
import re
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import HOROVODRUN, Job
from tests.lab.scalable import told
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "webhook")]

BOUNDS = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/max-replicas": "6"}
LIMITED = [*HOROVODRUN[:3], "--min-np", "3", "--max-np", "4", *HOROVODRUN[3:]]


@pytest.fixture
async def job(client: ApiWriter, cluster: Cluster, namespace: str) -> Job:
    """A job of 3 workers that the webhook knows, with bounds of ours and limits of horovodrun's."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=3, command=LIMITED, annotations=BOUNDS)
    await reported(job, "Running")
    tried = partial(scaled, cluster, job, 4, "--dry-run=server")
    await seen(tried, lambda answer: "worker-3" in answer[1], "the webhook knows the job")
    return job


async def reported(job: Job, *conditions: str) -> None:
    """Write the job's status as the operator would."""
    found = [{"type": kind, "status": "True", "reason": kind} for kind in conditions]
    path = resources.MPI_JOBS.path(job.namespace, job.name, "status")
    await job.client.patch_object(path, body={"status": {"conditions": found}}, content_type=MERGE_PATCH)


async def scaled(cluster: Cluster, job: Job, replicas: int, *options: str) -> tuple[int, str]:
    command = ("scale", f"mpijob/{job.name}", "-n", job.namespace, f"--replicas={replicas}", *options)
    return await asyncio.to_thread(told, cluster, *command)


async def size(job: Job) -> int:
    return (await job.state()).replicas


async def test_beyond_the_bounds_is_refused_and_the_bound_is_named(job: Job, cluster: Cluster) -> None:
    code, said = await scaled(cluster, job, 7)
    assert code
    assert "spec.replicas: 7 is above metadata.annotations[mpijob-elastic/max-replicas] (6); use 2 to 6" in said
    code, said = await scaled(cluster, job, 1)
    assert code
    assert "spec.replicas: 1 is below metadata.annotations[mpijob-elastic/min-replicas] (2); use 2 to 6" in said
    code, said = await scaled(cluster, job, 0)
    assert code
    assert await size(job) == 3


async def test_a_typing_error_in_a_size_is_refused_and_an_annotation_allows_more(job: Job, cluster: Cluster) -> None:
    await job.patch({"metadata": {"annotations": dict.fromkeys(BOUNDS)}, **workers(3)})
    typed = "1000000 is above 1000, the largest size without metadata.annotations[mpijob-elastic/max-replicas]"
    refused = partial(scaled, cluster, job, 1_000_000)
    code, said = await seen(refused, lambda answer: "(6)" not in answer[1], "the webhook knows that no bound is set")
    assert (code, typed in said) == (1, True)
    with pytest.raises(errors.ApiError, match=re.escape(f"spec.mpiReplicaSpecs.Worker.replicas: {typed}")):
        await job.scale(1_000_000)
    with pytest.raises(errors.ApiError, match=re.escape(typed)):
        await replace(job, name="another").create(replicas=1_000_000)
    await job.patch({"metadata": {"annotations": {"mpijob-elastic/max-replicas": "1100"}}, **workers(1_100)})
    await job.patch(
        {"metadata": {"annotations": {"mpijob-elastic/max-replicas": None, "of": "others"}}, **workers(1_000)}
    )
    assert await size(job) == 1_000


def workers(replicas: int) -> dict[str, Any]:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}


async def test_what_horovodrun_cannot_use_is_allowed_and_warned_of(job: Job, cluster: Cluster) -> None:
    assert await scaled(cluster, job, 4) == (0, "")
    warning = "Warning: horovodrun's --max-np is 4, but 6 slots are asked for: 2 stay unused\n"
    assert await scaled(cluster, job, 6) == (0, warning)
    warning = "Warning: horovodrun's --min-np is 3, but 2 slots are asked for: training waits for more\n"
    assert await scaled(cluster, job, 2) == (0, warning)
    assert await size(job) == 2


async def test_a_dry_run_shows_what_would_happen_and_changes_nothing(job: Job, cluster: Cluster) -> None:
    code, said = await scaled(cluster, job, 2, "--dry-run=server")
    assert code == 0
    assert "Warning: would scale 3→2: worker-2 drains for at most 1m, then is deleted\n" in said
    assert await size(job) == 3


async def test_a_finished_job_is_not_scaled(job: Job, cluster: Cluster) -> None:
    await reported(job, "Running", "Succeeded")
    tried = partial(scaled, cluster, job, 4, "--dry-run=server")
    await seen(tried, lambda answer: answer[0] != 0 and "the job has finished" in answer[1], "a refusal")


async def test_changed_bounds_hold_at_once(job: Job, cluster: Cluster) -> None:
    await job.annotate(max_replicas="8")
    await seen(partial(scaled, cluster, job, 7), lambda answer: answer[0] == 0, "the new bound")
    assert await size(job) == 7


async def test_an_edit_is_told_what_it_does(job: Job, cluster: Cluster) -> None:
    where = ("-n", job.namespace, f"mpijob/{job.name}", "--type=json")
    template = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/image"
    image = f'[{{"op":"replace","path":"{template}","value":"horovod:new"}}]'
    _, said = await asyncio.to_thread(told, cluster, "patch", *where, f"--patch={image}")
    assert said.startswith("Warning: Worker.template: existing workers keep the old template")
    size = '[{"op":"replace","path":"/spec/mpiReplicaSpecs/Worker/replicas","value":4}]'
    _, said = await asyncio.to_thread(told, cluster, "patch", *where, f"--patch={size}", "--dry-run=server")
    assert said == "Warning: would scale 3→4: worker-3 is created, and published once Ready\n"
