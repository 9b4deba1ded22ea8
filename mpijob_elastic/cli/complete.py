"""Complete jobs and workers from the cluster, in a shell and behind `kubectl mpijob-elastic`.

kubectl runs the executable `kubectl_complete-mpijob_elastic` with the typed words; the last word
may be empty. kubectl expects a line `VALUE<TAB>TEXT` for each choice, as typer prints for fish, and
a last line with one of cobra's directives (kubectl, pkg/cmd/plugin/plugin_completion.go).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import app, work
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.errors import KubeError
from mpijob_elastic.model import phrases
from mpijob_elastic.telemetry.escapes import printable
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.model.job import JobView

# Choices, each with a text about it.
Choices = list[tuple[str, str]]

# Seconds after which a cluster that does not answer offers no choices.
PATIENCE = 3.0
# A directive of cobra: complete no file names.
_NO_FILES = ":4"


def jobs(context: typer.Context, incomplete: str) -> Choices:
    """Return the jobs of the namespace whose names begin with `incomplete`."""

    async def found() -> Choices:
        async with work.connection.reached(_where(context)) as (client, namespace):
            read = await work.snapshot.jobs(client, work.snapshot.Selection(namespace=namespace))
        return [
            (job.metadata.name, f"{job.state}, {phrases.workers(job.facts.replicas)}")
            for job in read
        ]

    return _beginning(incomplete, found)


def workers(context: typer.Context, incomplete: str) -> Choices:
    """Return the workers that the typed job has or wants, and that begin with `incomplete`."""
    return _of_job(
        context, incomplete, lambda view: {*view.wanted, *(worker.index for worker in view.workers)}
    )


def wanted(context: typer.Context, incomplete: str) -> Choices:
    """Return the workers that the size asks for, and that begin with `incomplete`."""
    return _of_job(context, incomplete, lambda view: view.wanted)


def parked(context: typer.Context, incomplete: str) -> Choices:
    """Return the parked workers below Worker.replicas that begin with `incomplete`."""
    return _of_job(
        context,
        incomplete,
        lambda view: [index for index in view.skips if index < view.facts.replicas],
    )


def main() -> None:
    """Answer kubectl: complete the last of the given words."""
    *words, incomplete = sys.argv[1:] or [""]
    os.environ |= {
        "_MPIJOB_ELASTIC_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COLUMNS": "1000",  # otherwise texts are wrapped
        "_TYPER_COMPLETE_ARGS": f"{shlex.join([names.PROGRAM, *words])} {incomplete}",
    }
    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        app(prog_name=names.PROGRAM)
    for line in filter(None, printed.getvalue().splitlines()):
        value, tab, text = line.partition("\t")
        say(printable(text), lead=f"{printable(value)}{tab}")
    say(_NO_FILES)


def _beginning(incomplete: str, found: Callable[[], Awaitable[Choices]]) -> Choices:
    """Return the choices that begin with `incomplete`; none if the cluster does not answer.

    A completion has no place for an error message.
    """

    async def soon() -> Choices:
        async with asyncio.timeout(PATIENCE):
            return await found()

    kind, slash, _ = incomplete.rpartition("/")
    try:
        choices = asyncio.run(soon())
    except (KubeError, OSError):
        return []
    named = ((f"{kind}{slash}{name}", printable(text)) for name, text in choices)
    return [(name, text) for name, text in named if name.startswith(incomplete)]


def _of_job(
    context: typer.Context, incomplete: str, chosen: Callable[[JobView], Iterable[int]]
) -> Choices:
    async def found() -> Choices:
        async with work.connection.reached(_where(context)) as (client, namespace):
            # While an option's value is completed, click has not yet parsed the arguments.
            job = context.params.get("job") or " ".join(context.args[:1])
            view = (await work.snapshot.fetch_job(client, namespace, job)).view
        nodes = {worker.index: f"on {worker.facts.node}" for worker in view.workers}
        return [
            (names.worker(view.name, index), nodes.get(index, "")) for index in sorted(chosen(view))
        ]

    return _beginning(incomplete, found)


def _where(command: typer.Context) -> Where:
    given = command.params
    context = given.get("context") or None
    if not isinstance(context, str | None):
        [context, *_] = context  # the first of several contexts
    return Where(
        kubeconfig=given.get("kubeconfig"), context=context, namespace=given.get("namespace")
    )
