"""Reach the cluster and the namespace of a command, as kubectl does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

from mpijob_elastic import __version__
from mpijob_elastic.cli.target import Where, kubeconfig_file
from mpijob_elastic.kube import client as kube_client
from mpijob_elastic.kube import in_cluster
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.terminal import say

DEFAULT_NAMESPACE = "default"


@asynccontextmanager
async def reached(where: Where) -> AsyncIterator[tuple[ApiWriter, str | None]]:
    """Give a connected client, whose warnings are printed, and the namespace, None for all.

    Raises `errors.Unconfigured` if there is no usable configuration.
    """
    file = kubeconfig_file(where.kubeconfig)
    user_agent = f"mpijob-elastic/{__version__}"
    async with await kube_client.connect(
        user_agent=user_agent, kubeconfig=file, context=where.context
    ) as client:
        client.warn = lru_cache()(lambda text: say(f"Warning: {text}", err=True))
        if where.all_namespaces:
            yield client, None
        else:
            yield client, where.namespace or default_namespace(file, where.context)


def namespace_of(where: Where) -> str:
    """Return the given namespace, or the default one."""
    return where.namespace or default_namespace(kubeconfig_file(where.kubeconfig), where.context)


def default_namespace(file: Path | None, context: str | None) -> str:
    """Return the namespace of the kubeconfig's context, or of the pod in which we run."""
    if file is None:
        inside = in_cluster.SERVICE_ACCOUNT / "namespace"
        return inside.read_text().strip() if inside.exists() else DEFAULT_NAMESPACE
    return kube_client.namespace_of(str(file), context) or DEFAULT_NAMESPACE
