"""`mpijob-elastic upgrade`: commands for a cluster that runs mpi-operator v0.2.3 with live jobs."""

from collections.abc import Callable
from typing import ClassVar

import typer

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.lazy_group import LazyGroup
from mpijob_elastic.telemetry.terminal import say


class UpgradeGroup(LazyGroup):
    """The commands behind `mpijob-elastic upgrade`."""

    places: ClassVar = {
        name: f"mpijob_elastic.cli.commands.upgrade_{name}:{name}"
        for name in ("preflight", "scale", "adopt", "convert")
    }


app = typer.Typer(
    cls=UpgradeGroup,
    name="upgrade",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help=(
        "Check a cluster with live jobs before `install`, and change a job or the definition of "
        "MPIJobs."
    ),
)

# The commands of version 0.2.0 that are gone, and the commands that replace them.
_REPLACED = {
    "apply": f"{names.PROGRAM} install --canary NAMESPACE",
    "status": f"{names.PROGRAM} upgrade preflight",
    "rollback": f"{names.PROGRAM} uninstall --traces",
}


def _replaced(command: str) -> Callable[[], None]:
    def refuse() -> None:
        say(f"`{names.PROGRAM} upgrade {command}` is gone: use `{_REPLACED[command]}`", err=True)
        raise typer.Exit(Exit.USAGE)

    return refuse


for _command in _REPLACED:
    _anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name=_command, hidden=True, context_settings=_anything)(_replaced(_command))
