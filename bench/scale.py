"""Edit the size of a job, alternately with the peer operator alone and with us beside mpi-operator v0.2.3.

Each edit starts at rest: the job is right and there was no write for a while. drain-timeout is 0s,
so that workers need no wait before their deletion, and an operator that deletes at once can be
compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from bench import changes, jobs
from bench.audit import Tail
from bench.changes import Course
from bench.processes import usage
from bench.rest import settled
from bench.sides import Side
from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter

# A chain: each edit starts from the result of the edit before.
SIZES = (3, 1, 12, 2, 3)
EDITS = tuple(f"{old}→{new}" for old, new in pairwise(SIZES))


@dataclass(frozen=True, kw_only=True)
class Round:
    """All edits once: their courses, and the CPU seconds and peak memory in bytes of each process."""

    courses: Mapping[str, Course]
    cpu: Mapping[str, float]
    peak: Mapping[str, int]


async def run(cluster: Cluster, client: ApiWriter, side: Side, *, namespace: str) -> Round:
    """Run a round in a new job.

    Raises LabError if the job does not become right, and what `ApiReader` raises.
    """
    tail = Tail(cluster.audit_log)
    await jobs.create(
        client, namespace, jobs.manifest(jobs.JOB, replicas=SIZES[0], drain_timeout=jobs.AT_ONCE)
    )
    await settled(client, tail, namespace=namespace, replicas=SIZES[0])
    before = {name: usage(pid) for name, pid in side.pids.items()}
    courses = {}
    for edit, new in zip(EDITS, SIZES[1:], strict=True):
        tail = Tail(cluster.audit_log)
        await jobs.resize(client, namespace, jobs.JOB, replicas=new)
        writes = await settled(client, tail, namespace=namespace, replicas=new)
        courses[edit] = changes.course(writes, job=jobs.JOB)
    after = {name: usage(pid) for name, pid in side.pids.items()}
    cpu = {name: after[name].cpu - before[name].cpu for name in side.pids}
    return Round(courses=courses, cpu=cpu, peak={name: after[name].peak for name in side.pids})
