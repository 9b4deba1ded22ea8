"""kubectl exec into a pretended pod runs real processes, which see and outlive what they would in a real one."""

import json
import subprocess
from collections.abc import Callable

import pytest

from lab.cluster import Cluster

pytestmark = pytest.mark.usefixtures("sandboxes")
PROCESSES = ("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
RANK = ("sh", "-c", "echo started; exec sleep 300")


@pytest.fixture
def sandboxes(cluster: Cluster) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")


@pytest.fixture
def pods(cluster: Cluster, namespace: str) -> list[str]:
    for name in ("a", "b"):
        spec = {"containers": [{"name": "main", "image": "none"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    cluster.kubectl("wait", "-n", namespace, "pod/a", "pod/b", "--for=condition=Ready", "--timeout=240s")
    return ["a", "b"]


Exec = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(cluster: Cluster, namespace: str, pods: list[str]) -> Exec:
    """A function that starts a command in a pod."""

    def start(pod: str, *command: str) -> subprocess.Popen[str]:
        kubectl = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
        return subprocess.Popen(
            [*kubectl, "exec", pod, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_a_command_sees_the_processes_of_its_own_pod_only(start: Exec) -> None:
    with start("a", *RANK) as rank:
        assert rank.stdout is not None
        assert rank.stdout.readline() == "started\n"
        seen = {}
        for pod in ("a", "b"):
            with start(pod, *PROCESSES) as process:
                seen[pod] = process.communicate()[0]
        rank.kill()
    assert "sleep 365d" in seen["a"]
    assert "sleep 300" in seen["a"]
    assert "sleep 365d" in seen["b"]
    assert "sleep 300" not in seen["b"]


def test_a_command_outlives_its_client(start: Exec) -> None:
    with start("a", *RANK) as rank:
        assert rank.stdout is not None
        rank.stdout.readline()
        rank.kill()
    with start("a", *PROCESSES) as process:
        assert "sleep 300" in process.communicate()[0]


def test_deleting_a_pod_kills_its_commands(cluster: Cluster, namespace: str, start: Exec) -> None:
    with start("a", *RANK) as rank:
        assert rank.stdout is not None
        rank.stdout.readline()
        cluster.kubectl("delete", "-n", namespace, "pod/a", "--timeout=240s")
        assert rank.wait() == 128 + 9


def test_a_pod_that_failed_has_no_commands_left_and_takes_none(cluster: Cluster, namespace: str, start: Exec) -> None:
    with start("a", *RANK) as rank:
        assert rank.stdout is not None
        rank.stdout.readline()
        patch = '{"status": {"phase": "Failed"}}'
        cluster.kubectl("patch", "-n", namespace, "pod/a", "--subresource=status", f"--patch={patch}")
        assert rank.wait() == 128 + 9
    with start("a", "true") as process:
        assert "completed pod" in process.communicate()[1]
    assert process.returncode == 1
