"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.models import ArgumentInfo

from mpijob_elastic import names
from mpijob_elastic.cli import complete
from mpijob_elastic.model import phrases
from mpijob_elastic.telemetry import LogFormat, LogLevel
from mpijob_elastic.telemetry.terminal import say

Pairs = list[str] | None

# The names that kubectl accepts for the kind MPIJob; a dot with version and group may follow.
_KINDS = frozenset({"mpijob", "mpijobs", "mpij", "mj"})


def job_name(text: str | None) -> str | None:
    """Return the name of a job given as `train` or `mpijob/train`.

    Raises typer.BadParameter.
    """
    if text is None:
        return None
    kind, slash, name = text.rpartition("/")
    if not name or (slash and kind.lower().partition(".")[0] not in _KINDS):
        raise typer.BadParameter(
            f"{text} is not an MPIJob: give a name such as train, or mpijob/train"
        )
    return name


def job_names(texts: list[str] | None) -> list[str]:
    """Return the names of jobs, each once and each given as `job_name` takes it.

    The kind before the names, as kubectl wants it, is no name. Raises typer.BadParameter.
    """
    words = list(texts or ())
    if len(words) > 1 and _is_kind(words[0]):
        words = words[1:]
    return list(dict.fromkeys(filter(None, map(job_name, words))))


def job_names_or_all(texts: list[str] | None) -> list[str]:
    """Do the same as `job_names`, where no name stands for all jobs, and so does the kind alone."""
    words = list(texts or ())
    return [] if len(words) == 1 and _is_kind(words[0]) else job_names(words)


def _is_kind(word: str) -> bool:
    """Tell whether a word is the kind MPIJob, with or without version and group."""
    return word.lower().partition(".")[0] in _KINDS and "/" not in word


def seconds(text: str) -> float:
    """Return a duration such as `90s`, or a plain number, in seconds. Raises typer.BadParameter."""
    found = phrases.parse_duration(text if not text.replace(".", "", 1).isdecimal() else f"{text}s")
    if not found:
        raise typer.BadParameter(f"{text} is not a duration above 0, such as 90s, 10m or 1h")
    return found


def pairs(given: Pairs, between: str, option: str) -> dict[str, str]:
    """Return the parts before and after `between` of each text, the last of those that begin alike.

    Warns of what is lost by that. Raises typer.BadParameter.
    """
    found = grouped(given, between, option)
    for key, values in found.items():
        if len(values) > 1:
            text = f"Warning: {option} {key} is given with more than one value; the last counts"
            say(text, err=True)
    return {key: values[-1] for key, values in found.items()}


def grouped(given: Pairs, between: str, option: str) -> dict[str, list[str]]:
    """Return what stands behind `between` in the texts, by what stands before it.

    What is given twice is there once. Raises typer.BadParameter.
    """
    found = [text.partition(between) for text in dict.fromkeys(given or ())]
    if not all(left and mark for left, mark, _ in found):
        raise typer.BadParameter(
            f"{' '.join(given or ())}: each needs a {between} between its two parts",
            param_hint=option,
        )
    values = dict[str, list[str]]()
    for left, _, right in found:
        values.setdefault(left, []).append(right)
    return values


def worker_argument(text: str) -> ArgumentInfo:
    """Return the argument that names a worker, with this help text."""
    return typer.Argument(help=text, autocompletion=complete.workers, show_default=False)  # type: ignore[no-any-return]


Job = Annotated[
    str,
    typer.Argument(
        help="The job: train, or mpijob/train.",
        callback=job_name,
        autocompletion=complete.jobs,
        show_default=False,
    ),
]
Jobs = Annotated[
    list[str],
    typer.Argument(
        help="The jobs: train, or mpijob/train; several names are separated by spaces.",
        callback=job_names,
        autocompletion=complete.jobs,
        show_default=False,
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help=(
            "Kubeconfig file. Default: $KUBECONFIG or ~/.kube/config; in a pod, its service "
            "account."
        ),
        exists=True,
        dir_okay=False,
    ),
]
Context = Annotated[
    str | None, typer.Option(help="Context of the kubeconfig. Default: the current context.")
]
Contexts = Annotated[
    list[str] | None,
    typer.Option(
        "--context", help="Context of the kubeconfig; repeatable. Default: the current context."
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace of the job. Default: the namespace of the context."
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces.")
]
JobsNamespaces = Annotated[
    list[str] | None,
    typer.Option(
        envvar=names.JOBS_NAMESPACE_VARIABLE,
        help=(
            "Handle the jobs of this namespace only; repeatable. In the variable, spaces separate "
            "the names."
        ),
    ),
]
Selector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        help="Only MPIJobs with these labels, such as team=vision,env!=test.",
        show_default=False,
    ),
]
IgnoreNotFound = Annotated[
    bool, typer.Option("--ignore-not-found", help="A job that does not exist is no error.")
]
NoHeaders = Annotated[bool, typer.Option("--no-headers", help="Leave out the column names.")]
Output = Literal["table", "json", "yaml"]
HealthPort = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="Port of /healthz, /readyz and /metrics; 0: any free port."
    ),
]
Format = Annotated[
    LogFormat, typer.Option("--log-format", help="Format of the logs on standard error.")
]
Level = Annotated[LogLevel, typer.Option("--log-level", help="Lowest severity that is logged.")]
# Options of the commands that change a cluster.
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
StepTimeout = Annotated[float, typer.Option(min=1, help="Seconds to wait for each step.")]
TEMPLATE_LABELS = (
    "Put the labels of pod templates, which mpi-operator v0.2.3 drops, back on new pods, or leave "
    "the pods as the operator makes them."
)
TemplateLabels = Annotated[
    bool,
    typer.Option(
        "--template-labels/--no-template-labels",
        help=TEMPLATE_LABELS,
    ),
]
