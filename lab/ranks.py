"""Stand-ins for Horovod's ranks, so that a drain has something to wait for.

As Horovod's driver does: look at the list of hosts once a second; in each new host start a rank, as
kubexec.sh does, with the launcher's own rights (so a worker that its Role does not name cannot be
reached); a rank whose host has left the list ends by itself at its next commit, and a host whose
rank was killed is never used again. A rank is a real process of its pod, which runs until its input
ends.
"""

import os
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from lab.cluster import Cluster
from lab.processes import tied_to_this_process
from mpijob_elastic import names

RANK = "echo started; exec cat"

State = Literal["starting", "running", "leaving", "ended", "killed"]


@dataclass(kw_only=True)
class Rank:
    """A rank. ends_at: when it ends by itself (monotonic seconds), None while its host is listed.

    started: whether it has said something, for `kubectl exec` takes a moment to reach its pod.
    """

    process: subprocess.Popen[bytes]
    ends_at: float | None = None
    started: bool = False

    @property
    def state(self) -> State:
        """A rank that ended in any other way than by itself was killed."""
        code = self.process.poll()
        if code is not None:
            return "ended" if code == 0 and self.ends_at is not None else "killed"
        if self.ends_at is not None:
            return "leaving"
        return "running" if self.started else "starting"

    def listen(self) -> None:
        """Notice its first word."""
        assert self.process.stdout is not None
        if not self.started:
            self.started = bool(self.process.stdout.read(1))

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        """Leave nothing of it."""
        with self.process:
            self.process.kill()


class Ranks:
    """The ranks of a job, by host. commit: seconds from learning that its host has left the list to a rank's end."""

    def __init__(self, cluster: Cluster, *, namespace: str, job: str, commit: float) -> None:
        rights = cluster.service_account_kubeconfig(namespace, names.launcher(job))
        self._kubectl = [
            str(cluster.binaries.kubectl),
            "--kubeconfig",
            str(rights),
            "-n",
            namespace,
        ]
        self._commit = commit
        self._ranks: dict[str, Rank] = {}

    @property
    def states(self) -> dict[str, State]:
        """Return the state of the rank in each host."""
        return {host: rank.state for host, rank in self._ranks.items()}

    def discover(self, hosts: Collection[str]) -> bool:
        """Let the driver look at its host list once; return True if a rank is started or learns that it shall end."""
        changed = False
        for host in hosts:
            before = self._ranks.get(host)
            if before is not None and before.state == "ended":
                before.close()
            if before is None or before.state == "ended":
                self._ranks[host] = self._start(host)
                changed = True
        for host, rank in self._ranks.items():
            if host not in hosts and rank.ends_at is None:
                rank.ends_at = time.monotonic() + self._commit
                changed = True
        return changed

    def commit(self) -> None:
        """Notice ranks that have started, and end those whose time has come."""
        for rank in self._ranks.values():
            rank.listen()
            if (
                rank.state == "leaving"
                and rank.ends_at is not None
                and rank.ends_at <= time.monotonic()
            ):
                rank.end()

    def close(self) -> None:
        """Leave none."""
        for rank in self._ranks.values():
            rank.close()

    def _start(self, host: str) -> Rank:
        # kubexec.sh: kubectl exec POD --container CONTAINER -- /bin/sh -c "$*"
        process = subprocess.Popen(
            [*self._kubectl, "exec", "-i", names.pod_of(host), "--", "/bin/sh", "-c", RANK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=tied_to_this_process(),  # noqa: PLW1509 - the callers have no threads
        )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        return Rank(process=process)
