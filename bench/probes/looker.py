"""A prober of the build that PYTHONPATH names, in a process of its own: `looker.py KUBECONFIG PACE`.

For each line `ANSWER COUNT` of its input it looks into so many published workers, at that pace in
looks a second, and prints the milliseconds of its CPU for each look, and how many lines of progress
it has taken in. The names of the workers begin with ANSWER, so that the server knows what to say.
"""

import asyncio
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from mpijob_elastic.act import worker_probes
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube.client import connect
from mpijob_elastic.telemetry.metrics import Metrics

# Workers of a job. A job of more would have a smaller share of the looks under way.
OF_A_JOB = 10
POLL = 0.05


def job(answer: str, number: int, count: int) -> tuple[Any, Any]:
    """Return what `Prober.begin` reads of a job and of the look that is due."""
    workers = [worker(f"{answer}-{number}-worker-{index}") for index in range(count)]
    view = SimpleNamespace(
        namespace=f"team-{number}",
        name=f"{answer}-{number}",
        config=SimpleNamespace(occasion=lambda _: "now"),
    )
    return view, ProbeWorkers(workers=tuple(workers), published=True)


def worker(name: str) -> Any:
    """Return what it reads of a worker."""
    ref = SimpleNamespace(name=name, uid=f"uid-of-{name}")
    return SimpleNamespace(name=name, ref=ref, containers=("worker",))


async def look(prober: worker_probes.Prober, answer: str, count: int) -> str:
    """Look into the workers, and return the figures."""
    began = time.process_time()
    for number in range(count // OF_A_JOB):
        prober.begin(*job(answer, number, OF_A_JOB))
    while prober._asking:  # noqa: ASYNC110, SLF001 - it has no public name
        await asyncio.sleep(POLL)
    spent = time.process_time() - began
    probes = [probe for pods in prober.jobs.values() for _, probe in pods.values()]
    assert len(probes) == count, "some looks were dropped"
    assert all(probe.busy_seen for probe in probes), "some looks failed"
    lines = sum(getattr(probe, "progress", None) is not None for probe in probes)
    prober.jobs.clear()
    return f"{1000 * spent / count} {lines}"


async def main() -> None:
    """Serve the standard input."""
    kubeconfig, pace = sys.argv[1:]
    worker_probes.PUBLISHED_A_SECOND = float(pace)  # no build takes it as an argument
    async with await connect(user_agent="bench", kubeconfig=Path(kubeconfig)) as client:
        metrics = Metrics(CollectorRegistry())
        prober = worker_probes.Prober(client, metrics=metrics, now=time.time, wake=lambda *_: None)
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer, count = line.split()
            print(await look(prober, answer, int(count)), flush=True)
        await prober.close()


if __name__ == "__main__":
    asyncio.run(main())
