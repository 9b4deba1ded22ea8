"""Certificates on a real API server: every call that is made while they change, break and come back is answered.

The replicas run in this process, so that their certificates can live for seconds; they act with the
rights of the webhook's ServiceAccount. A failed call shows as a launcher without the item, since it
is let through then.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.layout import Layout
from lab.ports import free_ports
from lab.replicas import Webhook
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from tests.lab.certificates import MUTATING, SECRET, VALIDATING, bundles, lose_secret, secret
from tests.lab.launchers import calling, patient, until_patched
from tests.lab.service import Backend, Service
from webhook.certificates.messages import Lifetimes, Timing
from webhook.server import WebhookSettings, running

pytestmark = pytest.mark.lab

# A third of a leaf must be longer than a busy machine ever stops a replica.
BRIEF = Lifetimes(authority=timedelta(seconds=120), leaf=timedelta(seconds=36))
# A CA is trusted after as long as installed: a busy API server takes a moment to learn of it.
TIMING = Timing(look_every=0.3)
# client-go keeps 25 idle connections (idleConnsPerHost in k8s.io/client-go/transport/cache.go).
BURST = 40
Replica = Callable[[], AbstractAsyncContextManager[Backend]]


@pytest.fixture
async def service(client: ApiWriter, installed: Installed) -> AsyncIterator[Service]:
    """A Service where the API server looks for the webhook; no Secret is there before and after."""
    service = Service()
    await lose_secret(client)
    async with service.listening(installed.webhook_port), patient(client):
        yield service
    await lose_secret(client)


@asynccontextmanager
async def replica(
    service: Service, installed: Installed, lifetimes: Lifetimes, timing: Timing
) -> AsyncIterator[Backend]:
    """A webhook in this process, behind the Service, whether ready or not."""
    port, health_port = free_ports(2)
    settings = WebhookSettings(
        host="127.0.0.1",
        port=port,
        health_port=health_port,
        extra_sans=frozenset({"127.0.0.1"}),
        kubeconfig=installed.webhook_kubeconfig,
        lifetimes=lifetimes,
        timing=timing,
    )
    async with running(settings):
        backend = Backend(port=port, health=f"http://127.0.0.1:{health_port}")
        service.backends.append(backend)
        yield backend
        service.backends.remove(backend)


@pytest.fixture
def lasting(service: Service, installed: Installed) -> Replica:
    """Replicas with the lifetimes of an installation."""
    return partial(replica, service, installed, Lifetimes(), TIMING)


@pytest.fixture
def brief(service: Service, installed: Installed) -> Replica:
    """Replicas whose CA is replaced every 96 seconds."""
    return partial(replica, service, installed, BRIEF, TIMING)


async def test_two_that_start_at_once_agree(
    lasting: Replica, service: Service, client: ApiWriter, namespace: str
) -> None:
    async with lasting() as one, lasting() as two:
        await service.until_ready(one, two)
        await until_patched(client, namespace)
        async with calling(client, namespace) as calls:
            while calls.made < 100:
                await asyncio.sleep(0.1)
        while await bundles(client) != {
            await secret(client, "ca.crt") + await secret(client, "retired-ca.crt")
        }:
            await asyncio.sleep(0.1)
    assert calls.lost == 0


@pytest.mark.campaign
async def test_rotations_under_load_lose_no_call(
    brief: Replica, service: Service, client: ApiWriter, namespace: str, cluster: Cluster
) -> None:
    """Bursts are larger than the number of connections that an API server keeps, so each certificate is checked."""
    service.latency = 0.1  # so that all calls of a burst are under way at once
    authorities: set[bytes] = set()
    opened: dict[bytes, int] = {}
    async with brief() as one, brief() as two:
        await service.until_ready(one, two)
        await until_patched(client, namespace)
        passed = let_pass(cluster)
        async with calling(client, namespace, callers=1, burst=BURST, pause=0.5) as calls:
            while len(authorities) < 2 or len(opened) < 4:
                authorities.add(await secret(client, "ca.crt"))
                opened.setdefault(await secret(client, "tls.crt"), service.opened)
                await asyncio.sleep(0.2)
    assert let_pass(cluster)[len(passed) :] == []
    assert calls.lost == 0
    assert len({*opened.values()}) == len(opened), "no connection was opened under a certificate"


def let_pass(cluster: Cluster) -> list[str]:
    """Return the API server's words on each request that it let pass because a call of a webhook failed."""
    log = Layout(cluster.state_dir).log("kube-apiserver").read_text(errors="replace")
    return [line for line in log.splitlines() if "failing open" in line]


@pytest.mark.parametrize("loss", ["deleted", pytest.param("spoiled", marks=pytest.mark.thorough)])
async def test_a_lost_secret_loses_no_call(
    lasting: Replica, service: Service, client: ApiWriter, namespace: str, loss: str
) -> None:
    async with lasting() as one, lasting() as two:
        await service.until_ready(one, two)
        await until_patched(client, namespace)
        before = await secret(client, "ca.crt")
        async with calling(client, namespace) as calls:
            if loss == "deleted":
                await lose_secret(client)
            else:
                spoil = {"data": {"ca.key": "c3BvaWxlZA==", "tls.key": None}}
                await client.patch_object(SECRET, body=spoil, content_type=MERGE_PATCH)
            while (
                await secret(client, "ca.crt") in (before, b"")
                or await secret(client, "tls.key") == b""
            ):
                await asyncio.sleep(0.1)
            for backend in (one, two):
                while await served(backend) not in await secret(client, "tls.crt"):
                    await asyncio.sleep(0.1)
            made = calls.made
            while calls.made < made + 200:
                await asyncio.sleep(0.1)
    assert calls.lost == 0


async def served(backend: Backend) -> bytes:
    """The certificate with which a replica answers."""
    pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", backend.port))
    return pem.strip().encode()


async def test_a_blanked_bundle_is_put_back(
    lasting: Replica, service: Service, client: ApiWriter, namespace: str
) -> None:
    async with lasting() as one:
        await service.until_ready(one)
        await until_patched(client, namespace)
        before = await bundles(client)
        for path in (MUTATING, VALIDATING):
            blank = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
            await client.patch_object(path, body=blank, content_type=JSON_PATCH)
        while await bundles(client) != before:
            await asyncio.sleep(0.1)
        await until_patched(client, namespace)


@pytest.mark.campaign
async def test_a_rollout_under_load_loses_no_call(
    cluster: Cluster, installed: Installed, client: ApiWriter, namespace: str
) -> None:
    service = Service()
    with ExitStack() as processes:

        async def start() -> Webhook:
            [port] = free_ports(1)
            # Fifty probes of this Service long; 15 s by default, for the nodes of a cluster.
            starting = Webhook.start(cluster, installed, "--drain-seconds=10", port=port)
            process = await asyncio.to_thread(processes.enter_context, starting)
            service.backends.append(Backend(port=port, health=process.health))
            await service.until_ready(*service.backends)
            return process

        async with service.listening(installed.webhook_port), patient(client):
            old = await start()
            await until_patched(client, namespace)
            async with calling(client, namespace, callers=8) as calls:
                for _ in range(4):
                    new = await start()
                    assert await asyncio.to_thread(old.terminate) == 0
                    service.backends.pop(0)
                    old = new
    assert calls.lost == 0
    assert calls.made > 0
