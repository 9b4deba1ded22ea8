"""`python -m lab` as a user types it: a lab comes up, and however it ends, no process and no port stays behind."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import control
from lab.cluster import Cluster
from lab.layout import Layout
from lab.processes import Identity
from lab.state import State, read_state

ROOT = Path(__file__).parents[3]
LAB = (sys.executable, "-m", "lab")
END = control.END + 60.0  # seconds; ends are waited for, never timed


class Shell:
    """Runs commands with a state directory of its own."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "XDG_STATE_HOME": str(home)}
        self.home = home / "mpijob-elastic" / "lab"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LAB, *arguments],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*LAB, *arguments], cwd=ROOT, env=self._environment, stderr=subprocess.PIPE, text=True
        )

    def state(self, name: str = "default") -> State:
        state = read_state(Layout(self.home / name))
        assert state is not None
        return state


@pytest.fixture
def shell(cluster: Cluster, tmp_path: Path) -> Iterator[Shell]:
    """Commands are tried while another lab, that of the session, is up; it must not notice."""
    shell = Shell(tmp_path)
    yield shell
    shell.run("down")
    assert cluster.kubectl("get", "--raw=/readyz") == "ok"


def processes(state: State) -> list[Identity]:
    return [state.supervisor, *state.components.values()]


def all_end(identities: list[Identity]) -> bool:
    return all(identity.ends_within(END) for identity in identities)


def listening(state: State) -> bool:
    port = int(state.server.rpartition(":")[2])
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_up_use_and_down(shell: Shell) -> None:
    up = shell.run("up", "--nodes", "5")
    assert up.returncode == 0, up.stderr
    state = shell.state()
    assert f"ready after {state.ready_after:.1f} s: {state.server}" in up.stdout
    assert shell.run("status").returncode == 0
    kubeconfig = Path(shell.run("kubeconfig").stdout.strip())
    nodes = subprocess.run(
        [state.programs.kubectl, "get", "nodes", "-o", "name"],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert nodes.stdout.split() == [f"node/lab-{index}" for index in range(5)]
    assert (
        "Starting Kubernetes Scheduler" in shell.run("logs", "kube-scheduler", "-n", "100").stdout
    )

    again = shell.run("up")
    assert again.returncode == 1
    assert "is up already; `.venv/bin/python -m lab down --name default` ends it" in again.stderr
    assert listening(state)

    down = shell.run("down")
    assert (down.returncode, down.stdout) == (0, "lab default is down\n")
    assert not any(identity.alive() for identity in processes(state))
    assert not listening(state)
    assert not Layout(shell.home / "default").root.exists()
    assert shell.run("status").stdout == "lab default: down\n"


def test_a_killed_supervisor_takes_everything_with_it(shell: Shell) -> None:
    assert shell.run("up").returncode == 0
    state = shell.state()
    state.supervisor.signal(signal.SIGKILL)
    assert all_end(processes(state))
    assert not listening(state)
    status = shell.run("status")
    assert (status.returncode, status.stdout) == (1, "lab default: killed\n")
    assert shell.run("up").returncode == 0, "what a killed lab left is in nobody's way"
    assert shell.run("down").returncode == 0


def test_an_interrupted_start_leaves_nothing(shell: Shell) -> None:
    with shell.start("up") as command:
        assert command.stderr is not None
        while "kube-apiserver" not in command.stderr.readline():
            pass
        state = shell.state()
        command.kill()
        command.communicate()
    assert command.returncode != 0
    assert all_end(processes(state))
    assert not Layout(shell.home / "default").root.exists()


def test_the_operator_as_a_pod_needs_a_node_that_runs_it(tmp_path: Path) -> None:
    refused = Shell(tmp_path).run("up", "--operator")
    assert refused.returncode == 1
    assert (
        refused.stderr == "error: --operator needs a node that runs its pod: add --real-nodes 1.\n"
    )


def test_without_the_packages_one_line_says_what_to_type(tmp_path: Path) -> None:
    bare = [sys.executable, "-S", "-E", *LAB[1:], "up"]
    done = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("`make setup`, then `.venv/bin/python -m lab`.")
