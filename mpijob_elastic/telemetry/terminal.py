"""Text for terminals.

Users who may annotate a job, or run a process in its pods, choose texts that an administrator's
terminal shows. Control characters in these texts could rewrite the screen or type commands, and
direction marks could reorder a line. Both are shown as escapes, which JSON reads back.
"""

import re
import sys

import typer


def printable(line: str) -> str:
    """Return a line in which each character that does not print is an escape, as in JSON.

    A newline becomes an escape, too.
    """
    return line if line.isprintable() else "".join(map(_shown, line))


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


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return re.sub("....", r"\\u\g<0>", character.encode("utf-16-be", "surrogatepass").hex())
