"""`mpijob-elastic logs` beside a job that waits, runs, is suspended and ends; as users with fewer rights see it."""

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.readers import readers_kubeconfig
from tests.lab.test_cli import NEEDED, ours
from tests.lab.test_cli_watch import ended, said, watching
from tests.lab.waiting import may

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

SPAWN = """\
import os
os.chdir({folder!r})
os.execv("/bin/sh", ["/opt/kube/kubectl", "exec", {pod!r}, "--", "/bin/sh", "-c", {rank!r}])
"""


@pytest.fixture
async def train(cluster: Cluster, client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers that is suspended from the start."""
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/suspend": "true"})
    await job.until(lambda state: state.launcher is not None, "the launcher is there")
    return job


def prints(cluster: Cluster, job: Job, *lines: str) -> None:
    """Let the launcher's main process print these."""
    in_pod(cluster, job, "train-launcher", f"printf '%s\\n' {shlex.join(lines)} > /proc/1/fd/1")


def spawns(cluster: Cluster, job: Job, pod: str, rank: int, folder: str) -> None:
    """Start what looks as the process by which kubexec.sh holds a rank; a shell takes the word exec for its script."""
    holds = f"HOROVOD_HOSTNAME={pod} HOROVOD_RANK={rank} HOROVOD_SECRET_KEY=s3cret python3"
    code = SPAWN.format(folder=folder, pod=pod, rank=holds)
    in_pod(
        cluster, job, "train-launcher", f"{sys.executable} -c {shlex.quote(code)} >/dev/null 2>&1 &"
    )


@pytest.mark.thorough
async def test_a_log_is_followed_from_a_launcher_that_waits_through_the_next_to_the_end_of_the_job(
    cluster: Cluster, train: Job
) -> None:
    here = ("-n", train.namespace)
    done = await asyncio.to_thread(ours, cluster.kubeconfig, "logs", "train", *here)
    waits = "mpijob-elastic: train-launcher has not started: held back by mpijob-elastic/suspended"
    assert (done.returncode, done.stdout, done.stderr.partition(";")[0]) == (1, "", waits)
    done = await asyncio.to_thread(ours, cluster.kubeconfig, "explain", "train", "--no-exec", *here)
    assert done.stdout.count("suspended by") == 1
    assert "launcher-stuck" not in done.stdout
    assert "describe pod" not in done.stdout
    steps = [line.partition("next: ")[2] for line in done.stdout.splitlines()]
    [step] = [step for step in steps if "resume" in step]

    async with watching(cluster, train, command=("logs", "-f")) as process:
        await said(process, "held back by mpijob-elastic/suspended")
        typed = shlex.split(step)[1:]
        await asyncio.to_thread(ours, cluster.kubeconfig, *typed, "--no-wait")
        await train.settled(2)
        prints(cluster, train, "one", "two")
        lines = await said(process, "two")
        await train.annotate(suspend="true")
        lines += await said(process, "held back by mpijob-elastic/suspended")
        await train.annotate(suspend=None)
        await train.settled(2)
        prints(cluster, train, "three")
        lines += await said(process, "three")
        await train.set_status("train-launcher", {"phase": "Succeeded"})
        assert await ended(process) == 0
        assert process.stdout is not None
        lines += (await process.stdout.read()).decode().splitlines()
    assert [line for line in lines if not line.startswith("mpijob-elastic: ")] == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.thorough
async def test_lines_are_told_by_worker_with_the_right_to_exec_and_by_number_without(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    here = ("-n", train.namespace)
    await train.annotate(suspend=None)
    await train.settled(2)
    (tmp_path / "exec").write_text("sleep 300\n")
    spawns(cluster, train, "train-worker-0", 0, str(tmp_path))
    spawns(cluster, train, "train-worker-1", 1, str(tmp_path))
    await asyncio.sleep(1.5)  # starts are known by the second
    prints(cluster, train, "[0]<stdout>:a", "[1]<stdout>:b", "of horovodrun")
    done = await asyncio.to_thread(
        ours, cluster.kubeconfig, "logs", "train", "--worker", "1", *here
    )
    assert (done.returncode, done.stdout) == (0, "train-worker-1: [1]<stdout>:b\n"), done.stderr

    allowed = readers_kubeconfig(cluster, train.namespace, *NEEDED)
    done = await asyncio.to_thread(ours, allowed, "logs", "train", *here)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "your account may not get pods/log in namespace" in done.stderr
    cluster.kubectl("create", "role", "logs", *here, "--verb=get", "--resource=pods/log")
    cluster.kubectl(
        "create",
        "rolebinding",
        "logs",
        *here,
        "--role=logs",
        f"--serviceaccount={train.namespace}:reader",
    )
    may(cluster, "reader", "get", "pods/log", namespace=train.namespace)
    done = await asyncio.to_thread(ours, allowed, "logs", "train", "--rank", "1", *here)
    assert (done.returncode, done.stdout) == (0, "[1]<stdout>:b\n")
    assert re.search("your account may not (get|create) pods/exec in namespace", done.stderr)
    assert done.stderr.endswith("; --rank means the number that Horovod prints\n")
    done = await asyncio.to_thread(ours, allowed, "logs", "train", "--worker", "1", *here)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    report = json.loads(
        (await asyncio.to_thread(ours, allowed, "explain", "train", "-o", "json", *here)).stdout
    )
    assert "missing-ranks" not in [found["cause"] for found in report["job"]]
