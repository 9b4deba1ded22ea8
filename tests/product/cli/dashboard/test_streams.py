"""What a reader of the stream gets, slow or not."""

import asyncio
import json
from typing import Any

import pytest

from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.dashboard import streams
from mpijob_elastic.cli.dashboard.streams import Channel
from mpijob_elastic.cli.dashboard.training import Trainings
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.resources import EVENTS
from tests.doubles.api import refused
from tests.doubles.direct import Sent
from tests.product.cli.served import NAMESPACE, one_job


def read(lines: bytes) -> list[tuple[str, Any]]:
    return [(line["part"], line["value"]) for line in map(json.loads, lines.splitlines())]


async def test_a_slow_reader_gets_the_newest_of_each_part() -> None:
    sending = Channel()
    lines = sending.lines()
    for size in range(1000):
        sending.put("ml/train", {"size": size})
        sending.put("ml/other", None)
    assert read(await anext(lines)) == [("ml/train", {"size": 999}), ("ml/other", None)]
    assert sending.empty


async def test_what_the_reader_has_is_not_sent_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.01)
    sending = Channel()
    lines = sending.lines()
    sending.put("report", 1)
    await anext(lines)
    sending.put("report", 1)
    assert await anext(lines) == b"\n"
    sending.put("report", 2)
    sending.put("report", 1)  # back before it was sent
    assert read(await anext(lines)) == [("report", 1)]


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_events_that_may_not_be_followed_are_an_error_of_their_box_alone(verb: str) -> None:
    def answer(sent: Sent) -> None:
        asked = "watch" if sent.query.get("watch") else "list"
        if sent.path == EVENTS.path(NAMESPACE) and asked == verb:
            raise refused(403, "Forbidden", f'User "u" cannot {verb} resource "events"')

    async with one_job() as api, asyncio.timeout(10.0):
        api.hook = answer
        channel = Channel()
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        async with reached(where) as (client, _):
            work = streams.of_job(client, (NAMESPACE, "train"), channel, Trainings())
            running = asyncio.create_task(work)
            async for lines in channel.lines():
                said = dict(read(lines)).get("events", {})
                if "error" in said:
                    break
            assert "events" in said["error"]
            assert not running.done()
            running.cancel()
            await asyncio.wait([running])
