"""Measure the page of 200 jobs of 50 workers at 20 changes a second: `python -m tests.page_speed [SECONDS] [--lab]`.

The dashboard and chromium run beside the API server, which is in memory, in this process. A change
is timed from the moment when it is stored until the page shows it.

With `--lab` it is a real one: pods are pretended by kwok, and no operator or controller runs. A
change is timed from its requestReceivedTimestamp in the audit log, so the time in which the API
server stores it counts too.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from playwright.async_api import Page

from bench import fleet, jobs, namespaces
from bench.audit import Tail
from bench.figures import percentile
from bench.fleet import Fleet
from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.telemetry.terminal import say
from tests.browser import opened
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.served import NAMESPACE, put_job, store

JOBS, WORKERS, RATE = 200, 50, 20
FLEET = Fleet(count=JOBS, workers=WORKERS)
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
    """due: the changes that the page does not show yet, as (row, words, whether it will have them), and their numbers.

    shown: when it showed each of the others. tasks: milliseconds of each that took over 50 ms.
    """

    due: dict[tuple[str, str, bool], int] = field(default_factory=dict)
    shown: dict[int, float] = field(default_factory=dict)
    tasks: list[float] = field(default_factory=list)

    def long(self, duration: float) -> None:
        """Note a long task."""
        self.tasks.append(duration)

    def saw(self, at: float, row: str, words: str) -> None:
        """Take the time of each change that the row now shows."""
        for key, change, have in [due for due in self.due if due[0] == row]:
            if (change in words) == have:
                self.shown[self.due.pop((key, change, have))] = at


@dataclass(frozen=True)
class Change:
    """Change `number`: a job gets the size, or a worker of it ends or runs again."""

    number: int

    @property
    def job(self) -> int:
        return self.number % JOBS

    @property
    def size(self) -> int | None:
        turn = self.number // JOBS
        return WORKERS + 1 + turn // 2 % 5 if (turn + self.job) % 2 else None

    @property
    def phase(self) -> str:
        return "Running" if self.number // JOBS // 2 % 2 else "Failed"

    def shows(self, row: str) -> tuple[str, str, bool]:
        """Return the row, its words, and whether it will have them."""
        return (
            (row, f"of {self.size}:", True) if self.size else (row, "ended", self.phase == "Failed")
        )


class Server(Protocol):
    """An API server with the jobs. namespace: where they are."""

    namespace: str
    kubeconfig: Path

    def name(self, job: int) -> str:
        """Return the name of a job."""

    async def make(self, change: Change) -> None:
        """Make a change."""

    def made(self) -> Mapping[int, float]:
        """Return when each change was made, by its number."""


class InMemory:
    """The server in this process."""

    namespace = NAMESPACE

    def __init__(self, api: TinyApi) -> None:
        self._api, self._made, self.kubeconfig = api, dict[int, float](), api.kubeconfig
        api.put("/version", {})
        for job in range(JOBS):
            put_job(api, self.name(job), size=WORKERS)

    def name(self, job: int) -> str:
        return f"job-{job:03}"

    async def make(self, change: Change) -> None:
        name = self.name(change.job)
        if change.size:
            job = worlds.mpi_job(name=name, namespace=NAMESPACE, replicas=change.size)
            store(self._api, MPI_JOBS, job)
        else:
            pod = worlds.worker(3, job=name, namespace=NAMESPACE, phase=change.phase)
            store(self._api, PODS, pod, **{names.LABEL_JOB_NAME: name})
        self._made[change.number] = time.time()

    def made(self) -> Mapping[int, float]:
        return self._made


class Real:
    """A lab's server with a fleet of jobs."""

    def __init__(self, cluster: Cluster, client: ApiWriter, namespace: str) -> None:
        self._client, self.namespace, self.kubeconfig = client, namespace, cluster.kubeconfig
        self._tail, self._asked = (
            Tail(cluster.audit_log),
            defaultdict[tuple[str, str], list[int]](list),
        )

    def name(self, job: int) -> str:
        return FLEET.names[job]

    async def make(self, change: Change) -> None:
        job = self.name(change.job)
        pod = names.worker(job, 3)
        self._asked["mpijobs" if change.size else "pods", job if change.size else pod].append(
            change.number
        )
        if change.size:
            await jobs.resize(self._client, self.namespace, job, replicas=change.size)
        else:
            path, body = (
                PODS.path(self.namespace, pod, "status"),
                {"status": {"phase": change.phase}},
            )
            await self._client.patch_object(path, body=body, content_type=MERGE_PATCH)

    def made(self) -> Mapping[int, float]:
        """Return them: the changes of an object are logged in their order."""
        logged = defaultdict[tuple[str, str], list[float]](list)
        for write in self._tail.writes():
            if write.agent.startswith(jobs.AGENT):
                logged[write.resource, write.name].append(write.received)
        return {
            number: at
            for key, numbers in self._asked.items()
            for number, at in zip(numbers, logged[key], strict=True)
        }


@asynccontextmanager
async def in_memory() -> AsyncIterator[Server]:
    async with TinyApi(selects=True, bookmark_every=5.0) as api:
        yield InMemory(api)


@asynccontextmanager
async def in_lab() -> AsyncIterator[Server]:
    with Cluster.start(name=f"page-{os.getpid()}", say=say) as cluster:
        async with await connect(user_agent=jobs.AGENT, kubeconfig=cluster.kubeconfig) as client:
            namespace = namespaces.create(cluster, "page")
            await fleet.make(
                client, FLEET, namespace=namespace, nodes=cluster.options.nodes, say=say
            )
            yield Real(cluster, client, namespace)


async def heap(page: Page) -> float:
    """Return the MiB that the page's scripts hold."""
    tools = await page.context.new_cdp_session(page)
    await tools.send("HeapProfiler.collectGarbage")
    used: float = (await tools.send("Runtime.getHeapUsage"))["usedSize"]
    await tools.detach()
    return used / 2**20


async def measure(server: Server, page: Page, seconds: float) -> None:
    """Change jobs for so long, and print what the page made of it."""
    seen = Seen()
    await page.get_by_text(f"{JOBS} jobs: {JOBS} ").wait_for(timeout=120_000)  # all in one state
    await page.expose_function("saw", seen.saw)
    await page.expose_function("long", seen.long)
    await page.evaluate(WATCH)
    begin, load = time.time(), os.getloadavg()[0]
    async with asyncio.TaskGroup() as changing:
        for number in range(int(seconds * RATE)):
            await asyncio.sleep(begin + number / RATE - time.time())
            change = Change(number)
            seen.due[change.shows(f"{server.namespace}/{server.name(change.job)}")] = number
            changing.create_task(server.make(change))
            if number == SETTLED * RATE:
                say(f"heap after {SETTLED:.0f} s: {await heap(page):.1f} MiB")
    await asyncio.sleep(5)
    made = server.made()
    took = [1000 * (at - made[number]) for number, at in seen.shown.items()]
    p50, p99, most = (percentile(took, percent) for percent in (50, 99, 100))
    say(
        f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {len(took)} changes, {len(seen.due)} not seen"
    )
    say(f"change to page, ms: p50 {p50:.0f}, p99 {p99:.0f}, most {most:.0f}")
    say(f"tasks over 50 ms: {len(seen.tasks)}, the longest {max(seen.tasks, default=0):.0f} ms")
    say(f"heap after {seconds:.0f} s: {await heap(page):.1f} MiB")


@asynccontextmanager
async def dashboard(kubeconfig: Path) -> AsyncIterator[tuple[int, str]]:
    """Run `dashboard` for all namespaces; give its process and its link."""
    command = (sys.executable, "-m", "mpijob_elastic", "dashboard", "-A", "--no-browser")
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(kubeconfig), stdout=PIPE
    )
    try:
        assert process.stdout is not None
        link = (await process.stdout.readline()).decode().removeprefix("Open ").strip()
        yield process.pid, link
    finally:
        process.terminate()
        await process.wait()


async def main(seconds: float, *, lab: bool) -> None:
    """Start everything, measure, and end everything."""
    async with (
        in_lab() if lab else in_memory() as server,
        dashboard(server.kubeconfig) as (_, link),
        opened(link) as page,
    ):
        await measure(server, page, seconds)


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:] if argument != "--lab"]
    asyncio.run(main(*given or (60.0,), lab="--lab" in sys.argv))
