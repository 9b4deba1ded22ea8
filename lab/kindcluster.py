"""A cluster of kind's in the place of a lab with real nodes: what `make real LAB_KIND=1` runs its tests on.

Written from the documentation and the sources of kind and Docker, as lab.kind is. The project's own tests run without
Docker, so they only check which commands are run.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from lab import kind, nodes
from lab.build import Say, ensure_programs
from lab.cluster import DEFAULT, TOKEN_SECONDS, Cluster
from lab.errors import LabError
from lab.kubeconfig import read_server
from lab.layout import Layout
from lab.options import Options
from lab.versions import DEFAULT_KUBERNETES, PINNED_KUBERNETES

NETWORK = "kind"  # Docker's, of all clusters of kind's
GATEWAYS = "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"
PATIENCE = 180.0  # seconds, for a node that was started
POLL = 0.5  # seconds


def workers(name: str, count: int) -> tuple[str, ...]:
    """Return what kind calls so many workers of a lab: their Nodes, and their containers.

    Source: MakeNodeNamer in pkg/cluster/internal/providers/common/namer.go of kind.
    """
    first = f"{kind.cluster(Layout.of(name))}-worker"
    return tuple(f"{first}{number}" if number > 1 else first for number in range(1, count + 1))


class KindCluster(Cluster):
    """A kind cluster that is ready; of `binaries` only kubectl is used, and there is no `audit_log`."""

    @classmethod
    @contextmanager
    def start(cls, *, name: str = "default", options: Options = DEFAULT, say: Say = lambda _: None) -> Iterator[Self]:
        """Run a cluster with `options.real_nodes` workers for as long as the block lasts. Raise LabError.

        The release is kind's own unless another than the pinned one is asked for. If this process is killed, the
        cluster stays until `python -m lab down --name NAME`.
        """
        layout, version = Layout.of(name), options.kubernetes_version
        binaries = ensure_programs(DEFAULT_KUBERNETES, say)
        asked = None if version == str(PINNED_KUBERNETES) else version
        kind.up(layout, asked, say, workers=options.real_nodes)
        try:
            for directory in (layout.logs, layout.kubeconfigs):
                directory.mkdir(mode=0o700)
            yield cls(
                name=name,
                state_dir=layout.root,
                kubeconfig=layout.kubeconfig,
                audit_log=layout.audit_log,
                binaries=binaries,
                options=options,
                server=read_server(layout.kubeconfig).url,
                exec_offered=True,
            )
        finally:
            kind.down(layout)

    @property
    def machine(self) -> str:
        """Address of this machine in the network of kind's nodes, if Docker runs on it as on Linux. Raise LabError."""
        told = kind.run("docker", "network", "inspect", NETWORK, f"--format={GATEWAYS}").split()
        for address in told:
            if "." in address:  # the other is of IPv6
                return address
        raise LabError(f"Docker's network {NETWORK!r} has no IPv4 gateway, where webhooks listen; it has {told}.")

    def load_image(self, archive: Path) -> None:
        """Make the images of a Docker archive known on each node. Raise LabError."""
        kind.run("kind", "load", "image-archive", str(archive), f"--name={kind.cluster(Layout(self.state_dir))}")

    def kill_node(self, name: str) -> None:
        """End a node as if its power failed; no error if it is down. Its Node stays. Raise LabError."""
        if _is_up(name):
            # Else the kernel would close the connections of killed processes, and so tell their peers.
            kind.run("docker", "exec", name, "ip", "link", "set", "eth0", "down")
            # Docker does not restart what was killed by a user, whatever the restart policy.
            kind.run("docker", "kill", "--signal=KILL", name)

    def start_node(self, name: str) -> None:
        """Start a node that was killed, and return when pods can be scheduled on it; no error if it is up.

        It has its disk, so its images, but none of its pods. Raise LabError.
        """
        if _is_up(name):
            return
        since = datetime.now(UTC)
        kind.run("docker", "start", name)
        deadline = time.monotonic() + PATIENCE
        while not self._is_usable(name, since):
            if time.monotonic() > deadline:
                raise LabError(
                    f"node {name!r} is not ready {PATIENCE:.0f} s after its start; see `docker logs {name}`."
                )
            time.sleep(POLL)

    def _is_usable(self, name: str, since: datetime) -> bool:
        told = self.kubectl("get", "node", name, "--ignore-not-found", "-o", "json")
        return bool(told) and nodes.usable_since(json.loads(told), since)

    def _token(self, namespace: str, name: str) -> str:
        # Python's own TLS need not like the certificates that kubeadm makes; kubectl does.
        asked = ("create", "token", name, "--namespace", namespace, f"--duration={TOKEN_SECONDS}s")
        return self.kubectl(*asked).strip()


def _is_up(name: str) -> bool:
    return kind.run("docker", "container", "inspect", "--format={{.State.Running}}", name).strip() == "true"
