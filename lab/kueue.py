"""Kueue for a lab's API server: its controllers, and its webhooks for its own kinds.

A process with the administrator's rights. Of Kueue's manifests only definitions and webhook
configurations are applied. Its integrations with other kinds of jobs are off.
"""

import base64
import datetime as dt
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from lab import companions
from lab.build import Say, ensure_peers
from lab.cluster import Cluster
from lab.definitions import Release, define, source
from lab.errors import LabError
from lab.layout import Layout
from lab.pki import LOOPBACK, Authority
from lab.ports import free_ports
from lab.processes import Identity, await_start, end
from lab.programs import PEERS
from lab.registration import at_address

NAME = "kueue"
GROUP = "kueue.x-k8s.io"
API = f"{GROUP}/v1beta2"
# The release that lab/binaries/kueue builds. All programs use the version that is stored, so
# nothing converts.
RELEASE = Release(
    module="sigs.k8s.io/kueue@v0.19.2",
    checksum="h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=",
    files=[
        f"config/components/crd/bases/{GROUP}_{kind}.yaml"
        for kind in (
            "admissionchecks",
            "clusterqueues",
            "cohorts",
            "localqueues",
            "multikueueclusters",
            "multikueueconfigs",
            "provisioningrequestconfigs",
            "resourceflavors",
            "topologies",
            "workloadpriorityclasses",
            "workloads",
        )
    ],
)
EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "kueue" / "queues.yaml"
QUEUE = "team"
PATIENCE = 120.0  # seconds to start on a busy machine
GRACE = 30.0  # seconds to end after SIGTERM
POLL = 0.1  # seconds
_WEBHOOKS = Path("config", "components", "webhook", "manifests.yaml")
# Kueue reads the certificate of its metrics from a fixed place in /etc: it gets an /etc of its own.
_PLACE = "/etc/kueue/metrics"
_START = f'mount -t tmpfs none /etc && mkdir -p {_PLACE} && cp -r "$0" {_PLACE}/certs && exec "$@"'


def program(say: Say) -> Path:
    """Return Kueue's program, built first where it is missing, for eight minutes. Raise LabError."""
    [built] = ensure_peers(say, [one for one in PEERS if one.name == NAME]).values()
    return built


@contextmanager
def running(
    cluster: Cluster,
    built: Path,
    *,
    directory: Path | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> Iterator[Identity]:
    """Admit Workloads as long as the block lasts, by the program `built`. Raise LabError.

    Definitions and webhook configurations stay. `directory`, a folder of the lab by default, takes
    Kueue's files. configuration: fields of Kueue's Configuration besides those that a lab needs.
    """
    directory = directory or cluster.state_dir / NAME
    certificates = directory / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    release = source(RELEASE, directory=directory)
    define(cluster, RELEASE, release)
    authority = Authority(directory, "ca", now=dt.datetime.now(dt.UTC))
    pair = authority.issue("server", user=NAME, hosts=("localhost",))
    (certificates / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (certificates / "tls.key").write_bytes(pair.key.read_bytes())
    port, health = free_ports(2)
    file = directory / "configuration.yaml"
    told = _configuration(port, health, certificates) | dict(configuration or {})
    file.write_text(yaml.safe_dump(told))
    _have_called(cluster, release / _WEBHOOKS, port=port, authority=authority)
    confined = ("unshare", "-rm", "sh", "-c", _START, str(certificates))
    gates = ("--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2")
    process, log = companions.start(
        Layout(cluster.state_dir),
        NAME,
        [*confined, str(built), f"--config={file}", *gates],
        environment={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
    )
    try:
        await_start(process, lambda: _is_ready(health), name="Kueue", log=log, within=PATIENCE)
        yield Identity.of(process.pid)
    finally:
        end(process, within=GRACE)


def queue(namespace: str, *, name: str = QUEUE, shared: str = QUEUE) -> list[dict[str, Any]]:
    """Return the queue of docs/examples/kueue for a namespace: its flavor, ClusterQueue and LocalQueue.

    name: the LocalQueue's, which jobs name. shared: the ClusterQueue's.
    """
    flavor, cluster_queue, local = yaml.safe_load_all(EXAMPLE.read_text())
    cluster_queue["metadata"]["name"] = local["spec"]["clusterQueue"] = shared
    local["metadata"] |= {"name": name, "namespace": namespace}
    return [flavor, cluster_queue, local]


def offer_queue(cluster: Cluster, namespace: str) -> None:
    """Make the queue of the example in a namespace that is there; Kueue runs. Raise LabError."""
    items = {"apiVersion": "v1", "kind": "List", "items": queue(namespace)}
    deadline = time.monotonic() + PATIENCE
    while not _made(cluster, json.dumps(items)):
        if time.monotonic() > deadline:
            raise LabError(f"Kueue's webhooks do not take a queue after {PATIENCE:.0f} s.")
        time.sleep(POLL)


def _made(cluster: Cluster, items: str) -> bool:
    try:
        cluster.kubectl("apply", "-f", "-", stdin=items)
    except LabError:
        return False
    return True


def _is_ready(health: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{health}/readyz", timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _have_called(cluster: Cluster, manifests: Path, *, port: int, authority: Authority) -> None:
    """Have the API server call the webhooks for Kueue's own kinds."""
    bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    items = [
        at_address(manifest, host=LOOPBACK, port=port)
        for manifest in yaml.safe_load_all(manifests.read_text())
    ]
    for item in items:
        item["webhooks"] = [
            hook for hook in item["webhooks"] if hook["rules"][0]["apiGroups"] == [GROUP]
        ]
        for hook in item["webhooks"]:
            hook["clientConfig"]["caBundle"] = bundle
    applied = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=applied)


def _configuration(port: int, health: int, certificates: Path) -> dict[str, Any]:
    return {
        "apiVersion": f"config.{API}",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": LOOPBACK, "port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
        "multiKueue": {"externalFrameworks": [{"name": "MPIJob.v1.kubeflow.org"}]},
    }
