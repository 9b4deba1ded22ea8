"""Resize all jobs of a fleet at once, and count how many become right per second.

A job is right at the last write of its Role or its ConfigMap.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench import fleet, jobs, namespaces, targets
from bench.audit import Tail, Write
from bench.changes import Writer, writer_of
from bench.figures import Figure, measured
from bench.fleet import Fleet
from bench.parts.context import Findings, Setting, lab
from bench.processes import usage
from bench.rest import quiet, settled
from bench.sides import Ours, Side
from lab.cluster import Cluster
from lab.layout import Layout
from lab.state import read_state
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter

# Growing comes first. A host that was there from the start may have had rank 0. Its drain is not
# seen, because kwok serves no exec, so after a scale-in decide/lost_ranks would delay the next
# addition.
FLEET = Fleet(count=200, workers=10)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """`seconds` from the first edit until the last job was right; our writes per job, without Events and deletions.

    cpu: CPU seconds of each process for all jobs together.
    """

    seconds: float
    writes: float
    events: float
    cpu: Mapping[str, float]


async def run(setting: Setting) -> Findings:
    """Take a worker from every job at once, `repeat` times. Raises LabError.

    Jobs do not grow here: v0.2.3 puts each event of a pod through client-go's default rate limiter
    (10 keys a second after the first 100), so with 200 jobs it creates a worker many minutes after
    the edit.
    """
    found: list[Burst] = []
    async with lab(setting) as (cluster, client):
        where = namespaces.create(cluster, "throughput")
        await fleet.make(
            client, FLEET, namespace=where, nodes=cluster.options.nodes, say=setting.say
        )
        with Ours(qps=0).start(cluster) as side:
            await quiet(Tail(cluster.audit_log), namespace=where)
            pids = _processes(cluster, side)
            for turn in range(min(setting.repeat, FLEET.workers - 1)):
                setting.say(f"all jobs lose a worker at once, {turn + 1} of {setting.repeat}")
                size = FLEET.workers - turn - 1
                found.append(
                    await resize_all(
                        cluster, client, FLEET, namespace=where, replicas=size, pids=pids
                    )
                )
    return Findings(figures=_figures(found))


async def resize_all(
    cluster: Cluster,
    client: ApiWriter,
    fleet: Fleet,
    *,
    namespace: str,
    replicas: int,
    pids: Mapping[str, int],
) -> Burst:
    """Edit every job at once and wait until all are right.

    Raises LabError, and what `ApiReader` raises.
    """
    tail = Tail(cluster.audit_log)
    before = {name: usage(pid).cpu for name, pid in pids.items()}
    await asyncio.gather(
        *(jobs.resize(client, namespace, job, replicas=replicas) for job in fleet.names)
    )
    writes = await settled(client, tail, namespace=namespace, replicas=replicas, names=fleet.names)
    cpu = {name: usage(pid).cpu - before[name] for name, pid in pids.items()}
    return _burst(writes, fleet.names, cpu=cpu)


def _burst(writes: Sequence[Write], fleet: Sequence[str], *, cpu: Mapping[str, float]) -> Burst:
    begin = min(write.at for write in writes if writer_of(write) is Writer.BENCH)
    watched = {
        key
        for job in fleet
        for key in (("roles", names.launcher(job)), ("configmaps", names.config_map(job)))
    }
    ours = [write for write in writes if writer_of(write) is Writer.CONTROLLER]
    events = [write for write in ours if write.resource == "events"]
    deletions = [write for write in ours if write.verb == "delete"]
    return Burst(
        seconds=max(write.at for write in writes if (write.resource, write.name) in watched)
        - begin,
        writes=(len(ours) - len(events) - len(deletions)) / len(fleet),
        events=len(events) / len(fleet),
        cpu=cpu,
    )


def _processes(cluster: Cluster, side: Side) -> Mapping[str, int]:
    """Return the processes of the side and the API server, because our requests cost its time too."""
    state = read_state(Layout(cluster.state_dir))
    assert state is not None, "a lab that runs has a state"
    return {**side.pids, "API server": state.components["kube-apiserver"].pid}


def _figures(found: Sequence[Burst]) -> list[Figure]:
    figure = partial(
        measured, ("Throughput", f"{FLEET.count} jobs, a worker fewer at once"), ours=found
    )
    cpu = [
        figure(f"CPU a job of the {name}", "ms", lambda burst: burst.cpu[name] / FLEET.count * 1000)  # noqa: B023 - now
        for name in found[0].cpu
    ]
    return [
        figure(
            "jobs right",
            "1/s",
            lambda burst: FLEET.count / burst.seconds,
            target=targets.JOBS_A_SECOND,
        ),
        figure(
            "writes a job but Events and deletions",
            "",
            lambda burst: burst.writes,
            target=targets.WRITES,
        ),
        figure("Events a job", "", lambda burst: burst.events),
        *cpu,
    ]
