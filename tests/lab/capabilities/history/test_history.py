"""The history of a job on a real API server with the real operator: who changed its size, and what became of that."""

import asyncio
import json
import subprocess
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.demo.job import editor
from lab.install import Installed
from lab.replicas import Controller
from tests.lab.job import HOLD, Job
from tests.lab.ranks import start_rank
from tests.lab.test_cli import ours
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "webhook", "operator")]
HELD = {
    "spec": {
        "mpiReplicaSpecs": {"Worker": {"template": {"metadata": {"annotations": {HOLD: "yes"}}}}}
    }
}


async def history(cluster: Cluster, job: Job, *options: str) -> subprocess.CompletedProcess[str]:
    words = ("history", f"mpijob/{job.name}", "-n", job.namespace, *options)
    return await asyncio.to_thread(ours, cluster.kubeconfig, *words)


async def changes(cluster: Cluster, job: Job) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await history(cluster, job, "-o", "json")).stdout)[
        "changes"
    ]
    return found


async def phase(cluster: Cluster, job: Job) -> str:
    """The column PHASE of `kubectl get mpijob`."""
    told = await asyncio.to_thread(cluster.kubectl, "get", "mpijob", job.name, "-n", job.namespace)
    header, line = told.splitlines()
    return line[header.index("PHASE") :].split(" ")[0]


def edit(cluster: Cluster, job: Job, replicas: int) -> None:
    cluster.kubectl("-n", job.namespace, "edit", "mpijob", job.name, editor=editor(replicas))


@pytest.mark.thorough
async def test_who_changed_the_size_is_told_also_where_the_controller_was_killed(
    job: Job, cluster: Cluster, installed: Installed
) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1s"})
    with Controller.start(cluster, installed) as first:
        await job.settled(2)
        none = await history(cluster, job)
        assert (none.returncode, none.stdout) == (0, "")
        assert "no change of the size of" in none.stderr
        await asyncio.to_thread(edit, cluster, job, 3)
        await job.settled(3)
        assert [(one["from"], one["to"]) for one in await changes(cluster, job)] == [(2, 3)]
        # A newcomer that cannot start, so that the list stays as it is.
        await job.patch(HELD)
        await asyncio.to_thread(edit, cluster, job, 4)
        await seen(lambda: phase(cluster, job), lambda word: word == "Scaling", "it says Scaling")
        first.kill()
    await asyncio.to_thread(
        cluster.kubectl, "-n", job.namespace, "scale", "mpijob", job.name, "--replicas=1"
    )
    with Controller.start(cluster, installed):
        await job.settled(1)
        await seen(lambda: phase(cluster, job), lambda word: word == "", "it says nothing")
        found = await changes(cluster, job)
    told = [(one["cause"], one["by"], one["from"], one["to"]) for one in found]
    assert told == [
        ("user", "kubectl-edit", 2, 3),
        ("user", "kubectl-edit", 3, 4),
        ("user", "kubectl", 4, 1),
    ]
    assert [one["listedAfter"] is not None for one in found] == [True, False, True]
    assert len((await history(cluster, job)).stdout.splitlines()) == 4


@pytest.mark.thorough
async def test_ranks_that_come_and_that_are_cut_are_told(
    job: Job, cluster: Cluster, installed: Installed
) -> None:
    await job.create(replicas=1, annotations={"mpijob-elastic/drain-timeout": "2s"})
    with Controller.start(cluster, installed):
        await job.settled(1)
        await job.scale(2)
        await job.settled(2)
        for pod in job.workers(0, 1):
            await asyncio.to_thread(start_rank, cluster, job, pod)
        found = await seen(
            lambda: changes(cluster, job),
            lambda told: told[-1]["trainedAfter"] is not None,
            "a rank was seen in each",
        )
        assert found[-1]["trainedAfter"] >= found[-1]["listedAfter"]
        await job.scale(1)
        await job.settled(1)
        assert [(one["to"], one["ranksCut"]) for one in await changes(cluster, job)] == [
            (2, 0),
            (1, 1),
        ]
    unknown = await asyncio.to_thread(
        ours, cluster.kubeconfig, "history", "trian", "-n", job.namespace
    )
    assert unknown.returncode == 1
    assert f"did you mean {job.name}?" in unknown.stderr
