"""`python -m lab.demo`, run as a user runs it: without a terminal, to its end and to a failure."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.build import ensure_programs
from lab.versions import DEFAULT_KUBERNETES

ROOT = Path(__file__).parents[3]
# A busy machine needs minutes for all of the demo.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(600.0)]


class Demo:
    """A demo that runs; `home` is below every path that its processes are given."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lab.demo", *options],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for a line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line with {pattern!r} in:\n" + "\n".join(self.said))

    def ended(self) -> int:
        """Wait for the end; the exit code. Nothing may be left of it."""
        rest, _ = self.process.communicate(timeout=120)
        self.said += rest.splitlines()
        assert not remaining(self.home)
        assert not list(self.home.glob("mpijob-elastic/lab/*"))
        return self.process.returncode


def remaining(home: Path) -> list[str]:
    """Command lines of processes that were given a path below `home`, or have it in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue  # gone meanwhile, or somebody else's
        if process.name != str(os.getpid()) and str(home).encode() in command + environment:
            found.append(command.replace(b"\0", b" ").decode())
    return found


@contextmanager
def demo(home: Path, *options: str) -> Iterator[Demo]:
    running = Demo(home, *options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def test_all_comes_true_and_what_is_kept_can_be_used(tmp_path: Path) -> None:
    with demo(tmp_path, "--keep", "--patience", "240") as running:
        kubeconfig, path = running.until(r"export KUBECONFIG=(\S+) PATH=(\S+):\$PATH").groups()
        said = "\n".join(running.said)
        assert "FAILED" not in said, said
        for step in ("create", "2→3", "3→1", "1→3", "3→2"):
            assert re.search(rf"^{step} +[0-9.]+$", said, re.MULTILINE)
        assert "Every change came true and no rank was killed." in said
        assert "rank in train-worker-2: ended by itself" in said
        assert "$ kubectl scale mpijob/train --replicas=2\nmpijob.kubeflow.org/train scaled" in said
        environment = {**os.environ, "KUBECONFIG": kubeconfig, "PATH": f"{path}:{os.environ['PATH']}"}
        command = [sys.executable, "-m", "mpijob_elastic", "get"]
        table = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        assert table.splitlines()[1].split()[:6] == ["train", "Running", "2", "2", "2", "0"]
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 0


def test_a_rank_that_is_killed_fails_the_step(tmp_path: Path) -> None:
    """Somebody deletes the pod of a worker in which a rank runs."""
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    with demo(tmp_path, "--name", "demo", "--patience", "240") as running:
        running.until("rank in train-worker-0: runs")
        kubeconfig = tmp_path / "mpijob-elastic" / "lab" / "demo" / "kubeconfig"
        delete = ("delete", "pod", "train-worker-0", "--wait=false")
        subprocess.run([kubectl, "--kubeconfig", kubeconfig, *delete], check=True)
        running.until("==> controller-")
        running.until("FAILED: step .+: the rank in train-worker-0 was killed")
        assert running.ended() == 1
