"""Options of the commands that create a job, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mpijob_elastic.cli import work

if TYPE_CHECKING:
    from mpijob_elastic.cli.jobs.creation import Creation, DryRun

WaitForTraining = Annotated[
    bool, typer.Option("--wait", help="Wait until a rank runs in each worker.")
]
FollowLog = Annotated[
    bool,
    typer.Option(
        "--logs",
        help="Follow the launcher's log until the job ends. The exit code is then that of the job.",
    ),
]
JobOutput = Annotated[
    Literal["text", "yaml", "json", "name"],
    typer.Option(
        "--output",
        "-o",
        help="What to print about the job. Unless it is text, --wait and --logs print to standard "
        "error.",
    ),
]


def creation(
    dry_run: DryRun, output: str, *, wait: bool, timeout: str, look: bool, logs: bool
) -> Creation:
    """Return how to create a job; timeout: seconds, as the option has them."""
    patience = None
    if wait:
        patience = work.write_change.Patience(wait=True, seconds=float(timeout), look=look)
    return work.creation.Creation(dry_run=dry_run, output=output, patience=patience, logs=logs)
