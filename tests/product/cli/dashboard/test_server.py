"""The page's server as a browser, or another program, meets it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.dashboard import server
from mpijob_elastic.cli.jobs import snapshot
from mpijob_elastic.cli.target import Where
from tests.faults.waiting import PATIENCE
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, Commands, forbidden, serving, world

TOKEN = "s3cret"
MINE = {"Authorization": f"Bearer {TOKEN}"}


class Page:
    """What the server answers."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address, self._session = address, session

    async def status(self, path: str, **headers: str) -> int:
        async with self._session.get(self.address + path, headers=headers) as answer:
            return answer.status

    async def parts(self, path: str, *awaited: str) -> dict[str, Any]:
        """The first value of each part, until all that are awaited have come."""
        found: dict[str, Any] = {}
        async with (
            asyncio.timeout(PATIENCE),
            self._session.get(self.address + path, headers=MINE) as answer,
        ):
            async for line in answer.content:
                if line.strip():
                    part = json.loads(line)
                    found.setdefault(part["part"], part["value"])
                if set(awaited) <= found.keys():
                    return found
        return found


@pytest.fixture
def answers() -> Answers:
    return world(events=[])


@pytest.fixture
async def page(tmp_path: Path, answers: Answers) -> AsyncIterator[Page]:
    async with (
        serving(tmp_path, answers) as (where, _),
        reached(Where(kubeconfig=where.kubeconfig)) as (client, namespace),
        server.serving(client, namespace, token=TOKEN) as address,
        aiohttp.ClientSession() as session,
    ):
        yield Page(address, session)


@pytest.mark.parametrize("path", ["/api/jobs", "/api/jobs/default/train"])
async def test_data_needs_the_token(page: Page, path: str) -> None:
    assert await page.status(path) == 401
    assert await page.status(path, Authorization="Bearer guess") == 401
    assert await page.status(f"{path}?token={TOKEN}", Cookie=f"token={TOKEN}") == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/page.js", "/api/jobs"])
async def test_nobody_else_is_answered_even_with_the_token(
    page: Page, path: str, headers: dict[str, str]
) -> None:
    assert await page.status(path, **MINE, **headers) == 403


async def test_every_answer_forbids_what_the_page_does_not_need(page: Page) -> None:
    for path, status in (
        ("/", 200),
        ("/page.js", 200),
        ("/page.css", 200),
        ("/api/jobs", 401),
        ("/none", 404),
    ):
        async with page._session.get(page.address + path) as answer:
            assert answer.status == status
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "trusted-types 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Set-Cookie" not in answer.headers
            assert "Access-Control-Allow-Origin" not in answer.headers


async def test_nothing_but_a_read_is_answered(page: Page) -> None:
    for path in ("/", "/api/jobs", "/api/jobs/default/train"):
        async with page._session.post(page.address + path, headers=MINE) as answer:
            assert answer.status in {403, 405}


@pytest.mark.parametrize("name", ["..%2f..%2fsecrets", "a%2fb", "train%3fwatch", "UPPER", "-x"])
async def test_only_a_name_gets_into_a_path_of_the_cluster(page: Page, name: str) -> None:
    assert await page.status(f"/api/jobs/{name}/train", **MINE) == 404
    assert await page.status(f"/api/jobs/default/{name}", **MINE) == 404


async def test_all_jobs_are_what_get_says(page: Page, answers: Answers, command: Commands) -> None:
    found = await page.parts("/api/jobs", "listed")
    assert found["about"]["namespace"] == "default"
    printed = json.loads(await command.get(answers, output="json"))
    assert found["default/train"]["report"] == printed


async def test_a_job_is_what_get_and_explain_say(
    page: Page, answers: Answers, command: Commands
) -> None:
    found = await page.parts(
        "/api/jobs/default/train",
        "report",
        "headline",
        "explanation",
        "events",
        "log",
        "lost",
        "history",
    )
    assert found["history"] == {"namespace": "default", "name": "train", "changes": []}
    assert found["report"] == json.loads(await command.get(answers, output="json"))
    assert found["headline"].startswith(
        "default/train: Running, 2 of 2 listed; whether they train is not known"
    )
    printed = json.loads((await command.explain(answers, output="json", look=True))[1])
    assert found["explanation"] == printed
    assert found["lost"] == ""


async def test_a_worker_that_waits_is_told_in_the_list(page: Page, answers: Answers) -> None:
    pods = answers["pods"]
    assert isinstance(pods, list)
    pods[:] = [pods[0], pods[1], worlds.worker(1, phase="Pending")]
    [finding] = (await page.parts("/api/jobs", "listed"))["default/train"]["says"]
    assert finding["level"] in {"waiting", "wrong"}
    assert finding["says"].startswith("train-worker-1 ")


@pytest.mark.parametrize("resource", ["mpijobs", "pods", "configmaps"])
async def test_a_missing_right_is_told(page: Page, answers: Answers, resource: str) -> None:
    answers[resource] = forbidden(resource)
    for path in ("/api/jobs", "/api/jobs/default/train"):
        assert f"{resource} is forbidden" in (await page.parts(path, "refused"))["refused"]


async def test_without_the_right_to_read_roles_the_rest_is_shown(
    page: Page, answers: Answers
) -> None:
    answers["roles"] = forbidden("roles")
    assert (await page.parts("/api/jobs", "listed"))["default/train"]["report"]["execNames"] is None


async def test_a_job_that_is_not_there(page: Page) -> None:
    refused = (await page.parts("/api/jobs/default/trian", "refused"))["refused"]
    assert refused == "no MPIJob trian in namespace default; did you mean train?"


async def test_no_page_is_opened_for_a_job_that_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as (where, _):
        with pytest.raises(snapshot.NoSuchJob):
            await server.dashboard(where, job="train", port=0, browser=True)


async def test_the_link_leads_to_the_page_with_its_token_and_to_the_job(
    tmp_path: Path, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, answers) as (where, _):
        for job, end in ((None, ""), ("train", "&job=default/train")):
            page = asyncio.create_task(server.dashboard(where, job=job, port=0, browser=False))
            said = ""
            while "It is served until Ctrl-C." not in said and not page.done():
                said += capsys.readouterr().out
                await asyncio.sleep(0.01)
            page.cancel()
            await asyncio.wait([page])
            assert re.match(rf"Open http://127\.0\.0\.1:\d+/#token=[\w-]{{43}}{end}\n", said)
