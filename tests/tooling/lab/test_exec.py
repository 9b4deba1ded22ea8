"""kubectl exec into a pretended pod runs real processes, which see and outlive what they would in a real one."""

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest

from lab.cluster import Cluster

PROCESSES = ("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
Exec = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(cluster: Cluster, namespace: str) -> Exec:
    """A function that starts a command in pod a or b."""
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    for name in ("a", "b"):
        spec = {"containers": [{"name": "main", "image": "none"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    cluster.kubectl(
        "wait", "-n", namespace, "pod/a", "pod/b", "--for=condition=Ready", "--timeout=240s"
    )
    kubectl = [
        str(cluster.binaries.kubectl),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "-n",
        namespace,
    ]

    def start(pod: str, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*kubectl, "exec", pod, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def rank(start: Exec) -> Iterator[subprocess.Popen[str]]:
    """A command that runs in pod a."""
    with start("a", "sh", "-c", "echo started; exec sleep 300") as running:
        assert running.stdout.readline() == "started\n"
        yield running
        running.kill()


def seen(start: Exec, pod: str) -> str:
    with start(pod, *PROCESSES) as process:
        return process.communicate()[0]


@pytest.mark.usefixtures("rank")
def test_a_command_sees_the_processes_of_its_own_pod_only(start: Exec) -> None:
    first, other = seen(start, "a"), seen(start, "b")
    assert "sleep 365d" in first
    assert "sleep 300" in first
    assert "sleep 365d" in other
    assert "sleep 300" not in other


def test_a_command_outlives_its_client(start: Exec, rank: subprocess.Popen[str]) -> None:
    rank.kill()
    rank.wait()
    assert "sleep 300" in seen(start, "a")


def test_deleting_a_pod_kills_its_commands(
    cluster: Cluster, namespace: str, rank: subprocess.Popen[str]
) -> None:
    cluster.kubectl("delete", "-n", namespace, "pod/a", "--timeout=240s")
    assert rank.wait() == 128 + 9


def test_a_pod_that_failed_has_no_commands_left_and_takes_none(
    cluster: Cluster, namespace: str, start: Exec, rank: subprocess.Popen[str]
) -> None:
    patch = '{"status": {"phase": "Failed"}}'
    cluster.kubectl("patch", "-n", namespace, "pod/a", "--subresource=status", f"--patch={patch}")
    assert rank.wait() == 128 + 9
    with start("a", "true") as process:
        assert "completed pod" in process.communicate()[1]
    assert process.returncode == 1
