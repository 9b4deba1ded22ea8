"""`mpijob-elastic events`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job, NoHeaders, Output
from mpijob_elastic.cli.target import Where

_TYPES = ("normal", "warning")


def _types(texts: list[str] | None) -> list[str]:
    """Return types of Events that there are, all without a type. Raises typer.BadParameter."""
    types = ",".join(texts or ("Normal", "Warning")).split(",")
    if wrong := [one for one in types if one.lower() not in _TYPES]:
        raise typer.BadParameter(f"{', '.join(wrong)}: the types are Normal and Warning")
    return types


@cluster_command()
async def events(
    *,
    job: Job,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print new Events, too, until Ctrl-C.")
    ] = False,
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE,...",
            callback=_types,
            help="Only Warning, or only Normal Events; repeatable.",
            show_default=False,
        ),
    ] = None,
    no_headers: NoHeaders = False,
    where: Where,
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = "table",
) -> None:
    """Print the Events of a job, its launcher and its workers, the newest last.

    For example:

    - `mpijob-elastic events train -n ml`

    - `mpijob-elastic events train --types Warning`: what went wrong

    - `kubectl mpijob-elastic events train -w`: go on until Ctrl-C

    Kubernetes keeps Events for an hour; `history` has the changes of the size, also the older ones.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer from the
    API server; 130 Ctrl-C.
    """
    if watch and output != "table":
        raise typer.BadParameter("new Events are rows of a table", param_hint="--watch")
    asked = work.job_events.EventsAsked(
        types=types or (), output=output, headers=not no_headers, watch=watch
    )
    await work.job_events.events(where, job, asked)
