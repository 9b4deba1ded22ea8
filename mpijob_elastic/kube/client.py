"""Connect to a cluster."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from mpijob_elastic.kube import kubeconfig as files
from mpijob_elastic.kube import proxy
from mpijob_elastic.kube.writer import ApiWriter


async def connect(*, user_agent: str, kubeconfig: Path | None = None, context: str | None = None) -> ApiWriter:
    """Connect with `kubeconfig` if given, else in-cluster, else with $KUBECONFIG or ~/.kube/config.

    Code that only reads declares the client an `ApiReader`. Raises `errors.Unconfigured` without usable configuration.
    """
    where = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    configuration = Configuration()
    headers = list[tuple[str, str]]()
    with files.usable(where):
        if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)
        else:
            loader = files.load(where, context)
            await loader.load_and_set(configuration)
            headers = files.impersonation(loader)
        configuration.proxy = configuration.proxy or proxy.chosen(configuration.host, os.environ)
        scheme = urlsplit(configuration.proxy or "http:").scheme
        if scheme not in ("http", "https"):
            raise config.ConfigException(f"a proxy must be http://HOST:PORT or https://HOST:PORT, not {scheme}://")
        return ApiWriter(configuration, user_agent=user_agent, headers=headers)
