"""The webhook does the same for a job with each source of its certificates: its own, and a directory (cert-manager).

With the directory it has the arguments and rights of the overlay; tests/peers/test_cert_manager.py
runs cert-manager.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.registration import called, configurations
from lab.replicas import Webhook
from mpijob_elastic import names
from mpijob_elastic.admission.worker_grace import MAIN
from mpijob_elastic.capabilities.gangs.facts import GANG, VOLCANO, VOLCANO_GROUP
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import by_identity
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.names import SUSPEND
from tests.lab.job import MPIRUN, Job, Object
from tests.lab.scalable import told
from tests.lab.waiting import seen, until
from tests.product.webhook.certificates.material import authority, leaf

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "operator", "source")]
LABELS = {"team": "vision"}
PLACES = ("--port=", "--health-port=", "--certificate-directory=")


@pytest.fixture(params=["own", "directory"])
def source(
    request: pytest.FixtureRequest, cluster: Cluster, installed: Installed, tmp_path: Path
) -> Iterator[None]:
    """A webhook with that source of certificates."""
    if request.param == "own":
        request.getfixturevalue("webhook")
        yield
        return
    now = datetime.now(UTC)
    signer = authority(now=now)
    pair = leaf(signer, now=now, hosts=frozenset({cluster.machine}))
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    manifests = by_identity(overlays.rendered(Overlay.CERT_MANAGER))
    [deployment] = (
        found
        for one, found in manifests.items()
        if (one.kind, one.name) == ("Deployment", names.WEBHOOK)
    )
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]
    options = [option for option in arguments if not option.startswith(PLACES)]
    with (
        rights_of_the_overlay(cluster),
        Webhook.start(cluster, installed, *options, f"--certificate-directory={tmp_path}"),
    ):
        trust(cluster, signer.certificate_pem)
        until(lambda: called(cluster))
        yield


@contextmanager
def rights_of_the_overlay(cluster: Cluster) -> Iterator[None]:
    """Take away what the overlay does not install."""
    default, overlay = (
        by_identity(overlays.rendered(name)) for name in (overlays.DEFAULT, Overlay.CERT_MANAGER)
    )
    items = [manifest for one, manifest in default.items() if one not in overlay]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("delete", "-f", "-", stdin=text)
    try:
        yield
    finally:
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)


def trust(cluster: Cluster, certificate: bytes) -> None:
    """Write the caBundles as cert-manager's injector does; the next webhook with its own certificates takes over."""
    bundle = base64.b64encode(certificate).decode()
    for one in configurations(port=1):
        patch = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index, _ in enumerate(one["webhooks"])
        ]
        cluster.kubectl(
            "patch",
            one["kind"],
            one["metadata"]["name"],
            "--type=json",
            f"--patch={json.dumps(patch)}",
        )


async def pods(job: Job, replicas: int) -> tuple[Object, list[Object]]:
    """Wait for the launcher and all workers."""
    state = await job.until(
        lambda state: state.launcher is not None and len(state.workers) == replicas, "its pods"
    )
    assert state.launcher is not None
    return state.launcher, [*state.workers.values()]


async def test_pods_and_scales_are_as_their_job_asks(
    client: ApiWriter, cluster: Cluster, namespace: str
) -> None:
    first, job, hidden = (
        Job(client=client, namespace=namespace, name=name) for name in ("first", "train", "hidden")
    )
    await first.create(replicas=2, annotations={names.MAX_REPLICAS: "2"})
    scaled = partial(told, cluster, "scale", "mpijob/first", "-n", namespace, "--replicas=3")
    # The webhook lets a job through that it does not know yet, so a scale that is not tried would
    # be done.
    tried = partial(asyncio.to_thread, scaled, "--dry-run=server")
    await seen(tried, lambda answer: "use 1 to 2" in answer[1], "a refusal")
    assert "use 1 to 2" in scaled()[1]

    asked = {SUSPEND: "true", GANG: "volcano", RUN_POLICY: "true"}
    await job.create(
        replicas=1,
        annotations=asked,
        labels=LABELS,
        job_labels={LABEL_QUEUE: "team"},
        run_policy={"activeDeadlineSeconds": 3600},
    )
    launcher, [worker] = await pods(job, 1)
    for pod in (launcher, worker):
        assert {gate["name"] for gate in pod["spec"]["schedulingGates"]} == {
            names.GATE_SUSPENDED,
            names.GATE_QUEUED,
        }
        assert LABELS.items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["annotations"][VOLCANO_GROUP] == "train"
        assert pod["spec"]["schedulerName"] == VOLCANO
    assert launcher["spec"]["activeDeadlineSeconds"] == 3600
    assert worker["spec"]["containers"][0]["args"] == [MAIN]
    assert worker["spec"]["terminationGracePeriodSeconds"] == 60

    await hidden.create(replicas=1, command=MPIRUN, annotations={names.ENABLED: "true"})
    launcher, _ = await pods(hidden, 1)
    [files] = (
        one["configMap"]
        for one in launcher["spec"]["volumes"]
        if one["name"] == names.CONFIG_VOLUME
    )
    assert names.KEY_DISCOVER_HOSTS in [item["key"] for item in files["items"]]
