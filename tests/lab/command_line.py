"""`mpijob-elastic install`, `uninstall` and `upgrade` as a user types them."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from lab.cluster import Cluster
from mpijob_elastic import __version__
from mpijob_elastic.cli import app, exit_codes
from mpijob_elastic.kube.errors import KubeError
from tests.lab.upgrades import CRD, define, whole
from upgrade import crd

# What no node pulls here: kwok only pretends that pods run.
IMAGE = f"mpijob-elastic:{__version__}"
# The webhook is a pretended pod here, which puts no CA into its configurations.
INSTALL = ("install", "--no-wait", f"--image={IMAGE}")
UNINSTALL = ("uninstall", "--yes", "--timeout=240")


class CommandLine:
    """A lab, and the commands that change it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str]:
        """Exit code and output; in this process, for a new one takes a second to import what it needs."""
        result = self._invoke(arguments, kubeconfig)
        if isinstance(result.exception, KubeError):
            return exit_codes.of(result.exception), f"{result.output}{result.exception}"
        return result.exit_code, result.output

    def streams(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str, str]:
        """Exit code, output and complaints."""
        result = self._invoke(arguments, kubeconfig)
        if isinstance(result.exception, KubeError):
            return (
                exit_codes.of(result.exception),
                result.stdout,
                f"{result.stderr}{result.exception}",
            )
        return result.exit_code, result.stdout, result.stderr

    def done(self, *arguments: str) -> str:
        """Run what must succeed; return its output."""
        code, output = self.run(*arguments)
        assert code == 0, output
        return output

    def refused(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """Run what must be refused; return why, in one line."""
        code, output = self.run(*arguments, kubeconfig=kubeconfig)
        assert code == 1, output
        return " ".join(output.split())

    def install(self, *arguments: str) -> str:
        return self.done(*INSTALL, *arguments)

    def get(self, *what: str) -> Any:
        return json.loads(self.cluster.kubectl("get", *what, "-o", "json"))

    def world(self) -> dict[str, dict[str, Any]]:
        """Every object that stays until somebody removes it."""
        return whole(self.cluster)

    def spec(self) -> dict[str, Any]:
        """What the definition of MPIJobs says."""
        found: dict[str, Any] = self.get(CRD)["spec"]
        return found

    def is_scalable(self) -> bool:
        return crd.is_scalable(self.get(CRD))

    def fresh(self, definition: str) -> None:
        """Remove everything of ours, and give the cluster that definition of MPIJobs (tests/product/upgrade/crds)."""
        self.done(*UNINSTALL, "--no-scale")
        define(self.cluster, definition)

    def create_job(self, name: str = "train", **spec: Any) -> None:
        """Create a job in namespace jobs that nothing works on."""
        metadata = {"name": name, "namespace": "jobs"}
        job = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": metadata,
            "spec": spec,
        }
        self.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))

    def _invoke(self, arguments: tuple[str, ...], kubeconfig: Path | None) -> Result:
        result = CliRunner().invoke(
            app, [*arguments, f"--kubeconfig={kubeconfig or self.cluster.kubeconfig}"]
        )
        if result.exception and not isinstance(result.exception, (SystemExit, KubeError)):
            raise result.exception
        return result
