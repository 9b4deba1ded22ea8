"""How far a training is, and where its GPU-seconds went, on the page of a job in a real browser."""

import re
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Page, expect

from mpijob_elastic.model.goodput import Buckets, Spent
from mpijob_elastic.model.memory import Memory
from tests.browser import needs_browser, opened
from tests.doubles.api import TinyApi, refused
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, Message, Shells, Talk
from tests.product.cli import worlds
from tests.product.cli.served import TOKEN, put_job, served

pytestmark = [needs_browser, pytest.mark.thorough]

SPENT = Spent(
    buckets=Buckets(starting=40.0, joining=25.0, kept=800.0, leaving=16.0),
    rates={"1": 210.4, "2": 409.6},
)


TOO_LONG = f"alive v1 7 99 {10**15} 128 2 {time.time():.3f} 312.5 0 2 2 5 0 0 0 4000\n"


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TinyApi]:
    """A job of two workers, which began a moment ago."""
    began = float(int(time.time()) - 100)
    monkeypatch.setattr(worlds, "CREATED", began)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    monkeypatch.setattr(worlds, "CREATED_TEXT", at)
    async with TinyApi(selects=True) as tiny:
        tiny.put("/version", {})
        put_job(tiny, "train", size=2, gpus=4, memory=Memory(spent=SPENT))
        yield tiny


def line(*, step: int, now: float) -> str:
    first, spent = worlds.CREATED + 20.0, now - worlds.CREATED - 22.0
    return (
        f"alive v1 7 99 {step} 128 2 {now:.3f} 312.5 0 {first:.3f} {first:.3f} "
        f"{spent:.3f} 1.5 10 0 4000\n"
    )


async def tells(asked: Asked) -> AsyncIterator[Message]:
    """A training that goes on; other looks see a rank."""
    now = time.time()
    is_ours = "head -c" in asked.command[-1]
    told = line(step=1200 + int((now - worlds.CREATED) * 3.2), now=now)
    yield STDOUT, told if is_ours else "python3\n"
    yield STATUS, SUCCESS


def says(answer: str) -> Talk:
    async def talk(asked: Asked) -> AsyncIterator[Message]:
        yield STDOUT, answer if "head -c" in asked.command[-1] else "python3\n"
        yield STATUS, SUCCESS

    return talk


async def refuses(_asked: Asked) -> AsyncIterator[Message]:
    raise refused(403, "Forbidden", 'u cannot create resource "pods/exec"')
    yield STATUS, SUCCESS


def link(address: str) -> str:
    return f"{address}/#token={TOKEN}&job=ml/train"


def panel(page: Page) -> Any:
    return page.get_by_role("region", name="Training", exact=True)


async def test_a_training_is_followed_while_its_page_is_open(api: TinyApi) -> None:
    api.streams["/exec"] = Shells(tells).serve
    async with served(api) as address, opened(link(address)) as page:
        training = panel(page)
        steps = training.locator(".words")
        await expect(steps).to_contain_text(
            re.compile(r"step \d{4} of 4000 \(\d\d%\), 3\.2 steps/s, 410 samples/s, \d+[ms] left")
        )
        await expect(training.get_by_role("progressbar", name="Steps done")).to_be_visible()
        await expect(training.locator(".ago")).to_contain_text("s ago")
        before = await steps.text_content()
        await expect(training.locator(".sum")).to_contain_text(
            re.compile(r"GPU-seconds: \d+ allocated, \d+ kept \(\d\d%\)")
        )
        parts = training.locator(".buckets dt")
        await expect(parts).to_have_text(
            ["kept", "repeated", "stalled", "joining", "starting", "leaving"]
        )
        bar = training.locator(".buckets > svg")
        await expect(bar).to_have_attribute("aria-label", re.compile(r"\d+ kept, \d+ repeated, "))
        await expect(
            training.get_by_role("table", name="Pace at each size so far")
        ).to_contain_text(re.compile("1 worker210 samples/s2 workers410 samples/s"))
        await expect(steps).not_to_have_text(before or "")  # within seconds
        await expect(training.locator(".spent")).to_be_visible()
        await expect(training.locator(".spent > svg")).to_have_attribute(
            "aria-label", re.compile(r"Since .*: \d+ allocated, \d+ kept")
        )
        looks = await bar.locator("rect").evaluate_all(
            "parts => parts.map((part) => [part.getAttribute('fill'), part.getAttribute('height')])"
        )
        assert len({str(look) for look in looks}) == len(looks)  # no two differ by colour alone


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(says(""), id="nobody writes"),
        pytest.param(says("<img src=x onerror=alert(1)>"), id="markup"),
        pytest.param(says(TOO_LONG), id="a number too long"),
        pytest.param(refuses, id="no right to exec"),
    ],
)
async def test_without_a_line_only_the_bounds_are_shown(api: TinyApi, talk: Talk) -> None:
    api.streams["/exec"] = Shells(talk).serve
    empty = Spent(buckets=Buckets(starting=40.0))
    put_job(api, "train", size=2, gpus=4, memory=Memory(spent=empty))
    async with served(api) as address, opened(link(address)) as page:
        await expect(panel(page).locator(".sum")).to_contain_text(
            re.compile(r"GPU-seconds: \d+ allocated, kept at most \d+$")
        )
        for part in (".steps", ".buckets", ".spent", ".rates"):
            await expect(panel(page).locator(part)).to_be_hidden()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("ml/train: Running")
        assert await page.locator("main img").count() == 0


async def test_a_job_that_is_not_elastic_has_no_such_panel(api: TinyApi) -> None:
    api.streams["/exec"] = Shells(tells).serve
    put_job(api, "train", size=2, annotations={"mpijob-elastic/enabled": "false"})
    async with served(api) as address, opened(link(address)) as page:
        await expect(page.get_by_role("heading", level=1)).to_contain_text("ml/train: Running")
        await expect(panel(page)).to_have_count(0)
