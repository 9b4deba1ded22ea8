"""What `arena list` and `arena get` show of a job, field by field, beside `mpijob-elastic list` and `get`.

Arena v0.15.5 reads MPIJobs of v1alpha1, whose launcher is a Job. So that it sees the same pods as
we do, the definition also serves that version, the pods have its labels, and a Job stands in for
that launcher.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import LINGERS, Job
from tests.lab.typed import Typed
from tests.lab.upgrades import CRD
from tests.lab.waiting import kubectl_until_done
from tests.peers.arena import Arena, Rows, named, table
from tests.peers.built import peer
from tests.peers.gpus import on_gpu, priority

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("elastic", "operator")]

ARENA = {"app": "mpijob", "release": "train"}
LAUNCHER_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train-launcher", "labels": {"mpi_job_name": "train"}},
    "spec": {
        "suspend": True,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "none", "image": "none"}]}
        },
    },
}
MINUTE = 60.0  # seconds; ample for a pod to be drained


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What our commands show of the job: the row of the list, the facts and rows of the page, and the JSON."""

    row: dict[str, str]
    facts: dict[str, str]
    workers: Rows
    report: dict[str, Any]

    @classmethod
    async def by(cls, user: Typed) -> "Shown":
        [row] = table((await user.run("list", "-o", "wide"))[1])
        page = (await user.run("get", "train"))[1]
        facts, workers, *_ = page.split("\n\n")
        report = json.loads((await user.run("get", "train", "-o", "json"))[1])
        return cls(row=row, facts=named(facts), workers=table(workers), report=report)


@pytest.fixture
def arena(cluster: Cluster, job: Job, tmp_path: Path) -> Arena:
    return Arena(
        program=peer("arena"), home=tmp_path, kubeconfig=cluster.kubeconfig, namespace=job.namespace
    )


@pytest.fixture
def user(cluster: Cluster, job: Job) -> Typed:
    return Typed(cluster.kubeconfig, job.namespace)


@pytest.fixture
async def urgent(client: ApiWriter, pool: str) -> AsyncIterator[str]:
    """A class of priority."""
    async with priority(client, pool, takes=False) as spec:
        yield spec["priorityClassName"]


@contextmanager
def v1alpha1_served(cluster: Cluster) -> Iterator[None]:
    """Serve the version that Arena reads as long as the block lasts."""
    [v1] = versions = json.loads(cluster.kubectl("get", CRD, "-o", "json"))["spec"]["versions"]
    define(cluster, [v1, {**v1, "name": "v1alpha1", "storage": False}])
    kubectl_until_done(cluster, "get", "mpijobs.v1alpha1.kubeflow.org", patience=MINUTE)
    yield
    define(cluster, versions)


def define(cluster: Cluster, versions: list[Any]) -> None:
    patch = json.dumps({"spec": {"versions": versions}})
    cluster.kubectl("patch", CRD, "--type=merge", f"--patch={patch}")


def known_to_arena(cluster: Cluster, job: Job) -> None:
    """Give the job's launcher what that of v1alpha1 has."""
    here = f"--namespace={job.namespace}"
    cluster.kubectl("label", "pod", "train-launcher", "mpi_role_type=launcher", here)
    cluster.kubectl("create", "-f", "-", here, stdin=json.dumps(LAUNCHER_JOB))


async def test_all_that_arena_shows_is_there(
    arena: Arena, user: Typed, cluster: Cluster, job: Job, pool: str, urgent: str
) -> None:
    worker = on_gpu(pool, priorityClassName=urgent)
    labels = {**ARENA, "group_name": "kubeflow.org"}
    quick = {"mpijob-elastic/drain-timeout": "2s"}
    await job.create(
        replicas=2, worker_spec=worker, labels=labels, job_labels=ARENA, annotations=quick
    )
    await job.settled(2)
    assert table(arena.run("list")[1]) == [], "it does not see jobs of v1"
    assert arena.run("get", "train", "--type=mpijob")[0] == 1
    with v1alpha1_served(cluster):
        assert arena.row()["STATUS"] == "PENDING", (
            "of a job of v1 that runs, because it has no launcher Job"
        )
        known_to_arena(cluster, job)
        await same_fields(arena, user, cluster, urgent)
        await job.scale(3)
        await job.settled(3)
        await one_age_for_all(arena, user)
        await a_job_that_grows_is_pending(arena, user, job)
        await job.scale(3)
        await job.settled(3)
        await dead_pods_are_counted(arena, user, cluster, job)


async def same_fields(arena: Arena, user: Typed, cluster: Cluster, urgent: str) -> None:
    """Compare all that Arena shows of a job at rest."""
    before = await Shown.by(user)
    started = time.time()
    row, (facts, pods), data = (
        arena.row(),
        arena.page(),
        json.loads(arena.run("get", "train", "--output=json")[1]),
    )
    created = datetime.fromisoformat(before.report["created"]).timestamp()
    assert (
        int(started - created) <= int(data["duration"].removesuffix("s")) <= time.time() - created
    )

    assert row.pop("DURATION")
    launcher_node = json.loads(cluster.kubectl("get", "node", before.row["NODE"], "-o", "json"))
    [address] = [
        one["address"]
        for one in launcher_node["status"]["addresses"]
        if one["type"] == "InternalIP"
    ]
    assert row == {
        "NAME": before.row["NAME"],
        "STATUS": before.row["STATE"].upper(),
        "TRAINER": "MPIJOB",
        "GPU(Requested)": before.row["GPUS"],
        "GPU(Allocated)": before.row["GPUS-HELD"],
        "NODE": address,
    }

    assert facts.pop("Duration")
    assert facts == {
        "Name": before.report["name"],
        "Status": before.facts["State"].partition(",")[0].upper(),
        "Namespace": before.facts["Job"].partition("/")[0],
        "Priority": "N/A",  # Arena reads it where only v1alpha1 has it
        "Trainer": "MPIJOB",
        "CreateTime": before.facts["Created"].replace("T", " ").removesuffix("Z"),
        "EndTime": "",
    }
    assert before.facts["Priority"] == urgent
    assert "Ended" not in before.facts

    launcher, *workers = pods
    assert {one.pop("AGE") for one in pods}
    assert launcher == {
        "NAME": before.report["launcher"]["name"],
        "STATUS": before.report["launcher"]["phase"],
        "IS_CHIEF": "true",
        "GPU(Requested)": "0",
        "NODE": before.row["NODE"],
    }
    name, phase, *_ = before.facts["Launcher"].split(", ")
    assert (name, phase) == (launcher["NAME"], f"{launcher['STATUS']} on {launcher['NODE']}")
    each = int(before.row["GPUS"]) // len(before.workers)
    assert workers == [
        {
            "NAME": one["WORKER"],
            "STATUS": one["PHASE"],
            "IS_CHIEF": "false",
            "GPU(Requested)": str(each),
            "NODE": one["NODE"],
        }
        for one in before.workers
    ]


async def one_age_for_all(arena: Arena, user: Typed) -> None:
    """Of a worker that came later Arena shows the age of the job."""
    _, pods = arena.page()
    ages = [worker["created"] for worker in (await Shown.by(user)).report["workers"]]
    assert len({pod["AGE"] for pod in pods}) == 1
    assert ages[0] < ages[2]


async def a_job_that_grows_is_pending(arena: Arena, user: Typed, job: Job) -> None:
    """A job that trains on four workers and wants a fifth is no job that waits."""
    await job.scale(5)
    await job.until(
        lambda state: len(state.workers) == 5 and len(state.hosts) == 4, "four of five workers"
    )
    row, ours = arena.row(), (await Shown.by(user)).row
    assert (row["STATUS"], ours["STATE"], ours["PHASE"]) == ("PENDING", "Running", "Scaling")
    assert (
        (row["GPU(Requested)"], row["GPU(Allocated)"])
        == (ours["GPUS"], ours["GPUS-HELD"])
        == ("5", "4")
    )


async def dead_pods_are_counted(arena: Arena, user: Typed, cluster: Cluster, job: Job) -> None:
    """Of three workers one is on its way out: the job wants two, and the GPU of the third is not free yet."""
    await job.annotate_pod("train-worker-2", {LINGERS: ""})
    await job.scale(2)
    await job.until(
        lambda state: len(state.running) == 2 and len(state.workers) == 3, "a worker on its way out"
    )
    row, ours = arena.row(), await Shown.by(user)
    assert (row["GPU(Requested)"], row["GPU(Allocated)"]) == ("3", "2")
    assert (ours.row["GPUS"], ours.row["GPUS-HELD"]) == ("2", "3")
    assert arena.page()[1][-1]["STATUS"] == ours.workers[-1]["PHASE"] == "Terminating"
    force = ("--force", "--grace-period=0", f"--namespace={job.namespace}")
    await asyncio.to_thread(cluster.kubectl, "delete", "pod", "train-worker-2", *force)
