"""What a reader of the stream gets, slow or not."""

import json
from typing import Any

from mpijob_elastic.cli.dashboard import streams
from mpijob_elastic.cli.dashboard.streams import Channel


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
