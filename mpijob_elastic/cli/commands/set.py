"""`mpijob-elastic set`: commands that change one property of a job."""

from typing import ClassVar

import typer

from mpijob_elastic.cli.lazy_group import LazyGroup


class SetGroup(LazyGroup):
    """The commands behind `mpijob-elastic set`."""

    places: ClassVar = {"bounds": "mpijob_elastic.cli.commands.set_bounds:bounds"}


def _before_every_command() -> None:
    """Do nothing: typer takes the program for a group only with such a function."""


app = typer.Typer(
    cls=SetGroup,
    callback=_before_every_command,
    name="set",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Change one property of a job.",
)
