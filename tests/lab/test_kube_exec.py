"""exec through the real API server: results, refusals, and which rights it asks for."""

import json
from collections.abc import AsyncIterator

import pytest

from lab.cluster import Cluster
from lab.versions import KubernetesVersion
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import ExecFailed, ExecResult, exec_in_pod
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.waiting import PATIENCE, may

# The minor version of Kubernetes 1.
CREATE_TOO_SINCE = 35


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="test", kubeconfig=cluster.kubeconfig) as client:
        yield client


@pytest.fixture
def pod(cluster: Cluster, namespace: str) -> str:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    spec = {"containers": [{"name": "main", "image": "none"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    cluster.kubectl("wait", "-n", namespace, "pod/a", "--for=condition=Ready", "--timeout=240s")
    return "a"


async def shell(
    client: ApiWriter, namespace: str, script: str, *, seconds: float = PATIENCE
) -> ExecResult:
    command = ["sh", "-c", script]
    return await exec_in_pod(
        client, namespace, "a", container="main", command=command, timeout=seconds
    )


@pytest.mark.usefixtures("pod")
async def test_output_and_exit_code_come_back(client: ApiWriter, namespace: str) -> None:
    result = await shell(client, namespace, "echo out; echo err >&2; exit 3")
    assert result == ExecResult(stdout="out\n", stderr="err\n", exit_code=3)
    result = await shell(
        client, namespace, "i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done"
    )
    assert (len(result.stdout), result.exit_code) == (22_000, 0)


@pytest.mark.usefixtures("pod")
async def test_time_and_output_are_bounded(client: ApiWriter, namespace: str) -> None:
    with pytest.raises(errors.Unreachable, match=r"no result within 0.5 s"):
        await shell(client, namespace, "sleep 100", seconds=0.5)
    with pytest.raises(ExecFailed, match="limit"):
        await shell(client, namespace, "while :; do echo 0123456789; done")


async def test_what_cannot_be_run_is_said(client: ApiWriter, namespace: str, pod: str) -> None:
    with pytest.raises(errors.NotFound):
        await exec_in_pod(
            client, namespace, "none", container="main", command=["true"], timeout=PATIENCE
        )
    with pytest.raises(errors.Invalid):
        await exec_in_pod(
            client, namespace, pod, container="none", command=["true"], timeout=PATIENCE
        )


@pytest.mark.thorough
@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("verbs", ["get", "create", "get,create"])
async def test_the_right_it_takes_is_get_on_pods_exec(
    cluster: Cluster, namespace: str, verbs: str
) -> None:
    """A WebSocket begins with a GET.

    From 1.35 on the API server asks for `create` as well (kubernetes#134577).
    """
    minor = KubernetesVersion.parse(cluster.options.kubernetes_version).minor
    allowed = verbs == "get,create" or (verbs == "get" and minor < CREATE_TOO_SINCE)
    for words in (
        ["create", "serviceaccount", "probe"],
        ["create", "role", "probe", f"--verb={verbs}", "--resource=pods/exec"],
        ["create", "rolebinding", "probe", "--role=probe", f"--serviceaccount={namespace}:probe"],
    ):
        cluster.kubectl(*words, "-n", namespace)
    for verb in verbs.split(","):
        may(cluster, "probe", verb, "pods/exec", namespace=namespace)
    kubeconfig = cluster.service_account_kubeconfig(namespace, "probe")
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        if allowed:
            assert (await shell(client, namespace, "exit 0")).exit_code == 0
        else:
            with pytest.raises(errors.Forbidden, match=r'cannot (get|create) resource "pods/exec"'):
                await shell(client, namespace, "exit 0")
