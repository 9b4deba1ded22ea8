"""A kubeconfig means the same here as in kubectl: the account, the proxy, and the name in the certificate."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from lab.cluster import Cluster
from lab.kubeconfig import read_server
from mpijob_elastic.kube import errors, in_cluster
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS
from tests.faults.connect_proxy import ConnectProxy
from tests.lab.waiting import PATIENCE, kubectl_until_done

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]
GROUP = "readers-of-jobs"
# No resolver knows it; the certificate of the API server names `kubernetes`.
BEHIND = "https://api.behind-a-proxy.test:6443"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[ConnectProxy]:
    url = urlsplit(cluster.server)
    assert url.hostname
    assert url.port
    async with ConnectProxy(url.hostname, url.port) as running:
        yield running


@pytest.fixture
def written(cluster: Cluster, tmp_path: Path) -> Any:
    """Write the administrator's kubeconfig with more fields of its cluster and of its user."""

    def write(*, server: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
        content = yaml.safe_load(cluster.kubeconfig.read_text())
        content["clusters"][0]["cluster"] |= server or {}
        content["users"][0]["user"] |= user or {}
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    return write


@pytest.fixture
def readers(cluster: Cluster, namespace: str) -> str:
    """The namespace in which the group may read jobs, and do nothing else."""
    for words in (
        [
            "create",
            "role",
            "reader",
            "--verb=get,list,watch",
            f"--resource={MPI_JOBS.plural}.{MPI_JOBS.group}",
        ],
        ["create", "rolebinding", "reader", "--role=reader", f"--group={GROUP}"],
    ):
        cluster.kubectl(*words, "-n", namespace)
    asked = (
        "auth",
        "can-i",
        "watch",
        MPI_JOBS.plural,
        "--as=x",
        f"--as-group={GROUP}",
        "-n",
        namespace,
    )
    kubectl_until_done(cluster, *asked, patience=PATIENCE)
    return namespace


async def test_the_impersonated_account_acts(written: Any, readers: str) -> None:
    kubeconfig = written(user={"as": "someone", "as-groups": ["others", GROUP]})
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        assert json.loads(await client.get(MPI_JOBS.path(readers)))["items"] == []
        with pytest.raises(
            errors.Forbidden, match='User "someone" cannot create resource "configmaps"'
        ):
            await client.create_object(CONFIG_MAPS.path(readers), body={"metadata": {"name": "a"}})
        with pytest.raises(errors.Forbidden):
            async with client.stream(
                CONFIG_MAPS.path(readers), query={"watch": "true"}, silence=60
            ):
                pass
        with pytest.raises(errors.Forbidden):
            await exec_in_pod(
                client, readers, "none", container="main", command=["true"], timeout=PATIENCE
            )


async def test_all_of_an_impersonated_account_arrives(written: Any) -> None:
    extra = {"example.com/Team (a)".lower(): ["one", "two"], "scopes": ["view"]}
    user = {"as": "someone", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": extra}
    async with await connect(user_agent="test", kubeconfig=written(user=user)) as client:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = json.loads(await client.review(REVIEWS, body=review))["status"]["userInfo"]
    groups = ["a", "b", "system:authenticated"]
    assert found == {"username": "someone", "uid": "7", "groups": groups, "extra": extra}


@pytest.mark.thorough
async def test_the_proxy_of_a_kubeconfig_is_used(
    written: Any, proxy: ConnectProxy, namespace: str
) -> None:
    kubeconfig = written(
        server={"server": BEHIND, "proxy-url": proxy.url, "tls-server-name": "kubernetes"}
    )
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        assert json.loads(await client.get(MPI_JOBS.path(namespace)))["items"] == []
        query = {"watch": "true", "timeoutSeconds": "1"}
        async with client.stream(MPI_JOBS.path(namespace), query=query, silence=60) as lines:
            assert [line async for line in lines] == []
        with pytest.raises(errors.NotFound):
            await exec_in_pod(
                client, namespace, "none", container="main", command=["true"], timeout=PATIENCE
            )
    assert set(proxy.asked) == {"api.behind-a-proxy.test:6443"}
    code, output = await asyncio.to_thread(command, kubeconfig, "get", "-n", namespace)
    # Whether nobody carries out changes depends on what else runs beside this API server.
    *warnings, last = output.splitlines()
    assert all(line.startswith("Warning: ") for line in warnings)
    assert (code, last) == (0, f"No resources found in {namespace} namespace.")


async def test_another_name_than_the_certificates_is_refused(
    written: Any, proxy: ConnectProxy, namespace: str
) -> None:
    kubeconfig = written(server={"server": BEHIND, "proxy-url": proxy.url})
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        with pytest.raises(errors.Unreachable, match=r"not valid for 'api\.behind-a-proxy\.test'"):
            await client.get(MPI_JOBS.path(namespace))


async def test_the_proxy_of_the_environment_is_used(
    written: Any, proxy: ConnectProxy, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    kubeconfig = written(server={"server": BEHIND, "tls-server-name": "kubernetes"})
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        await client.get(MPI_JOBS.path(namespace))
    assert proxy.asked == ["api.behind-a-proxy.test:6443"]
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,.behind-a-proxy.test")
    async with await connect(user_agent="test", kubeconfig=kubeconfig) as client:
        with pytest.raises(errors.Unreachable):
            await client.get(MPI_JOBS.path(namespace))
    assert len(proxy.asked) == 1


async def test_a_pod_goes_by_the_proxy_of_its_environment(
    cluster: Cluster,
    proxy: ConnectProxy,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = yaml.safe_load(cluster.service_account_kubeconfig(namespace, "default").read_text())
    (tmp_path / "token").write_text(account["users"][0]["user"]["token"])
    (tmp_path / "ca.crt").write_bytes(read_server(cluster.kubeconfig).ca)
    monkeypatch.setattr(in_cluster, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    async with await connect(user_agent="test") as client:
        with pytest.raises(errors.Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await client.get(MPI_JOBS.path(namespace))
    assert proxy.asked == ["kubernetes.default.svc:443"]


def command(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and whole output of a command, as a user types it."""
    typed = [sys.executable, "-m", "mpijob_elastic", *arguments, "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(
        typed, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout
