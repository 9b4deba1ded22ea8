"""`mpijob-elastic attach`."""

from typing import Annotated, Any

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job, worker_argument
from mpijob_elastic.cli.target import Where
from mpijob_elastic.cli.typed import CheckedCommand

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class AttachCommand(CheckedCommand):
    """`attach`, where what stands behind `--` is the command, with and without a worker."""

    def arranged(self, ctx: Any, args: list[str]) -> list[str]:
        """Put an empty worker before a `--` that follows the job. Raises click's UsageError."""
        if "--" not in args:
            return args
        at = args.index("--")
        values, _, _ = self.make_parser(ctx).parse_args(args=args[:at])
        return args if values.get("worker") else [*args[:at], "", *args[at:]]


@app.command(cls=AttachCommand)
@cluster_command()
def attach(
    *,
    job: Job,
    worker: Annotated[
        str | None, worker_argument("The worker: its number or its pod. Default: the launcher.")
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The command, after --. Default: a shell.", show_default=False),
    ] = None,
    where: Where,
) -> None:
    """Open a shell in a worker, or in the launcher, or run a command there.

    For example:

    - `mpijob-elastic attach train 2 -n ml`: a shell in train-worker-2

    - `mpijob-elastic attach train 2 -- nvidia-smi`: a command in train-worker-2

    - `kubectl mpijob-elastic attach train`: a shell in the launcher

    On a terminal the command runs `kubectl exec -it` with the right pod and container, so it needs
    kubectl and the right to exec. Elsewhere, as in a script, a command has an empty input, and its
    output and errors are one stream. Processes that you start so do not count as ranks: they delay
    no drain, and hide no lost rank.

    Exit codes: 0 done; 1 no such job or worker, the pod does not run, no right, or no terminal for a
    shell; 2 wrong usage; 4 no answer from the API server; 130 Ctrl-C; otherwise the exit code of the
    shell or the command.
    """
    raise typer.Exit(work.pods.attach(where, job=job, worker=worker or None, command=command or ()))
