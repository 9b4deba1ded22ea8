"""The service `webhook`, with the values of its options."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mpijob_elastic import names, telemetry
from mpijob_elastic.telemetry import LogFormat, LogLevel
from webhook import server


def run(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    host: str | None = None,
    port: int = 9443,
    health_port: int = 8081,
    namespace: str = names.NAMESPACE,
    extra_san: Sequence[str] | None = None,
    certificate_directory: Path | None = None,
    jobs_namespace: Sequence[str] | None = None,
    template_labels: bool = True,
    drain_seconds: float = 15.0,
    log_format: LogFormat = "json",
    log_level: LogLevel = "info",
) -> None:
    """Run the webhook until SIGTERM, as `mpijob-elastic webhook --help` explains the options.

    Raises as `server.serve` does.
    """
    telemetry.configure_logs(log_format=log_format, level=log_level)
    settings = server.WebhookSettings(
        host=host,
        port=port,
        health_port=health_port,
        namespace=namespace,
        extra_sans=frozenset(extra_san or ()),
        certificate_directory=certificate_directory,
        jobs_namespaces=tuple(jobs_namespace or ()),
        restores_labels=template_labels,
        kubeconfig=kubeconfig,
        context=context,
        drain_seconds=drain_seconds,
        log_format=log_format,
        log_level=log_level,
    )
    asyncio.run(server.serve(settings))
