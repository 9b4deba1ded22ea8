"""The compared sides, alternately in the same lab: mpi-operator v0.3.0 alone, and us beside v0.2.3."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.install import install_into, uninstall_from
from lab.operator import Release
from lab.operator.process import HEALTH_PORT, Operator, check_health_port
from lab.replicas import Controller, Webhook


@dataclass(frozen=True, kw_only=True)
class Side:
    """A running side: its process ids by name."""

    pids: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An operator that is elastic itself: mpi-operator v0.3.0, or another binary.

    `flags` are added to the flags that a lab needs. A binary listens on `port`; no flag changes that.
    """

    binary: Path | None = None
    flags: Sequence[str] = ()
    port: int = HEALTH_PORT

    @property
    def name(self) -> str:
        """Name for tables and notes."""
        return self.binary.name if self.binary else f"mpi-operator {Release.V0_3_0}"

    def check(self) -> None:
        """Raise LabError if it cannot start now, before long work begins."""
        if self.binary:
            check_health_port(f"the peer {self.binary.name}", self.port)

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it during the block, without our programs. Raises LabError."""
        with Operator.start(cluster, release=Release.V0_3_0, binary=self.binary, flags=self.flags) as operator:
            yield Side(pids={"operator": operator.pid})


@dataclass(frozen=True, kw_only=True)
class Ours:
    """All our programs, installed as for users; `qps` and `burst` limit the operator beside us."""

    qps: int | None = None
    burst: int = 10

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run them during the block, and leave nothing behind. Raises LabError."""
        flags = [f"--kube-api-burst={self.burst}"] if self.qps else []
        installed = install_into(cluster)
        try:
            with (
                Operator.start(cluster, qps=self.qps, flags=flags) as operator,
                Webhook.start(cluster, installed) as webhook,
                Controller.start(cluster, installed) as controller,
            ):
                pids = {"operator": operator.pid, "webhook": webhook.process.pid, "controller": controller.process.pid}
                yield Side(pids=pids)
        finally:
            uninstall_from(cluster, installed)
