"""The job of docs/examples/elastic-pytorch on a lab with a real node, handled as a user would: with kubectl."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lab.build import Say
from lab.cluster import Cluster
from lab.demo.job import editor
from lab.images import build, horovod
from lab.training.log import Log, parse
from mpijob_elastic import names

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "elastic-pytorch" / "job.yaml"
NAME = "train"


def workers(size: int, *, job: str = NAME) -> tuple[str, ...]:
    """The names of that many workers, which are the hosts that train."""
    return tuple(names.worker(job, index) for index in range(size))


def example() -> dict[str, Any]:
    """The MPIJob of the documentation."""
    found: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return found


def slow(size: int, *, seconds: int) -> dict[str, Any]:
    """The example with that many workers, whose ranks sleep before they import Horovod."""
    manifest = example()
    specs = manifest["spec"]["mpiReplicaSpecs"]
    specs["Worker"]["replicas"] = size
    (launcher,) = specs["Launcher"]["template"]["spec"]["containers"]
    python = launcher["command"][-2:]
    launcher["command"][-2:] = ["sh", "-c", f"sleep {seconds}; exec {' '.join(python)}"]
    return manifest


def load_image(cluster: Cluster, say: Say) -> None:
    """Make the job's image known on the real node, built first where it is missing.

    Raise LabError.
    """
    archive = build.ensure(horovod.NAME, say)
    say(f"loading {horovod.NAME} into the real node")
    cluster.load_image(archive)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The job in a namespace; it need not exist yet.

    All methods raise LabError with kubectl's complaint.
    """

    cluster: Cluster
    namespace: str
    name: str = NAME

    def create(
        self, environment: Mapping[str, str], *, manifest: dict[str, Any] | None = None
    ) -> None:
        """Apply the example, or that manifest, with these environment variables of the launcher instead of its own."""
        manifest = manifest or example()
        manifest["metadata"]["name"] = self.name
        (launcher,) = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"][
            "containers"
        ]
        launcher["env"] = [{"name": name, "value": value} for name, value in environment.items()]
        self._kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))

    def edit(self, size: int) -> None:
        """Change the number of workers by `kubectl edit`."""
        self.cluster.kubectl("-n", self.namespace, "edit", "mpijob", self.name, editor=editor(size))

    def scale(self, size: int) -> None:
        """Change it by `kubectl scale`, which needs the subresource."""
        self._kubectl("scale", f"mpijob/{self.name}", f"--replicas={size}")

    def delete(self) -> None:
        """Delete the job, and wait until its pods are gone."""
        self._kubectl("delete", "mpijob", self.name)
        self._kubectl("wait", "pods", self._selector, "--for=delete", "--timeout=120s")

    def log(self) -> Log:
        """Return the launcher's log so far; empty while its container waits."""
        launcher = names.launcher(self.name)
        if self._phase(launcher) in ("", "Pending"):
            return parse("")
        return parse(self._kubectl("logs", launcher))

    def hosts(self) -> list[str]:
        """Return the hosts with slots that discover_hosts.sh prints in the launcher."""
        printed = self._kubectl("exec", names.launcher(self.name), "--", names.DISCOVER_HOSTS_PATH)
        return [line for line in printed.splitlines() if not line.endswith(":0")]

    def pods(self) -> dict[str, str]:
        """The phase of each pod of the job, by name."""
        found = self._kubectl("get", "pods", self._selector, "-o", "json")
        items: list[dict[str, Any]] = msgspec.json.decode(found)["items"]
        return {item["metadata"]["name"]: item["status"].get("phase", "") for item in items}

    def outcome(self) -> str:
        """Return the launcher's phase."""
        return self._phase(names.launcher(self.name))

    @property
    def _selector(self) -> str:
        return f"--selector={names.LABEL_JOB_NAME}={self.name}"

    def _phase(self, pod: str) -> str:
        return self._kubectl(
            "get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}"
        )

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, stdin=stdin)
