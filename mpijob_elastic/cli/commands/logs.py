"""`mpijob-elastic logs`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import Job, seconds
from mpijob_elastic.cli.target import Where

# What kubectl takes for no limit.
_NO_TIME, _ALL = frozenset({"0", "0s", "0m", "0h"}), -1


def _moment(text: str) -> str:
    """Return a moment as the API server reads it, "" for none. Raises typer.BadParameter."""
    if not text:
        return ""
    wrong = typer.BadParameter(f"{text} is no moment such as 2026-01-31T08:00:00Z")
    try:
        moment = datetime.fromisoformat(text)
        utc = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise wrong from None
    if moment.tzinfo is None:
        raise wrong
    return utc.isoformat().replace("+00:00", "Z")


def _since(text: str) -> float:
    """Return a duration in seconds; 0 for all, as in kubectl. Raises typer.BadParameter."""
    return 0.0 if text in _NO_TIME else seconds(text)


@cluster_command()
async def logs(
    *,
    job: Job,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Keep on until the job ends, through restarts and new launchers."
        ),
    ] = False,
    since: Annotated[
        float | None,
        typer.Option(
            parser=_since, metavar="DURATION", help="Only lines of this last time: 90s, 5m, 2h."
        ),
    ] = None,
    since_time: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=_moment,
            help="Only lines since this moment: 2026-01-31T08:00:00Z.",
            show_default=False,
        ),
    ] = "",
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Print the time of each line before it.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option(min=-1, help="Only this many last lines; -1 for all.")
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The log before the container restarted.")
    ] = False,
    rank: Annotated[
        int | None,
        typer.Option(
            min=0, help="Only lines that Horovod marks with this rank, with the worker of each."
        ),
    ] = None,
    worker: Annotated[
        str | None, typer.Option(help="Only lines of this worker: its number or its pod.")
    ] = None,
    where: Where,
) -> None:
    """Print the launcher's log, which contains the output of all ranks.

    For example:

    - `mpijob-elastic logs train -n ml --tail 20`: the last lines

    - `mpijob-elastic logs train -f`: wait for the launcher, and follow it until the job ends

    - `mpijob-elastic logs train --since 5m --timestamps`: the lines of the last five minutes, with their times

    - `kubectl mpijob-elastic logs train --worker 2`: what the ranks in train-worker-2 print

    `[N]` before a line is the rank with which its process was started. The process keeps this
    number when Horovod assigns the ranks anew, and a process in a new worker may get the same
    number. With --rank or --worker, the command lists the processes of the launcher by exec, with
    your own rights, to learn which worker prints which number. If a line may come from two workers,
    both are named.

    Exit codes: 0 done; 1 no such job or worker, no log yet, or no right to read it; 2 wrong usage;
    4 no answer from the API server; 130 Ctrl-C.
    """
    if rank is not None and worker is not None:
        raise typer.BadParameter("give --rank or --worker, not both", param_hint="--rank")
    if previous and follow:
        raise typer.BadParameter(
            "the previous log has ended: leave out -f", param_hint="--previous"
        )
    if since and since_time:
        raise typer.BadParameter("give --since or --since-time, not both", param_hint="--since")
    wanted = work.logs.Wanted(
        follow=follow,
        since=since or None,
        since_time=since_time,
        timestamps=timestamps,
        tail=None if tail == _ALL else tail,
        previous=previous,
        rank=rank,
        worker=worker,
    )
    await work.logs.logs(where, job=job, wanted=wanted)
