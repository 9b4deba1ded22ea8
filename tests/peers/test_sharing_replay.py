"""Jobs of two priorities share eight GPUs for a while, with and without elasticity; the figures are printed.

`REPLAY_MINUTES=60` plays the hour of docs/records/sharing.md, with all its ways at once, each with
a quota of its own.
"""

import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from bench import namespaces
from bench.jobs import hosts
from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE
from mpijob_elastic.capabilities.kueue.facts import LABEL_PRIORITY_CLASS, LABEL_QUEUE
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import requested
from tests.lab.job import Job
from tests.peers.arrivals import Arrival, Progress, arrivals
from tests.peers.queued_jobs import ONE_GPU
from tests.peers.queues import queue_of_four

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]

SECONDS = float(os.environ.get("REPLAY_MINUTES", "4")) * 60
SEED = int(os.environ.get("REPLAY_SEED", "1"))
GPUS, TICK = 8, 1.0
HEADINGS = (
    "jobs of low priority",
    "trained",
    "GPU-seconds that count",
    "done twice",
    "jobs done",
    "wait high",
    "low",
)
# What must not happen to a worker.
WRONG = {"DrainTimeout", "HostsLost", "OutsideQuota"}
FILL = {AUTOSCALE: "fill", names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "8"}


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to write the jobs of low priority; those of high priority have four workers, no more and no less."""

    title: str
    replicas: int
    annotations: Mapping[str, str] = field(default_factory=dict)


WAYS = {
    "four": Way(title="4 workers", replicas=4),
    "eight": Way(title="8 workers", replicas=8),
    "fill": Way(title="2 to 8 workers, `autoscale: fill`", replicas=2, annotations=FILL),
}


@pytest.mark.timeout(900 + 2 * SECONDS)
async def test_jobs_of_two_priorities_share_eight_gpus(
    cluster: Cluster, client: ApiWriter, capsys: pytest.CaptureFixture[str]
) -> None:
    played = await asyncio.gather(
        *(_play(cluster, client, name, way) for name, way in WAYS.items())
    )
    with capsys.disabled():
        print("", *(_row(cells) for cells in (HEADINGS, *played)), sep="\n")  # noqa: T201


async def _play(cluster: Cluster, client: ApiWriter, name: str, way: Way) -> tuple[str, ...]:
    """Play all arrivals; return the cells of the way's row."""
    namespace = await asyncio.to_thread(_place, cluster, f"replay-{name}")
    coming, there = arrivals(SEED, seconds=SECONDS), dict[str, Progress]()
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < SECONDS:
        while coming and coming[0].at <= now:
            arrival = coming.pop(0)
            await _create(Job(client=client, namespace=namespace, name=arrival.name), arrival, way)
            there[arrival.name] = Progress(arrival=arrival)
        pods, scripts = await _look(client, namespace)
        held = sum(requested("nvidia.com/gpu", pod) for mine in pods.values() for pod in mine)
        assert held <= GPUS, f"{held} GPUs of {GPUS} at {now:.0f} s"
        for job, progress in there.items():
            if progress.finished:
                continue
            progress.look(
                now, launcher=_launcher(job, pods[job]), hosts=hosts(scripts.get(job, ""))
            )
            if progress.finished:
                state = Job(client=client, namespace=namespace, name=job)
                await state.set_status(names.launcher(job), {"phase": "Succeeded"})
        await asyncio.sleep(TICK)
    events = msgspec.json.decode(await client.get(resources.EVENTS.path(namespace)))["items"]
    assert not [event["message"] for event in events if event["reason"] in WRONG]
    return _cells(way, [*there.values()])


def _place(cluster: Cluster, name: str) -> str:
    """Make a namespace with a queue of eight GPUs."""
    namespace = namespaces.create(cluster, name)
    queue_of_four(cluster, namespace)
    quota = {
        "op": "replace",
        "path": "/spec/resourceGroups/0/flavors/0/resources/3/nominalQuota",
        "value": GPUS,
    }
    cluster.kubectl("patch", "clusterqueue", namespace, "--type=json", "-p", json.dumps([quota]))
    return namespace


async def _create(job: Job, arrival: Arrival, way: Way) -> None:
    labels = {LABEL_QUEUE: "team"} | ({LABEL_PRIORITY_CLASS: "high"} if arrival.urgent else {})
    size = 4 if arrival.urgent else way.replicas
    annotations = {} if arrival.urgent else dict(way.annotations)
    await job.create(replicas=size, worker_spec=ONE_GPU, annotations=annotations, job_labels=labels)


async def _look(
    client: ApiWriter, namespace: str
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Return the pods and the discover_hosts.sh of each job."""
    listed = [
        msgspec.json.decode(await client.get(kind.path(namespace)))
        for kind in (resources.PODS, resources.CONFIG_MAPS)
    ]
    pods = defaultdict[str, list[dict[str, Any]]](list)
    for pod in listed[0]["items"]:
        pods[pod["metadata"]["labels"].get(names.LABEL_JOB_NAME, "")].append(pod)
    found = {one["metadata"]["name"]: one.get("data", {}) for one in listed[1]["items"]}
    scripts = {
        job: found.get(names.config_map(job), {}).get(names.KEY_DISCOVER_HOSTS, "") for job in pods
    }
    return pods, scripts


def _launcher(job: str, pods: list[dict[str, Any]]) -> str:
    """Return the uid of the launcher if it runs."""
    launcher = next((pod for pod in pods if pod["metadata"]["name"] == names.launcher(job)), None)
    if (
        launcher is None
        or "deletionTimestamp" in launcher["metadata"]
        or launcher["status"].get("phase") != "Running"
    ):
        return ""
    uid: str = launcher["metadata"]["uid"]
    return uid


def _cells(way: Way, jobs: list[Progress]) -> tuple[str, ...]:
    done, lost = sum(job.done for job in jobs), sum(job.lost for job in jobs)
    waits = {
        urgent: [
            (SECONDS if job.started_at is None else job.started_at) - job.arrival.at
            for job in jobs
            if job.arrival.urgent is urgent
        ]
        for urgent in (True, False)
    }
    means = [
        f"{sum(seconds) / len(seconds):.0f} s" if seconds else "-" for seconds in waits.values()
    ]
    finished = f"{sum(job.finished for job in jobs)} of {len(jobs)}"
    return (
        way.title,
        f"{(done + lost) / SECONDS / GPUS:.1%}",
        f"{done:,.0f}",
        f"{lost:,.0f}",
        finished,
        *means,
    )


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
