"""`mpijob-elastic help`."""

from typing import Annotated

import typer


def show_help(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The command, such as get, or upgrade preflight.", show_default=False),
    ] = None,
) -> None:
    """Show what the program, or a command, can do.

    For example:

    - `mpijob-elastic help`: all commands

    - `mpijob-elastic help upgrade preflight`: the same as `mpijob-elastic upgrade preflight --help`
    """
    root = context.find_root()
    root.command.main([*(command or ()), "--help"], prog_name=root.info_name)
