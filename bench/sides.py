"""The two that are compared, one after the other in the same lab: a peer alone, and us beside mpi-operator v0.2.3."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import install_into, uninstall_from
from lab.operator import KUBECTL_DELIVERY_IMAGE, STARTED
from lab.operator.process import BINARY_VARIABLE, LOCK_NAMESPACE, Operator
from lab.processes import spawn
from lab.replicas import Controller, Webhook

HEALTH_PORT = 8080  # the operator's, in every release; it cannot be told another
PATIENCE = 30.0  # seconds to start, lock included
GRACE = 5.0  # seconds to end
POLL = 0.05  # seconds

OURS, PEER = "ours", "peer"


@dataclass(frozen=True, kw_only=True)
class Side:
    """One that runs: its processes' ids by what they are."""

    name: str
    pids: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An operator that is elastic itself: its binary, and options beyond those it needs to run here."""

    binary: Path
    options: Sequence[str] = ()

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it for as long as the block lasts, with nothing of ours beside it. Raises LabError."""
        _check_port()
        _free_lock(cluster)
        log = cluster.state_dir / "logs" / f"peer-{time.time_ns()}.log"
        needed = [f"--kubectl-delivery-image={KUBECTL_DELIVERY_IMAGE}", f"--lock-namespace={LOCK_NAMESPACE}"]
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        process = spawn([str(self.binary), *needed, *self.options], log=log, environment=environment)
        try:
            _await_started(process, log)
            yield Side(name=PEER, pids={"operator": process.pid})
        finally:
            process.send_signal(signal.SIGTERM)
            _end(process)


@dataclass(frozen=True, kw_only=True)
class Ours:
    """Everything of ours, installed as for users; `qps` and `burst` limit the operator beside us, 0 not at all."""

    qps: float = 5
    burst: int = 10

    @contextmanager
    def start(self, cluster: Cluster) -> Iterator[Side]:
        """Run it for as long as the block lasts, and leave nothing of it behind. Raises LabError."""
        if os.environ.get(BINARY_VARIABLE):
            _check_port()
        installed = install_into(cluster)
        try:
            with (
                Operator.start(cluster, qps=self.qps, burst=self.burst) as operator,
                Webhook.start(cluster, installed) as webhook,
                Controller.start(cluster, installed) as controller,
            ):
                pids = {"operator": operator.pid, "webhook": webhook.process.pid, "controller": controller.process.pid}
                yield Side(name=OURS, pids=pids)
        finally:
            uninstall_from(cluster, installed)


def _check_port() -> None:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", HEALTH_PORT)) == 0:
            raise LabError(f"port {HEALTH_PORT} is in use, and a real mpi-operator needs it: end what listens there")


def _free_lock(cluster: Cluster) -> None:
    # One left by an operator that has ended would be waited for until it expires.
    namespace = f'{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{LOCK_NAMESPACE}"}}}}'
    cluster.kubectl("apply", "--filename=-", stdin=namespace)
    cluster.kubectl("delete", "endpoints", "mpi-operator", "--namespace", LOCK_NAMESPACE, "--ignore-not-found")


def _await_started(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while STARTED not in (text := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(text.splitlines()[-15:])
            raise LabError(f"the peer did not start within {PATIENCE:.0f} s. The end of {log}:\n{tail}")
        time.sleep(POLL)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
