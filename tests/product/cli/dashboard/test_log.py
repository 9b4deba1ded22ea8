"""The launcher's last lines as the page gets them, from a log that is read as the kubelet reads it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from mpijob_elastic.cli.dashboard import streams
from tests.faults.waiting import PATIENCE
from tests.product.cli.served import TOKEN, one_job, served


def read_log(text: bytes, query: Mapping[str, str]) -> bytes:
    """Return what the kubelet sends: the last lines, cut at their end where they are too long."""
    lines = text.splitlines(keepends=True)
    last = b"".join(lines[-int(query.get("tailLines", len(lines))) :])
    return last[: int(query.get("limitBytes", len(last)))]


def steps(count: int, wide: int) -> list[str]:
    return [f"step {number} ".ljust(wide, ".") for number in range(1, count + 1)]


async def shown(text: str) -> dict[str, Any]:
    """Return the part of the log; what was before a restart has the same text."""

    async def log(request: web.Request) -> web.StreamResponse:
        return web.Response(body=read_log(text.encode(), request.query))

    async with one_job() as api, served(api) as address, aiohttp.ClientSession() as session:
        api.streams["/log"] = log
        get = session.get(
            f"{address}/api/jobs/ml/train", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        async with asyncio.timeout(PATIENCE), get as answer:
            async for line in answer.content:
                part: dict[str, Any] = json.loads(line) if line.strip() else {}
                if part.get("part") == "log":
                    found: dict[str, Any] = part["value"]
                    return found
    raise AssertionError("no log")


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        pytest.param(steps(3, 10), 3, id="few"),
        pytest.param(steps(1000, 100), 200, id="many"),
        pytest.param(steps(1000, 510), 128, id="many and long"),
        pytest.param(steps(1000, 511), 128, id="as many as there is room for"),
        pytest.param(["x" * 100_000, "Traceback"], 1, id="one that is too long"),
    ],
)
@pytest.mark.parametrize("of", ["lines", "before"])
async def test_the_newest_lines_are_shown(lines: list[str], kept: int, of: str) -> None:
    assert (await shown("\n".join(lines) + "\n"))[of] == lines[-kept:]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (b"", b""),
        (b"a\nb\n", b"a\nb\n"),
        (b"aaa\nbbb\nccc\n", b"bbb\nccc\n"),  # just as long as there is room for
        (b"aaaa\nbbb\ncccc\n", b"cccc\n"),
        (b"abcdefghijk\n", b"efghijk\n"),
        (b"abcdefghijk", b"defghijk"),
    ],
)
def test_what_does_not_fit_is_cut_off_at_the_start(text: bytes, last: bytes) -> None:
    assert streams.last_lines(text, most=8) == last
