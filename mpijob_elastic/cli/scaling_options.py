"""Options of the commands that change the size of a job, or suspend it, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Pairs, pairs, seconds
from mpijob_elastic.cli.target import Where

if TYPE_CHECKING:
    from mpijob_elastic.cli.jobs.size_request import SizeRequest
    from mpijob_elastic.cli.jobs.write_change import Patience

Count = Annotated[
    int | None,
    typer.Option(min=1, help="Workers to add or remove. Default: 1.", show_default=False),
]
To = Annotated[
    int | None, typer.Option(min=1, help="The new size, instead of --count.", show_default=False)
]
Wait = Annotated[bool, typer.Option(help="Wait until it is done, and show the progress.")]
Timeout = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        callback=lambda text: str(seconds(text)),
        help="The longest time to wait, such as 90s.",
    ),
]
Env = Annotated[
    Pairs,
    typer.Option(
        metavar="NAME=VALUE", help="Variable for --script; repeatable.", show_default=False
    ),
]
Look = Annotated[
    bool,
    typer.Option(
        "--exec/--no-exec", help="Look for ranks in the workers by exec, with your own rights."
    ),
]


async def scaled(
    where: Where, job: str, asked: SizeRequest, patience: Patience, script: str, env: Pairs
) -> Exit:
    """Change the size, and run the script if there is one. Raises typer.BadParameter."""
    variables = pairs(env, "=", "--env")
    if variables and not script:
        raise typer.BadParameter("--env is for --script, which is missing", param_hint="--env")
    after = work.scripted.Script(text=script, env=variables)
    return await work.scripted.scale(where, job, asked, patience, after)


def refuse_two(count: int | None, to: int | None, *names: list[str] | None) -> None:
    if count is not None and to is not None:
        raise typer.BadParameter("give --count or --to, not both", param_hint="--to")
    if to is not None and any(names):
        raise typer.BadParameter("give the new size or the workers, not both", param_hint="--to")
