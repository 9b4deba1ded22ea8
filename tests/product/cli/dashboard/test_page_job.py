"""The page of one job in a real browser: what it shows of many workers, of the past, and of what does not exist."""

import asyncio
import re
import time

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from mpijob_elastic import names
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model.history import Change, merged
from mpijob_elastic.model.memory import Memory, SizeChange
from tests.browser import needs_browser, opened
from tests.doubles.api import TinyApi
from tests.product.cli.served import TOKEN, put_job, served

pytestmark = [needs_browser, pytest.mark.thorough]

JOB = MPI_JOBS.path("ml", "train")
HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>&amp;"
HIDE = (
    "value => { Object.defineProperty(document, 'hidden', {value, configurable: true}); "
    "document.dispatchEvent(new Event('visibilitychange')) }"
)


async def test_a_job_that_does_not_exist_is_one_sentence(api: TinyApi) -> None:
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/trian") as page:
        heading = page.get_by_role("heading", level=1)
        await expect(heading).to_have_text(
            "There is no MPIJob trian in namespace ml; did you mean train?"
        )
        await expect(page.locator("main > :visible")).to_have_count(1)
        await expect(page.get_by_role("alert")).to_be_hidden()
        await page.get_by_role("link", name="Jobs").click()
        await expect(page.get_by_role("row", name="train")).to_be_visible()


async def test_the_question_says_who_leaves_and_how_long_it_may_take(
    api: TinyApi, page: Page
) -> None:
    bar, dialog = page.get_by_role("region", name="Change the job"), page.get_by_role("dialog")
    await bar.get_by_role("spinbutton").fill("1")
    await bar.get_by_role("button", name="Scale").click()
    await expect(dialog).to_contain_text(
        "train-worker-2, train-worker-1 leave: they drain for at most 1m, and then are deleted."
    )
    await page.keyboard.press("Escape")
    await bar.get_by_role("spinbutton").fill("4")
    await bar.get_by_role("button", name="Scale").click()
    await expect(dialog).to_contain_text("3 → 4 workers")
    await expect(dialog.locator(".leaves")).to_have_text("")
    assert api.writes == []


async def test_the_field_has_the_bounds_of_the_job(api: TinyApi, page: Page) -> None:
    field = page.get_by_role("spinbutton", name="Workers")
    await expect(field).to_have_attribute("max", "10000")
    job = api.objects[JOB]
    job["metadata"].setdefault("annotations", {}).update(
        {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "4"}
    )
    api.put(JOB, job)
    await expect(field).to_have_attribute("min", "2")
    await expect(field).to_have_attribute("max", "4")
    await field.fill("9")
    await page.keyboard.press("Enter")
    assert await field.evaluate("field => field.validity.rangeOverflow")
    await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_the_buttons_cover_nothing(page: Page) -> None:
    bar = page.get_by_role("region", name="Change the job")
    await expect(bar).to_be_visible()
    assert await bar.evaluate("bar => getComputedStyle(bar).position") == "static"
    below, box = await page.locator("#lanes").bounding_box(), await bar.bounding_box()
    assert below is not None
    assert box is not None
    assert box["y"] + box["height"] <= below["y"]


def told(api: TinyApi, *changes: Change) -> None:
    """Write these changes into the history of the job."""
    path = CONFIG_MAPS.path("ml", "train-config")
    config = api.objects[path]
    config["metadata"]["annotations"][names.HISTORY] = merged("", changes)
    api.put(path, config)


def asked(ago: float, before: int, after: int) -> Change:
    return Change(at=time.time() - ago, cause="user", by="me", before=before, after=after)


async def steps(page: Page) -> list[tuple[int, float]]:
    """The sizes asked for, each with its begin in per cent of the chart."""
    path = await page.locator("svg.size path.asked").get_attribute("d") or ""
    found = [tuple(map(float, step)) for step in re.findall(r"[ML]([\d.]+) ([\d.]+)H", path)]
    sizes = [(round((100 - y) * 4.6 / 100), x / 10) for x, y in found]
    return [
        step for step, last in zip(sizes, [(0, 0.0), *sizes], strict=False) if step[0] != last[0]
    ]


async def test_the_chart_has_the_sizes_that_the_history_knows(api: TinyApi) -> None:
    loss = Change(at=time.time() - 120.0, cause="node", before=4, after=3)
    told(api, asked(240.0, 2, 4), loss, asked(60.0, 4, 3))
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        marks = page.locator("svg.size text.mark")
        await expect(marks).to_have_text(["2→4", "4→3", "4→3"])
        await expect(page.locator("svg.size .k-unknown")).to_have_count(0)
        found = await steps(page)
        assert [size for size, _ in found] == [2, 4, 3]  # a loss leaves the size that is asked for
        assert [begin for _, begin in found] == pytest.approx([0.0, 20.0, 80.0], abs=6.0)


async def test_the_words_of_marks_keep_apart_on_a_narrow_screen(api: TinyApi) -> None:
    put_job(api, "train", size=300)
    told(api, asked(240.0, 100, 200), asked(205.0, 200, 400), asked(60.0, 400, 303))
    narrow = {"viewport": {"width": 400, "height": 800}}
    async with (
        served(api) as address,
        opened(f"{address}/#token={TOKEN}&job=ml/train", **narrow) as page,
    ):
        marks = page.locator("svg.size text.mark")
        await expect(marks).to_have_text(["", "200→400", "400→303"])
        await page.set_viewport_size({"width": 1200, "height": 800})
        await expect(marks).to_have_text(["100→200", "200→400", "400→303"])


async def test_sizes_before_the_oldest_known_change_are_not_known(api: TinyApi) -> None:
    told(api, *(asked(90.0 - number, 2 + number % 2, 3 - number % 2) for number in range(30)))
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        await expect(page.locator("svg.size text.mark")).to_have_count(30)
        await expect(page.locator("svg.size .k-unknown")).to_have_count(1)
        await expect(page.locator("svg.size")).to_contain_text("not known")


async def test_the_history_comes_before_the_looks_into_the_pods(api: TinyApi) -> None:
    answers = asyncio.Event()

    async def look(_request: web.Request) -> web.StreamResponse:
        await answers.wait()
        return web.Response(status=500)

    api.streams["/exec"] = look
    told(api, asked(60.0, 2, 3))
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        await expect(page.locator("svg.size .k-unknown")).to_have_count(0)
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Looking into its pods")
        answers.set()


async def test_a_change_has_one_mark_although_its_list_came_later(api: TinyApi) -> None:
    at = time.time()
    put_job(api, "train", size=3, memory=Memory(scale=SizeChange(before=2, after=3, at=at - 20.0)))
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        marks = page.locator("svg.size line.mark")
        await expect(marks).to_have_count(1)
        await expect(page.locator("svg.size .k-unknown")).to_have_count(1)
        told(api, asked(60.0, 2, 3))
        await expect(page.locator("svg.size .k-unknown")).to_have_count(0)
        await expect(marks).to_have_count(1)
        assert float((await marks.get_attribute("x1") or "").rstrip("%")) < 90.0


async def test_the_history_tells_what_the_page_has_missed(api: TinyApi, page: Page) -> None:
    told(api, asked(60.0, 2, 3))
    chart = page.locator("svg.size")
    await expect(chart.locator("line.mark")).to_have_count(1)
    await page.evaluate(HIDE, arg=True)
    await asyncio.sleep(2.0)
    told(api, asked(60.0, 2, 3), asked(1.5, 3, 4), asked(0.5, 4, 3))
    await page.evaluate(HIDE, arg=False)
    await expect(chart.locator("line.mark")).to_have_count(3)
    await expect(chart.locator(".k-unknown")).to_have_count(0)
    assert [size for size, _ in await steps(page)] == [2, 3, 4, 3]


async def test_many_workers_are_folded_by_state_and_node_and_found_by_words(api: TinyApi) -> None:
    put_job(api, "train", size=300, ready=290)
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        lanes = page.get_by_role("table", name="Workers over time")
        folds, workers = lanes.locator("tr.fold"), lanes.locator("svg.lane")
        await expect(folds).to_have_count(2)  # each worker has a node of its own
        await expect(folds).to_contain_text(["290 workers", "10 workers"])
        await expect(folds).to_contain_text(["published", "pending"])
        await expect(workers).to_have_count(0)
        await lanes.get_by_role("button", name="10 workers").click()
        await expect(workers).to_have_count(10)
        await expect(lanes.get_by_role("button", name="10 workers")).to_have_attribute(
            "aria-expanded", "true"
        )
        search = page.get_by_role("searchbox", name="Find workers")
        await search.fill("worker-29")
        await expect(workers).to_have_count(11)
        await expect(page.locator(".found")).to_have_text("11 of 300 workers")
        await search.fill("pending")
        await expect(workers).to_have_count(10)
        await search.fill("")
        await expect(folds).to_have_count(2)


async def test_markup_is_text_in_folds_and_in_the_manifest(api: TinyApi) -> None:
    put_job(api, "train", size=60)
    for index in range(60):
        path = PODS.path("ml", f"train-worker-{index}")
        pod = api.objects[path]
        pod["spec"]["nodeName"] = HOSTILE
        api.put(path, pod)
    job = api.objects[JOB]
    job["metadata"]["annotations"] = {HOSTILE: HOSTILE}
    api.put(JOB, job)
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        await expect(page.locator("tr.fold")).to_contain_text([f"published{HOSTILE}"])
        await page.get_by_role("searchbox", name="Find workers").fill(HOSTILE)
        await expect(page.locator("svg.lane")).to_have_count(40)
        await expect(page.locator("tr[data-key=train-worker-0]")).to_contain_text(HOSTILE)
        await page.locator("#yaml").get_by_text("Show").click()
        await expect(page.locator("#yaml")).to_contain_text(HOSTILE)
        assert await page.locator("main img").count() == 0
        assert await page.get_by_text("bold", exact=True).count() == 0


async def test_a_lane_can_be_reached_by_keys_after_a_search(api: TinyApi) -> None:
    put_job(api, "train", size=60)
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        search = page.get_by_role("searchbox", name="Find workers")
        await search.fill("worker-1")
        lanes = page.locator("svg.lane")
        await expect(lanes).to_have_count(11)
        await lanes.first.focus()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await search.fill("worker-59")
        await expect(lanes).to_have_count(1)
        await expect(lanes).to_have_attribute("tabindex", "0")


async def test_the_manifest_is_shown_on_demand(api: TinyApi, page: Page) -> None:
    job = api.objects[JOB]
    job["kind"] = MPI_JOBS.kind
    job["metadata"]["managedFields"] = [{"manager": "somebody"}]
    api.put(JOB, job)
    shown = page.locator("#yaml")
    await expect(page.locator(".facts")).to_contain_text("3 asked for")
    await shown.get_by_text("Show").click()
    await expect(shown).to_contain_text("kind: MPIJob")
    await expect(shown).to_contain_text("name: train")
    await expect(shown).not_to_contain_text("managedFields")


async def test_the_log_is_searched_and_that_of_the_launcher_before_is_kept(
    api: TinyApi, page: Page
) -> None:
    said = "epoch 1\nloss 0.5\nepoch 2\n"

    async def log(request: web.Request) -> web.StreamResponse:
        status = 400 if "previous" in request.query else 200
        return web.Response(text=said, status=status)

    api.streams["/log"] = log
    shown = page.locator("#log")
    await expect(shown).to_contain_text("loss 0.5")
    search = page.get_by_role("searchbox", name="Search the log")
    await search.fill("EPOCH")
    await expect(shown).to_have_text("epoch 1\nepoch 2")
    await expect(page.locator("#log-of")).to_have_text("2 of the last 3 lines of train-launcher")
    await search.fill("nothing")
    await expect(shown).to_have_text("No line has these words.")
    await search.fill("")
    await expect(page.locator(".former")).to_be_hidden()
    path = PODS.path("ml", "train-launcher")
    pod = api.objects[path]
    api.remove(path)
    pod["metadata"]["uid"] = "another"
    said = "begun anew\n"
    api.put(path, pod)
    await expect(shown).to_have_text("begun anew")
    former = page.locator(".former")
    await former.get_by_text("The log of the launcher before").click()
    await expect(former).to_contain_text("loss 0.5")


async def test_the_log_before_a_restart_of_the_launcher_is_shown(api: TinyApi, page: Page) -> None:
    async def log(request: web.Request) -> web.StreamResponse:
        return web.Response(text="it broke\n" if "previous" in request.query else "begun anew\n")

    api.streams["/log"] = log
    await expect(page.locator("#log")).to_have_text("begun anew")
    former = page.locator(".former")
    await former.get_by_text("The log of the launcher before").click()
    await expect(former).to_contain_text("it broke")


async def test_a_long_reason_has_two_lines_in_the_list(api: TinyApi) -> None:
    put_job(api, "train", size=2, ready=1)
    path = PODS.path("ml", "train-worker-1")
    pod = api.objects[path]
    why = "0/9 nodes are available: " + "insufficient GPUs, " * 60
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"]["conditions"].append({**condition, "message": why})
    pod["spec"]["nodeName"] = ""
    api.put(path, pod)
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        reason = page.locator('tr[data-key="ml/train"] .why')
        await expect(reason).to_contain_text("insufficient GPUs")
        box = await reason.bounding_box()
        assert box is not None
        assert box["height"] < 60
        title = await reason.evaluate("reason => reason.parentElement.title")
        assert title.count("insufficient GPUs") == 60
