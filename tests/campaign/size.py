"""Size: what a controller costs beside 1,000, 10,000 and 100,000 workers, and how each cost grows.

The controller is a process of its own; the API server is `size_api`, so what the real one costs is not in the figures.
Times need a machine that does nothing else, CPU and memory do not.
"""

import asyncio
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

import yaml

from bench.processes import MIB
from tests.campaign.part import Options, Outcome
from tests.campaign.size_run import Cost, Violated, measure

SIZES = (1_000, 10_000, 100_000)
# What a further worker costs, compared with the step before; what must not grow, compared with the smallest fleet.
# CPU only: a busy machine changes times more than a larger fleet does.
MOST_GROWTH = 1.5
GROWS = ("publish_cpu", "start_cpu")
# Memory at rest at most, in MiB and KiB a worker: small fleets find room in what the process holds anyway.
MEMORY, MEMORY_A_WORKER = 90.0, 1.5
STAYS = ("events_cpu", "scale_in_cpu")
CONTROLLER = Path(__file__).parents[2] / "config" / "base" / "controller.yaml"
ROWS = {
    "publish": "first start: all host lists published, s",
    "publish_cpu": "first start: CPU, s",
    "ready": "start to ready, s",
    "leads": "start to leading, s",
    "start_cpu": "start to ready: CPU, s",
    "start_peak": "memory at most while it starts, MiB",
    "rest_memory": "memory at rest, MiB",
    "rest_cpu": "CPU at rest, s a minute",
    "events_cpu": "CPU of 1,000 pod events, s",
    "listed": "1,000 → 1 workers: host list right, s",
    "deleted": "1,000 → 1 workers: last pod gone, s",
    "scale_in_cpu": "1,000 → 1 workers: CPU, s",
    "scale_in_writes": "1,000 → 1 workers: writes but Events",
    "scale_in_execs": "1,000 → 1 workers: looks by exec",
    "peak": "memory at most, MiB",
}


def run(options: Options) -> Outcome:
    """Measure each size; with `minutes`, as many as begin in that time."""
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # it tells of callers that are gone
    found: dict[int, Cost] = {}
    violations: list[str] = []
    for workers, _ in zip(SIZES, options.runs(len(SIZES)), strict=False):
        try:
            found[workers] = asyncio.run(measure(workers, Random(options.seed)))
        except Violated as wrong:
            violations.append(f"{workers:,} workers: {wrong}")
        print(table(found), file=sys.stderr, flush=True)
    violations += judged(found, limit=_limit())
    numbers = [
        f"{workers:,} workers: ready in {cost.ready:.1f} s, {cost.peak:.0f} MiB at most, "
        f"{cost.events_cpu:.2f} s of CPU for 1,000 pod events"
        for workers, cost in found.items()
    ]
    return Outcome(runs=len(found), violations=tuple(violations), numbers="; ".join(numbers))


def table(found: Mapping[int, Cost]) -> str:
    """Return the costs as a Markdown table, a column for each number of workers."""
    rows = [["workers", *(f"{workers:,}" for workers in found)], ["---"] * (1 + len(found))]
    rows += [[words, *(_shown(getattr(cost, name)) for cost in found.values())] for name, words in ROWS.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def judged(found: Mapping[int, Cost], *, limit: float) -> list[str]:
    """Return what costs or grows too much; `limit` is the memory limit of the Deployment in MiB."""
    sizes = sorted(found)
    wrong = [
        f"{size:,} workers: {found[size].peak:.0f} MiB are above the limit of {limit:.0f} MiB"
        for size in sizes
        if found[size].peak > limit
    ]
    wrong += [
        f"{size:,} workers: {found[size].rest_memory:.0f} MiB at rest"
        for size in sizes
        if found[size].rest_memory > MEMORY + size * MEMORY_A_WORKER / 1024
    ]
    for name in GROWS:
        for first, second, third in zip(sizes, sizes[1:], sizes[2:], strict=False):
            before, after = _slope(found, name, first, second), _slope(found, name, second, third)
            if after > MOST_GROWTH * before:
                wrong.append(f"{ROWS[name]}: a worker costs {after:.3g} above {second:,}, {before:.3g} below")
    for name in STAYS:
        costs = {size: float(getattr(found[size], name)) for size in sizes}
        at_first = costs.get(min(sizes, default=0), 0.0)
        wrong += [
            f"{ROWS[name]}: {cost:.3g} at {size:,} workers, {at_first:.3g} before"
            for size, cost in costs.items()
            if not 0 < cost <= MOST_GROWTH * at_first  # rest is left out, and a busy machine hides too much in it
        ]
    return wrong


def _slope(found: Mapping[int, Cost], name: str, small: int, large: int) -> float:
    return float(getattr(found[large], name) - getattr(found[small], name)) / (large - small)


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _limit() -> float:
    """Return the memory limit of the controller's container in MiB."""
    deployment = yaml.safe_load(CONTROLLER.read_text())
    text: str = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert text.endswith("Mi")
    return float(text.removesuffix("Mi")) * 2**20 / MIB
