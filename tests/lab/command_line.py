"""`mpijob-elastic install`, `uninstall` and `upgrade` as a user types them."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from lab.cluster import Cluster
from mpijob_elastic import __version__
from mpijob_elastic.cli import app, exit_codes
from mpijob_elastic.kube.errors import KubeError
from tests.lab.upgrades import whole

# What no node pulls here: kwok only pretends that pods run.
IMAGE = f"mpijob-elastic:{__version__}"


class CommandLine:
    """A lab, and the commands that change it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str]:
        """Exit code and output; in this process, for a new one takes a second to import what it needs."""
        result = CliRunner().invoke(app, [*arguments, f"--kubeconfig={kubeconfig or self.cluster.kubeconfig}"])
        if isinstance(result.exception, KubeError):
            return exit_codes.of(result.exception), f"{result.output}{result.exception}"
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    def install(self, *arguments: str) -> str:
        code, output = self.run("install", "--no-wait", f"--image={IMAGE}", *arguments)
        assert code == 0, output
        return output

    def get(self, *what: str) -> Any:
        return json.loads(self.cluster.kubectl("get", *what, "-o", "json"))

    def world(self) -> dict[str, dict[str, Any]]:
        """Every object that stays until somebody removes it."""
        return whole(self.cluster)
