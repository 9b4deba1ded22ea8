"""Lines printed for people and scripts, without characters that a terminal would obey."""

import sys

import typer

from mpijob_elastic.telemetry.escapes import printable


def say(*lines: str, lead: str = "", colour: str | None = None, err: bool = False) -> None:
    """Print lines to standard output, or to standard error.

    `lead` is printed before the first line, and keeps its colours.
    """
    for line in lines:
        typer.echo(lead + typer.style(printable(line), fg=colour), err=err)
        lead = ""


def copy(line: bytes) -> None:
    """Print a line of a log as it is; on a terminal as `say` does, with spaces for tabs."""
    if sys.stdout.isatty():
        say(line.decode(errors="replace").expandtabs())
    else:
        typer.echo(line)


def put(text: str) -> None:
    """Print a text as it is, without a line break behind it; on a terminal as `say` shows lines."""
    if sys.stdout.isatty():
        text = "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
    typer.echo(text, nl=False)
