"""`mpijob-elastic controller`: a process that runs in the cluster."""

import asyncio
import socket
from typing import Annotated
from uuid import uuid4

import typer

from mpijob_elastic import telemetry
from mpijob_elastic.cli import work
from mpijob_elastic.cli.options import (
    Context,
    Format,
    HealthPort,
    JobsNamespaces,
    Kubeconfig,
    Level,
)


def controller(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    jobs_namespace: JobsNamespaces = None,
    health_port: HealthPort = 8080,
    health_host: Annotated[
        str | None, typer.Option(help="Address of the health port. Default: all.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Jobs handled at the same time.")
    ] = 16,
    node_watch: Annotated[  # noqa: FBT002 - an option has a name
        bool,
        typer.Option(
            "--node-watch/--no-node-watch",
            help="Move workers off nodes that are about to be removed.",
        ),
    ] = True,
    disruption_sign: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Another sign that a node is about to go: a taint, KEY[=VALUE][:EFFECT], "
                "condition:TYPE[=False], or label:KEY=VALUE[,VALUE...]; repeatable."
            )
        ),
    ] = None,
    ignore_disruption_sign: Annotated[
        list[str] | None,
        typer.Option(
            help="Sign to ignore: the key of a taint, condition:TYPE, or label:KEY; repeatable."
        ),
    ] = None,
    component: Annotated[
        list[str] | None,
        typer.Option(help="Optional component that is installed, such as et-operator; repeatable."),
    ] = None,
    log_format: Format = "json",
    log_level: Level = "info",
) -> None:
    """Run the companion controller until SIGTERM; several replicas elect a leader.

    Example: `mpijob-elastic controller --kubeconfig ~/.kube/config --log-format console`
    """
    telemetry.configure_logs(log_format=log_format, level=log_level)
    try:
        signs = work.capabilities.node_signs(
            more=disruption_sign or (), ignored=ignore_disruption_sign or ()
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if unknown := {*(component or ())}.difference(work.live.OPTIONS):
        known = ", ".join(work.live.OPTIONS)
        raise typer.BadParameter(f"{min(unknown)}: there is only {known}", param_hint="--component")
    settings = work.process.ControllerSettings(
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
    asyncio.run(work.process.run(settings))
