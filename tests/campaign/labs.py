"""The lab of a part of the campaign, and its users."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.options import Options
from lab.registration import called
from lab.replicas import Webhook
from mpijob_elastic.kube import client as clients
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.waiting import until

NODES = 10  # kwok lets each hold 110 pods


@contextmanager
def served(
    *,
    nodes: int = NODES,
    beside: Callable[[Cluster], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Iterator[tuple[Cluster, Installed, Webhook]]:
    """Yield a lab in which the product is installed, and whose webhook runs and is called.

    beside: what has to be there before it.
    """
    options = Options(nodes=nodes)
    with (
        Cluster.start(name=f"campaign-{secrets.token_hex(3)}", options=options) as cluster,
        beside(cluster),
    ):
        installed = install_into(cluster)
        with Webhook.start(cluster, installed) as webhook:
            until(lambda: called(cluster))
            yield cluster, installed, webhook


async def user(cluster: Cluster) -> ApiWriter:
    """Return a client with all rights, as a context manager."""
    return await clients.connect(
        user_agent="mpijob-elastic-campaign-user", kubeconfig=cluster.kubeconfig
    )
