"""Settings of the controller process."""

from dataclasses import dataclass, field
from pathlib import Path

from mpijob_elastic import names
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.observe.nodes import Signs


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings, as `mpijob-elastic controller --help` explains them.

    identity: new for each process. signs: signs that a node is about to go, None if nodes may not be read. health_host:
    None for all addresses, of IPv4 and IPv6.
    """

    identity: str
    kubeconfig: Path | None = None
    context: str | None = None
    jobs_namespaces: tuple[str, ...] = ()  # none for all
    lease_namespace: str = names.NAMESPACE
    workers: int = 16
    signs: Signs | None = None
    health_host: str | None = None
    health_port: int = 8080
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
