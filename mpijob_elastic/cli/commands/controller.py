"""`mpijob-elastic controller`: a process that runs in the cluster."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.options import (
    Context,
    Format,
    HealthPort,
    JobsNamespaces,
    Kubeconfig,
    Level,
)
from mpijob_elastic.services.plain_options import Misuse


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
    try:
        work.controller_service.run(
            kubeconfig=kubeconfig,
            context=context,
            jobs_namespace=jobs_namespace,
            health_port=health_port,
            health_host=health_host,
            workers=workers,
            node_watch=node_watch,
            disruption_sign=disruption_sign,
            ignore_disruption_sign=ignore_disruption_sign,
            component=component,
            log_format=log_format,
            log_level=log_level,
        )
    except Misuse as error:
        raise typer.BadParameter(str(error), param_hint=error.option or None) from None
