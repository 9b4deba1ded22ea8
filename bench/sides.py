"""The compared sides, alternately in the same lab: mpi-operator v0.3.0 alone, and us beside v0.2.3."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lab.cluster import Cluster
from lab.install import install_into, uninstall_from
from lab.operator import Release
from lab.operator.process import Operator
from lab.pod_access import pods_work
from lab.replicas import Controller, Webhook


@dataclass(frozen=True, kw_only=True)
class Side:
    """A running side: its process ids by name."""

    pids: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An operator that is elastic itself: mpi-operator v0.3.0; `flags` are added to those that a lab needs."""

    flags: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name for tables and notes."""
        return f"mpi-operator {Release.V0_3_0}"

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it during the block, without our programs. Raises LabError."""
        with Operator.start(cluster, release=Release.V0_3_0, flags=self.flags) as operator:
            yield Side(pids={"operator": operator.pid})


@dataclass(frozen=True, kw_only=True)
class Ours:
    """All our programs, installed as for users; `qps` limits the operator beside us, 0: not at all.

    Where the machine allows it they start as in a pod: a kubeconfig would cost them the memory of
    the library that reads it.
    """

    qps: int | None = None

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run them during the block, and leave nothing behind. Raises LabError."""
        installed = install_into(cluster)
        in_pod = pods_work()
        try:
            with (
                Operator.start(cluster, qps=self.qps) as operator,
                Webhook.start(cluster, installed, as_in_pod=in_pod) as webhook,
                Controller.start(cluster, installed, as_in_pod=in_pod) as controller,
            ):
                pids = {
                    "operator": operator.pid,
                    "webhook": webhook.process.pid,
                    "controller": controller.process.pid,
                }
                yield Side(pids=pids)
        finally:
            uninstall_from(cluster, installed)
