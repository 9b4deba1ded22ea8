"""What admission adds to creating a launcher pod through the API server: with the webhook minus without.

Blocks of dry-run creations with and without the webhook registered take turns (with, without, without, with), so that
a machine that slows down or speeds up meanwhile does so for both. Each answer is checked for what the webhook does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from bench import admission
from bench.statistics import percentile
from lab import registration
from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from mpijob_elastic.kube.client import Client

# Creations of a block, by how many are under way at once.
CALLERS: Mapping[int, int] = {1: 200, 16: 800}
TURNS = (True, False, False, True)
PATIENCE = 15.0
POLL = 0.05


@dataclass(frozen=True, kw_only=True)
class Added:
    """Milliseconds that admission adds to the 50th and 99th percentile, and the percentiles without it."""

    p50: float
    p99: float
    p50_without: float
    p99_without: float


async def run(
    cluster: Cluster, installed: Installed, client: Client, pod: bytes, *, namespace: str, callers: int
) -> Added:
    """One round of turns; at its end the webhook is registered. Raises LabError, and what `Client.request` raises."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for asked in TURNS:
        await _switch(cluster, installed, client, pod, namespace=namespace, asked=asked)
        took[asked] += await _block(client, pod, namespace=namespace, callers=callers, asked=asked)
    half, nearly_all = ({asked: percentile(took[asked], percent) * 1000 for asked in took} for percent in (50, 99))
    return Added(
        p50=half[True] - half[False],
        p99=nearly_all[True] - nearly_all[False],
        p50_without=half[False],
        p99_without=nearly_all[False],
    )


async def _switch(
    cluster: Cluster, installed: Installed, client: Client, pod: bytes, *, namespace: str, asked: bool
) -> None:
    """Register the webhook, or take it away, and wait until the API server acts on that."""
    if asked:
        registration.register(cluster, port=installed.webhook_port)
    else:
        registration.unregister(cluster)
    deadline = time.monotonic() + PATIENCE
    while _was_asked(await admission.try_create(client, namespace, pod)) != asked:
        if time.monotonic() > deadline:
            does = "does not ask" if asked else "asks"
            raise LabError(f"after {PATIENCE:.0f} s the API server still {does} the webhook")
        await asyncio.sleep(POLL)


async def _block(client: Client, pod: bytes, *, namespace: str, callers: int, asked: bool) -> list[float]:
    took: list[float] = []

    async def caller() -> None:
        for _ in range(CALLERS[callers] // callers):
            begin = time.perf_counter()
            answer = await admission.try_create(client, namespace, pod)
            took.append(time.perf_counter() - begin)
            if _was_asked(answer) != asked:
                raise LabError(f"a pod was {'not ' if asked else ''}changed by the webhook in the midst of a block")

    await asyncio.gather(*(caller() for _ in range(callers)))
    return took


def _was_asked(answer: bytes) -> bool:
    return admission.MARK.encode() in answer
