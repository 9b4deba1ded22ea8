"""Ranks of the model as real processes in their pods, so that exec finds them.

Each is started by the job's own kubexec.sh with the launcher's own rights, as Horovod starts its own, so a worker that
the Role does not name cannot be reached. It runs until its input ends, and dies with its pod.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bench import jobs
from lab.cluster import Cluster
from lab.operator import KUBECTL_DIRECTORY
from lab.processes import tied_to_this_process
from mpijob_elastic import names

RANK = "exec cat"


class Ranks:
    """The processes of one run of a job, by host."""

    def __init__(self, *, kubectl: Path, rights: Path) -> None:
        self._kubectl = kubectl
        self._rights = rights
        self._ranks: dict[str, subprocess.Popen[bytes]] = {}
        self._ending: list[subprocess.Popen[bytes]] = []

    @classmethod
    def of(cls, cluster: Cluster, namespace: str) -> Ranks:
        """None yet; with the rights of the job's launcher, which must be there. Raises LabError."""
        rights = cluster.service_account_kubeconfig(namespace, names.launcher(jobs.JOB))
        return cls(kubectl=cluster.binaries.kubectl, rights=rights)

    def lost(self) -> set[str]:
        """Return the hosts whose rank has ended without a request."""
        return {host for host, rank in self._ranks.items() if rank.poll() is not None}

    def follow(self, ring: Iterable[str], *, kubexec: str) -> bool:
        """Start a rank in each new host of the ring, let those end that left it; whether there were any."""
        wanted = set(ring)
        leavers = [host for host in self._ranks if host not in wanted]
        newcomers = [host for host in sorted(wanted) if host not in self._ranks]
        for host in leavers:
            self._ending.append(self._end(self._ranks.pop(host)))
        for host in newcomers:
            self._ranks[host] = self._start(host, kubexec)
        self._ending = [rank for rank in self._ending if rank.poll() is None]
        return bool(leavers or newcomers)

    def close(self) -> None:
        """Leave none."""
        for rank in [*self._ranks.values(), *self._ending]:
            with rank:
                rank.kill()
        self._ranks, self._ending = {}, []

    def _start(self, host: str, kubexec: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", at_hand(kubexec, self._kubectl), names.KEY_KUBEXEC, host, RANK],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "KUBECONFIG": str(self._rights)},
            start_new_session=True,
            preexec_fn=tied_to_this_process(),  # noqa: PLW1509 - the benchmarks have no threads
        )

    @staticmethod
    def _end(rank: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        assert rank.stdin is not None
        rank.stdin.close()
        return rank


def at_hand(kubexec: str, kubectl: Path) -> str:
    """The script with this machine's kubectl, which hands its input on: by its end we tell a rank to end."""
    return kubexec.replace(f"{KUBECTL_DIRECTORY}/kubectl exec", f"exec '{kubectl}' exec --stdin")
