"""The script of kubectl-delivery, run with a kubectl that answers from a file."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.images.delivery import APPLETS, SCRIPT

PATIENCE = 30.0  # seconds


class Container:
    """A folder in which the script finds what it has in its container."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.running = root / "running"
        self.target = root / "kubectl-directory"
        self.target.mkdir()
        kubectl = root / "kubectl"
        kubectl.write_text(f"#!/bin/sh\n[ $2 = pods ] && [ $4 = space ] && cat {self.running}\n")
        kubectl.chmod(0o755)
        (root / "hostfile").write_text("train-worker-0 slots=1\ntrain-worker-1 slots=1\n")
        script = SCRIPT.read_text().replace("/bin/kubectl", str(kubectl)).replace("/etc/mpi", str(root))
        (root / "script").write_text(script)

    def start(self) -> subprocess.Popen[str]:
        path = f"{self.root}:{os.environ['PATH']}"
        environment = {"PATH": path, "TARGET_DIR": str(self.target), "NAMESPACE": "space"}
        script = str(self.root / "script")
        return subprocess.Popen(["sh", script], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


@pytest.fixture
def process(container: Container) -> Iterator[subprocess.Popen[str]]:
    with container.start() as running:
        yield running
        running.kill()


def test_it_copies_kubectl_and_waits_until_each_pod_was_seen_running(
    container: Container, process: subprocess.Popen[str]
) -> None:
    assert process.stdout is not None
    lines = process.stdout
    assert next(lines) == "waiting for: train-worker-0 train-worker-1\n"
    assert (container.target / "kubectl").stat().st_mode & 0o111
    container.running.write_text("pod/train-worker-1\npod/train-worker-10\n")
    assert next(lines) == "train-worker-1 runs\n"
    assert process.poll() is None
    # A pod that was seen once may be gone by the time the others run.
    container.running.write_text("pod/train-worker-0\n")
    assert next(lines) == "train-worker-0 runs\n"
    assert process.wait(PATIENCE) == 0


def test_it_needs_no_program_that_the_image_has_not() -> None:
    words = set(SCRIPT.read_text().replace("$(", " ").split())
    assert {"cp", "mv", "cut", "grep", "sleep"} <= words & set(APPLETS)
