"""An hour of 100 jobs with random resizes, then ten minutes of rest, beside the real operator.

Controller and webhook are processes with the rights that the installation gives them. At the end
they hold no more memory and no more open files than in the first tenth of the hour; every job is as
asked; and at rest they write nothing but the Lease.
"""

import asyncio
import contextlib
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bench import namespaces
from bench.audit import Tail, Write
from bench.processes import MIB, usage
from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller, Replica
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.labs import served, user
from tests.campaign.part import Options, Outcome, above, say
from tests.campaign.soak_fleet import JOBS, LONGEST_RANK, Fleet

MINUTES = 60.0
REST_SHARE, LEAST_REST = 1 / 6, 1.0  # of the minutes; minutes
NAMESPACES = 10
SAMPLE_EVERY = 10.0
# Reads of the API server's open requests, and seconds between them: a look by exec is over until
# the next.
READS, READ_EVERY = 5, 3.0
# Seconds without a write until all is at rest: the last rank has ended, and its loss would have
# been seen.
QUIET, QUIET_PATIENCE = 2.0 * LONGEST_RANK, 600.0
# By how much the median of memory may grow from the first tenth to the last. An allocator that has
# served more kinds of work keeps some more; a leak of 2 KiB an edit would be twice as much after an
# hour.
SHARE, MARGIN = 0.05, 2.0
SPARE = 2  # open files: connections that are kept for the next request come and go
LEAST = 6  # samples of a tenth, or chance decides in a short run
ACCOUNTS = {
    f"system:serviceaccount:{names.NAMESPACE}:{account}"
    for account in (names.CONTROLLER, names.WEBHOOK)
}

# What each process holds, at one moment after the other: MiB of memory, open files, threads.
Held = tuple[float, int, int]
Samples = dict[str, list[Held]]


def run(options: Options) -> Outcome:
    """Run the hour and the rest."""
    minutes = MINUTES if options.minutes is None else options.minutes
    with (
        served() as (cluster, installed, webhook),
        Operator.start(cluster, qps=0),
        Controller.start(cluster, installed) as leader,
        Controller.start(cluster, installed) as standby,
    ):
        replicas = {"controller": leader, "standby": standby, "webhook": webhook}
        return asyncio.run(_soak(cluster, replicas, options.seed, minutes))


async def _soak(
    cluster: Cluster, replicas: Mapping[str, Replica], seed: int, minutes: float
) -> Outcome:
    async with await user(cluster) as client:
        fleet = Fleet(
            client, [namespaces.create(cluster, "soak") for _ in range(NAMESPACES)], Random(seed)
        )
        await fleet.create()
        wrong = await fleet.as_asked()
        await _quiet(cluster)
        open_before = await _open_requests(client)
        say("soak: the hour begins")
        async with _sampled(replicas) as hour:
            await fleet.edit(seconds=60 * minutes)
        wrong += fleet.refused
        wrong += await fleet.as_asked()
        await fleet.train()
        await _quiet(cluster)
        say("soak: the rest begins")
        async with _sampled(replicas) as rest:
            wrong += await _rest(cluster, replicas, minutes=max(LEAST_REST, minutes * REST_SHARE))
        wrong += await fleet.as_asked()
        for what, count in (await _open_requests(client)).items():
            wrong += above(f"requests open after the hour, {what}", count, open_before.get(what, 0))
    numbers = [f"{JOBS} jobs"]
    for name, replica in replicas.items():
        found, told = grown(hour[name], rest[name], name)
        wrong += found
        numbers.append(told)
        lines = [
            msgspec.json.decode(line)
            for line in replica.log.read_bytes().splitlines()
            if line.startswith(b"{")
        ]
        wrong += [f"the {name} logged: {line}" for line in lines if line.get("level") == "error"]
    return Outcome(runs=fleet.edits, violations=tuple(wrong), numbers="; ".join(numbers))


def grown(hour: Sequence[Held], rest: Sequence[Held], name: str) -> tuple[list[str], str]:
    """Return what the process holds more of than in the first tenth of the hour, and its figures in words.

    That is memory in the last tenth, by medians; and files and threads at rest, because under load
    looks are always under way: the fewest, because how many are is chance.
    """
    size = max(LEAST, len(hour) // 10)
    before, after = (
        statistics.median(memory for memory, _, _ in part) for part in (hour[:size], hour[-size:])
    )
    (files, threads), (files_at_rest, threads_at_rest) = (
        [min(column) for column in list(zip(*part, strict=True))[1:]]
        for part in (hour[:size], rest)
    )
    wrong = [
        *above(f"MiB of memory of the {name}", after, before * (1 + SHARE) + MARGIN),
        *above(f"open files of the {name}", files_at_rest, files + SPARE),
        *above(f"threads of the {name}", threads_at_rest, threads),
    ]
    return (
        wrong,
        f"{name}: {before:.1f} MiB, then {after:.1f}; open files {files}, then {files_at_rest}",
    )


async def _rest(cluster: Cluster, replicas: Mapping[str, Replica], *, minutes: float) -> list[str]:
    """Wait, and return our writes but the Lease's; refused ones are counted in the controllers' own metrics."""
    tail, counted = Tail(cluster.audit_log), _writes_counted(replicas)
    await asyncio.sleep(60 * minutes)
    ours = [write for write in tail.writes() if write.user in ACCOUNTS]
    wrong = [f"at rest: {write}" for write in ours if not _is_lease(write)]
    if not any(map(_is_lease, ours)):
        wrong.append("at rest: no renewal of the Lease was seen, so nothing was")
    if _writes_counted(replicas) != counted:
        wrong.append("at rest: a controller counted writes")
    return wrong


async def _quiet(cluster: Cluster) -> None:
    """Wait until our accounts have written nothing but the Lease for a while, but not for ever: `_rest` judges."""
    tail, latest = Tail(cluster.audit_log), time.time()
    end = latest + QUIET_PATIENCE
    while time.time() < min(latest + QUIET, end):
        await asyncio.sleep(1)
        ours = (
            write.at for write in tail.writes() if write.user in ACCOUNTS and not _is_lease(write)
        )
        latest = max([latest, *ours])


def _is_lease(write: Write) -> bool:
    return write.resource == "leases"


@asynccontextmanager
async def _sampled(replicas: Mapping[str, Replica]) -> AsyncIterator[Samples]:
    """Sample the processes during the block, and yield where the samples come."""
    samples: Samples = {name: [] for name in replicas}

    async def follow() -> None:
        while True:
            for name, replica in replicas.items():
                samples[name].append(_held(replica.pid))
            await asyncio.sleep(SAMPLE_EVERY)

    following = asyncio.create_task(follow())
    try:
        yield samples
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


def _held(pid: int) -> Held:
    files, threads = (len(list(Path(f"/proc/{pid}/{part}").iterdir())) for part in ("fd", "task"))
    return usage(pid).resident / MIB, files, threads


async def _open_requests(client: ApiWriter) -> dict[str, int]:
    """Return how many watches and execs stay open at the API server, by kind: the fewest of several reads."""
    reads = []
    for _ in range(READS):
        found: Counter[str] = Counter()
        for family in text_string_to_metric_families((await client.get("/metrics")).decode()):
            for one in family.samples if family.name == "apiserver_longrunning_requests" else ():
                if one.labels["verb"] in ("WATCH", "CONNECT"):
                    found[
                        f"{one.labels['verb']} {one.labels['resource']} {one.labels['subresource']}"
                    ] += int(one.value)
        reads.append(found)
        await asyncio.sleep(READ_EVERY)
    return {what: min(read[what] for read in reads) for what in reads[0]}


def _writes_counted(replicas: Mapping[str, Replica]) -> list[str]:
    """Return the lines of the counter of all writes, refused ones included; the webhook has none."""
    lines = [line for replica in replicas.values() for line in replica.metrics().splitlines()]
    return [line for line in lines if line.startswith("mpijob_elastic_api_writes_total")]
