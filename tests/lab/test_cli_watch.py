"""`mpijob-elastic watch` beside a job that changes its size and ends."""

import asyncio
import os
import pty
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.typed import program
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]


@pytest.fixture
async def train(client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers at rest."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1s"})
    await job.settled(2)
    return job


@asynccontextmanager
async def watching(
    cluster: Cluster, job: Job, *, stdout: int = PIPE, command: tuple[str, ...] = ("watch",)
) -> AsyncIterator[Process]:
    """Give a process of the command while it runs; what it says as errors is among its output."""
    arguments = (*command, job.name, "-n", job.namespace, "--kubeconfig", str(cluster.kubeconfig))
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    async with program(*arguments, stdout=stdout, env=env) as process:
        yield process


async def said(process: Process, *what: str) -> list[str]:
    """Return the lines until each of `what` was the end of one, in any order."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            lines.append(line.decode().rstrip())
            if all(any(each.endswith(end) for each in lines) for end in what):
                return lines
    raise AssertionError(f"no lines that end with {what} in {lines}")


async def ended(process: Process) -> int:
    """The exit code."""
    async with asyncio.timeout(PATIENCE):
        return await process.wait()


async def test_a_line_for_each_change_until_the_job_succeeds(cluster: Cluster, train: Job) -> None:
    async with watching(cluster, train) as process:
        await said(process, "Running, desired 2, ready 2, published 2, draining 0")
        await train.scale(3)
        # Each kind has a watch of its own, and none waits for another.
        hosts = "→ train-worker-0:1, train-worker-1:1, train-worker-2:1"
        await said(process, "  desired: 2 → 3", "  Role: exec allowed into train-worker-2", hosts)
        await train.set_status("train-launcher", {"phase": "Succeeded"})
        await said(process, "state: Running → Succeeded")
        assert await ended(process) == 0


async def test_ctrl_c_ends_it_without_a_word(cluster: Cluster, train: Job) -> None:
    async with watching(cluster, train) as process:
        await said(process, "draining 0")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert not await process.stdout.read()
        assert await ended(process) == 130


@pytest.mark.thorough
async def test_on_a_terminal_a_page_is_drawn(cluster: Cluster, train: Job) -> None:
    ours, theirs = pty.openpty()
    async with watching(cluster, train, stdout=theirs) as process:
        os.close(theirs)
        page = b""
        async with asyncio.timeout(PATIENCE):
            while b"discover_hosts.sh is up to date" not in page:
                page += await asyncio.to_thread(os.read, ours, 4096)
        await train.set_status("train-launcher", {"phase": "Succeeded"})
        drained = asyncio.create_task(asyncio.to_thread(drain, ours))
        assert await ended(process) == 0
        page += await drained
    assert b"\x1b[?25h" in page  # the cursor is shown again
    assert "state: Running → Succeeded".encode() in page


def drain(descriptor: int) -> bytes:
    """Everything until the other end is closed, which a pseudo-terminal reports as an error."""
    read = b""
    try:
        while chunk := os.read(descriptor, 4096):
            read += chunk
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return read
