"""`up --kind`: the same lab made by kind, for those who have Docker.

Nodes and pods are real there, and nothing of the control plane is tuned. Written from kind's documentation
(https://kind.sigs.k8s.io/docs/user/quick-start/); the project's own tests run without Docker, so they only check which
commands are run.
"""

import shutil
import subprocess
from pathlib import Path

import yaml

from lab.build import Say
from lab.components import CRDS
from lab.errors import LabError
from lab.layout import Layout

TAIL = 15  # lines of a command's complaint


def is_kind(layout: Layout) -> bool:
    """Tell whether a lab was made by kind."""
    return _marker(layout).exists()


def up(layout: Layout, kubernetes_version: str | None, say: Say, *, workers: int = 0) -> None:
    """Create a kind cluster with the lab's custom resource definitions; raise LabError with nothing left behind.

    Beside so many workers the control plane's node takes no pods of ours; without any it takes all.
    """
    _check_tools()
    if layout.root.exists():
        raise LabError(f"lab {layout.name!r} is up already; `python -m lab down --name {layout.name}` ends it.")
    layout.root.mkdir(mode=0o700, parents=True)
    _marker(layout).touch()
    try:
        say("kind create cluster")
        image = [f"--image=kindest/node:{kubernetes_version}"] if kubernetes_version else []
        config = ["--config=-"] if workers else []
        run(
            "kind",
            "create",
            "cluster",
            f"--name={cluster(layout)}",
            f"--kubeconfig={layout.kubeconfig}",
            "--wait=180s",
            *image,
            *config,
            stdin=_config(workers) if workers else None,
        )
        say("custom resource definitions")
        _apply(layout, CRDS)
    except BaseException:
        down(layout)
        raise


def ready(layout: Layout) -> bool:
    """Tell whether kind has the cluster, and its API server is ready."""
    _check_tools()
    if cluster(layout) not in run("kind", "get", "clusters").split():
        return False
    probe = ["kubectl", f"--kubeconfig={layout.kubeconfig}", "get", "--raw=/readyz"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def down(layout: Layout) -> None:
    """Delete the cluster and its files."""
    _check_tools()
    run("kind", "delete", "cluster", f"--name={cluster(layout)}")
    shutil.rmtree(layout.root)


def export_logs(layout: Layout) -> Path:
    """Let kind write all logs of its nodes to a directory, and return that."""
    run("kind", "export", "logs", str(layout.logs), f"--name={cluster(layout)}")
    return layout.logs


def cluster(layout: Layout) -> str:
    """Return kind's name for the lab's cluster."""
    return f"mpijob-lab-{layout.name}"


def run(*command: str, stdin: str | None = None) -> str:
    """Run one of the tools and return its output; raise LabError with the end of its complaint."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-TAIL:])
        raise LabError(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail}")
    return done.stdout


def _config(workers: int) -> str:
    # https://kind.sigs.k8s.io/docs/user/configuration/#nodes
    nodes = [{"role": "control-plane"}, *({"role": "worker"} for _ in range(workers))]
    return yaml.safe_dump({"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": nodes})


def _apply(layout: Layout, manifests: tuple[Path, ...]) -> None:
    kubectl = ("kubectl", f"--kubeconfig={layout.kubeconfig}")
    files = [f"--filename={path}" for path in manifests]
    run(*kubectl, "apply", *files)
    run(*kubectl, "wait", "--for=condition=Established", "--timeout=60s", *files)


def _check_tools() -> None:
    for tool, where in (
        ("docker", "https://docs.docker.com/engine/install/"),
        ("kind", "https://kind.sigs.k8s.io/docs/user/quick-start/#installation"),
        ("kubectl", "https://kubernetes.io/docs/tasks/tools/"),
    ):
        if shutil.which(tool) is None:
            raise LabError(f"{tool} is missing, which --kind needs: see {where}, or leave out --kind.")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        raise LabError("Docker does not answer, which --kind needs: see `docker info`, or leave out --kind.")


def _marker(layout: Layout) -> Path:
    return layout.root / "made-by-kind"
