"""An hour of 100 jobs with random resizes, then ten minutes of rest, beside the real operator.

Controller and webhook are processes with the rights that the installation gives them. At the end they hold no more
memory and no more open files than in the first tenth of the hour; every job is as asked; and at rest they write
nothing but the Lease.
"""

import asyncio
import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bench import namespaces
from bench.audit import Tail, Write
from bench.processes import MIB
from lab.cluster import Cluster
from lab.install import install_into
from lab.operator.process import Operator
from lab.options import Options as LabOptions
from lab.registration import called
from lab.replicas import Controller, Replica, Webhook
from mpijob_elastic import names
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.part import Options, Outcome
from tests.campaign.soak_fleet import JOBS, LONGEST_RANK, Fleet
from tests.campaign.soak_samples import Sample, files, grown, memory, sample, tenths
from tests.lab.waiting import until

MINUTES = 60.0
REST_SHARE, LEAST_REST = 1 / 6, 1.0  # of the minutes; minutes
NAMESPACES = 10
NODES = 10  # kwok lets each hold 110 pods
SAMPLE_EVERY = 10.0
# Reads of the API server's open requests, and seconds between them: a look by exec is over until the next.
READS, READ_EVERY = 5, 3.0
# Seconds without a write until all is at rest: the last rank has ended, and its loss would have been seen.
QUIET, QUIET_PATIENCE = 2.0 * LONGEST_RANK, 600.0
ACCOUNTS = {f"system:serviceaccount:{names.NAMESPACE}:{account}" for account in (names.CONTROLLER, names.WEBHOOK)}
Samples = dict[str, list[Sample]]


def run(options: Options) -> Outcome:
    """Run the hour and the rest."""
    minutes = MINUTES if options.minutes is None else options.minutes
    with (
        Cluster.start(name=f"campaign-{secrets.token_hex(3)}", options=LabOptions(nodes=NODES)) as cluster,
        Operator.start(cluster, qps=0),
    ):
        installed = install_into(cluster)
        with (
            Webhook.start(cluster, installed) as webhook,
            Controller.start(cluster, installed) as leader,
            Controller.start(cluster, installed) as standby,
        ):
            until(lambda: called(cluster))
            replicas = {"controller": leader, "standby": standby, "webhook": webhook}
            return asyncio.run(_soak(cluster, replicas, options.seed, minutes))


async def _soak(cluster: Cluster, replicas: Mapping[str, Replica], seed: int, minutes: float) -> Outcome:
    async with await connect(user_agent="mpijob-elastic-campaign-user", kubeconfig=cluster.kubeconfig) as client:
        fleet = Fleet(client, [namespaces.create(cluster, "soak") for _ in range(NAMESPACES)], Random(seed))
        await fleet.create()
        _say(f"{JOBS} jobs created")
        wrong = await fleet.as_asked()
        await _quiet(cluster)
        open_before = await _open_requests(client)
        _say("the hour begins")
        async with _sampled(replicas) as hour:
            await fleet.edit(seconds=60 * minutes)
        wrong += fleet.refused
        wrong += await fleet.as_asked()
        await fleet.train()
        await _quiet(cluster)
        _say("the rest begins")
        async with _sampled(replicas) as rest:
            wrong += await _rest(cluster, replicas, minutes=max(LEAST_REST, minutes * REST_SHARE))
        wrong += await fleet.as_asked()
        open_after = await _open_requests(client)
    wrong += [
        f"{what}: {open_before.get(what, 0)} requests were open before the hour, {count} after it"
        for what, count in open_after.items()
        if count > open_before.get(what, 0)
    ]
    for name, replica in replicas.items():
        wrong += grown(hour[name], rest[name], name) + _errors(name, replica)
    return Outcome(runs=fleet.edits, violations=tuple(wrong), numbers=_numbers(hour, rest))


async def _rest(cluster: Cluster, replicas: Mapping[str, Replica], *, minutes: float) -> list[str]:
    """Wait, and return our writes but the Lease's; refused ones are counted in the controllers' own metrics."""
    tail, counted = Tail(cluster.audit_log), _writes_counted(replicas)
    await asyncio.sleep(60 * minutes)
    ours = [write for write in tail.writes() if write.user in ACCOUNTS]
    wrong = [f"at rest: {_words(write)}" for write in ours if not _is_lease(write)]
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
        ours = (write.at for write in tail.writes() if write.user in ACCOUNTS and not _is_lease(write))
        latest = max([latest, *ours])


@asynccontextmanager
async def _sampled(replicas: Mapping[str, Replica]) -> AsyncIterator[Samples]:
    """Sample the processes during the block, and yield where the samples come."""
    samples: Samples = {name: [] for name in replicas}

    async def follow() -> None:
        while True:
            for name, replica in replicas.items():
                samples[name].append(sample(replica.pid))
            if len(samples["controller"]) % 6 == 1:
                _say("; ".join(f"{name} {_held(of[-1])}" for name, of in samples.items()))
            await asyncio.sleep(SAMPLE_EVERY)

    following = asyncio.create_task(follow())
    try:
        yield samples
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


async def _open_requests(client: ApiWriter) -> dict[str, int]:
    """Return how many watches and execs stay open at the API server, by kind: the fewest of several reads."""
    reads = []
    for _ in range(READS):
        reads.append(_open_now((await client.get("/metrics")).decode()))
        await asyncio.sleep(READ_EVERY)
    return {what: min(read.get(what, 0) for read in reads) for what in reads[0]}


def _open_now(metrics: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(metrics):
        for one in family.samples if family.name == "apiserver_longrunning_requests" else ():
            if one.labels["verb"] in ("WATCH", "CONNECT"):
                what = f"{one.labels['verb']} {one.labels['resource']} {one.labels['subresource']}".strip()
                found[what] += int(one.value)
    return found


def _is_lease(write: Write) -> bool:
    return write.resource == "leases"


def _words(write: Write) -> str:
    return f"{write.user.rpartition(':')[2]} {write.verb} {write.resource} {write.namespace}/{write.name}"


def _writes_counted(replicas: Mapping[str, Replica]) -> list[str]:
    """Return the lines of the counter of all writes, refused ones included; the webhook has none."""
    lines = [line for replica in replicas.values() for line in replica.metrics().splitlines()]
    return [line for line in lines if line.startswith("mpijob_elastic_api_writes_total")]


def _errors(name: str, replica: Replica) -> list[str]:
    lines = [msgspec.json.decode(line) for line in replica.log.read_bytes().splitlines() if line.startswith(b"{")]
    return [f"the {name} logged: {line}" for line in lines if line.get("level") == "error"]


def _held(at: Sample) -> str:
    return f"{at.resident / MIB:.1f} MiB, {at.files} files, {at.threads} threads, {at.cpu:.0f} s CPU"


def _numbers(hour: Samples, rest: Samples) -> str:
    parts = []
    for name, samples in hour.items():
        first, last = tenths(samples)
        parts.append(
            f"{name}: {memory(first) / MIB:.1f} MiB in the first tenth, {memory(last) / MIB:.1f} in the last, "
            f"{files(first)} open files, {files(rest[name])} at rest"
        )
    return f"{JOBS} jobs; {'; '.join(parts)}"


def _say(text: str) -> None:
    print(f"soak: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
