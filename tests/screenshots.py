"""Take pictures of the dashboard's main states, three of them for docs/: `python -m tests.screenshots [FOLDER]`."""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from aiohttp import web
from playwright.async_api import Page

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import progress_looks
from mpijob_elastic.kube.lease import micro_time
from mpijob_elastic.kube.resources import CONFIG_MAPS, EVENTS, LEASES, PODS
from mpijob_elastic.model.goodput import Buckets, Spent
from mpijob_elastic.model.history import Change, merged
from mpijob_elastic.model.memory import Memory, SizeChange
from tests.browser import opened
from tests.doubles.api import TinyApi
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, Message, Shells
from tests.product.cli import worlds
from tests.product.cli.served import NAMESPACE, TOKEN, put_job, served, store

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SPENT = Spent(
    buckets=Buckets(starting=61, joining=88, stalled=24, repeated=36, leaving=30, kept=1490),
    rates={"2": 842.0, "4": 1640.0},
)
BEFORE = Memory(scale=SizeChange(before=2, after=4, at=time.time() - 70), spent=SPENT)
BEFORE_CHANGE = Change(
    at=time.time() - 72,
    cause="user",
    by="kubectl",
    before=2,
    after=4,
    listed=2.0,
    trained=14.0,
    lost=61.0,
)
# When the workers that come while the page is open were created.
YOUNG: dict[int, float] = {}
# How some people see colours, as Chromium emulates it.
VISIONS = ("protanopia", "deuteranopia", "tritanopia", "achromatopsia")
ROOT = Path(__file__).parents[1]
# Pictures that stand in docs/, and their names there.
IN_DOCS = {
    "jobs-light-1200": "dashboard-jobs",
    "job-light-1200": "dashboard-job",
    "job-dark-1200": "dashboard-dark",
}
NO_GPU = "0/40 nodes are available: 40 Insufficient nvidia.com/gpu"
LOG = """\
[0]<stdout>: epoch 7 step 4884 loss 2.109
[0]<stdout>: epoch 7 step 4952 loss 2.104
[driver] hosts updated: added train-worker-4, train-worker-5
[0]<stdout>: rank 0 of 6, epoch 7 step 4996 loss 2.101
[driver] hosts updated: removed train-worker-5
[0]<stdout>: commit 1204 done, resetting the ring
"""


async def renew(api: TinyApi) -> None:
    """Lead, as a controller does."""
    while True:
        spec = {"holderIdentity": "controller", "renewTime": micro_time(datetime.now(UTC))}
        api.put(LEASES.path(names.NAMESPACE, names.LEASE), {"spec": spec})
        await asyncio.sleep(1)


async def log(request: web.Request) -> web.StreamResponse:
    return web.Response(text=LOG, status=400 if "previous" in request.query else 200)


async def trains(asked: Asked) -> AsyncIterator[Message]:
    """Answer as a worker that trains; `train` also tells how far it is."""
    tells = asked.command[-1] == progress_looks.SCRIPT and asked.pod.startswith("train-")
    told = line(int(asked.pod.rpartition("-")[2])) if tells else "python3\n"
    for message in ((STDOUT, told), (STATUS, SUCCESS)):
        yield message


def line(index: int) -> str:
    """What a rank of `train` in that worker has written a moment ago."""
    now = time.time()
    first = YOUNG.get(index, worlds.CREATED + 12.0) + 2.0
    step = 4100 + round(6.4 * (now - worlds.CREATED))
    kept, ranks = 0.93 * (now - first), 4 + 2 * bool(YOUNG)
    return (
        f"alive v1 7 99 {step} {64 * ranks} {ranks} {now:.3f} 156.2 0 {first:.3f} {first:.3f} "
        f"{kept:.3f} 1.500 29 0 20000\n"
    )


def text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def scaled(before: int, after: int, ago: float = 0.0) -> Memory:
    scale = SizeChange(before=before, after=after, at=time.time() - ago)
    return Memory(scale=scale, spent=SPENT, added_at=time.time() - ago)


def changed(before: int, after: int, *, at: float) -> Change:
    return Change(at=at, cause="user", by="kubectl", before=before, after=after)


def remember(api: TinyApi, changes: Sequence[Change]) -> None:
    """Write the history of `train`."""
    path = CONFIG_MAPS.path(NAMESPACE, names.config_map("train"))
    config = api.objects[path]
    config["metadata"]["annotations"][names.HISTORY] = merged("", changes)
    api.put(path, config)


def unschedulable(api: TinyApi, pod: str) -> None:
    path = PODS.path(NAMESPACE, pod)
    item = api.objects[path]
    item["spec"]["nodeName"] = ""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": NO_GPU,
    }
    item["status"]["conditions"].append(condition)
    api.put(path, item)


def fill(api: TinyApi) -> None:
    """Store a namespace of an ordinary day."""
    put_job(api, "bert-large-pretrain", size=16, gpus=8, memory=scaled(12, 16, 7200))
    put_job(api, "llama-sft", size=8, gpus=8, memory=scaled(4, 8, 2500))
    put_job(api, "tabular-hpo", size=2)
    put_job(api, "resnet50-imagenet", size=6, gpus=1, ready=3, memory=scaled(3, 6, 660))
    for index in (3, 4, 5):
        unschedulable(api, f"resnet50-imagenet-worker-{index}")
    put_job(
        api,
        "asr-conformer",
        size=1,
        gpus=4,
        leaving=(1, 2),
        memory=scaled(3, 1, 4),
        at=time.time() - 4,
    )
    for name, state, size in (("t5-eval", "Succeeded", 0), ("detr-sweep-07", "Failed", 2)):
        put_job(
            api,
            name,
            size=size,
            phase=state,
            conditions=[state],
            completionTime=worlds.CREATED_TEXT,
        )
    put_job(api, "train", gpus=1, size=4, memory=BEFORE)
    remember(api, [BEFORE_CHANGE])
    put_job(api, "bert-finetune", size=4, ready=2)
    ended = worlds.worker(3, job="bert-finetune", namespace=NAMESPACE, phase="Failed")
    store(api, PODS, ended, **{names.LABEL_JOB_NAME: "bert-finetune"})


async def happen(api: TinyApi, page: Page) -> None:
    """Let `train` grow, and give two workers back."""

    async def event(reason: str, message: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {
            "involvedObject": {"name": "train"},
            "type": "Normal",
            "reason": reason,
            "message": message,
        }
        await api.create(EVENTS.path(NAMESPACE), f"e{time.time_ns()}", **about, lastTimestamp=now)

    changes = [BEFORE_CHANGE]

    def put(size: int, **what: Any) -> None:
        young = {index: text(at) for index, at in YOUNG.items()}
        put_job(api, "train", gpus=1, size=size, young=young, **what)
        if size != changes[-1].after:
            changes.append(changed(changes[-1].after, size, at=time.time()))
        remember(api, changes)

    await page.wait_for_timeout(15_000)
    YOUNG.update(dict.fromkeys((4, 5, 6), time.time()))
    put(7, ready=4, memory=BEFORE)
    await page.wait_for_timeout(5_000)
    put(7, ready=6, memory=scaled(4, 6))
    unschedulable(api, "train-worker-6")
    await event(
        "HostsPublished",
        "train-worker-4, train-worker-5 added to discover_hosts.sh: 4 → 6 of 7 workers",
    )
    await page.wait_for_timeout(14_000)
    put(5, leaving=(5,), memory=scaled(6, 5), at=time.time())
    api.remove(PODS.path(NAMESPACE, "train-worker-6"))
    await event(
        "Draining",
        "train-worker-5 removed from discover_hosts.sh: 6 → 5 of 5 desired workers; at most 60s",
    )
    await page.wait_for_timeout(5_000)


async def as_others_see(page: Page, stem: str, folder: Path) -> None:
    """Take the page as it looks with each deficiency of colour vision."""
    tools = await page.context.new_cdp_session(page)
    for vision in (*VISIONS, "none"):
        await tools.send("Emulation.setEmulatedVisionDeficiency", {"type": vision})
        if vision != "none":
            await page.screenshot(path=folder / f"{stem}-{vision}.png", full_page=True)
    await tools.detach()


async def main(folder: Path) -> None:
    """Take all pictures."""
    worlds.CREATED = time.time() - 150
    worlds.CREATED_TEXT = text(worlds.CREATED)
    shells = Shells(trains)
    async with TinyApi(selects=True) as api, served(api) as address:
        api.put("/version", {})
        api.streams |= {"/exec": shells.serve, "/log": log}
        renewing = asyncio.create_task(renew(api))
        link = f"{address}/#token={TOKEN}"
        async with opened(link, viewport={"width": 1200, "height": 400}) as page:
            await page.wait_for_selector(".empty:not([hidden])")
            await page.screenshot(path=folder / "empty.png")
        fill(api)
        for theme in THEMES:
            for width in (1200, 400):
                look: dict[str, Any] = {
                    "viewport": {"width": width, "height": 600},
                    "color_scheme": theme,
                }
                async with opened(link, **look) as page:
                    await page.wait_for_selector("tbody a")
                    await page.wait_for_timeout(500)
                    await page.screenshot(path=folder / f"jobs-{theme}-{width}.png", full_page=True)
                    if width > 400:
                        await as_others_see(page, f"jobs-{theme}", folder)
        async with opened(
            f"{link}&job={NAMESPACE}/train", viewport={"width": 1200, "height": 600}
        ) as page:
            await happen(api, page)
            for theme in THEMES:
                await page.emulate_media(color_scheme=theme)
                for width in (1200, 400):
                    await page.set_viewport_size(
                        {"width": width, "height": 1000}
                    )  # what docs/ shows
                    await page.screenshot(
                        path=folder / f"job-{theme}-{width}.png", full_page=width == 400
                    )
                await page.set_viewport_size({"width": 1200, "height": 1000})
                await as_others_see(page, f"job-{theme}", folder)
            api.remove("/version")
            await page.set_viewport_size({"width": 1200, "height": 600})
            await page.wait_for_selector("#banner:not([hidden])")
            await page.screenshot(path=folder / "lost-dark-1200.png")
        renewing.cancel()


if __name__ == "__main__":
    made = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "screenshots"
    made.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(made))
    for picture, name in IN_DOCS.items():
        shutil.copy(made / f"{picture}.png", ROOT / "docs" / f"{name}.png")
