"""`mpijob-elastic submit`, `suspend`, `resume`, `delete` and `prune` beside the real operator."""

import asyncio
import os
import pty
import signal
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import MPIRUN, Job
from tests.lab.launchers import UNMUTATED, label
from tests.lab.suspended import held
from tests.lab.typed import Typed, said
from tests.lab.waiting import PATIENCE, until

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

IMAGE = ("submit", "--name=train", "--image=horovod:test")


@pytest.fixture
def user(cluster: Cluster, job: Job) -> Typed:
    return Typed(cluster.kubeconfig, job.namespace)


async def exists(job: Job) -> bool:
    try:
        await job.client.get(MPI_JOBS.path(job.namespace, job.name))
    except errors.NotFound:
        return False
    return True


def sleeps(pid: int) -> bool:
    """Tell whether the main thread of a process waits for something, such as an answer."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


async def test_a_day_from_submit_to_delete(user: Typed, job: Job) -> None:
    here = f"train -n {job.namespace}"
    options = ("--workers=2", "--max-workers=4", "--np=1", "--sizes=1,2,4")
    code, printed = await user.run(*IMAGE, *options, "--", "python", "train.py")
    assert (code, printed.splitlines()) == (
        0,
        [
            "MPIJob train created. Follow it, and see what its workers wait for:",
            f"  mpijob-elastic watch {here}",
            f"  mpijob-elastic explain {here}",
        ],
    )
    await job.settled(2)
    assert await user.refused(*IMAGE, "--", "true") == (
        f"there is an MPIJob {job.namespace}/train: `mpijob-elastic watch {here}` shows it. Choose "
        f"another name, or, to end that job, `mpijob-elastic delete {here}`"
    )
    code, printed = await user.run("suspend", "train")
    said = "train is being suspended: its workers drain, and training ends until it is resumed"
    assert (code, printed.splitlines()[0]) == (0, said)
    assert printed.splitlines()[-1] == (
        f"train is suspended, and nothing of it runs. `mpijob-elastic resume {here}` starts it again."
    )
    assert held(await job.until(lambda state: held(state, 2), "gated pods"), 2)

    code, printed = await user.run("resume", "train", "--no-exec")
    assert (code, printed.splitlines()[0]) == (0, "train is being resumed")
    assert printed.splitlines()[-1].startswith("train has 2 workers, all listed.")
    await job.settled(2)
    code, printed = await user.run("resume", "train", "--no-exec")
    assert (code, printed.splitlines()[0]) == (0, "train is not suspended")

    code, printed = await user.run("delete", "train")
    assert (code, printed) == (
        2,
        "mpijob-elastic: there is no terminal to ask on, so nothing was deleted; give --yes\n",
    )
    assert await exists(job)
    assert await user.run("delete", "mpijob/train", "--yes") == (
        0,
        f"MPIJob {job.namespace}/train deleted\n",
    )
    assert not await exists(job)


@pytest.mark.parametrize(
    ("answer", "code", "last"),
    [
        ("y", 0, "deleted"),
        ("n", 1, "Not confirmed: nothing was deleted."),
        ("", 130, "Interrupted: nothing was deleted."),
    ],
)
@pytest.mark.thorough
async def test_delete_asks_on_a_terminal_before_training_ends(
    user: Typed, job: Job, answer: str, code: int, last: str
) -> None:
    await job.create(replicas=1)
    await job.settled(1)
    ours, theirs = pty.openpty()
    try:
        async with user.running("delete", "train", terminal=theirs) as process:
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE):
                asked = (await process.stdout.readuntil(b"[y/N]: ")).decode()
            if answer:
                os.write(ours, f"{answer}\n".encode())
            else:
                until(
                    lambda: sleeps(process.pid)
                )  # nobody answers in the very moment in which it begins to read
                process.send_signal(signal.SIGINT)
            printed = asked + await said(process, last)
            assert "train trains on 1 worker. Delete it? [y/N]: " in printed
            assert await process.wait() == code
    finally:
        os.close(ours)
        os.close(theirs)
    assert await exists(job) == (code != 0)


@pytest.mark.thorough
async def test_prune_deletes_finished_jobs_only(user: Typed, job: Job, client: ApiWriter) -> None:
    assert await user.run("prune") == (0, f"No finished MPIJobs in namespace {job.namespace}.\n")
    over = Job(client=client, namespace=job.namespace, name="over")
    for each in (job, over):
        await each.create(replicas=1)
        await each.settled(1)
    await over.set_status("over-launcher", {"phase": "Succeeded"})
    await over.until(lambda state: "Succeeded" in state.conditions, "its end")
    await over.at_rest()  # a job that changes while it is deleted stays

    code, printed = await user.run("prune", "--dry-run")
    assert (code, printed.splitlines()[-1]) == (0, "Dry run: nothing was deleted.")
    assert [line.split()[:3] for line in printed.splitlines()[1:-1]] == [
        [job.namespace, "over", "Succeeded"]
    ]
    assert (await user.run("prune"))[0] == 2
    code, printed = await user.run("prune", "--yes")
    assert (code, printed.splitlines()[-1]) == (0, f"MPIJob {job.namespace}/over deleted")
    assert (await exists(job), await exists(over)) == (True, False)


@pytest.mark.thorough
async def test_suspend_is_refused_where_it_would_wait_for_ever(
    user: Typed, job: Job, client: ApiWriter
) -> None:
    plain = Job(client=client, namespace=job.namespace, name="plain")
    await plain.create(replicas=1, command=MPIRUN)
    await job.create(replicas=1)
    await job.settled(1)
    assert "plain is not elastic" in await user.refused("suspend", "plain")

    await label(client, job.namespace, UNMUTATED)
    why = await user.refused("suspend", "train")
    assert f"no webhook in namespace {job.namespace} knows mpijob-elastic/suspend" in why
    assert "suspend" not in str((await job.state()).notices)
