"""The service `controller`, with the values of its options."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from mpijob_elastic import capabilities, telemetry
from mpijob_elastic.capabilities import live
from mpijob_elastic.controller import process
from mpijob_elastic.services.plain_options import Misuse
from mpijob_elastic.telemetry import LogFormat, LogLevel


def run(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    jobs_namespace: Sequence[str] | None = None,
    health_port: int = 8080,
    health_host: str | None = None,
    workers: int = 16,
    node_watch: bool = True,
    disruption_sign: Sequence[str] | None = None,
    ignore_disruption_sign: Sequence[str] | None = None,
    component: Sequence[str] | None = None,
    log_format: LogFormat = "json",
    log_level: LogLevel = "info",
) -> None:
    """Run the controller until SIGTERM, as `mpijob-elastic controller --help` explains the options.

    Raises `Misuse`, and as `process.run` does.
    """
    telemetry.configure_logs(log_format=log_format, level=log_level)
    try:
        signs = capabilities.node_signs(
            more=disruption_sign or (), ignored=ignore_disruption_sign or ()
        )
    except ValueError as error:
        raise Misuse(str(error)) from None
    if unknown := {*(component or ())}.difference(live.OPTIONS):
        known = ", ".join(live.OPTIONS)
        raise Misuse(f"{min(unknown)}: there is only {known}", "--component")
    settings = process.ControllerSettings(
        identity=f"{socket.gethostname()}_{uuid4().hex[:12]}",
        kubeconfig=kubeconfig,
        context=context,
        jobs_namespaces=tuple(jobs_namespace or ()),
        workers=workers,
        signs=signs if node_watch else None,
        components=tuple(component or ()),
        health_host=health_host,
        health_port=health_port,
    )
    asyncio.run(process.run(settings))
