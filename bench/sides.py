"""The two that are compared, by turns in the same lab: a peer alone, and us beside mpi-operator v0.2.3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import ports
from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import install_into, uninstall_from
from lab.operator.process import HEALTH_PORT, Operator
from lab.replicas import Controller, Webhook


@dataclass(frozen=True, kw_only=True)
class Side:
    """One that runs: its processes' ids by what they are."""

    pids: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An operator that is elastic itself: its binary, and flags beyond those that it needs to run in a lab.

    `port` is where it listens whatever its flags say.
    """

    binary: Path
    flags: Sequence[str] = ()
    port: int = HEALTH_PORT

    def check(self) -> None:
        """Raise LabError if it could not start now: told before long work begins."""
        if ports.taken(self.port):
            raise LabError(
                f"the peer {self.binary.name} answers about its health on port {self.port}, which no flag changes, and "
                f"another program listens there: end that one (`ss -ltnp 'sport = :{self.port}'` names it), or "
                "run this in a container of its own"
            )

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it for as long as the block lasts, with nothing of ours beside it. Raises LabError."""
        with Operator.start(cluster, binary=self.binary, flags=self.flags) as operator:
            yield Side(pids={"operator": operator.pid})


@dataclass(frozen=True, kw_only=True)
class Ours:
    """Everything of ours, installed as for users; `qps` and `burst` limit the operator beside us, 0 not at all."""

    qps: float = 5
    burst: int = 10

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it for as long as the block lasts, and leave nothing of it behind. Raises LabError."""
        installed = install_into(cluster)
        try:
            with (
                Operator.start(cluster, qps=self.qps, burst=self.burst) as operator,
                Webhook.start(cluster, installed) as webhook,
                Controller.start(cluster, installed) as controller,
            ):
                pids = {"operator": operator.pid, "webhook": webhook.process.pid, "controller": controller.process.pid}
                yield Side(pids=pids)
        finally:
            uninstall_from(cluster, installed)
