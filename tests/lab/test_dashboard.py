"""`mpijob-elastic dashboard` in a real browser, beside a job that changes its size."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.browser import needs_browser, opened
from tests.lab.job import Job
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator"), needs_browser]

ROOT = Path(__file__).parents[2]
# Milliseconds that anything may take to be seen.
expect.set_options(timeout=60_000)


@pytest.fixture
async def train(client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers at rest."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "2s"})
    await job.settled(2)
    return job


@asynccontextmanager
async def dashboard(cluster: Cluster, *arguments: str, folder: Path) -> AsyncIterator[tuple[Process, str]]:
    """Run it, and give the link that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mpijob_elastic", "dashboard", *arguments),
        *("--no-browser", "--kubeconfig", str(cluster.kubeconfig)),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        yield process, line.removeprefix("Open ").strip()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def arguments_of_all() -> str:
    """What everybody on this machine may read of its processes."""
    found = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += file.read_bytes()
        except OSError:
            continue  # it has ended
    return found.decode(errors="replace")


def left(folder: Path) -> list[Path]:
    """The files with a token."""
    return list(folder.glob("*/*.html"))


async def test_from_the_list_to_a_job_that_grows_and_shrinks(cluster: Cluster, train: Job, tmp_path: Path) -> None:
    async with dashboard(cluster, "-n", train.namespace, folder=tmp_path) as (process, link):
        token = link.partition("#token=")[2]
        assert len(token) > 40
        assert token not in arguments_of_all()
        [file] = await asyncio.to_thread(left, tmp_path)
        async with opened(file.as_uri()) as page:
            row = page.get_by_role("row", name="train")
            await expect(row).to_contain_text("2 of 2")
            assert await asyncio.to_thread(left, tmp_path) == []  # the page has the token
            assert token not in page.url
            await page.get_by_role("link", name="train").click()
            await expect(page.get_by_role("heading", level=1)).to_contain_text(f"{train.namespace}/train: Running")
            await train.scale(3)
            await expect(page.locator("tr[data-key=train-worker-2] .now")).to_contain_text("published")
            await expect(page.locator("#hosts")).to_contain_text("train-worker-2:1")
            await train.scale(1)
            await expect(page.locator("tr[data-key=train-worker-2] .now")).to_contain_text("gone")
            await expect(page.locator("#hosts")).not_to_contain_text("train-worker-1")
            await expect(page.locator("#events")).to_contain_text("removed from discover_hosts.sh")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 130
        assert await asyncio.to_thread(left, tmp_path) == []
