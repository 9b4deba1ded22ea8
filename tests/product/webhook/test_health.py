"""Alive, ready, measured."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from aiohttp.test_utils import TestClient, TestServer

from tests.product.webhook.certificates.material import DAY, NOON, authority, leaf
from webhook.certificates.serving import Serving
from webhook.health import application
from webhook.metrics import Metrics


class Setup:
    """A health port whose certificate, clock and draining a test can set."""

    def __init__(self) -> None:
        self.now = NOON
        self.serving = Serving()
        self.draining = asyncio.Event()
        self.metrics = Metrics()

    def wall(self) -> datetime:
        return self.now

    @asynccontextmanager
    async def asked(self, path: str) -> AsyncIterator[tuple[int, str]]:
        paths = application(serving=self.serving, draining=self.draining, metrics=self.metrics, wall=self.wall)
        async with TestClient(TestServer(paths)) as client, client.get(path) as response:
            yield response.status, await response.text()

    async def ready(self) -> tuple[int, str]:
        async with self.asked("/readyz") as answer:
            return answer


async def test_ready_only_with_a_certificate_that_is_valid_now() -> None:
    setup = Setup()
    none = (503, "no valid certificate\n")
    assert await setup.ready() == none
    pair = leaf(authority())
    setup.serving.load(pair.certificate_pem, pair.key_pem)
    assert await setup.ready() == (200, "ok\n")
    setup.now = NOON + 6 * DAY
    assert await setup.ready() == none
    setup.now = NOON - DAY
    assert await setup.ready() == none


async def test_not_ready_while_draining_but_alive() -> None:
    setup = Setup()
    pair = leaf(authority())
    setup.serving.load(pair.certificate_pem, pair.key_pem)
    setup.draining.set()
    assert await setup.ready() == (503, "draining\n")
    async with setup.asked("/healthz") as answer:
        assert answer == (200, "ok\n")


async def test_metrics() -> None:
    setup = Setup()
    pair = leaf(authority())
    setup.serving.load(pair.certificate_pem, pair.key_pem)
    for kind in ("Pod", "x" * 1000, "y"):
        setup.metrics.review(kind=kind, operation="CREATE" if kind == "Pod" else kind, outcome="unchanged")
    async with setup.asked("/metrics") as (status, text):
        assert status == 200
    lines = text.splitlines()
    expiry = next(line for line in lines if line.startswith("mpijob_elastic_webhook_certificate_expiry"))
    assert float(expiry.split()[1]) == (NOON + 6 * DAY).timestamp()
    counts = [line for line in lines if line.startswith("mpijob_elastic_webhook_reviews_total")]
    assert sorted(counts) == [
        'mpijob_elastic_webhook_reviews_total{kind="Pod",operation="CREATE",outcome="unchanged"} 1.0',
        'mpijob_elastic_webhook_reviews_total{kind="other",operation="other",outcome="unchanged"} 2.0',
    ]
