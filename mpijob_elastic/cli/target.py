"""Find the cluster and the namespace of a command, as kubectl does.

https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mpijob_elastic import __version__
from mpijob_elastic.cli import work
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter

DEFAULT_NAMESPACE = "default"
_IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, kw_only=True)
class Where:
    """The options that the user gave; None for an absent option."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


@asynccontextmanager
async def reached(where: Where) -> AsyncIterator[tuple[ApiWriter, str | None]]:
    """Give a connected client, whose warnings are printed, and the namespace, None for all.

    Raises `errors.Unconfigured` if there is no usable configuration.
    """
    file = kubeconfig_file(where.kubeconfig)
    user_agent = f"mpijob-elastic/{__version__}"
    async with await work.client.connect(
        user_agent=user_agent, kubeconfig=file, context=where.context
    ) as client:
        client.warn = lru_cache()(lambda text: say(f"Warning: {text}", err=True))
        namespace = (
            None
            if where.all_namespaces
            else where.namespace or default_namespace(file, where.context)
        )
        yield client, namespace


def kubeconfig_file(given: Path | None) -> Path | None:
    """Return the kubeconfig to read: --kubeconfig, $KUBECONFIG, or the home directory's.

    None: use the service account of this pod.
    """
    if given is not None:
        return given
    named = os.environ.get("KUBECONFIG")
    usual = Path.home() / ".kube" / "config"
    if named:
        return Path(named)
    return usual if usual.exists() else None


def namespace_of(where: Where) -> str:
    """Return the given namespace, or the default one."""
    return where.namespace or default_namespace(kubeconfig_file(where.kubeconfig), where.context)


def default_namespace(file: Path | None, context: str | None) -> str:
    """Return the namespace of the kubeconfig's context, or of the pod in which we run."""
    if file is None:
        inside = _IN_CLUSTER_NAMESPACE
        return inside.read_text().strip() if inside.exists() else DEFAULT_NAMESPACE
    chosen = work.client.load_kubeconfig(str(file), context).current_context
    return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)
