"""A bad neighbour: how long a tenant's resizes take alone, beside each kind of load of another tenant, and beside all.

A violation is a resize that takes more than twice as long as alone (medians); a scale-out by our part of it. Its pods
are made by the campaign: the operator's queue takes ten edits a second of all tenants together, so beside thousands of
edits a minute its workers come minutes late.
"""

import asyncio
import contextlib
import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from random import Random

from bench import jobs, namespaces
from bench.processes import usage
from lab.cluster import Cluster
from lab.install import install_into
from lab.operator.process import Operator
from lab.options import Options as LabOptions
from lab.registration import called
from lab.replicas import Controller, Replica, Webhook
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.neighbour_figures import Figures, line, slower
from tests.campaign.neighbour_load import KINDS, Neighbour
from tests.campaign.neighbour_victim import Victim
from tests.campaign.part import Options, Outcome
from tests.lab.waiting import until

ALONE, ALL = "alone", "all together"
BESIDE: dict[str, tuple[str, ...]] = {ALONE: (), **{kind: (kind,) for kind in KINDS}, ALL: KINDS}
# What is beside the tenant, one after the other. It is alone again and again, because a machine has moods.
VISITS = (ALONE, *(name for kind in [*KINDS, ALL] for name in (kind, ALONE)))
ROUNDS, ROUNDS_ALONE = 5, 2
NODES = 10  # kwok lets each hold 110 pods
# Seconds before the first resize: the load is at its height.
WARM = 15.0
# Seconds that the operator gets for new workers, once a visit.
OPERATOR_HAS = 60.0
# Seconds between two questions about the controller's health, and at most for an answer.
PULSE, PULSE_ENDS = 0.25, 30.0


def run(options: Options) -> Outcome:
    """Make the visits."""
    with Cluster.start(name=f"campaign-{secrets.token_hex(3)}", options=LabOptions(nodes=NODES)) as cluster:
        installed = install_into(cluster)
        with Webhook.start(cluster, installed) as webhook, Controller.start(cluster, installed) as controller:
            until(lambda: called(cluster))
            ours = {"controller": controller, "webhook": webhook}
            found = asyncio.run(_visit_all(cluster, installed.webhook_port, ours, options))
    alone = found[ALONE]
    return Outcome(
        runs=sum(len(one.ins) for one in found.values()),
        violations=tuple([problem for one in found.values() for problem in [*one.problems, *slower(one, alone)]]),
        numbers="; ".join(map(line, found.values())),
    )


async def _visit_all(
    cluster: Cluster, webhook_port: int, ours: dict[str, Replica], options: Options
) -> dict[str, Figures]:
    minutes = None if options.minutes is None else options.minutes / len(VISITS)
    options = replace(options, minutes=minutes)
    found = {name: Figures(name=name) for name in BESIDE}
    async with AsyncExitStack() as stack:
        client, namespace = await stack.enter_async_context(_tenant(cluster, "tenant", jobs.AGENT))
        victim = Victim(cluster=cluster, client=client, namespace=namespace)
        client, namespace = await stack.enter_async_context(_tenant(cluster, "neighbour", "neighbour"))
        neighbour = Neighbour(
            cluster=cluster, client=client, namespace=namespace, webhook_port=webhook_port, random=Random(options.seed)
        )
        with Operator.start(cluster, qps=0):
            await victim.create()
        for name in VISITS:
            kinds, figures = BESIDE[name], found[name]
            try:
                with Operator.start(cluster, qps=0, flags=["--threadiness=8"]):
                    await victim.rest()
                    await neighbour.prepare(kinds)
                # A new operator, as it is shipped, whose queue holds nothing of what was before.
                with Operator.start(cluster):
                    async with neighbour.busy(kinds):
                        await _visit(figures, victim, neighbour, ours, options)
            except Exception as error:  # noqa: BLE001 - whatever went wrong, it is told, and the next visit tells more
                figures.problems.append(f"{name}: {error!r}")
            await neighbour.leave()
            print(line(figures), f"load of the machine {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)
    return found


async def _visit(
    figures: Figures, victim: Victim, neighbour: Neighbour, ours: dict[str, Replica], options: Options
) -> None:
    await asyncio.sleep(WARM)
    neighbour.done.clear()
    began, before = time.monotonic(), {program: usage(one.pid).cpu for program, one in ours.items()}
    feeling = asyncio.gather(_feel(ours["controller"], figures.pulse), _exec(victim, figures.execs))
    try:
        for _ in options.runs(ROUNDS if figures.name != ALONE else ROUNDS_ALONE):
            figures.ins.append(await victim.scale_in())
            figures.outs.append((await victim.scale_out(operator_has=0.0))[0])
        await victim.scale_in()
        out, by_operator = await victim.scale_out(operator_has=OPERATOR_HAS)
        figures.operator.append(out.created if by_operator else None)
    finally:
        feeling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await feeling
    seconds = time.monotonic() - began
    figures.cpu = {program: (usage(one.pid).cpu - before[program]) / seconds for program, one in ours.items()}
    figures.load = {what: 60 * count / seconds for what, count in sorted(neighbour.done.items())}


async def _feel(controller: Replica, pulse: list[float]) -> None:
    """Ask the controller for its health again and again: an event loop that is held up answers late."""

    def ask() -> float:
        began = time.monotonic()
        try:
            urllib.request.urlopen(f"{controller.health}/healthz", timeout=PULSE_ENDS).close()  # noqa: S310 - our own
        except (urllib.error.URLError, OSError):
            return PULSE_ENDS
        return time.monotonic() - began

    while True:
        pulse.append(await asyncio.to_thread(ask))
        await asyncio.sleep(PULSE)


async def _exec(victim: Victim, execs: list[float]) -> None:
    """Run `true` in the launcher again and again."""
    pod = names.launcher(jobs.JOB)
    while True:
        began = time.monotonic()
        with contextlib.suppress(errors.KubeError):
            await exec_in_pod(
                victim.client, victim.namespace, pod, container="launcher", command=["true"], timeout=PULSE_ENDS
            )
        execs.append(time.monotonic() - began)
        await asyncio.sleep(4 * PULSE)


@asynccontextmanager
async def _tenant(cluster: Cluster, purpose: str, agent: str) -> AsyncIterator[tuple[ApiWriter, str]]:
    """Create a namespace; yield a client that may do everything in it and nothing elsewhere, and its name."""
    name = namespaces.create(cluster, purpose)
    binding = ("create", "rolebinding", "owner", "--clusterrole=cluster-admin", f"--serviceaccount={name}:default")
    cluster.kubectl(*binding, "--namespace", name)
    kubeconfig = cluster.service_account_kubeconfig(name, "default")
    async with await connect(user_agent=agent, kubeconfig=kubeconfig) as client:
        yield client, name
