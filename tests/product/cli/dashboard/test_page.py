"""The page in a real browser, beside an API server in memory."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from lab.ports import free_ports
from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, EVENTS, MPI_JOBS, PODS
from mpijob_elastic.model.history import Change, merged
from tests.browser import needs_browser, opened
from tests.doubles.api import TinyApi, refused
from tests.product.cli import worlds
from tests.product.cli.served import TOKEN, put_job, served, store, strangers_page

pytestmark = [needs_browser, pytest.mark.thorough]

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>&amp;"


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with TinyApi(selects=True) as tiny:
        tiny.put("/version", {})
        yield tiny


@pytest.fixture
async def page(api: TinyApi) -> AsyncIterator[Page]:
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        yield page


def row(page: Page, name: str) -> Any:
    return page.locator(f'tr[data-key="ml/{name}"]')


async def test_what_is_wrong_comes_first(api: TinyApi, page: Page) -> None:
    await expect(page.locator(".empty")).to_contain_text("There are no MPIJobs here")
    put_job(api, "a-fine")
    put_job(api, "z-short", size=3, ready=1)
    failed = worlds.mpi_job(name="m-failed", namespace="ml", conditions=["Failed"])
    store(api, MPI_JOBS, failed)
    await expect(page.locator("tbody a")).to_have_text(["ml/m-failed", "ml/z-short", "ml/a-fine"])
    await expect(row(page, "z-short")).to_contain_text("1 of 3")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("3 jobs: ")
    api.remove(MPI_JOBS.path("ml", "m-failed"))
    await expect(page.locator("tbody a")).to_have_text(["ml/z-short", "ml/a-fine"])


async def test_two_hundred_jobs_of_fifty_workers_change_live(api: TinyApi, page: Page) -> None:
    for number in range(200):
        put_job(api, f"job-{number:03}", size=50)
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "200 jobs: 200 running as asked."
    )
    for number in range(0, 200, 10):
        store(api, MPI_JOBS, worlds.mpi_job(name=f"job-{number:03}", namespace="ml", replicas=60))
    await expect(page.locator("tr", has_text="50 of 60")).to_have_count(20)
    await page.get_by_role("searchbox").fill("job-19")
    await expect(page.locator("tbody a")).to_have_count(10)
    await page.keyboard.press("Escape")
    await expect(page.locator("tbody a")).to_have_count(200)


async def test_markup_of_others_is_text(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=2, ready=1)
    path = PODS.path("ml", "train-worker-1")
    pending = api.objects[path]
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": HOSTILE,
    }
    pending["status"]["conditions"].append(condition)
    pending["spec"]["nodeName"] = ""
    api.put(path, pending)
    ready = api.objects[PODS.path("ml", "train-worker-0")]
    ready["spec"]["nodeName"] = HOSTILE
    api.put(PODS.path("ml", "train-worker-0"), ready)
    about = {
        "involvedObject": {
            "kind": "MPIJob",
            "name": "train",
            "uid": api.objects[MPI_JOBS.path("ml", "train")]["metadata"]["uid"],
        },
        "reason": HOSTILE,
        "type": "Warning",
        "message": HOSTILE,
    }
    await api.create(EVENTS.path("ml"), "e1", **about, lastTimestamp="2026-01-01T00:00:00Z")

    async def log(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"\x1b[31m{HOSTILE}\x1b[0m\n")

    api.streams["/log"] = log
    await expect(row(page, "train")).to_contain_text(HOSTILE)
    await page.get_by_role("link", name="train").click()
    for part in (".findings", "tr[data-key=train-worker-0]", "#events", "#log", ".former"):
        await expect(page.locator(part)).to_contain_text(HOSTILE)
    assert (
        await page.locator("main img").count() + await page.get_by_text("bold", exact=True).count()
        == 0
    )


async def test_the_history_of_a_job_is_shown_with_the_newest_first(
    api: TinyApi, page: Page
) -> None:
    put_job(api, "train")
    path = CONFIG_MAPS.path("ml", "train-config")
    config = api.objects[path]
    first = Change(at=1.7e9, cause="user", by=HOSTILE, before=1, after=3, listed=2.4, trained=9.0)
    changes = (first, Change(at=1.7e9 + 60, cause="node", before=3, after=2, cut=1))
    config["metadata"]["annotations"][names.HISTORY] = merged("", changes)
    api.put(path, config)
    await page.get_by_role("link", name="train").click()
    shown = page.get_by_role("region", name="History").get_by_role("listitem")
    await expect(shown).to_contain_text(
        ["3→2 node1 rank cut", f"1→3 user, by {HOSTILE}listed after 2 s; all trained"]
    )


async def test_a_lost_server_is_told_and_comes_back_by_itself(api: TinyApi) -> None:
    put_job(api, "train")
    [port] = free_ports(1)
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        address = await first.enter_async_context(served(api, port))
        page = await stack.enter_async_context(opened(f"{address}/#token={TOKEN}"))
        await expect(row(page, "train")).to_contain_text("2 of 2")
        await first.aclose()
        await expect(page.get_by_role("alert")).to_contain_text(
            "The server of this page has stopped or cannot be reached"
        )
        await expect(page.locator("#live")).to_have_text("Not live")
        api.remove(MPI_JOBS.path("ml", "train"))
        put_job(api, "other")
        async with served(api, port):
            await expect(page.locator("#live")).to_have_text("Live")
            await expect(page.locator("tbody a")).to_have_text(["ml/other"])


async def test_a_lost_cluster_is_told_and_comes_back_by_itself(api: TinyApi, page: Page) -> None:
    put_job(api, "train")
    await expect(page.locator("#live")).to_have_text("Live")
    api.remove("/version")
    await expect(page.get_by_role("alert")).to_contain_text("/version not found")
    await expect(page.locator("#live")).to_have_text("Not live")
    await expect(row(page, "train")).to_contain_text("2 of 2")  # what was known stays
    api.put("/version", {})
    await expect(page.locator("#live")).to_have_text("Live")
    await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_missing_right_is_told(api: TinyApi) -> None:
    def refuse(sent: Any) -> None:
        if "/mpijobs" in sent.path:
            raise refused(403, "Forbidden", "mpijobs is forbidden: you may not")

    api.hook = refuse
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        await expect(page.get_by_role("alert")).to_contain_text("mpijobs is forbidden: you may not")
        await expect(page.locator("#live")).to_have_text("Not shown")


async def test_a_keyboard_is_enough(api: TinyApi, page: Page) -> None:
    for name in ("one", "two", "train"):
        put_job(api, name)
    await expect(page.get_by_role("heading", level=1)).to_have_text("3 jobs: 3 running as asked.")
    await page.keyboard.press("/")
    await page.keyboard.type("t")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("link", name="ml/two")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("ml/train")
    await page.get_by_role("radio", name="2 h").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".caption")).to_contain_text(
        "train-worker-1: published as train-worker-1 on node-1 since"
    )
    await page.keyboard.press("ArrowLeft")
    await expect(page.locator(".caption")).to_contain_text("train-worker-1: ready on node-1")


async def test_a_job_that_moves_to_another_group_keeps_the_focus(api: TinyApi, page: Page) -> None:
    for name in ("one", "two"):
        put_job(api, name)
    await expect(page.get_by_role("heading", level=1)).to_have_text("2 jobs: 2 running as asked.")
    await page.get_by_role("link", name="ml/two").focus()
    for size, order in ((4, ["ml/two", "ml/one"]), (2, ["ml/one", "ml/two"])):
        store(api, MPI_JOBS, worlds.mpi_job(name="two", namespace="ml", replicas=size))
        await expect(page.locator("tbody a")).to_have_text(order)
        await expect(page.get_by_role("link", name="ml/two")).to_be_focused()


async def test_a_narrow_screen_shows_a_job_in_a_line(api: TinyApi) -> None:
    put_job(api, "train")
    async with (
        served(api) as address,
        opened(f"{address}/#token={TOKEN}", viewport={"width": 400, "height": 800}) as page,
    ):
        lines = (
            await row(page, "train")
            .locator("b", has_text="train")
            .evaluate("name => name.getClientRects().length")
        )
        assert lines == 1


async def test_a_screen_reader_is_told_what_eyes_see(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=3, ready=2)
    cells = row(page, "train").get_by_role("img")
    await expect(cells).to_have_attribute("aria-label", "2 published, 1 pending")
    jobs = page.get_by_role("table", name="Jobs")
    await expect(
        jobs.get_by_role("row", name="Running ml/train 2 published, 1 pending 2 of 3")
    ).to_be_visible()
    assert await page.get_by_role("img").count() == 1  # what only decorates is not read
    await page.get_by_role("link", name="train").click()
    lanes = page.get_by_role("table", name="Workers over time")
    await expect(lanes.get_by_role("img").first).to_have_attribute(
        "aria-label", re.compile("Now asked for 3, ready 2, published 2")
    )
    await expect(lanes.get_by_role("row", name="train-worker-2")).to_contain_text("pending")
    for heading in (
        "Workers over time",
        "What the controller does next",
        "Host list",
        "Commands",
        "Events",
        "Launcher",
    ):
        await expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()


async def test_no_two_phases_of_a_worker_differ_by_colour_alone(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=4, ready=2, leaving=(4,))
    ended = worlds.worker(3, job="train", namespace="ml", phase="Failed")
    store(api, PODS, ended, **{names.LABEL_JOB_NAME: "train"})
    cells = row(page, "train").get_by_role("img")
    await expect(cells).to_have_attribute(
        "aria-label", "2 published, 1 draining, 1 pending, 1 ended"
    )
    await expect(row(page, "train")).to_contain_text(re.compile(r"\w\. And \d more\."))
    looks = await cells.locator("rect").evaluate_all(
        "cells => cells.map((cell) => [cell.height.baseVal.value, cell.getAttribute('fill'),"
        " getComputedStyle(cell).stroke == 'none'])"
    )
    assert len({str(look) for look in looks}) == 4, looks


async def test_the_token_is_kept_for_this_tab_alone(api: TinyApi) -> None:
    put_job(api, "train")
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        await expect(row(page, "train")).to_be_visible()
        assert TOKEN not in page.url
        assert await page.context.cookies() == []
        assert TOKEN not in await page.evaluate("JSON.stringify(localStorage)")
        await page.reload()
        await expect(row(page, "train")).to_be_visible()
        other = await page.context.new_page()
        await other.goto(address)
        await expect(other.get_by_role("alert")).to_contain_text("This tab has no valid link")
        await expect(other.locator(".sentence")).to_have_text("The jobs are not shown.")
        await other.goto(f"{address}/#/ml/train")
        await other.reload()
        sentence = other.locator(".sentence")
        await expect(sentence).to_contain_text("This tab has no valid link")


async def test_a_hidden_tab_asks_for_nothing(api: TinyApi, page: Page) -> None:
    put_job(api, "train")
    await expect(page.locator("#live")).to_have_text("Live")
    hide = (
        "value => { Object.defineProperty(document, 'hidden', {value, configurable: true}); "
        "document.dispatchEvent(new Event('visibilitychange')) }"
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.evaluate(hide, arg=True)
    put_job(api, "later")
    await asyncio.sleep(3)  # longer than a retry
    assert asked == []
    assert await row(page, "later").count() == 0
    await page.evaluate(hide, arg=False)
    await expect(row(page, "later")).to_be_visible()


STRANGER = """async ([address, token]) => {
  const load = (tag, properties) => new Promise((yes, no) => {
    document.body.append(Object.assign(document.createElement(tag), { onload: yes, onerror: no, ...properties }));
  });
  const tries = {
    read: () => fetch(`${address}/api/jobs`),
    readWithToken: () => fetch(`${address}/api/jobs`, { headers: { Authorization: `Bearer ${token}` } }),
    readUnseen: async () => await (await fetch(`${address}/api/jobs`, { mode: 'no-cors' })).text() || Promise.reject(),
    script: () => load('script', { type: 'module', src: `${address}/page.js` }),
    image: () => load('img', { src: `${address}/icon.svg` }),
    frame: async () => {
      await load('iframe', { src: address });
      return document.querySelector('iframe').contentDocument.body.id;
    },
    tab: async () => {
      const tab = open(address);
      await new Promise((yes) => setTimeout(yes, 500));
      return tab.document.querySelector('#main').id;
    },
  };
  const got = [];
  for (const [name, attempt] of Object.entries(tries)) await attempt().then(() => got.push(name), () => {});
  return got;
}"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_hostile_page_of_the_same_browser_gets_nothing(api: TinyApi, host: str) -> None:
    put_job(api, "train")
    async with (
        strangers_page("hostile") as port,
        served(api) as address,
        opened(f"{address}/#token={TOKEN}") as page,
    ):
        await expect(row(page, "train")).to_be_visible()
        stranger = await page.context.new_page()
        await stranger.goto(f"http://{host}:{port}/")
        for given in ("guess", TOKEN):
            assert await stranger.evaluate(STRANGER, [address, given]) == []
