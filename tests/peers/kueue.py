"""Kueue beside a lab that stays (lab.kueue): what it has brought goes with it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import kueue
from lab.cluster import Cluster
from lab.definitions import source
from lab.kueue import API, GROUP

__all__ = ["API", "GROUP", "Kueue"]
_WEBHOOKS = tuple(
    f"{kind}webhookconfiguration/{kind}-webhook-configuration"
    for kind in ("mutating", "validating")
)
_NAMESPACED = ("workloads", "localqueues")
_SHARED = ("clusterqueues", "resourceflavors", "topologies", "admissionchecks")


@dataclass(frozen=True, kw_only=True)
class Kueue:
    """The program (lab/binaries/kueue)."""

    program: Path

    @contextmanager
    def serving(
        self, cluster: Cluster, directory: Path, *, configuration: Mapping[str, Any] | None = None
    ) -> Iterator[None]:
        """Admit Workloads as long as the block lasts; `directory` takes files.

        configuration: fields of Kueue's Configuration besides those that a lab needs.
        """
        with kueue.running(cluster, self.program, directory=directory, configuration=configuration):
            yield
            for kind in _NAMESPACED:
                cluster.kubectl("delete", kind, "--all", "--all-namespaces")
            for kind in _SHARED:  # while Kueue takes finalizers off
                cluster.kubectl("delete", kind, "--all")
        cluster.kubectl("delete", *_WEBHOOKS)
        folder = source(kueue.RELEASE, directory=directory)
        files = [f"--filename={folder / name}" for name in kueue.RELEASE.files]
        cluster.kubectl("delete", *files)
