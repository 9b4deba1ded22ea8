"""`mpijob-elastic controller` and `webhook`: the processes that run in the cluster."""

from pathlib import Path
from typing import Annotated

import typer

from mpijob_elastic import names, telemetry
from mpijob_elastic.cli.options import (
    Context,
    Format,
    HealthPort,
    JobsNamespaces,
    Kubeconfig,
    Level,
    TemplateLabels,
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
                "Another sign that a node is about to go: a taint, KEY[=VALUE][:EFFECT], or "
                "condition:TYPE; repeatable."
            )
        ),
    ] = None,
    ignore_disruption_sign: Annotated[
        list[str] | None,
        typer.Option(help="Sign to ignore: the key of a taint, or condition:TYPE; repeatable."),
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
    import asyncio  # noqa: PLC0415 - --help need not load the client
    import socket  # noqa: PLC0415
    from uuid import uuid4  # noqa: PLC0415

    from mpijob_elastic import capabilities  # noqa: PLC0415
    from mpijob_elastic.capabilities import live  # noqa: PLC0415
    from mpijob_elastic.controller import process  # noqa: PLC0415
    from mpijob_elastic.controller.process import ControllerSettings  # noqa: PLC0415

    telemetry.configure_logs(log_format=log_format, level=log_level)
    try:
        signs = capabilities.node_signs(
            more=disruption_sign or (), ignored=ignore_disruption_sign or ()
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if unknown := {*(component or ())}.difference(live.OPTIONS):
        known = ", ".join(live.OPTIONS)
        raise typer.BadParameter(f"{min(unknown)}: there is only {known}", param_hint="--component")
    settings = ControllerSettings(
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


def webhook(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: all.", hidden=True)
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Port of AdmissionReviews, over TLS; 0: any free port."
        ),
    ] = 9443,
    health_port: HealthPort = 8081,
    namespace: Annotated[
        str, typer.Option(help="Namespace of the Service and the Secret.")
    ] = names.NAMESPACE,
    extra_san: Annotated[
        list[str] | None,
        typer.Option(help="Another name or address for the certificate; repeatable.", hidden=True),
    ] = None,
    certificate_directory: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Serve tls.crt and tls.key from this directory (cert-manager) instead of own "
                "certificates."
            )
        ),
    ] = None,
    jobs_namespace: JobsNamespaces = None,
    template_labels: TemplateLabels = True,  # noqa: FBT002 - an option has a name
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds to keep serving after SIGTERM.")
    ] = 15.0,
    log_format: Format = "json",
    log_level: Level = "info",
) -> None:
    """Run the admission webhook until SIGTERM; replicas share their certificates through a Secret.

    Example: `mpijob-elastic webhook --kubeconfig ~/.kube/config --log-format console`
    """
    import asyncio  # noqa: PLC0415 - --help need not load the server

    from webhook.server import WebhookSettings, serve  # noqa: PLC0415

    telemetry.configure_logs(log_format=log_format, level=log_level)
    settings = WebhookSettings(
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
    )
    asyncio.run(serve(settings))
