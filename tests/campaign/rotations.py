"""Rotations: the webhook's certificates and CAs are replaced, again and again, while the API server calls it.

Two webhooks run as processes behind one address, with certificates that live for seconds; nothing else differs from
`mpijob-elastic webhook`, so when a certificate is due, and each step then, is as installed. Launchers are tried in
bursts, larger than the number of idle connections that an API server keeps to a webhook: so each burst opens
connections, and each certificate is checked. A call that fails shows as a launcher without our item, and in the log of
the API server, which says why.
"""

import argparse
import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lab.cluster import Cluster
from lab.install import Installed
from lab.layout import Layout
from lab.ports import free_ports
from lab.replicas import Webhook
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry import logs
from tests.campaign.labs import create_namespace, lab, user
from tests.campaign.part import Options, Outcome, say
from tests.lab.certificates import secret
from tests.lab.launchers import patched, patient, until_patched
from tests.lab.service import Backend, Service
from webhook.certificates.rotation import Timing
from webhook.rules.certificates.pairs import Lifetimes
from webhook.server import serve
from webhook.settings import Settings

# A third of a leaf must be longer than a busy machine ever stops a replica. Ten leaves come and go with each CA.
LIFETIMES = Lifetimes(authority=timedelta(seconds=240), leaf=timedelta(seconds=24))
# As often as short lives demand. A CA counts as trusted after as long as installed: a busy API server needs seconds.
TIMING = Timing(look_every=0.5)
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
    with lab(nodes=3) as (cluster, installed):
        asyncio.run(_work(cluster, installed, tally, options))
    rotated = f"{tally.leaves} certificates and {len(tally.authorities) - 1} CAs"
    load = f"{tally.calls:,} reviews over {tally.fresh:,} new connections"
    return Outcome(runs=tally.leaves, violations=tuple(tally.violations), numbers=f"{rotated}; {load}")


async def _work(cluster: Cluster, installed: Installed, tally: Tally, options: Options) -> None:
    service = Service(latency=LATENCY)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await user(cluster))
        await create_namespace(client, NAMESPACE)
        await stack.enter_async_context(service.listening(installed.webhook_port))
        await stack.enter_async_context(patient(client))
        for port in free_ports(REPLICAS):
            starting = Webhook.start(cluster, installed, port=port, module="tests.campaign.rotations")
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
        say(f"rotations: {tally}")


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


def _serve() -> None:
    """Be such a webhook until SIGTERM: python -m tests.campaign.rotations OPTIONS."""
    parser = argparse.ArgumentParser()
    for option in ("--kubeconfig", "--host", "--extra-san"):
        parser.add_argument(option, required=True)
    for option in ("--health-port", "--port", "--drain-seconds"):
        parser.add_argument(option, type=int, required=True)
    given = vars(parser.parse_args())
    logs.configure(log_format="json", level="info")
    given |= {"kubeconfig": Path(given["kubeconfig"]), "extra_sans": frozenset({given.pop("extra_san")})}
    asyncio.run(serve(Settings(**given, lifetimes=LIFETIMES, timing=TIMING)))


if __name__ == "__main__":
    _serve()
