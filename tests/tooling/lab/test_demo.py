"""`python -m lab.demo`, run as a user runs it: without a terminal, to its end and to a failure."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab import control, replicas
from lab.build import ensure_programs
from lab.versions import DEFAULT_KUBERNETES

ROOT = Path(__file__).parents[3]
# A busy machine needs minutes for all of the demo.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(900.0)]
ENDS = control.END + 2 * replicas.GRACE + 60  # seconds that all of its processes may take to end


class Demo:
    """A demo that runs; `home` is below every path that its processes are given."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.said = ""
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
        for line in self.process.stdout:
            self.said += line
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line with {pattern!r} in:\n{self.said}")

    def ended(self) -> int:
        """Wait for the end; the exit code. Nothing may be left of it."""
        try:
            self.process.communicate(timeout=ENDS)
        except subprocess.TimeoutExpired:
            runs = subprocess.run(
                ["ps", "-eo", "pid,ppid,stat,wchan:24,args"],
                capture_output=True,
                text=True,
                check=True,
            )
            pytest.fail(f"the demo does not end; what runs:\n{runs.stdout}")
        assert subprocess.run(["pgrep", "--full", str(self.home)], check=False).returncode == 1
        assert not list(self.home.glob("mpijob-elastic/lab/*"))
        return self.process.returncode


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts a demo."""
    with ExitStack() as stack:

        def start(*options: str) -> Demo:
            running = Demo(tmp_path, *options)
            stack.enter_context(running.process)
            stack.callback(running.process.kill)
            return running

        yield start


def test_all_comes_true_and_what_is_kept_can_be_used(demo: Callable[..., Demo]) -> None:
    running = demo("--keep", "--patience", "240")
    kubeconfig, path = running.until(r"export KUBECONFIG=(\S+) PATH=(\S+):\$PATH").groups()
    said = running.said
    assert "FAILED" not in said, said
    for step in ("create", "2→3", "3→1", "1→3", "3→2"):
        assert re.search(rf"^{step} +[0-9.]+$", said, re.MULTILINE)
    assert "Every change came true and no rank was killed." in said
    assert "rank in train-worker-2: ended by itself" in said
    assert "$ kubectl scale mpijob/train --replicas=2\nmpijob.kubeflow.org/train scaled" in said
    environment = {**os.environ, "KUBECONFIG": kubeconfig, "PATH": f"{path}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "mpijob_elastic", "get"]
    table = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert table.splitlines()[1].split()[:7] == ["train", "Running", "-", "2", "2", "2", "0"]
    running.process.send_signal(signal.SIGINT)
    assert running.ended() == 0


def test_a_rank_that_is_killed_fails_the_step(demo: Callable[..., Demo]) -> None:
    """Somebody deletes the pod of a worker in which a rank runs."""
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    running = demo("--name", "demo", "--patience", "240")
    running.until("rank in train-worker-0: runs")
    kubeconfig = running.home / "mpijob-elastic" / "lab" / "demo" / "kubeconfig"
    delete = ("delete", "pod", "train-worker-0", "--wait=false")
    subprocess.run([kubectl, "--kubeconfig", kubeconfig, *delete], check=True)
    running.until("==> controller-")
    running.until("FAILED: step .+: the rank in train-worker-0 was killed")
    assert running.ended() == 1
