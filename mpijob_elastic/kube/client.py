"""Connect to a cluster."""

import os
from pathlib import Path

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter


async def connect(*, user_agent: str, kubeconfig: Path | None = None, context: str | None = None) -> ApiWriter:
    """Connect with `kubeconfig` if given, else in-cluster, else with $KUBECONFIG or ~/.kube/config.

    Code that only reads declares the client an `ApiReader`. Raises `errors.Unreachable` without usable configuration.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)
        else:
            await config.load_kube_config(
                config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=configuration
            )
    except (config.ConfigException, OSError) as error:
        where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise errors.Unreachable(
            f"no usable cluster configuration in {where}: {error}; pass --kubeconfig or set KUBECONFIG"
        ) from error
    return ApiWriter(configuration, user_agent=user_agent)
