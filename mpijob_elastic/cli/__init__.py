"""The command line.

Each command imports heavy modules only when it runs, so that --help is quick.
"""

import sys
from functools import partial
from pathlib import Path

import typer

from mpijob_elastic import __version__
from mpijob_elastic.cli import (
    exit_codes,
    install,
    job_commands,
    process_commands,
    read_commands,
    typed,
    upgrade,
)
from mpijob_elastic.cli.arena import SubmitCommand
from mpijob_elastic.kube.errors import KubeError
from mpijob_elastic.telemetry.terminal import say

app = typer.Typer(
    name="mpijob-elastic",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Change the number of workers of a running MPIJob, beside an unmodified mpi-operator "
        "v0.2.3.\n\n"
        "Also a kubectl plugin: `kubectl mpijob-elastic get`.\n\n" + exit_codes.HELP
    ),
)
_command = partial(app.command, cls=typed.Command)
_command(name="get")(read_commands.get)
_command(name="list", hidden=True)(read_commands.get)
_command(name="watch")(read_commands.watch)
_command(name="explain")(read_commands.explain)
_command(name="logs")(read_commands.logs)
_command(name="attach")(read_commands.attach)
_command(name="top")(read_commands.top)
app.command(name="submit", cls=SubmitCommand)(job_commands.submit)
_command(name="scaleout")(job_commands.scaleout)
_command(name="scalein")(job_commands.scalein)
_command(name="suspend")(job_commands.suspend)
_command(name="resume")(job_commands.resume)
_command(name="delete")(job_commands.delete)
_command(name="prune")(job_commands.prune)
_command(name="history")(read_commands.history)
_command(name="dashboard")(read_commands.dashboard)
_command(name="install")(install.install)
_command(name="uninstall")(install.uninstall)
app.add_typer(upgrade.app)
_command(name="controller")(process_commands.controller)
_command(name="webhook")(process_commands.webhook)


@_command()
def version() -> None:
    """Print the version."""
    say(f"mpijob-elastic {__version__}")


def main() -> None:
    """Run the command line.

    An error that users can fix is printed on standard error, and sets the exit code.
    """
    # kubectl runs a plugin by its file name, but users type `kubectl mpijob-elastic`.
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    try:
        app(prog_name="kubectl mpijob-elastic" if is_plugin else "mpijob-elastic")
    except (KubeError, OSError) as error:
        say(*f"mpijob-elastic: {_in_words(error)}".split("\n"), err=True)
        sys.exit(exit_codes.of(error))


def _in_words(error: KubeError | OSError) -> str:
    """Return the message of an error, without the number of an error of the system."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
