"""Kueue for a lab's API server: its controllers, and its webhooks for its own kinds.

A process with the administrator's rights. Of Kueue's manifests only definitions and webhook
configurations are applied. Its integrations with other kinds of jobs are off.
"""

import base64
import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.golang import download
from lab.pki import LOOPBACK, Authority
from lab.ports import free_ports
from lab.registration import at_address
from tests.lab.definitions import KUEUE, served
from tests.peers.processes import running

GROUP = "kueue.x-k8s.io"
API = f"{GROUP}/v1beta2"
# Kueue reads the certificate of its metrics from a fixed place in /etc: it gets an /etc of its own.
_PLACE = "/etc/kueue/metrics"
_START = f'mount -t tmpfs none /etc && mkdir -p {_PLACE} && cp -r "$0" {_PLACE}/certs && exec "$@"'


@dataclass(frozen=True, kw_only=True)
class Kueue:
    """The program (lab/binaries/kueue)."""

    program: Path

    @contextmanager
    def serving(
        self, cluster: Cluster, directory: Path, *, configuration: dict[str, Any] | None = None
    ) -> Iterator[None]:
        """Admit Workloads as long as the block lasts; `directory` takes files.

        configuration: fields of Kueue's Configuration besides those that a lab needs.
        """
        certificates = directory / "certificates"
        certificates.mkdir()
        authority = Authority(directory, "ca", now=dt.datetime.now(dt.UTC))
        pair = authority.issue("server", user="kueue", hosts=("localhost",))
        (certificates / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (certificates / "tls.key").write_bytes(pair.key.read_bytes())
        port, health = free_ports(2)
        file = directory / "configuration.yaml"
        told = _configuration(port, health, certificates) | (configuration or {})
        file.write_text(yaml.safe_dump(told))
        command = [
            "unshare",
            "-rm",
            "sh",
            "-c",
            _START,
            str(certificates),
            str(self.program),
            f"--config={file}",
        ]
        gates = ["--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2"]
        environment = {"KUBECONFIG": str(cluster.kubeconfig)}
        with (
            served(cluster, KUEUE, directory),
            running([*command, *gates], directory / "kueue.log", environment=environment),
            _called(cluster, directory, port=port, authority=authority),
        ):
            yield
            for kind in ("workloads", "localqueues"):
                cluster.kubectl("delete", kind, "--all", "--all-namespaces")
            for kind in (
                "clusterqueues",
                "resourceflavors",
                "topologies",
                "admissionchecks",
            ):  # while Kueue takes finalizers off
                cluster.kubectl("delete", kind, "--all")


@contextmanager
def _called(
    cluster: Cluster, directory: Path, *, port: int, authority: Authority
) -> Iterator[None]:
    """Have the API server call the webhooks for Kueue's own kinds."""
    module = Path(download(KUEUE.module, directory=directory)["Dir"])
    text = (module / "config/components/webhook/manifests.yaml").read_text()
    bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    items = [
        at_address(manifest, host=LOOPBACK, port=port) for manifest in yaml.safe_load_all(text)
    ]
    for item in items:
        item["webhooks"] = [
            hook for hook in item["webhooks"] if hook["rules"][0]["apiGroups"] == [GROUP]
        ]
        for hook in item["webhooks"]:
            hook["clientConfig"]["caBundle"] = bundle
    applied = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=applied)
    yield
    cluster.kubectl("delete", "-f", "-", stdin=applied)


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
