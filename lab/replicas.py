"""The controller and the webhook as processes of this machine, each a replica as a pod would be.

with Webhook.start(cluster, installed), Controller.start(cluster, installed) as controller:
    controller.kill()
"""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from lab import companions
from lab.cluster import Cluster
from lab.install import Installed
from lab.layout import Layout
from lab.pod_access import with_service_account, write_service_account
from lab.ports import free_ports
from lab.processes import await_start, end

PATIENCE = 180.0  # seconds to become ready
GRACE = 30.0  # seconds to end after SIGTERM, as in our Deployments
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A running process; `health` is the URL of its /healthz, /readyz and /metrics without the path."""

    process: subprocess.Popen[bytes]
    log: Path
    health: str

    @property
    def pid(self) -> int:
        """Return its process ID."""
        return self.process.pid

    def metrics(self) -> str:
        """Return the text of /metrics."""
        with urllib.request.urlopen(f"{self.health}/metrics", timeout=10) as answer:  # noqa: S310 - our own, http
            return str(answer.read().decode())

    def ready(self) -> bool:
        """Return True if /readyz answers 200."""
        try:
            with urllib.request.urlopen(f"{self.health}/readyz", timeout=10):  # noqa: S310
                return True
        except (urllib.error.URLError, OSError):
            return False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a node that fails does."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """End it as a kubelet does, and return the exit code; negative where it had to be killed."""
        return end(self.process, within=GRACE)

    @classmethod
    @contextmanager
    def _run(
        cls,
        cluster: Cluster,
        name: str,
        kubeconfig: Path,
        options: Sequence[str],
        jobs_namespaces: Sequence[str],
        *,
        as_in_pod: bool,
    ) -> Iterator[Self]:
        [port] = free_ports(1)
        command = [
            *(sys.executable, "-m", "mpijob_elastic", name, f"--health-port={port}"),
            *options,
        ]
        environment = _environment(jobs_namespaces)
        with TemporaryDirectory(prefix="mpijob-elastic-") as folder:
            if as_in_pod:
                environment |= write_service_account(Path(folder), kubeconfig)
                command = with_service_account(Path(folder), *command)
            else:
                command.append(f"--kubeconfig={kubeconfig}")
            layout = Layout(cluster.state_dir)
            process, log = companions.start(layout, name, command, environment=environment)
            with cls._ended(process, name, port, log) as replica:
                yield replica

    @classmethod
    @contextmanager
    def _ended(
        cls, process: subprocess.Popen[bytes], name: str, port: int, log: Path
    ) -> Iterator[Self]:
        """Await that a process is ready, and end it after the block."""
        replica = cls(process=process, log=log, health=f"http://127.0.0.1:{port}")
        try:
            await_start(process, replica.ready, name=name, log=log, within=PATIENCE)
            yield replica
        finally:
            replica.signal(signal.SIGCONT)  # one that was stopped cannot end
            replica.terminate()


class Controller(Replica):
    """A controller. Several may run; one leads."""

    @classmethod
    @contextmanager
    def start(
        cls, cluster: Cluster, installed: Installed, *options: str, as_in_pod: bool = False
    ) -> Iterator[Self]:
        """Run one for as long as the block lasts; it is ready.

        `options` are further ones of its command. as_in_pod: without a kubeconfig (lab.pod_access).
        """
        only = ["--no-node-watch"] if installed.namespaces else []
        options = (*only, "--health-host=127.0.0.1", *options)
        kubeconfig = installed.controller_kubeconfig
        with cls._run(
            cluster,
            "controller",
            kubeconfig,
            options,
            installed.namespaces,
            as_in_pod=as_in_pod,
        ) as running:
            yield running


class Webhook(Replica):
    """A webhook, where the API server looks for it unless `port` says otherwise."""

    @classmethod
    @contextmanager
    def start(
        cls,
        cluster: Cluster,
        installed: Installed,
        *options: str,
        port: int | None = None,
        as_in_pod: bool = False,
    ) -> Iterator[Self]:
        """Run one for as long as the block lasts; it is ready.

        `options` are further ones of its command. as_in_pod: without a kubeconfig (lab.pod_access).

        Unless they say otherwise it does not drain: there is nobody here who must learn of its end
        first.
        """
        host = cluster.machine
        where = [
            f"--host={host}",
            f"--port={port or installed.webhook_port}",
            f"--extra-san={host}",
        ]
        options = (*where, "--drain-seconds=0", *options)
        with cls._run(
            cluster,
            "webhook",
            installed.webhook_kubeconfig,
            options,
            installed.namespaces,
            as_in_pod=as_in_pod,
        ) as running:
            yield running


def _environment(jobs_namespaces: Sequence[str]) -> dict[str, str]:
    # In-cluster settings of wherever this runs are not meant for a replica in the lab.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    # As our manifests say it.
    only = {"MPIJOB_ELASTIC_JOBS_NAMESPACE": " ".join(jobs_namespaces)} if jobs_namespaces else {}
    return {**kept, **only, "PYTHONPATH": str(ROOT)}
