"""A cluster of kind's in the place of a lab with real nodes: `make real LAB_KIND=1`. Untested.

Nobody has run it, because no machine of ours had Docker: it is written from the documentation of
kind and Docker.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import yaml

from lab.build import Say, ensure_programs
from lab.cluster import DEFAULT, TOKEN_SECONDS, Cluster
from lab.components import CRDS
from lab.kubeconfig import read_server
from lab.layout import Layout
from lab.options import Options
from lab.processes import run
from lab.versions import DEFAULT_KUBERNETES


def workers(name: str, count: int) -> tuple[str, ...]:
    """Return what kind calls so many workers of a lab: their Nodes, and their containers."""
    return tuple(f"{name}-worker{number if number > 1 else ''}" for number in range(1, count + 1))


class KindCluster(Cluster):
    """A kind cluster that is ready; of `binaries` only kubectl is used, and there is no `audit_log`."""

    @classmethod
    @contextmanager
    def start(
        cls, *, name: str = "default", options: Options = DEFAULT, say: Say = lambda _: None
    ) -> Iterator[Self]:
        """Run a cluster with `options.real_nodes` workers for as long as the block lasts.

        Raise LabError.
        """
        layout, binaries = Layout.of(name), ensure_programs(DEFAULT_KUBERNETES, say)
        for directory in (layout.logs, layout.kubeconfigs):
            directory.mkdir(mode=0o700, parents=True)
        nodes = [{"role": role} for role in ("control-plane", *["worker"] * options.real_nodes)]
        config = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": nodes}
        create = (
            "kind",
            "create",
            "cluster",
            f"--name={name}",
            f"--kubeconfig={layout.kubeconfig}",
            "--wait=180s",
        )
        try:
            run(*create, "--config=-", stdin=yaml.safe_dump(config))
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
            run("kind", "delete", "cluster", f"--name={name}")
            shutil.rmtree(layout.root)

    @property
    def machine(self) -> str:
        """Address of this machine in Docker's network of kind's nodes. Raise LabError."""
        gateways = "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"
        told = run("docker", "network", "inspect", "kind", f"--format={gateways}").split()
        return next(address for address in told if "." in address)  # the other is of IPv6

    def load_image(self, archive: Path) -> None:
        """Make the images of an archive known on each node. Raise LabError."""
        run("kind", "load", "image-archive", archive, f"--name={self.name}")

    def _token(self, namespace: str, name: str) -> str:
        # Python's own TLS need not like the certificates that kubeadm makes; kubectl does.
        return self.kubectl(
            "create", "token", name, f"--namespace={namespace}", f"--duration={TOKEN_SECONDS}s"
        ).strip()
