"""What the commands of `mpijob-elastic upgrade` share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.install.changes import Change, Outcome

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter

INTERRUPTED = 130  # what a shell says of a program that Ctrl-C ended

_COLOURS = {Outcome.CREATED: "green", Outcome.CONFIGURED: "yellow", Outcome.DELETED: "red"}

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; nothing is written.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds to wait for each step.")]


def asking(question: str, *, yes: bool) -> Callable[[], bool]:
    """A question to the user; answered where `yes` was given."""
    return lambda: yes or typer.confirm(question)


def run(work: Callable[[ApiWriter], Awaitable[None]], kubeconfig: Path | None, context: str | None) -> None:
    """Run `work` with a client; Ctrl-C ends it with a word on how to go on."""
    from mpijob_elastic.kube.client import connect  # noqa: PLC0415 - --help need not load the client

    async def connected() -> None:
        async with await connect(user_agent="mpijob-elastic-upgrade", kubeconfig=kubeconfig, context=context) as client:
            await work(client)

    try:
        asyncio.run(connected())
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again to finish.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def say(news: Change | str) -> None:
    """Print what became of an object, or a sentence."""
    if isinstance(news, str):
        typer.echo(f"- {news}")
        return
    note = f" ({news.note})" if news.note else ""
    typer.echo(f"{typer.style(f'{news.outcome:<11}', fg=_COLOURS.get(news.outcome))} {news.identity}{note}")
    for line in news.difference.splitlines()[2:]:
        typer.secho(f"    {line}", fg={"+": "green", "-": "red"}.get(line[:1]))


def complain(text: str) -> None:
    """Print to standard error."""
    typer.echo(text, err=True)


def not_confirmed() -> None:
    """Say so, and end."""
    typer.echo("Not confirmed: nothing was changed.", err=True)
    raise typer.Exit(1)
