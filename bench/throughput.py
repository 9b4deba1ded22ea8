"""Resize all jobs of a fleet at once, and count how many become right per second.

A job is right at the last write of its Role or its ConfigMap.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import jobs
from bench.audit import Tail, Write
from bench.changes import Writer, writer_of
from bench.fleet import Fleet
from bench.processes import usage
from bench.rest import quiet
from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter


@dataclass(frozen=True, kw_only=True)
class Burst:
    """`seconds` from the first edit until the last job was right; our writes per job, without Events and deletions.

    cpu: CPU seconds of each process for all jobs together.
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
            raise LabError(f"{namespace}/{job} is not right, but nothing writes any more: {complaint}")
    return burst(writes, fleet.names, cpu=cpu)


def burst(writes: Sequence[Write], fleet: Sequence[str], *, cpu: Mapping[str, float]) -> Burst:
    """Return the result of the edits among these writes. Raises ValueError if there are none."""
    begin = min(write.at for write in writes if writer_of(write) is Writer.BENCH)
    watched = {key for job in fleet for key in (("roles", names.launcher(job)), ("configmaps", names.config_map(job)))}
    ours = [write for write in writes if writer_of(write) is Writer.CONTROLLER]
    events = [write for write in ours if write.resource == "events"]
    deletions = [write for write in ours if write.verb == "delete"]
    return Burst(
        seconds=max(write.at for write in writes if (write.resource, write.name) in watched) - begin,
        writes=(len(ours) - len(events) - len(deletions)) / len(fleet),
        events=len(events) / len(fleet),
        cpu=cpu,
    )
