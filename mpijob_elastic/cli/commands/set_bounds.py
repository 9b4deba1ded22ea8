"""`mpijob-elastic set bounds`."""

from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Jobs
from mpijob_elastic.cli.target import Where

_NONE = "none"


def _bound(text: str | None) -> str | None:
    """Return a number above 0, or the word none. Raises typer.BadParameter."""
    if text is None or text == _NONE or (text.isdecimal() and int(text) > 0):
        return text
    raise typer.BadParameter(f"{text} is neither a number above 0 nor {_NONE}")


@cluster_command()
async def bounds(
    *,
    job: Jobs,
    least: Annotated[
        str | None,
        typer.Option(
            "--min", metavar="N|none", callback=_bound, help="Fewest workers.", show_default=False
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            "--max", metavar="N|none", callback=_bound, help="Most workers.", show_default=False
        ),
    ] = None,
    where: Where,
) -> Exit:
    """Set the fewest and the most workers that jobs may have, or remove a bound.

    For example:

    - `mpijob-elastic set bounds train --min 2 --max 8 -n ml`

    - `kubectl mpijob-elastic set bounds train --max none`: no largest size of its own

    The command sets the annotations `mpijob-elastic/min-replicas` and `max-replicas`, and leaves the
    size alone: a size out of the new bounds is refused. horovodrun keeps the `--min-np` and
    `--max-np` with which it was started.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 4 no answer from the API
    server; 130 Ctrl-C.
    """
    if least is None and most is None:
        raise typer.BadParameter("give --min, --max or both", param_hint="--min")
    return await work.bounds_request.set_bounds(
        where, job, least=_number(least), most=_number(most)
    )


def _number(text: str | None) -> int | None:
    """Return the number of a bound, 0 for none; None if the bound stays as it is."""
    if text is None:
        return None
    return 0 if text == _NONE else int(text)
