"""`mpijob-elastic help`."""

from typing import Annotated, Any

import typer


def _commands(context: typer.Context, incomplete: str) -> list[str]:
    """Return the commands of the program that begin with what was typed."""
    program: Any = context.find_root().command
    return [name for name in program.list_commands(context) if name.startswith(incomplete)]


def show_help(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The command, such as get, or upgrade preflight.",
            autocompletion=_commands,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what the program, or a command, can do.

    For example:

    - `mpijob-elastic help`: all commands

    - `mpijob-elastic help upgrade preflight`: the same as `mpijob-elastic upgrade preflight --help`
    """
    root = context.find_root()
    root.command.main([*(command or ()), "--help"], prog_name=root.info_name)
