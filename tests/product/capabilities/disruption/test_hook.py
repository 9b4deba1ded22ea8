"""The look at an eviction: what is asked and written, and that it passes where anything fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.disruption.hook import Evictions
from mpijob_elastic.kube import errors
from tests.doubles.direct import DirectClient, Sent
from tests.product.capabilities.disruption.evicted import (
    EVICTION,
    released,
    request,
    requested,
    worker,
)
from tests.product.webhook.answers import NOTHING, NOW, knowing, running
from tests.product.webhook.objects import Object, body, mpi_job
from webhook.admission import Admission, AdmissionMetrics
from webhook.listener import Limits as Bounds
from webhook.listener import listening

SECRET = "/evict/5ec2e7"
BUDGET = errors.Throttled(
    status=429, reason="TooManyRequests", message="it would violate the budget"
)


class Api(DirectClient):
    """A client that gets these answers, or raises them."""

    def __init__(self, **answers: Object | Exception) -> None:
        launcher = objects.launcher(mpi_job())
        objects.mounted(launcher).append({"key": names.KEY_DISCOVER_HOSTS})
        found: dict[str, Object | Exception] = {"worker": worker(), "evict": {}, "mark": {}}
        self.answers = {
            **found,
            "launcher": {**launcher, "status": {"phase": "Running"}},
            **answers,
        }
        super().__init__(self._answered)

    async def _answered(self, sent: Sent) -> object:
        assert sent.limits.throttled == 0.0
        kinds = {"train-worker-0": "worker", "train-launcher": "launcher", "eviction": "evict"}
        answer = self.answers["mark" if sent.method == "PATCH" else kinds[sent.name]]
        if isinstance(answer, TimeoutError):
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def marks(self) -> list[Object]:
        return [sent.body["metadata"] for sent in self.sent if sent.method == "PATCH"]


def evictions(api: Api, *, secret: str = SECRET) -> Evictions:
    return Evictions(api, context=knowing(running()), secret_path=lambda: secret)


async def test_the_first_try_asks_the_budgets_and_marks_the_pod_and_the_next_writes_nothing() -> (
    None
):
    api = Api()
    assert (await evictions(api).answer(request(), within=1.0)).outcome == "postponed"
    assert api.marks == [{"uid": "w", "annotations": {EVICTION_MARK: requested(NOW)}}]
    assert [dict(sent.query) for sent in api.sent if sent.name == "eviction"] == [{"dryRun": "All"}]
    api = Api(worker=worker(mark=requested(NOW - 1)))
    assert (await evictions(api).answer(request(), within=1.0)).outcome == "postponed"
    assert [sent.method for sent in api.sent] == ["GET"]


@pytest.mark.parametrize(
    "answers",
    [
        {"worker": worker(mark=released(NOW - 1))},
        {"evict": BUDGET},
        {"evict": errors.Forbidden(status=403, reason="Forbidden", message="by a policy")},
        {"launcher": {**objects.launcher(mpi_job()), "status": {"phase": "Running"}}},
    ],
)
async def test_what_need_not_wait_passes_unmarked(answers: dict[str, Any]) -> None:
    api = Api(**answers)
    assert (await evictions(api).answer(request(), within=1.0)).outcome == "unchanged"
    assert not api.marks


@pytest.mark.parametrize("name", ["web-1", "train-worker-x", "other-worker-0", "-worker-0"])
async def test_about_nobody_else_anything_is_asked(name: str) -> None:
    api = Api()
    assert (await evictions(api).answer(request(name=name), within=1.0)).verdict.allowed
    assert not api.sent


@pytest.mark.parametrize("what", ["worker", "launcher", "mark", "evict"])
@pytest.mark.parametrize(
    "failure",
    [
        errors.Unreachable("no answer"),
        errors.ApiError(status=500, reason="", message="x"),
        TimeoutError(),
    ],
)
async def test_an_eviction_passes_where_anything_fails_or_hangs(
    what: str, failure: Exception
) -> None:
    api = Api(**{what: failure})
    answer = await evictions(api).answer(request(), within=1.0)
    assert answer.verdict.allowed
    refused = what == "evict" and isinstance(failure, errors.ApiError)
    assert answer.outcome == ("unchanged" if refused else "error")


@pytest.mark.parametrize("spoiled", [{"metadata": {}, "status": []}, []])
async def test_a_pod_that_cannot_be_read_passes(spoiled: Any) -> None:
    assert (await evictions(Api(worker=spoiled)).answer(request(), within=1.0)).verdict.allowed


@asynccontextmanager
async def serving(answering: Evictions | None) -> AsyncIterator[aiohttp.ClientSession]:
    admission = Admission(
        limits=Bounds(),
        metrics=AdmissionMetrics(),
        draining=asyncio.Event(),
        context=NOTHING,
        hooks=(answering,) if answering else (),
    )
    listen = partial(listening, host="127.0.0.1", port=0, limits=Bounds(), finish_seconds=1.0)
    async with (
        listen(admission.application()) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def test_only_who_knows_the_path_is_answered() -> None:
    sent = body(EVICTION, subResource="eviction")
    api = Api()
    async with serving(evictions(api)) as client:
        for path in ("/evict/", "/evict/guessed", f"{SECRET}/more", "/", f"/validate{SECRET}"):
            async with client.post(path, data=sent) as response:
                assert response.status == 404
        for path in ("/validate", "/mutate"):
            async with client.post(path, data=sent) as response:
                assert (await response.json())["response"]["allowed"]
        assert not api.sent
        async with client.post(SECRET, data=sent) as response:
            assert (await response.json())["response"]["status"]["code"] == 429
    for nobody in (evictions(Api(), secret=""), None):
        async with serving(nobody) as client, client.post("/evict/", data=sent) as response:
            assert response.status == 404


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ({}, 1.0),
        ({"timeout": "1s"}, 1.0),
        ({"timeout": "9s"}, 9.0),
        ({"timeout": "30s"}, 30.0),
        ({"timeout": "31s"}, 1.0),
        ({"timeout": "0s"}, 1.0),
        ({"timeout": "1h"}, 1.0),
        ({"timeout": ""}, 1.0),
    ],
)
async def test_a_review_takes_as_long_as_the_api_server_waits(
    query: dict[str, str], seconds: float
) -> None:
    """The API server's `timeout` is timeoutSeconds of the configuration, which users may change."""
    api = Api()
    async with (
        serving(evictions(api)) as client,
        client.post(SECRET, params=query, data=body(EVICTION, subResource="eviction")) as response,
    ):
        assert response.status == 200
    assert {sent.limits.attempt for sent in api.sent} == {seconds}
