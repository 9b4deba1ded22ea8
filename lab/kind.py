"""A cluster of kind's in the place of a lab with real nodes: `make real LAB_KIND=1`. Untested.

Nobody has run it, because no machine of ours had Docker: it is written from the documentation of kind and Docker.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import yaml

from lab.build import Say, ensure_programs
from lab.cluster import DEFAULT, TOKEN_SECONDS, Cluster
from lab.components import CRDS
from lab.errors import LabError
from lab.kubeconfig import read_server
from lab.layout import Layout
from lab.options import Options
from lab.versions import DEFAULT_KUBERNETES


def workers(name: str, count: int) -> tuple[str, ...]:
    """Return what kind calls so many workers of a lab: their Nodes, and their containers."""
    return tuple(f"{name}-worker{number if number > 1 else ''}" for number in range(1, count + 1))


class KindCluster(Cluster):
    """A kind cluster that is ready; of `binaries` only kubectl is used, and there is no `audit_log`."""

    @classmethod
    @contextmanager
    def start(cls, *, name: str = "default", options: Options = DEFAULT, say: Say = lambda _: None) -> Iterator[Self]:
        """Run a cluster with `options.real_nodes` workers for as long as the block lasts. Raise LabError."""
        layout, binaries = Layout.of(name), ensure_programs(DEFAULT_KUBERNETES, say)
        for directory in (layout.logs, layout.kubeconfigs):
            directory.mkdir(mode=0o700, parents=True)
        roles = ["control-plane", *["worker"] * options.real_nodes]
        config = {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "nodes": [{"role": role} for role in roles],
        }
        create = ("kind", "create", "cluster", f"--name={name}", "--config=-", "--wait=180s")
        try:
            _run(*create, f"--kubeconfig={layout.kubeconfig}", stdin=yaml.safe_dump(config))
            cluster = cls(
                name=name,
                state_dir=layout.root,
                kubeconfig=layout.kubeconfig,
                audit_log=layout.audit_log,
                binaries=binaries,
                options=options,
                server=read_server(layout.kubeconfig).url,
                exec_offered=True,
            )
            files = [f"--filename={path}" for path in CRDS]
            cluster.kubectl("apply", *files)
            cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *files)
            yield cluster
        finally:
            _run("kind", "delete", "cluster", f"--name={name}")
            shutil.rmtree(layout.root)

    @property
    def machine(self) -> str:
        """Address of this machine in Docker's network of kind's nodes. Raise LabError."""
        gateways = "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"
        told = _run("docker", "network", "inspect", "kind", f"--format={gateways}").split()
        return next(address for address in told if "." in address)  # the other is of IPv6

    def load_image(self, archive: Path) -> None:
        """Make the images of an archive known on each node. Raise LabError."""
        _run("kind", "load", "image-archive", str(archive), f"--name={self.name}")

    def kill_node(self, name: str) -> None:
        """End a node as if its power failed. Raise LabError."""
        # Else the kernel would close the connections of killed processes, and so tell their peers.
        _run("docker", "exec", name, "ip", "link", "set", "eth0", "down")
        _run("docker", "kill", "--signal=KILL", name)

    def start_node(self, name: str) -> None:
        """Start a node that was killed, and return when it is ready. Raise LabError."""
        _run("docker", "start", name)
        self.kubectl("wait", f"node/{name}", "--for=condition=Ready", "--timeout=180s")

    def _token(self, namespace: str, name: str) -> str:
        # Python's own TLS need not like the certificates that kubeadm makes; kubectl does.
        return self.kubectl("create", "token", name, f"--namespace={namespace}", f"--duration={TOKEN_SECONDS}s").strip()


def _run(*command: str, stdin: str | None = None) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    return done.stdout
