"""Measure the page of 200 jobs of 50 workers at 20 changes a second: `python -m tests.page_speed [SECONDS]`.

The API server is in memory, in this process; the dashboard and chromium run beside it. A change is timed from the
moment when it is stored until the page shows it.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE
from dataclasses import dataclass, field

from playwright.async_api import Page

from bench.figures import percentile
from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.telemetry.terminal import say
from tests.browser import opened
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.served import NAMESPACE, put_job, store

JOBS, WORKERS, RATE = 200, 50, 20
SETTLED = 300.0
WATCH = """() => {
  const tasks = new PerformanceObserver((list) => list.getEntries().forEach((task) => long(task.duration)));
  tasks.observe({ type: "longtask" });
  const changes = new MutationObserver((records) => {
    const nodes = records.map(({ target }) => (target.closest ? target : target.parentElement));
    for (const row of new Set(nodes.map((node) => node?.closest("tr[data-key]")).filter(Boolean))) {
      const [workers, count] = row.querySelector(".workers").children;
      saw(Date.now() / 1000, row.dataset.key, `${count.textContent}: ${workers.getAttribute("aria-label")}`);
    }
  });
  const all = { subtree: true, childList: true, characterData: true, attributes: true };
  changes.observe(document.querySelector("table"), all);
}"""


@dataclass
class Seen:
    """due: when changes came that the page does not show yet, as (row, words, whether it will have them).

    took: seconds until it showed the others. tasks: milliseconds of each that took over 50 ms.
    """

    due: dict[tuple[str, str, bool], float] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)

    def long(self, duration: float) -> None:
        """Note a long task."""
        self.tasks.append(duration)

    def saw(self, at: float, row: str, words: str) -> None:
        """Take the time of each change that the row now shows."""
        for key, change, have in [due for due in self.due if due[0] == row]:
            if (change in words) == have:
                self.took.append(at - self.due.pop((key, change, have)))


def change(api: TinyApi, number: int) -> tuple[str, str, bool]:
    """Resize a job, or end or restart a worker of it; return what shows that."""
    turn, index = divmod(number, JOBS)
    name = f"job-{index:03}"
    row = f"{NAMESPACE}/{name}"
    if (turn + index) % 2:
        size = WORKERS + 1 + turn // 2 % 5
        store(api, MPI_JOBS, worlds.mpi_job(name=name, namespace=NAMESPACE, replicas=size))
        return row, f"of {size}:", True
    ends = turn // 2 % 2 == 0
    pod = worlds.worker(3, job=name, namespace=NAMESPACE, phase="Failed" if ends else "Running")
    store(api, PODS, pod, **{names.LABEL_JOB_NAME: name})
    return row, "ended", ends


async def heap(page: Page) -> float:
    """Return the MiB that the page's scripts hold."""
    tools = await page.context.new_cdp_session(page)
    await tools.send("HeapProfiler.collectGarbage")
    used: float = (await tools.send("Runtime.getHeapUsage"))["usedSize"]
    await tools.detach()
    return used / 2**20


async def measure(api: TinyApi, page: Page, seconds: float) -> None:
    """Change jobs for so long, and print what the page made of it."""
    seen = Seen()
    await page.get_by_text(f"{JOBS} jobs: {JOBS} running as asked.").wait_for(timeout=120_000)
    await page.expose_function("saw", seen.saw)
    await page.expose_function("long", seen.long)
    await page.evaluate(WATCH)
    begin, load = time.time(), os.getloadavg()[0]
    for number in range(int(seconds * RATE)):
        await asyncio.sleep(begin + number / RATE - time.time())
        seen.due[change(api, number)] = time.time()
        if number == SETTLED * RATE:
            say(f"heap after {SETTLED:.0f} s: {await heap(page):.1f} MiB")
    await asyncio.sleep(5)
    p50, p99, most = (1000 * percentile(seen.took, percent) for percent in (50, 99, 100))
    say(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {len(seen.took)} changes, {len(seen.due)} not seen")
    say(f"change to page, ms: p50 {p50:.0f}, p99 {p99:.0f}, most {most:.0f}")
    say(f"tasks over 50 ms: {len(seen.tasks)}, the longest {max(seen.tasks, default=0):.0f} ms")
    say(f"heap after {seconds:.0f} s: {await heap(page):.1f} MiB")


async def main(seconds: float) -> None:
    """Start everything, measure, and end everything."""
    async with TinyApi(selects=True, bookmark_every=5.0) as api:
        api.put("/version", {})
        for number in range(JOBS):
            put_job(api, f"job-{number:03}", size=WORKERS)
        command = (sys.executable, "-m", "mpijob_elastic", "dashboard", "-A", "--no-browser", "--kubeconfig")
        process = await asyncio.create_subprocess_exec(*command, str(api.kubeconfig), stdout=PIPE)
        try:
            assert process.stdout is not None
            link = (await process.stdout.readline()).decode().removeprefix("Open ").strip()
            async with opened(link) as page:
                await measure(api, page, seconds)
        finally:
            process.terminate()
            await process.wait()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
