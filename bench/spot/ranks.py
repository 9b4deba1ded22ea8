"""The ranks of the model as real processes in their pods, so that probes find them.

The job's kubexec.sh starts each rank with the launcher's rights, as Horovod does, so no rank reaches a worker that the
Role does not name. A rank runs until its input ends, and dies with its pod.
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
    """The processes of a run of a job, by host."""

    def __init__(self, *, kubectl: Path, rights: Path) -> None:
        self._kubectl = kubectl
        self._rights = rights
        self._ranks: dict[str, subprocess.Popen[bytes]] = {}
        self._ending: list[subprocess.Popen[bytes]] = []

    @classmethod
    def of(cls, cluster: Cluster, namespace: str) -> Ranks:
        """Return an empty set of ranks with the rights of the job's launcher, which must exist. Raises LabError."""
        rights = cluster.service_account_kubeconfig(namespace, names.launcher(jobs.JOB))
        return cls(kubectl=cluster.binaries.kubectl, rights=rights)

    def lost(self) -> set[str]:
        """Return the hosts whose rank ended by itself."""
        return {host for host, rank in self._ranks.items() if rank.poll() is not None}

    def follow(self, ring: Iterable[str], *, kubexec: str) -> bool:
        """Start a rank in each new host, end the ranks of hosts that left; return True if anything changed."""
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
        """Kill all ranks."""
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
    """Return the script with this machine's kubectl, which passes its input on: the end of input ends a rank."""
    return kubexec.replace(f"{KUBECTL_DIRECTORY}/kubectl exec", f"exec '{kubectl}' exec --stdin")
