"""The start of a controller beside a fleet: time until it is ready, and memory."""

import time
from dataclasses import dataclass

from bench.audit import Tail
from bench.processes import usage
from bench.rest import quiet
from lab.cluster import Cluster
from lab.install import Installed
from lab.replicas import Controller
from mpijob_elastic import names


@dataclass(frozen=True, kw_only=True)
class Start:
    """Seconds from the start until /readyz was OK, and until it led; resident bytes at rest, and the peak."""

    ready: float
    leads: float
    resident: int
    peak: int
    cpu: float


async def run(cluster: Cluster, installed: Installed, *, namespace: str) -> Start:
    """Start a controller, wait until it is at rest, stop it. Raises LabError."""
    tail = Tail(cluster.audit_log)
    begin, begin_wall = time.monotonic(), time.time()
    with Controller.start(cluster, installed) as controller:
        ready = time.monotonic() - begin
        await quiet(tail, namespace=namespace)
        used = usage(controller.process.pid)
    taken = [write.at for write in tail.writes() if (write.resource, write.name) == ("leases", names.LEASE)]
    return Start(
        ready=ready,
        leads=min(taken) - begin_wall,
        resident=used.resident,
        peak=used.peak,
        cpu=used.cpu,
    )
