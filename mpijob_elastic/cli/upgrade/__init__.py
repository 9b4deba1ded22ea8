"""`mpijob-elastic upgrade`: what helps a cluster that runs mpi-operator v0.2.3 with live jobs."""

from collections.abc import Callable

import typer

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.upgrade import jobs, preflight, scale
from mpijob_elastic.telemetry.terminal import say

app = typer.Typer(
    name="upgrade",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look before `install` at a cluster with live jobs, and change a job or the definition of MPIJobs.",
)
app.command(name="preflight")(preflight.preflight)
app.command(name="scale")(scale.scale)
app.command(name="adopt")(jobs.adopt)
app.command(name="convert")(jobs.convert)

# The commands of version 0.2.0 that are gone, and what does their work.
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
