"""What the page keeps of a job in a real browser, and what it lets go: lists, logs, a job that is deleted or made again."""

import asyncio
import re
from collections.abc import Callable

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS, PODS
from tests.browser import needs_browser, opened
from tests.doubles.api import TinyApi, refusal
from tests.product.cli import worlds
from tests.product.cli.served import TOKEN, put_job, served

pytestmark = [needs_browser, pytest.mark.thorough]

KEEP = """async (draws) => {
  const { keep } = await import('/dom.js');
  const list = document.createElement('ul');
  const make = (word) => Object.assign(document.createElement('li'), { textContent: word });
  const shown = [];
  let before = [];
  for (const words of draws) {
    keep(list, words, (word) => word, make);
    const now = [...list.children];
    shown.push([now.map((item) => item.textContent), now.filter((item) => before.includes(item)).length]);
    before = now;
  }
  return shown;
}"""

JOB = MPI_JOBS.path("ml", "train")
LAUNCHER = PODS.path("ml", "train-launcher")
HIDE = (
    "value => { Object.defineProperty(document, 'hidden', {value, configurable: true}); "
    "document.dispatchEvent(new Event('visibilitychange')) }"
)

# Points 3 s apart, with an hour between two of them in which the page saw nothing; the gaps that are told.
SPEND = """async ([pause, count]) => {
  const { recordOf } = await import('/record.js');
  const record = recordOf(`ml/points-${pause}-${count}`);
  let now = 0;
  for (let number = 0; number < count; number++) {
    if (number === pause) {
      record.open = true;
      record.close(now);
      now += 3600_000;
    }
    record.spend({ allocated: number, kept: number }, (now += 3000));
  }
  const points = record.spent;
  return points.flatMap((point, place) =>
    (place && point.from - points[place - 1].from > 1800_000) || point.apart
      ? [[point.apart, point.from - points[place - 1].from > 1800_000]] : []);
}"""


@pytest.mark.parametrize(
    ("draws", "kept"),
    [
        pytest.param(["ab", "ab", "cab"], [0, 2, 2], id="keys of their own"),
        pytest.param(["aa", "baa", "cbaa", "ca"], [0, 2, 3, 2], id="equal keys"),
        pytest.param(["aab", "b", "baa", ""], [0, 1, 1, 0], id="equal keys that go"),
    ],
)
async def test_a_list_has_one_child_for_each_item(
    page: Page, draws: list[str], kept: list[int]
) -> None:
    shown = await page.evaluate(KEEP, [list(draw) for draw in draws])
    assert shown == [[list(draw), count] for draw, count in zip(draws, kept, strict=True)]


async def pulled(api: TinyApi, name: str, words: str) -> None:
    about = {"kind": "Pod", "name": "train-worker-0", "uid": "uid of ml/train-worker-0"}
    event = {"involvedObject": about, "reason": "Pulled", "type": "Normal", "message": words}
    await api.create(EVENTS.path("ml"), name, **event, lastTimestamp="2026-01-01T00:00:00Z")


async def test_events_of_equal_words_are_each_shown_once(api: TinyApi, page: Page) -> None:
    for container in range(2):
        await pulled(api, f"equal-{container}", "the image is there")
    shown = page.locator("#events li")
    await expect(shown).to_have_count(2)
    for number in range(3):
        await pulled(api, f"other-{number}", f"other {number}")
        await expect(shown).to_have_count(3 + number)


@pytest.mark.parametrize("pause", [501, 502])
@pytest.mark.parametrize("count", [1001, 2600])
async def test_a_time_that_was_not_seen_stays_a_gap_in_the_line(
    page: Page, pause: int, count: int
) -> None:
    assert await page.evaluate(SPEND, [pause, count]) == [[True, True]]


def prints(api: TinyApi, answer: Callable[[], web.Response]) -> None:
    """Answer so whoever reads the launcher's log; its container has not restarted."""

    async def log(request: web.Request) -> web.StreamResponse:
        if "previous" in request.query:
            return refusal(400, "BadRequest", "previous terminated container not found")
        return answer()

    api.streams["/log"] = log


def lines(*said: str) -> Callable[[], web.Response]:
    return lambda: web.Response(text="".join(f"{line}\n" for line in said))


def node_away() -> web.Response:
    return refusal(500, "InternalError", "dial tcp 10.0.0.7:10250: connect: no route to host")


def replace_launcher(api: TinyApi) -> None:
    pod = api.objects[LAUNCHER]
    api.remove(LAUNCHER)
    pod["metadata"]["uid"] = f"after {pod['metadata']['uid']}"
    api.put(LAUNCHER, pod)


def delete(api: TinyApi) -> None:
    """Delete the job and all that belongs to it."""
    for path in [path for path in api.objects if "/ml/" in path and "/events/" not in path]:
        api.remove(path)


async def test_a_log_that_cannot_be_read_for_a_while_is_kept(api: TinyApi, page: Page) -> None:
    shown, error, former = (page.locator(part) for part in ("#log", "#log-error", ".former"))
    prints(api, lines("step 1", "CUDA error"))
    await expect(shown).to_contain_text("CUDA error")
    await expect(error).to_be_hidden()
    prints(api, node_away)
    await expect(error).to_contain_text("no route to host")
    await expect(shown).to_have_text("step 1\nCUDA error")
    replace_launcher(api)
    await expect(former.locator("pre")).to_contain_text("CUDA error")
    await expect(shown).to_have_text("")
    prints(api, lines("begun anew"))
    await expect(shown).to_have_text("begun anew")
    await expect(error).to_be_hidden()
    await expect(former).to_be_visible()
    await expect(former.locator("pre")).to_have_text("step 1\nCUDA error")


async def test_of_a_deleted_job_only_what_was_is_shown(api: TinyApi, page: Page) -> None:
    prints(api, lines("step 1"))
    await pulled(api, "e1", "the image is there")
    await expect(page.locator("#log")).to_contain_text("step 1")
    await expect(page.locator("#events")).to_contain_text("the image is there")
    bar, dialog = page.get_by_role("region", name="Change the job"), page.get_by_role("dialog")
    await bar.get_by_role("spinbutton").fill("2")
    await bar.get_by_role("button", name="Scale").click()
    await expect(dialog).to_be_visible()
    heading, lane = page.get_by_role("heading", level=1), page.locator("svg.lane").first
    delete(api)
    await expect(heading).to_have_text("ml/train was deleted.")
    await expect(dialog).to_be_hidden()
    for part in (".badge", ".findings", ".facts", ".changes", "#next", "#hosts", "#commands"):
        await expect(page.locator(part)).to_be_hidden()
    for part in ("#yaml", "tr[data-key=train-worker-0] .now", "#lanes dl", ".steps"):
        await expect(page.locator(part)).to_be_hidden()
    unknown = re.compile("published .* to .*; unknown since")
    await expect(lane).to_have_attribute("aria-label", unknown)
    await expect(page.locator("svg.size")).not_to_have_attribute("aria-label", re.compile("Now"))
    await pulled(api, "e2", "of another")  # the page reads Events and the log again
    await asyncio.sleep(6.0)
    await expect(page.locator("#log")).to_have_text("step 1")
    await expect(page.locator("#events")).to_contain_text("the image is there")
    await page.get_by_role("radio", name="30 min").check()
    await expect(lane).to_have_attribute("aria-label", unknown)
    await page.evaluate(HIDE, arg=True)
    await page.evaluate(HIDE, arg=False)
    await expect(page.get_by_role("alert")).to_contain_text("no MPIJob train in namespace ml")
    await expect(heading).to_have_text("ml/train was deleted.")
    await expect(page.locator("#log")).to_have_text("step 1")


@pytest.mark.parametrize("open_meanwhile", ["job", "list", "nothing"])
async def test_a_job_made_again_under_its_name_inherits_nothing(
    api: TinyApi, page: Page, monkeypatch: pytest.MonkeyPatch, open_meanwhile: str
) -> None:
    heading, workers = page.get_by_role("heading", level=1), page.locator("svg.lane")
    prints(api, lines("of the old job"))
    await expect(page.locator("#log")).to_contain_text("of the old job")
    await expect(workers).to_have_count(3)
    await page.get_by_role("searchbox", name="Search the log").fill("old")
    if open_meanwhile == "list":
        await page.get_by_role("link", name="Jobs").click()
    if open_meanwhile == "nothing":
        await page.evaluate(HIDE, arg=True)
    delete(api)
    if open_meanwhile == "job":
        await expect(heading).to_have_text("ml/train was deleted.")
    monkeypatch.setattr(worlds, "_uid", lambda name, namespace: f"new uid of {namespace}/{name}")
    monkeypatch.setattr(worlds, "CREATED_TEXT", "2026-01-02T00:00:00Z")
    prints(api, lines("of the new job"))
    put_job(api, "train", size=2)
    if open_meanwhile == "nothing":
        await page.evaluate(HIDE, arg=False)
    if open_meanwhile == "list":
        await page.get_by_role("link", name="train").click()
    await expect(page.locator("#log")).to_have_text("of the new job")
    await expect(heading).to_contain_text("ml/train: Running")
    await expect(page.locator(".facts")).to_contain_text("2 asked for")
    await expect(workers).to_have_count(2)
    await expect(page.locator("#lanes")).not_to_contain_text("pods since")
    await expect(page.locator(".former")).to_be_hidden()


async def test_a_job_that_becomes_elastic_loses_its_mark_in_the_list(api: TinyApi) -> None:
    put_job(api, "train", annotations={"mpijob-elastic/enabled": "false"})
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        row = page.locator('tr[data-key="ml/train"]')
        for mark, enabled in ((1, "false"), (0, "true"), (1, "false")):
            put_job(api, "train", annotations={"mpijob-elastic/enabled": enabled})
            await expect(row.locator(".tag")).to_have_count(mark)


async def test_the_manifest_that_is_open_changes_with_the_job(api: TinyApi, page: Page) -> None:
    shown = page.locator("#yaml")
    await expect(page.locator(".facts")).to_contain_text("3 asked for")
    await shown.get_by_text("Show").click()
    await expect(shown).to_contain_text("replicas: 3")
    job = api.objects[JOB]
    job["metadata"]["annotations"] = {"team": "vision"}  # of which no report tells
    api.put(JOB, job)
    await expect(shown).to_contain_text("team: vision")
    put_job(api, "train", size=4)
    await expect(shown).to_contain_text("replicas: 4")
