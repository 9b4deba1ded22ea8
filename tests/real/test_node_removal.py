"""However a lab with a real node ends, nothing of it stays on the machine; and while it is up, nothing shows."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.images import build, delivery
from lab.layout import Layout
from lab.node import cgroups
from lab.node.addresses import Place
from lab.state import State, read_state
from tests.real.machine import Machine, containers, groups, namespaces, processes_in
from tests.real.pods import await_phase, create, manifest

ROOT = Path(__file__).parents[2]
NAME = "other"
FIRST = Place(index=0)
END = 60.0  # seconds; ends are waited for, never timed

pytestmark = pytest.mark.usefixtures("own_node")


def lab(*arguments: str) -> None:
    command = [sys.executable, "-m", "lab", *arguments, f"--name={NAME}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def before(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The machine, with the session's lab, before another one that keeps its files elsewhere."""
    before = Machine.now()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield before
    lab("down")
    assert not Layout.of(NAME).root.exists()
    assert cluster.kubectl("get", "--raw=/readyz") == "ok", "the session's lab must not notice"


def bring_up() -> State:
    """Start the other lab, with a pod that does not end when it is asked to, on the real one of two nodes."""
    lab("up", "--real-node", "--nodes=1")
    other = Cluster.attach(name=NAME)
    other.load_image(build.ensure(delivery.NAME, lambda _: None))
    create(other, "default", manifest("stubborn", "trap '' TERM; while true; do sleep 1; done"))
    await_phase(other, "default", "stubborn", "Running")
    assert other.kubectl("get", "pod", "stubborn", "-o", "jsonpath={.spec.nodeName}") == FIRST.name
    state = read_state(Layout.of(NAME))
    assert state is not None
    return state


def kill(state: State) -> None:
    state.supervisor.signal(signal.SIGKILL)


def terminate(state: State) -> None:
    state.supervisor.signal(signal.SIGTERM)


def kill_kubelet(state: State) -> None:
    state.components[FIRST.kubelet].signal(signal.SIGKILL)


def kill_node(state: State) -> None:
    state.components[FIRST.name].signal(signal.SIGKILL)


@pytest.mark.parametrize("end", [kill, terminate, kill_kubelet, kill_node])
def test_nothing_of_a_real_node_stays(before: Machine, end: Callable[[State], None]) -> None:
    state = bring_up()
    theirs = namespaces(state)
    assert len(processes_in(theirs)) > 3
    own = groups(cgroups.name(Layout.of(NAME)))
    assert len(own) == len(cgroups.hierarchies())
    assert all(len(containers(group)) == 2 for group in own), "the pod and its sandbox"
    assert Machine.now() == before, "nothing shows"
    end(state)
    assert all(one.ends_within(END) for one in (state.supervisor, *state.components.values()))
    deadline = time.monotonic() + END
    while any(left := (processes_in(theirs), groups(cgroups.name(Layout.of(NAME))))):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert Machine.now() == before
