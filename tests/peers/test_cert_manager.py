"""The overlay cert-manager with cert-manager's own controllers and CA injector, on a lab's API server.

kwok pretends our pods. So the webhook is a process here, with the arguments of its Deployment, the
Secret as its kubelet would mount it, and the rights that the overlay gives it.
"""

import asyncio
import base64
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.modules import PINNED
from lab.ports import free_ports
from lab.registration import by_service, called
from lab.replicas import Webhook
from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import HOOKS
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.command_line import CommandLine
from tests.lab.definitions import CERT_MANAGER, served
from tests.lab.launchers import calling, patient, until_patched
from tests.lab.scalable import told
from tests.lab.waiting import create_namespace, until
from tests.peers.processes import running
from tests.peers.secret_volume import mounted
from tests.product.webhook.objects import mpi_job

pytestmark = [pytest.mark.lab, pytest.mark.peers]

CERTIFICATE = names.WEBHOOK
SECRET, AUTHORITY = f"{names.WEBHOOK}-tls", f"{names.WEBHOOK}-ca"
# What the lab says itself, so that processes of one machine do not meet.
PLACES = ("--port=", "--health-port=", "--certificate-directory=")


@pytest.fixture(scope="module")
def lab(cert_manager: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A cluster with cert-manager."""
    assert CERT_MANAGER.module.replace("@", " ") in (PINNED / "cert-manager" / "go.mod").read_text()
    directory: Path = tmp_path_factory.mktemp("cert-manager")
    with Cluster.start(name=f"pytest-{os.getpid()}-cert-manager") as cluster:
        command = [str(cert_manager), f"--kubeconfig={cluster.kubeconfig}"]
        with (
            served(cluster, CERT_MANAGER, directory),
            running(command, directory / "cert-manager.log"),
        ):
            yield CommandLine(cluster)


@pytest.fixture(scope="module")
def installation(lab: CommandLine) -> str:
    """What the command says, which waits for cert-manager."""
    code, output = lab.run("install", "--overlay=cert-manager", "--timeout=240", "--image=none")
    assert code == 0, output
    return output


@pytest.fixture(scope="module")
def port(
    lab: CommandLine, installation: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """Where the installed webhook listens, which the API server calls through its Service."""
    assert installation
    pod = lab.get("deployment", "-n", names.NAMESPACE, names.WEBHOOK)["spec"]["template"]["spec"]
    [volume] = (one for one in pod["volumes"] if "secret" in one)
    arguments = [one for one in pod["containers"][0]["args"][1:] if not one.startswith(PLACES)]
    directory: Path = tmp_path_factory.mktemp("certificates")
    [port] = free_ports(1)
    kubeconfig = lab.cluster.service_account_kubeconfig(names.NAMESPACE, names.WEBHOOK)
    installed = Installed(
        controller_kubeconfig=kubeconfig, webhook_kubeconfig=kubeconfig, webhook_port=port
    )
    arguments.append(f"--certificate-directory={directory}")
    with (
        mounted(lab.cluster, names.NAMESPACE, volume, directory),
        Webhook.start(lab.cluster, installed, *arguments),
    ):
        lead_to(lab.cluster, port)
        until(lambda: called(lab.cluster))
        yield port


@pytest.fixture
async def client(lab: CommandLine) -> AsyncIterator[ApiWriter]:
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=lab.cluster.kubeconfig
    ) as connected:
        yield connected


@pytest.fixture(scope="module")
def jobs(lab: CommandLine) -> str:
    """A namespace in which pods can be created."""
    create_namespace(lab.cluster, "jobs")
    return "jobs"


def lead_to(cluster: Cluster, port: int) -> None:
    """Have the Service lead to a port of this machine."""
    manifests = InstallPlan(overlays=(Overlay.CERT_MANAGER,)).manifests()
    changed = [by_service(one, port) for one in manifests if one["kind"] in {"Service", *HOOKS}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": changed})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def renew(lab: CommandLine) -> None:
    """Ask for a new certificate as `cmctl renew` does."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    issuing = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "lastTransitionTime": now,
    }
    patch = [
        {"op": "add", "path": "/status/conditions/-", "value": {**issuing, "message": "by a test"}}
    ]
    what = (
        "-n",
        names.NAMESPACE,
        f"certificate/{CERTIFICATE}",
        "--subresource=status",
        "--type=json",
    )
    lab.cluster.kubectl("patch", *what, "-p", json.dumps(patch))


def lose_secret(lab: CommandLine) -> None:
    lab.cluster.kubectl("delete", "secret", "-n", names.NAMESPACE, SECRET)


def replace_authority(lab: CommandLine) -> None:
    """cert-manager renews no certificate because its CA is a new one, so that takes a second step."""
    before = secret(lab, "tls.crt", name=AUTHORITY)
    lab.cluster.kubectl("delete", "secret", "-n", names.NAMESPACE, AUTHORITY)
    until(lambda: secret(lab, "tls.crt", name=AUTHORITY) not in {before, ""})
    renew(lab)


def secret(lab: CommandLine, key: str, *, name: str = SECRET) -> str:
    data: dict[str, str] = lab.get("secret", "-n", names.NAMESPACE, name)["data"]
    return base64.b64decode(data[key]).decode()


def bundles(lab: CommandLine) -> set[str]:
    """The different caBundles of our webhooks."""
    configurations: list[dict[str, Any]] = lab.get(",".join(HOOKS), names.WEBHOOK_CONFIGURATION)[
        "items"
    ]
    hooks = [hook["clientConfig"] for one in configurations for hook in one["webhooks"]]
    return {base64.b64decode(hook["caBundle"]).decode() for hook in hooks}


def serves(port: int, certificate: str) -> bool:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port))) == der(
        certificate
    )


def der(certificate: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate)


def test_install_waits_for_the_certificate_and_the_injected_authority(
    lab: CommandLine, installation: str
) -> None:
    assert "Certificate mpijob-elastic/mpijob-elastic-webhook" in installation
    assert bundles(lab) == {secret(lab, "tls.crt", name=AUTHORITY)}
    assert "unchanged" in lab.install("--overlay=cert-manager")
    assert bundles(lab) == {secret(lab, "tls.crt", name=AUTHORITY)}


@pytest.mark.usefixtures("port")
def test_the_webhook_knows_jobs(lab: CommandLine, jobs: str) -> None:
    """tests/lab/test_certificate_sources.py shows what follows from that."""
    job = mpi_job(name="bounded", replicas=2, annotations={names.MAX_REPLICAS: "2"})
    job["metadata"]["namespace"] = jobs
    del job["metadata"]["uid"]
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    beyond = ("scale", "mpijob/bounded", "-n", jobs, "--replicas=3", "--dry-run=server")
    until(lambda: "use 1 to 2" in told(lab.cluster, *beyond)[1])


@pytest.mark.parametrize("how", [renew, lose_secret, replace_authority])
async def test_a_new_certificate_is_served_and_no_call_is_lost(
    lab: CommandLine, port: int, client: ApiWriter, jobs: str, how: Callable[[CommandLine], None]
) -> None:
    """The injector adds a new CA to the bundle and keeps the old one, so either certificate is trusted."""
    before = await asyncio.to_thread(secret, lab, "tls.crt")
    assert serves(port, before)
    async with patient(client):
        await until_patched(client, jobs)
        async with calling(client, jobs) as calls:
            await asyncio.to_thread(how, lab)
            await asyncio.to_thread(until, lambda: secret(lab, "tls.crt") not in {before, ""})
            after = await asyncio.to_thread(secret, lab, "tls.crt")
            await asyncio.to_thread(until, lambda: serves(port, after))
            made = calls.made
            while calls.made < made + 50:
                await asyncio.sleep(0.1)
    assert calls.lost == 0
    authority = await asyncio.to_thread(secret, lab, "ca.crt")
    assert all(authority in bundle for bundle in await asyncio.to_thread(bundles, lab))
