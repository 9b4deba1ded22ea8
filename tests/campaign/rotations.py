"""Rotations: the webhook's certificates and CAs are replaced, again and again, while the API server calls it.

Two webhooks run as processes behind one address, with certificates that live for seconds. Launchers are tried in
bursts, larger than the number of idle connections that an API server keeps to a webhook: so each burst opens
connections, and each certificate is checked. A call that fails shows as a launcher without our item, and in the log of
the API server, which says why.
"""

import asyncio
import secrets
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.layout import Layout
from lab.ports import free_ports
from lab.replicas import Webhook
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.part import Options, Outcome
from tests.lab.certificates import secret
from tests.lab.launchers import patched, patient, until_patched
from tests.lab.service import Backend, Service
from tests.lab.waiting import has_account

# A run is one new leaf. So many CAs come meanwhile.
LEAVES, AUTHORITIES = 100, 10
REPLICAS = 2
# client-go keeps 25 idle connections (idleConnsPerHost in k8s.io/client-go/transport/cache.go).
BURST, PAUSE = 40, 0.5
# Seconds by which answers are late, so that all calls of a burst are under way at once.
LATENCY = 0.1
NAMESPACE = "campaign"
# Seconds within which the next leaf must come.
PATIENCE = 60.0


@dataclass(kw_only=True)
class Tally:
    """The results so far. fresh: connections that the API server opened."""

    leaves: int = 0
    authorities: set[bytes] = field(default_factory=set, repr=False)
    calls: int = 0
    fresh: int = 0
    violations: list[str] = field(default_factory=list)


def run(options: Options) -> Outcome:
    """Wait for rotations under load."""
    tally = Tally()
    with Cluster.start(name=f"campaign-{secrets.token_hex(3)}") as cluster:
        installed = install_into(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        has_account(cluster, NAMESPACE)
        asyncio.run(_work(cluster, installed, tally, options))
    rotated = f"{tally.leaves} certificates and {len(tally.authorities) - 1} CAs"
    load = f"{tally.calls:,} reviews over {tally.fresh:,} new connections"
    return Outcome(runs=tally.leaves, violations=tuple(tally.violations), numbers=f"{rotated}; {load}")


async def _work(cluster: Cluster, installed: Installed, tally: Tally, options: Options) -> None:
    service = Service(latency=LATENCY)
    async with AsyncExitStack() as stack:
        connecting = await connect(user_agent="mpijob-elastic-campaign-user", kubeconfig=cluster.kubeconfig)
        client = await stack.enter_async_context(connecting)
        await stack.enter_async_context(service.listening(installed.webhook_port))
        await stack.enter_async_context(patient(client))
        for port in free_ports(REPLICAS):
            starting = Webhook.start(cluster, installed, port=port, module="tests.campaign.brief_webhook")
            replica = await asyncio.to_thread(stack.enter_context, starting)
            service.backends.append(Backend(port=port, health=replica.health))
        await service.until_ready(*service.backends)
        await until_patched(client, NAMESPACE)
        passed, opened = len(_passed(cluster)), service.opened
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(_call(client, tally))
            for _ in options.runs(LEAVES):
                await _next_leaf(client, service, tally)
            while options.minutes is None and len(tally.authorities) <= AUTHORITIES:
                await _next_leaf(client, service, tally)
            calling.cancel()
        tally.fresh = service.opened - opened
        tally.violations += _passed(cluster)[passed:]


async def _next_leaf(client: ApiWriter, service: Service, tally: Tally) -> None:
    """Wait until a leaf is replaced under which connections were opened: the others were not tried."""
    opened = service.opened
    while service.opened == opened:
        leaf = await _read(client, "tls.crt")
        tally.authorities.add(await _read(client, "ca.crt"))
        async with asyncio.timeout(PATIENCE):
            while await _read(client, "tls.crt") == leaf:
                await asyncio.sleep(0.1)
    tally.leaves += 1
    if tally.leaves % 10 == 0:
        print(f"rotations: {tally}", file=sys.stderr, flush=True)


async def _read(client: ApiWriter, key: str) -> bytes:
    while True:
        with suppress(errors.Unreachable):  # a busy API server
            return await secret(client, key)


async def _call(client: ApiWriter, tally: Tally) -> None:
    while True:
        answers = await asyncio.gather(*(_is_lost(client) for _ in range(BURST)))
        tally.calls += len(answers)
        tally.violations += filter(None, answers)
        await asyncio.sleep(PAUSE)


async def _is_lost(client: ApiWriter) -> str:
    """Try a launcher; return what was wrong, "" if nothing was."""
    try:
        return "" if await patched(client, NAMESPACE) else "a launcher was let through without its item"
    except errors.KubeError as error:
        return f"a launcher was refused: {error}"


def _passed(cluster: Cluster) -> list[str]:
    """Return the API server's words on each request that it let pass because a call of a webhook failed."""
    log = Layout(cluster.state_dir).log("kube-apiserver").read_text(errors="replace")
    return [line for line in log.splitlines() if "failing open" in line]
