"""KEDA for a lab's API server: its operator, which asks the sources, and its adapter, which serves what they say.

Both are processes with the administrator's rights. KEDA's own manifests (Deployments, RBAC,
webhook) are not applied.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.pki import Authority
from lab.ports import free_ports
from tests.lab.aggregation import HOST, aggregated
from tests.lab.definitions import KEDA, served
from tests.peers.processes import running

GROUP = "v1beta1.external.metrics.k8s.io"
# ScaledObjects of all namespaces. Secrets of one, which need not exist.
ENVIRONMENT = {"WATCH_NAMESPACE": "", "KEDA_CLUSTER_OBJECT_NAMESPACE": "keda"}


@dataclass(frozen=True, kw_only=True)
class Keda:
    """Its two programs (lab/binaries/keda)."""

    operator: Path
    adapter: Path

    @contextmanager
    def serving(self, cluster: Cluster, directory: Path) -> Iterator[None]:
        """Serve ScaledObjects and their metrics as long as the block lasts; `directory` takes files."""
        authority = _certificates(directory)
        metrics, service, unused = free_ports(3)
        operator = self._operator(cluster, directory, service)
        adapter = self._adapter(cluster, directory, service, metrics, unused)
        with (
            served(cluster, KEDA, directory),
            running(operator, directory / "operator.log", environment=ENVIRONMENT),
            running(adapter, directory / "adapter.log", environment=ENVIRONMENT),
            aggregated(cluster, [GROUP], port=metrics, authority=authority),
        ):
            yield
            # While the operator runs: it takes its finalizer off them.
            cluster.kubectl("delete", "scaledobjects", "--all", "--all-namespaces")

    def _operator(self, cluster: Cluster, directory: Path, service: int) -> list[str]:
        ours = [f"--kubeconfig={cluster.kubeconfig}", f"--cert-dir={directory}"]
        serves = [f"--metrics-service-bind-address=127.0.0.1:{service}"]
        return [
            str(self.operator),
            *ours,
            *serves,
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
        ]

    def _adapter(
        self, cluster: Cluster, directory: Path, service: int, port: int, unused: int
    ) -> list[str]:
        accounts = (
            "kubeconfig",
            "lister-kubeconfig",
            "authentication-kubeconfig",
            "authorization-kubeconfig",
        )
        ours = [f"--{account}={cluster.kubeconfig}" for account in accounts]
        tls = [f"--cert-dir={directory}", f"--tls-cert-file={directory}/tls.crt"]
        tls += [
            f"--tls-private-key-file={directory}/tls.key",
            f"--metrics-service-address=127.0.0.1:{service}",
        ]
        return [
            str(self.adapter),
            *ours,
            *tls,
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--port={unused}",
        ]


def _certificates(directory: Path) -> bytes:
    """Write ca.crt, tls.crt and tls.key, by which the two know each other and the API server the adapter."""
    authority = Authority(directory, "ca", now=dt.datetime.now(dt.UTC))
    authority.issue("tls", user="keda", hosts=(HOST,))
    return authority.certificate.read_bytes()
