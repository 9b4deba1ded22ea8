"""What can be set for the controller process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mpijob_elastic import names
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.model.disruption_signs import Signs


@dataclass(frozen=True, kw_only=True)
class Settings:
    """namespace: whose jobs, None for all. workers: jobs looked at at once. Ports 0 are chosen by the kernel.

    signs: what says that a node is about to go; None where nodes may not be read.
    identity: must be new for each process; lease_namespace: where the Lease lives.
    """

    identity: str
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    lease_namespace: str = names.NAMESPACE
    workers: int = 16
    signs: Signs | None = None
    health_host: str = "0.0.0.0"  # noqa: S104 - the kubelet asks from outside the pod
    health_port: int = 8080
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
