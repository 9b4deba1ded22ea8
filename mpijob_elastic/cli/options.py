"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mpijob_elastic.telemetry.logs import LogFormat, LogLevel

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="Kubeconfig file. Default: $KUBECONFIG or ~/.kube/config; in a pod its own account.",
        exists=True,
        dir_okay=False,
    ),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the current context.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace of the job. Default: the namespace of the context.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces.")]
JobsNamespaces = Annotated[
    list[str] | None,
    typer.Option(
        envvar="MPIJOB_ELASTIC_JOBS_NAMESPACE",
        help="Handle the jobs of this namespace only; repeatable. In the variable, spaces separate the names.",
    ),
]
Output = Literal["table", "json", "yaml"]
HealthPort = Annotated[
    int, typer.Option(min=0, max=65535, help="Port of /healthz, /readyz and /metrics; 0: any free port.")
]
Format = Annotated[LogFormat, typer.Option("--log-format", help="Format of the logs on standard error.")]
Level = Annotated[LogLevel, typer.Option("--log-level", help="Lowest severity that is logged.")]
