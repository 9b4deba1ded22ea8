"""The command line: a group of commands, each in a module of its own below `commands`."""

import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer

from mpijob_elastic import __version__, names
from mpijob_elastic.cli import exit_codes
from mpijob_elastic.cli.lazy_group import LazyGroup
from mpijob_elastic.cli.typed import globals_behind
from mpijob_elastic.kube.errors import Forbidden, KubeError
from mpijob_elastic.loading import load
from mpijob_elastic.telemetry.terminal import say

_COMMANDS = "mpijob_elastic.cli.commands"
# Needed only to say which right is missing.
_RIGHTS = "mpijob_elastic.cli.rights"


class ProgramGroup(LazyGroup):
    """The commands of `mpijob-elastic`."""

    places: ClassVar = {
        "get": f"{_COMMANDS}.get:get",
        "list": f"{_COMMANDS}.get:get",
        "watch": f"{_COMMANDS}.watch:watch",
        "explain": f"{_COMMANDS}.explain:explain",
        "logs": f"{_COMMANDS}.logs:logs",
        "events": f"{_COMMANDS}.events:events",
        "attach": f"{_COMMANDS}.attach:app",
        "top": f"{_COMMANDS}.top:top",
        "submit": f"{_COMMANDS}.submit:app",
        "resubmit": f"{_COMMANDS}.resubmit:resubmit",
        "scale": f"{_COMMANDS}.scale:scale",
        "scaleout": f"{_COMMANDS}.scaleout:scaleout",
        "scalein": f"{_COMMANDS}.scalein:scalein",
        "set": f"{_COMMANDS}.set:app",
        "suspend": f"{_COMMANDS}.suspend:suspend",
        "resume": f"{_COMMANDS}.resume:resume",
        "delete": f"{_COMMANDS}.delete:delete",
        "prune": f"{_COMMANDS}.prune:prune",
        "history": f"{_COMMANDS}.history:history",
        "dashboard": f"{_COMMANDS}.dashboard:dashboard",
        "status": f"{_COMMANDS}.status:status",
        "install": f"{_COMMANDS}.install:install",
        "uninstall": f"{_COMMANDS}.uninstall:uninstall",
        "controller": f"{_COMMANDS}.controller:controller",
        "webhook": f"{_COMMANDS}.webhook:webhook",
        "version": f"{_COMMANDS}.version:version",
        "help": f"{_COMMANDS}.help:show_help",
        "upgrade": f"{_COMMANDS}.upgrade:app",
    }
    hidden_commands = frozenset({"list"})
    #: The commands that have commands of their own.
    groups: ClassVar = frozenset({"set", "upgrade"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the program; `-n ml get` is `get -n ml`.

        Raises click's UsageError.
        """
        return super().parse_args(ctx, globals_behind(args, self.groups))


def _tell_version(asked: bool) -> None:  # noqa: FBT001 - typer gives the value of the option
    if asked:
        say(f"{names.PROGRAM} {__version__}")
        raise typer.Exit


def _before_every_command(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


app = typer.Typer(
    cls=ProgramGroup,
    callback=_before_every_command,
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


def main() -> None:
    """Run the command line.

    An error that users can fix is printed on standard error, and sets the exit code.
    """
    # kubectl runs a plugin by its file name, but users type `kubectl mpijob-elastic`.
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    try:
        app(prog_name="kubectl mpijob-elastic" if is_plugin else "mpijob-elastic")
    except (KubeError, OSError) as error:
        end_with(error)


def end_with(error: KubeError | OSError) -> NoReturn:
    """Print an error on standard error, and end with its exit code."""
    say(*f"mpijob-elastic: {_in_words(error)}".split("\n"), err=True)
    sys.exit(exit_codes.of(error))


def _in_words(error: KubeError | OSError) -> str:
    """Return the message of an error, without the number of an error of the system.

    A missing right is said in plain words.
    """
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, Forbidden):
        rights = load(_RIGHTS)
        words = globals_behind(sys.argv[1:], ProgramGroup.groups)
        return str(rights.missing_right(error, rights.command_of(words)) or error)
    return str(error)
