"""The small parts of the server: health and metrics, and bodies that share a bounded memory."""

import asyncio

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests.product.webhook.certificates.material import DAY, NOON, authority, leaf
from webhook.admission import AdmissionMetrics
from webhook.certificates.serving import Serving
from webhook.listener import Bodies, Crowded
from webhook.server import health

PAIR = leaf(authority())


class Setup:
    """A health port whose certificate, clock and draining a test can set."""

    def __init__(self) -> None:
        self.now = NOON
        self.serving, self.draining, self.metrics = Serving(), asyncio.Event(), AdmissionMetrics()
        self.serving.load(PAIR.certificate_pem, PAIR.key_pem)

    async def asked(self, path: str) -> tuple[int, str]:
        paths = health(
            serving=self.serving,
            draining=self.draining,
            metrics=self.metrics,
            wall=lambda: self.now,
        )
        async with TestClient(TestServer(paths)) as client, client.get(path) as response:
            return response.status, await response.text()


async def test_ready_only_with_a_certificate_that_is_valid_now() -> None:
    setup = Setup()
    assert await setup.asked("/readyz") == (200, "ok\n")
    for now in (NOON + 6 * DAY, NOON - DAY):
        setup.now = now
        assert await setup.asked("/readyz") == (503, "no valid certificate\n")
    setup.now, setup.serving = NOON, Serving()
    assert await setup.asked("/readyz") == (503, "no valid certificate\n")


async def test_not_ready_while_draining_but_alive() -> None:
    setup = Setup()
    setup.draining.set()
    assert await setup.asked("/readyz") == (503, "draining\n")
    assert await setup.asked("/healthz") == (200, "ok\n")


async def test_metrics() -> None:
    setup = Setup()
    for kind in ("Pod", "x" * 1000, "y"):
        setup.metrics.review(
            kind=kind, operation="CREATE" if kind == "Pod" else kind, outcome="unchanged"
        )
    status, text = await setup.asked("/metrics")
    assert status == 200
    found = dict(
        line.rsplit(" ", 1)
        for line in text.splitlines()
        if line.startswith("mpijob_elastic_webhook")
    )
    assert (
        float(found["mpijob_elastic_webhook_certificate_expiry_timestamp_seconds"])
        == (NOON + 6 * DAY).timestamp()
    )
    counts = {
        name.partition("{")[2]: value for name, value in found.items() if "reviews_total" in name
    }
    assert counts == {
        'kind="Pod",operation="CREATE",outcome="unchanged"}': "1.0",
        'kind="other",operation="other",outcome="unchanged"}': "2.0",
    }


async def test_a_body_whose_time_ends_while_it_is_given_up_fails_nobody_else() -> None:
    bodies, limits = Bodies(most=10), list[asyncio.Timeout]()

    async def greedy() -> None:
        async with asyncio.timeout(60) as limit:
            limits.append(limit)
            with bodies.reading("greedy", limit) as grew:
                grew(8)
                await asyncio.Event().wait()

    task = asyncio.create_task(greedy())
    await asyncio.sleep(0)
    limits[0].reschedule(0.0)
    await asyncio.sleep(0)  # its time is over, but it has not run since
    assert not task.done()
    with bodies.reading("other", asyncio.timeout(60)) as grew:
        grew(4)
    with pytest.raises(Crowded):
        await task
