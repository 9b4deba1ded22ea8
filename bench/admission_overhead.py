"""Measure the time that the webhook adds to the creation of a pod, and to a try to evict one, through the API server.

Blocks with and without the registered webhook alternate (with, without, without, with), so that a
change of the machine's speed affects both. Creations are dry runs, and evictions are refused in any
case. Each answer is checked for the webhook's part in it.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from bench import admission
from bench.figures import percentile
from bench.processes import usage
from lab import registration
from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter

TURNS = (True, False, False, True)
PATIENCE = 120.0
POLL = 0.05


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A pattern of creations: each of `callers` starts one every `interval` seconds; 0: without a pause.

    evicts: they are tries to evict one worker that drains.

    Without a pause the machine is always busy, so the latency only shows its throughput. Users do
    not create jobs so.
    """

    callers: int
    interval: float
    creations: int
    role: str = names.ROLE_LAUNCHER
    evicts: bool = False

    def __str__(self) -> str:
        pace = f"{self.callers / self.interval:g} a second" if self.interval else "without a pause"
        what = f"{self.role} {'eviction' if self.evicts else 'creation'}"
        return f"{what}, {self.callers} caller{'s' if self.callers > 1 else ''}, {pace}"


PATTERNS = (
    Pattern(callers=1, interval=0, creations=200),
    Pattern(callers=1, interval=0, creations=200, role=names.ROLE_WORKER),
    Pattern(callers=1, interval=0, creations=200, role=names.ROLE_WORKER, evicts=True),
    Pattern(callers=16, interval=0.32, creations=400),
    Pattern(callers=16, interval=0, creations=800),
)


@dataclass(frozen=True, kw_only=True)
class Added:
    """Milliseconds that the webhook adds to the 50th and 99th percentile, and the percentiles without it.

    a_cpu_second: requests that it answered a second of its CPU time.
    """

    p50: float
    p99: float
    p50_without: float
    p99_without: float
    a_cpu_second: float


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The place of the creations: a lab with our objects and a running webhook `pid`, and the pods to send, by role."""

    cluster: Cluster
    installed: Installed
    pid: int
    client: ApiWriter
    namespace: str
    pods: Mapping[str, bytes]

    async def ask(self, pattern: Pattern) -> bool:
        """Create a pod as a dry run, or try to evict one; return True if the webhook was asked.

        Raises as `ApiReader` does.
        """
        if pattern.evicts:
            return admission.DRAINING in await admission.try_evict(self.client, self.namespace)
        return admission.MARK in await admission.try_create(
            self.client, self.namespace, self.pods[pattern.role]
        )


async def run(ground: Ground, pattern: Pattern) -> Added:
    """Run a round of blocks; the webhook is registered at the end.

    Raises LabError, and what `ApiReader` raises.
    """
    took: dict[bool, list[float]] = {True: [], False: []}
    cpu = 0.0
    for asked in TURNS:
        await _switch(ground, pattern, asked=asked)
        before = usage(ground.pid).cpu
        took[asked] += await _block(ground, pattern, asked=asked)
        cpu += usage(ground.pid).cpu - before
    p50, p99 = (percentile(took[False], percent) * 1000 for percent in (50, 99))
    return Added(
        p50=percentile(took[True], 50) * 1000 - p50,
        p99=percentile(took[True], 99) * 1000 - p99,
        p50_without=p50,
        p99_without=p99,
        # A process that used less than a tick of the clock is taken to have used one.
        a_cpu_second=len(took[True]) / max(cpu, 0.01),
    )


async def _switch(ground: Ground, pattern: Pattern, *, asked: bool) -> None:
    """Register or unregister the webhook, and wait until the API server follows."""
    if asked:
        registration.register(ground.cluster, port=ground.installed.webhook_port)
    else:
        registration.unregister(ground.cluster)
    deadline = time.monotonic() + PATIENCE
    while await ground.ask(pattern) != asked:
        if time.monotonic() > deadline:
            does = "does not ask" if asked else "asks"
            raise LabError(f"after {PATIENCE:.0f} s the API server still {does} the webhook")
        await asyncio.sleep(POLL)


async def _block(ground: Ground, pattern: Pattern, *, asked: bool) -> list[float]:
    took: list[float] = []
    begin = time.perf_counter()

    async def caller(number: int) -> None:
        for turn in range(pattern.creations // pattern.callers):
            due = begin + (turn + number / pattern.callers) * pattern.interval
            await asyncio.sleep(due - time.perf_counter())
            asked_at = time.perf_counter()
            was_asked = await ground.ask(pattern)
            took.append(time.perf_counter() - asked_at)
            # The API server goes on without a webhook that is later than its timeout, as on a busy
            # machine.
            if was_asked != asked and not (asked and took[-1] >= registration.TIMEOUT):
                raise LabError(
                    f"the webhook was {'' if was_asked else 'not '}asked in a request of {took[-1]:.1f} s"
                )

    await asyncio.gather(*(caller(number) for number in range(pattern.callers)))
    return took
