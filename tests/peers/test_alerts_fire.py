"""Alerts fire by their real causes, and clear when these have gone, in a real Prometheus that watches a lab.

Its rules are ours with seconds for minutes; thresholds stay.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.ports import free_ports
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.controller import process
from mpijob_elastic.controller.process import ControllerSettings
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Freeze, Request
from tests.faults.proxy import FaultProxy
from tests.lab.job import HOROVODRUN, Job
from tests.lab.ranks import start_rank
from tests.lab.waiting import PATIENCE
from tests.peers.watch import Watch
from tests.product.webhook.certificates.material import authority
from tests.product.webhook.objects import body, mpi_job
from webhook.certificates import pairs
from webhook.certificates.messages import Lifetimes
from webhook.certificates.pairs import Pair

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.campaign]
SLOW = 1.5  # seconds for a body; the webhook waits 2 s
JOBS = 16  # the controller gives each write 5 s, and the threshold is a minute
ROLE = f"clusterrole/{names.CONTROLLER}"


async def test_pods_that_end_and_come_back(
    watch: Watch, cluster: Cluster, installed: Installed
) -> None:
    await watch.fires("NoLeader", "WebhookDown")  # nothing is installed yet
    with (
        Controller.start(cluster, installed) as controller,
        Webhook.start(cluster, installed) as webhook,
    ):
        watch.scrape({"controller-a": controller.health, "webhook-a": webhook.health})
        await watch.clears()
        controller.kill()
        await watch.fires("NoLeader")
        webhook.kill()
        await watch.fires("WebhookDown")
    with (
        Controller.start(cluster, installed) as controller,
        Webhook.start(cluster, installed) as webhook,
    ):
        watch.scrape({"controller-b": controller.health, "webhook-b": webhook.health})
        await watch.clears()


@pytest.mark.usefixtures("operator")
async def test_writes_that_the_api_server_forbids(
    watch: Watch, job: Job, cluster: Cluster, elastic: Controller, webhook: Webhook
) -> None:
    watch.scrape({"controller-a": elastic.health, "webhook-a": webhook.health})
    await job.create(replicas=1)
    await job.settled(1)
    await watch.clears()
    role = json.loads(cluster.kubectl("get", ROLE, "-o", "json"))
    [index] = [
        index for index, rule in enumerate(role["rules"]) if rule["resources"] == ["configmaps"]
    ]
    verbs = role["rules"][index]["verbs"]
    set_verbs(cluster, index, [verb for verb in verbs if verb != "patch"])
    try:
        edits = asyncio.create_task(edited_again_and_again(job))  # each edit is tried at once
        await watch.fires("WritesRefused", "JobsFail")
        edits.cancel()
    finally:
        set_verbs(cluster, index, verbs)
    await job.scale(2)
    await job.settled(2)
    await watch.clears()


@pytest.mark.usefixtures("operator")
async def test_a_worker_that_is_cut(
    watch: Watch, job: Job, cluster: Cluster, elastic: Controller, webhook: Webhook
) -> None:
    watch.scrape({"controller-a": elastic.health, "webhook-a": webhook.health})
    await job.create(replicas=2, annotations={names.DRAIN_TIMEOUT: "3s"})
    await job.settled(2)
    await watch.clears()
    await asyncio.to_thread(start_rank, cluster, job, *job.workers(1))
    await job.scale(1)
    await watch.fires("DrainsTimeOut")
    await watch.clears()


async def test_objects_that_the_webhook_cannot_read(
    watch: Watch, client: ApiWriter, namespace: str, elastic: Controller, webhook: Webhook
) -> None:
    """Six thousand fields in the environment of a worker."""
    watch.scrape({"controller-a": elastic.health, "webhook-a": webhook.health})
    await watch.clears()
    huge = mpi_job(command=HOROVODRUN)
    huge["metadata"] = {"name": "huge", "namespace": namespace}
    template = huge["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["spec"]["containers"][0]["env"] = [
        {"name": f"N{n}", "value": "v"} for n in range(3000)
    ]
    path = resources.MPI_JOBS.path(namespace)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    fires = asyncio.create_task(watch.fires("WebhookFails"))
    while not fires.done():
        await client.create_object(path, body=huge, query={"dryRun": "All"})
        assert asyncio.get_running_loop().time() < deadline
    await fires
    await watch.clears()


async def test_a_certificate_that_nobody_renews_and_a_slow_caller(
    watch: Watch, tmp_path: Path, cluster: Cluster, installed: Installed
) -> None:
    """A webhook of its own, with certificates from a directory as cert-manager fills it."""
    signer = authority(now=datetime.now(UTC))
    directory = tmp_path / "certificates"
    directory.mkdir()
    serve(directory, signer, cluster.machine, lifetime=timedelta(hours=23))
    [port] = free_ports(1)
    with Webhook.start(
        cluster, installed, f"--certificate-directory={directory}", port=port
    ) as webhook:
        watch.scrape({"webhook-a": webhook.health})
        await watch.fires("CertificateExpires")
        serve(directory, signer, cluster.machine, lifetime=timedelta(days=6))
        await watch.clears("CertificateExpires")
        trusted = ssl.create_default_context(cadata=signer.certificate_pem.decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session:
            calls = asyncio.create_task(
                slow_calls(session, f"https://{cluster.machine}:{port}{names.PATH_VALIDATE}")
            )
            await watch.fires("WebhookSlow")
            assert not calls.done()
            calls.cancel()
        await watch.clears("WebhookSlow")


@pytest.mark.usefixtures("operator", "webhook")
async def test_an_api_server_that_hardly_answers(
    watch: Watch, cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    """The watch of pods is silent for three minutes, and each write of a host list takes until the client gives up."""
    jobs = [Job(client=client, namespace=namespace, name=f"job-{number}") for number in range(JOBS)]
    silent, slow = Freeze(), Freeze()
    async with (
        FaultProxy(cluster.kubeconfig) as proxy,
        one_at_a_time(proxy.kubeconfig, namespace) as health,
    ):
        watch.scrape({"controller-a": health})
        await asyncio.gather(*(job.create(replicas=2) for job in jobs))
        for job in jobs:
            await job.settled(2)
        await watch.clears("NoLeader", "QueueStuck", "CacheStale")
        with proxy.inject(silent, on=reads_pods), proxy.inject(slow, on=writes_config_map):
            for job in jobs:
                await job.scale(1)
            await watch.fires("QueueStuck")
            await watch.fires("CacheStale")
        silent.thaw()
        slow.thaw()
        for job in jobs:
            await job.settled(1)
        await watch.clears("NoLeader", "QueueStuck", "CacheStale")


@asynccontextmanager
async def one_at_a_time(kubeconfig: Path, namespace: str) -> AsyncIterator[str]:
    """Run a controller that handles one job at a time, in this process as the proxy is; yield where its health is."""
    [port] = free_ports(1)
    settings = ControllerSettings(
        identity="one",
        jobs_namespaces=(namespace,),
        lease_namespace=namespace,
        health_host="127.0.0.1",
        health_port=port,
        workers=1,
    )
    stop = asyncio.Event()
    async with await connect(user_agent="mpijob-elastic-test", kubeconfig=kubeconfig) as client:
        task = asyncio.create_task(process.Controller(client, settings).run(stop))
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            stop.set()
            await task


def reads_pods(request: Request) -> bool:
    return request.method == "GET" and request.path.endswith("/pods")


def writes_config_map(request: Request) -> bool:
    return request.method == "PATCH" and "/configmaps/" in request.path


def set_verbs(cluster: Cluster, index: int, verbs: list[str]) -> None:
    """Set what the controller may do with ConfigMaps."""
    patch = [{"op": "replace", "path": f"/rules/{index}/verbs", "value": verbs}]
    cluster.kubectl("patch", ROLE, "--type=json", "-p", json.dumps(patch))


async def edited_again_and_again(job: Job) -> None:
    """Change the size, so that the host list is wrong all the time."""
    while True:
        for replicas in (2, 3):
            await job.scale(replicas)
            await asyncio.sleep(0.2)


def serve(directory: Path, signer: Pair, host: str, *, lifetime: timedelta) -> None:
    """Write a certificate and its key."""
    lifetimes = Lifetimes(authority=timedelta(days=360), leaf=lifetime)
    pair = pairs.leaf(signer, frozenset({host}), now=datetime.now(UTC), lifetimes=lifetimes)
    (directory / "tls.crt").write_bytes(pair.certificate_pem)
    (directory / "tls.key").write_bytes(pair.key_pem)


async def slow_calls(session: aiohttp.ClientSession, url: str) -> None:
    """Send one review after the other, the second half of each late."""
    review = body(mpi_job())
    half = len(review) // 2

    async def halves() -> AsyncIterator[bytes]:
        yield review[:half]
        await asyncio.sleep(SLOW)
        yield review[half:]

    while True:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(review))}
        async with session.post(url, data=halves(), headers=headers) as response:
            assert response.status == 200
