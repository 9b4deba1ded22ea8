"""The lab of a part of the campaign, its users and their namespaces."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.options import Options
from mpijob_elastic.kube import client as clients
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.waiting import seen

NODES = 10  # kwok lets each hold 110 pods


@contextmanager
def lab(*, nodes: int = NODES) -> Iterator[tuple[Cluster, Installed]]:
    """Yield a lab in which the product is installed, and nothing of it runs yet."""
    with Cluster.start(name=f"campaign-{secrets.token_hex(3)}", options=Options(nodes=nodes)) as cluster:
        yield cluster, install_into(cluster)


async def user(cluster: Cluster) -> ApiWriter:
    """Return a client with all rights, as a context manager."""
    return await clients.connect(user_agent="mpijob-elastic-campaign-user", kubeconfig=cluster.kubeconfig)


async def create_namespace(client: ApiWriter, name: str) -> None:
    """Create a namespace in which pods can be created."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create_object(resources.NAMESPACES.path(), body=body)
    # Admission refuses pods before the namespace has it.
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await seen(lambda: client.find(account), lambda found: found is not None, f"{account} in {name}")
