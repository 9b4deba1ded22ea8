"""One of two real nodes loses its power and comes back."""

import pytest

from lab.cluster import Cluster
from lab.layout import Layout
from lab.node import cgroups
from lab.node.addresses import Place
from lab.state import read_state
from tests.real.machine import Machine, containers, groups, namespaces_of, processes_in
from tests.real.nodes import FIRST, SECOND, lose
from tests.real.pods import await_phase, create, manifest, until

ESTABLISHED = "01"  # in /proc/net/tcp (include/net/tcp_states.h of Linux)
PORT = 7000


def run(cluster: Cluster, namespace: str, node: str, script: str) -> str:
    """Run a pod named as its node, there; returns its address."""
    create(cluster, namespace, manifest(node, script, nodeName=node))
    await_phase(cluster, namespace, node, "Running")
    return cluster.kubectl(
        "get", "pod", node, "--namespace", namespace, "-o", "jsonpath={.status.podIP}"
    )


def within(cluster: Cluster, namespace: str, node: str, script: str) -> str:
    return cluster.kubectl("exec", node, "--namespace", namespace, "--", "sh", "-c", script)


def connections(cluster: Cluster, namespace: str, node: str) -> list[str]:
    """The states of all connections to PORT that a pod has."""
    lines = [
        line.split()
        for line in within(cluster, namespace, node, "cat /proc/net/tcp").splitlines()[1:]
    ]
    return [fields[3] for fields in lines if fields[2].endswith(f":{PORT:04X}")]


@pytest.mark.usefixtures("own_node")
def test_a_node_whose_power_fails_tells_nobody_leaves_nothing_and_comes_back_as_new(
    cluster: Cluster, namespace: str, two_nodes: None
) -> None:
    layout, before = Layout(cluster.state_dir), Machine.now()
    address = run(cluster, namespace, SECOND, f"touch /started; sleep 1d | nc -l -p {PORT}")
    run(cluster, namespace, FIRST, f"sleep 1d | nc {address} {PORT}")
    until("the connection", lambda: connections(cluster, namespace, FIRST) == [ESTABLISHED] or None)
    state = read_state(layout)
    assert state is not None
    theirs, group = namespaces_of(state, Place(index=1)), cgroups.of_node(layout, SECOND)
    assert len(groups(group)) == len(cgroups.hierarchies())
    assert all(containers(one) for one in groups(group))

    lose(cluster, SECOND)
    assert (processes_in(theirs), groups(group)) == ([], [])
    assert Machine.now() == before
    assert connections(cluster, namespace, FIRST) == [ESTABLISHED], "nobody told it"
    cluster.kubectl(
        "wait", f"pod/{SECOND}", "--for=delete", "--timeout=180s", "--namespace", namespace
    )

    cluster.start_node(SECOND)
    assert run(cluster, namespace, SECOND, "[ ! -e /started ]; echo again; sleep 1d")
    assert cluster.kubectl("logs", SECOND, "--namespace", namespace) == "again\n"
