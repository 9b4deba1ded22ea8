"""The start of a controller beside a fleet: time until it is ready, and memory.

What it costs beside more pods is measured without a lab: `python -m tests.campaign size`.
"""

import time
from dataclasses import dataclass

from bench import fleet, namespaces, targets
from bench.audit import Tail
from bench.figures import Figure
from bench.fleet import Fleet
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB, usage
from bench.rest import quiet
from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.replicas import Controller
from mpijob_elastic import names

FLEET = Fleet(count=100, workers=9)


@dataclass(frozen=True, kw_only=True)
class Start:
    """Seconds from the start until /readyz was OK, and until it led; MiB at rest, and the peak; CPU seconds."""

    ready: float
    leads: float
    resident: float
    peak: float
    cpu: float


async def run(setting: Setting) -> Findings:
    """Start a controller `repeat` times. Raises LabError."""
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        where = namespaces.create(cluster, "fleet")
        await fleet.make(client, FLEET, namespace=where, nodes=cluster.options.nodes, say=setting.say)
        found = []
        for turn in range(setting.repeat):
            setting.say(f"a controller starts beside {FLEET.pods} pods, {turn + 1} of {setting.repeat}")
            found.append(await measure(cluster, installed, namespace=where))
    rows = [
        ("Start", "start to ready", "s", [start.ready for start in found], targets.READY),
        ("Start", "start to leading", "s", [start.leads for start in found], None),
        ("Start", "CPU until at rest", "s", [start.cpu for start in found], None),
        ("Memory", "memory at rest", "MiB", [start.resident for start in found], None),
        ("Memory", "memory at most", "MiB", [start.peak for start in found], targets.MEMORY),
    ]
    group = f"{FLEET.pods:,} pods"
    return Findings(
        figures=[
            Figure(topic=topic, group=group, name=name, unit=unit, ours=tuple(values), target=target)
            for topic, name, unit, values, target in rows
        ]
    )


async def measure(cluster: Cluster, installed: Installed, *, namespace: str) -> Start:
    """Start a controller, wait until it is at rest, stop it. Raises LabError."""
    tail = Tail(cluster.audit_log)
    begin, begin_wall = time.monotonic(), time.time()
    with Controller.start(cluster, installed) as controller:
        ready = time.monotonic() - begin
        await quiet(tail, namespace=namespace)
        used = usage(controller.process.pid)
    taken = [write.at for write in tail.writes() if (write.resource, write.name) == ("leases", names.LEASE)]
    return Start(
        ready=ready, leads=min(taken) - begin_wall, resident=used.resident / MIB, peak=used.peak / MIB, cpu=used.cpu
    )
