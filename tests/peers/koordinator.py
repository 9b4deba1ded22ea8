"""Koordinator's scheduler for a lab's API server, without its manager and agents, with the administrator's rights."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import yaml

from lab.cluster import Cluster
from lab.ports import free_ports
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.definitions import KOORDINATOR, served
from tests.lab.job import Object
from tests.peers.processes import BACKS_OFF, running

NAME = "koord-scheduler"
QUOTAS = Resource(
    group="scheduling.sigs.k8s.io", version="v1alpha1", plural="elasticquotas", kind="ElasticQuota"
)
PAGE = Path(__file__).parents[2] / "docs" / "gangs.md"
# As the page says; by default nothing is revoked.
REVOKES = {"monitorAllQuotas": True, "delayEvictTime": "30s"}
_PREFIX = "quota.scheduling.koordinator.sh"
_SYSTEM = "koordinator-system"


@contextmanager
def scheduling(program: Path, cluster: Cluster, directory: Path) -> Iterator[None]:
    """Schedule as long as the block lasts; `directory` takes files."""
    [port] = free_ports(1)
    command = [
        str(program),
        f"--config={directory}/scheduler.yaml",
        "--v=4",
        "--authentication-skip-lookup=true",
    ]
    command += [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory}",
        BACKS_OFF,
    ]
    with served(cluster, KOORDINATOR, directory) as source:
        (directory / "scheduler.yaml").write_text(yaml.safe_dump(_configuration(source, cluster)))
        cluster.kubectl("create", "namespace", _SYSTEM)  # for the quotas that it makes
        with running(command, directory / "koord-scheduler.log"):
            yield
        cluster.kubectl("delete", "namespace", _SYSTEM, "--wait=false")


def _configuration(source: Path, cluster: Cluster) -> Object:
    """Return the release's own configuration, with what the page changes in it; ElasticQuota also revokes."""
    file = yaml.safe_load((source / "config" / "manager" / "scheduler-config.yaml").read_text())
    found: Object = yaml.safe_load(file["data"]["koord-scheduler-config"])
    found["leaderElection"] = {"leaderElect": False}
    found["clientConnection"] = {"kubeconfig": str(cluster.kubeconfig), "qps": 500, "burst": 1000}
    [profile] = found["profiles"]
    assert profile["schedulerName"] == NAME
    [quotas] = (one["args"] for one in profile["pluginConfig"] if one["name"] == "ElasticQuota")
    quotas |= REVOKES
    [text] = re.findall(r"```yaml\n(profiles:.*?)```", PAGE.read_text(), re.DOTALL)
    [changes] = yaml.safe_load(text)["profiles"]
    profile["pluginConfig"] += changes["pluginConfig"]
    profile["plugins"] |= changes["plugins"]
    return found


@asynccontextmanager
async def quota(
    client: ApiWriter, name: str, *, least: int, most: int, parent: str = ""
) -> AsyncIterator[Object]:
    """Make a quota of GPUs as long as the block lasts; give the label of an MPIJob that uses it.

    parent: the quota that lends to it, and takes back.
    """
    marks = {f"{_PREFIX}/parent": parent} if parent else {f"{_PREFIX}/is-parent": "true"}
    spec = {"min": {"nvidia.com/gpu": least}, "max": {"nvidia.com/gpu": most}}
    body: Object = {"apiVersion": QUOTAS.api_version, "kind": QUOTAS.kind, "spec": spec}
    await client.create_object(
        QUOTAS.path(_SYSTEM), body=body | {"metadata": {"name": name, "labels": marks}}
    )
    yield {f"{_PREFIX}/name": name}
    await client.delete_object(QUOTAS.path(_SYSTEM, name))
