"""An HPA by the CPU of workers: real load, measured by the kubelet, served by metrics-server through a real Service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.hpa import Autoscaler, Seen
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.waiting import until
from tests.real import mpijob

pytestmark = pytest.mark.usefixtures("own_node", "scale_served", "elastic", "operator")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hpa" / "cpu.yaml"
RESOURCES = {"requests": {"cpu": "100m"}, "limits": {"cpu": "300m"}}
BURN = "while [ -e /burning ]; do :; done"
# Of a worker's request. One of three that burns its limit is an average of 100, less on a busy
# machine.
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}},
}


async def busy(cluster: Cluster, namespace: str, pod: str) -> None:
    """Wait until `kubectl top pods` says that a pod takes more than a tenth of a core."""

    def look() -> bool:
        lines = cluster.kubectl(
            "top", "pods", "--no-headers", "--namespace", namespace
        ).splitlines()
        return any(
            name == pod and int(cpu.removesuffix("m")) > 100
            for name, cpu, _ in map(str.split, lines)
        )

    await asyncio.to_thread(until, look)


def utilization(seen: Seen, source: str) -> int | None:
    """Return what the HPA has measured of its only metric; None before it has."""
    found: int | None = (
        (seen.metrics or [{}])[0].get(source, {}).get("current", {}).get("averageUtilization")
    )
    return found


def example() -> dict[str, Any]:
    """Return the metric of docs/examples/hpa/cpu.yaml."""
    [found] = yaml.safe_load(EXAMPLE.read_text())["spec"]["metrics"]
    return dict(found)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("metrics")
async def test_a_job_follows_the_load_of_its_workers_and_never_the_launchers(
    cluster: Cluster, namespace: str, job: Job, hpa: Autoscaler
) -> None:
    """Up by the workers' CPU as a whole, and down by that of the container that the example names."""
    launcher, first = names.launcher(job.name), names.worker(job.name, 0)
    script = f"{names.DISCOVER_HOSTS_PATH}; while true; do :; done"
    manifest = json.dumps(mpijob.job(script, resources=RESOURCES))
    await asyncio.to_thread(
        cluster.kubectl, "create", "--namespace", namespace, "-f", "-", stdin=manifest
    )
    await job.settled(1)

    await hpa.apply(1, 3, metric=CPU)
    await busy(cluster, namespace, launcher)
    calm = await hpa.until(lambda seen: utilization(seen, "resource") is not None)
    assert calm.desired == 1
    assert (utilization(calm, "resource") or 0) < 20

    in_pod(cluster, job, first, f"touch /burning; ({BURN}) > /dev/null 2>&1 &")
    await busy(cluster, namespace, first)
    await job.settled(3)

    await hpa.apply(1, 3, metric=example())
    loaded = await hpa.until(lambda seen: utilization(seen, "containerResource") is not None)
    assert (utilization(loaded, "containerResource") or 0) > 20
    in_pod(cluster, job, first, "rm /burning")
    await job.settled(1)
