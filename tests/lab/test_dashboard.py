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
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter
from tests.browser import needs_browser, opened
from tests.lab.job import Job
from tests.lab.ranks import start_rank
from tests.lab.readers import readers_kubeconfig
from tests.lab.suspended import held
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator"), needs_browser]

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def train(client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers at rest."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={names.DRAIN_TIMEOUT: "2s", names.MAX_REPLICAS: "4"})
    await job.settled(2)
    return job


@asynccontextmanager
async def dashboard(
    cluster: Cluster, *arguments: str, folder: Path, kubeconfig: Path | None = None
) -> AsyncIterator[tuple[Process, str]]:
    """Run it, and give the link that it prints. kubeconfig: the administrator's if None."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mpijob_elastic", "dashboard", *arguments),
        *("--no-browser", "--kubeconfig", str(kubeconfig or cluster.kubeconfig)),
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


async def test_from_the_list_to_a_job_that_grows_and_shrinks(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
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
            await expect(page.get_by_role("heading", level=1)).to_contain_text(
                f"{train.namespace}/train: Running"
            )
            await train.scale(3)
            await expect(page.locator("tr[data-key=train-worker-2] .now")).to_contain_text(
                "published"
            )
            await expect(page.locator("#hosts")).to_contain_text("train-worker-2:1")
            await train.scale(1)
            await expect(page.locator("tr[data-key=train-worker-2] .now")).to_contain_text("gone")
            await expect(page.locator("#hosts")).not_to_contain_text("train-worker-1")
            await expect(page.locator("#events")).to_contain_text("removed from discover_hosts.sh")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 130
        assert await asyncio.to_thread(left, tmp_path) == []


@pytest.mark.thorough
async def test_a_job_is_scaled_suspended_and_resumed_by_its_buttons(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    async with (
        dashboard(cluster, "train", "-n", train.namespace, folder=tmp_path) as (_, link),
        opened(link) as page,
    ):
        bar, dialog = page.get_by_role("region", name="Change the job"), page.get_by_role("dialog")
        number, said = bar.get_by_role("spinbutton", name="Workers"), bar.get_by_role("status")

        async def trains(*new: int) -> None:
            """See the workers listed, start ranks in new pods, and see the end."""
            await expect(said).to_contain_text("host list 3 of 3")
            for index in new if cluster.exec_offered else ():
                await asyncio.to_thread(start_rank, cluster, train, names.worker("train", index))
            await expect(said).to_contain_text("train has 3 workers")
            await train.settled(3)

        async def press(name: str, words: str) -> None:
            await bar.get_by_role("button", name=name, exact=True).click()
            await expect(dialog).to_contain_text(words)
            await dialog.get_by_role("button", name=name, exact=True).click()

        await number.fill("9")
        await page.keyboard.press("Enter")
        assert await number.evaluate("field => field.validity.rangeOverflow")
        await expect(dialog).to_be_hidden()

        await number.fill("3")
        await page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("train: 2 → 3 workers")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await trains(0, 1, 2)
        await press("Suspend", "train is being suspended: its workers drain")
        await expect(said).to_contain_text("train is suspended, and nothing of it runs.")
        await train.until(lambda state: held(state, 3), "gated pods")
        await press("Resume", "train is being resumed")
        await trains(0, 1, 2)

        await bar.get_by_role("combobox", name="Worker").select_option("train-worker-1")
        await press("Park", "train: 3 → 2 workers; parked: train-worker-1")
        await expect(said).to_contain_text("train has 2 workers; removed: 1.")
        await expect(page.locator("#hosts")).not_to_contain_text("train-worker-1")
        await press("Unpark", "train: 2 → 3 workers; back: train-worker-1")
        await trains(1)


@pytest.mark.thorough
async def test_a_reader_sees_the_job_and_no_button(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    reader = readers_kubeconfig(cluster, train.namespace, "mpijobs", "pods", "configmaps")
    running = dashboard(cluster, "train", "-n", train.namespace, folder=tmp_path, kubeconfig=reader)
    async with running as (_, link), opened(link) as page:
        await expect(page.locator(".facts")).to_contain_text("2 asked for")
        await expect(page.locator("#live")).to_have_text("Live")
        heading = page.get_by_role("heading", level=1)
        await expect(heading).to_contain_text(
            f"your account may not exec into pods of namespace {train.namespace} (pods/exec)"
        )
        assert "403" not in await heading.inner_text()
        assert await page.get_by_role("region", name="Change the job").count() == 0
