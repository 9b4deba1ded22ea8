"""A bad neighbour: how long a tenant's resizes take alone, beside each kind of load of another tenant, and beside all.

The tenant resizes 3→1, with ranks in the leaving workers, and 1→3. All times are the API server's
own, from its audit log, so a busy process of the campaign falsifies none. A violation is a resize
that takes more than twice as long as alone (medians); a scale-out by our part of it. Its pods are
made by the campaign: the operator's queue takes ten edits a second of all tenants together, so
beside thousands of edits a minute its workers come minutes late.
"""

import asyncio
import contextlib
import os
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random

import msgspec

from bench import jobs, namespaces
from bench.audit import Tail, Write
from bench.changes import Writer, writer_of
from bench.drain import ended, running_ranks
from bench.rest import settled
from lab.cluster import Cluster
from lab.operator import objects
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.labs import served
from tests.campaign.neighbour import KINDS, Neighbour
from tests.campaign.part import Options, Outcome, above, say

ALONE, ALL = "alone", "all together"
BESIDE: dict[str, tuple[str, ...]] = {ALONE: (), **{kind: (kind,) for kind in KINDS}, ALL: KINDS}
# What is beside the tenant, one after the other. It is alone again and again, because a machine has
# moods.
VISITS = (ALONE, *(name for kind in [*KINDS, ALL] for name in (kind, ALONE)))
ROUNDS, ROUNDS_ALONE = 5, 2
# Seconds before the first resize: the load is at its height.
WARM = 15.0
LARGE, SMALL = 3, 1
COMING = [names.worker(jobs.JOB, index) for index in range(SMALL, LARGE)]
DRAIN_TIMEOUT = "10m"
# Times as long as alone that a resize may take.
MOST = 2.0


@dataclass(kw_only=True)
class Figures:
    """What was measured beside a load, in seconds from an edit's arrival at the API server.

    gone: 3→1 until the last surplus worker was gone. listed: 1→3 until the host list names the new
    workers. ours: of that, from the new workers' readiness until our write of the list came; the
    Role has named them since 3→1. load: what the neighbour did a minute. problems: what went wrong.
    """

    gone: list[float] = field(default_factory=list)
    listed: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    load: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def words(self) -> str:
        """Return medians, and the worst in brackets."""
        series = {"3→1": self.gone, "1→3": self.listed, "of it ours": self.ours}
        told = [
            f"{what} {statistics.median(each):.2f} s ({max(each):.2f})"
            for what, each in series.items()
            if each
        ]
        return ", ".join(
            [*told, *(f"{what} {rate:,.0f} a minute" for what, rate in self.load.items())]
        )


def run(options: Options) -> Outcome:
    """Make the visits."""
    with served() as (cluster, installed, _), Controller.start(cluster, installed):
        return visit(
            cluster, installed.webhook_port, options, kind=Neighbour, beside=BESIDE, visits=VISITS
        )


def visit(
    cluster: Cluster,
    webhook_port: int,
    options: Options,
    *,
    kind: type[Neighbour],
    beside: Mapping[str, tuple[str, ...]],
    visits: Sequence[str],
) -> Outcome:
    """Measure the tenant's resizes, beside one load after the other of a neighbour of that kind.

    beside: the kinds of load of each visit, by its name.
    """
    minutes = None if options.minutes is None else options.minutes / len(visits)
    options = replace(options, minutes=minutes)
    found = {name: Figures() for name in beside}

    async def work() -> None:
        async with AsyncExitStack() as stack:
            client, namespace = await stack.enter_async_context(
                _tenant(cluster, "tenant", jobs.AGENT)
            )
            victim = Victim(cluster=cluster, client=client, namespace=namespace)
            client, namespace = await stack.enter_async_context(
                _tenant(cluster, "neighbour", "neighbour")
            )
            neighbour = kind(
                cluster=cluster,
                client=client,
                namespace=namespace,
                webhook_port=webhook_port,
                random=Random(options.seed),
            )
            job = jobs.manifest(jobs.JOB, replicas=LARGE, drain_timeout=DRAIN_TIMEOUT)
            await jobs.create(victim.client, victim.namespace, job)
            for name in visits:
                await _visit(name, beside[name], victim, neighbour, found[name], options)

    asyncio.run(work())
    return Outcome(
        runs=sum(len(one.gone) for one in found.values()),
        violations=tuple(
            problem for name, one in found.items() for problem in one.problems + slower(name, found)
        ),
        numbers="; ".join(f"{name}: {one.words()}" for name, one in found.items()),
    )


def slower(name: str, found: dict[str, Figures]) -> list[str]:
    """Return which resizes take too long beside this load.

    1→3 takes as long as alone, and what our part of it takes more than alone: the rest is the API
    server's, the scheduler's and the node's.
    """
    beside, alone = found[name], found[ALONE]
    if not (beside.ours and alone.ours):
        return []
    usual, median = statistics.median(alone.listed), statistics.median
    times_out = (usual + median(beside.ours) - median(alone.ours)) / usual
    return [
        *above(
            f"3→1 beside {name}: times as long as alone",
            median(beside.gone) / median(alone.gone),
            MOST,
        ),
        *above(f"1→3 beside {name}: times as long as alone by our part", times_out, MOST),
    ]


async def _visit(
    name: str,
    kinds: tuple[str, ...],
    victim: "Victim",
    neighbour: Neighbour,
    figures: Figures,
    options: Options,
) -> None:
    try:
        with Operator.start(victim.cluster, qps=0, flags=["--threadiness=8"]):
            await victim.rest()
            await neighbour.prepare(kinds)
        # A new operator, as it is shipped, whose queue holds nothing of what was before.
        with Operator.start(victim.cluster):
            async with neighbour.busy(kinds):
                await asyncio.sleep(WARM)
                neighbour.done.clear()
                began = time.monotonic()
                for _ in options.runs(ROUNDS_ALONE if name == ALONE else ROUNDS):
                    await victim.round(figures)
                minutes = (time.monotonic() - began) / 60
                figures.load = {
                    what: count / minutes for what, count in sorted(neighbour.done.items())
                }
    except Exception as error:  # noqa: BLE001 - whatever went wrong, it is told, and the next visit tells more
        figures.problems.append(f"{name}: {error!r}")
    await neighbour.leave()
    say(f"{name}: {figures.words()}; load of the machine {os.getloadavg()[0]:.0f}")


@asynccontextmanager
async def _tenant(
    cluster: Cluster, purpose: str, agent: str
) -> AsyncIterator[tuple[ApiWriter, str]]:
    """Create a namespace; yield a client that may do everything in it and nothing elsewhere, and its name."""
    name = namespaces.create(cluster, purpose)
    binding = (
        "create",
        "rolebinding",
        "owner",
        "--clusterrole=cluster-admin",
        f"--serviceaccount={name}:default",
    )
    cluster.kubectl(*binding, "--namespace", name)
    kubeconfig = cluster.service_account_kubeconfig(name, "default")
    async with await connect(user_agent=agent, kubeconfig=kubeconfig) as client:
        yield client, name


@dataclass(frozen=True, kw_only=True)
class Victim:
    """The tenant; `client` has the rights of its namespace, and is told apart by `jobs.AGENT`."""

    cluster: Cluster
    client: ApiWriter
    namespace: str

    async def rest(self) -> None:
        """Let the job be right again, whatever was before. Raises LabError if it is not in time."""
        await self._settled(await self._resize(LARGE), LARGE)

    async def round(self, figures: Figures) -> None:
        """Take the surplus away while its ranks run, and ask for it again.

        Raises LabError if it takes too long.
        """
        async with running_ranks(self.cluster, self.namespace, COMING) as ranks:
            tail = await self._resize(SMALL)
            await ended(ranks)
            edit, after = await self._settled(tail, SMALL)
        deleted = [write for write in after if (write.resource, write.verb) == ("pods", "delete")]
        figures.gone.append(max(write.at for write in deleted) - edit.received)
        tail = await self._resize(LARGE)
        await self._create_workers()
        edit, after = await self._settled(tail, LARGE)
        # The first status of each new pod by kwok says that it is ready.
        statuses = [
            write for write in after if (write.user, write.subresource) == ("lab-kwok", "status")
        ]
        runs = {write.name: write.at for write in reversed(statuses) if write.name in COMING}
        lists = [
            one
            for one in after
            if one.resource == "configmaps" and writer_of(one) is Writer.CONTROLLER
        ]
        figures.listed.append(lists[-1].at - edit.received)
        figures.ours.append(max(0.0, lists[-1].received - max(runs.values(), default=0.0)))

    async def _resize(self, size: int) -> Tail:
        tail = Tail(self.cluster.audit_log)
        await jobs.resize(self.client, self.namespace, jobs.JOB, replicas=size)
        return tail

    async def _create_workers(self) -> None:
        """Create the new workers in the operator's place."""
        job = msgspec.json.decode(await self.client.get(MPI_JOBS.path(self.namespace, jobs.JOB)))
        for index in range(SMALL, LARGE):
            with contextlib.suppress(errors.Conflict):  # the operator was faster
                await self.client.create_object(
                    PODS.path(self.namespace), body=objects.worker(job, index)
                )

    async def _settled(self, tail: Tail, size: int) -> tuple[Write, list[Write]]:
        """Wait until all is right; return the edit of the size and what was written after it."""
        writes = await settled(self.client, tail, namespace=self.namespace, replicas=size)
        edit = [
            write
            for write in writes
            if writer_of(write) is Writer.BENCH and write.resource == "mpijobs"
        ][-1]
        return edit, [write for write in writes if write.received > edit.received]
