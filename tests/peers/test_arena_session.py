"""Arena's own session of an elastic job, line by line, beside ours.

The session is that of docs/training/etjob in Arena v0.15.5, with its charts and definitions; the
jobs are told apart by name. Arena asks, and et-operator acts: tests/peers/et_operator stands in for
that.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.et_operator.facts import SCALE_INS, SCALE_OUTS
from mpijob_elastic.kube.resources import MPI_JOBS
from tests.lab.definitions import ARENA, served
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.typed import Typed
from tests.peers.arena import Arena, page, table
from tests.peers.built import peer
from tests.peers.et_operator import TrainingJob

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("elastic", "operator")]

SIZES = ("--gpus=1", "--workers=3", "--max-workers=4", "--min-workers=2")
WORDS = (*SIZES, "--image=horovod:test", "--working-dir=/examples")
LINE = (
    "horovodrun -np $((${workers}*${gpus})) --min-np $((${minWorkers}*${gpus})) --max-np $((${maxWorkers}*${gpus}))"
    " --host-discovery-script /etc/mpi/discover_hosts.sh python /examples/elastic/tensorflow2_mnist_elastic.py"
)
LINES = LINE.replace(" --", "\n    --")  # as Arena's page has it


@dataclass(frozen=True, kw_only=True)
class Session:
    """Two jobs, `theirs` of Arena and `train` of ours."""

    arena: Arena
    user: Typed
    theirs: TrainingJob
    train: Job
    cluster: Cluster

    async def ours(self, *words: str, code: int = 0) -> str:
        """Run our command, with that exit code; return what it prints but warnings of the webhook.

        The command of several lines, which Arena does not take, is one that we cannot read.
        """
        found, printed = await self.user.run(*words)
        assert found == code, printed
        lines = printed.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("Warning: "))

    def arenas(self, *words: str, code: int = 0) -> str:
        """Run Arena's command, with that exit code."""
        found, printed = self.arena.run(*words)
        assert found == code, printed
        return printed

    async def report(self) -> dict[str, Any]:
        """Return what `get` says of ours."""
        found: dict[str, Any] = json.loads(await self.ours("get", "train", "-o", "json"))
        return found


@pytest.fixture
async def session(cluster: Cluster, job: Job, tmp_path: Path) -> AsyncIterator[Session]:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    arena = Arena(
        program=peer("arena"), home=tmp_path, kubeconfig=cluster.kubeconfig, namespace=job.namespace
    )
    theirs = TrainingJob(cluster=cluster, namespace=job.namespace, name="theirs")
    user = Typed(cluster.kubeconfig, job.namespace)
    with served(cluster, ARENA, tmp_path) as source:
        arena.install(cluster, source / "charts")
        yield Session(arena=arena, user=user, theirs=theirs, train=job, cluster=cluster)


async def test_line_by_line(session: Session) -> None:
    await submit(session)
    await listed_and_shown(session)
    await logs(session)
    await attach(session)
    await top(session)
    await scale_out(session)
    await scale_in(session)
    await prune_and_delete(session)


async def submit(session: Session) -> None:
    printed = session.arenas("submit", "etjob", "--name=theirs", *WORDS, LINES, code=1)
    assert "YAML parse error on etjob/templates/etjob.yaml" in printed, (
        "it takes no command of several lines"
    )
    printed = session.arenas("submit", "etjob", "--name=theirs", *WORDS, LINE)
    assert printed.splitlines()[-1] == "trainingjob.kai.alibabacloud.com/theirs created"
    printed = await session.ours("submit", "--name=train", *WORDS, LINES)
    assert printed.startswith("MPIJob train created.")

    theirs = session.theirs.read()["spec"]
    ours = json.loads(
        await session.train.client.get(MPI_JOBS.path(session.train.namespace, "train"))
    )
    launchers, workers = theirs["etReplicaSpecs"].values()
    launcher, worker = ours["spec"]["mpiReplicaSpecs"].values()
    assert container(launchers) == container(launcher)
    assert container(workers) == container(worker)
    assert (workers["replicas"], theirs["cleanPodPolicy"]) == (
        worker["replicas"],
        ours["spec"]["cleanPodPolicy"],
    )
    annotations = ours["metadata"]["annotations"]
    assert [annotations[f"mpijob-elastic/{bound}-replicas"] for bound in ("min", "max")] == [
        "2",
        "4",
    ]
    assert (workers["minReplicas"], workers["maxReplicas"]) == (2, 4)

    again = session.arenas("submit", "etjob", "--name=theirs", *WORDS, LINE, code=1)
    assert "the job theirs is already exist, please delete it first" in again
    assert "there is an MPIJob" in await session.ours(
        "submit", "--name=train", *WORDS, LINE, code=1
    )


def container(replica: dict[str, Any]) -> dict[str, Any]:
    """Return what a user says of a container."""
    [found] = replica["template"]["spec"]["containers"]
    env = {one["name"]: one["value"] for one in found["env"]}
    command = [" ".join(word.split()) for word in found.get("command", ())]
    return {
        "env": env,
        "command": command,
        **{key: found.get(key) for key in ("image", "workingDir", "resources")},
    }


async def listed_and_shown(session: Session) -> None:
    """Compare `list` and `get`: Arena says that a job waits until the launcher runs."""
    assert session.arena.row()["STATUS"] == "PENDING"
    session.theirs.start()
    await session.train.settled(3)
    row, [ours] = session.arena.row(), table(await session.ours("list", "-o", "wide"))
    assert (row["STATUS"], row["TRAINER"], ours["STATE"]) == ("RUNNING", "ETJOB", "Running")
    assert (
        (row["GPU(Requested)"], row["GPU(Allocated)"])
        == (ours["GPUS"], ours["GPUS-HELD"])
        == ("3", "3")
    )
    facts, pods = session.arena.page("theirs", "etjob")
    assert [*facts] == [
        "Name",
        "Status",
        "Namespace",
        "Priority",
        "Trainer",
        "Duration",
        "CreateTime",
        "EndTime",
    ]
    assert [*pods[0]] == ["NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE"]
    report = await session.report()
    assert [pod["NAME"].removeprefix("theirs-") for pod in pods] == [
        one["name"].removeprefix("train-") for one in (report["launcher"], *report["workers"])
    ]
    events = session.arenas("get", "theirs", "--events").partition("Events:")[2]
    assert "pod/theirs-worker-0" in events
    assert "[Scheduled]" in events


async def logs(session: Session) -> None:
    for job in (session.theirs.name, session.train.name):
        at = Job(client=session.train.client, namespace=session.train.namespace, name=job)
        in_pod(session.cluster, at, f"{job}-launcher", "printf 'one\\ntwo\\n' > /proc/1/fd/1")
    await both_logs(session, "two")


async def both_logs(session: Session, last: str) -> None:
    """See the last line in both logs; with times, because the lab's nodes always add them."""
    await asyncio.sleep(1)
    words = ("--tail", "1", "--timestamps")
    [theirs] = session.arenas("logs", "theirs", *words).splitlines()
    [ours] = (await session.ours("logs", "train", *words)).splitlines()
    assert theirs.partition(" ")[2] == ours.partition(" ")[2] == last


async def attach(session: Session) -> None:
    """Both run a command in the launcher."""
    command = ("sh", "-c", "echo hello > /proc/1/fd/1")
    session.arenas("attach", "theirs", "--", *command)
    await session.ours("attach", "train", "--", *command)
    await both_logs(session, "hello")


async def top(session: Session) -> None:
    """Compare what is there without Prometheus and without metrics-server."""
    printed = session.arenas("top", "job", "theirs")
    facts, pods = page(printed)
    assert [*facts][:3] == ["Name", "Status", "Namespace"]
    assert (
        {pod["GPU(DutyCycle)"] for pod in pods}
        == {pod["GPU_MEMORY(Used/Total)"] for pod in pods}
        == {"N/A"}
    )
    report = await session.report()
    assert f"Allocated/Requested GPUs of Job: {report['gpusHeld']}/{report['gpus']}" in printed
    assert session.arenas("top", "job").splitlines()[-1].endswith("GPUs of Training Jobs: 3/3")
    gpus = session.arenas("get", "theirs", "--gpus").partition("GPUs:\n")[2]
    assert [*table(gpus.partition("\n\n")[0])[0]][3:] == [
        "GPU(IndexId)",
        "GPU(DutyCycle)",
        "GPU Memory(Used/Total)",
    ]
    assert "metrics-server is not installed" in await session.ours("top", "train", code=1)


async def scale_out(session: Session) -> None:
    """Arena creates a request and ends; ours ends when the worker is there."""
    words = ("scaleout", "etjob", "--name=theirs", "--timeout=1m")
    assert "exceeds the max-workers" in session.arenas(*words, "--count=2", code=1)
    assert "(4); use 2 to 4" in await session.ours("scaleout", "train", "--count=2", code=1)
    assert session.arenas(*words, "--count=1").startswith("scaleout.kai.alibabacloud.com/theirs-")
    asked = session.theirs.asked(SCALE_OUTS)
    assert asked == {
        "selector": {"name": "theirs"},
        "script": "",
        "timeout": 60,
        "toAdd": {"count": 1},
    }
    session.theirs.say("Scaling")
    printed = await session.ours("scaleout", "train", "--count=1", "--timeout=1m", "--no-exec")
    assert printed.splitlines()[0] == "train: 3 → 4 workers"
    assert printed.splitlines()[-1].startswith("train has 4 workers")

    row = session.arena.row()
    assert (row["STATUS"], row["GPU(Allocated)"]) == ("SCALING", "N/A"), (
        "of a job that trains on three GPUs"
    )
    session.theirs.create("worker", "theirs-worker-3")
    session.theirs.say("Running")
    row, report = session.arena.row(), await session.report()
    assert (row["GPU(Requested)"], row["GPU(Allocated)"]) == ("3", "4"), (
        "it asks for what it asked for at first"
    )
    assert (report["gpus"], report["gpusHeld"]) == (4, 4)
    assert len(session.arena.page("theirs", "etjob")[1]) == 1 + len(report["workers"]) == 5


async def scale_in(session: Session) -> None:
    words = ("scalein", "etjob", "--name=theirs", "--timeout=1m")
    assert "less than the min-workers" in session.arenas(*words, "--count=3", code=1)
    assert "(2); use 2 to 4" in await session.ours("scalein", "train", "--count=3", code=1)
    assert session.arenas(*words, "--count=1").startswith("scalein.kai.alibabacloud.com/theirs-")
    asked = session.theirs.asked(SCALE_INS)
    assert asked == {
        "selector": {"name": "theirs"},
        "script": "",
        "timeout": 60,
        "toDelete": {"count": 1},
    }
    printed = await session.ours("scalein", "train", "--count=1", "--timeout=1m")
    assert printed.splitlines()[-1] == "train has 3 workers; removed: 1."
    session.theirs.kubectl("delete", "pod", "theirs-worker-3", "--wait")
    workers = (await session.report())["workers"]
    assert len(session.arena.page("theirs", "etjob")[1]) == 1 + len(workers) == 4


async def prune_and_delete(session: Session) -> None:
    """Arena's prune deletes all that does not say RUNNING, also what scales; ours what has finished."""
    session.theirs.say("Scaling")
    assert session.arenas("prune", "--since=1s").startswith("Delete etjob theirs with Age ")
    assert table(session.arenas("list")) == []
    assert (await session.ours("prune", "--since=1s", "--yes")).startswith("No finished MPIJobs")

    assert "does not exist,skip to delete it" in session.arenas("delete", "theirs")
    session.arenas("submit", "etjob", "--name=theirs", *WORDS, LINE)
    session.theirs.start()
    await an_end_stays_where_it_was(session)
    assert (
        session.arenas("delete", "theirs")
        .splitlines()[-1]
        .endswith('theirs has been deleted successfully"')
    )
    assert (await session.ours("delete", "train", "--yes")).endswith("/train deleted\n")
    assert "Not found training job theirs" in session.arenas("get", "theirs", code=1)
    assert "no MPIJob train" in await session.ours("get", "train", code=1)


async def an_end_stays_where_it_was(session: Session) -> None:
    """Of a job that succeeded Arena shows the time of the look as its end."""
    session.theirs.say("Succeeded")
    await session.train.set_status("train-launcher", {"phase": "Succeeded"})
    await session.train.until(lambda state: "Succeeded" in state.conditions, "its end")
    (first, _), ended = session.arena.page("theirs", "etjob"), (await session.report())["ended"]
    await asyncio.sleep(2)
    later, _ = session.arena.page("theirs", "etjob")
    assert (first["Status"], (await session.report())["state"]) == ("SUCCEEDED", "Succeeded")
    assert first["EndTime"] < later["EndTime"]
    assert ended == (await session.report())["ended"]
