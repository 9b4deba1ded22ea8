"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpijob_elastic.telemetry.logs import LogFormat, LogLevel

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="Kubeconfig file; without it in-cluster, $KUBECONFIG or ~/.kube/config.", exists=True, dir_okay=False
    ),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace of the job; without it the context's.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="The jobs of all namespaces.")]
Format = Annotated[LogFormat, typer.Option("--log-format", help="How logs are written to standard error.")]
Level = Annotated[LogLevel, typer.Option("--log-level", help="The least severe that is logged.")]
