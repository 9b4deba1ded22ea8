"""The buttons of the page in a real browser, beside an API server in memory."""

import pytest
from playwright.async_api import Page, expect

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from tests.browser import needs_browser, opened
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.served import TOKEN, admit, put_job, served, store, strangers_page
from tests.product.cli.test_show import queued

pytestmark = [needs_browser, pytest.mark.thorough]

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>&amp;"
JOB = MPI_JOBS.path("ml", "train")


def size(api: TinyApi) -> int:
    replicas: int = api.objects[JOB]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    return replicas


async def test_a_keyboard_is_enough_to_agree_and_to_decline(api: TinyApi, page: Page) -> None:
    bar, dialog = page.get_by_role("region", name="Change the job"), page.get_by_role("dialog")
    number = bar.get_by_role("spinbutton", name="Workers")
    await expect(number).to_have_value("3")
    await number.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_accessible_name("Scale ml/train?")
    await expect(dialog).to_contain_text("train: 3 → 2 workers")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(number).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Enter")  # Cancel
    await expect(dialog).to_be_hidden()
    assert api.writes == []
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(bar.get_by_role("status")).to_contain_text(
        "train: 3 → 2 workers: off the host list 0 of 1, gone 0"
    )
    assert size(api) == 2
    put_job(api, "train", size=2)
    api.remove(PODS.path("ml", "train-worker-2"))
    await expect(bar.get_by_role("status")).to_have_text("train has 2 workers; removed: 1.")
    await expect(number).to_have_value("2")


async def test_a_worker_is_parked_and_comes_back(api: TinyApi, page: Page) -> None:
    bar, yes = (
        page.get_by_role("region", name="Change the job"),
        page.get_by_role("dialog").get_by_role("button"),
    )
    await bar.get_by_role("combobox", name="Worker").select_option("train-worker-1")
    await bar.get_by_role("button", name="Park").click()
    await expect(page.get_by_role("dialog")).to_contain_text(
        "train: 3 → 2 workers; parked: train-worker-1"
    )
    await yes.get_by_text("Park").click()
    await expect(bar.get_by_role("combobox").locator("option:checked")).to_have_text(
        "train-worker-1, parked"
    )
    await bar.get_by_role("button", name="Unpark").click()
    await yes.get_by_text("Unpark").click()
    await expect(bar.get_by_role("button", name="Park")).to_have_text("Park")
    assert "mpijob-elastic/parked" not in api.objects[JOB]["metadata"]["annotations"]


async def test_a_refusal_is_one_line_and_its_markup_is_text(api: TinyApi, page: Page) -> None:
    admit(api, denies=HOSTILE)
    bar = page.get_by_role("region", name="Change the job")
    await bar.get_by_role("button", name="Suspend").click()
    await expect(bar.get_by_role("status")).to_contain_text(f"denied the request: {HOSTILE}")
    assert (
        await page.locator("main img").count() + await page.get_by_text("bold", exact=True).count()
        == 0
    )
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await bar.get_by_role("spinbutton").fill("0")
    await bar.get_by_role("button", name="Scale").click()  # the browser says what is wrong
    await expect(bar.get_by_role("spinbutton")).to_be_focused()
    assert api.writes == []


async def test_only_who_may_change_the_job_sees_buttons(api: TinyApi) -> None:
    api.allows = lambda _: False
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        await expect(page.get_by_role("heading", level=1)).to_contain_text("ml/train: Running")
        await expect(page.locator(".facts")).to_contain_text("3 asked for")
        assert await page.get_by_role("region", name="Change the job").count() == 0
        for name in ("Scale", "Park", "Suspend"):
            assert await page.get_by_role("button", name=name, exact=True).count() == 0


async def test_nothing_is_changed_while_the_page_is_not_live(api: TinyApi, page: Page) -> None:
    bar, dialog = page.get_by_role("region", name="Change the job"), page.get_by_role("dialog")
    scale, yes = (
        bar.get_by_role("button", name="Scale"),
        dialog.get_by_role("button", name="Suspend"),
    )
    await bar.get_by_role("button", name="Suspend").click()
    await expect(yes).to_be_enabled()
    await expect(dialog.get_by_text("Not live")).to_be_hidden()
    api.remove("/version")
    await expect(yes).to_be_disabled()
    await expect(
        dialog.get_by_text("Not live: the button works again once the page is live.")
    ).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(
        bar.get_by_text("Not live: the buttons work again once the page is live.")
    ).to_be_visible()
    for name in ("Scale", "Park", "Suspend"):
        await expect(bar.get_by_role("button", name=name, exact=True)).to_be_disabled()
    await bar.get_by_role("spinbutton").fill("2")
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    api.put("/version", {})
    await expect(scale).to_be_enabled()
    await expect(bar.get_by_text("Not live")).to_be_hidden()
    await scale.click()
    await expect(dialog).to_have_accessible_name("Scale ml/train?")
    assert api.writes == []


async def test_a_job_that_has_ended_has_no_buttons(api: TinyApi, page: Page) -> None:
    bar = page.get_by_role("region", name="Change the job")
    await expect(bar).to_be_visible()
    store(api, MPI_JOBS, worlds.mpi_job(name="train", namespace="ml", conditions=["Succeeded"]))
    await expect(bar).to_be_hidden()


async def test_the_gpus_of_a_job_stand_in_the_list(api: TinyApi) -> None:
    put_job(api, "train", size=3, gpus=4)
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        cells = page.locator('tr[data-key="ml/train"] > *')
        await expect(page.locator("thead th")).to_contain_text(
            ["State", "Job", "Workers", "GPUs", "Queue"]
        )
        await expect(cells.nth(3)).to_have_text("12")


async def test_slices_of_gpus_are_counted_apart(api: TinyApi) -> None:
    put_job(api, "train", size=2, gpus=4, slices={"nvidia.com/mig-1g.10gb": 1})
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        row = page.locator('tr[data-key="ml/train"]')
        await expect(row.locator("> *").nth(3)).to_have_text("8, 2 mig-1g.10gb")
        await row.get_by_role("link").first.click()
        await expect(page.get_by_text("2 asked for, GPUs: 8, 2 mig-1g.10gb")).to_be_visible()


async def test_on_a_narrow_screen_a_job_in_the_list_has_the_width_of_it(api: TinyApi) -> None:
    look = {"viewport": {"width": 400, "height": 700}}
    async with served(api) as address, opened(f"{address}/#token={TOKEN}", **look) as page:
        row = page.locator('tr[data-key="ml/train"]')
        await expect(row).to_be_visible()
        box = await row.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert await page.evaluate("document.documentElement.scrollWidth") == 400


async def test_a_queues_words_stand_in_the_list_beside_what_is_wrong(api: TinyApi) -> None:
    answers = queued()
    for kind in (MPI_JOBS, PODS, CONFIG_MAPS, WORKLOADS):
        items = answers[kind.plural]
        assert isinstance(items, list)
        for item in items:
            store(api, kind, item, **{names.LABEL_JOB_NAME: "train"})
    async with served(api) as address, opened(f"{address}/#token={TOKEN}") as page:
        row = page.locator('tr[data-key="default/train"]')
        await expect(row).to_contain_text("team, place 2")
        await expect(row).to_contain_text("train waits in queue team")
        await expect(row).not_to_contain_text("team: 1 more needed.")  # it says so already
        stuck = {
            "name": "worker",
            "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
        }
        other = worlds.worker(1, phase="Pending")
        other["status"]["containerStatuses"] = [stuck]
        store(api, PODS, other, **{names.LABEL_JOB_NAME: "train"})
        store(
            api,
            MPI_JOBS,
            {**api.objects[MPI_JOBS.path("default", "train")], "spec": worlds.mpi_job()["spec"]},
        )
        await expect(row).to_contain_text("no such image")
        await expect(row).to_contain_text("team: 1 more needed.")


async def test_pods_of_a_worker_are_counted_while_the_page_looks(api: TinyApi, page: Page) -> None:
    lane = page.locator("tr[data-key=train-worker-1] th")
    await expect(lane).to_have_text("train-worker-1")
    path = PODS.path("ml", "train-worker-1")
    pod = api.objects[path]
    api.remove(path)
    pod["metadata"] |= {"uid": "another", "creationTimestamp": "2026-01-02T00:00:00Z"}
    api.put(path, pod)
    await expect(lane).to_contain_text("2 pods since ")


STRANGER = """async ([url, token, body]) => {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const tries = [{ body, headers }, { body }, { body, mode: 'no-cors', headers: { 'Content-Type': 'text/plain' } }];
  for (const asked of tries) await fetch(url, { method: 'POST', ...asked }).catch(() => {});
  for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const form = document.createElement('form');
    Object.assign(form, { action: url, method: 'POST', enctype, target: 'frame' });
    const name = body.slice(0, -1) + ',"x":"';
    form.append(Object.assign(document.createElement('input'), { name, value: '"}' }));
    document.body.append(form);
    const loaded = new Promise((yes) => { document.querySelector('iframe').onload = yes; });
    form.submit();
    await loaded;
  }
}"""


async def test_a_hostile_page_of_the_same_browser_changes_nothing(api: TinyApi, page: Page) -> None:
    await expect(page.get_by_role("region", name="Change the job")).to_be_visible()
    address = await page.evaluate("location.origin")
    body = '{"change":"scale","number":2,"confirmed":"train: 3 → 2 workers"}'
    async with strangers_page("<iframe name=frame></iframe>") as port:
        stranger, answers = await page.context.new_page(), list[tuple[str, int]]()
        await stranger.goto(f"http://127.0.0.1:{port}/")
        stranger.on(
            "response", lambda answer: answers.append((answer.request.method, answer.status))
        )
        await stranger.evaluate(STRANGER, [f"{address}/api/jobs/ml/train/change", TOKEN, body])
        await stranger.reload()
    # The forms; of what a script sends, the browser hides the answer.
    assert [status for method, status in answers if method == "POST"] == [403, 403, 403]
    assert api.writes == []
