"""All jobs of a fleet change their size at once, and so many of them a second come right.

A job counts when its Role and its ConfigMap have been written for the last time, which is when both are right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import jobs
from bench.audit import Tail, Write
from bench.changes import Writer, writer_of
from bench.fleet import Fleet
from bench.processes import usage
from bench.settle import quiet
from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter


@dataclass(frozen=True, kw_only=True)
class Burst:
    """`seconds` from the first edit until the last job was right; writes of ours a job, Events and deletions apart.

    cpu: seconds that each process worked for all of it.
    """

    seconds: float
    writes: float
    events: float
    cpu: Mapping[str, float]


async def resize_all(
    cluster: Cluster, client: ApiWriter, fleet: Fleet, *, namespace: str, replicas: int, pids: Mapping[str, int]
) -> Burst:
    """Edit every job at once and wait until all are right. Raises LabError, and what `ApiReader` raises."""
    tail = Tail(cluster.audit_log)
    before = {name: usage(pid).cpu for name, pid in pids.items()}
    await asyncio.gather(*(jobs.resize(client, namespace, job, replicas=replicas) for job in fleet.names))
    writes = await quiet(tail, namespace=namespace)
    cpu = {name: usage(pid).cpu - before[name] for name, pid in pids.items()}
    for job in fleet.names:
        if complaint := (await jobs.look(client, namespace, job)).lacks(job, replicas):
            raise LabError(f"{namespace}/{job} is not right although nobody writes any more: {complaint}")
    return burst(writes, fleet.names, cpu=cpu)


def burst(writes: Sequence[Write], fleet: Sequence[str], *, cpu: Mapping[str, float]) -> Burst:
    """Return the course of the edits among these writes. Raises ValueError where there are none."""
    begin = min(write.at for write in writes if writer_of(write) is Writer.BENCH)
    watched = {one for job in fleet for one in (("roles", names.launcher(job)), ("configmaps", names.config_map(job)))}
    ours = [write for write in writes if writer_of(write) is Writer.CONTROLLER]
    events = [write for write in ours if write.resource == "events"]
    deletions = [write for write in ours if write.verb == "delete"]
    return Burst(
        seconds=max(write.at for write in writes if (write.resource, write.name) in watched) - begin,
        writes=(len(ours) - len(events) - len(deletions)) / len(fleet),
        events=len(events) / len(fleet),
        cpu=cpu,
    )
