"""Measure when the page of a job is painted, with 10 and with 300 workers: `python -m tests.page_paint [ROUNDS]`.

Dashboard and chromium run beside the API server, which is in memory, in this process. The two jobs
are opened by turns. Times are milliseconds from the navigation: until the browser's
first-contentful-paint, and until the workers are painted.
"""

import asyncio
import logging
import os
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import CDPSession, Page

from mpijob_elastic import names
from mpijob_elastic.kube.resources import LEASES
from mpijob_elastic.telemetry.terminal import say
from tests.browser import opened
from tests.doubles.api import TinyApi
from tests.page_speed import dashboard
from tests.product.cli.served import LEADS, NAMESPACE, put_job

SIZES = (10, 300)
ROUNDS = 15
# Seconds of a tick of /proc/PID/stat.
TICK = 1 / os.sysconf("SC_CLK_TCK")
# Marks the first frame after the one that has workers.
WATCH = """() => {
  const look = () => {
    if (document.querySelectorAll(".lanes tr").length > 1) {
      requestAnimationFrame(() => setTimeout(() => performance.mark("workers")));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
TIMES = """() => {
  const [first] = performance.getEntriesByName("first-contentful-paint");
  const [workers] = performance.getEntriesByName("workers");
  return first && workers ? [first.startTime, workers.startTime] : null;
}"""


@dataclass
class Paint:
    """One opening of the page, in milliseconds."""

    #: Until the first contentful paint.
    first: float
    #: Until the workers are painted.
    workers: float
    #: CPU time of the page's main thread until then.
    page: float
    #: CPU time of the dashboard until then.
    server: float
    #: CPU time of this process, which is the API server, until then.
    api: float


def spent(process: int) -> float:
    """Return the CPU time of a process, in milliseconds."""
    after = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return 1000 * TICK * (int(after[11]) + int(after[12]))


async def busy(tools: CDPSession) -> float:
    """Return the CPU time of the page's main thread since the navigation, in milliseconds."""
    metrics: list[dict[str, Any]] = (await tools.send("Performance.getMetrics"))["metrics"]
    seconds: float = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
    return 1000 * seconds


async def painted(page: Page, tools: CDPSession, process: int, size: int) -> Paint:
    """Open the page of the job with so many workers anew."""
    await page.evaluate("name => { location.hash = name; }", f"#/{NAMESPACE}/of-{size}")
    await page.wait_for_timeout(700)
    server, api = spent(process), 1000 * time.process_time()
    await page.reload()
    times = await page.wait_for_function(TIMES, polling=10)
    first, workers = await times.json_value()
    return Paint(
        first=first,
        workers=workers,
        page=await busy(tools),
        server=spent(process) - server,
        api=1000 * time.process_time() - api,
    )


async def measure(page: Page, process: int, rounds: int) -> dict[int, list[Paint]]:
    """Open both jobs by turns; the first round warms up."""
    tools = await page.context.new_cdp_session(page)
    await tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    await page.add_init_script(f"({WATCH})()")
    found: dict[int, list[Paint]] = {size: [] for size in SIZES}
    for _ in range(rounds + 1):
        for size in SIZES:
            found[size].append(await painted(page, tools, process, size))
    return {size: paints[1:] for size, paints in found.items()}


async def main(rounds: int) -> None:
    """Start everything, measure, and end everything."""
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a reload ends watches
    load = os.getloadavg()[0]
    async with TinyApi(selects=True, bookmark_every=5.0) as api:
        api.put("/version", {})
        api.put(LEASES.path(names.NAMESPACE, names.LEASE), LEADS)
        for size in SIZES:
            put_job(api, f"of-{size}", size=size)
        async with dashboard(api.kubeconfig) as (process, link), opened(link) as page:
            found = await measure(page, process, rounds)
    say(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {rounds} rounds, medians in ms")
    for part in (field.name for field in fields(Paint)):
        few, many = (median(getattr(one, part) for one in found[size]) for size in SIZES)
        say(f"{part:8} {few:7.0f} {many:7.0f}  ratio {many / max(few, 1.0):.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
