"""`mpijob-elastic webhook`: a process that runs in the cluster."""

from pathlib import Path
from typing import Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import work
from mpijob_elastic.cli.options import (
    Context,
    Format,
    HealthPort,
    JobsNamespaces,
    Kubeconfig,
    Level,
    TemplateLabels,
)


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
    work.webhook_service.run(
        kubeconfig=kubeconfig,
        context=context,
        host=host,
        port=port,
        health_port=health_port,
        namespace=namespace,
        extra_san=extra_san,
        certificate_directory=certificate_directory,
        jobs_namespace=jobs_namespace,
        template_labels=template_labels,
        drain_seconds=drain_seconds,
        log_format=log_format,
        log_level=log_level,
    )
